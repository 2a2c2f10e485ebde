"""Faults of engines, one kind per file: ``proposals(seen)`` yields those worth trying on a run."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from streamgauge.oracle.diagnosis.models import Fault, Seen, Slip, Sway

Proposals = Callable[[Seen], Iterable[Fault | Slip | Sway]]


@cache
def load() -> dict[str, Proposals]:
    """The proposals of all kinds of faults, by the names of their files."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}").proposals for name in names}


def by_kind(seen: Seen) -> dict[str, tuple[Fault | Slip | Sway, ...]]:
    """All faults worth trying on a run, by kind."""
    return {kind: tuple(_in_family(kind, part) for part in propose(seen)) for kind, propose in load().items()}


def _in_family(kind: str, part: Fault | Slip | Sway) -> Fault | Slip | Sway:
    """The part; a fault without a family is in that of its kind."""
    return replace(part, family=kind) if isinstance(part, Fault) and not part.family else part
