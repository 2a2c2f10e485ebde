"""LIMIT and OFFSET of a subquery: its rows are kept sorted, and a range of them is the output (``Ranking``).

Inside an EXISTS that passes values to it, a subquery has rows per outer solution, identified by the first column; the
range then applies to each.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.operators import Bag, Operator, Stateful, add_all
from streamgauge.incremental.query_forms import OrderedSlice, Ranking, apart, wanted
from streamgauge.incremental.rewrite import names_of
from streamgauge.incremental.row_joins import Domain
from streamgauge.model import algebra as al
from streamgauge.query.traversal import with_names


class RankedRows(Stateful):
    """The rows within LIMIT and OFFSET of a subquery, over ``width`` columns; ``inner`` also has those of the keys.

    ``parted``: separately for each value of the first column.
    """

    def __init__(
        self, inner: Operator, cut: OrderedSlice, width: int, effort: EvaluationBudget, parted: bool = False
    ) -> None:
        self.variables = inner.variables[:width]
        self.certain = inner.certain.intersection(self.variables)
        self._inner = inner
        self._ranking = (PartedRanking if parted else Ranking)(cut, inner.variables, width, effort)

    def pull(self) -> Bag:
        """The change of the rows within the range."""
        return self._ranking.change(self._inner.pull())

    @property
    def held(self) -> int:
        """The number of sorted rows."""
        return self._ranking.held

    def forget(self) -> None:
        """Reset: the next pull is a change from the empty state."""
        self._ranking.forget()


class PartedRanking:
    """A ``Ranking`` for each value of the first column."""

    def __init__(self, cut: OrderedSlice, names: tuple[str, ...], width: int, effort: EvaluationBudget) -> None:
        self._make = partial(Ranking, cut, names, width, effort)
        self._rankings: dict[str | None, Ranking] = {}

    @property
    def held(self) -> int:
        """The number of sorted rows of all values."""
        return sum(ranking.held for ranking in self._rankings.values())

    def forget(self) -> None:
        """Return to the state before the first row."""
        self._rankings.clear()

    def change(self, delta: Bag) -> Bag:
        """The change of the rows within the range."""
        deltas: dict[str | None, Bag] = {}
        for row, count in delta.items():
            deltas.setdefault(row[0], {})[row] = count
        change: Bag = {}
        for key, own in deltas.items():
            ranking = self._rankings.get(key) or self._rankings.setdefault(key, self._make())
            add_all(change, ranking.change(own))
            # Outer solutions come and go; a ranking without rows is forgotten with its key.
            if ranking.empty:
                del self._rankings[key]
        return change


def ranked_rows(
    pattern: al.Slice,
    build: Callable[[al.Pattern, tuple[str, ...]], Operator],
    effort: EvaluationBudget,
    domain: Domain | None = None,
) -> RankedRows:
    """The operator of a subquery with LIMIT or OFFSET; ``build`` builds that of its pattern over given columns.

    With a ``domain``, its key is the first column and its variables are among the others.
    """
    names = names_of(al.pattern_variables(pattern))
    kept, cut = apart(al.Select(pattern, names))
    assert cut is not None
    if domain is None:
        return RankedRows(build(kept.pattern, wanted(kept)), cut, len(names), effort)
    shown = (domain.key, *dict.fromkeys((*names, *domain.variables)))
    hidden = [name for name in wanted(kept) if name not in names]
    # A variable that only ORDER BY reads is not projected, so inside EXISTS it is not the outer variable of the same
    # name.
    own = {al.Var(name): al.Var(f"{name}.own") for name in hidden}
    kept, cut = with_names(kept, own), replace(cut, keys=with_names(cut.keys, own))
    columns = (*shown, *(f"{name}.own" for name in hidden))
    return RankedRows(build(kept.pattern, columns), cut, len(shown), effort, parted=True)
