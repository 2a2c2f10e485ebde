"""A query kept up to date: facts come and go, the change of its solutions is asked for when it is wanted."""

from collections.abc import Iterable, Sequence

from streamgauge.compute.changes.bags import Bag, Delta, add_all
from streamgauge.compute.changes.generate import Feed
from streamgauge.compute.changes.normal import UnsupportedError
from streamgauge.compute.changes.pool import Pool
from streamgauge.compute.changes.tree import Tree
from streamgauge.model import algebra as al
from streamgauge.model.semantics import EmptyAggregate
from streamgauge.model.terms import Term, Triple


def refuse(form: al.QueryForm, names: Sequence[Term] = ()) -> str | None:
    """The sentence that names what of the query is not kept incrementally, ``None`` when all is."""
    try:
        Evaluator(form, names=names)
    except UnsupportedError as error:
        return f"the incremental evaluator does not do {error}"
    return None


class Evaluator:
    """The solutions of a query over sets of triples that change: a default graph and graphs named ``names``.

    ``enter`` and ``leave`` take triples of the default graph, those of ``feeds`` the ones of another; a triple is
    there while it entered more often than it left. Nothing is evaluated above the joins until ``settle``. Graphs of
    stamps, which timestamp() reads, need not be named. Raises UnsupportedError for what ``refuse`` names.
    """

    def __init__(
        self,
        form: al.QueryForm,
        static: Iterable[Triple] = (),
        empty_aggregate: EmptyAggregate = EmptyAggregate.SPARQL,
        names: Sequence[Term] = (),
    ) -> None:
        self._pool = Pool()
        self._tree = Tree(form, names, empty_aggregate, self._pool.leaf)
        self.variables = self._tree.variables
        self._first = self._tree.pull()
        self._shown: Bag = {}
        self._least = self._tree.held()
        self.enter, self.leave = self.feeds(None)
        self.enter(tuple(static))

    def feeds(self, graph: Term | None) -> tuple[Feed, Feed]:
        """Two functions that let triples enter and leave a graph; they do nothing when no pattern reads it."""
        return self._pool.feeds(graph)

    def settle(self) -> Delta:
        """The change of the answer since the last ``settle``, over ``variables``."""
        change = self._tree.pull()
        if self._first:
            add_all(change, self._first)
            self._first = {}
        add_all(self._shown, change)
        return change

    def answer(self) -> Bag:
        """The answer now: row -> multiplicity; do not change it."""
        self.settle()
        return self._shown

    def change(self, plus: Iterable[Triple], minus: Iterable[Triple]) -> Delta:
        """Let triples come to and go from the default graph, and give the change of the answer."""
        self.enter(plus)
        self.leave(minus)
        return self.settle()

    def remembered(self) -> dict[str, int]:
        """How many entries each index of the joins, and each operator, holds for triples; all are 0 when none is there.

        Operators are asked after a ``settle``.
        """
        return self._pool.remembered() | {name: held - self._least[name] for name, held in self._tree.held().items()}

    def solutions(self) -> Bag:
        """The answer at the last ``settle``: row -> multiplicity; do not change it."""
        return self._shown
