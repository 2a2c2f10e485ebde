"""Queries over standing facts, which are valid from publication to deletion.

A query is added in three steps: it is built (``StandingQuery``), its patterns enter (``Landmark.enter``, in turns
between which facts may change), and its operators are evaluated (``StandingQuery.settle``, which touches no shared
state). From ``Landmark.begin`` on it takes part in every change.

Memory is estimated from the sizes of tables without scanning them (``fact_bytes``, ``answer_bytes``).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from sys import getsizeof
from typing import Any, Final, NamedTuple

from streamgauge.incremental.budget import BOUNDLESS, ChangeBudget, EvaluationBudget, TooMuchError
from streamgauge.incremental.evaluator import KeptAnswer
from streamgauge.incremental.facts.facts import Facts
from streamgauge.incremental.facts.graphs import GraphEntry, NamedGraphs, PatternEntry, Quad
from streamgauge.incremental.facts.shapes import ShapePool
from streamgauge.incremental.operators import Bag, Index, Take
from streamgauge.incremental.plan import BgpRequest
from streamgauge.incremental.rewrite import UnsupportedError
from streamgauge.model.algebra import QueryForm
from streamgauge.model.terms import Row, Triple
from streamgauge.query.stamps import calls_timestamp
from streamgauge.query.traversal import every_pattern
from streamgauge.reasoning.closure import LARGE, NO_RULES, Closure
from streamgauge.reasoning.rules import Rules

PATTERNS: Final = 64
"""Maximum basic graph patterns of a query, because each is notified of every change."""

KEPT: Final = 8
"""The cost, in facts, of a row that is stored when a query begins: about 100 bytes."""

PER_ROW: Final = 100
"""Additional budget of a beginning query per row that changed while it was answered."""

OPERATORS: Final = 8
"""Operators of a query that are charged as one per row."""

PER_TRIPLE: Final = 100
"""Additional budget of a query per triple of a change."""

MOST_TIMES: Final = 3
"""Upper bound of the budget, relative to a single triple, for a change of at most ``LARGE`` triples."""


class Difference(NamedTuple):
    """The change of a set of rows."""

    added: tuple[Row, ...]
    removed: tuple[Row, ...]


class StandingQuery:
    """A query over standing facts; ``kept`` is its answer.

    UnsupportedError names what of it is not kept incrementally, TooMuchError says that it costs too much.
    """

    def __init__(self, form: QueryForm, landmark: "Landmark") -> None:
        self.form, self._landmark = form, landmark
        patterns = tuple(every_pattern(form.pattern))
        if any(map(calls_timestamp, patterns)):
            raise UnsupportedError("timestamp(): facts stand until they are deleted, they have no times of their own")
        # While it begins, a row is weighted by what storing it costs; afterwards by 1 (``Landmark.begin``).
        self.effort = EvaluationBudget(landmark.most_to_begin, KEPT)
        self.failed, self.begun = False, False
        self.entries: list[PatternEntry | GraphEntry] = []
        self._left: list[PatternEntry | GraphEntry] = []
        self.touch = partial(landmark.touches.append, self)
        self._weight = len(patterns) // OPERATORS
        self.kept = KeptAnswer(form, self.leaf, names=None, effort=self.effort, ranked=True)

    def leaf(self, bgp_request: BgpRequest) -> Take:
        """Request the solutions of a pattern."""
        if len(self.entries) >= PATTERNS:
            raise TooMuchError(f"it asks for the solutions of more than {PATTERNS} groups of triple patterns")
        pools = self._landmark
        entry = (
            PatternEntry(bgp_request, self, pools.pool)
            if bgp_request.graph is None
            else GraphEntry(bgp_request, self, pools.graphs)
        )
        self.entries.append(entry)
        return entry.take

    @property
    def share(self) -> int:
        """The number of patterns among which its budget is divided."""
        return len(self.entries)

    def fail(self) -> None:
        """The change exceeds the budget."""
        self.failed = True
        self.touch()

    def settle(self) -> None:
        """Evaluate what its patterns found, without touching shared state; TooMuchError."""
        self._spend()
        self.kept.catch_up()

    def turn(self) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        """The change of the answer as a set; TooMuchError beyond the budget, and from then on."""
        if self.failed:
            raise self._landmark.budget.too_much
        if not self.begun:
            return (), ()
        effort, budget = self.effort, self._landmark.budget
        # The common budget may have less left than a query's own limit.
        effort.most = effort.left = budget.most if budget.left >= budget.most else budget.evaluate()
        if self._weight:
            self._spend()
        changed = self.kept.turn()
        if effort.most - effort.left > budget.part:
            budget.spend(effort.most - effort.left - budget.part)
        return changed

    def _spend(self) -> None:
        """Charge the rows found for every operator that they pass."""
        self.effort.spend(self._weight * sum(entry.waiting for entry in self.entries))

    def end(self) -> None:
        """Stop evaluating the query, and leave the landmark."""
        for entry in self.entries:
            entry.leave()
        self._left += self.entries
        self.entries.clear()
        self._landmark.budget.asking -= self.begun
        self.begun = False
        touches = self._landmark.touches
        if self in touches:
            # In place: the landmark, and the bound ``append`` of every query, hold this list.
            touches[:] = [touch for touch in touches if touch is not self]

    def let_go(self) -> None:
        """Free all rows in chunks, between which other threads run, after ``end``."""
        for entry in self._left:
            entry.let_go()
        self.kept.let_go()


class Landmark:
    """A knowledge base under rules, and queries on it, whose answers are sets of rows.

    ``graphs`` are its named graphs, to which rules do not apply. ``touches`` are the queries whose patterns found rows
    in this turn.
    """

    def __init__(self, rules: Rules = NO_RULES) -> None:
        self.closure, self.budget = Closure(rules), ChangeBudget()
        self.pool = ShapePool(self.closure.facts, self.budget)
        self.graphs = NamedGraphs(self.budget)
        self.touches: list[StandingQuery] = []
        self.most_to_begin = self._change = self._whole = BOUNDLESS
        self._failed: dict[StandingQuery, TooMuchError] = {}

    def limit(self, effort: int, derived: int, change: int | None = None, whole: int = BOUNDLESS) -> None:
        """Set budgets: ``effort`` to begin a query, ``derived`` derivations a change, ``change`` per query and change.

        All queries together may read ``whole``, scaled like the budget of a query for larger changes.

        A change allows ``change`` (default: ``effort``) and ``PER_TRIPLE`` more for each of its triples, up to
        ``MOST_TIMES`` as much plus ``PER_TRIPLE`` for each triple beyond ``LARGE``, and at most ``effort``.
        """
        self.most_to_begin, self.closure.most = effort, derived
        self._change, self._whole = effort if change is None else change, whole
        self.budget.begin(min(effort, self._change), whole)

    def ask(self, form: QueryForm) -> StandingQuery:
        """Add and answer a query in one step.

        UnsupportedError names what of it is not kept incrementally, TooMuchError says that it costs too much.
        """
        standing = StandingQuery(form, self)
        try:
            for _ in self.enter(standing):
                pass
            standing.settle()
            self.begin(standing)
        except BaseException:
            standing.end()
            raise
        return standing

    def enter(self, standing: StandingQuery) -> Iterator[None]:
        """Find the solutions of a query's patterns in steps, between which facts may change.

        TooMuchError. Afterwards the query has to be settled, and to begin.
        """
        for entry in standing.entries:
            yield from entry.steps(standing.effort)
            if standing.failed:
                raise self.budget.too_much
        for entry in standing.entries:
            entry.hand_over()

    def begin(self, standing: StandingQuery) -> None:
        """Begin a settled query by processing the changes since its patterns entered; TooMuchError."""
        for entry in standing.entries:
            entry.open()
        standing.effort.weight = 1
        # Facts may have changed while the query was being answered; that is not its fault, so its budget grows with
        # them.
        rows = sum(entry.waiting for entry in standing.entries)
        standing.effort.renew(min(self.most_to_begin, self.budget.most + PER_ROW * rows))
        if standing.failed:
            raise self.budget.too_much
        standing.begun = True
        self.budget.asking += 1
        standing.settle()

    @property
    def has_failed(self) -> bool:
        """Whether a query has failed since the last call of ``failed``."""
        return bool(self._failed)

    def failed(self) -> dict[StandingQuery, TooMuchError]:
        """The queries that failed since the last call; their answers are no longer maintained."""
        failures, self._failed = self._failed, {}
        return failures

    def load(self, triples: Iterable[Triple]) -> None:
        """Publish many facts, without notifications."""
        self.closure.load(triples)
        for standing in self.touched():
            standing.kept.settle()

    def change(
        self,
        added: Iterable[Triple],
        removed: Iterable[Triple],
        named: tuple[Sequence[Quad], Sequence[Quad]] | None = None,
    ) -> Iterator[tuple[StandingQuery, Difference]]:
        """Delete facts, then publish others; yields the queries whose answers changed, with the difference.

        ``named``: (added, removed) facts of named graphs.
        The iterator must be consumed before the next change. Publishing existing facts and deleting missing ones has no
        effect. TooMuchError, before any change, if too much would be derived or there would be too many graphs.
        Queries that exceed their budgets have ``failed``.
        """
        came, went = tuple(added), tuple(removed)
        size = len(came) + len(went)
        if named is not None:
            size += len(named[0]) + len(named[1])
            # Before anything changes, so that a refused publication has no effect at all.
            self.graphs.check(named[0])
        limit = self._most(size)
        self.budget.begin(limit, max(self._whole, self._whole * limit // self._change))
        self.closure.apply(came, went)
        if named is not None:
            self.graphs.change(*named)
        return self._changed(self.touched())

    def touched(self) -> Iterable[StandingQuery]:
        """End a turn; the live queries whose answers may have changed."""
        self.budget.turn += 1
        # A query is touched by each of its patterns. As a key it is there once, and the order stays that of the
        # touches.
        queries = dict.fromkeys(self.touches)
        self.touches.clear()
        return queries

    def _most(self, size: int) -> int:
        """The budget of each query for a change of this many triples."""
        usual, limit = self._change + PER_TRIPLE * size, MOST_TIMES * self._change
        if usual > limit:
            usual = min(usual, limit + PER_TRIPLE * max(0, size - LARGE))
        return min(self.most_to_begin, usual)

    def _changed(self, touched: Iterable[StandingQuery]) -> Iterator[tuple[StandingQuery, Difference]]:
        for query in touched:
            try:
                added, removed = query.turn()
            except TooMuchError as error:
                self._failed[query] = error
                continue
            if added or removed:
                yield query, Difference(added, removed)


ROW: Final = 96
"""Estimated bytes of a row without its terms: a small tuple and its count."""

SOME: Final = 32
"""Bags of an index that are sampled for its size."""

_PAIRS: Final = getsizeof(("", ""))


def terms(facts: Facts) -> int:
    """The number of distinct subjects and objects of facts, which CPython interns.

    Scans all facts: some milliseconds for 100,000; facts may change meanwhile.
    """
    terms_seen: set[str] = set()
    for of in list(facts.properties.values()):
        terms_seen.update(of.out)
        if of.into is None:
            terms_seen.update(*tuple(of.out.values()))
        else:
            terms_seen.update(of.into)
    for class_ in list(facts.classes.values()):
        terms_seen.update(class_.members)
    return len(terms_seen)


def fact_bytes(facts: Facts) -> int:
    """Estimated bytes of the tables of facts, without terms."""
    size = 0
    for of in list(facts.properties.values()):
        tables = (of.out, of.into) if of.into is not None else (of.out,)
        size += sum(getsizeof(table) + _PAIRS * len(table) for table in tables) + getsizeof(of.states)
    return size + sum(getsizeof(class_.members) for class_ in list(facts.classes.values()))


def answer_bytes(queries: Iterable[StandingQuery]) -> int:
    """Estimated bytes of answers and of the rows in operators, without terms."""
    size = 0
    for query in queries:
        tables = (query.kept.solutions(), *query.kept.tables())
        for table in tables:
            if isinstance(table, Index):
                size += getsizeof(table.single) + (_PAIRS + ROW) * len(table.single)
                size += sum(map(_index_bytes, table.parts()))
            else:
                size += getsizeof(table) + ROW * len(table)
    return size


def _index_bytes(bags: Mapping[Any, Bag]) -> int:
    """Estimated bytes of an index, from a sample of its bags."""
    some = list(islice(bags.values(), SOME))
    bag_bytes = sum(getsizeof(bag) + ROW * len(bag) for bag in some) // (len(some) or 1)
    return getsizeof(bags) + bag_bytes * len(bags)
