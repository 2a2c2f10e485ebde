"""Spark against pyoxigraph report by report: drawn streams, due reports, static data and queries.

Several drawn streams lie behind each other in one table, so that one job answers a query on all of them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyoxigraph as ox
import pytest
from pyspark.sql import SparkSession
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.canonical import Canonical
from streamgauge.model.algebra import Ask, QueryForm
from streamgauge.model.report import DueReport, View
from streamgauge.model.terms import XSD, Row, Triple
from streamgauge.query.parser import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.spark.answers import answers, refuse
from streamgauge.spark.intervals import contents
from tests.examples import examples, proving
from tests.spark.streams import table
from tests.spark.together import together
from tests.sparql.draw import OPERATORS, queries, triples
from tests.sparql.pyoxigraph.restated import restated

CANONICAL = Canonical()
Element = tuple[int, tuple[Triple, ...]]


@dataclass(frozen=True)
class Run:
    """Elements in order of arrival and the reports that are due over them."""

    elements: tuple[Element, ...]
    due: tuple[DueReport, ...]
    static: tuple[Triple, ...] = ()

    def content(self, report: DueReport) -> frozenset[Triple]:
        inside = (
            added
            for rank, (time, added) in enumerate(self.elements)
            if report.views[0].first <= time <= report.last and rank < report.seen
        )
        return frozenset(triple for added in inside for triple in added)

    def expected(self, query: QueryForm) -> list[Counter[Row]]:
        return [solutions((*self.content(report), *self.static), query) for report in self.due]


def solutions(content: Sequence[Triple], query: QueryForm) -> Counter[Row]:
    store = ox.Store()
    store.extend(ox.parse("\n".join(f"{s} {p} {o} ." for s, p, o in content), format=ox.RdfFormat.N_TRIPLES))
    result = store.query(sparql(restated(query)))
    if isinstance(query, Ask):
        return Counter([(f'"{str(bool(result)).lower()}"^^<{XSD}boolean>',)])
    names = query.variables  # type: ignore[union-attr]
    return Counter(tuple(None if row[n] is None else CANONICAL.term(row[n]) for n in names) for row in result)  # type: ignore[union-attr]


def actual(run: Run, rows: Iterable[tuple]) -> list[Counter[Row]]:
    bags: list[Counter[Row]] = [Counter() for _ in run.due]
    for report, *row in rows:
        bags[report][tuple(row)] += 1
    return bags


@st.composite
def runs(draw: st.DrawFn, most: int = 6) -> Run:
    """Up to ``most`` small streams behind each other, each with its own windows, late elements and repeats."""
    elements: list[Element] = []
    due: list[DueReport] = []
    for index in range(draw(st.integers(1, most))):
        start, before = index * 1000, len(elements)
        pool = draw(triples(14))
        graph = st.lists(st.sampled_from(pool), max_size=4, unique=True) if pool else st.just([])
        elements += draw(st.lists(st.tuples(st.integers(start, start + 20), graph.map(tuple)), max_size=7))
        due += draw(_due(start, before, len(elements)))
    return Run(tuple(elements), tuple(due), draw(triples(4)))


@st.composite
def _due(draw: st.DrawFn, start: int, low: int, high: int) -> list[DueReport]:
    size, slide = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    if draw(st.booleans()):  # regular windows that have seen everything
        return [DueReport(c, (View(c - size, c, c - size, c - 1, high),)) for c in range(start, start + 24, slide)]
    count = draw(st.integers(1, 6))
    firsts, lasts = (
        sorted(draw(st.lists(st.integers(start, start + 20), min_size=count, max_size=count))) for _ in "fl"
    )
    seen = sorted(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))
    return [DueReport(b, (View(a, b, a, b, n),)) for a, b, n in zip(firsts, lasts, seen, strict=True)]


def check(spark: SparkSession, *cases: tuple[Run, QueryForm]) -> None:
    """One job answers all cases."""
    tables = {run: table(spark, run.elements) for run in {run for run, _ in cases}}
    frames = [answers(spark, tables[run], run.due, query, run.static) for run, query in cases]
    for (run, query), rows in zip(cases, together(frames), strict=True):
        for report, (wanted, got) in enumerate(zip(run.expected(query), actual(run, rows), strict=True)):
            assert got == wanted, f"report {report}: missing {wanted - got}, surplus {got - wanted} of {sparql(query)}"


TOGETHER = 6 if proving() else 3
"""Drawn queries of one job."""


@pytest.mark.heavy("a plan of several drawn queries")
@examples(1, prove=80)
@given(
    st.lists(
        st.tuples(runs(), queries(OPERATORS).filter(lambda query: refuse(query) is None)),
        min_size=TOGETHER,
        max_size=TOGETHER,
    )
)
def test_drawn_runs_and_queries(tiny: SparkSession, drawn: list[tuple[Run, QueryForm]]) -> None:
    check(tiny, *drawn)


@examples(4, prove=40)
@given(runs())
def test_sizes_and_changes(tiny: SparkSession, run: Run) -> None:
    held = [run.content(report) for report in run.due]
    result = contents(table(tiny, run.elements), run.due)
    assert result.sizes == tuple(map(len, held))
    assert result.changed == {
        i for i, (now, before) in enumerate(zip(held, [frozenset(), *held], strict=False)) if now != before
    }


def literal(value: object, kind: str) -> str:
    return f'"{value}"^^<{XSD}{kind}>'


def observed(index: int) -> Element:
    """Three triples of an observation with an xsd:float, and now and then something else about it."""
    name, value = f"<urn:obs{index}>", literal((index * 37) % 101, "float")
    extras = (literal(3, "integer"), '"x"@en', literal("1.5", "decimal"), '"abc"', "<urn:a>", "_:b")
    more = ((name, "<urn:more>", extras[index % 7]),) if index % 7 < 6 else ()
    flag = (f"<urn:sensor{index % 3}>", "<urn:on>", literal(("true", "false")[index % 5 > 2], "boolean"))
    return index * 500, (
        (name, "<urn:by>", f"<urn:sensor{index % 4}>"),
        (name, "<urn:result>", f"_:r{index}"),
        (f"_:r{index}", "<urn:value>", value),
        flag,
        *more,
    )


OBSERVED = "?o <urn:by> ?s ; <urn:result> ?r . ?r <urn:value> ?v "
PAIRS = "?o1 <urn:by> ?s ; <urn:result> [<urn:value> ?v1] . ?o2 <urn:by> ?s ; <urn:result> [<urn:value> ?v2] "
STATIC = (
    ("<urn:sensor0>", "<urn:in>", "<urn:room1>"),
    ("<urn:sensor1>", "<urn:in>", "<urn:room2>"),
    ("<urn:sensor2>", "<urn:on>", literal("true", "boolean")),
)
CASES = (
    f"SELECT ?o ?v {{ {OBSERVED} FILTER(?v > 50.0) }}",
    f"SELECT (COUNT(?v) AS ?n) (SUM(?v) AS ?t) (AVG(?v) AS ?a) (MAX(?v) AS ?m) {{ {OBSERVED} FILTER(?v > 95.0) }}",
    f"SELECT ?s (COUNT(*) AS ?n) (SUM(?v) AS ?t) (MIN(?v) AS ?m) {{ {OBSERVED} }} GROUP BY ?s HAVING(COUNT(*) > 2)",
    f"SELECT ?o1 ?o2 ?d {{ {PAIRS} FILTER(?v1 - ?v2 > 10.5) BIND(?v1 - ?v2 AS ?d) }}",
    f"SELECT ?S ?s {{ {OBSERVED} . ?O <urn:by> ?S FILTER(?v > 90 && ?O = ?o) }}",
    "SELECT * { ?o <urn:by> ?s OPTIONAL { ?o <urn:more> ?x FILTER(?x = 3) } ?s <urn:in> ?room }",
    "SELECT * { ?o <urn:by> ?s OPTIONAL { ?o <urn:more> ?x } OPTIONAL { ?s <urn:in> ?x } }",
    "SELECT DISTINCT ?s { ?o <urn:by> ?s MINUS { ?s <urn:on> false } }",
    "SELECT ?s ?b { ?s <urn:on> ?b FILTER NOT EXISTS { ?s <urn:in> ?room } }",
    f"SELECT ?o {{ {OBSERVED} FILTER EXISTS {{ ?p <urn:by> ?s ; <urn:result>/<urn:value> ?w FILTER(?w > ?v) }} }}",
    "SELECT ?s (STR(?b) AS ?t) { { ?s <urn:on> ?b } UNION { ?s <urn:in> ?b } "
    "VALUES (?s ?k) { (<urn:sensor1> 1) (UNDEF 2) } }",
    "SELECT (SUM(?x) AS ?t) (COUNT(?x) AS ?c) (MIN(?x) AS ?m) { ?o <urn:by> ?s OPTIONAL { ?o <urn:more> ?x } }",
    "SELECT ?x (COUNT(*) AS ?n) { ?o <urn:by> ?s OPTIONAL { ?o <urn:more> ?x } } GROUP BY ?x",
    "SELECT ?n ?s { ?s <urn:on> true { SELECT (COUNT(*) AS ?n) { ?o <urn:by> <urn:sensor0> } } }",
    "ASK { ?o <urn:more> 'abc' }",
)


ALL = pytest.mark.prove


@pytest.mark.parametrize(
    ("count", "first", "step"),
    [(24, 1, 2), (400, 2, 4), pytest.param(24, 0, 1, marks=ALL), pytest.param(400, 0, 1, marks=ALL)],
)
def test_cases(spark: SparkSession, count: int, first: int, step: int) -> None:
    """The long stream is cut into blocks of reports, the short one is not; some of the cases each in the suite."""
    due = [DueReport(c, (View(c - 4000, c, c - 4000, c - 1, 1 << 40),)) for c in range(1000, count * 500, 1000)]
    run = Run(tuple(observed(index) for index in range(count)), tuple(due), STATIC)
    check(spark, *((run, parse_sparql(text)) for text in CASES[first::step]))


def test_no_report_and_no_triple(spark: SparkSession) -> None:
    query = parse_sparql("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
    assert answers(spark, table(spark, []), [], query).columns == ["report", "n"]
    check(spark, (Run((), (DueReport(1, (View(0, 1, 0, 0, 0),)), DueReport(2, (View(1, 2, 1, 1, 0),)))), query))


def test_reports_out_of_order_are_refused(spark: SparkSession) -> None:
    due = [DueReport(2, (View(1, 2, 1, 1, 9),)), DueReport(1, (View(0, 1, 0, 0, 9),))]
    with pytest.raises(ValueError, match="first decreases"):
        contents(table(spark, []), due)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("SELECT (RAND() AS ?x) { ?s ?p ?o }", "RAND()"),
        ("ASK { ?s ?p ?o FILTER EXISTS { ?o ?p ?q BIND(1 AS ?s) } }", "EXISTS that assigns ?s"),
    ],
)
def test_refusals(spark: SparkSession, text: str, part: str) -> None:
    assert part in (refuse(parse_sparql(text)) or "")
    with pytest.raises(ValueError, match=re.escape(part)):
        answers(spark, table(spark, []), [], parse_sparql(text))


def test_the_window_is_no_connection(spark: SparkSession) -> None:
    """No plan of connected patterns pairs rows by their reports alone."""
    run = Run(
        tuple(observed(index) for index in range(400)), tuple(DueReport(t, (View(t, t, t, t, 999),)) for t in range(9))
    )
    parsed = answers(spark, table(spark, run.elements), run.due, parse_sparql(f"SELECT * {{ {PAIRS} }}"))
    plan = parsed._jdf.queryExecution().executedPlan().toString()
    assert "Cartesian" not in plan
    assert "NestedLoop" not in plan
    assert plan.count("Inner") >= 5
