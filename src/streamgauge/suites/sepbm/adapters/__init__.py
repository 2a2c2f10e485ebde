"""Systems under test, a module each with ``ABOUT``, ``OPTIONS`` and ``start(options, clock)`` (see ``contract``)."""

import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from streamgauge.model.phrases import meant, offered, spelled
from streamgauge.suites.sepbm.contract import SepbmSystem, UnusableSystemError


@cache
def adapters() -> Mapping[str, str]:
    """Their names, sorted, with a sentence about each."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}").ABOUT for name in names}


def options_of(name: str) -> Mapping[str, str]:
    """The options of an adapter, each with its meaning; UnusableSystemError."""
    found: Mapping[str, str] = _adapter(name).OPTIONS
    return found


def _adapter(name: str) -> Any:
    if (found := spelled(name, adapters())) is None:
        raise UnusableSystemError(f"there is no system {name}: {offered(name, adapters())}")
    return import_module(f"{__name__}.{found}")


def start(name: str, options: Mapping[str, str], clock: Callable[[], int] = time.monotonic_ns) -> SepbmSystem:
    """Begin a system by its adapter's name; UnusableSystemError lists adapters, or options, that there are."""
    known = options_of(name)
    for option in options:
        if option not in known:
            said = f"its options are {', '.join(known)}{meant(option, known)}" if known else "it has none"
            raise UnusableSystemError(f"system {name}: there is no option {option}: {said}")
    system: SepbmSystem = _adapter(name).start(options, clock)
    return system
