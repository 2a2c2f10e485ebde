"""One query over triples that come and go, with what its joins and operators remember."""

from collections.abc import Iterable, Sequence

from streamgauge.incremental.evaluator import KeptAnswer
from streamgauge.incremental.operators import Delta
from streamgauge.incremental.window_joins import WindowJoins
from streamgauge.model import algebra as al
from streamgauge.model.semantics import EmptyAggregate
from streamgauge.model.terms import Term, Triple


class Evaluator(KeptAnswer):
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
        ranked: bool = False,
    ) -> None:
        self._pool = WindowJoins(static)
        super().__init__(form, self._pool.leaf, empty_aggregate, names, ranked=ranked)
        self.feeds = self._pool.feeds
        self.enter, self.leave = self.feeds(None)
        self._least = self._held()

    def change(self, plus: Iterable[Triple], minus: Iterable[Triple]) -> Delta:
        """Let triples come to and go from the default graph, and give the change of the answer."""
        self.enter(plus)
        self.leave(minus)
        return self.settle()

    def remembered(self) -> dict[str, int]:
        """How many entries each index of the joins, and each operator, holds for triples; all are 0 when none is there.

        Operators are asked after a ``settle``.
        """
        joins = [join for graph in self._pool._joins.values() for join in graph]
        indexes = {f"{at}.{name}": len(index) for at, join in enumerate(joins) for name, index in join.indexes.items()}
        return indexes | {name: count - self._least[name] for name, count in self._held().items()}

    def _held(self) -> dict[str, int]:
        return {f"{type(state).__name__} {at}": state.held for at, state in enumerate(self.tree._states)}
