"""The algebra of SPARQL 1.1, section 18, operator by operator over lists of solutions; nothing is optimised.

    answers(form, Dataset(default, {"<urn:w1>": triples}))   ->  every legal answer

A solution is a dict from a variable's name to a term. Where several answers are legal (LIMIT over a tie, SAMPLE, the
least of equal values, the order of GROUP_CONCAT) there is one answer for each; ``OpenError`` where that is too many.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streamgauge.model import algebra as al
from tests.sparql.simple.aggregates import aggregated
from tests.sparql.simple.choices import Choices, ExpressionError, every
from tests.sparql.simple.expressions import Expressions
from tests.sparql.simple.ordering import Order
from tests.sparql.simple.paths import walked
from tests.sparql.simple.substitution import substituted
from tests.sparql.simple.values import boolean, is_iri, same

Solution = dict[str, str]
Triple = tuple[str, str, str]
Row = tuple[str | None, ...]


@dataclass(frozen=True)
class Dataset:
    """The default graph and the named ones; each a set of triples."""

    default: Sequence[Triple]
    named: Mapping[str, Sequence[Triple]] = field(default_factory=dict)


@dataclass(frozen=True)
class Legal:
    """One legal answer: its columns, and its rows as a bag."""

    kind: str
    variables: tuple[str, ...]
    rows: tuple[Row, ...]


def answers(form: al.QueryForm, dataset: Dataset, most: int = 200) -> Iterator[Legal]:
    """Every legal answer of a query form; OpenError where the specification leaves more open than can be listed."""
    return every(lambda choices: Evaluation(dataset, choices).answer(form), most)


class Evaluation:
    """One evaluation of a query under one row of choices."""

    def __init__(self, dataset: Dataset, choices: Choices) -> None:
        self._named = {name: list(dict.fromkeys(triples)) for name, triples in dataset.named.items()}
        self._default = list(dict.fromkeys(dataset.default))
        self._choices = choices

    def answer(self, form: al.QueryForm) -> Legal:
        """The answer of a query form."""
        solutions = self.solutions(form.pattern, self._default)
        match form:
            case al.Ask():
                return Legal("boolean", ("ask",), ((boolean(bool(solutions)),),))
            case al.Construct(template=template):
                return Legal("triples", ("subject", "predicate", "object"), _constructed(template, solutions))
            case al.Select(variables=names):
                return Legal(
                    "solutions", names, tuple(tuple(solution.get(name) for name in names) for solution in solutions)
                )

    def solutions(self, pattern: al.Pattern, graph: list[Triple]) -> list[Solution]:
        """eval(D(G), pattern) of 18.6 with ``graph`` as the active graph."""
        match pattern:
            case al.BGP(patterns=triples):
                return _block(triples, graph)
            case al.Join(left=left, right=right):
                return _joined(self.solutions(left, graph), self.solutions(right, graph))
            case al.LeftJoin():
                return self._left_joined(pattern, graph)
            case al.Union(left=left, right=right):
                return self.solutions(left, graph) + self.solutions(right, graph)
            case al.Minus(left=left, right=right):
                others = self.solutions(right, graph)
                return [
                    solution
                    for solution in self.solutions(left, graph)
                    if not any(_removes(solution, o) for o in others)
                ]
            case al.Values(variables=variables, rows=rows):
                return [_mapping(variables, row) for row in rows]
            case al.Graph(name=name, pattern=inner):
                return self._graphs(name, inner)
            case al.Group():
                return self._grouped(pattern, graph)
            case al.Slice():
                return self._sliced(pattern, graph)
            case _:
                return self._changed(pattern, self.solutions(pattern.pattern, graph), graph)

    def _changed(self, pattern: al.Pattern, solutions: list[Solution], graph: list[Triple]) -> list[Solution]:
        """An operator that goes through the solutions of the one pattern below it."""
        match pattern:
            case al.Filter(condition=condition):
                expressions = self._expressions(graph)
                return [solution for solution in solutions if expressions.holds(condition, solution)]
            case al.Extend(variable=var, expression=tree):
                return [self._extended(solution, var.name, tree, graph) for solution in solutions]
            case al.Project(variables=variables):
                return [_only(solution, {var.name for var in variables}) for solution in solutions]
            case al.Distinct():
                return _distinct(solutions)
            case al.Reduced():
                return self._reduced(solutions)
        return solutions

    def _expressions(self, graph: list[Triple]) -> Expressions:
        def exists(pattern: al.Pattern, solution: Mapping[str, str]) -> bool:
            return bool(self.solutions(substituted(pattern, solution), graph))

        return Expressions(self._choices, exists)

    def _left_joined(self, pattern: al.LeftJoin, graph: list[Triple]) -> list[Solution]:
        expressions, condition, result = self._expressions(graph), pattern.condition, []
        right = self.solutions(pattern.right, graph)
        for solution in self.solutions(pattern.left, graph):
            both = [solution | other for other in right if _compatible(solution, other)]
            kept = [one for one in both if condition is None or expressions.holds(condition, one)]
            result.extend(kept or [solution])
        return result

    def _extended(self, solution: Solution, name: str, tree: al.Expression, graph: list[Triple]) -> Solution:
        try:
            return solution | {name: self._expressions(graph).evaluate(tree, solution)}
        except ExpressionError:
            return solution

    def _graphs(self, name: al.Node, inner: al.Pattern) -> list[Solution]:
        if isinstance(name, al.Var):
            results = []
            for iri, triples in self._named.items():
                results += _joined(self.solutions(inner, triples), [{name.name: iri}])
            return results
        return self.solutions(inner, self._named[name]) if name in self._named else []

    def _grouped(self, group: al.Group, graph: list[Triple]) -> list[Solution]:
        expressions, groups = self._expressions(graph), []  # type: ignore[var-annotated]
        for solution in self.solutions(group.pattern, graph):
            key = [_or_error(expressions, tree, solution) for _, tree in group.keys]
            members = next((held for other, held in groups if all(map(same, key, other))), None)
            if members is None:
                members = []
                groups.append((key, members))
            members.append(solution)
        if not group.keys and not groups:
            groups.append(([], []))
        return [self._group_row(group, key, members, expressions) for key, members in groups]

    def _group_row(
        self, group: al.Group, key: list[str | None], members: list[Solution], expressions: Expressions
    ) -> Solution:
        row = {var.name: cell for (var, _), cell in zip(group.keys, key, strict=True) if cell is not None}
        for var, aggregate in group.aggregates:
            try:
                row[var.name] = aggregated(aggregate, members, expressions, self._choices)
            except ExpressionError:
                continue
        return row

    def _reduced(self, solutions: list[Solution]) -> list[Solution]:
        """REDUCED: of equal solutions at least one and at most all."""
        results: list[Solution] = []
        for item in _distinct(solutions):
            count = sum(_equal(item, other) for other in solutions)
            results += [item] * (count - self._choices.choose(count))
        return results

    def _sliced(self, cut: al.Slice, graph: list[Triple]) -> list[Solution]:
        """OFFSET and LIMIT of a sequence that ORDER BY puts in some legal order."""
        pattern, shape = cut.pattern, []
        while not isinstance(pattern, al.OrderBy) and isinstance(pattern, al.Project | al.Distinct | al.Reduced):
            shape.append(pattern)
            pattern = pattern.pattern
        order = None
        if isinstance(pattern, al.OrderBy):
            order = Order(pattern.keys, self._expressions(graph), self._choices)
            pattern = pattern.pattern
        whole = self.solutions(pattern, graph)
        wanted = len(whole) if cut.limit is None else min(len(whole), cut.offset + cut.limit)
        if wanted == len(whole) and not cut.offset:
            return self._shaped(shape, whole) if cut.limit is None else self._shaped(shape, whole)[: cut.limit]
        sequence: list[Solution] = []
        while whole:
            first = order.first(whole) if order else self._any(whole)
            sequence.append(whole.pop(first))
            if len(self._shaped(shape, sequence)) == wanted:
                break
        shaped = self._shaped(shape, sequence)
        return shaped[cut.offset : None if cut.limit is None else cut.offset + cut.limit]

    def _any(self, solutions: list[Solution]) -> int:
        """The place of any one of them, equal ones counted once."""
        places = [at for at, solution in enumerate(solutions) if solution not in solutions[:at]]
        return places[self._choices.choose(len(places))]

    def _shaped(self, shape: list[al.Pattern], solutions: list[Solution]) -> list[Solution]:
        for item in reversed(shape):
            match item:
                case al.Project(variables=variables):
                    names = {var.name for var in variables}
                    solutions = [_only(one, names) for one in solutions]
                case al.Distinct():
                    solutions = _distinct(solutions)
        return solutions


def _block(patterns: Sequence[al.TriplePattern], graph: list[Triple]) -> list[Solution]:
    """A basic graph pattern (18.3) and its paths (18.4); its blank nodes are variables that the solutions drop."""
    results: list[Solution] = [{}]
    for pattern in patterns:
        results = _joined(results, walked(pattern.subject, pattern.predicate, pattern.object, graph))
    return [{name: cell for name, cell in item.items() if not name.startswith("_:")} for item in results]


def _compatible(left: Solution, right: Solution) -> bool:
    return all(same(cell, right[name]) for name, cell in left.items() if name in right)


def _joined(left: list[Solution], right: list[Solution]) -> list[Solution]:
    return [one | other for one in left for other in right if _compatible(one, other)]


def _removes(item: Solution, other: Solution) -> bool:
    return bool(item.keys() & other.keys()) and _compatible(item, other)


def _equal(left: Solution, right: Solution) -> bool:
    return left.keys() == right.keys() and _compatible(left, right)


def _distinct(solutions: list[Solution]) -> list[Solution]:
    results: list[Solution] = []
    for solution in solutions:
        if not any(_equal(solution, other) for other in results):
            results.append(solution)
    return results


def _only(solution: Solution, names: set[str]) -> Solution:
    return {name: cell for name, cell in solution.items() if name in names}


def _mapping(variables: Sequence[al.Var], row: Row) -> Solution:
    return {var.name: cell for var, cell in zip(variables, row, strict=True) if cell is not None}


def _or_error(expressions: Expressions, tree: al.Expression, solution: Solution) -> str | None:
    try:
        return expressions.evaluate(tree, solution)
    except ExpressionError:
        return None


def _constructed(template: Sequence[al.TriplePattern], solutions: list[Solution]) -> tuple[Row, ...]:
    """CONSTRUCT (16.2): triples that are whole and legal, new blank nodes for each solution."""
    made: list[Row] = []
    for at, solution in enumerate(solutions):
        for triple in template:
            nodes = [_made(node, solution, at) for node in (triple.subject, triple.predicate, triple.object)]
            subject, predicate, item = nodes
            if subject and predicate and item and not subject.startswith(('"', "<<")) and is_iri(predicate):
                made.append((subject, predicate, item))
    return tuple(dict.fromkeys(made))


def _made(node: al.Node | al.Path, solution: Solution, at: int) -> str | None:
    if isinstance(node, al.Var):
        return f"_:made{at}x{node.name[2:]}" if node.name.startswith("_:") else solution.get(node.name)
    assert isinstance(node, str)
    return node
