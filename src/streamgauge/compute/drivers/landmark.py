"""Facts that stand from when they are published until they are deleted, and what each change does to answers."""

from collections.abc import Iterable
from typing import NamedTuple

from streamgauge.compute.reasoning.closure import NO_RULES, Closure
from streamgauge.compute.reasoning.rules import Rules
from streamgauge.compute.standing.pool import Queries, Standing
from streamgauge.model.algebra import QueryForm
from streamgauge.model.terms import Row, Triple


class Difference(NamedTuple):
    """What a change made of a set of rows."""

    added: tuple[Row, ...]
    removed: tuple[Row, ...]


class Landmark:
    """A knowledge base under rules, and the answers of queries on it as sets of rows."""

    def __init__(self, rules: Rules = NO_RULES) -> None:
        self.closure = Closure(rules)
        self._queries = Queries(self.closure.facts)

    def ask(self, form: QueryForm) -> Standing:
        """A query, answered at once until its ``end``; UnsupportedError names what of it is not kept incrementally."""
        standing = self._queries.ask(form)
        standing.kept.settle()
        return standing

    def load(self, triples: Iterable[Triple]) -> None:
        """Many facts are published, before anything is asked or without anybody being told."""
        self.closure.load(triples)
        for standing in self._queries.touched():
            standing.kept.settle()

    def change(self, added: Iterable[Triple], removed: Iterable[Triple]) -> list[tuple[Standing, Difference]]:
        """Facts are deleted, then published: the queries whose answers changed, and how.

        Publishing what is there, and deleting what is not, changes nothing.
        """
        self.closure.apply(added, removed)
        changed = []
        for each in self._queries.touched():
            found = Difference(*each.kept.turn())
            if found.added or found.removed:
                changed.append((each, found))
        return changed
