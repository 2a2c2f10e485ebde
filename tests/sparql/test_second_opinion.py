"""Which contents pyoxigraph is asked about, what is answered over the others, and that both agree where it is asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Counting
from streamgauge.model.terms import XSD, Row, Term, Triple
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.semantics.arrivals import Arrival, Contents
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.refusal import RefusedError, undefined, volatile
from tests.examples import examples
from tests.semantics.literals import COMMON, LITERALS, replaced, replacements
from tests.sparql import draw, wide
from tests.sparql.pyoxigraph.opinion import SecondOpinion
from tests.sparql.suite import Result, difference

ANY = Window(1, 1)
GRAPH = "<urn:w1>"


def literal(text: str) -> Term:
    """``1`` as an integer, ``1.0`` as a decimal, ``1f`` as a float, ``1e0`` as a double, else N-Triples."""
    if text[0] in '"<_':
        return text.replace("^^xsd:", f"^^<{XSD}").rstrip(">") + ">" if "^^xsd:" in text else text
    if text.endswith("f"):
        return f'"{text[:-1]}"^^<{XSD}float>'
    kind = "double" if "e" in text else "decimal" if "." in text else "integer"
    return f'"{text}"^^<{XSD}{kind}>'


def held(values: str, predicate: str = "<urn:p>") -> tuple[Triple, ...]:
    """A subject of its own for each value."""
    return tuple((f"<urn:s{n}>", predicate, literal(text)) for n, text in enumerate(values.split()))


def snapshot(form: al.QueryForm, names: tuple[str, ...] = (), counting: Counting = Counting.SET) -> Snapshot:
    windows = (StreamWindow("urn:s", ANY), *(StreamWindow("urn:s", ANY, name[1:-1]) for name in names))
    return Snapshot(ContinuousQuery(form, windows), counting)


def contents(*graphs: tuple[Triple, ...]) -> Contents:
    return tuple((Arrival("urn:s", 0, None, triples),) for triples in graphs)


ALL = "SELECT ?v { ?s :p ?v }"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
OVER_VALUES: list[tuple[str, str, str]] = [
    # query (777 stands for the constant "001"), values of :p, values of the answer
    (ALL, "76.0f", "76.0f"),
    (ALL, "76.0f 76f", "76.0f 76f"),
    (ALL, "01 2", "01 2"),
    (ALL, '"1"^^xsd:int', '"1"^^xsd:int'),
    (ALL, '"1"^^xsd:int 1', '"1"^^xsd:int 1'),
    (ALL, '"x"^^xsd:integer', '"x"^^xsd:integer'),
    (ALL, "1.50 1e300 NaNf".replace("NaNf", '"NaN"^^xsd:float'), '1.50 1e300 "NaN"^^xsd:float'),
    ("SELECT ?v { ?s :p ?v FILTER(?v > 50.0) }", "76.0f 50.0f", "76.0f"),
    ("SELECT ?v { ?s :p ?v FILTER(?v > 50.0) }", "76.0f 050.0f 50.0f", "76.0f"),
    ("SELECT (COUNT(DISTINCT ?v) AS ?n) { ?s :p ?v }", "1 01 1.0 1.00", "4"),
    ("SELECT (COUNT(DISTINCT ?v) AS ?n) { ?s :p ?v }", "01 1.00 01", "2"),
    ("SELECT DISTINCT ?v { ?s :p ?v }", "1 01 01", "1 01"),
    ("SELECT ?v { ?s :p ?v } GROUP BY ?v", "1.0 1.00", "1.0 1.00"),
    ("SELECT ?n { ?s :p 777 BIND(1 AS ?n) }", "1", ""),
    ("SELECT ?n { ?s :p 777 BIND(1 AS ?n) }", "001", "1"),
    ("SELECT ?v { ?s :p ?v FILTER(?v = 777) }", "1 2", "1"),
    ("SELECT ?v { ?s :p ?v FILTER(sameTerm(?v, 1)) }", "1 01", "1"),
    ("SELECT ?v { ?s :p ?v FILTER(sameTerm(?v, 1)) }", "2 03", ""),
    ("SELECT (STR(?v) AS ?t) { ?s :p ?v }", "01", '"01"'),
    ("SELECT (STR(?v) AS ?t) { ?s :p ?v }", "1", '"1"'),
    ("SELECT (STRLEN(STR(?v)) AS ?n) { ?s :p ?v }", "1.50", "4"),
    ("SELECT (DATATYPE(?v) AS ?t) { ?s :p ?v }", '"1"^^xsd:int', f"<{XSD}int>"),
    ("SELECT (DATATYPE(?v) AS ?t) { ?s :p ?v }", "76.0f", f"<{XSD}float>"),
    ("SELECT (DATATYPE(?v + 1) AS ?t) { ?s :p ?v }", "76.0f", f"<{XSD}float>"),
    (
        "SELECT (DATATYPE(?v) AS ?t) { ?s :p ?v }",
        '"a"@en "b"',
        f"<{RDF}langString> <{XSD}string>",
    ),
    ("SELECT (ABS(?v) AS ?n) { ?s :p ?v }", "-01 2", "1 2"),
    ("SELECT (ABS(?v) AS ?n) { ?s :p ?v }", "-1.50 -2.5f", "1.5 2.5f"),
    ("SELECT (ABS(?v) AS ?n) { ?s :p ?v }", "-9223372036854775808", "9223372036854775808"),
    ("SELECT ?v { ?s :p ?v FILTER(ABS(?v * ?v) > 1e-9 * ABS(?v * ?v) * 3e0) }", "65536", "65536"),
    ("SELECT ?v { ?s :p ?v FILTER(ABS(?v * ?v) > 1e-9 * ABS(?v * ?v)) }", "4294967296", "4294967296"),
    (f"SELECT (?v{' * 1e18' * 18} AS ?n) {{ ?s :p ?v }}", "10", f'"INF"^^<{XSD}double>'),
    (f"SELECT (?v{' * 1e18' * 15} AS ?n) {{ ?s :p ?v }}", "0e0", f'"0"^^<{XSD}double>'),
    ("SELECT ?v { { ?s :p ?v } UNION { BIND(1 + 1 AS ?v) } }", "02", "02 2"),
    ("SELECT (SUM(?v) AS ?n) { ?s :p ?v }", "9223372036854775807 1", "9223372036854775808"),
    ("SELECT (SUM(?v) AS ?n) { ?s :p ?v }", "1 2", "3"),
    ("SELECT ?v { ?s :p ?v FILTER(?v > 5) }", "9223372036854775808 7", "9223372036854775808 7"),
    ("SELECT ?n { ?s :p ?v BIND(?v * ?v AS ?n) }", "4294967296", "18446744073709551616"),
    ("SELECT ?n { ?s :p ?v BIND(?v * ?v AS ?n) }", "65536", "4294967296"),
    ("SELECT ?n { ?s :p ?v BIND(?v * ?v AS ?w) BIND(?w * ?w AS ?n) }", "65536", "18446744073709551616"),
    ("SELECT ?n { ?s :p ?v BIND(?v * ?v AS ?n) }", "0.0000000001", "0.00000000000000000001"),
    ("SELECT (AVG(?v) AS ?n) { ?s :p ?v }", "1.0f 2.0f", "1.5f"),
    ("SELECT (AVG(?v) AS ?n) { ?s :p ?v }", "1 2", "1.5"),
    (
        "SELECT ?v { ?s :p ?v FILTER(?v != '2020-01-01T00:00:00Z'^^xsd:dateTime) }",
        '"2020-01-01T00:00:00"^^xsd:dateTime "2020-01-03T00:00:00"^^xsd:dateTime',
        '"2020-01-03T00:00:00"^^xsd:dateTime',
    ),
    (
        "SELECT ?v { ?s :p ?v FILTER(?v < '2020-01-01T00:00:00Z'^^xsd:dateTime) }",
        '"2019-12-31T23:00:00Z"^^xsd:dateTime "2020-01-01T00:30:00+01:00"^^xsd:dateTime',
        '"2019-12-31T23:00:00Z"^^xsd:dateTime "2020-01-01T00:30:00+01:00"^^xsd:dateTime',
    ),
    (
        "SELECT ?v { ?s :p ?v FILTER(?v < '2020-01-02'^^xsd:date) }",
        '"2020-01-01"^^xsd:date',
        '"2020-01-01"^^xsd:date',
    ),
    ("SELECT ?v { ?s :p ?v FILTER(?v = ?v) }", '"NaN"^^xsd:double 1', "1"),
    ("SELECT ?v { ?s :p ?v FILTER(?v <= ?v) }", "<urn:a> 1", "1"),
    ("SELECT ?v { ?s :p ?v FILTER(!(?v < ?v)) }", "<urn:a> 1", "1"),
    ("SELECT (MIN(?v) AS ?n) { ?s :p ?v }", "3.50 4.0", "3.50"),
    ("SELECT ?v { ?s :p ?v } ORDER BY ?v LIMIT 1", "2 1", "1"),
    ("SELECT (GROUP_CONCAT(?v) AS ?t) { ?s :p ?v }", '"a"@en', '"a"'),
]


@pytest.mark.parametrize(("text", "values", "answer"), OVER_VALUES)
def test_terms_and_values(text: str, values: str, answer: str):
    form = parse_sparql(f"PREFIX : <urn:> PREFIX xsd: <{XSD}> {text}")
    form = replaced(form, {literal("777"): literal("001")})
    expected = sorted((literal(part),) for part in answer.split())
    assert sorted(snapshot(form).rows(contents(held(values)))) == expected
    other = SecondOpinion(form).rows((held(values),))
    assert other is None or sorted(other) == expected


ONE, NONE = literal("1"), literal("0")
IN_GRAPHS: list[tuple[str, list[Row]]] = [
    # over  :a :p :b  in the graph :w1, in which  :b :q :w2  and  :b :q :w1  are too
    ("SELECT ?g ?s { GRAPH ?g { ?s :p ?o OPTIONAL { ?o :q ?g } } }", [(GRAPH, "<urn:a>")]),
    ("SELECT ?s { GRAPH ?g { ?s :p ?o FILTER(BOUND(?g)) } }", []),
    ("SELECT ?s { GRAPH ?g { ?s :p ?o FILTER(!BOUND(?g)) } }", [("<urn:a>",)]),
    ("SELECT ?g { GRAPH ?g { ?s :p ?o MINUS { ?g :r ?x } } }", [(GRAPH,)]),
    ("SELECT ?g ?n { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s :p ?o } } }", [(GRAPH, ONE), ("<urn:w2>", NONE)]),
    ("SELECT ?g { GRAPH ?g { VALUES ?g { :w2 :w3 } } }", [("<urn:w2>",)]),
    ("SELECT ?g ?h { GRAPH ?g { GRAPH ?h { ?s :p ?o } } }", [(GRAPH, GRAPH), ("<urn:w2>", GRAPH)]),
    ("SELECT ?g ?o { GRAPH ?g { ?o :q ?g } }", [(GRAPH, "<urn:b>")]),
    ("SELECT ?n { GRAPH :w3 { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } }", []),
    ("SELECT ?g ?x { GRAPH ?g { :nowhere :p* ?x } }", [(GRAPH, "<urn:nowhere>"), ("<urn:w2>", "<urn:nowhere>")]),
    ("SELECT ?s { GRAPH ?g { ?s :p ?o FILTER EXISTS { ?o :q ?g } } }", [("<urn:a>",)]),
    ("SELECT ?s { GRAPH ?g { ?s :p ?o } FILTER EXISTS { GRAPH ?g { ?x :q ?g } } }", [("<urn:a>",)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rows"), IN_GRAPHS)
def test_named_graphs(text: str, rows: list[Row]):
    triples = (
        ("<urn:a>", "<urn:p>", "<urn:b>"),
        ("<urn:b>", "<urn:q>", "<urn:w2>"),
        ("<urn:b>", "<urn:q>", GRAPH),
    )
    evaluator = snapshot(parse_sparql(f"PREFIX : <urn:> {text}"), (GRAPH, "<urn:w2>"))
    assert sorted(evaluator.rows(contents((), triples, ()))) == sorted(rows)


def test_exists_over_a_bag_matches_the_content():
    form = parse_sparql("SELECT ?s { ?s <urn:p> ?o FILTER EXISTS { ?o <urn:q> ?x } }")
    triples = (("<urn:a>", "<urn:p>", "<urn:b>"), ("<urn:a>", "<urn:p>", "<urn:b>"), ("<urn:b>", "<urn:q>", "<urn:c>"))
    assert snapshot(form, counting=Counting.BAG).rows(contents(triples)) == (("<urn:a>",), ("<urn:a>",))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT * { ?s ?p ?o FILTER EXISTS { ?s ?q ?x BIND(1 AS ?o) } }", "computes ?o"),
        ("SELECT * { ?s ?p ?o FILTER(RAND() < 2) }", "RAND()"),
        ("SELECT * { ?s ?p ?o FILTER NOT EXISTS { ?s ?q ?x FILTER(?x < RAND()) } }", "RAND()"),
    ],
)
def test_what_sparql_leaves_undefined_is_named(text: str, named: str):
    form = parse_sparql(text)
    assert named in str(undefined(form) or volatile(form))


def test_exists_that_computes_a_bound_variable_is_refused():
    form = parse_sparql("SELECT * { ?s ?p ?o FILTER EXISTS { ?s ?q ?x BIND(1 AS ?o) } }")
    with pytest.raises(RefusedError, match=r"computes \?o"):
        snapshot(form).rows(contents(held("1")))


def test_a_function_that_nobody_has_is_refused():
    form = replaced(parse_sparql("SELECT (UCASE(?o) AS ?x) { ?s ?p ?o }"), {"UCASE": "<urn:unheard>"})
    with pytest.raises(RefusedError, match="unheard"):
        snapshot(form).rows(contents(held("1")))


def test_a_form_that_two_contents_write_differently_is_put_back_in_each():
    evaluator = snapshot(parse_sparql("SELECT ?v { ?s <urn:p> ?v }"))
    answers = [evaluator.rows(contents(held(values))) for values in ("1.0", "1.00", "1.0 1.00", "1.0")]
    assert [sorted(rows) for rows in answers] == [
        [(literal("1.0"),)],
        [(literal("1.00"),)],
        [(literal("1.0"),), (literal("1.00"),)],
        [(literal("1.0"),)],
    ]


def agree(form: al.QueryForm, graphs: tuple[tuple[Triple, ...], ...]) -> None:
    """Where pyoxigraph is asked its answer is the algebra's."""
    other = SecondOpinion(form, wide.NAMES).rows(graphs)
    if other is None:
        return
    evaluator = snapshot(form, wide.NAMES)
    kind = "solutions" if isinstance(form, al.Select) else "triples"
    result = Result(kind, evaluator.variables, other)
    exact = Result(kind, evaluator.variables, evaluator.rows(contents(*graphs)))
    assert not difference(exact, result), f"{sparql(form)}\n{graphs}"


TRUSTED = draw.OPERATORS - {"EXISTS"}
GRAPHS = st.tuples(draw.triples(), draw.triples(6), draw.triples(6))


@pytest.mark.slow
@examples(suite=10, prove=5000)
@given(draw.queries(TRUSTED), GRAPHS, replacements(COMMON))
def test_pyoxigraph_and_the_algebra_agree_over_common_literals(form, graphs, terms):
    agree(*replaced((form, graphs), terms))


@pytest.mark.slow
@examples(suite=10, prove=5000)
@given(draw.queries(TRUSTED), GRAPHS, replacements(LITERALS))
def test_pyoxigraph_and_the_algebra_agree_over_all_kinds_of_literals(form, graphs, terms):
    agree(*replaced((form, graphs), terms))


@pytest.mark.slow
@examples(suite=10, prove=5000)
@given(wide.widened(draw.queries(draw.OPERATORS)), GRAPHS, replacements(COMMON))
def test_pyoxigraph_and_the_algebra_agree_with_paths_graphs_functions_and_exists(form, graphs, terms):
    agree(*replaced((form, graphs), terms))


@pytest.mark.slow
@examples(suite=10, prove=5000)
@given(wide.constructs(draw.queries(draw.DEFAULT)), GRAPHS, replacements(COMMON))
def test_pyoxigraph_and_the_algebra_agree_on_constructed_triples(form, graphs, terms):
    agree(*replaced((form, graphs), terms))
