"""Which rows implementations may give over one content: those of the loose reading, surely those of the tight one."""

from dataclasses import replace
from fractions import Fraction

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Counting
from streamgauge.oracle.judging.intervals import OpenError
from streamgauge.oracle.judging.latitude import Latitude
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Arrival
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, triples

XSD = "http://www.w3.org/2001/XMLSchema#"


def possible(sparql: str, text: str):
    query = ContinuousQuery(parse_sparql(sparql), (StreamWindow(STREAM, Window(5, 5)),))
    return Latitude(query, RSPQL).possible(((Arrival(STREAM, 0, None, triples(text)),),))


def named(rows) -> str:
    return "".join(sorted((row[0] or "-")[5:-1] for row in rows))


# a is at 0.1 * 10, which is 1 or a little more or less; b is well above, c well below.
TENTHS = "a p 0.1e0. a q 10e0. b p 0.3e0. b q 10e0. c p 0.02e0. c q 10e0."
READINGS = [
    ("a comparison", "FILTER(?v * ?w > 1.0)", "ab", "b"),
    ("and", "FILTER(?v * ?w > 1.0 && ?w = 10)", "ab", "b"),
    ("or", "FILTER(?v * ?w > 1.0 || ?v = 0.02)", "abc", "bc"),
    ("not", "FILTER(!(?v * ?w > 1.0))", "ac", "c"),
    ("not and", "FILTER(!(?v * ?w > 1.0 && ?w = 10))", "ac", "c"),
    ("not or", "FILTER(!(?v * ?w > 1.0 || ?v = 0.02))", "a", ""),
    ("a list", "FILTER(?v * ?w IN (7.0, 1.0))", "a", ""),
    ("a list of stored numbers beside", "FILTER(?v IN (0.1, 0.3e0) && ?v * ?w > 1.0)", "ab", "b"),
    ("not in such a list", "FILTER(?v NOT IN (0.3, 7) && ?v * ?w > 1.0)", "a", ""),
    ("an empty list", "FILTER(?v * ?w NOT IN () && ?v * ?w > 1.0)", "ab", "b"),
    ("a list as a value", "BIND(?v IN (0.1, 7) AS ?b) FILTER(?b && ?v * ?w > 1.0)", "a", ""),
    ("not in a list", "FILTER(?v * ?w NOT IN (7.0, 1.0))", "abc", "bc"),
    ("a number as a condition", "FILTER(?v * ?w - 1.0)", "abc", "bc"),
    ("a product as a condition", "FILTER(?v * ?w)", "abc", "abc"),
    ("not a product", "FILTER(!(?v * ?w))", "", ""),
    ("a size as a condition", "FILTER(ABS(?v * ?w - 1.0))", "abc", "bc"),
    ("not a number", "FILTER(!(?v * ?w - 1.0))", "a", ""),
    ("FLOOR", "FILTER(FLOOR(?v * ?w) >= 1)", "ab", "b"),
    ("CEIL", "FILTER(CEIL(?v * ?w) > 1)", "ab", "b"),
    ("ROUND", "FILTER(ROUND(?v * ?w) > 1)", "b", "b"),
    ("ABS", "FILTER(ABS(?v * ?w) > 1)", "ab", "b"),
    ("a sign", "FILTER(-(?v * ?w) < -1)", "ab", "b"),
    ("an integer of it", f"FILTER(<{XSD}integer>(?v * ?w) >= 1)", "ab", "b"),
    ("a decimal of it", f"FILTER(<{XSD}decimal>(?v * ?w) > 1.0)", "ab", "b"),
    ("a difference of equals", "FILTER(?v - ?v >= 0.0)", "abc", "abc"),
    ("a difference of equals above 0", "FILTER(?v * ?w - ?v * ?w > 0.0)", "", ""),
    ("the datatype", f"FILTER(DATATYPE(?v * ?w) = <{XSD}double>)", "abc", "abc"),
    ("another datatype", f"FILTER(DATATYPE(?v * ?w) = <{XSD}float>)", "", ""),
    (
        "the datatype of a variable",
        f"BIND(?v * ?w AS ?x) FILTER(DATATYPE(?x) = <{XSD}double> && ISNUMERIC(?x))",
        "abc",
        "abc",
    ),
    ("a stored number's", f"BIND(?v * ?w AS ?x) FILTER(DATATYPE(?v) = <{XSD}double> && BOUND(?x))", "abc", "abc"),
    ("the first that is there", "FILTER(COALESCE(?none, ?v * ?w) > 1.0)", "ab", "b"),
    ("one of two", "FILTER(IF(?w = 10, ?v * ?w, 7) > 1.0)", "ab", "b"),
    ("one of two by a certain comparison", "BIND(IF(?v + 1.0 > 1.05, 7.0, 0.0) AS ?x) FILTER(?x > 5)", "ab", "ab"),
    (
        "one of two that reads a computed number",
        "BIND(?v * ?w AS ?x) FILTER(IF(?w = 10, COALESCE(?none, ?x), 7) > 1.0)",
        "ab",
        "b",
    ),
    ("a string", "BIND(IF(?v > 0.05, 'x', ?v * ?w) AS ?x) FILTER(?x = 'x')", "ab", "ab"),
    ("not a string", "BIND(IF(?v > 0.05, 'x', ?v * ?w) AS ?x) FILTER(?x != 'y')", "ab", "ab"),
    ("a string beside a number", "BIND(IF(?v > 0.05, 'x', ?v * ?w) AS ?x) FILTER(?x < 9)", "c", "c"),
    ("no value", "FILTER(?v * ?none > 1.0 || ?v > 0.2)", "b", "b"),
    ("EXISTS", "FILTER EXISTS { ?s <urn:q> ?x FILTER(?v * ?x > 1.0) }", "ab", "b"),
    ("NOT EXISTS", "FILTER NOT EXISTS { ?s <urn:q> ?x FILTER(?v * ?x > 1.0) }", "ac", "c"),
    ("MINUS", "MINUS { ?s <urn:p> ?x ; <urn:q> ?y FILTER(?x * ?y > 1.0) }", "ac", "c"),
    ("MINUS in MINUS", "MINUS { ?s <urn:p> ?k MINUS { ?s <urn:p> ?x ; <urn:q> ?y FILTER(?x * ?y > 1.0) } }", "ab", "b"),
    ("OPTIONAL", "BIND(?v * ?w AS ?x) OPTIONAL { ?s <urn:q> ?y FILTER(?x > 1.0) } FILTER(BOUND(?y))", "ab", "b"),
    (
        "OPTIONAL inside",
        "OPTIONAL { ?s <urn:q> ?y BIND(?y * 0.1e0 AS ?x) FILTER(?x > 1.0) } FILTER(BOUND(?y))",
        "abc",
        "",
    ),
    ("OPTIONAL without a condition", "BIND(?v * ?w AS ?x) OPTIONAL { ?s <urn:q> ?y } FILTER(?x > 1.0)", "ab", "b"),
    (
        "a subquery",
        "{ SELECT ?s (SUM(?x * 0.1e0) AS ?t) { ?s <urn:q> ?x } GROUP BY ?s } FILTER(?t > 1.0 || ?v > 0.2)",
        "abc",
        "b",
    ),
    ("DISTINCT", "{ SELECT DISTINCT ?s { ?s <urn:p> ?x ; <urn:q> ?y FILTER(?x * ?y > 1.0) } }", "ab", "b"),
    ("an order", "{ SELECT ?s { ?s <urn:p> ?x ; <urn:q> ?y FILTER(?x * ?y > 1.0) } ORDER BY ?x }", "ab", "b"),
]


@pytest.mark.parametrize(
    ("more", "loose", "tight"), [case[1:] for case in READINGS], ids=[case[0] for case in READINGS]
)
def test_a_comparison_that_may_go_either_way_is_taken_both_ways(more, loose, tight):
    found = possible(f"SELECT ?s {{ ?s <urn:p> ?v ; <urn:q> ?w {more} }}", TENTHS)
    assert (named(found.loose), named(found.tight)) == (loose, tight)


UNKNOWN = [
    ("BIND(?v * ?w > 1.0 AS ?b)", "used as a value"),
    ("BIND(!(?v * ?w > 1.0) AS ?b)", "used as a value"),
    ("BIND(?v * ?w > 1.0 && ?v > 0 AS ?b)", "used as a value"),
    ("BIND(?v * ?w IN (1.0, 2.0) AS ?b)", "used as a value"),
    ("BIND(IF(?v * ?w > 1.0, 1, 2) AS ?b)", "used as a value"),
    ("BIND(EXISTS { ?s <urn:q> ?x FILTER(?v * ?x > 1.0) } AS ?b)", "used as a value"),
    ("BIND(STR(?v * ?w) AS ?b)", "an inexact number is used as a term"),
    ("FILTER(CONTAINS(STR(?v * ?w), '1'))", "an inexact number is used as a term"),
    ("BIND(1.0 / (?v * ?w - 1.0) AS ?b)", "a division by what may be 0"),
    ("BIND(1000000000000000000 * ?n AS ?b)", "more than 18 digits"),
]


@pytest.mark.parametrize(("more", "reason"), UNKNOWN)
def test_where_intervals_cannot_tell_the_reason_is_given(more, reason):
    with pytest.raises(OpenError, match=reason):
        possible(f"SELECT ?s ?b {{ ?s <urn:p> ?v ; <urn:q> ?w ; <urn:n> ?n {more} }}", TENTHS + " a n 7.")


def test_a_value_by_comparisons_that_are_certain_is_one_value():
    values = "BIND(?v * ?w > 2.0 && ?w > 1 AS ?b) BIND(!(?v * ?w < 9.0) AS ?c)"
    found = possible(f"SELECT ?s ?b ?c {{ ?s <urn:p> ?v ; <urn:q> ?w {values} }}", TENTHS)
    assert {row[0][5:-1]: (row[1][1], row[2][1]) for row in found.loose} == {
        "a": ("f", "f"),
        "b": ("t", "f"),
        "c": ("f", "f"),
    }
    assert found.loose == found.tight


def value(aggregate: str, text: str):
    """The one number of an aggregate over all ?v: its lexical form."""
    (row,) = possible(f"SELECT ({aggregate} AS ?x) {{ ?s <urn:p> ?v }}", text).loose
    return None if row[0] is None else row[0][1 : row[0].rindex('"')]


def test_aggregates_of_exact_numbers_are_one_number():
    numbers = "a p 2e0. b p 3e0. c p 7e0."
    found = [value(each, numbers) for each in ("SUM(?v)", "AVG(?v)", "MIN(?v * 2)", "MAX(?v * 2)")]
    assert [float(each) for each in found] == [12, 4, 4, 14]
    assert value("COUNT(?v * 2)", numbers) == "3"
    assert value("SUM(?v)", "a p 2. b p 3.") == "5"
    assert value("SUM(?v)", "a p 2. b p 'x'.") is None
    assert value("SAMPLE(?v)", "a p 2. b p 2.") == "2"


def test_inexact_aggregates_are_intervals_around_their_value():
    low, high, own = (float(Fraction(part)) for part in value("SUM(?v)", "a p 0.1e0. b p 0.2e0.").split())
    assert low < 0.3 < high
    assert high - low < 2e-9
    assert abs(own - 0.3) < 1e-15


def test_large_integers_are_told_by_every_aggregate():
    for aggregate in ("SUM(?v)", "AVG(?v)", "MIN(?v + 1)"):
        with pytest.raises(OpenError, match="more than 18 digits"):
            value(aggregate, "a p 9223372036854775807. b p 1.")


def test_the_least_of_nothing_is_told():
    with pytest.raises(OpenError, match="MIN or MAX of nothing"):
        value("MIN(?v * 2.0)", "a q 1.")


def test_a_sample_used_as_a_number_or_a_term_is_told():
    for more in ("SAMPLE(?v) + 1", "STR(SAMPLE(?v))"):
        with pytest.raises(OpenError, match="SAMPLE or GROUP_CONCAT"):
            value(more, "a p 1. b p 2.")


def test_groups_by_a_computed_number_need_the_number():
    with pytest.raises(OpenError, match="used as a term"):
        possible("SELECT ?k (COUNT(*) AS ?n) { ?s <urn:p> ?v } GROUP BY (?v * 10.0 AS ?k)", "a p 0.1e0.")
    found = possible("SELECT ?k (COUNT(*) AS ?n) { ?s <urn:p> ?v } GROUP BY (?v * 10 AS ?k)", "a p 3. b p 3.")
    assert [tuple(term.split('"')[1] for term in row) for row in found.loose] == [("30", "2")]


def test_each_copy_counts_in_a_content_that_is_a_bag():
    query = ContinuousQuery(
        parse_sparql("SELECT (SUM(?v) AS ?n) { ?s <urn:p> ?v }"), (StreamWindow(STREAM, Window(5, 5)),)
    )
    held = ((Arrival(STREAM, 0, None, triples("a p 2. a p 2. b p 2.")),),)
    for counting, total in ((Counting.SET, 4), (Counting.BAG, 6)):
        found = Latitude(query, replace(RSPQL, content=counting)).possible(held)
        assert found.loose == found.tight == ((f'"{total}"^^<{XSD}integer>',),)
