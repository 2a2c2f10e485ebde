"""Faults of engines, a file each: ``proposals(seen)`` gives those worth trying on a run."""

from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from streamgauge.oracle.diagnosis.models import Fault, Seen, Slip, Sway

Proposals = Callable[[Seen], Iterable[Fault | Slip | Sway]]


@cache
def load() -> dict[str, Proposals]:
    """The faults that there are, by the names of their files."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}").proposals for name in names}


def by_kind(seen: Seen) -> dict[str, tuple[Fault | Slip | Sway, ...]]:
    """Every fault worth trying on what was seen, by the file that proposes it."""
    return {kind: tuple(propose(seen)) for kind, propose in load().items()}
