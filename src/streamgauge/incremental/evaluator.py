"""A query kept up to date: facts come and go, the change of its solutions is asked for when it is wanted."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from streamgauge.incremental.bags import Bag, Delta, add_all
from streamgauge.incremental.effort import Effort
from streamgauge.incremental.normal import UnsupportedError
from streamgauge.incremental.operators import Index, Take
from streamgauge.incremental.plans import Asked
from streamgauge.incremental.pool import Pool
from streamgauge.incremental.tree import Tree
from streamgauge.model import algebra as al
from streamgauge.model.semantics import EmptyAggregate
from streamgauge.model.terms import Row, Term, Triple


def refuse(form: al.QueryForm, names: Sequence[Term] = ()) -> str | None:
    """The sentence that names what of the query is not kept incrementally, ``None`` when all is."""
    try:
        Evaluator(form, names=names)
    except UnsupportedError as error:
        return f"the incremental evaluator does not do {error}"
    return None


class Patterns(Protocol):
    """What finds the solutions of basic graph patterns."""

    def leaf(self, asked: Asked) -> Take:
        """A pattern whose solutions are wanted."""
        ...


class Kept:
    """The answer of a query over the graphs of a pool, which may be those of other queries too.

    Nothing is evaluated above the joins until ``settle``. Raises UnsupportedError for what ``refuse`` names, and
    TooMuchError, also by ``settle``, beyond the ``effort``, which it shares. ``names`` and ``ranked``: as Tree.
    """

    def __init__(
        self,
        form: al.QueryForm,
        pool: Patterns,
        empty_aggregate: EmptyAggregate = EmptyAggregate.SPARQL,
        names: Sequence[Term] | None = (),
        effort: Effort | None = None,
        ranked: bool = False,
    ) -> None:
        self._tree = Tree(form, names, empty_aggregate, pool.leaf, effort, ranked)
        self.variables = self._tree.variables
        self._first = self._tree.pull()
        self._shown: Bag = {}
        self._least = self._tree.held()

    def settle(self) -> Delta:
        """The change of the answer since the last ``settle``, over ``variables``."""
        change = self._change()
        add_all(self._shown, change)
        return change

    def turn(self) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        """The change of the answer as a set since the last ``settle`` or ``turn``: rows that came, rows that left."""
        shown, added, removed = self._shown, [], []
        for row, count in self._change().items():
            before = shown.get(row, 0)
            if now := before + count:
                shown[row] = now
            else:
                del shown[row]
            if before <= 0 < now:
                added.append(row)
            elif now <= 0 < before:
                removed.append(row)
        return tuple(added), tuple(removed)

    def _change(self) -> Bag:
        change = self._tree.pull()
        if self._first:
            add_all(change, self._first)
            self._first = {}
        return change

    def answer(self) -> Bag:
        """The answer now: row -> multiplicity; do not change it."""
        self.settle()
        return self._shown

    def solutions(self) -> Bag:
        """The answer at the last ``settle``: row -> multiplicity; do not change it."""
        return self._shown

    def tables(self) -> Iterator[dict[Any, Any] | Index]:
        """What operators remember rows in; not to be changed."""
        return self._tree.tables()

    def remembered(self) -> dict[str, int]:
        """How many rows each operator holds for triples (after a ``settle``); all are 0 when none is there."""
        return {name: held - self._least[name] for name, held in self._tree.held().items()}


class Evaluator(Kept):
    """The solutions of one query over sets of triples that change: a default graph and graphs named ``names``.

    ``enter`` and ``leave`` take triples of the default graph, those of ``feeds`` the ones of another; a triple is
    there while it entered more often than it left. Graphs of stamps, which timestamp() reads, need not be named.
    """

    def __init__(
        self,
        form: al.QueryForm,
        static: Iterable[Triple] = (),
        empty_aggregate: EmptyAggregate = EmptyAggregate.SPARQL,
        names: Sequence[Term] = (),
    ) -> None:
        self._pool = Pool(static)
        super().__init__(form, self._pool, empty_aggregate, names)
        self.feeds = self._pool.feeds
        self.enter, self.leave = self.feeds(None)

    def change(self, plus: Iterable[Triple], minus: Iterable[Triple]) -> Delta:
        """Let triples come to and go from the default graph, and give the change of the answer."""
        self.enter(plus)
        self.leave(minus)
        return self.settle()

    def remembered(self) -> dict[str, int]:
        """How many entries each index of the joins, and each operator, holds for triples; all are 0 when none is there.

        Operators are asked after a ``settle``.
        """
        return self._pool.remembered() | super().remembered()
