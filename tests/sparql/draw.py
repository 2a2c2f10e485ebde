"""Hypothesis strategies: small graphs, and SELECT queries over the same tiny vocabulary, as algebra.

``triples()`` draws a tuple of distinct canonical triples. ``queries(operators)`` draws a Select that uses BGPs and at
most the named operators (a subset of OPERATORS; DEFAULT when left out); ``printer.sparql`` of every drawn query is
accepted by pyoxigraph and parses back to the same value. Subjects, objects and predicates overlap, so joins match;
values are integers, decimals and a few strings; ``aggregated(query)`` names the columns to compare by value.
"""

from hypothesis import strategies as st

from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD, Term, Triple

OPERATORS = frozenset(
    ("FILTER", "OPTIONAL", "UNION", "BIND", "DISTINCT", "GROUP", "HAVING", "MINUS", "EXISTS", "VALUES", "SUBSELECT")
)
DEFAULT = frozenset(("FILTER", "OPTIONAL", "UNION", "BIND", "DISTINCT", "GROUP"))
DEPTH = 2


def _integer(value: int) -> Term:
    return f'"{value}"^^<{XSD}integer>'


def _decimal(value: str) -> Term:
    return f'"{value}"^^<{XSD}decimal>'


RESOURCES = tuple(f"<urn:x:{name}>" for name in "abc")
LINKS = ("<urn:x:knows>", "<urn:x:near>")
VALUE = "<urn:x:value>"
NUMBERS = (*map(_integer, (-1, 0, 1, 2, 3)), _decimal("0.5"), _decimal("2.5"))
STRINGS = ('"x"', '"y"')
THINGS = tuple(al.Var(name) for name in ("s", "t", "o"))
AMOUNTS = tuple(al.Var(name) for name in ("v", "w"))
VARIABLES = THINGS + AMOUNTS

_resource = st.sampled_from(RESOURCES)
_link = st.sampled_from(LINKS)
_literal = st.sampled_from(NUMBERS * 3 + STRINGS)
_variable = st.sampled_from(VARIABLES)
_triple = st.one_of(st.tuples(_resource, _link, _resource), st.tuples(_resource, st.just(VALUE), _literal))


@st.composite
def triples(draw: st.DrawFn, max_size: int = 18) -> tuple[Triple, ...]:
    """Distinct triples: resources linked to each other and to values; mostly enough of them to match something."""
    least = max_size // 2 if draw(st.integers(0, 4)) < 4 else 0
    return tuple(draw(st.lists(_triple, min_size=least, max_size=max_size, unique=True)))


@st.composite
def queries(draw: st.DrawFn, operators: frozenset[str] = DEFAULT) -> al.Select:
    """A SELECT over the vocabulary of ``triples``."""
    pattern = draw(_select(operators, "x", DEPTH))
    return al.Select(pattern, columns(pattern))


def columns(pattern: al.Pattern) -> tuple[str, ...]:
    """The names that a SELECT pattern projects."""
    return tuple(var.name for var in al.pattern_variables(pattern))


def aggregated(query: al.Select) -> frozenset[str]:
    """The columns that an expression or aggregate computed: compare these by value."""
    inner = query.pattern.pattern if isinstance(query.pattern, al.Distinct) else query.pattern
    assert isinstance(inner, al.Project)
    return frozenset(query.variables) & frozenset(_computed(inner.pattern))


def _computed(pattern: al.Pattern) -> set[str]:
    results = {pattern.variable.name} if isinstance(pattern, al.Extend) else set()
    for name in ("pattern", "left", "right"):
        results |= _computed(getattr(pattern, name)) if hasattr(pattern, name) else set()
    return results


@st.composite
def _select(draw: st.DrawFn, operators: frozenset[str], tag: str, depth: int) -> al.Pattern:
    where = draw(_group(operators, tag, depth))
    visible = al.pattern_variables(where)
    if "GROUP" in operators and draw(st.integers(0, 2)) == 0:
        grouped, names = draw(_aggregation(where, operators, tag))
        projected: al.Pattern = al.Project(grouped, names)
    else:
        chosen = draw(st.lists(st.sampled_from(visible), min_size=1, unique=True))
        projected = al.Project(where, tuple(chosen))
    return al.Distinct(projected) if "DISTINCT" in operators and draw(st.booleans()) else projected


@st.composite
def _aggregation(
    draw: st.DrawFn, where: al.Pattern, operators: frozenset[str], tag: str
) -> tuple[al.Pattern, tuple[al.Var, ...]]:
    visible = al.pattern_variables(where)
    keys = draw(st.lists(st.sampled_from(visible), max_size=2, unique=True))
    function = st.sampled_from(("COUNT", "SUM", "AVG", "MIN", "MAX"))
    one = st.builds(al.Aggregate, function, st.sampled_from(visible), st.booleans())
    rows = st.builds(al.Aggregate, st.just("COUNT"), st.none(), st.just(False))
    result = draw(st.lists(st.one_of(one, rows), min_size=1, max_size=3, unique=True))
    named = tuple((al.Var(f".agg{index}"), aggregate) for index, aggregate in enumerate(result))
    pattern: al.Pattern = al.Group(where, tuple((key, key) for key in keys), named)
    if "HAVING" in operators and draw(st.booleans()):
        pattern = al.Filter(draw(_comparison(st.sampled_from([var for var, _ in named]))), pattern)
    outputs = tuple(al.Var(f"{tag}_{var.name[1:]}") for var, _ in named)
    for output, (var, _) in zip(outputs, named, strict=True):
        pattern = al.Extend(pattern, output, var)
    return pattern, (*keys, *outputs)


@st.composite
def _group(draw: st.DrawFn, operators: frozenset[str], tag: str, depth: int) -> al.Pattern:
    pattern: al.Pattern = draw(_bgp)
    steps = sorted(operators & {"OPTIONAL", "UNION", "BIND", "MINUS", "VALUES", "SUBSELECT"})
    if steps and depth > 0:
        for index, step in enumerate(draw(st.lists(st.sampled_from(steps), max_size=2))):
            pattern = draw(_step(pattern, step, operators, f"{tag}{index}", depth - 1))
    if "FILTER" in operators and draw(st.booleans()):
        pattern = al.Filter(draw(_condition(pattern, operators, tag, depth)), pattern)
    return pattern


@st.composite
def _step(draw: st.DrawFn, left: al.Pattern, step: str, operators: frozenset[str], tag: str, depth: int) -> al.Pattern:
    inner = _group(operators, tag, depth)
    match step:
        case "OPTIONAL":
            right = draw(inner)
            if isinstance(right, al.Filter):
                return al.LeftJoin(left, right.pattern, right.condition)
            return al.LeftJoin(left, right)
        case "UNION":
            return al.Join(left, al.Union(draw(inner), draw(_group(operators, tag + "u", depth))))
        case "MINUS":
            return al.Minus(left, draw(inner))
        case "VALUES":
            return al.Join(left, draw(_inline()))
        case "SUBSELECT":
            return al.Join(left, draw(_select(operators, tag, depth)))
        case _:
            names = _names(left)
            return al.Extend(left, al.Var(f"{tag}_b"), draw(_number(names)))


_thing, _amount = st.sampled_from(THINGS), st.sampled_from(AMOUNTS)
_node = st.one_of(*[_thing] * 6, _resource)
_link_pattern = st.builds(al.TriplePattern, _node, _link, _node)
_value_pattern = st.builds(al.TriplePattern, _node, st.just(VALUE), st.one_of(*[_amount] * 6, _literal))
_any_pattern = st.builds(al.TriplePattern, _thing, st.one_of(_link, st.just(VALUE), _variable), _variable)
_first_pattern = st.one_of(
    st.builds(al.TriplePattern, _thing, st.just(VALUE), _amount),
    st.builds(lambda ends, link: al.TriplePattern(ends[0], link, ends[1]), st.permutations(THINGS), _link),
)
_more_patterns = st.lists(
    st.one_of(_link_pattern, _value_pattern, _value_pattern, _any_pattern), max_size=2, unique=True
)
_bgp = st.builds(lambda first, more: al.BGP((first, *more)), _first_pattern, _more_patterns)


@st.composite
def _inline(draw: st.DrawFn) -> al.Values:
    variables = tuple(draw(st.lists(_variable, min_size=1, max_size=2, unique=True)))
    cell = st.one_of(_resource, _literal, st.none())
    rows = draw(st.lists(st.tuples(*(cell for _ in variables)), max_size=3))
    return al.Values(variables, tuple(rows))


@st.composite
def _condition(draw: st.DrawFn, pattern: al.Pattern, operators: frozenset[str], tag: str, depth: int) -> al.Expression:
    names = _names(pattern)
    if "EXISTS" in operators and depth > 0 and draw(st.integers(0, 2)) == 0:
        exists = al.Exists(draw(_group(operators - {"GROUP"}, tag + "e", depth - 1)))
        return draw(st.sampled_from((exists, al.Call("!", (exists,)))))
    bound = names.map(lambda var: al.Call("BOUND", (var,)))
    leaf = st.one_of(_comparison(names), _comparison(names), bound)
    joined = st.builds(
        lambda operator, left, right: al.Call(operator, (left, right)), st.sampled_from(("&&", "||")), leaf, leaf
    )
    return draw(st.one_of(leaf, joined, leaf.map(lambda inner: al.Call("!", (inner,)))))


def _names(pattern: al.Pattern) -> st.SearchStrategy[al.Var]:
    """The variables of a pattern, those with values mostly, and now and then one that is not there."""
    visible = al.pattern_variables(pattern)
    amounts = tuple(var for var in visible if var not in THINGS) or visible
    return st.sampled_from(amounts * 4 + visible + AMOUNTS[:1])


def _comparison(names: st.SearchStrategy[al.Var]) -> st.SearchStrategy[al.Call]:
    operator = st.sampled_from(("<", ">", "<=", ">=", "=", "!="))
    return st.builds(lambda sign, left, right: al.Call(sign, (left, right)), operator, _number(names), _number(names))


def _number(names: st.SearchStrategy[al.Var]) -> st.SearchStrategy[al.Expression]:
    leaf = st.one_of(names, names, st.sampled_from(NUMBERS))
    operator = st.sampled_from(("+", "-", "*"))
    whole = st.builds(lambda sign, left, right: al.Call(sign, (left, right)), operator, leaf, leaf)
    return st.one_of(leaf, leaf, whole)
