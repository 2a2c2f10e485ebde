"""SPARQL's expressions by tables of cases, written from the specification, and what the tables cannot say."""

import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.canonical import parse_term
from streamgauge.model.algebra import BGP, Call, Exists, Extend, Var
from streamgauge.model.terms import XSD, lexical, quoted
from streamgauge.query import parse_sparql
from streamgauge.sparql import values
from streamgauge.sparql.expression import (
    UnsupportedFunctionError,
    compiled,
    condition,
    evaluate,
    row_condition,
    row_expression,
)

TABLES = Path(__file__).parent / "expressions"
CASE = re.compile(r"(?P<expression>.+?) => (?P<value>.+?)(?: ; (?P<bindings>\w+ = .+))?")
TRUE, ONE = f'"true"^^<{XSD}boolean>', f'"1"^^<{XSD}integer>'


def term(text):
    """A term as the tables write it: xsd:name for a datatype, and numbers and booleans bare."""
    if re.fullmatch(r"-?[0-9]+", text):
        return f'"{text}"^^<{XSD}integer>'
    if re.fullmatch(r"-?[0-9]+\.[0-9]+", text):
        return f'"{text}"^^<{XSD}decimal>'
    if text in ("true", "false"):
        return f'"{text}"^^<{XSD}boolean>'
    text = re.sub(r"\^\^xsd:(\w+)$", rf"^^<{XSD}\1>", text.replace("<xsd:", f"<{XSD}"))
    return re.sub(r"\\u([0-9A-F]{4})|\\U([0-9A-F]{8})", lambda result: chr(int(result[1] or result[2], 16)), text)


def cases(name):
    """The cases of a table: expression text, the value (``None`` for an error), the solution."""
    for line in (TABLES / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line and line[0] != "#":
            case = CASE.fullmatch(line)
            assert case, line
            bindings = (part.split(" = ", 1) for part in (case["bindings"] or "").split(" ; ") if part)
            value = None if case["value"] == "error" else term(case["value"])
            yield case["expression"], value, {name: term(text) for name, text in bindings}


@cache
def expressions(name):
    """The expressions of a table by their texts, parsed as one query."""
    texts = list(dict.fromkeys(text for text, _, _ in cases(name)))
    columns = " ".join(f"({text} AS ?r{place})" for place, text in enumerate(texts))
    pattern = parse_sparql(f"PREFIX xsd: <{XSD}> SELECT {columns} {{}}").pattern.pattern
    results = {}
    while isinstance(pattern, Extend):
        results[pattern.variable.name] = pattern.expression
        pattern = pattern.pattern
    return {text: results[f"r{place}"] for place, text in enumerate(texts)}


NAMES = sorted(path.stem for path in TABLES.glob("*.txt"))


def test_the_tables_are_there():
    assert sum(1 for name in NAMES for _ in cases(name)) > 500


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_expressions_have_the_value_of_the_table(name):
    parsed = expressions(name)
    wrong = []
    for text, expected, solution in cases(name):
        expression = parsed[text]
        names = tuple(solution)
        rows = {
            evaluate(expression, solution),
            compiled(expression)(solution, None),
            row_expression(expression, names)(tuple(solution.values())),
        }
        if rows != {expected}:
            wrong.append(f"{text} with {solution}: expected {expected}, got {rows}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["logic", "comparison"])
def test_conditions_keep_where_the_table_says_true(name):
    """FILTER keeps where the value is true: an error and false do not differ."""
    for text, expected, solution in cases(name):
        parsed = expressions(name)[text]
        if expected in (None, TRUE, TRUE.replace("true", "false")):
            row = row_condition(parsed, tuple(solution))(tuple(solution.values()))
            assert condition(parsed)(solution, None) == row == (expected == TRUE), text


def test_a_variable_may_be_absent_or_unbound():
    for solution in ({}, {"x": None}):
        assert evaluate(Var("x"), solution) is None
        assert evaluate(Call("BOUND", (Var("x"),)), solution) == TRUE.replace("true", "false")


def test_exists_is_asked_with_the_solution_around_it():
    requests = []

    def exists(node, solution):
        requests.append((node, dict(solution)))
        return solution["x"] == ONE

    node = Exists(BGP(()))
    expression = Call("&&", (TRUE, Call("!", (node,))))
    assert not condition(expression)({"x": ONE}, exists)
    assert condition(expression)({"x": '"2"'}, exists)
    assert requests == [(node, {"x": ONE}), (node, {"x": '"2"'})]
    with pytest.raises(ValueError, match="EXISTS"):
        condition(node)({}, None)


@pytest.mark.parametrize("name", ["RAND", "NOW", "UUID", "STRUUID", "BNODE", "<urn:f>", "NO_SUCH"])
def test_what_is_not_evaluated_is_refused_by_name(name):
    with pytest.raises(UnsupportedFunctionError, match=re.escape(name)):
        compiled(Call(name, ()))


@given(st.text())
def test_strings_are_written_as_they_are_parsed(text):
    written = quoted(text)
    assert lexical(written) == text
    assert parse_term(written).value == text
    assert str(parse_term(written)) == written


@given(st.floats(allow_nan=False))
def test_computed_doubles_read_back(number):
    value = values.Value(values.DOUBLE, number)
    assert values.read(values.written(value)).value == number
    single = values.single(number)
    again = values.Value(values.FLOAT, single)
    assert values.read(values.written(again)).value == single


@given(st.integers() | st.integers(0, 10**5000))
def test_integers_of_any_size_read_back(number):
    value = values.Value(values.INTEGER, number)
    assert values.read(values.written(value)).value == number


@pytest.mark.parametrize("text", ["9" * 9000, f"{'9' * 4500}.{'9' * 4500}"])
def test_a_chain_of_squares_ends_in_an_error(text):
    number = f'"{text}"^^<{XSD}{"decimal" if "." in text else "integer"}>'
    squared = Call("*", (Var("x"), Var("x")))
    for _ in range(6):
        number = evaluate(squared, {"x": number}) if number and len(number) < values.MAX_NUMBER_CHARACTERS else None
    nested = Var("x")
    for _ in range(6):
        nested = Call("*", (nested, nested))
    assert number is None
    assert evaluate(nested, {"x": f'"{text}"^^<{XSD}{"decimal" if "." in text else "integer"}>'}) is None


def test_a_number_too_long_to_be_read_has_no_value():
    assert values.read(f'"{"1" * 10_001}"^^<{XSD}integer>').kind == values.ILL
    assert values.read(f'"{"1" * 9_000}"^^<{XSD}integer>').kind == values.INTEGER


def test_a_pattern_that_takes_too_long_is_an_error_from_then_on():
    slow = Call("REGEX", (Var("x"), '"^(a|aa)+(a|aa)+(b)\\\\3$"'))
    assert evaluate(slow, {"x": '"aabb"'}) == TRUE
    assert evaluate(slow, {"x": f'"{"a" * 200}c"'}) is None
    assert evaluate(slow, {"x": '"aabb"'}) is None
