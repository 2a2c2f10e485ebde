"""Lazy imports: names of a package that are loaded from its modules at their first use.

A package whose ``__init__`` imports its own modules can deadlock threads: one that imports ``package.one`` first holds
the lock of ``one`` while it runs ``__init__``, which waits for ``two``; another that began with ``package.two`` holds
that and waits for ``one``. Python then breaks the deadlock by an ImportError, or returns a half-initialised module.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def names_of(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package; ``modules`` maps the modules below it to the names that each defines."""
    homes = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}: it has {', '.join(sorted(homes))}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return load
