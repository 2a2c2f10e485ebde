"""Incremental evaluation of a query: its operators above the leaves, and the changes of its answer."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.builder import Builder, MakeLeaf, picked
from streamgauge.incremental.common_groups import CommonGroups
from streamgauge.incremental.grouped import Grouped
from streamgauge.incremental.operators import Bag, Delta, Index, LeafSource, Stateful, add_all, difference, repeated
from streamgauge.incremental.query_forms import Ranking, apart, columns, shape, wanted
from streamgauge.incremental.release import bags_in, let_go
from streamgauge.incremental.rewrite import UnsupportedError, push_graphs
from streamgauge.incremental.window_joins import WindowJoins
from streamgauge.model import algebra as al
from streamgauge.model.semantics import EmptyAggregate
from streamgauge.model.terms import Row, Term
from streamgauge.query.graphs import spread
from streamgauge.query.instants import global_group
from streamgauge.query.stamps import stamped
from streamgauge.query.traversal import every_pattern


class OperatorTree:
    """The operators of a query over a default graph and the named graphs ``names``; ``leaf`` builds its leaves.

    With ``names=None``, named graphs may be created and removed: leaves range over all of them.
    ``ranked``: LIMIT and OFFSET are supported, with ties in the order of ``query_forms``.
    ``common``: aggregations shared by the queries that are pulled together. ``root`` is the operator below the query
    form; while ``watched``, nothing bypasses its ``pull``.
    Raises UnsupportedError for what is not evaluated incrementally.
    """

    def __init__(
        self,
        form: al.QueryForm,
        names: Sequence[Term] | None,
        empty: EmptyAggregate,
        leaf: MakeLeaf,
        effort: EvaluationBudget | None = None,
        ranked: bool = False,
        common: CommonGroups | None = None,
    ) -> None:
        if not ranked and any(isinstance(pattern, al.Slice) for pattern in every_pattern(form.pattern)):
            raise UnsupportedError("LIMIT and OFFSET: they depend on an order that changes with every fact")
        # LIMIT and OFFSET come off the top of the query: below them the answer is an ordinary bag, which ``Ranking``
        # then cuts.
        kept, cut = apart(form if names is None else _stamped(form)) if ranked and _is_cut(form) else (form, None)
        inner, plain = wanted(kept), _spread(kept, names)
        builder = Builder(leaf, inner, effort=effort or EvaluationBudget(), narrow=names is None, common=common)
        if common is not None:
            builder.pull = common.pull
        pattern = builder.normal.pattern(plain.pattern)
        self._pull, self._effort = builder.pull, builder.effort
        self.root = picked(builder.build(pattern, frozenset(inner)), inner)
        self.watched, self.grouped = False, bool(builder.groups)
        self.variables = columns(form)
        nothing = _nothing(pattern, empty, builder.groups, len(self.variables))
        outer = wanted(form)
        ranking = None if cut is None else Ranking(cut, inner, len(outer), builder.effort)
        shapes = (ranking, shape(form, outer), nothing)
        self._shapes = [shape for shape in shapes if shape is not None]
        self._states: list[Stateful] = [*builder.states, *(() if ranking is None else (ranking,))]

    def pull(self) -> Bag:
        """The change of the answer since the last pull; the partial rows of a failed pull are freed in chunks."""
        self._pull.begin()
        try:
            change = self.root.pull()
            for shape_ in self._shapes:
                change = shape_.change(change)
        # Rows of a stopped pull hang on the frames of the traceback; freed at once they would hold all threads up.
        except BaseException as error:
            if self._effort.bounded:
                let_go(bags_in(error))
            raise
        return change

    @property
    def is_leaf(self) -> bool:
        """Whether the answer is exactly the solutions of one leaf."""
        return isinstance(self.root, LeafSource) and not self._shapes

    def forget(self) -> None:
        """Reset: the next pull is a change from the empty state."""
        for state in self._states:
            state.forget()
        for shape_ in self._shapes:
            shape_.forget()

    def tables(self) -> Iterator[dict[Any, Any] | Index]:
        """The tables of all operators; read-only."""
        return chain.from_iterable(state.tables() for state in self._states)


class OverNothing:
    """Replaces the answer of an aggregation without keys by ``rows`` while it has no solutions."""

    def __init__(self, group: Grouped, rows: tuple[Row, ...]) -> None:
        self._group, self._rows = group, rows
        self.forget()

    def forget(self) -> None:
        """Return to the state before the first change."""
        # Its own copy of the answer: whether the group is empty can change without a change of its rows, and the
        # replaced rows must then appear or disappear.
        self._found: Bag = {}
        self._shown: Bag = {}

    def change(self, delta: Bag) -> Bag:
        """The change of the answer."""
        add_all(self._found, delta)
        before, self._shown = self._shown, dict.fromkeys(self._rows, 1) if self._group.empty else dict(self._found)
        return difference(self._shown, before)


def _is_cut(form: al.QueryForm) -> bool:
    """Whether the whole query has LIMIT or OFFSET; an order alone does not affect a bag."""
    return isinstance(form.pattern, al.Slice)


def _spread(form: al.QueryForm, names: Sequence[Term] | None) -> al.QueryForm:
    if names is None:
        return push_graphs(form)
    try:
        return spread(_stamped(form), names)
    except ValueError as error:
        raise UnsupportedError(str(error)) from error


def _stamped(form: al.QueryForm) -> al.QueryForm:
    try:
        return stamped(form)
    except ValueError as error:
        raise UnsupportedError(str(error)) from error


def _nothing(
    pattern: al.Pattern, empty: EmptyAggregate, groups: Sequence[tuple[al.Group, Grouped]], width: int
) -> OverNothing | None:
    """The stage for an outermost aggregation without keys whose empty answer differs from SPARQL's."""
    # By identity: a subquery may contain an equal aggregation, whose empty answer stays as SPARQL has it.
    outermost = global_group(pattern)
    grouped = next((grouped for group, grouped in groups if group is outermost), None)
    if grouped is None or empty is EmptyAggregate.SPARQL:
        return None
    cell: Term | None = '""' if empty is EmptyAggregate.EMPTY_STRING else None
    return OverNothing(grouped, () if empty is EmptyAggregate.NO_ROW else ((cell,) * width,))


def refuse(form: al.QueryForm, names: Sequence[Term] = (), ranked: bool = False) -> str | None:
    """Why a query is not evaluated incrementally, as a sentence; ``None`` if it is. Parameters as for OperatorTree.

    The operators are built over leaves without data, and no joins are compiled.
    """
    try:
        # Built as for an answer, so that what is refused here and what cannot be built are the same by construction.
        OperatorTree(form, names, EmptyAggregate.SPARQL, WindowJoins().leaf, ranked=ranked)
    except UnsupportedError as error:
        return f"the incremental evaluator does not do {error}"
    return None


class KeptAnswer:
    """The current answer of a query over the graphs of a pool, which several queries may share.

    Nothing above the joins is evaluated until ``settle``. Raises UnsupportedError for what ``refuse`` names, and
    TooMuchError, also in ``settle``, beyond the budget ``effort``. ``names`` and ``ranked``: as for OperatorTree.
    """

    def __init__(
        self,
        form: al.QueryForm,
        leaf: MakeLeaf,
        empty_aggregate: EmptyAggregate = EmptyAggregate.SPARQL,
        names: Sequence[Term] | None = (),
        effort: EvaluationBudget | None = None,
        ranked: bool = False,
        common: CommonGroups | None = None,
    ) -> None:
        self.tree = OperatorTree(form, names, empty_aggregate, leaf, effort, ranked, common)
        self.bags: Sequence[Bag] = ()
        """The bags of its leaves if it depends on them alone; aggregations may be shared with other queries."""
        self.variables = self.tree.variables
        # Some operators have rows over nothing, such as COUNT and VALUES: they belong to the first change.
        self._first = self.tree.pull()
        self._shown: Bag = {}

    @property
    def is_leaf(self) -> bool:
        """Whether the answer is exactly the solutions of one leaf."""
        return self.tree.is_leaf

    def begin(self) -> None:
        """Process the initial content, such as static data, ahead of the first ``settle``."""
        add_all(self._first, self.tree.pull())

    def settle(self) -> Delta:
        """The change of the answer since the last ``settle``, over ``variables``."""
        change = self.delta()
        add_all(self._shown, change)
        return change

    def catch_up(self) -> None:
        """``settle`` without a copy: the first change becomes the answer itself."""
        change = self.delta()
        if self._shown:
            add_all(self._shown, change)
        else:
            self._shown = change

    def turn(self) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        """The change of the answer as a set since the last ``settle`` or ``turn``: (added rows, removed rows)."""
        shown, added, removed = self._shown, [], []
        for row, count in (self.delta() if self._first else self.tree.pull()).items():
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

    def delta(self) -> Bag:
        """The change since the last call, without applying it to the stored answer."""
        change = self.tree.pull()
        if self._first:
            add_all(change, self._first)
            self._first = {}
        return change

    def answer(self) -> Bag:
        """The current answer: row -> multiplicity; read-only."""
        self.settle()
        return self._shown

    def rows(self) -> tuple[Row, ...]:
        """The rows of the current answer, repeated by multiplicity."""
        answer = self.answer()
        # Answers rarely have duplicates, and then the keys are the rows.
        return tuple(answer) if sum(answer.values()) == len(answer) else repeated(answer.items())

    def solutions(self) -> Bag:
        """The answer at the last ``settle``: row -> multiplicity; read-only."""
        return self._shown

    def tables(self) -> Iterator[dict[Any, Any] | Index]:
        """The tables of all operators; read-only."""
        return self.tree.tables()

    def let_go(self) -> None:
        """Free all rows in chunks; the object must not be used afterwards."""
        let_go((self._first, self._shown))
        let_go(self.tree.tables())
