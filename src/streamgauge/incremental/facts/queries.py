"""Queries over standing facts: they begin and end while facts come and go, and are told of each change.

A query begins in three steps: it is built (``StandingQuery``), its patterns enter (``StandingQueries.enter``, in turns
between which facts may change), and its operators are evaluated (``StandingQuery.settle``, which touches nothing that
others have). From ``StandingQueries.begin`` on it is told of changes.

Memory is estimated by the sizes of tables, without going through them (``fact_bytes``, ``answer_bytes``).
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from sys import getsizeof
from typing import Final

from streamgauge.incremental.budget import BOUNDLESS, EvaluationBudget, TooMuchError
from streamgauge.incremental.evaluator import KeptAnswer
from streamgauge.incremental.facts.entry import PatternEntry
from streamgauge.incremental.facts.facts import Facts
from streamgauge.incremental.facts.graphs import GraphEntry, NamedGraphs
from streamgauge.incremental.facts.shapes import TOO_LARGE, PatternShape, ShapeJoins, Taker, shape
from streamgauge.incremental.ir import JoinError
from streamgauge.incremental.operators import Index, Take
from streamgauge.incremental.plan import BgpRequest
from streamgauge.incremental.rewrite import UnsupportedError
from streamgauge.model.algebra import QueryForm
from streamgauge.model.terms import Row, Term
from streamgauge.query.stamps import uses_timestamp
from streamgauge.query.traversal import every_pattern

PATTERNS = 64
"""Basic graph patterns that a query may have: each is told of every change."""

KEPT = 8
"""The number of facts that a row counts for that is kept when a query begins: it takes about 100 bytes."""

PER_ROW = 100
"""How many more facts and rows a query may look at, when it begins, for each row that changed while it was answered."""

OPERATORS = 8
"""Operators of a query through which a row goes for one that counts."""


class StandingQuery:
    """A query over standing facts; ``kept`` is its answer.

    UnsupportedError names what of it is not kept incrementally, TooMuchError says that it costs too much.
    """

    def __init__(self, form: QueryForm, pool: "StandingQueries") -> None:
        self.form, self._pool = form, pool
        if uses_timestamp(form):
            raise UnsupportedError("timestamp(): facts stand until they are deleted, they have no times of their own")
        self.effort = EvaluationBudget(pool.most_to_begin, KEPT)
        self.failed, self.begun = False, False
        self.entries: list[PatternEntry[StandingQuery] | GraphEntry[StandingQuery]] = []
        self._weight = sum(1 for _ in every_pattern(form.pattern)) // OPERATORS
        self.kept = KeptAnswer(form, self, names=None, effort=self.effort, ranked=True)

    def leaf(self, asked: BgpRequest) -> Take:
        """Request the solutions of a pattern."""
        if len(self.entries) >= PATTERNS:
            raise TooMuchError(f"it asks for the solutions of more than {PATTERNS} groups of triple patterns")
        entry: PatternEntry[StandingQuery] | GraphEntry[StandingQuery]
        named = asked.graph is not None
        entry = GraphEntry(asked, self, self._pool.graphs) if named else PatternEntry(asked, self, self._pool)
        self.entries.append(entry)
        return entry.take

    def settle(self) -> None:
        """Evaluate what its patterns found; TooMuchError. Nothing is touched that others have."""
        self._spend()
        self.kept.settle()

    def turn(self) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        """The change of the answer as a set; TooMuchError when it would cost too much, and from then on."""
        if self.failed:
            raise self._pool.too_much
        if not self.begun:
            return (), ()
        effort = self.effort
        effort.most = effort.left = self._pool.most
        if self._weight:
            self._spend()
        return self.kept.turn()

    def _spend(self) -> None:
        """Every operator is gone through by what was found."""
        self.effort.spend(self._weight * sum(each.waiting for each in self.entries))

    def end(self) -> None:
        """It is asked no more."""
        for entry in self.entries:
            entry.leave()
        self.entries.clear()
        self._pool.forget(self)


class StandingQueries:
    """The queries over facts, their patterns by shape; ``touched`` gives queries whose patterns found something."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._shapes: dict[PatternShape, ShapeJoins[StandingQuery]] = {}
        self._touched: list[StandingQuery] = []
        self.turn = 0
        self.most_to_begin: int = BOUNDLESS
        self.most: int = BOUNDLESS
        """How much may be looked at to begin a query, and for what this change of the facts makes of it."""
        self.graphs = NamedGraphs[StandingQuery](self)

    def share(self, owner: StandingQuery) -> int:
        """Among how many patterns a query parts what may be looked at."""
        return len(owner.entries)

    @property
    def too_much(self) -> TooMuchError:
        """It would have been more."""
        return TooMuchError(f"its evaluation looks at more than {self.most} facts and rows")

    def touch(self, owner: StandingQuery) -> None:
        """A query whose patterns found something."""
        self._touched.append(owner)

    def forget(self, owner: StandingQuery) -> None:
        """A query that has ended."""
        if owner in self._touched:
            self._touched = [each for each in self._touched if each is not owner]

    def fail(self, owner: StandingQuery) -> None:
        """A query whose change would cost too much."""
        owner.failed = True
        self.touch(owner)

    def ask(self, form: QueryForm) -> StandingQuery:
        """A query, answered at once. UnsupportedError names what of it is not kept incrementally, TooMuchError."""
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
        """Find the solutions of a query's patterns, a part at each step; facts may change between two steps.

        TooMuchError. The query is still to be settled, and to begin.
        """
        for entry in standing.entries:
            yield from entry.steps(standing.effort)
            if standing.failed:
                raise self.too_much
        for entry in standing.entries:
            entry.hand_over()

    def begin(self, standing: StandingQuery) -> None:
        """A query that is settled takes in what changed since its patterns entered; TooMuchError."""
        for entry in standing.entries:
            entry.open()
        standing.effort.weight = 1
        rows = sum(each.waiting for each in standing.entries)
        standing.effort.renew(min(self.most_to_begin, self.most + PER_ROW * rows))
        if standing.failed:
            raise self.too_much
        standing.begun = True
        standing.settle()

    def touched(self) -> Iterable[StandingQuery]:
        """StandingQueries whose answers may have changed, each once and none that has ended; a turn ends."""
        self.turn += 1
        found = dict.fromkeys(self._touched)
        self._touched.clear()
        return found

    def running(self, asked: BgpRequest) -> tuple[ShapeJoins["StandingQuery"], tuple[Term, ...]]:
        """The joins that find a pattern's solutions, and the constants of its taker."""
        kind, constants = shape(asked)
        running = self._shapes.get(kind)
        if running is None:
            try:
                running = self._shapes[kind] = ShapeJoins(kind, self._facts, self)
            except JoinError as error:
                raise UnsupportedError(TOO_LARGE) from error
        return running, constants

    def leave(
        self, running: ShapeJoins[StandingQuery], taker: Taker[StandingQuery], constants: tuple[Term, ...]
    ) -> None:
        """It is no more."""
        if running.leave(taker, constants):
            del self._shapes[running.shape]


ROW: Final = 96
"""About how many bytes a row takes of which the terms are kept elsewhere: a tuple of a few, and its count."""

SOME: Final = 32
"""Bags of an index that are looked at for its size."""

_PAIRS: Final = getsizeof(("", ""))


def terms(facts: Facts) -> int:
    """How many different terms are subjects and objects of facts; CPython interns each of them.

    Goes through all of them, some milliseconds for 100,000 facts; facts may change meanwhile.
    """
    found: set[str] = set()
    for of in list(facts.properties.values()):
        found.update(of.out)
        if of.into is None:
            found.update(*tuple(of.out.values()))
        else:
            found.update(of.into)
    for each in list(facts.classes.values()):
        found.update(each.members)
    return len(found)


def fact_bytes(facts: Facts) -> int:
    """About how many bytes the tables of facts take, without the terms in them."""
    found = 0
    for of in list(facts.properties.values()):
        tables = (of.out, of.into) if of.into is not None else (of.out,)
        found += sum(getsizeof(each) + _PAIRS * len(each) for each in tables) + getsizeof(of.states)
    return found + sum(getsizeof(each.members) for each in list(facts.classes.values()))


def answer_bytes(asked: Iterable[StandingQuery]) -> int:
    """About how many bytes answers take, and the rows that operators remember for them, without terms."""
    found = 0
    for each in asked:
        tables = (each.kept.solutions(), *each.kept.tables())
        for table in tables:
            found += _index_bytes(table) if isinstance(table, Index) else getsizeof(table) + ROW * len(table)
    return found


def _index_bytes(index: Index) -> int:
    """By some of its bags."""
    some = list(islice(index.bags.values(), SOME))
    each = sum(getsizeof(bag) + ROW * len(bag) for bag in some) // (len(some) or 1)
    return getsizeof(index.bags) + each * len(index.bags)
