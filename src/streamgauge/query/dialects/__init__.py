"""Dialects of continuous SPARQL, one per file with ``NAME``, ``CLAUSE``, ``recognises``, ``parse``, ``print_query``."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

from streamgauge.model.query import ContinuousQuery


class Dialect(Protocol):
    """The contract of a module of this folder."""

    @property
    def NAME(self) -> str:  # noqa: N802
        """The dialect's name, as in ``--dialect``."""

    @property
    def CLAUSE(self) -> str:  # noqa: N802
        """An example of the dialect's stream clause, for messages."""

    def recognises(self, text: str) -> bool:
        """Whether the text has the dialect's stream clause."""

    def parse(self, text: str) -> ContinuousQuery:
        """The query of a text; QueryError shows where it is wrong."""

    def print_query(self, query: ContinuousQuery) -> str:
        """The text of a query; ValueError if the dialect cannot express it."""


@cache
def load() -> dict[str, Dialect]:
    """Every dialect of this folder by name."""
    modules = (import_module(f"{__name__}.{info.name}") for info in iter_modules(__path__))
    return {dialect.NAME: dialect for dialect in (cast(Dialect, module) for module in modules)}
