"""Systems under test, a module each: ``ABOUT`` and ``start(options) -> System`` (see ``contract``)."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from streamgauge.bench.sepbm.contract import System, UnusableSystemError


@cache
def adapters() -> Mapping[str, str]:
    """Their names, sorted, with a sentence about each."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}").ABOUT for name in names}


def start(name: str, options: Mapping[str, str]) -> System:
    """Begin a system by its adapter's name; UnusableSystemError lists those that there are."""
    if name not in adapters():
        raise UnusableSystemError(f"there is no system {name}: there are {', '.join(adapters())}")
    system: System = import_module(f"{__name__}.{name}").start(options)
    return system
