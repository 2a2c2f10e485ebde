"""What the configuration generator asks of data, whether they are in memory or on Spark."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from streamgauge.model.algebra import Select
from streamgauge.model.terms import Term, Triple
from streamgauge.suites.sepbm.choosing import Rule


class Rows(Protocol):
    """The set of a query's rows in the closure of the data."""

    def count(self) -> int:
        """How many there are."""
        ...

    def resources(self, rule: Rule, seed: int, name: str, most: int) -> list[Term]:
        """The first ``most`` IRIs in an order drawn for the query, of those that have statements.

        A resource whose statements have a blank node is left out: the node would be another when it is published.
        """
        ...

    def values(self, other_than: Term | None, seed: int, name: str, most: int) -> list[Term]:
        """The first ``most`` terms of the last column in an order drawn by seed and name."""
        ...


class Data(Protocol):
    """Facts and their closure; ``explicit`` and ``closure`` are how many there are."""

    explicit: int
    closure: int

    def answer(self, form: Select) -> Rows:
        """The set of a query's rows; ValueError names what is not evaluated."""
        ...

    def descriptions(self, resources: Sequence[Term]) -> dict[Term, tuple[Triple, ...]]:
        """The statements about each resource, sorted."""
        ...

    def write_base(self, without: Sequence[Term], file: Path) -> None:
        """The facts that are about none of these resources as N-Triples, sorted by bytes."""
        ...

    def close(self) -> None:
        """Nothing is kept any more."""
        ...
