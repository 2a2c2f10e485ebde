"""Where pyoxigraph answers otherwise than the W3C's SPARQL 1.1 evaluation tests: what the definition refuses.

By the shape of the algebra (``refuse_form``), and where it depends on the content by content (``Doubts``).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyoxigraph as ox

from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD, Term
from streamgauge.query.printer import sparql
from streamgauge.query.rebuild import children, every_expression, every_pattern, expressions
from streamgauge.semantics.refusal import RefusedError
from streamgauge.wire.canonical import parse_term

_ELSE = "pyoxigraph, which the definition asks, answers otherwise than the W3C's tests: ask another evaluator (spark)"
_ONE = f'"1"^^<{XSD}integer>'


def refuse_form(form: al.QueryForm) -> str | None:
    """The sentence that names a part of the query that pyoxigraph answers otherwise, ``None`` when there is none."""
    for pattern in every_pattern(form.pattern):
        for what, differs in _SHAPES.items():
            if differs(pattern):
                return f"{what}: {_ELSE}"
    for graph in _any_graphs(form.pattern):
        if _hides_graph(graph) and not (_only_a_subquery(graph) and _mentions(form, graph) == 1):
            return f"a subquery inside GRAPH ?variable (over all graphs at once): {_ELSE}"
    return None


def _any_graphs(pattern: al.Pattern) -> Iterator[al.Graph]:
    """Every ``GRAPH ?variable``."""
    found = (each for each in every_pattern(pattern) if isinstance(each, al.Graph))
    return (each for each in found if isinstance(each.name, al.Var))


def _below(pattern: al.Pattern) -> Iterator[al.Pattern]:
    return (inner for child in children(pattern) for inner in every_pattern(child))


def _inside_any(*kinds: type[al.Pattern]) -> Callable[[al.Pattern], bool]:
    """Whether the pattern is ``GRAPH ?variable`` over one of these kinds."""
    return lambda pattern: any(
        isinstance(inner, kinds) for graph in _any_graphs(pattern) if graph is pattern for inner in _below(graph)
    )


def _labelled_blank(pattern: al.Pattern) -> bool:
    calls = (part for tree in expressions(pattern) for part in every_expression(tree))
    return any(isinstance(call, al.Call) and call.operator == "BNODE" and call.arguments for call in calls)


def _elsewhere_bound_path(pattern: al.Pattern) -> bool:
    """EXISTS over a path that may be empty, from a variable that is bound by other means than a triple's node."""
    if not isinstance(pattern, al.Filter):
        return False
    exists = [part for part in every_expression(pattern.condition) if isinstance(part, al.Exists)]
    ends = {end for each in exists for inner in every_pattern(each.pattern) for end in _zero_ends(inner)}
    blocks = (inner for inner in every_pattern(pattern.pattern) if isinstance(inner, al.BGP))
    nodes = {node for block in blocks for triple in block.patterns for node in (triple.subject, triple.object)}
    return bool((ends & set(al.pattern_variables(pattern.pattern))) - nodes)


def _minus_in_exists(pattern: al.Pattern) -> bool:
    exists = (part for tree in expressions(pattern) for part in every_expression(tree) if isinstance(part, al.Exists))
    return any(isinstance(inner, al.Minus) for each in exists for inner in every_pattern(each.pattern))


def _hides_graph(graph: al.Graph) -> bool:
    return any(isinstance(inner, al.Project) for inner in _below(graph))


def _only_a_subquery(graph: al.Graph) -> bool:
    return isinstance(graph.pattern, al.Project) and not any(
        isinstance(inner, al.Project) for inner in _below(graph.pattern)
    )


def _mentions(form: al.QueryForm, graph: al.Graph) -> int:
    """How often the graph's variable is written outside of what the graph holds."""
    patterns = list(_outside(form.pattern, graph))
    used = [node for pattern in patterns for node in _variables(pattern)]
    template = form.template if isinstance(form, al.Construct) else ()
    return [*used, *(var for triple in template for var in al.triple_variables(triple))].count(graph.name)


def _outside(pattern: al.Pattern, graph: al.Graph) -> Iterator[al.Pattern]:
    yield pattern
    exists = (part for tree in expressions(pattern) for part in every_expression(tree) if isinstance(part, al.Exists))
    if pattern is not graph:
        for below in (*children(pattern), *(each.pattern for each in exists)):
            yield from _outside(below, graph)


def _variables(pattern: al.Pattern) -> list[al.Node]:
    """The variables that a pattern itself writes."""
    written: list[al.Node] = [var for tree in expressions(pattern) for var in al.expression_variables(tree)]
    match pattern:
        case al.BGP(patterns=patterns):
            return [node for triple in patterns for node in al.triple_variables(triple)]
        case al.Graph(name=name):
            return [name]
        case al.Project(variables=variables) | al.Values(variables=variables):
            return list(variables)
        case al.Extend(variable=variable):
            return [*written, variable]
        case _:
            return written


_SHAPES: dict[str, Callable[[al.Pattern], bool]] = {
    "BNODE with a label (one node for the whole answer, not one a solution)": _labelled_blank,
    "MINUS inside GRAPH ?variable (the variable counts as shared)": _inside_any(al.Minus),
    "an aggregate inside GRAPH ?variable (over all graphs at once)": _inside_any(al.Group),
    "DISTINCT, LIMIT or OFFSET inside GRAPH ?variable (over all graphs at once)": _inside_any(
        al.Distinct, al.Reduced, al.Slice
    ),
    "VALUES inside GRAPH ?variable (not joined with the graph's name)": _inside_any(al.Values),
    "GRAPH inside GRAPH ?variable (the outer variable stays unbound)": _inside_any(al.Graph),
    "a path of length zero in EXISTS, from what is in no triple": _elsewhere_bound_path,
    "MINUS inside EXISTS (variables of the solution outside count as shared)": _minus_in_exists,
}


class Doubts:
    """What of a query pyoxigraph answers otherwise over some contents only."""

    def __init__(self, form: al.QueryForm) -> None:
        places = list(_places(form.pattern, None))
        self._ends = [(end, graph) for pattern, graph in places for end in _zero_ends(pattern) if isinstance(end, str)]
        self._joined = [sparql(_one_language(each, graph)) for pattern, graph in places for each in _joins(pattern)]

    def refuse(self, store: ox.Store) -> None:
        """Raise RefusedError when the query over this content is one that pyoxigraph answers otherwise."""
        for end, graph in self._ends:
            if not all(_occurs(end, where, store) for where in _graphs(graph, store)):
                raise RefusedError(f"a path of length zero at {end}, which is in no triple of the content: {_ELSE}")
        if any(store.query(text) for text in self._joined):
            raise RefusedError(f"GROUP_CONCAT of strings in one language (it keeps the language): {_ELSE}; use STR()")


def _places(pattern: al.Pattern, graph: al.Node | None) -> Iterator[tuple[al.Pattern, al.Node | None]]:
    """The pattern and all below it, each with its active graph."""
    yield pattern, graph
    inner = pattern.name if isinstance(pattern, al.Graph) else graph
    exists = (part for tree in expressions(pattern) for part in every_expression(tree) if isinstance(part, al.Exists))
    for below in (*children(pattern), *(each.pattern for each in exists)):
        yield from _places(below, inner)


def _zero_ends(pattern: al.Pattern) -> list[al.Node]:
    """The ends of paths that may be of length zero."""
    paths = pattern.patterns if isinstance(pattern, al.BGP) else ()
    return [
        end
        for triple in paths
        if not isinstance(triple.predicate, al.Var) and _may_be_empty(triple.predicate)
        for end in (triple.subject, triple.object)
    ]


def _may_be_empty(path: al.Path) -> bool:
    match path:
        case al.Inverse(path=inner):
            return _may_be_empty(inner)
        case al.Sequence(steps=steps):
            return all(map(_may_be_empty, steps))
        case al.Alternative(choices=choices):
            return any(map(_may_be_empty, choices))
        case al.Repeat(path=inner, modifier=modifier):
            return modifier in "*?" or _may_be_empty(inner)
        case _:
            return False


_AnyGraph = ox.NamedNode | ox.BlankNode | ox.DefaultGraph


def _graphs(graph: al.Node | None, store: ox.Store) -> Iterable[_AnyGraph]:
    if graph is None:
        return (ox.DefaultGraph(),)
    return store.named_graphs() if isinstance(graph, al.Var) else (ox.NamedNode(graph[1:-1]),)


def _occurs(end: Term, graph: _AnyGraph, store: ox.Store) -> bool:
    node = parse_term(end)
    subject = None if isinstance(node, ox.Literal) else node
    found = store.quads_for_pattern(subject, None, None, graph) if subject is not None else iter(())
    return any(True for _ in found) or any(True for _ in store.quads_for_pattern(None, None, node, graph))


@dataclass(frozen=True, slots=True)
class _Joined:
    """One GROUP_CONCAT of a grouping."""

    group: al.Group
    argument: al.Expression


def _joins(pattern: al.Pattern) -> list[_Joined]:
    if not isinstance(pattern, al.Group):
        return []
    used = [each for _, each in pattern.aggregates if each.function == "GROUP_CONCAT"]
    return [_Joined(pattern, each.argument) for each in used if each.argument is not None]


def _one_language(joined: _Joined, graph: al.Node | None) -> al.Ask:
    """Whether in some group all strings are in one language."""
    language = al.Call("LANG", (joined.argument,))
    count, least = al.Var("languages"), al.Var("language")
    asked = ((count, al.Aggregate("COUNT", language, distinct=True)), (least, al.Aggregate("MIN", language)))
    group = al.Group(joined.group.pattern, joined.group.keys, asked)
    single = al.Call("&&", (al.Call("=", (count, _ONE)), al.Call("!=", (least, '""'))))
    keys = tuple(var for var, _ in joined.group.keys)
    found: al.Pattern = al.Project(al.Filter(single, group), (*keys, count))
    return al.Ask(found if graph is None else al.Graph(graph, found))
