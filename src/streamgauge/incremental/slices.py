"""LIMIT and OFFSET of a subquery: its rows are kept in their order, of which a window is shown (``Ranking``)."""

from collections.abc import Callable

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.operators import Bag, Operator, Stateful
from streamgauge.incremental.query_forms import OrderedSlice, Ranking, apart, wanted
from streamgauge.incremental.rewrite import names_of
from streamgauge.model import algebra as al


class RankedRows(Stateful):
    """The rows of a subquery, over ``width`` columns and those of its keys, that its LIMIT and OFFSET show."""

    def __init__(self, inner: Operator, cut: OrderedSlice, width: int, effort: EvaluationBudget) -> None:
        self.variables = inner.variables[:width]
        self.certain = inner.certain.intersection(self.variables)
        self._inner = inner
        self._ranking = Ranking(cut, inner.variables, width, effort)

    def pull(self) -> Bag:
        """The change of the rows that are shown."""
        return self._ranking.change(self._inner.pull())

    @property
    def held(self) -> int:
        """How many places there are."""
        return self._ranking.held

    def forget(self) -> None:
        """Begin again: the next pull is a change from nothing."""
        self._ranking.forget()


def ranked_rows(
    pattern: al.Slice, build: Callable[[al.Pattern, tuple[str, ...]], Operator], effort: EvaluationBudget
) -> RankedRows:
    """The operator of a subquery with LIMIT or OFFSET; ``build`` makes the one of its pattern over columns."""
    names = names_of(al.pattern_variables(pattern))
    kept, cut = apart(al.Select(pattern, names))
    assert cut is not None
    return RankedRows(build(kept.pattern, wanted(kept)), cut, len(names), effort)
