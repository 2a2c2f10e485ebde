"""Queries over standing facts that come and go while facts do."""

from collections.abc import Iterable
from functools import partial

from streamgauge.compute.changes.bags import Bag
from streamgauge.compute.changes.evaluator import Kept
from streamgauge.compute.changes.normal import UnsupportedError
from streamgauge.compute.changes.operators import Take
from streamgauge.compute.changes.plans import Asked
from streamgauge.compute.effort import Effort, TooMuchError
from streamgauge.compute.standing.facts import Facts
from streamgauge.compute.standing.shapes import Running, Shape, Taker, shape
from streamgauge.model.algebra import QueryForm
from streamgauge.model.terms import Row, Term


class Standing:
    """A query over standing facts; ``kept`` is its answer."""

    def __init__(self, form: QueryForm, pool: "Queries") -> None:
        self.form, self._pool = form, pool
        self.failed = False
        self._asked: list[tuple[Running[Standing], Taker[Standing], tuple[Term, ...]]] = []
        try:
            self.kept = Kept(form, self, effort=pool.effort)
        except BaseException:
            self.end()
            raise

    def leaf(self, asked: Asked) -> Take:
        """A pattern whose solutions are wanted."""
        if asked.graph is not None:
            raise UnsupportedError(f"GRAPH {asked.graph}: facts stand in the default graph")
        found: Bag = {}
        taker = Taker(found, self)
        self._asked.append(self._pool.enter(taker, asked))
        if self.failed:
            raise self._pool.too_much
        return partial(_taken, found)

    def turn(self) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        """The change of the answer as a set; TooMuchError when it would cost too much, and from then on."""
        if self.failed:
            raise self._pool.too_much
        self._pool.effort.renew()
        return self.kept.turn()

    def end(self) -> None:
        """It is asked no more."""
        for running, taker, constants in self._asked:
            self._pool.leave(running, taker, constants)
        self._asked.clear()


def _taken(found: Bag) -> Bag:
    change = found.copy()
    found.clear()
    return change


class Queries:
    """What is asked of facts, by shape; ``touched`` gives those whose patterns found something since it was called."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._shapes: dict[Shape, Running[Standing]] = {}
        self._touched: list[Standing] = []
        self.effort, self.turn = Effort(), 0

    @property
    def most(self) -> int:
        """How much may be looked at to begin a query, and for what one change of the facts makes of it."""
        return self.effort.most

    @property
    def too_much(self) -> TooMuchError:
        """It would have been more."""
        return TooMuchError(f"its evaluation looks at more than {self.most} facts and rows")

    def touch(self, owner: Standing) -> None:
        """A query whose patterns found something."""
        self._touched.append(owner)

    def fail(self, owner: Standing) -> None:
        """A query whose change would cost too much."""
        owner.failed = True
        self.touch(owner)

    def ask(self, form: QueryForm) -> Standing:
        """A query, answered at once. UnsupportedError names what of it is not kept incrementally, TooMuchError."""
        self.effort.renew()
        standing = Standing(form, self)
        try:
            standing.kept.settle()
        except TooMuchError:
            standing.end()
            raise
        return standing

    def touched(self) -> Iterable[Standing]:
        """Queries whose answers may have changed, each once; a turn ends."""
        self.turn += 1
        found = dict.fromkeys(self._touched)
        self._touched.clear()
        return found

    def enter(
        self, taker: Taker[Standing], asked: Asked
    ) -> tuple[Running["Standing"], Taker["Standing"], tuple[Term, ...]]:
        """A pattern is asked for."""
        kind, constants = shape(asked)
        running = self._shapes.get(kind)
        if running is None:
            running = self._shapes[kind] = Running(kind, self._facts, self)
        running.enter(taker, constants, self.effort)
        return running, taker, constants

    def leave(self, running: Running[Standing], taker: Taker[Standing], constants: tuple[Term, ...]) -> None:
        """It is no more."""
        if running.leave(taker, constants):
            running.stop()
            del self._shapes[running.shape]
