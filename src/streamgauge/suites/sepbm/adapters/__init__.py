"""Systems under test, a module each with ``ABOUT``, ``OPTIONS`` and ``start(options, clock)`` (see ``contract``)."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import httpx

from streamgauge.model.phrases import meant, offered, spelled
from streamgauge.model.terms import Triple
from streamgauge.outgoing.clients import HttpClient
from streamgauge.suites.sepbm import SepbmSystem, UnusableSystemError, triples_text

Clock = Callable[[], int]
"""Monotonic time, ns."""


@cache
def adapters() -> Mapping[str, str]:
    """The adapters' names, sorted, each with a sentence about it."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}").ABOUT for name in names}


def options_of(name: str) -> Mapping[str, str]:
    """The options of an adapter with their meanings; UnusableSystemError for an unknown adapter."""
    options: Mapping[str, str] = _adapter(name).OPTIONS
    return options


def _adapter(name: str) -> Any:
    if (name_ := spelled(name, adapters())) is None:
        raise UnusableSystemError(f"unknown system {name}: {offered(name, adapters())}")
    return import_module(f"{__name__}.{name_}")


def start(name: str, options: Mapping[str, str], clock: Clock = time.monotonic_ns) -> SepbmSystem:
    """Start a system by its adapter's name; UnusableSystemError lists the known adapters or options."""
    known = options_of(name)
    for option in options:
        if option not in known:
            message = f"its options are {', '.join(known)}{meant(option, known)}" if known else "it has none"
            raise UnusableSystemError(f"system {name}: unknown option {option}: {message}")
    system: SepbmSystem = _adapter(name).start(options, clock)
    return system


def in_parts(triples: Iterable[Triple], size: int = 5000) -> Iterator[list[Triple]]:
    """The base load in parts, as one request has them."""
    left = iter(triples)
    while part := list(islice(left, size)):
        yield part


def data_update(operation: str, triples: Iterable[Triple]) -> str:
    """``INSERT DATA`` or ``DELETE DATA`` with triples."""
    return f"{operation} DATA {{\n{triples_text(triples)}}}"


def post(http: HttpClient, url: str, text: str, headers: Mapping[str, str], absent: str) -> httpx.Response:
    """The answer to a POST; UnusableSystemError for a refusal, or with ``absent`` if no server answers."""
    try:
        response = http.post(url, content=text.encode(), headers=headers)
    except httpx.TransportError as error:
        raise UnusableSystemError(f"{url}: {error or type(error).__name__}{absent}") from error
    if not response.is_success:
        raise UnusableSystemError(f"{url} answers {response.status_code}: {response.text:.300}")
    return response


def new_journal(folder: str) -> Path:
    """The path of a new broker journal in a folder; UnusableSystemError if it exists or cannot be created."""
    file = Path(folder) / "broker.db"
    if file.exists():
        raise UnusableSystemError(f"{file}: a journal already exists: remove it or choose another folder")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableSystemError(str(error)) from error
    return file
