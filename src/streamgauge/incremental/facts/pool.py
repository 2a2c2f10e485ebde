"""Queries over standing facts that come and go while facts do.

A query begins in three steps: it is built (``Standing``), its patterns enter (``Queries.enter``, in turns between which
facts may change), and what is above them is evaluated (``Standing.settle``, which touches nothing that others have).
From ``Queries.begin`` on it is told of changes.
"""

from collections.abc import Iterable, Iterator

from streamgauge.incremental.effort import BOUNDLESS, Effort, TooMuchError
from streamgauge.incremental.evaluator import Kept
from streamgauge.incremental.facts.entry import Entry
from streamgauge.incremental.facts.facts import Facts
from streamgauge.incremental.facts.graphs import GraphEntry, NamedGraphs
from streamgauge.incremental.facts.joins import JoinError
from streamgauge.incremental.facts.shapes import Running, Shape, Taker, shape
from streamgauge.incremental.normal import UnsupportedError
from streamgauge.incremental.operators import Take
from streamgauge.incremental.plans import Asked
from streamgauge.model.algebra import QueryForm
from streamgauge.model.terms import Row, Term
from streamgauge.query.rebuild import every_pattern
from streamgauge.query.stamps import uses_timestamp

PATTERNS = 64
"""Basic graph patterns that a query may have: each is told of every change."""

KEPT = 8
"""As how many facts a row counts that is kept when a query begins: it takes about 100 bytes."""

PER_ROW = 100
"""How many more facts and rows a query may look at, when it begins, for each row that changed while it was answered."""

OPERATORS = 8
"""Operators of a query through which a row goes for one that counts."""


class Standing:
    """A query over standing facts; ``kept`` is its answer.

    UnsupportedError names what of it is not kept incrementally, TooMuchError says that it costs too much.
    """

    def __init__(self, form: QueryForm, pool: "Queries") -> None:
        self.form, self._pool = form, pool
        if uses_timestamp(form):
            raise UnsupportedError("timestamp(): facts stand until they are deleted, they have no times of their own")
        self.effort = Effort(pool.most_to_begin, KEPT)
        self.failed, self.begun = False, False
        self.entries: list[Entry[Standing] | GraphEntry[Standing]] = []
        self._weight = sum(1 for _ in every_pattern(form.pattern)) // OPERATORS
        self.kept = Kept(form, self, names=None, effort=self.effort, ranked=True)

    def leaf(self, asked: Asked) -> Take:
        """A pattern whose solutions are wanted."""
        if len(self.entries) >= PATTERNS:
            raise TooMuchError(f"it asks for the solutions of more than {PATTERNS} groups of triple patterns")
        entry: Entry[Standing] | GraphEntry[Standing]
        named = asked.graph is not None
        entry = GraphEntry(asked, self, self._pool.graphs) if named else Entry(asked, self, self._pool)
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


class Queries:
    """What is asked of facts, by shape; ``touched`` gives those whose patterns found something since it was called."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._shapes: dict[Shape, Running[Standing]] = {}
        self._touched: list[Standing] = []
        self.turn = 0
        self.most_to_begin: int = BOUNDLESS
        self.most: int = BOUNDLESS
        """How much may be looked at to begin a query, and for what this change of the facts makes of it."""
        self.graphs = NamedGraphs[Standing](self)

    def share(self, owner: Standing) -> int:
        """Among how many patterns a query parts what may be looked at."""
        return len(owner.entries)

    @property
    def too_much(self) -> TooMuchError:
        """It would have been more."""
        return TooMuchError(f"its evaluation looks at more than {self.most} facts and rows")

    def touch(self, owner: Standing) -> None:
        """A query whose patterns found something."""
        self._touched.append(owner)

    def forget(self, owner: Standing) -> None:
        """A query that has ended."""
        if owner in self._touched:
            self._touched = [each for each in self._touched if each is not owner]

    def fail(self, owner: Standing) -> None:
        """A query whose change would cost too much."""
        owner.failed = True
        self.touch(owner)

    def ask(self, form: QueryForm) -> Standing:
        """A query, answered at once. UnsupportedError names what of it is not kept incrementally, TooMuchError."""
        standing = Standing(form, self)
        try:
            for _ in self.enter(standing):
                pass
            standing.settle()
            self.begin(standing)
        except BaseException:
            standing.end()
            raise
        return standing

    def enter(self, standing: Standing) -> Iterator[None]:
        """Find the solutions of a query's patterns, a part at each step; facts may change between two steps.

        TooMuchError. The query is still to be settled, and to begin.
        """
        for entry in standing.entries:
            yield from entry.steps(standing.effort)
            if standing.failed:
                raise self.too_much
        for entry in standing.entries:
            entry.hand_over()

    def begin(self, standing: Standing) -> None:
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

    def touched(self) -> Iterable[Standing]:
        """Queries whose answers may have changed, each once and none that has ended; a turn ends."""
        self.turn += 1
        found = dict.fromkeys(self._touched)
        self._touched.clear()
        return found

    def running(self, asked: Asked) -> tuple[Running["Standing"], tuple[Term, ...]]:
        """What finds the solutions of a pattern, and the constants to ask with."""
        kind, constants = shape(asked)
        running = self._shapes.get(kind)
        if running is None:
            try:
                running = self._shapes[kind] = Running(kind, self._facts, self)
            except JoinError as error:
                raise UnsupportedError(str(error)) from error
        return running, constants

    def leave(self, running: Running[Standing], taker: Taker[Standing], constants: tuple[Term, ...]) -> None:
        """It is no more."""
        if running.leave(taker, constants):
            del self._shapes[running.shape]
