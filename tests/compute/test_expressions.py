"""Expressions in batches against one pyoxigraph query for each row, and the traps of SPARQL's operators."""

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.compute.expressions import evaluate, holds
from streamgauge.model.algebra import Call, Expression, Var
from streamgauge.model.terms import XSD, Row, Term
from streamgauge.query.printer import expression as printed
from streamgauge.wire.canonical import Canonical, parse_term


def literal(value: object, kind: str) -> Term:
    return f'"{value}"^^<{XSD}{kind}>'


TRUE, FALSE = literal("true", "boolean"), literal("false", "boolean")
ONE = literal(1, "integer")
NUMBERS = (ONE, literal(0, "integer"), literal("0.5", "decimal"), literal("0.1", "float"), literal("NaN", "double"))
TERMS = (*NUMBERS, TRUE, '"x"', '"x"@en', "<urn:a>", "_:b", literal("2020-01-01", "date"))
VARIABLES = ("a", "b")
X = Var("a")


def expressions() -> st.SearchStrategy[Expression]:
    leaf = st.one_of(st.sampled_from((X, Var("b"), Var("c"))), st.sampled_from(NUMBERS))
    binary = st.sampled_from(("+", "-", "*", "/", "=", "!=", "<", ">=", "&&", "||", "sameTerm"))
    unary = st.sampled_from(("!", "STR", "DATATYPE", "isBLANK", "ABS", f"<{XSD}float>"))

    def grow(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        calls = st.builds(lambda sign, left, right: Call(sign, (left, right)), binary, inner, inner)
        return st.one_of(calls, st.builds(lambda name, argument: Call(name, (argument,)), unary, inner))

    return st.recursive(leaf, grow, max_leaves=4)


ROWS = st.lists(st.tuples(*[st.one_of(st.none(), st.sampled_from(TERMS))] * 2), max_size=6)


def one(expression: Expression, row: Row, query: str) -> object:
    """The same question about one row, the row as a graph of two triples."""
    store = ox.Store()
    for name, term in zip(VARIABLES, row, strict=True):
        if term is not None:
            store.add(ox.Quad(ox.NamedNode("urn:row"), ox.NamedNode(f"urn:{name}"), parse_term(term)))
    where = " ".join(f"OPTIONAL {{ <urn:row> <urn:{name}> ?{name} }}" for name in VARIABLES)
    return store.query(query.format(expression=printed(expression), where=where))


@given(expressions(), ROWS)
def test_a_batch_is_its_rows(expression: Expression, rows: list[Row]) -> None:
    canonical = Canonical()
    found = evaluate(expression, VARIABLES, rows)
    for row, value in zip(rows, found, strict=True):
        expected = next(one(expression, row, "SELECT ({expression} AS ?r) WHERE {{ {where} }}"))[0]  # type: ignore[call-overload]
        assert value == (None if expected is None else canonical.term(expected))


@given(expressions(), ROWS)
def test_a_condition_is_a_filter(expression: Expression, rows: list[Row]) -> None:
    found = holds(expression, VARIABLES, rows)
    assert found == [bool(one(expression, row, "ASK {{ {where} FILTER({expression}) }}")) for row in rows]


@pytest.mark.parametrize(
    ("operator", "arguments", "value"),
    [
        ("/", (ONE, literal(2, "integer")), literal("0.5", "decimal")),
        ("/", (ONE, literal(0, "integer")), None),
        ("+", (literal("0.1", "float"), literal("0.2", "float")), literal("0.3", "float")),
        ("+", (literal(9223372036854775807, "integer"), ONE), None),
        ("=", (literal("NaN", "double"), literal("NaN", "double")), FALSE),
        ("=", (ONE, literal("1", "decimal")), TRUE),
        ("sameTerm", (ONE, literal("1", "decimal")), FALSE),
        ("||", ('"x"', Var("unbound")), TRUE),
        ("&&", (TRUE, Var("unbound")), None),
        ("COALESCE", (Var("unbound"), ONE), ONE),
    ],
)
def test_traps(operator: str, arguments: tuple[Expression, ...], value: Term | None) -> None:
    assert evaluate(Call(operator, arguments), (), [()]) == [value]


def test_blank_nodes_and_any_variable_names_survive() -> None:
    names = (".agg0", "_:0", "row", "value", "X", "x")
    row = ("_:b", "<urn:a>", ONE, '"x"', None, TRUE)
    for position, name in enumerate(names):
        assert evaluate(Var(name), names, [row]) == [row[position]]
        assert evaluate(Call("COALESCE", (Var(name), '"none"')), names, [row]) == [row[position] or '"none"']


def test_no_rows() -> None:
    assert evaluate(Call("+", (X, ONE)), VARIABLES, []) == []
    assert holds(X, VARIABLES, []) == []
