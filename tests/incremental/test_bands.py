"""Comparisons between two sides of a join, searched for in the order of values: changes are those of the definition.

The values are of all kinds, and some at the ends of what their kinds hold exactly.
"""

from collections import Counter
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental import band_join, extremes, neighbours, ordered_rows
from streamgauge.incremental.bands import band, place
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.evaluator import KeptAnswer
from streamgauge.incremental.ordered_rows import BandSearch, OrderedRows, ValueSpans, galloped
from streamgauge.incremental.window_joins import WindowJoins
from streamgauge.model.algebra import Filter
from streamgauge.model.terms import XSD
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import conjuncts, every_pattern
from streamgauge.sparql.expression import row_condition
from tests.examples import examples
from tests.incremental.evaluation import Evaluator
from tests.incremental.test_evaluator import play
from tests.incremental.test_loose import defined


def typed(kind, *texts):
    return [f'"{text}"^^<{XSD}{kind}>' for text in texts]


NUMBERS = [
    *typed("integer", 0, 1, 2, 3, -1, 2**53, 2**53 + 1, 2**53 + 3, 16777217, 10**18, 10**19, 10**400),
    *typed("decimal", "0.5", "1.0", "1.5", "-0.5", "9007199254740993.5", f"0.{'0' * 70}1"),
    *typed("float", "0.5", "1", "-0", "16777216", "1e38", "NaN", "INF", "-INF"),
    *typed("double", "0.5", "1", "1.5", "9007199254740992", "1e300", "-1e300", "NaN", "INF", "-INF"),
]
MOMENTS = [
    *typed("dateTime", "2026-01-01T00:00:00", "2026-01-01T00:00:00Z", "2026-01-01T20:00:00", "2026-01-02T10:00:00Z"),
    *typed("date", "2026-01-01", "2026-01-02Z"),
    *typed("time", "10:00:00", "11:00:00Z"),
    *typed("dateTimeStamp", "2026-01-01T09:00:00Z"),
]
OTHERS = [
    *('""', '"a"', '"b"', '"a"@en', '"1"', "<urn:a>", "_:b", '"1"^^<urn:t>'),
    *typed("boolean", "true", "false", "1"),
    *typed("dayTimeDuration", "PT1H", "P1D"),
    *typed("yearMonthDuration", "P1M"),
    *typed("integer", "x"),
]
VALUES = NUMBERS + MOMENTS + OTHERS
CONDITIONS = [
    *("?v > ?w", "?v <= ?w", "?w < ?v", "?v > ?w && ?w >= ?v", "?v >= ?w && ?v <= ?w"),
    *("?v - ?w > 1", "?v + 1 <= ?w", "?v * 2 > ?w", "?v < 1.1 * ?w", "-?v > ?w - 0.5", "1 < ?v - ?w", "2 > ?v + ?w"),
    *("ABS(?v - ?w) < 1.5", "1e0 >= abs(?w - ?v)", "?w >= ABS(?v)", "?v > ?w && ?v - ?w < 3", "+?v < -2 * -?w"),
    *("?v - ?w - 1 > 0", "0.5 * ?v - ?w * '2'^^<http://www.w3.org/2001/XMLSchema#float> > 0e0"),
]


def parsed(condition):
    form = parse_sparql(f"SELECT * {{ ?s <urn:v> ?v . ?o <urn:w> ?w FILTER({condition}) }}")
    return next(item.condition for item in every_pattern(form.pattern) if isinstance(item, Filter))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_what_passes_beside_a_value_is_an_interval_of_each_kind(condition):
    """Every value beside every other, on either side: what the search finds is what the condition holds for."""
    tree = parsed(condition)
    result, rest = band(conjuncts(tree), ("v",), ("w",))
    assert result is not None
    assert not rest
    holds = row_condition(tree, ("v", "w"))
    for left in (True, False):
        ordered = OrderedRows(BandSearch(result, left))
        for term in VALUES:
            ordered.add((term,), 1, term)
        for probe in (value for value in VALUES if place(value, result.direct) is not None):
            passing = {term for term in VALUES if holds((term, probe) if left else (probe, term))}
            met = [row[0] for bag, copies in ordered.net([(probe, 1)]) for row in bag if copies == 1]
            assert len(met) == len(set(met))
            assert set(met) == {term for term in passing if (term,) not in ordered.odd}
            assert passing <= {row[0] for bag in ordered.meeting(probe) for row in bag}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_spans_say_what_the_condition_says(condition):
    """Values of one kind beside values of any kind; where one has no place, or kinds are two, there are no spans."""
    result, _ = band(conjuncts(parsed(condition)), ("v",), ("w",))
    holds, spans = row_condition(parsed(condition), ("v", "w")), ValueSpans(result)
    placed = {term: place(term, result.direct) for term in VALUES}
    lefts = [term for term, at in placed.items() if at is not None]
    for kind in {at[0] for at in placed.values() if at is not None}:
        rights = [term for term, at in placed.items() if at is not None and at[0] == kind]
        ends, places = spans.of(lefts, rights)
        for left, (start, end) in zip(lefts, ends, strict=True):
            for right, at in zip(rights, places, strict=True):
                assert (start <= at < end) is holds((left, right))
    assert spans.of(lefts, typed("integer", 1) + typed("double", 1)) is None
    assert spans.of(lefts, typed("float", "NaN")) is None
    assert spans.of(typed("float", "NaN"), typed("integer", 1)) is None


def test_a_border_is_between_the_places_that_steps_find_and_one_that_is_near_takes_few_tests():
    for low, high, border, near in product(range(4), range(4, 9), range(10), range(-1, 11)):
        border = min(max(border, low), high)
        start, end = galloped(lambda at, border=border: at >= border, low, high, near)
        assert low <= start <= border <= end <= high, (low, high, border, near)
    tested = list[int]()
    assert galloped(lambda at: tested.append(at) or at >= 501, 0, 1000, 500) == (501, 501)
    assert tested == [500, 501]
    tested.clear()
    start, end = galloped(lambda at: tested.append(at) or at >= 900, 0, 1000, 500)
    assert start <= 900 <= end
    assert len(tested) <= 11


@pytest.mark.parametrize(
    "condition",
    [
        *("?v = ?w", "?v != ?w", "?v > 3", "?v * ?w > 3", "?v / 2 > ?w", "?v - ?v * ?w > 3", "ABS(?v - ?w) > 3"),
        *("?v - 2 * ?v > ?w", "?v - ?w > ?x", "0 * ?v > ?w", "1e11 * ?v > ?w", "STR(?v - ?w) > 'a'", "?v > ?w + ?v"),
        *("ABS(?v - ?w) <= ?w", "STRLEN(?v) > ?w", "EXISTS { ?v <urn:x> ?w }", "?v > ?x"),
        *("?v + 'a' > ?w", "?v * 2 * 2 * 2 > ?w"),
    ],
)
def test_conditions_whose_values_have_no_interval_are_no_band(condition):
    tree = parsed(condition)
    assert band([tree], ("v",), ("w",)) == (None, [tree])


QUERIES = [
    "?s <urn:v> ?v . ?o <urn:w> ?w FILTER({})",
    "?s <urn:v> ?v . ?o <urn:w> ?w FILTER({}) FILTER(?s != ?o) FILTER(STR(?o) != 'urn:a')",
    "?s <urn:v> ?v ; <urn:k> ?k . ?o <urn:w> ?w FILTER({}) FILTER(?k != <urn:x>) ?o <urn:k> ?l",
    "{{ ?s <urn:v> ?v ; <urn:k> ?k }} {{ SELECT ?k (MAX(?x) AS ?w) {{ ?o <urn:w> ?x ; <urn:k> ?k }} GROUP BY ?k }} "
    "FILTER({})",
    "?s <urn:v> ?v {{ SELECT (AVG(?x) AS ?w) {{ ?o <urn:w> ?x }} }} FILTER({})",
    "?s <urn:k> ?k OPTIONAL {{ ?s <urn:v> ?v }} {{ ?o <urn:w> ?w ; <urn:k> ?k }} FILTER({})",
    "?s <urn:v> ?v OPTIONAL {{ ?o <urn:w> ?w FILTER({}) }}",
    "?s <urn:v> ?v ; <urn:k> ?k OPTIONAL {{ ?o <urn:w> ?w ; <urn:k> ?k FILTER({} && ?o != ?s) }}",
    "?s <urn:v> ?v FILTER NOT EXISTS {{ ?o <urn:w> ?w FILTER({}) }}",
    "?s <urn:v> ?v ; <urn:k> ?k FILTER NOT EXISTS {{ ?o <urn:w> ?w ; <urn:k> ?k FILTER({}) }}",
    "?s <urn:v> ?v ; <urn:k> ?k FILTER EXISTS {{ ?o <urn:w> ?w ; <urn:k> ?k FILTER({} && ?w > 1) }}",
    "?s <urn:v> ?v ; <urn:k> ?k FILTER NOT EXISTS {{ ?o <urn:w> ?w ; <urn:k> ?k FILTER({} && ?o != ?s) }}",
    "?s <urn:k> ?k OPTIONAL {{ ?s <urn:v> ?v }} FILTER(?k = <urn:x> || EXISTS {{ ?o <urn:w> ?w FILTER({}) }})",
    "?s <urn:v> ?v ; <urn:k> ?k OPTIONAL {{ ?o <urn:w> ?w ; <urn:k> ?k FILTER({}) }} FILTER(!BOUND(?o))",
    "?s <urn:k> ?k OPTIONAL {{ ?s <urn:v> ?v }} OPTIONAL {{ ?o <urn:w> ?w FILTER({}) }} FILTER(!BOUND(?w))",
]
FACTS = st.one_of(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["<urn:v>", "<urn:w>"]), st.sampled_from(VALUES + NUMBERS)),
    st.tuples(st.sampled_from("abcd"), st.just("<urn:k>"), st.sampled_from(["<urn:x>", "<urn:y>"])),
).map(lambda drawn: (f"<urn:{drawn[0]}>", *drawn[1:]))
HISTORIES = st.lists(
    st.tuples(st.lists(FACTS, max_size=12), st.integers(0, 9), st.randoms(use_true_random=False)),
    min_size=1,
    max_size=5,
)


@pytest.mark.slow
@examples(30, prove=6000)
@given(
    st.sampled_from(QUERIES),
    st.sampled_from(CONDITIONS),
    st.sampled_from(["*", "?s", "?s ?v", "?w"]),
    st.integers(0, 3),
    HISTORIES,
)
def test_changes_are_those_of_the_definition(query, condition, names, few, history):
    """Keys have few rows here: they are put in order from ``few`` rows on."""
    form = parse_sparql(f"SELECT {names} {{ {query.format(condition)} }}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered_rows, "FEW_ROWS", few)
        patch.setattr(band_join, "FEW_ROWS", few)
        patch.setattr(neighbours, "FEW_ROWS", few)
        patch.setattr(extremes, "FEW_ROWS", few)
        patch.setattr(ordered_rows, "SCANS", few)
        evaluator, total = Evaluator(form), Counter()
        for there, delta in play(evaluator, history):
            total.update(delta)
            assert all(delta.values())
            assert defined(form, there) == evaluator.solutions(), sparql(form)
            assert {row: count for row, count in total.items() if count} == evaluator.solutions()
        assert not any(evaluator.remembered().values()), evaluator.remembered()


LINEAR = [
    "?s <urn:v> ?v . ?o <urn:w> ?w FILTER(?v - ?w > 998)",
    "?s <urn:v> ?v {{ SELECT (AVG(?x) AS ?w) {{ ?o <urn:w> ?x }} }} FILTER(?v > ?w)",
    "?s <urn:v> ?v {{ SELECT (AVG(?x) AS ?w) {{ ?o <urn:v> ?x }} }} FILTER(?v > ?w)",
    "?s <urn:v> ?v ; <urn:k> ?k OPTIONAL {{ ?o <urn:w> ?w ; <urn:k> ?k FILTER(?w > ?v + 998) }}",
    "?s <urn:v> ?v ; <urn:k> ?k FILTER NOT EXISTS {{ ?o <urn:v> ?w ; <urn:k> ?k FILTER(?w > ?v) }}",
    "?s <urn:v> ?v ; <urn:k> ?k FILTER NOT EXISTS {{ ?o <urn:w> ?w ; <urn:k> ?k FILTER(ABS(?w - ?v) < 3) }}",
    "?s <urn:v> ?v ; <urn:k> ?k OPTIONAL {{ ?o <urn:v> ?w ; <urn:k> ?k FILTER(?w < ?v) }} FILTER(!BOUND(?o))",
]


def looked(query: str, rows: int) -> int:
    """The rows and pairs that 60 changes beside so many rows look at, after some; the last answer is right."""
    form, random = parse_sparql(f"SELECT ?s ?v {{ {query.format()} }}"), Random(7)
    pool, effort = WindowJoins(()), EvaluationBudget()
    kept = KeptAnswer(form, pool.leaf, effort=effort)
    enter, leave = pool.feeds(None)
    there = [_subject(f"s{n}", random) for n in range(rows)]
    enter([triple for item in there for triple in item])
    kept.settle()
    before = 0
    for n in range(70):
        before = effort.left if n == 10 else before
        leave(there.pop(random.randrange(rows)))
        there.append(_subject(f"n{n}", random))
        enter(there[-1])
        kept.settle()
    assert defined(form, {triple for item in there for triple in item}) == kept.solutions()
    return before - effort.left


def _subject(name, random):
    subject = f"<urn:{name}>"
    values = [typed("integer", random.randrange(1000))[0] for _ in range(2)]
    return (subject, "<urn:v>", values[0]), (subject, "<urn:w>", values[1]), (subject, "<urn:k>", "<urn:hub>")


@pytest.mark.slow
@pytest.mark.parametrize("query", LINEAR)
def test_a_change_beside_many_rows_looks_at_those_that_it_brings_or_takes_away(query):
    assert looked(query, 320) <= 2 * looked(query, 80) + 100
