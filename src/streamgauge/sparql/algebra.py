"""The SPARQL 1.1 algebra (18.2 to 18.6) evaluated over a dataset by hash joins and indexes.

Each operator is evaluated bottom-up as 18.6 defines it. GRAPH with a variable evaluates its pattern graph by graph and
joins the graph's name to the solutions, so the variable is unbound inside. EXISTS substitutes: the terms of the outer
solution replace its variables everywhere in the pattern (``fixed``). They are terms there, not bindings: they are not
in the domain that MINUS compares, and paths of length zero may begin at them.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import chain, count, islice
from typing import Final, Generic, TypeAlias, TypeVar

from streamgauge.model import algebra as al
from streamgauge.model.algebra import Aggregate, Call, Exists, Expression, Group, Var
from streamgauge.model.fact import in_graph
from streamgauge.model.terms import XSD, Row, Term, Triple, is_blank, is_iri, is_triple, is_triple_of
from streamgauge.query.traversal import conjuncts, every_expression, expression_parts, reads_patterns, written_variables
from streamgauge.sparql.aggregates import aggregate
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from streamgauge.sparql.blocks import Block, Solution, block_extensions, is_plain_block
from streamgauge.sparql.comparison import value_key
from streamgauge.sparql.expression import ExistsTest, compiled, condition
from streamgauge.sparql.expression import Solution as Bindings
from streamgauge.sparql.values import read

_LABEL = ".label "
_Result = TypeVar("_Result")


class BlankNodes:
    """Makes blank nodes that occur in no graph of a dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._prefix: str | None = None
        self._numbers = count()

    def new(self) -> Term:
        """A new blank node."""
        if self._prefix is None:
            self._prefix = self._free_prefix()
        return f"_:{self._prefix}{next(self._numbers)}"

    def _free_prefix(self) -> str:
        graphs = (self._dataset.default, *self._dataset.named.values())
        taken = [node for graph in graphs for node in graph.nodes if is_blank(node) or is_triple(node)]
        prefix = "made"
        # ``in``: a triple term contains the blank nodes of its parts.
        while any(f"_:{prefix}" in node for node in taken):
            prefix += "x"
        return prefix


def makes_blank_nodes(expression: Expression) -> bool:
    """Whether an expression calls BNODE."""
    return any(map(_is_call, every_expression(expression)))


def _is_call(part: Expression) -> bool:
    return isinstance(part, Call) and part.operator.upper() == "BNODE"


class BlankNodeCalls:
    """An expression whose calls of BNODE are replaced by variables, which ``bound`` binds to blank nodes.

    BNODE("x") is the same node for all calls with that string on one solution, also in other expressions (17.4.2.9):
    the solution carries it under a name that no query can contain, until it is projected.
    """

    def __init__(self, expression: Expression, blank_nodes: BlankNodes) -> None:
        self._blank_nodes = blank_nodes
        self._labels: dict[str, Callable[..., Term | None] | None] = {}
        self.expression = self._without(expression)

    def _without(self, tree: Expression) -> Expression:
        if isinstance(tree, Call) and _is_call(tree):
            name = f".bnode{len(self._labels)}"
            self._labels[name] = compiled(tree.arguments[0]) if tree.arguments else None
            return Var(name)
        return tree if isinstance(tree, Exists) else expression_parts(tree, lambda pattern: pattern, self._without)

    def bound(self, solution: Solution, seen: Mapping[str, Term], exists: Callable[..., bool]) -> dict[str, Term]:
        """The blank nodes of the calls and of their labels.

        ``seen`` is the solution with the substitutions of EXISTS.
        """
        labels_made: dict[str, Term] = {}
        for name, label in self._labels.items():
            if label is None:
                labels_made[name] = self._blank_nodes.new()
                continue
            text = label(seen, exists)
            if text is not None and text[0] == '"' == text[-1]:
                kept = _LABEL + text
                labels_made[kept] = solution.get(kept) or labels_made.get(kept) or self._blank_nodes.new()
                labels_made[name] = labels_made[kept]
        return labels_made


def labels(bindings: Mapping[str, Term]) -> Solution:
    """The part of bindings that carries the blank nodes of labels."""
    return {name: term for name, term in bindings.items() if name.startswith(_LABEL)}


Valuation: TypeAlias = Callable[[Solution], Term | None]


def grouped(
    group: Group, solutions: Iterable[Solution], valuation: Callable[[Expression], Valuation]
) -> Iterator[Solution]:
    """A solution with the keys and aggregates for each group, in the order of first members.

    Without keys there is one group, even over no solutions. An error in a key is a value of its own (18.5.1, ListEval)
    and leaves its variable unbound. ``valuation`` compiles an expression.
    """
    keys = [(variable.name, valuation(key)) for variable, key in group.keys]
    groups: dict[Row, list[Solution]] = {} if keys else {(): []}
    for solution in solutions:
        groups.setdefault(tuple(value(solution) for _, value in keys), []).append(solution)
    sets = [(variable.name, _set_function(aggregate_, valuation)) for variable, aggregate_ in group.aggregates]
    for key, members in groups.items():
        row = {name: term for (name, _), term in zip(keys, key, strict=True) if term is not None}
        for name, compute in sets:
            value = compute(members)
            if value is not None:
                row[name] = value
        yield row


def _set_function(
    set_aggregate: Aggregate, valuation: Callable[[Expression], Valuation]
) -> Callable[[Sequence[Solution]], Term | None]:
    if set_aggregate.argument is None:
        counted = _distinct if set_aggregate.distinct else list[Solution]
        return lambda members: aggregate("COUNT", ['"*"'] * len(counted(members)))
    value = valuation(set_aggregate.argument)
    return lambda members: aggregate(
        set_aggregate.function,
        [value(member) for member in members],
        distinct=set_aggregate.distinct,
        separator=set_aggregate.separator,
    )


def _distinct(solutions: Iterable[Solution]) -> Collection[Solution]:
    """Each solution once; a dict keeps the first one's place, so that DISTINCT over ORDER BY stays sorted."""
    return {frozenset(solution.items()): solution for solution in solutions}.values()


Name = TypeVar("Name", bound=Hashable)
"""A variable as the key of a solution: its name, or the variable itself."""


class Partners(Generic[Name]):
    """A hash index of solutions for finding those compatible with another one (18.3).

    Two solutions are compatible if every variable that both bind has the same term. After OPTIONAL, UNION or UNDEF some
    solutions leave variables unbound, so solutions are grouped by the shared variables that they bind, and each group
    is hashed on demand by those that the other side binds too.
    """

    def __init__(self, solutions: Iterable[dict[Name, Term]], shared: Iterable[Name]) -> None:
        """``shared`` are the variables that these solutions may have in common with the other side."""
        self._shared = tuple(shared)
        self._groups: dict[tuple[Name, ...], list[dict[Name, Term]]] = {}
        for solution in solutions:
            self._groups.setdefault(self._bound(solution), []).append(solution)
        self._indexes: dict[tuple[tuple[Name, ...], ...], dict[tuple[Term, ...], list[dict[Name, Term]]]] = {}

    def compatible(self, solution: dict[Name, Term], overlapping: bool = False) -> Iterator[dict[Name, Term]]:
        """The solutions compatible with one; with ``overlapping`` only those that bind one of its variables (MINUS)."""
        own = self._bound(solution)
        for bound in self._groups:
            keys = bound if bound == own else tuple(name for name in own if name in bound)
            if keys or not overlapping:
                yield from self._index(bound, keys).get(tuple(solution[name] for name in keys), ())

    def _bound(self, solution: dict[Name, Term]) -> tuple[Name, ...]:
        return tuple(name for name in self._shared if name in solution)

    def _index(self, bound: tuple[Name, ...], keys: tuple[Name, ...]) -> dict[tuple[Term, ...], list[dict[Name, Term]]]:
        index = self._indexes.get((bound, keys))
        if index is None:
            index = self._indexes[bound, keys] = {}
            for member in self._groups[bound]:
                index.setdefault(tuple(member[name] for name in keys), []).append(member)
        return index


Extensions: TypeAlias = Callable[[Solution], Iterable[Solution]]
"""A function from a solution to its merges with the compatible solutions of the other side."""


def merges(partners: Partners[str]) -> Extensions:
    """The merges with solutions that are indexed already."""
    return lambda solution: ({**solution, **other} for other in partners.compatible(solution))


def joined(left: Iterable[Solution], extensions: Extensions) -> Iterator[Solution]:
    """Join (18.5): all merges of compatible solutions."""
    for solution in left:
        yield from extensions(solution)


def left_joined(
    left: Iterable[Solution], extensions: Extensions, holds: Callable[[Solution], bool] | None
) -> Iterator[Solution]:
    """LeftJoin (18.5): the merges that satisfy the condition, and the left solutions without such a merge."""
    for solution in left:
        alone = True
        for merged in extensions(solution):
            if holds is None or holds(merged):
                alone = False
                yield merged
        if alone:
            yield solution


def subtracted(left: Iterable[Solution], partners: Partners[str]) -> Iterator[Solution]:
    """Minus (18.5): the left solutions without a compatible right solution that shares a bound variable."""
    for solution in left:
        if next(partners.compatible(solution, overlapping=True), None) is None:
            yield solution


Fixed: TypeAlias = Mapping[str, Term]


def shared_variables(left: al.Pattern, right: al.Pattern) -> list[str]:
    """The variables that two patterns may both bind."""
    other = set(al.pattern_variables(right))
    return [variable.name for variable in al.pattern_variables(left) if variable in other]


def inline(data: al.Values, fixed: Fixed) -> Iterator[Solution]:
    """The solutions of VALUES; only those that agree with the substitutions of EXISTS."""
    names = [variable.name for variable in data.variables]
    for row in data.rows:
        solution = {name: term for name, term in zip(names, row, strict=True) if term is not None}
        if all(fixed.get(name, term) == term for name, term in solution.items()):
            yield {name: term for name, term in solution.items() if name not in fixed}


TRUE: Final = f'"true"^^<{XSD}boolean>'
FALSE: Final = f'"false"^^<{XSD}boolean>'
_NOTHING: Final[Fixed] = {}


class UndefinedError(ValueError):
    """A query that SPARQL 1.1 leaves undefined; the message names the part."""


def answer(form: al.QueryForm, dataset: Dataset) -> tuple[Row, ...]:
    """The rows of a query form: solutions over its variables, distinct triples, or one boolean.

    Raises UndefinedError for a query that SPARQL leaves undefined.
    """
    blank_nodes = BlankNodes(dataset)
    pattern = form.pattern
    if isinstance(form, al.Select) and isinstance(pattern, al.Project):
        pattern = pattern.pattern  # the rows are cut to the same variables
    solutions = _Evaluation(dataset, dataset.default, _NOTHING, blank_nodes).solutions(pattern)
    match form:
        case al.Select(variables=names):
            return tuple([tuple(map(solution.get, names)) for solution in solutions])
        case al.Ask():
            return ((TRUE if next(solutions, None) is not None else FALSE,),)
        case al.Construct(template=template):
            return tuple(dict.fromkeys(constructed(template, solutions, blank_nodes.new)))


_reads_patterns = lru_cache(maxsize=4096)(reads_patterns)
"""``reads_patterns`` of a query's conditions, which each content asks for."""


class _Evaluation:
    """Evaluation over one active graph, with the terms that EXISTS substitutes for variables."""

    def __init__(self, dataset: Dataset, graph: IndexedGraph, fixed: Fixed, blank_nodes: BlankNodes) -> None:
        self._dataset, self._graph, self._fixed, self._blank_nodes = dataset, graph, fixed, blank_nodes
        self._tested: dict[tuple[int, tuple[Term | None, ...]], bool] = {}
        self._mentioned: dict[int, tuple[str, ...]] = {}

    def solutions(self, pattern: al.Pattern) -> Iterator[Solution]:
        match pattern:
            case al.BGP():
                return Block(pattern, self._graph, self._fixed).solutions({})
            case al.Join(left=left, right=right):
                return joined(self.solutions(left), self._extensions(left, right))
            case al.LeftJoin(left=left, right=right, condition=required):
                test = None if required is None else self._test(required)
                return left_joined(self.solutions(left), self._extensions(left, right), test)
            case al.Filter():
                return self._filtered(pattern)
            case al.Union(left=left, right=right):
                return chain(self.solutions(left), self.solutions(right))
            case al.Minus(left=left, right=right):
                return subtracted(self.solutions(left), self._partners(left, right))
            case al.Extend(pattern=inner, variable=variable, expression=value):
                return self._extended(inner, variable, value)
            case al.Values():
                return inline(pattern, self._fixed)
            case al.Graph():
                return self._in_graph(pattern)
            case al.Group(pattern=inner):
                return self._grouped(pattern, inner)
            case _:
                return self._modified(pattern)

    def _modified(self, pattern: al.Project | al.Distinct | al.Reduced | al.OrderBy | al.Slice) -> Iterator[Solution]:
        """Solution modifiers (18.5): Project, Distinct, Reduced (which may keep all duplicates), OrderBy, Slice."""
        if isinstance(pattern, al.Project):
            return self._projected(pattern)
        solutions = self.solutions(pattern.pattern)
        match pattern:
            case al.Distinct():
                return iter(_distinct(solutions))
            case al.Reduced():
                return solutions
            case al.OrderBy(keys=keys):
                return self._ordered(solutions, keys)
            case al.Slice(offset=offset, limit=limit):
                return islice(solutions, offset, None if limit is None else offset + limit)

    def _evaluation(self, graph: IndexedGraph, fixed: Fixed) -> "_Evaluation":
        return _Evaluation(self._dataset, graph, fixed, self._blank_nodes)

    def _projected(self, pattern: al.Project) -> Iterator[Solution]:
        """Project.

        A variable that it drops is not the variable of the same name outside (18.2.1), so it is not fixed.
        """
        names = [variable.name for variable in pattern.variables]
        seen = {name: self._fixed[name] for name in names if name in self._fixed}
        inside = self if len(seen) == len(self._fixed) else self._evaluation(self._graph, seen)
        solutions = inside.solutions(pattern.pattern)
        return ({name: row[name] for name in names if name in row} for row in solutions)

    # Expressions

    def _filtered(self, pattern: al.Filter) -> Iterator[Solution]:
        """Filter.

        Over a basic graph pattern, conditions without EXISTS are pushed in and tested as variables are bound.
        """
        inner: al.Pattern = pattern
        conditions: list[al.Expression] = []
        while isinstance(inner, al.Filter):
            conditions += conjuncts(inner.condition)
            inner = inner.pattern
        if isinstance(inner, al.BGP) and not self._fixed:
            tests = [condition for condition in conditions if not _reads_patterns(condition)]
            filtered = Block(inner, self._graph, self._fixed, conditions=tests).solutions({})
            conditions = [condition for condition in conditions if _reads_patterns(condition)]
        else:
            filtered = self.solutions(inner)
        return reduce(lambda solutions, required: filter(self._test(required), solutions), conditions, filtered)

    def _test(self, required: al.Expression) -> Callable[[Solution], bool]:
        return self._seeing(condition(required))

    def _valuation(self, value: al.Expression) -> Valuation:
        return self._seeing(compiled(value))

    def _seeing(self, compute: Callable[[Bindings, ExistsTest], _Result]) -> Callable[[Solution], _Result]:
        """A compiled expression on solutions together with the substitutions."""
        fixed, exists = self._fixed, self._exists
        if fixed:
            return lambda solution: compute({**fixed, **solution}, exists)
        return lambda solution: compute(solution, exists)

    def _exists(self, test: al.Exists, solution: Bindings) -> bool:
        """Whether the pattern has a solution after substituting the solution's terms for its variables (18.6).

        Cached by the terms of the pattern's variables, because many solutions agree in these.
        """
        names = self._mentioned.get(id(test))
        if names is None:
            written = {variable.name for variable in written_variables(test.pattern)}
            names = self._mentioned[id(test)] = tuple(sorted(written))
        # By identity: the query form keeps its patterns alive, and hashing a pattern at each solution would be slow.
        key = id(test), tuple(map(solution.get, names))
        exists_ = self._tested.get(key)
        if exists_ is None:
            fixed = {name: term for name in names if (term := solution.get(name)) is not None}
            inside = self._evaluation(self._graph, fixed)
            exists_ = self._tested[key] = next(inside.solutions(test.pattern), None) is not None
        return exists_

    # Operators

    def _extensions(self, left: al.Pattern, right: al.Pattern) -> Extensions:
        """The merges of a left solution with compatible right ones, for Join and LeftJoin.

        A basic graph pattern without paths is matched starting from the left solution's terms: the result is the join,
        and only the part of the graph that the solution needs is read.
        """
        if is_plain_block(right):
            return block_extensions(right, self._graph, self._fixed, shared_variables(left, right))
        return merges(self._partners(left, right))

    def _partners(self, left: al.Pattern, right: al.Pattern) -> Partners[str]:
        return Partners(self.solutions(right), shared_variables(left, right))

    def _extended(self, inner: al.Pattern, variable: al.Var, value: al.Expression) -> Iterator[Solution]:
        name = variable.name
        self._refuse(name)
        if makes_blank_nodes(value):
            yield from self._labelled(inner, name, value)
            return
        compute = self._valuation(value)
        for solution in self.solutions(inner):
            term = compute(solution)
            yield solution if term is None else {**solution, name: term}

    def _labelled(self, inner: al.Pattern, name: str, value: al.Expression) -> Iterator[Solution]:
        """Extend by an expression with BNODE; the solution carries the nodes of its labels."""
        calls = BlankNodeCalls(value, self._blank_nodes)
        compute, fixed, exists = compiled(calls.expression), self._fixed, self._exists
        for solution in self.solutions(inner):
            seen = {**fixed, **solution}
            labels_made = calls.bound(solution, seen, exists)
            term = compute({**seen, **labels_made}, exists)
            yield {**solution, **labels(labels_made), **({} if term is None else {name: term})}

    def _grouped(self, group: al.Group, inner: al.Pattern) -> Iterator[Solution]:
        """Group; a key that EXISTS substitutes is a constant and is not bound by solutions."""
        for variable, key in group.keys:
            if key != variable:
                self._refuse(variable.name)
        rows = grouped(group, self.solutions(inner), self._valuation)
        if not any(variable.name in self._fixed for variable, _ in group.keys):
            return rows
        return ({name: term for name, term in row.items() if name not in self._fixed} for row in rows)

    def _refuse(self, name: str) -> None:
        if name in self._fixed:
            raise UndefinedError(
                f"EXISTS computes ?{name}, which the pattern around it binds: SPARQL 1.1 does not define it (18.6); "
                "name the inner variable differently"
            )

    def _in_graph(self, pattern: al.Graph) -> Iterator[Solution]:
        name, inner = pattern.name, pattern.pattern
        known = self._fixed.get(name.name) if isinstance(name, al.Var) else name
        named = self._dataset.named
        if known is not None:
            return self._evaluation(named[known], self._fixed).solutions(inner) if known in named else iter(())
        assert isinstance(name, al.Var)
        return chain.from_iterable(self._with_name(name.name, graph, inner) for graph in named)

    def _with_name(self, variable: str, graph: Term, inner: al.Pattern) -> Iterator[Solution]:
        """The solutions over one named graph that agree with its name, with the variable bound to it."""
        for solution in self._evaluation(self._dataset.named[graph], self._fixed).solutions(inner):
            if solution.get(variable, graph) == graph:
                yield {**solution, variable: graph}

    def _ordered(
        self, solutions: Iterable[Solution], keys: tuple[tuple[al.Expression, bool], ...]
    ) -> Iterator[Solution]:
        """The solutions in the order of their keys: stable sorts, the last key first."""
        rows = list(solutions)
        for key, descending in reversed(keys):
            value = self._valuation(key)
            # With ``reverse`` too, Python leaves equal rows in their order.
            rows.sort(key=lambda row, value=value: _order_key(value(row)), reverse=descending)  # type: ignore[misc]
        return iter(rows)


def _order_key(term: Term | None) -> tuple[object, ...]:
    """A sort key that is equal for equal values, so that the next key of ORDER BY decides between them."""
    return (0,) if term is None else value_key(read(term))


def constructed(
    template: Sequence[al.TriplePattern], solutions: Iterable[Solution], new: Callable[[], Term]
) -> Iterator[Triple]:
    """The template's triples for each solution (16.2), with ``new`` blank nodes; ill-formed triples are left out.

    Those in a graph are facts of it (``model.fact``).
    """
    nodes = dict.fromkeys(node for triple in template for node in al.triple_variables(triple))
    blank = [node for node in nodes if node.name.startswith("_:")]
    quads = [(*al.nodes_of(triple), al.graph_of(triple)) for triple in template]
    for solution in solutions:
        bound = {**solution, **{variable.name: new() for variable in blank}} if blank else solution
        for *places, graph in quads:
            subject, predicate, item = [_instance(node, bound) for node in places]
            if subject is None or predicate is None or item is None or not is_triple_of(subject, predicate, item):
                continue
            name = None if graph is None else _instance(graph, bound)
            if graph is None:
                yield subject, predicate, item
            elif name is not None and is_iri(name):
                yield in_graph(name, (subject, predicate, item))


def _instance(node: al.Node, bound: Solution) -> Term | None:
    return bound.get(node.name) if isinstance(node, al.Var) else node
