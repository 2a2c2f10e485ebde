"""The operators of a query above its leaves, and what makes its answer of their solutions; one for every evaluator."""

from collections.abc import Iterator, Sequence
from typing import Any

from streamgauge.incremental.bags import Bag, add_all, difference
from streamgauge.incremental.building import Builder, MakeLeaf, picked
from streamgauge.incremental.effort import Effort
from streamgauge.incremental.grouping import Grouped
from streamgauge.incremental.normal import UnsupportedError
from streamgauge.incremental.open_graphs import opened
from streamgauge.incremental.operators import Index, Stateful
from streamgauge.incremental.ranking import Ranking, apart
from streamgauge.incremental.shaping import columns, shape, wanted
from streamgauge.model import algebra as al
from streamgauge.model.semantics import EmptyAggregate
from streamgauge.model.terms import Row, Term
from streamgauge.query.graphs import spread
from streamgauge.query.stamps import stamped


class Tree:
    """A query over a default graph and graphs called ``names``; ``leaf`` makes its leaves, rows are over ``variables``.

    Without ``names`` (``None``) graphs may come and go: leaves are over each of them.
    ``ranked``: LIMIT and OFFSET of the query as a whole are kept, with ties in the order that ``ranking`` says.
    Raises UnsupportedError for what is not kept incrementally.
    """

    def __init__(
        self,
        form: al.QueryForm,
        names: Sequence[Term] | None,
        empty: EmptyAggregate,
        leaf: MakeLeaf,
        effort: Effort | None = None,
        ranked: bool = False,
    ) -> None:
        kept, cut = apart(form) if ranked and _is_cut(form) else (form, None)
        inner, plain = wanted(kept), _spread(kept, names)
        builder = Builder(leaf, inner, effort=effort or Effort(), narrow=names is None)
        pattern = builder.normal.pattern(plain.pattern)
        self._pull = builder.pull
        self._root = picked(builder.build(pattern, frozenset(inner)), inner)
        self.variables = columns(form)
        nothing = _nothing(pattern, empty, builder.groups, len(self.variables))
        outer = wanted(form)
        ranking = None if cut is None else Ranking(cut, inner, len(outer), builder.effort)
        shapes = (ranking, shape(form, outer), nothing)
        self._shapes = [each for each in shapes if each is not None]
        self._states: list[Stateful] = [*builder.states, *(() if ranking is None else (ranking,))]

    def pull(self) -> Bag:
        """The change of the answer since the last pull."""
        self._pull.number += 1
        change = self._root.pull()
        for each in self._shapes:
            change = each.change(change)
        return change

    def forget(self) -> None:
        """Begin again: the next pull is a change from nothing."""
        for state in self._states:
            state.forget()
        for each in self._shapes:
            each.forget()

    def tables(self) -> Iterator[dict[Any, Any] | Index]:
        """What operators remember rows in; not to be changed."""
        for state in self._states:
            yield from (each for each in vars(state).values() if isinstance(each, dict | Index))

    def held(self) -> dict[str, int]:
        """How many rows each operator remembers."""
        return {f"{type(state).__name__} {at}": state.held for at, state in enumerate(self._states)}


class OverNothing:
    """What an aggregation without keys answers where no solution reached it: these rows instead of its own."""

    def __init__(self, group: Grouped, rows: tuple[Row, ...]) -> None:
        self._group, self._rows = group, rows
        self.forget()

    def forget(self) -> None:
        """Begin again from nothing."""
        self._found: Bag = {}
        self._shown: Bag = {}

    def change(self, delta: Bag) -> Bag:
        """The change of what is shown."""
        add_all(self._found, delta)
        before, self._shown = self._shown, dict.fromkeys(self._rows, 1) if self._group.empty else dict(self._found)
        return difference(self._shown, before)


def _is_cut(form: al.QueryForm) -> bool:
    """Whether a query as a whole has LIMIT or OFFSET; an order alone changes nothing of a bag."""
    return isinstance(form.pattern, al.Slice)


def _spread(form: al.QueryForm, names: Sequence[Term] | None) -> al.QueryForm:
    if names is None:
        return opened(form)
    try:
        return spread(stamped(form), names)
    except ValueError as error:
        raise UnsupportedError(str(error)) from error


def _nothing(
    pattern: al.Pattern, empty: EmptyAggregate, groups: Sequence[tuple[al.Group, Grouped]], width: int
) -> OverNothing | None:
    """The stage for the outermost aggregation without keys where it does not answer as SPARQL has it."""
    while isinstance(pattern, al.Project | al.Extend | al.Filter | al.Distinct):
        pattern = pattern.pattern
    made = next((made for group, made in groups if group is pattern and not group.keys), None)
    if made is None or empty is EmptyAggregate.SPARQL:
        return None
    cell: Term | None = '""' if empty is EmptyAggregate.EMPTY_STRING else None
    return OverNothing(made, () if empty is EmptyAggregate.NO_ROW else ((cell,) * width,))
