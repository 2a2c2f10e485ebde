"""Keys of GROUP BY that are variables with an alias."""

import pytest

from streamgauge.model import algebra as al
from streamgauge.query import QueryError, parse_sparql
from streamgauge.query.printer import sparql

HEAD = "SELECT (COUNT(*) AS ?c) { ?s ?p ?x } "
X, N = al.Var("x"), al.Var("n")


def keys(text: str) -> tuple[tuple[al.Var, al.Expression], ...]:
    form = parse_sparql(text)
    pattern = form.pattern
    while not isinstance(pattern, al.Group):
        pattern = pattern.pattern  # type: ignore[union-attr]
    return pattern.keys


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("GROUP BY (?x AS ?n)", ((N, X),)),
        ("group by ( ?x as ?n )", ((N, X),)),
        ("GROUP BY ((?x) AS ?n)", ((N, X),)),
        ("GROUP BY ?x (?x AS ?n)", ((X, X), (N, X))),
        ("GROUP BY (?x AS ?n) HAVING (COUNT(*) > 1) ORDER BY ?n LIMIT 1", ((N, X),)),
        ("GROUP BY (?x + 1 AS ?n)", ((N, al.Call("+", (X, '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'))),)),
        ("GROUP BY (STR(?x) AS ?n)", ((N, al.Call("STR", (X,))),)),
    ],
)
def test_keys(text: str, result: tuple[tuple[al.Var, al.Expression], ...]) -> None:
    assert keys(HEAD + text) == result
    form = parse_sparql(HEAD + text)
    assert parse_sparql(sparql(form)) == form


def test_in_a_subquery_and_beside_other_parentheses() -> None:
    text = "SELECT ?n { { SELECT ?n { ?s ?p ?x } GROUP BY (?x AS ?n) } FILTER(?n > 1) BIND(?n AS ?m) }"
    assert keys("SELECT ?n { ?s ?p ?x } GROUP BY (?x AS ?n)") == ((N, X),)
    assert parse_sparql(text)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (HEAD + "GROUP BY (?x AS ?n) HAVING (", 1, len(HEAD) + 29),
        (HEAD + "\nGROUP BY\n  (?x AS ?n) (?s AS ?m) HAVUNG (?n > 1)", 3, 25),
        ("SELECT ?s {\n ?s ?p }\nGROUP BY (?x AS ?n)", 2, 8),
        ("SELECT ?n ?y { ?s ?p ?x } GROUP BY (?x AS ?n)", 1, 11),
    ],
)
def test_an_error_elsewhere_is_shown_where_it_is(text: str, line: int, column: int) -> None:
    with pytest.raises(QueryError) as error:
        parse_sparql(text)
    assert (error.value.line, error.value.column) == (line, column)
