"""Packages that were moved, importable by their old names: ``import streamgauge.wire.formats`` gives the new module.

An old name warns once (``DeprecationWarning``) with the new one. Both names give the same module object, so classes
are the same whichever name imported them.
"""

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

MOVED: Final = {
    "bench.expected": "oracle.expected",
    "bench.judging": "oracle.judging",
    "bench.diagnosis": "oracle.diagnosis",
    "bench.recording": "harness",
    "bench.importing": "harness.importing",
    "bench.experiments": "suites.experiments",
    "bench.clients": "suites.crowds",
    "bench.sepbm": "suites.sepbm",
    "bench.certifying": "suites.conformance",
    "bench.rules": "papers.rules",
    "bench": "suites",
    "report.reproduce": "papers",
    "services.web": "servers.http",
    "services": "servers",
    "compute.changes": "incremental",
    "compute.drivers": "incremental.drivers",
    "compute.standing": "incremental.facts",
    "compute.spark": "spark",
    "compute.reasoning": "reasoning",
    "compute": "incremental",
    "wire.formats": "formats.streams",
    "wire": "formats",
    "servers.fragments.storing": "servers.fragments.store",
    "sources.address": "sources.contract",
}
"""Old names to new ones, both below this package, a part of a package before the package."""


ROOTS: Final = {old.partition(".")[0] for old in MOVED}


def new_name(name: str) -> str | None:
    """The present name of a module, ``None`` for one that was not moved."""
    root, _, rest = name.partition(".")
    if root != __package__ or rest.partition(".")[0] not in ROOTS:
        return None
    for old, new in MOVED.items():
        if rest == old or rest.startswith(f"{old}."):
            return f"{root}.{new}{rest[len(old) :]}"
    return None


class OldNames:
    """A finder and loader of the modules' old names, the first of ``sys.meta_path``.

    Any later place would let the path of a new package answer for a module below its old name, as a second module.
    """

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """A spec that this object loads; a package by its mark, so that its parts are looked for."""
        return None if new_name(name) is None else ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]  # abc costs an import

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module for the time of the import; ``exec_module`` puts the present one in its place."""
        return ModuleType(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of the present name where the import looks for the old one."""
        old = module.__name__
        new = new_name(old)
        assert new is not None
        sys.modules[old] = import_module(new)
        warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=2)
