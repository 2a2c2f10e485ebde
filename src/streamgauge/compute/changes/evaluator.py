"""A query kept up to date: facts come and go, the change of its solutions is asked for when it is wanted."""

from collections.abc import Iterable, Sequence

from streamgauge.compute.changes.bags import Bag, Delta, add_all, difference
from streamgauge.compute.changes.building import Builder, picked
from streamgauge.compute.changes.generate import Feed
from streamgauge.compute.changes.grouping import Grouped
from streamgauge.compute.changes.normal import UnsupportedError, normal
from streamgauge.model import algebra as al
from streamgauge.model.semantics import EmptyAggregate
from streamgauge.model.terms import XSD, Row, Term, Triple, is_blank, is_iri, is_literal

TRIPLE_COLUMNS = ("subject", "predicate", "object")
_BOOLEAN = f"^^<{XSD}boolean>"
_TRUE: Row = (f'"true"{_BOOLEAN}',)
_FALSE: Row = (f'"false"{_BOOLEAN}',)


def refuse(form: al.QueryForm) -> str | None:
    """The sentence that names what of the query is not kept incrementally, ``None`` when all is."""
    try:
        Evaluator(form)
    except UnsupportedError as error:
        return f"the incremental evaluator does not do {error}"
    return None


class Evaluator:
    """The solutions of a query over a set of triples that changes.

    ``enter`` and ``leave`` take graphs; a triple is there while it entered more often than it left. Nothing is
    evaluated above the joins until ``settle``. Raises UnsupportedError for what ``refuse`` names.
    """

    def __init__(
        self,
        form: al.QueryForm,
        static: Iterable[Triple] = (),
        empty_aggregate: EmptyAggregate = EmptyAggregate.SPARQL,
    ) -> None:
        names = columns(form)
        inner = form.variables if isinstance(form, al.Select) else _scope(form)
        builder = Builder(inner)
        self._root = picked(builder.build(normal(form.pattern), frozenset(inner)), inner)
        self._joins, self.variables = builder.joins, names
        self._found: Bag = {}
        self._shown: Bag = {}
        self._shape = _shape(form, inner)
        self._nothing = _nothing(form, empty_aggregate, builder.groups)
        self.enter, self.leave = _feeds([(joins.enter, joins.leave) for joins in builder.joins])
        self.enter(tuple(static))

    def settle(self) -> Delta:
        """The change of the answer since the last ``settle``, over ``variables``."""
        change = self._root.pull()
        if self._shape is None and self._nothing is None:
            add_all(self._shown, change)
            return change
        add_all(self._found, change)
        after = self._answer()
        shaped = difference(after, self._shown)
        self._shown = after
        return shaped

    def _answer(self) -> Bag:
        if self._nothing is not None and self._nothing[0].empty:
            return dict.fromkeys(self._nothing[1], 1)
        if self._shape is None:
            return dict(self._found)
        return self._shape.answer(self._found)

    def change(self, plus: Iterable[Triple], minus: Iterable[Triple]) -> Delta:
        """Let triples come and go, and give the change of the answer."""
        self.enter(plus)
        self.leave(minus)
        return self.settle()

    def remembered(self) -> dict[str, int]:
        """How many entries each index of the joins holds; all are 0 when no triple is there."""
        return {
            f"{number}.{name}": len(index)
            for number, joins in enumerate(self._joins)
            for name, index in joins.indexes.items()
        }

    def solutions(self) -> Bag:
        """The answer at the last ``settle``: row -> multiplicity; do not change it."""
        return self._shown


def columns(form: al.QueryForm) -> tuple[str, ...]:
    """The columns of a form's answer: its variables, those of a triple, or ``ask``."""
    if isinstance(form, al.Select):
        return form.variables
    return TRIPLE_COLUMNS if isinstance(form, al.Construct) else ("ask",)


def _scope(form: al.Ask | al.Construct) -> tuple[str, ...]:
    if isinstance(form, al.Ask):
        return ()
    return tuple(dict.fromkeys(var.name for triple in form.template for var in al.triple_variables(triple)))


def _feeds(pairs: Sequence[tuple[Feed, Feed]]) -> tuple[Feed, Feed]:
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


class _Boolean:
    """ASK: one row, true or false."""

    def answer(self, found: Bag) -> Bag:
        return {_TRUE if found else _FALSE: 1}


class _Triples:
    """CONSTRUCT: the set of well-formed triples of the template's instances."""

    def __init__(self, template: Sequence[al.TriplePattern], names: Sequence[str]) -> None:
        self._names = names
        self._template = [(triple.subject, triple.predicate, triple.object) for triple in template]

    def answer(self, found: Bag) -> Bag:
        triples: Bag = {}
        for row in found:
            cells = dict(zip(self._names, row, strict=True))
            for nodes in self._template:
                triple = tuple([cells[node.name] if isinstance(node, al.Var) else str(node) for node in nodes])
                if _is_triple(triple):
                    triples[triple] = 1
        return triples


def _is_triple(cells: Row) -> bool:
    subject, predicate, end = cells
    if subject is None or predicate is None or end is None:
        return False
    return (
        (is_iri(subject) or is_blank(subject))
        and is_iri(predicate)
        and (is_iri(end) or is_blank(end) or is_literal(end))
    )


def _shape(form: al.QueryForm, names: Sequence[str]) -> _Boolean | _Triples | None:
    if isinstance(form, al.Ask):
        return _Boolean()
    if isinstance(form, al.Construct):
        blank = [name for name in names if name.startswith("_:")]
        if blank:
            raise UnsupportedError("CONSTRUCT with blank nodes in the template: each solution makes new ones")
        return _Triples(form.template, names)
    return None


def _nothing(
    form: al.QueryForm, empty: EmptyAggregate, groups: Sequence[Grouped]
) -> tuple[Grouped, tuple[Row, ...]] | None:
    """The outermost aggregation without keys, and the rows that stand for its answer over no solution."""
    pattern = form.pattern
    while isinstance(pattern, al.Project | al.Extend | al.Filter | al.Distinct | al.Reduced | al.OrderBy | al.Slice):
        pattern = pattern.pattern
    if empty is EmptyAggregate.SPARQL or not isinstance(pattern, al.Group) or pattern.keys:
        return None
    width = len(columns(form))
    cell: Term | None = '""' if empty is EmptyAggregate.EMPTY_STRING else None
    return groups[-1], () if empty is EmptyAggregate.NO_ROW else ((cell,) * width,)
