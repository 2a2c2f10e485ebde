"""The printer: whatever the algebra, the text is SPARQL and says the same."""

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model import algebra as al
from streamgauge.query import parse_sparql
from streamgauge.query.printer import expression, group, sparql
from tests.sparql.suite import from_pyoxigraph

X, Y, C = al.Var("x"), al.Var("y"), al.Var("c")
KNOWS = al.BGP((al.TriplePattern(X, "<urn:p>", Y),))
COUNTED = al.Group(KNOWS, ((X, X),), ((C, al.Aggregate("COUNT", None)),))
TRUE, FALSE = (f'"{value}"^^<http://www.w3.org/2001/XMLSchema#boolean>' for value in ("true", "false"))
DATA = "<urn:a> <urn:p> <urn:b> , <urn:c> . <urn:b> <urn:p> <urn:c> ."

_text = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
_escapes = st.text(st.sampled_from(tuple("\\uUnt'\"0041x\n\r\t")), max_size=14)


def select(pattern: al.Pattern) -> al.Select:
    variables = al.pattern_variables(pattern)
    return al.Select(al.Project(pattern, variables), tuple(var.name for var in variables))


@given(st.one_of(_text, _escapes))
def test_any_string_comes_back(value: str) -> None:
    query = select(al.Extend(KNOWS, C, str(ox.Literal(value))))
    assert parse_sparql(sparql(query)) == query


@given(st.one_of(_text, _escapes))
def test_any_separator_comes_back(separator: str) -> None:
    total = al.Var(".agg0")
    grouped = al.Group(KNOWS, (), ((total, al.Aggregate("GROUP_CONCAT", X, separator=separator)),))
    query = al.Select(al.Project(al.Extend(grouped, C, total), (C,)), ("c",))
    assert parse_sparql(sparql(query)) == query


@given(
    st.recursive(
        st.sampled_from(("<urn:p>", "<urn:q>")),
        lambda inner: st.one_of(
            inner.map(al.Inverse),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: al.Sequence(tuple(parts))),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: al.Alternative(tuple(parts))),
            st.builds(al.Repeat, inner, st.sampled_from(("*", "+", "?"))),
            st.just(al.NegatedSet(("<urn:p>",), ("<urn:q>",))),
            st.just(al.NegatedSet((), ("<urn:q>", "<urn:p>"))),
        ),
        max_leaves=5,
    ).map(lambda path: al.Repeat(path, "+"))
)
def test_any_path_comes_back(path: al.Repeat) -> None:
    query = select(al.BGP((al.TriplePattern(X, path, Y),)))
    assert parse_sparql(sparql(query)) == query


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        (al.Join(KNOWS, al.Project(KNOWS, (X,))), 5),
        (al.Join(al.Slice(KNOWS, 1, 1), KNOWS), 1),
        (al.Distinct(al.Project(KNOWS, (X,))), 2),
        (al.Distinct(KNOWS), 3),
        (al.Filter(TRUE, al.Distinct(al.Project(KNOWS, (X,)))), 2),
        (al.Union(COUNTED, KNOWS), 5),
        (al.Filter(al.Call(">", (C, '"1"^^<http://www.w3.org/2001/XMLSchema#integer>')), COUNTED), 1),
        (al.Extend(al.Extend(COUNTED, al.Var("d"), C), al.Var("e"), al.Var("d")), 2),
        (al.Join(COUNTED, KNOWS), 3),
        (al.OrderBy(KNOWS, ((Y, True),)), 3),
        (al.Filter(TRUE, al.Filter(TRUE, KNOWS)), 3),
        (al.LeftJoin(KNOWS, al.Filter(FALSE, KNOWS)), 3),
        (al.Minus(KNOWS, al.Filter(TRUE, KNOWS)), 0),
        (al.Join(KNOWS, al.BGP((al.TriplePattern(Y, "<urn:p>", al.Var("_:0")),))), 1),
    ],
)  # fmt: skip
def test_algebra_that_no_text_gives_is_still_printed(pattern: al.Pattern, count: int) -> None:
    store = ox.Store()
    store.extend(ox.parse(DATA, format=ox.RdfFormat.TURTLE))
    assert len(from_pyoxigraph(store.query(sparql(select(pattern)))).rows) == count
    assert len(from_pyoxigraph(store.query(f"SELECT * {group(pattern)}")).rows) == count


def test_an_expression_reads_as_one() -> None:
    tree = al.Call("&&", (al.Call("!", (al.Call("BOUND", (X,)),)), al.Call("IN", (Y, TRUE))))
    assert expression(tree) == "((! BOUND(?x)) && (?y IN (true)))"
    assert expression(al.Call("<urn:f>", (X, Y))) == "<urn:f>(?x, ?y)"


def test_the_dataset_and_the_group_can_be_dressed() -> None:
    text = sparql(select(KNOWS), "FROM STREAM <urn:s>", lambda inner: f"{{ WINDOW <urn:w> {inner} }}")
    assert text == "SELECT ?x ?y\nFROM STREAM <urn:s>\nWHERE { WINDOW <urn:w> {\n  ?x <urn:p> ?y .\n} }"


def test_the_outermost_group_has_a_line_for_each_piece() -> None:
    text = "SELECT ?x { ?x <a:p> ?y,-2.5,50.0,true OPTIONAL { ?y <a:q> ?z FILTER(?z > 1) } FILTER(?y - -1 < 3) }"
    assert sparql(parse_sparql(text)).splitlines() == [
        "SELECT ?x",
        "WHERE {",
        "  ?x <a:p> ?y .",
        "  ?x <a:p> -2.5 .",
        "  ?x <a:p> 50.0 .",
        "  ?x <a:p> true .",
        "  OPTIONAL { ?y <a:q> ?z . FILTER(?z > 1) }",
        "  FILTER((?y - -1) < 3)",
        "}",
    ]
