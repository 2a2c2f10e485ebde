"""SPARQL's algebra over conditional rows: all answers that some assignment of the choices gives.

A conditional row is a solution with the condition under which it exists; a world is an assignment of all choices, and
its answer has the rows whose conditions it satisfies. Only operators that depend on the absence of rows (OPTIONAL,
MINUS, NOT EXISTS, aggregates, LIMIT) split into cases, and only over their own rows:

    { a if x > 50 } OPTIONAL { a, b if y }      a b if x > 50 and y      a if x > 50 and not y
    COUNT(*) over a if u, b if v                0, 1 or 2: one new choice that replaces u and v, if nothing else reads
    them
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from streamgauge.model import algebra as a
from streamgauge.model.terms import Row, Term
from streamgauge.oracle.worlds.conditions import (
    ALWAYS,
    Condition,
    OpenChoice,
    any_of,
    both,
    chosen,
    none_of,
    worlds,
)
from streamgauge.oracle.worlds.groups import ConditionalRow, Grouping, Valuation, as_choice
from streamgauge.oracle.worlds.intervals import OpenError, inexact
from streamgauge.oracle.worlds.openings import CURRENT, Alternatives
from streamgauge.oracle.worlds.slices import KEPT, NO_KEYS, Keys, Precedence
from streamgauge.query.instants import global_group
from streamgauge.query.traversal import written_variables
from streamgauge.sparql.algebra import (
    FALSE,
    TRUE,
    BlankNodeCalls,
    BlankNodes,
    Partners,
    constructed,
    inline,
    labels,
    shared_variables,
)
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from streamgauge.sparql.blocks import Block, Solution, block_extensions, is_plain_block
from streamgauge.sparql.expression import compiled, condition

Extensions: TypeAlias = Callable[[Solution], Iterable[ConditionalRow]]


@dataclass(frozen=True, slots=True)
class PossibleRow:
    """A row of an answer with its condition, and the keys by which ORDER BY orders it."""

    terms: Row
    condition: Condition
    keys: Keys = NO_KEYS


class ConditionalEvaluation:
    """Evaluation over one active graph, with the terms that EXISTS substitutes for variables in ``fixed``."""

    def __init__(
        self, dataset: Dataset, graph: IndexedGraph, fixed: Mapping[str, Term], blank_nodes: BlankNodes
    ) -> None:
        self._dataset, self._graph, self.fixed, self._blank_nodes = dataset, graph, fixed, blank_nodes
        self._openings = CURRENT.get()
        self._certain: dict[tuple[int, tuple[Term | None, ...]], bool] = {}
        self._matched: tuple[a.Group, list[ConditionalRow]] | None = None

    def matched(self, group: a.Group) -> list[Condition]:
        """The cases, no two together, in which a group of the pattern that is evaluated next has a solution."""
        rows = list(self.rows(group.pattern))
        self._matched = group, rows
        return any_of([condition for _, condition in rows])

    def rows(self, pattern: a.Pattern) -> Iterable[ConditionalRow]:
        """The conditional rows of a restated pattern (``restatement``)."""
        match pattern:
            case a.BGP():
                return ((solution, ALWAYS) for solution in Block(pattern, self._graph, self.fixed).solutions({}))
            case a.Join(left=left, right=right):
                return self._joined(left, right)
            case a.LeftJoin(left=left, right=right, condition=wanted):
                return self._left_joined(left, right, wanted)
            case a.Filter(condition=wanted, pattern=inner):
                return self._filtered(wanted, inner)
            case a.Union(left=left, right=right):
                return [*self.rows(left), *self.rows(right)]
            case a.Minus(left=left, right=right):
                return self._subtracted(left, right)
            case a.Extend(pattern=inner, variable=variable, expression=value):
                return self._extended(inner, variable.name, value)
            case a.Values():
                return ((solution, ALWAYS) for solution in inline(pattern, self.fixed))
            case a.Graph():
                return self._in_graph(pattern)
            case a.Group():
                return self._grouped(pattern)
            case _:
                return self._modified(pattern)

    def _modified(self, pattern: a.Project | a.Distinct | a.Reduced | a.OrderBy | a.Slice) -> Iterable[ConditionalRow]:
        match pattern:
            case a.Project(variables=variables):
                names = [variable.name for variable in variables]
                # EXISTS substitutes only variables in scope: a subquery does not see those that it does not project.
                seen = {name: self.fixed[name] for name in names if name in self.fixed}
                inside = self if len(seen) == len(self.fixed) else self.over(self._graph, seen)
                return (
                    ({name: row[name] for name in names if name in row}, condition)
                    for row, condition in inside.rows(pattern.pattern)
                )
            case a.Distinct():
                return self._distinct(self.rows(pattern.pattern))
            case a.Reduced():
                return self._reduced(self.rows(pattern.pattern))
            case a.OrderBy():
                return self.rows(pattern.pattern)
            case a.Slice():
                return self._sliced(pattern)

    def _grouped(self, group: a.Group) -> Iterable[ConditionalRow]:
        grouping = Grouping(group, self.valuation, self.fixed)
        if self._matched is None or self._matched[0] is not group:
            return grouping.rows(self.rows(group.pattern))
        # Whether there are solutions depends on the same choices as the aggregates, which therefore stay visible.
        return grouping.rows(self._matched[1], visible=True)

    def over(self, graph: IndexedGraph, fixed: Mapping[str, Term]) -> "ConditionalEvaluation":
        """The evaluation over another active graph, or with other substituted terms."""
        return ConditionalEvaluation(self._dataset, graph, fixed, self._blank_nodes)

    # Expressions
    def valuation(self, value: a.Expression) -> Valuation:
        """The compiled expression, as a function of a solution."""
        compute = compiled(value)
        return lambda row: compute({**self.fixed, **row}, self._exists)

    def _holds(self, wanted: a.Expression) -> Callable[[Solution, Condition], list[Condition]]:
        """A function from a row and its condition to the cases, no two together, in which it passes a filter."""
        test = condition(wanted)

        def cases(row: Solution, condition: Condition) -> list[Condition]:
            # Worked example: ?v > 50 for an average in [49.9, 50.1] has two outcomes, True where the number is above
            # 50 and False elsewhere; the row stays, under the condition of the first.
            results = self._openings.outcomes(partial(test, {**self.fixed, **row}, self._exists), condition)
            return any_of([case for kept, case in results if kept])

        return cases

    def _exists(self, test: a.Exists, solution: Mapping[str, Term | None]) -> bool:
        names = tuple(sorted(variable.name for variable in written_variables(test.pattern)))
        fixed: dict[str, Term] = {}
        for name in names:
            term = solution.get(name)
            decided = None if term is None else self._openings.decided(term)
            if decided is not None:
                fixed[name] = decided
        key = id(test), tuple(map(fixed.get, names))
        if key in self._certain:
            return self._certain[key]
        before = self._openings.condition

        def alternatives() -> Alternatives:
            rows = self._openings.outcomes(lambda: list(self.over(self._graph, fixed).rows(test.pattern)), ALWAYS)
            ((inner, _),) = rows
            cases = any_of([case for _, condition in inner if (case := both(before, condition)) is not None])
            return [*((True, case) for case in cases), *((False, case) for case in none_of(cases, before))]

        answer: bool = self._openings.choose(alternatives)
        # Decided without any choice or condition, so it is the same for every row with these terms.
        if self._openings.condition is before and not before:
            self._certain[key] = answer
            self._openings.forget()
        return answer

    # Terms
    def identified(
        self, rows: Iterable[ConditionalRow], names: Sequence[str] | None = None
    ) -> Iterator[ConditionalRow]:
        """The rows with terms that are compared by identity (``Openings.identified``), by default in all variables."""
        return self._read(rows, names, self._openings.identified)

    def _read(
        self, rows: Iterable[ConditionalRow], names: Sequence[str] | None, read: Callable[[Term], Term | None]
    ) -> Iterator[ConditionalRow]:
        """The rows with the terms that ``read`` gives of open ones: a row for each option that it chooses."""
        for row, row_condition in rows:
            own = (row if names is None else names) if self._openings.any else ()
            open_terms = {name: row[name] for name in own if self._openings.open_term(row.get(name)) is not None}
            if not open_terms:
                yield row, row_condition
                continue
            # All variables of a row in one run: decisions made for the first variable then hold for the second one
            # too.
            options = self._openings.outcomes(partial(_each, read, open_terms), row_condition)
            for terms, case in options:
                plain = {name: term for name, term in row.items() if name not in terms}
                yield {**plain, **{name: term for name, term in terms.items() if term is not None}}, case

    def _keyed(self, rows: Iterable[ConditionalRow], names: Sequence[str]) -> Iterator[ConditionalRow]:
        """``decided`` for variables by which rows are joined; OpenError if one is an inexact number."""
        for row, row_condition in self._read(rows, names, self._openings.decided):
            if self._openings.any and any(self._openings.open_number(row.get(name)) is not None for name in names):
                raise inexact("an inexact number is joined with a term")
            yield row, row_condition

    # Operators
    def _joined(self, left: a.Pattern, right: a.Pattern) -> Iterator[ConditionalRow]:
        names, extensions = self._extensions(left, right)
        for row, row_condition in self._keyed(self.rows(left), names):
            for other, own in extensions(row):
                case = both(row_condition, own)
                if case is not None:
                    yield {**row, **other}, case

    def _left_joined(self, left: a.Pattern, right: a.Pattern, wanted: a.Expression | None) -> Iterator[ConditionalRow]:
        names, extensions = self._extensions(left, right)
        holds = None if wanted is None else self._holds(wanted)
        for row, row_condition in self._keyed(self.rows(left), names):
            matched: list[Condition] = []
            for other, own in extensions(row):
                case = both(row_condition, own)
                if case is None:
                    continue
                merged = {**row, **other}
                for kept in [case] if holds is None else holds(merged, case):
                    matched.append(kept)
                    yield merged, kept
            # A match under the row's own condition leaves no case without a match; identity avoids a comparison of
            # conditions.
            if not any(case is row_condition for case in matched):
                yield from ((row, case) for case in none_of(matched, row_condition))

    def _subtracted(self, left: a.Pattern, right: a.Pattern) -> Iterator[ConditionalRow]:
        names = shared_variables(left, right)
        partners = self._partners(right, names, overlapping=True)
        for row, row_condition in self._keyed(self.rows(left), names):
            # Worked example: { a } MINUS { a if u, a if v } leaves a where neither u nor v holds, one case of
            # ``none_of``.
            met = [own for _, own in partners(row)]
            if not met:
                yield row, row_condition
            elif ALWAYS not in met:
                yield from ((row, case) for case in none_of(met, row_condition))

    def _filtered(self, wanted: a.Expression, inner: a.Pattern) -> Iterator[ConditionalRow]:
        holds = self._holds(wanted)
        for row, row_condition in self.rows(inner):
            for case in holds(row, row_condition):
                yield row, case

    def _extensions(self, left: a.Pattern, right: a.Pattern) -> tuple[list[str], Extensions]:
        """The shared variables, and a function from a left row to the compatible right rows."""
        names = shared_variables(left, right)
        if not is_plain_block(right):
            return names, self._partners(right, names)
        matches = block_extensions(right, self._graph, self.fixed, names)
        return names, lambda row: ((match, ALWAYS) for match in matches(row))

    def _partners(self, right: a.Pattern, names: Sequence[str], *, overlapping: bool = False) -> Extensions:
        others = [(dict(other), own) for other, own in self._keyed(self.rows(right), names)]
        # By identity, because equal solutions may exist under different conditions.
        conditions = {id(other): own for other, own in others}
        partners = Partners((other for other, _ in others), names)
        return lambda row: ((other, conditions[id(other)]) for other in partners.compatible(row, overlapping))

    def _extended(self, inner: a.Pattern, name: str, value: a.Expression) -> Iterator[ConditionalRow]:
        calls = BlankNodeCalls(value, self._blank_nodes)
        compute = compiled(calls.expression)
        for row, row_condition in self.rows(inner):
            seen = {**self.fixed, **row}
            labels_made = calls.bound(row, seen, self._exists)
            outcomes = self._openings.outcomes(partial(compute, {**seen, **labels_made}, self._exists), row_condition)
            for term, case in outcomes if len(outcomes) < 2 else _merged(outcomes):
                yield {**row, **labels(labels_made), **({} if term is None else {name: term})}, case

    def _in_graph(self, pattern: a.Graph) -> Iterator[ConditionalRow]:
        name, inner = pattern.name, pattern.pattern
        known = self.fixed.get(name.name) if isinstance(name, a.Var) else name
        if known is not None:
            if known in self._dataset.named:
                yield from self.over(self._dataset.named[known], self.fixed).rows(inner)
            return
        assert isinstance(name, a.Var)
        for graph, indexed in self._dataset.named.items():
            rows = self.over(indexed, self.fixed).rows(inner)
            for row, row_condition in self._keyed(rows, [name.name]):
                if row.get(name.name, graph) == graph:
                    yield {**row, name.name: graph}, row_condition

    # Solution modifiers
    def _distinct(self, rows: Iterable[ConditionalRow]) -> Iterator[ConditionalRow]:
        for row, conditions in self._different(rows):
            yield from ((row, case) for case in any_of(conditions))

    def _different(self, rows: Iterable[ConditionalRow]) -> Iterator[tuple[Solution, list[Condition]]]:
        """The distinct solutions, each with the conditions of its copies."""
        known: dict[frozenset[tuple[str, Term]], tuple[Solution, list[Condition]]] = {}
        for plain, case in self.identified(rows):
            known.setdefault(frozenset(plain.items()), (plain, []))[1].append(case)
        names = sorted({name for row, _ in known.values() for name in row})
        rows_ = [tuple(map(row.get, names)) for row, _ in known.values()]
        self._openings.refuse_alike(rows_, "rows that differ in inexact numbers only are compared")
        yield from known.values()

    def _reduced(self, rows: Iterable[ConditionalRow]) -> Iterator[ConditionalRow]:
        """REDUCED: each row at least once, and at most as often as it occurs (18.5).

        The first copy that exists is kept; each further one has a choice of its own, if an earlier copy exists too.
        """
        for row, conditions in self._different(rows):
            yield from ((row, case) for case in any_of(conditions))
            for place, own_condition in enumerate(conditions[1:], 1):
                kept = OpenChoice((True, False), "how many duplicates REDUCED keeps (SPARQL 18.5)")
                for case in any_of(
                    [c for earlier in conditions[:place] if (c := both(own_condition, earlier)) is not None]
                ):
                    # A fresh choice excludes nothing, so the conjunction always exists.
                    more = both(case, chosen(kept, True))
                    assert more is not None
                    yield row, more

    def _sliced(self, pattern: a.Slice) -> Iterator[ConditionalRow]:
        """LIMIT and OFFSET of a subquery: in each world, one choice among all legal slices."""
        rows = self.keyed_rows(pattern.pattern)
        # Worked example: LIMIT 1 over a if u, and b. Where u holds, a or b may be the row, a new choice; elsewhere it
        # is b.
        for members, world in worlds([(row.condition, row) for row in rows]):
            slices = Precedence([row.keys for row in members]).slices(pattern)
            yield from as_choice([[(members[place].solution, world) for place in kept] for kept in slices], KEPT)

    def keyed_rows(self, pattern: a.Pattern) -> list["KeyedRow"]:
        """The rows below a LIMIT with the keys of its ORDER BY, which may be variables that SELECT drops."""
        inner: Any = pattern
        while isinstance(inner, a.Distinct | a.Reduced):
            inner = inner.pattern
        distinct = inner is not pattern
        project = inner if isinstance(inner, a.Project) else None
        inner = inner.pattern if project is not None else inner
        order = inner.keys if isinstance(inner, a.OrderBy) else ()
        names = None if project is None else {variable.name for variable in project.variables}
        kept = all(isinstance(key, a.Var) and (names is None or key.name in names) for key, _ in order)
        if distinct and not kept:
            raise OpenError("open is: which key of ORDER BY rows have that DISTINCT merges (SPARQL 18.5)")
        seen = {name: term for name, term in self.fixed.items() if names is None or name in names}
        inside = self if len(seen) == len(self.fixed) else self.over(self._graph, seen)
        if distinct or not order:
            plain = [(row, row, condition) for row, condition in self.rows(pattern)]
        else:
            plain = [
                ({name: row[name] for name in row if names is None or name in names}, row, condition)
                for row, condition in inside.rows(inner)
            ]
        keys = [inside.valuation(key) for key, _ in order]
        directions = tuple(down for _, down in order)

        def terms(row: Solution) -> Row:
            return tuple(value(row) for value in keys)

        return [
            KeyedRow(shown, Keys(own, directions), case)
            for shown, row, condition in plain
            for own, case in self._openings.outcomes(partial(terms, row), condition)
        ]


def _each(read: Callable[[Term], Term | None], terms: Mapping[str, Term]) -> dict[str, Term | None]:
    return {name: read(term) for name, term in terms.items()}


def _merged(outcomes: Iterable[tuple[Term | None, Condition]]) -> Iterator[tuple[Term | None, Condition]]:
    """The cases of each term: those in which it is the same are one, so a row has few copies."""
    cases: dict[Term | None, list[Condition]] = {}
    for term, case in outcomes:
        cases.setdefault(term, []).append(case)
    return ((term, case) for term, own in cases.items() for case in any_of(own))


@dataclass(frozen=True, slots=True)
class KeyedRow:
    """A row below a LIMIT, with its condition and the keys that order it."""

    solution: Solution
    keys: Keys
    condition: Condition


def answers(form: a.QueryForm, dataset: Dataset, over_nothing: Sequence[Row] | None = None) -> list[PossibleRow]:
    """The possible rows of a restated query form, before its outermost LIMIT (``slices``).

    ``over_nothing`` is the answer where the query aggregates no solution; by default it is SPARQL's.
    """
    blank_nodes = BlankNodes(dataset)
    evaluation = ConditionalEvaluation(dataset, dataset.default, {}, blank_nodes)
    group = None if over_nothing is None else global_group(form.pattern)
    if over_nothing is None or group is None:
        return _answers(form, evaluation, blank_nodes)
    matched = evaluation.matched(group)
    rows = [
        PossibleRow(row.terms, case, row.keys)
        for row in _answers(form, evaluation, blank_nodes)
        for condition in matched
        if (case := both(row.condition, condition)) is not None
    ]
    return [*rows, *(PossibleRow(row, case) for row in over_nothing for case in none_of(matched))]


def _answers(form: a.QueryForm, evaluation: ConditionalEvaluation, blank_nodes: BlankNodes) -> list[PossibleRow]:
    match form:
        case a.Select(pattern=a.Slice(pattern=inner), variables=names):
            keyed = evaluation.keyed_rows(inner)
            return [PossibleRow(tuple(map(row.solution.get, names)), row.condition, row.keys) for row in keyed]
        case a.Select(pattern=pattern, variables=names):
            return [PossibleRow(tuple(map(row.get, names)), condition) for row, condition in evaluation.rows(pattern)]
        case a.Ask(pattern=pattern):
            cases = any_of([condition for _, condition in evaluation.rows(pattern)])
            return [
                *(PossibleRow((TRUE,), case) for case in cases),
                *(PossibleRow((FALSE,), condition) for condition in none_of(cases)),
            ]
        case a.Construct(template=template, pattern=pattern):
            rows = list(evaluation.rows(pattern))
            bound = list(dict.fromkeys(name for row, _ in rows for name in row))
            triples = [
                (dict(zip(("subject", "predicate", "object"), triple, strict=True)), condition)
                for row, condition in evaluation.identified(rows, bound)
                for triple in constructed(template, [row], blank_nodes.new)
            ]
            return [PossibleRow(tuple(row.values()), condition) for row, condition in evaluation._distinct(triples)]
