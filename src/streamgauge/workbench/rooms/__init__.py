"""Rooms of the workbench, a module or folder each: one is a room by being here and having ``open_room``."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from pkgutil import iter_modules
from threading import Event
from typing import Any, TypeAlias

from starlette.routing import BaseRoute


async def _nothing() -> None:
    """Close a room that has nothing to close."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The context of all rooms: the ``folder`` of runs and experiments, and the served ``address``.

    ``leaving`` is set when the workbench stops, which ends open responses.
    """

    folder: Path
    address: str = ""
    leaving: Event = field(default_factory=Event, compare=False)


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A page that has the words of a search: its kind (a heading), its title and address, and a line about it."""

    kind: str
    title: str
    address: str
    about: str = ""


Search: TypeAlias = Callable[[Sequence[str]], Sequence[SearchHit]]
"""The pages of a room that have all of these words, which are in small letters."""


def has_all(words: Sequence[str], *texts: str) -> bool:
    """Whether some of the texts has each word."""
    folded = "\n".join(texts).casefold()
    return all(word in folded for word in words)


@dataclass(frozen=True, slots=True)
class Room:
    """A room: its ``name`` is the first part of its paths; ``title`` and ``about`` (a sentence) describe it.

    ``place`` is its position in the navigation, ``routes`` are below ``/name``, ``close`` releases its resources,
    ``search`` finds its pages. A folder ``static`` next to its module is served below ``/name/static``, and ``pages``
    finds ``templates`` next to it.
    """

    name: str
    title: str
    about: str
    place: int
    routes: Sequence[BaseRoute]
    close: Callable[[], Awaitable[None]] = _nothing
    search: Search = lambda _words: ()


def open_rooms(bench: Bench) -> list[Room]:
    """All rooms in the order of their places."""
    return sorted((module.open_room(bench) for module in _modules()), key=attrgetter("place"))


def _modules() -> Iterator[Any]:
    for module_info in iter_modules(__path__, f"{__name__}."):
        module = import_module(module_info.name)
        if hasattr(module, "open_room"):
            yield module
