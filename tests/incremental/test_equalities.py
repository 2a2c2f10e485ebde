"""Equal terms of two sides of a join, found by their values: changes are the definition's, and few rows are looked at.

The values are of all kinds, and some that are equal in one datatype and not in another.
"""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental.equalities import EqualIndex, EqualTerms, equality
from streamgauge.model.algebra import Var
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.sparql.expression import row_condition
from tests.examples import examples
from tests.incremental.evaluation import Evaluator
from tests.incremental.test_bands import HISTORIES, QUERIES, VALUES, looked, parsed, typed
from tests.incremental.test_evaluator import play
from tests.incremental.test_loose import defined

MIDDLE = 2**24 + 1
"""In the middle between two floats of 32 bits, which the parts behind its point are rounded to."""
CLOSE = [
    *typed("decimal", MIDDLE, f"{MIDDLE}.0{'0' * 30}1", f"{MIDDLE - 1}.9{'9' * 30}", "0.1", "0.10000000149011612"),
    *typed("float", MIDDLE - 1, MIDDLE + 1, "0.1"),
    *typed("double", MIDDLE, "0.1", "0.10000000149011612"),
    *('"a"@EN', '"a"@de', "<urn:b>", "_:c", '"2"^^<urn:t>'),
    *typed("duration", "P1M", "PT60M"),
    *typed("dateTime", "2026-01-01T01:00:00+01:00"),
]
CONDITIONS = [
    *("?v = ?w", "?w = ?v", "sameTerm(?v, ?w)", "sameTerm(?w, ?v)", "STR(?v) = STR(?w)", "?v = ?w + 1", "?v - 1 = -?w"),
    *("?v = ?w && ?v > ?w", "?v >= ?w && ?v = ?w", "COALESCE(?v, 1) = ?w", "LCASE(STR(?v)) = STR(?w) && ?v != 1"),
]


@pytest.mark.parametrize("condition", ["?v = ?w", "sameTerm(?v, ?w)"])
def test_all_values_that_are_equal_meet(condition):
    """Every value beside every other: none for which the condition holds is left out, and few more are met."""
    assert equality([parsed(condition)], ("v",), ("w",)) == EqualTerms(Var("v"), Var("w"))
    holds = row_condition(parsed(condition), ("v", "w"))
    values = [*dict.fromkeys(VALUES + CLOSE)]
    index = EqualIndex(lambda _: (), lambda row: row[0], lambda row: row[0])
    index.add({(term,): 1 for term in values})
    for probe in values:
        passing = {term for term in values if holds((probe, term))}
        met = [row[0] for bag in index.meeting((), (probe,)) for row in bag]
        assert len(met) == len(set(met))
        assert passing <= set(met)
        assert len(met) < len(values) / 4
    index.add({(term,): -1 for term in values})
    assert not index
    assert not any(index.parts())
    assert not any(index.meeting((), (probe,)) for probe in values)


@pytest.mark.parametrize(
    "condition",
    ["?v != ?w", "?v = 1", "?v + ?w = 3", "!(?v = ?w)", "?v = ?w || ?v > 3", "?v = ?x", "EXISTS { ?v <urn:x> ?w }"],
)
def test_conditions_that_do_not_part_the_sides_are_no_equality(condition):
    assert equality([parsed(condition)], ("v",), ("w",)) is None


def test_a_variable_of_both_sides_is_of_neither():
    assert equality([parsed("?v = ?w")], ("v", "w"), ("w",)) is None
    assert equality([parsed("?v = ?w"), parsed("?s = ?o")], ("v", "s"), ("v", "w", "o")) == EqualTerms(
        Var("s"), Var("o")
    )


@pytest.mark.slow
@examples(30, prove=6000)
@given(
    st.sampled_from(QUERIES),
    st.sampled_from(CONDITIONS),
    st.sampled_from(["*", "?s", "?s ?v", "?w"]),
    HISTORIES,
)
def test_changes_are_those_of_the_definition(query, condition, names, history):
    form = parse_sparql(f"SELECT {names} {{ {query.format(condition)} }}")
    evaluator, total = Evaluator(form), Counter()
    for there, delta in play(evaluator, history):
        total.update(delta)
        assert all(delta.values())
        assert defined(form, there) == evaluator.solutions(), sparql(form)
        assert {row: count for row, count in total.items() if count} == evaluator.solutions()
    assert not any(evaluator.remembered().values()), evaluator.remembered()


LINEAR = [
    "?s <urn:v> ?v . ?o <urn:w> ?w FILTER(?v = ?w + 998)",
    "?s <urn:v> ?v . ?o <urn:w> ?w FILTER(sameTerm(?s, ?w))",
    "?s <urn:v> ?v {{ SELECT (AVG(?x) AS ?w) {{ ?o <urn:w> ?x }} }} FILTER(?v = ?w)",
    "?s <urn:v> ?v ; <urn:k> ?k OPTIONAL {{ ?o <urn:w> ?w ; <urn:k> ?k FILTER(?w = ?v + 998) }}",
    "?s <urn:v> ?v FILTER EXISTS {{ ?o <urn:w> ?w FILTER(?w = ?v + 998) }}",
]


@pytest.mark.slow
@pytest.mark.parametrize("query", LINEAR)
def test_a_change_beside_many_rows_looks_at_those_that_are_equal(query):
    assert looked(query, 320) <= 2 * looked(query, 80) + 100
