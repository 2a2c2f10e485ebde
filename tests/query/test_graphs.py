"""GRAPH pushed down means what GRAPH means: pyoxigraph and the algebra, which know GRAPH itself, are the witnesses.

pyoxigraph binds the variable of ``GRAPH ?g`` inside already, the algebra where SPARQL 1.1 (18.6) has it.
"""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term, Triple
from streamgauge.query import parse_sparql
from streamgauge.query.graphs import spread
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import children, every_pattern, parts
from streamgauge.sparql.algebra import answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from tests.examples import examples
from tests.sparql.draw import OPERATORS, queries, triples
from tests.sparql.pyoxigraph.restated import restated
from tests.sparql.suite import Case, Result, difference, evaluate

V, W, UNKNOWN = "<urn:w:v>", "<urn:w:w>", "<urn:w:unknown>"
G = al.Var("g")
NOTHING = Result("solutions", (), ())


def wrapped(form: al.Select, choose: Callable[[], Term | al.Var | None]) -> al.Select:
    """The form with some of its BGPs, filters and joins under GRAPH."""

    def wrap(pattern: al.Pattern) -> al.Pattern:
        below = parts(pattern, wrap, expression)
        name = choose() if isinstance(pattern, al.BGP | al.Join | al.Filter | al.LeftJoin | al.Minus) else None
        simple = not any(isinstance(part, al.Project | al.Group | al.Graph) for part in every_pattern(below))
        return al.Graph(name, below) if name is not None and simple else below

    def expression(tree: al.Expression) -> al.Expression:
        match tree:
            case al.Exists(pattern=pattern):
                return al.Exists(wrap(pattern))
            case al.Call(operator=operator, arguments=arguments):
                return al.Call(operator, tuple(map(expression, arguments)))
            case _:
                return tree

    return al.Select(wrap(form.pattern), form.variables)


def case(data: tuple[Triple, ...], v: tuple[Triple, ...], w: tuple[Triple, ...]) -> Case:
    return Case("drawn", "", "", data, {V: v, W: w}, NOTHING)


def dataset(data: tuple[Triple, ...], graphs: dict[Term, tuple[Triple, ...]]) -> Dataset:
    return Dataset(IndexedGraph(data), {name: IndexedGraph(graph) for name, graph in graphs.items()})


def is_spread(form: al.QueryForm) -> bool:
    return all(
        isinstance(pattern.name, str) and isinstance(pattern.pattern, al.BGP)
        for pattern in every_pattern(form.pattern)
        if isinstance(pattern, al.Graph)
    )


@pytest.mark.slow
@examples(12, prove=2000)
@given(queries(OPERATORS), triples(), triples(), triples(), st.data())
def test_spread_means_the_same(
    form: al.Select, data: tuple[Triple, ...], v: tuple[Triple, ...], w: tuple[Triple, ...], draw: st.DataObject
) -> None:
    names = st.sampled_from((None, None, None, V, W, UNKNOWN))
    original = wrapped(form, lambda: draw.draw(names))
    result = spread(original, (V, W))
    assert is_spread(result)
    there = case(data, v, w)
    assert difference(evaluate(there, sparql(original)), evaluate(there, sparql(result))) == ""


DATA = (("<urn:a>", "<urn:p>", "<urn:b>"), ("<urn:b>", "<urn:q>", '"1"'))
IN_V = (("<urn:b>", "<urn:p>", "<urn:c>"), ("<urn:w:v>", "<urn:q>", "<urn:b>"))
IN_W = (
    ("<urn:a>", W, W),
    ("<urn:b>", "<urn:p>", "<urn:d>"),
    ("<urn:a>", "<urn:p>", "<urn:b>"),
    ("<urn:w:v>", "<urn:q>", "<urn:w:w>"),
)
GROUPS = """GRAPH ?g { ?s ?p ?o }
GRAPH ?g { ?s ?p ?o FILTER(?g = <urn:w:v>) }
GRAPH ?g { ?s ?p ?o FILTER(BOUND(?g) && EXISTS { ?g <urn:q> ?o }) }
GRAPH ?g { ?g ?p ?o }
GRAPH ?g { ?s ?g ?g }
GRAPH ?g { ?s ?p ?o } GRAPH ?h { ?g ?q ?h }
GRAPH ?g { ?s ?p ?o } ?s <urn:p> ?x
GRAPH ?g { ?s ?p ?o MINUS { ?s ?p <urn:c> } }
?s ?p ?o MINUS { GRAPH ?g { ?s ?p ?o } }
?s ?p ?o FILTER NOT EXISTS { GRAPH ?g { ?s ?p ?o } }
?s ?p ?o OPTIONAL { GRAPH ?g { ?s ?p ?x } FILTER(?g != <urn:w:v>) }
GRAPH <urn:w:v> { ?s ?p ?o GRAPH <urn:w:w> { ?s ?q ?x } }
GRAPH ?g { ?s ?p ?o GRAPH <urn:w:w> { ?x ?q ?o } }
GRAPH ?g { ?s <urn:p>+ ?o }
GRAPH ?g { ?s ?p ?o { ?s ?q ?x } UNION { ?x ?q ?s } }
GRAPH ?g { ?s ?p ?o BIND(STR(?g) AS ?x) }
GRAPH ?g { ?s ?p ?o VALUES ?g { <urn:w:v> <urn:w:none> } }
GRAPH ?g { ?s ?p ?o { SELECT ?s (COUNT(*) AS ?n) ?g { ?s ?q ?x } GROUP BY ?s ?g } }
GRAPH <urn:w:unknown> { ?s ?p ?o }
?s ?p ?o OPTIONAL { GRAPH <urn:w:unknown> { ?s ?q ?x } }"""

EMPTY = (
    "GRAPH ?g { ?s ?p ?o FILTER(?g = <urn:w:v>) }",
    "GRAPH ?g { ?s ?p ?o FILTER(BOUND(?g) && EXISTS { ?g <urn:q> ?o }) }",
    "GRAPH <urn:w:unknown> { ?s ?p ?o }",
)
"""Inside GRAPH ?g the variable is not bound yet, and no window has the unknown name."""


@pytest.mark.parametrize("group", GROUPS.splitlines())
def test_a_graph_by_text(group: str) -> None:
    form = parse_sparql(f"SELECT * {{ {group} }}")
    there = case(DATA, IN_V, IN_W)
    result = spread(form, (V, W))
    assert is_spread(result)
    wanted = answer(form, dataset(DATA, {V: IN_V, W: IN_W}))
    rows = evaluate(there, sparql(restated(result)))
    assert difference(Result("solutions", form.variables, wanted), rows) == ""
    assert (group in EMPTY) is not bool(rows.rows)


def test_a_subquery_counts_in_each_window() -> None:
    """By the specification; pyoxigraph counts over all graphs at once."""
    form = parse_sparql("SELECT * { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o } } }")
    rows = evaluate(case(DATA, IN_V, IN_W), sparql(spread(form, (V, W)))).rows
    assert sorted((str(row[0]), str(row[1])[1]) for row in rows) == [(V, "1"), (W, "2")]


def test_a_subquery_keeps_its_own_variable() -> None:
    form = parse_sparql("SELECT * { GRAPH ?g { ?s <urn:p> ?o { SELECT ?s { ?s <urn:p> ?g } } } }")
    assert len(evaluate(case(DATA, IN_V, IN_W), sparql(spread(form, (V, W)))).rows) == 3


def test_no_windows_no_solutions() -> None:
    form = parse_sparql("SELECT * { GRAPH ?g { ?s ?p ?o } }")
    result = spread(form, ())
    assert isinstance(result, al.Select)
    assert children(result.pattern) == (al.Values((G, al.Var("s"), al.Var("p"), al.Var("o")), ()),)


def test_without_graph_it_is_the_same_object() -> None:
    form = parse_sparql("SELECT * { ?s ?p ?o FILTER NOT EXISTS { ?o ?p ?s } }")
    assert spread(form, (V,)) is form


def test_spread_twice_is_spread_once() -> None:
    form = spread(parse_sparql("ASK { GRAPH ?g { ?s ?p ?o } ?s ?p ?o }"), (V, W))
    assert spread(form, (V, W)) == form
