"""Expressions against pyoxigraph where both must agree: canonical terms, small numbers, dates that all have a zone.

Known deviations of pyoxigraph 0.5.13 are left out of what is drawn; ``deviations.txt`` lists them with the section that
says what is right, and each line is held to be still true.
"""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.canonical import Canonical, parse_term
from streamgauge.model.algebra import Call, Expression, Var
from streamgauge.model.terms import XSD, Row, Term
from streamgauge.query import parse_sparql
from streamgauge.sparql.expression import row_condition, row_expression
from streamgauge.sparql.values import DECIMAL, read, text_of
from tests.sparql import pyoxigraph_rows

CANONICAL = Canonical()
PAIR = ("a", "b")
X = Var("a")


def literal(text: object, kind: str) -> Term:
    return CANONICAL.term(parse_term(f'"{text}"^^<{XSD}{kind}>'))


def _text(number: float) -> str:
    return "NaN" if math.isnan(number) else f"{'-' if number < 0 else ''}INF" if math.isinf(number) else repr(number)


INTEGERS = st.integers(-(2**30), 2**30).map(lambda n: literal(n, "integer"))
DECIMALS = st.decimals(-(10**6), 10**6, places=4).map(lambda d: literal(f"{d:f}", "decimal"))
SINGLES = st.floats(width=32, allow_nan=False).map(lambda x: literal(_text(x), "float"))
DOUBLES = st.floats(allow_nan=False).map(lambda x: literal(_text(x), "double"))
NUMBERS = st.one_of(INTEGERS, DECIMALS, SINGLES, DOUBLES)
DATES = st.datetimes().map(lambda at: literal(f"{at.isoformat()}Z", "dateTime"))
DAYS = st.dates().map(lambda at: literal(f"{at.isoformat()}Z", "date"))
BOOLEANS = st.sampled_from([literal("true", "boolean"), literal("false", "boolean")])
STRINGS = st.text('aAéß(\n"\\ 1x', max_size=5).map(lambda text: str(parse_term(_quoted(text))))
TERMS = st.one_of(
    NUMBERS, DATES, DAYS, BOOLEANS, STRINGS, st.sampled_from(("<urn:a>", "_:b", '"a"@en', '"x"^^<urn:t>', None))
)
ROWS = st.lists(st.tuples(TERMS, TERMS), min_size=1, max_size=12)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


BINARY = (
    "+",
    "-",
    "*",
    "=",
    "!=",
    "&&",
    "||",
    "sameTerm",
    "STRSTARTS",
    "CONTAINS",
    "STRAFTER",
    "CONCAT",
    "LANGMATCHES",
)
UNARY = (
    *("!", "STR", "LANG", "DATATYPE", "isBLANK", "isIRI", "isLITERAL", "isNUMERIC", "ABS", "CEIL", "FLOOR", "ROUND"),
    *(
        "STRLEN",
        "UCASE",
        "LCASE",
        "ENCODE_FOR_URI",
        "MD5",
        "SHA1",
        "YEAR",
        "MONTH",
        "DAY",
        "HOURS",
        "TZ",
        "-",
        "COALESCE",
    ),
    *(f"<{XSD}{kind}>" for kind in ("integer", "double", "float", "boolean", "dateTime")),
)


def expressions() -> st.SearchStrategy[Expression]:
    leaf = st.sampled_from((X, Var("b"), Var("c"), literal(1, "integer"), literal("0.5", "decimal"), '"a"'))

    def grow(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        pairs = st.builds(lambda name, one, two: Call(name, (one, two)), st.sampled_from(BINARY), inner, inner)
        singles = st.builds(lambda name, one: Call(name, (one,)), st.sampled_from(UNARY), inner)
        choice = st.builds(lambda *three: Call("IF", three), inner, inner, inner)
        member = st.builds(lambda *three: Call("IN", three), inner, inner, inner)
        return st.one_of(pairs, singles, choice, member)

    return st.recursive(leaf, grow, max_leaves=4)


INEXACT = (f"<{XSD}float>", f"<{XSD}double>")


def _deviates(expression: Expression, row: Row) -> bool:
    """Where pyoxigraph is known to be otherwise: tagged strings as booleans, many digits, floats as integers."""
    if not isinstance(expression, Call):
        return False
    if any(_deviates(argument, row) for argument in expression.arguments):
        return True
    values = [row_expression(argument, PAIR)(row) for argument in expression.arguments]
    if expression.operator in ("!", "&&", "||", "IF") and any(value and value.endswith('"@en') for value in values):
        return True
    if expression.operator == f"<{XSD}integer>" and any(value and value.endswith(INEXACT) for value in values):
        return True
    return any(_wide(value) for value in values) or _wide(row_expression(expression, PAIR)(row))


def _wide(term: Term | None) -> bool:
    """An integer or decimal of so many digits that pyoxigraph may overflow or round."""
    value = None if term is None else read(term)
    return value is not None and value.kind <= DECIMAL and len(text_of(value.kind, value.value)) > 17


@given(expressions(), ROWS)
def test_values_are_pyoxigraphs(expression: Expression, rows: list[Row]) -> None:
    rows = [row for row in rows if not _deviates(expression, row)]
    results = list(map(row_expression(expression, PAIR), rows))
    assert results == pyoxigraph_rows.evaluate(expression, PAIR, rows)


@pytest.mark.slow
@given(expressions(), ROWS)
def test_conditions_keep_what_pyoxigraph_keeps(expression: Expression, rows: list[Row]) -> None:
    rows = [row for row in rows if not _deviates(Call("!", (expression,)), row)]
    results = list(map(row_condition(expression, PAIR), rows))
    assert results == pyoxigraph_rows.holds(expression, PAIR, rows)


ORDERED = st.sampled_from((NUMBERS, STRINGS, DATES, DAYS)).flatmap(
    lambda terms: st.lists(st.tuples(terms, terms), min_size=1, max_size=10)
)


@given(ORDERED, st.sampled_from(("<", ">", "<=", ">=", "=", "!=")))
def test_comparisons_are_pyoxigraphs(rows: list[Row], operator: str) -> None:
    expression = Call(operator, (Var("a"), Var("b")))
    results = list(map(row_condition(expression, PAIR), rows))
    assert results == pyoxigraph_rows.holds(expression, PAIR, rows)


def _deviations() -> list[tuple[str, str, str]]:
    lines = (Path(__file__).parent / "deviations.txt").read_text().splitlines()
    return [(e, t, m) for e, t, m, _ in (line.split(" | ", 3) for line in lines if line and line[0] != "#")]


@pytest.mark.parametrize(("text", "theirs", "ours"), _deviations())
def test_deviations_of_pyoxigraph_are_as_listed(text: str, theirs: str, ours: str) -> None:
    form = parse_sparql(f"PREFIX xsd: <{XSD}> SELECT ({text} AS ?r) {{}}")
    expression = form.pattern.pattern.expression  # type: ignore[union-attr]
    assert short(row_expression(expression, ())(())) == ours
    assert short(pyoxigraph_rows.evaluate(expression, (), [()])[0]) == theirs


def short(term: Term | None) -> str:
    return "error" if term is None else term.replace(f"<{XSD}", "xsd:").replace(">", "") if XSD in term else term
