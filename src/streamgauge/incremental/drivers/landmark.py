"""Facts that stand from when they are published until they are deleted, and what each change does to answers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from streamgauge.incremental.effort import BOUNDLESS, TooMuchError
from streamgauge.incremental.facts.graphs import NamedGraphs, Quad
from streamgauge.incremental.facts.pool import Queries, Standing
from streamgauge.model.algebra import QueryForm
from streamgauge.model.terms import Row, Triple
from streamgauge.reasoning.closure import LARGE, NO_RULES, Closure
from streamgauge.reasoning.rules import Rules

PER_TRIPLE: Final = 100
"""How many more facts and rows a query may look at for each triple that a change has."""

MOST_TIMES: Final = 3
"""How many times as much as for one triple that is at most, for a change of ``LARGE`` triples or fewer."""


class Difference(NamedTuple):
    """What a change made of a set of rows."""

    added: tuple[Row, ...]
    removed: tuple[Row, ...]


class Landmark:
    """A knowledge base under rules, and the answers of queries on it as sets of rows."""

    def __init__(self, rules: Rules = NO_RULES) -> None:
        self.closure = Closure(rules)
        self._queries = Queries(self.closure.facts)
        self._change = BOUNDLESS
        self._failed: dict[Standing, TooMuchError] = {}

    def limit(self, effort: int, derived: int, change: int | None = None) -> None:
        """How much is looked at to begin a query, how often one change derives something, what it lets a query look at.

        For a change that is ``change``, ``effort`` unless said, and ``PER_TRIPLE`` more for each of its triples, up to
        ``MOST_TIMES`` as much and ``PER_TRIPLE`` for each triple beyond ``LARGE``, at most ``effort``.
        """
        self._queries.most_to_begin, self.closure.most = effort, derived
        self._change = effort if change is None else change
        self._queries.most = min(effort, self._change)

    def ask(self, form: QueryForm) -> Standing:
        """A query, answered at once until its ``end``.

        UnsupportedError names what of it is not kept incrementally, TooMuchError says that it costs too much.
        """
        return self._queries.ask(form)

    def built(self, form: QueryForm) -> Standing:
        """A query that has found nothing yet: ``entering``, ``Standing.settle`` and ``begin`` come next."""
        return Standing(form, self._queries)

    def entering(self, standing: Standing) -> Iterator[None]:
        """Find the solutions of its patterns, a part at each step; facts may change between two. TooMuchError."""
        return self._queries.enter(standing)

    def begin(self, standing: Standing) -> None:
        """It is told of changes from now on, those since its patterns were entered are taken in; TooMuchError."""
        self._queries.begin(standing)

    @property
    def has_failed(self) -> bool:
        """Whether a query failed since ``failed`` was asked last."""
        return bool(self._failed)

    def failed(self) -> dict[Standing, TooMuchError]:
        """The queries that failed since this was asked last: their answers are not kept any more."""
        found, self._failed = self._failed, {}
        return found

    def load(self, triples: Iterable[Triple]) -> None:
        """Many facts are published, before anything is asked or without anybody being told."""
        self.closure.load(triples)
        for standing in self._queries.touched():
            standing.kept.settle()

    @property
    def graphs(self) -> NamedGraphs[Standing]:
        """The named graphs, to which rules do not apply."""
        return self._queries.graphs

    def change(
        self,
        added: Iterable[Triple],
        removed: Iterable[Triple],
        named: tuple[Sequence[Quad], Sequence[Quad]] | None = None,
    ) -> Iterator[tuple[Standing, Difference]]:
        """Facts are deleted, then published: the queries whose answers changed, and how, each as soon as it is known.

        ``named`` are facts of named graphs that come and that go.
        What is given is gone through to its end before the next change. Publishing what is there, and deleting what is
        not, changes nothing. TooMuchError, at once, when too much would be derived or there would be too many graphs:
        then nothing is changed. Queries whose change would cost too much have ``failed``.
        """
        came, went = tuple(added), tuple(removed)
        size = len(came) + len(went)
        if named is not None:
            size += len(named[0]) + len(named[1])
            self.graphs.check(named[0])
        self._queries.most = self._most(size)
        self.closure.apply(came, went)
        if named is not None:
            self.graphs.change(*named)
        return self._changed(self._queries.touched())

    def _most(self, size: int) -> int:
        """How much each query may look at for a change of so many triples."""
        usual, most = self._change + PER_TRIPLE * size, MOST_TIMES * self._change
        if usual > most:
            usual = min(usual, most + PER_TRIPLE * max(0, size - LARGE))
        return min(self._queries.most_to_begin, usual)

    def _changed(self, touched: Iterable[Standing]) -> Iterator[tuple[Standing, Difference]]:
        for each in touched:
            try:
                added, removed = each.turn()
            except TooMuchError as error:
                self._failed[each] = error
                continue
            if added or removed:
                yield each, Difference(added, removed)
