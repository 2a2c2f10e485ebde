"""Rows are compared as terms, computed numbers by value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.oracle.judging.compare import overlap, tolerance_sentence
from streamgauge.oracle.worlds.intervals import close
from streamgauge.oracle.worlds.restatement import computed_columns
from streamgauge.query import parse_sparql

XSD = "http://www.w3.org/2001/XMLSchema#"


def number(value: str, kind: str) -> str:
    return f'"{value}"^^<{XSD}{kind}>'


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (number("49.8275", "float"), number("49.82771", "float"), True),
        (number("49.8275", "double"), number("49.82771", "double"), False),
        (number("0.333333333333333333", "decimal"), number("0.333333333333333333", "decimal"), True),
        (number("0.333333333333333333", "decimal"), number("0.333333333333333339", "decimal"), False),
        (number("87.67", "decimal"), number("87.67", "double"), True),
        (number("1", "integer"), number("2", "integer"), False),
        (number("0", "integer"), number("0", "decimal"), True),
        (number("2020-01-01T24:00:00Z", "dateTime"), number("2020-01-02T00:00:00.0Z", "dateTime"), True),
        (number("2020-01-01T00:00:00Z", "dateTime"), number("2020-01-01T01:00:00+01:00", "dateTime"), False),
        (number("PT60S", "dayTimeDuration"), number("PT1M", "dayTimeDuration"), True),
        (number("PT60S", "dayTimeDuration"), number("PT1M", "duration"), False),
        (number("1", "boolean"), number("true", "boolean"), True),
        (number("x", "boolean"), number("y", "boolean"), False),
        (number("INF", "double"), number("0", "double"), False),
        (number("0", "double"), number("NaN", "double"), False),
        (number("-INF", "double"), number("-INF", "float"), True),
        (number("-INF", "double"), number("INF", "double"), False),
        (None, number("0", "integer"), False),
        ('"a"', '"b"', False),
    ],
)
def test_tolerance_by_datatype(left, right, equal):
    assert close(left, right) is equal


def test_the_verdict_says_how_numbers_were_compared():
    form = parse_sparql("SELECT ?s (AVG(?v) AS ?a) { ?s <urn:p> ?v } GROUP BY ?s")
    plain = tolerance_sentence(form, (), exact_datatypes=False)
    assert plain.startswith("computed numbers by value")
    assert "datatype of" not in plain
    assert "the datatype of ?a is another than expected" in tolerance_sentence(form, ("a",), exact_datatypes=False)
    assert tolerance_sentence(form, ("a",), exact_datatypes=True).endswith("; datatypes exactly")
    stored = parse_sparql("SELECT ?s { ?s <urn:p> ?v }")
    assert tolerance_sentence(stored, (), exact_datatypes=True) == "terms compared exactly"


def test_only_computed_variables_are_compared_by_value():
    form = parse_sparql("SELECT ?s ?v (?v + 1 AS ?w) (?s AS ?t) { ?s <urn:p> ?v }")
    assert {form.variables[i] for i in computed_columns(form)} == {"w"}
    grouped = parse_sparql("SELECT ?s (AVG(?v) AS ?a) { ?s <urn:p> ?v } GROUP BY ?s")
    assert {grouped.variables[i] for i in computed_columns(grouped)} == {"a"}


def test_several_retyped_columns_are_named():
    form = parse_sparql("SELECT (AVG(?v) AS ?a) (SUM(?v) AS ?b) { ?s <urn:p> ?v }")
    assert "the datatype of ?a, ?b is another" in tolerance_sentence(form, ("a", "b"), exact_datatypes=False)


def test_a_row_that_is_paired_already_retypes_nothing():
    expected = [(number("1", "integer"), number("2", "integer"))]
    received = [(number("1.0", "decimal"), number("2", "integer")), (number("1", "integer"), number("2.0", "decimal"))]
    both = overlap(expected, received, frozenset({0, 1}))
    assert (both.common, both.surplus, both.retyped) == (1, (received[1],), {0})


def test_terms_that_only_look_alike_differ():
    rows = [(number("1", "integer"),)]
    assert overlap(rows, [(number("1", "decimal"),)], frozenset()).common == 0
    assert overlap(rows, [(number("1", "decimal"),)], frozenset({0})).common == 1


ROWS = st.lists(st.tuples(st.sampled_from(["<urn:a>", "<urn:b>"]), st.sampled_from(["1", "1.0", "2"]).map(
    lambda text: number(text, "double"))), max_size=8)  # fmt: skip


@given(ROWS, ROWS)
def test_the_parts_add_up(expected, actual):
    both = overlap(expected, actual, frozenset({1}))
    assert both.common + len(both.missing) == len(expected)
    assert both.common + len(both.surplus) == len(actual)
    assert overlap(expected, expected, frozenset({1})).common == len(expected)


def test_whole_numbers_are_compared_exactly_however_large():
    one, other = (f'"{2**63 - less}"^^<http://www.w3.org/2001/XMLSchema#integer>' for less in (0, 1))
    assert close(one, one)
    assert not close(one, other)
