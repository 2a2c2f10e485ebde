"""A query kept up to date: facts come and go, the change of its solutions is asked for when it is wanted."""

from collections.abc import Iterable, Sequence

from streamgauge.compute.changes.bags import Bag, Delta, add_all, difference
from streamgauge.compute.changes.building import Builder, picked
from streamgauge.compute.changes.generate import Feed
from streamgauge.compute.changes.grouping import Grouped
from streamgauge.compute.changes.normal import UnsupportedError
from streamgauge.compute.changes.shaping import columns, shape, wanted
from streamgauge.model import algebra as al
from streamgauge.model.semantics import EmptyAggregate
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.query.graphs import spread
from streamgauge.query.stamps import stamped


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
        inner, plain = wanted(form), _spread(form, names)
        builder = Builder(inner)
        pattern = builder.normal.pattern(plain.pattern)
        self._root = picked(builder.build(pattern, frozenset(inner)), inner)
        self._builder, self.variables = builder, columns(form)
        self._found: Bag = {}
        self._shown: Bag = {}
        self._shape = shape(form, inner)
        self._nothing = _nothing(pattern, empty_aggregate, builder.groups, len(self.variables))
        self._first = self._root.pull()
        self._least = [state.held for state in builder.states]
        self.enter, self.leave = self._feeds(None)
        self.enter(tuple(static))

    def feeds(self, graph: Term) -> tuple[Feed, Feed]:
        """Two functions that let triples enter and leave a named graph; they do nothing when no pattern reads it."""
        return self._feeds(graph)

    def _feeds(self, graph: Term | None) -> tuple[Feed, Feed]:
        return _together([(joins.enter, joins.leave) for name, joins in self._builder.joins if name == graph])

    def settle(self) -> Delta:
        """The change of the answer since the last ``settle``, over ``variables``."""
        change = self._root.pull()
        if self._first:
            add_all(change, self._first)
            self._first = {}
        if self._nothing is not None:
            return self._settle_empty(change)
        if self._shape is not None:
            change = self._shape.change(change)
        add_all(self._shown, change)
        return change

    def _settle_empty(self, change: Delta) -> Delta:
        """The change where an aggregation over no solution has an answer of its own."""
        assert self._nothing is not None
        add_all(self._found, change)
        after = dict.fromkeys(self._nothing[1], 1) if self._nothing[0].empty else dict(self._found)
        shown, self._shown = self._shown, after
        return difference(after, shown)

    def change(self, plus: Iterable[Triple], minus: Iterable[Triple]) -> Delta:
        """Let triples come to and go from the default graph, and give the change of the answer."""
        self.enter(plus)
        self.leave(minus)
        return self.settle()

    def remembered(self) -> dict[str, int]:
        """How many entries each index of the joins, and each operator, holds for triples; all are 0 when none is there.

        Operators are asked after a ``settle``.
        """
        joins = {
            f"{number}.{name}": len(index)
            for number, (_, joins) in enumerate(self._builder.joins)
            for name, index in joins.indexes.items()
        }
        states = zip(self._builder.states, self._least, strict=True)
        held = {f"{type(state).__name__} {at}": state.held - least for at, (state, least) in enumerate(states)}
        return joins | held

    def solutions(self) -> Bag:
        """The answer at the last ``settle``: row -> multiplicity; do not change it."""
        return self._shown


def _spread(form: al.QueryForm, names: Sequence[Term]) -> al.QueryForm:
    try:
        return spread(stamped(form), names)
    except ValueError as error:
        raise UnsupportedError(str(error)) from error


def _together(pairs: Sequence[tuple[Feed, Feed]]) -> tuple[Feed, Feed]:
    """One pair of functions for all leaves, without a detour for a single one."""
    if len(pairs) == 1:
        return pairs[0]

    def enter(triples: Iterable[Triple]) -> None:
        graph = tuple(triples)
        for one, _ in pairs:
            one(graph)

    def leave(triples: Iterable[Triple]) -> None:
        graph = tuple(triples)
        for _, one in pairs:
            one(graph)

    return enter, leave


def _nothing(
    pattern: al.Pattern, empty: EmptyAggregate, groups: Sequence[tuple[al.Group, Grouped]], width: int
) -> tuple[Grouped, tuple[Row, ...]] | None:
    """The outermost aggregation without keys, and the rows that stand for its answer over no solution."""
    while isinstance(pattern, al.Project | al.Extend | al.Filter | al.Distinct):
        pattern = pattern.pattern
    made = next((made for group, made in groups if group is pattern and not group.keys), None)
    if made is None or empty is EmptyAggregate.SPARQL:
        return None
    cell: Term | None = '""' if empty is EmptyAggregate.EMPTY_STRING else None
    return made, () if empty is EmptyAggregate.NO_ROW else ((cell,) * width,)
