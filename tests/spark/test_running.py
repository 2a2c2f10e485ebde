"""Swept aggregates and changes over intervals give what the definition gives report by report."""

from collections import Counter

import pytest
from pyspark.sql import SparkSession
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.algebra import QueryForm
from streamgauge.model.report import DueReport, View
from streamgauge.query.parser import parse_sparql
from streamgauge.spark import aggregates
from streamgauge.spark.answers import SWEPT_REPORTS_MIN, answers, changes
from tests.examples import examples
from tests.spark.streams import table
from tests.spark.test_answers import Run, runs

AGGREGATES = [
    parse_sparql(f"SELECT {what} {{ ?s <urn:p> ?o . ?s <urn:q> ?v }} {keys}")
    for what, keys in (
        ("(COUNT(*) AS ?n) (AVG(?v) AS ?a)", ""),
        ("?o (COUNT(?v) AS ?n) (SUM(?v) AS ?t)", "GROUP BY ?o"),
        ("(AVG(?v) AS ?a) (MIN(?v) AS ?m)", ""),
        ("?o (MAX(?v) AS ?m) (COUNT(DISTINCT ?v) AS ?n)", "GROUP BY ?o"),
        ("(SUM(DISTINCT ?v) AS ?t) (COUNT(DISTINCT *) AS ?n) (COUNT(?v) AS ?c)", ""),
        ("?s (AVG(DISTINCT ?v) AS ?a) (MIN(?v) AS ?m) (MAX(?v) AS ?x)", "GROUP BY ?s"),
        ("?o (SUM(?v) AS ?t)", "GROUP BY ?o HAVING(COUNT(*) > 1)"),
    )
]
PLAIN = [
    parse_sparql("SELECT ?o ?v { ?s <urn:p> ?o . ?s <urn:q> ?v FILTER(?v > 1) }"),
    parse_sparql("SELECT ?o { { ?s <urn:p> ?o } UNION { ?s <urn:q> ?o } }"),
]
XSD = "http://www.w3.org/2001/XMLSchema#"
KINDS = st.sampled_from(["integer", "float", "double"])


@st.composite
def numbered(draw: st.DrawFn) -> Run:
    """A stream of subjects that have groups and numbers of one kind, each in one window or more."""
    kind = draw(KINDS)
    given_ = st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(-3, 6), st.integers(0, 30))
    elements = tuple(
        (time, ((f"<urn:s{s}>", "<urn:p>", f"<urn:o{o}>"), (f"<urn:s{s}>", "<urn:q>", f'"{v}"^^<{XSD}{kind}>')))
        for s, o, v, time in sorted(draw(st.lists(given_, max_size=10)), key=lambda item: item[3])
    )
    size, slide = draw(st.integers(2, 12)), draw(st.integers(1, 6))
    due = tuple(DueReport(c, (View(c - size, c, c - size, c - 1, len(elements)),)) for c in range(0, 36, slide))
    return Run(elements, due)


def bags(spark: SparkSession, run: Run, query: QueryForm) -> list[Counter]:
    counts: list[Counter] = [Counter() for _ in run.due]
    for report, *row in answers(spark, table(spark, run.elements), run.due, query, run.static, reports=0).collect():
        counts[report][tuple(row)] += 1
    return counts


def differences(spark: SparkSession, run: Run, query: QueryForm, many: int) -> list[Counter]:
    now: Counter = Counter()
    net: dict[int, Counter] = {}
    stream = table(spark, run.elements)
    for report, count, *row in changes(spark, stream, run.due, query, run.static, many=many).collect():
        net.setdefault(report, Counter())[tuple(row)] = count
    results = []
    for report in range(len(run.due)):
        now.update(net.get(report, Counter()))
        results.append(+now)
    return results


@examples(3, prove=200)
@given(numbered(), st.sampled_from(AGGREGATES), st.sampled_from([2, 5, aggregates.SWEPT_REPORTS]))
def test_running_totals(spark: SparkSession, run: Run, query: QueryForm, swept: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregates, "SWEPT_REPORTS", swept)
        assert bags(spark, run, query) == run.expected(query)


@examples(3, prove=200)
@given(st.one_of(numbered(), runs(3)), st.sampled_from(PLAIN + AGGREGATES[:2]))
def test_changes_add_up_to_the_answers(spark: SparkSession, run: Run, query: QueryForm) -> None:
    wanted = run.expected(query)
    assert differences(spark, run, query, many=SWEPT_REPORTS_MIN) == wanted
    assert differences(spark, run, query, many=0) == wanted


def test_sums_are_exact_whatever_comes_and_goes(spark: SparkSession) -> None:
    """1e20 comes and goes: a running sum in 64 bits would leave noise behind."""
    elements = tuple(
        (time, ((f"<urn:s{time}>", "<urn:q>", f'"{v}"^^<{XSD}double>'), (f"<urn:s{time}>", "<urn:p>", "<urn:o>")))
        for time, v in zip((0, 3, 12), ["100000000000000000000", "0.1", "0.2"], strict=True)
    )
    run = Run(elements, tuple(DueReport(c, (View(c - 10, c, c - 10, c - 1, 3),)) for c in range(5, 25, 5)))
    assert bags(spark, run, AGGREGATES[0]) == run.expected(AGGREGATES[0])
