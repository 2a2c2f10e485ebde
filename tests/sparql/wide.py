"""Drawn queries beyond ``draw``: paths, GRAPH, functions, EXISTS anywhere, GROUP_CONCAT, CONSTRUCT with blank nodes.

``widened(queries, features)`` takes a strategy of ``draw`` and changes the drawn algebra here and there: "PATH" puts
property paths in the place of predicates, "GRAPH" wraps patterns (over NAMES, the graphs' names), "FUNCTION" puts calls
in the place of variables, "EXISTS" puts EXISTS into conditions, values and OPTIONAL, and variables of the outer group
into its filters. ``constructs`` and ``concatenations`` are query forms of their own. What pyoxigraph is known to answer
otherwise than SPARQL is not drawn, or is recognised by ``pyoxigraph_differs``.
"""

from collections.abc import Iterator

from hypothesis import strategies as st

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term
from streamgauge.query.traversal import (
    children,
    every_expression,
    every_pattern,
    expressions,
    parts,
    repeats,
    with_pattern,
)
from tests.sparql import draw

NAMES: tuple[Term, ...] = ("<urn:x:w1>", "<urn:x:w2>")
FEATURES = frozenset(("PATH", "GRAPH", "FUNCTION", "EXISTS"))
ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
SEPARATOR = "|"

_link = st.sampled_from(draw.LINKS)
_step = st.one_of(_link, _link, st.just(draw.VALUE))
_modifier = st.sampled_from("*+?")


def _grow(inner: st.SearchStrategy[al.Path]) -> st.SearchStrategy[al.Path]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.builds(al.Inverse, inner),
        st.builds(al.Repeat, inner, _modifier),
        st.builds(al.Repeat, inner, _modifier),
        pair.map(al.Sequence),
        pair.map(al.Alternative),
    )


_negated = st.builds(
    lambda forward, backward: al.NegatedSet(forward, backward) if forward or backward else al.NegatedSet((draw.VALUE,)),
    st.lists(_step, max_size=2, unique=True).map(tuple),
    st.lists(_step, max_size=1).map(tuple),
)
_within = st.recursive(st.one_of(_step, _step, _negated), _grow, max_leaves=3)
_repeat = st.builds(al.Repeat, _within, _modifier)
PATHS: st.SearchStrategy[al.Path] = st.one_of(
    _repeat,
    _repeat,
    _repeat.map(al.Inverse),
    st.lists(st.one_of(_step, _repeat), min_size=2, max_size=3).map(lambda steps: al.Sequence(tuple(steps))),
)
"""Alternatives and negated sets are below repetitions only: pyoxigraph gives each of their pairs once."""


@st.composite
def widened(draws: st.DrawFn, queries: st.SearchStrategy[al.Select], features: frozenset[str] = FEATURES) -> al.Select:
    """A drawn query with some of its parts replaced."""
    form = draws(queries)
    wide = with_pattern(form, _Widening(draws, features).pattern(form.pattern))
    assert isinstance(wide, al.Select)
    return wide


class _Widening:
    def __init__(self, draws: st.DrawFn, features: frozenset[str]) -> None:
        self._draw, self._features = draws, features
        self._count = 0

    def _now(self, feature: str, among: int = 3) -> bool:
        return feature in self._features and self._draw(st.integers(1, among)) == among

    def pattern(self, pattern: al.Pattern) -> al.Pattern:
        if isinstance(pattern, al.BGP):
            return self._bgp(pattern)
        names = _readable(pattern)
        wide = parts(pattern, self.pattern, lambda tree: self.expression(tree, names))
        if isinstance(wide, al.LeftJoin) and self._now("EXISTS"):
            result = self._exists(names)
            wide = al.LeftJoin(
                wide.left, wide.right, result if wide.condition is None else al.Call("&&", (result, wide.condition))
            )
        if isinstance(wide, al.Join | al.LeftJoin | al.Union | al.Filter) and self._now("GRAPH", 4):
            return al.Graph(self._draw(st.sampled_from(NAMES)), wide)
        return wide

    def _bgp(self, bgp: al.BGP) -> al.Pattern:
        wide: al.Pattern = al.BGP(tuple(map(self._triple, bgp.patterns)))
        if not self._now("GRAPH"):
            return wide
        return al.Graph(self._draw(st.sampled_from((*NAMES, *NAMES, al.Var("g"), "<urn:x:nowhere>"))), wide)

    def _triple(self, triple: al.TriplePattern) -> al.TriplePattern:
        if triple.predicate not in draw.LINKS or not self._now("PATH"):
            return triple
        path = self._draw(PATHS)
        if isinstance(path, str):
            return triple
        ends = [triple.subject, triple.object]
        if nullable(path):
            ends = [al.Var(name) if isinstance(end, str) else end for name, end in zip("st", ends, strict=True)]
        return al.TriplePattern(ends[0], path, ends[1])

    def expression(self, tree: al.Expression, names: tuple[al.Var, ...]) -> al.Expression:
        """An expression of a pattern that reads the variables ``names``."""
        if isinstance(tree, al.Exists):
            return al.Exists(self._correlated(self.pattern(tree.pattern), names))
        if isinstance(tree, al.Call):
            wide = al.Call(tree.operator, tuple(self._argument(tree.operator, part, names) for part in tree.arguments))
            if tree.operator in ("<", ">", "=", "!=") and self._now("EXISTS", 5):
                return al.Call(self._draw(st.sampled_from(("||", "&&"))), (self._exists(names), wide))
            return wide
        return tree

    def _argument(self, operator: str, tree: al.Expression, names: tuple[al.Var, ...]) -> al.Expression:
        if isinstance(tree, al.Var) and operator != "BOUND" and self._now("FUNCTION"):
            return self._draw(st.sampled_from(FUNCTIONS))(tree)
        return self.expression(tree, names)

    def _exists(self, names: tuple[al.Var, ...]) -> al.Expression:
        self._count += 1
        inside = draw._group(frozenset({"FILTER", "OPTIONAL", "UNION", "SUBSELECT"}), f"q{self._count}", 1)
        exists = al.Exists(self._correlated(self._draw(inside), names))
        return self._draw(st.sampled_from((exists, al.Call("!", (exists,)))))

    def _correlated(self, pattern: al.Pattern, names: tuple[al.Var, ...]) -> al.Pattern:
        """The pattern of an EXISTS, now and then under a filter over a variable of the outer group."""
        if not names or not self._now("EXISTS", 2):
            return pattern
        inner = al.pattern_variables(pattern)
        outer = self._draw(st.sampled_from(names))
        sides = (outer, self._draw(st.sampled_from(inner)) if inner else draw.NUMBERS[1])
        return al.Filter(al.Call(self._draw(st.sampled_from(("=", "!=", "<"))), sides), pattern)


FUNCTIONS = (
    lambda var: al.Call("ABS", (var,)),
    lambda var: al.Call("STRLEN", (al.Call("STR", (var,)),)),
    lambda var: al.Call("IF", (al.Call("isLITERAL", (var,)), var, ONE)),
    lambda var: al.Call("COALESCE", (var, ONE)),
    lambda var: al.Call("STR", (var,)),
    lambda var: al.Call("DATATYPE", (var,)),
    lambda var: al.Call("IN", (var, ONE, '"x"', draw.RESOURCES[0])),
    lambda var: al.Call("/", (var, ONE)),
    lambda var: al.Call("SUBSTR", (al.Call("STR", (var,)), ONE, ONE)),
)


def _readable(pattern: al.Pattern) -> tuple[al.Var, ...]:
    inner = {var: None for child in children(pattern) for var in al.pattern_variables(child)}
    return tuple(var for var in inner if not var.name.startswith((".", "_:")))


@st.composite
def constructs(draws: st.DrawFn, queries: st.SearchStrategy[al.Select]) -> al.Construct:
    """CONSTRUCT over a drawn WHERE; some nodes of the template are blank."""
    where = draws(queries).pattern
    visible = tuple(var for var in al.pattern_variables(where))
    node = st.one_of(
        *[st.sampled_from((*visible, al.Var("unbound")))] * 3, st.sampled_from((al.Var("_:90"), al.Var("_:91")))
    )
    predicate = st.one_of(st.sampled_from(draw.LINKS), st.sampled_from(visible))
    triple = st.builds(al.TriplePattern, node, predicate, node)
    return al.Construct(tuple(draws(st.lists(triple, min_size=1, max_size=2))), where)


@st.composite
def concatenations(draws: st.DrawFn, operators: frozenset[str]) -> al.Select:
    """GROUP_CONCAT and COUNT of expressions that have a value; compare with ``sorted_pieces``."""
    where = draws(draw._group(operators, "x", 1))
    visible = al.pattern_variables(where)
    keys = draws(st.lists(st.sampled_from(visible), max_size=1))
    var = st.sampled_from(visible)
    value = st.one_of(var, var.map(lambda var: al.Call("STR", (var,))))
    text = st.builds(lambda value: al.Call("COALESCE", (value, '"none"')), var)
    known = st.one_of(text, var.map(lambda var: al.Call("BOUND", (var,))))
    aggregates = (
        (al.Var(".agg0"), al.Aggregate("GROUP_CONCAT", draws(value), draws(st.booleans()), SEPARATOR)),
        (al.Var(".agg1"), al.Aggregate("COUNT", draws(known), draws(st.booleans()))),
    )
    outputs = (al.Var("x_concat"), al.Var("x_count"))
    pattern: al.Pattern = al.Group(where, tuple((key, key) for key in keys), aggregates)
    for output, (name, _) in zip(outputs, aggregates, strict=True):
        pattern = al.Extend(pattern, output, name)
    projected = al.Project(pattern, (*keys, *outputs))
    return al.Select(projected, draw.columns(projected))


def sorted_pieces(cell: Term | None) -> Term | None:
    """A concatenation with its pieces in order."""
    return cell if cell is None else '"' + SEPARATOR.join(sorted(cell.strip('"').split(SEPARATOR))) + '"'


def nullable(path: al.Path) -> bool:
    """Whether the path has length zero too."""
    match path:
        case al.Repeat(path=inner, modifier=modifier):
            return modifier != "+" or nullable(inner)
        case al.Sequence(steps=steps):
            return all(map(nullable, steps))
        case al.Alternative(choices=choices):
            return any(map(nullable, choices))
        case al.Inverse(path=inner):
            return nullable(inner)
        case _:
            return False


def pyoxigraph_differs(form: al.QueryForm) -> str | None:
    """The name of what pyoxigraph is known to answer otherwise in this query, ``None`` when nothing is known."""
    patterns = list(every_pattern(form.pattern))
    for inner in (inner for pattern in patterns for inner in _inside_exists(pattern)):
        if isinstance(inner, al.Minus):
            return "MINUS inside EXISTS counts what the outer solution binds as shared by both of its sides"
        if _repeats(inner) and any(isinstance(pattern, al.Graph) for pattern in patterns):
            return "a path of length zero inside EXISTS joins no term of another graph with itself"
    return None


def _repeats(pattern: al.Pattern) -> bool:
    return isinstance(pattern, al.BGP) and any(repeats(triple.predicate) for triple in pattern.patterns)


def _inside_exists(pattern: al.Pattern) -> Iterator[al.Pattern]:
    for tree in expressions(pattern):
        for part in every_expression(tree):
            if isinstance(part, al.Exists):
                yield from every_pattern(part.pattern)


@st.composite
def sliced(draws: st.DrawFn, queries: st.SearchStrategy[al.Select]) -> al.Select:
    """LIMIT and OFFSET, mostly over an ORDER BY all columns: equal rows aside, the answer is determined then."""
    form = draws(queries)
    top = form.pattern.pattern if isinstance(form.pattern, al.Distinct) else form.pattern
    assert isinstance(top, al.Project)
    some = draws(st.permutations(top.variables))[: draws(st.integers(0, 3)) or None]
    keys = tuple((var, draws(st.booleans())) for var in some)
    ordered: al.Pattern = al.Project(al.OrderBy(top.pattern, keys), top.variables)
    if isinstance(form.pattern, al.Distinct):
        ordered = al.Distinct(ordered)
    return al.Select(al.Slice(ordered, draws(st.integers(0, 2)), draws(st.integers(0, 4))), form.variables)
