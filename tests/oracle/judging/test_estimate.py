"""The estimated cost of judging: which evaluator it picks, and that more work never costs less."""

import sys
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.stream import write
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Counting, Origin, Report, Scope, Tick
from streamgauge.oracle.judging.estimate import (
    Work,
    choice,
    definition_seconds,
    spark_seconds,
    work_of,
)
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL
from streamgauge.spark import requirements
from tests.notation import STREAM, stream

CHANGE = replace(RSPQL, name="change", report=frozenset({Report.CONTENT_CHANGE}), tick=Tick.BATCH, partial_head=True)
TWICE = "SELECT ?a ?b { ?a <urn:p> ?v . ?b <urn:p> ?w FILTER(?v - ?w > 60.0) }"

MEASURED = [
    # triples, reports, triples put into graphs, triples asked; CPU s of the definition and of Spark (warm)
    (10_500, 6, 10_500, 10_500, 0.05, 5.16),
    (210_021, 6, 210_021, 210_021, 0.92, 9.14),
    (840_049, 6, 840_049, 840_049, 4.21, 13.93),
    (210_021, 30, 1_050_105, 1_050_105, 2.56, 15.99),
    (630_042, 30, 3_150_210, 3_150_210, 9.54, 13.22),
    (63_000, 30, 315_000, 315_000, 0.97, 6.12),
    (3_500, 480, 3_500, 841_599, 0.78, 6.88),
]
"""Points of ``python -m benchmarks.oracle --parts choice``."""


def query(*windows: Window, sparql: str = "SELECT * { ?s ?p ?o }") -> ContinuousQuery:
    over = tuple(StreamWindow(STREAM, window, f"urn:w{n}") for n, window in enumerate(windows))
    return ContinuousQuery(parse_sparql(sparql), over, sparql=sparql)


@pytest.fixture(autouse=True)
def java(monkeypatch):
    """Java is here, also where it is not: none of these tests starts it."""
    monkeypatch.setattr(requirements, "java_lack", lambda: "")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """1,000 triples, one every 10 ms."""
    file = tmp_path_factory.mktemp("estimate") / "stream.parquet"
    write(stream(" | ".join(f"{time}: a p {time}." for time in range(0, 10_000, 10))), file)
    return file


@pytest.mark.parametrize(("triples", "reports", "loaded", "held", "definition", "spark"), MEASURED)
def test_the_cheaper_one_is_picked_at_every_measured_point(triples, reports, loaded, held, definition, spark):
    work = Work(triples, 0, reports, loaded, held, max(triples, loaded))
    picked = definition_seconds(work) <= spark_seconds(work, warm=True)
    assert picked == (definition <= spark)
    for estimate, measured in ((definition_seconds(work), definition), (spark_seconds(work, warm=True), spark)):
        assert measured / 2.5 < estimate < measured * 2.5


@given(st.data())
def test_more_work_never_costs_less(data):
    sizes = ("triples", "static", "reports", "loaded", "held", "rows")
    assert set(sizes) == {field.name for field in fields(Work)}
    small = {name: data.draw(st.integers(1, 10**7), name) for name in sizes}
    large = {name: value + data.draw(st.integers(0, 10**7), name) for name, value in small.items()}
    less, more = Work(**small), Work(**large)
    assert definition_seconds(less) <= definition_seconds(more)
    assert spark_seconds(less, warm=True) <= spark_seconds(more, warm=True) < spark_seconds(more, warm=False)


def test_work_follows_from_the_windows_and_their_reports(table):
    close = work_of(table, query(Window(1000, 1000)), RSPQL)
    assert (close.triples, close.static) == (1000, 0)
    assert close.held == close.loaded == close.rows == pytest.approx(1000, rel=0.02)
    assert close.reports == pytest.approx(10, rel=0.02)
    sliding = work_of(table, query(Window(1000, 100)), RSPQL)
    assert sliding.held == pytest.approx(10 * close.held, rel=0.02)
    both = work_of(table, query(Window(1000, 1000), Window(1000, 100)), RSPQL)
    assert both.held == pytest.approx(close.held + sliding.held)
    change = work_of(table, query(Window(1000, 1000)), CHANGE)
    assert (change.reports, change.held, change.loaded) == (1000, pytest.approx(100_100, rel=0.01), close.loaded)
    for kept in (replace(CHANGE, scope=Scope.RANGE), replace(CHANGE, content=Counting.BAG)):
        assert work_of(table, query(Window(1000, 1000)), kept).loaded == change.held
    stamped = query(Window(1000, 1000), sparql="SELECT (timestamp(?s, ?p, ?o) AS ?t) { ?s ?p ?o }")
    assert work_of(table, stamped, CHANGE).loaded == change.held
    counted = work_of(table, query(Window(100, 50, "count")), RSPQL)
    assert (counted.held, counted.reports) == (2000, 20)
    assert work_of(table, query(Window(1000, 1000, "landmark")), RSPQL).held == pytest.approx(5000, rel=0.01)


def test_an_empty_stream_is_no_work(tmp_path):
    write(stream(""), tmp_path / "stream.parquet")
    for semantics in (RSPQL, CHANGE):
        assert work_of(tmp_path / "stream.parquet", query(Window(1000, 1000)), semantics) == Work(0, 0, 0, 0, 0, 0)


def test_instants_of_a_clock_count_up_to_where_time_came(table):
    asked = query(Window(1000, 1000))
    assert work_of(table, asked, RSPQL, 50_000).reports == 50
    assert work_of(table, asked, replace(RSPQL, t0=40_000), 50_000).reports == pytest.approx(10, rel=0.02)
    assert work_of(table, asked, replace(RSPQL, origin=Origin.FIRST), 50_000).reports == 50
    periodic = replace(RSPQL, report=frozenset({Report.PERIODIC}), period=20)
    assert work_of(table, asked, periodic, 50_000).reports == 2500


def test_static_data_is_part_of_each_content(table):
    static = query(Window(1000, 1000)).with_static((("<urn:a>", "<urn:q>", "<urn:b>"),) * 5)
    assert work_of(table, static, RSPQL).static == 5


def test_the_choice_says_both_estimates(table):
    few = choice(table, query(Window(1000, 1000)), RSPQL, None, warm=False)
    assert few.evaluator == "definition"
    assert few.sentence.startswith("definition: the definition would take about 0.0 s of CPU for 10 reports over ")
    assert few.sentence.endswith("Spark about 23 s with its start")
    assert choice(table, query(Window(1000, 1000)), RSPQL, None, warm=True).sentence.endswith("Spark about 5.0 s")
    many = query(Window(1000, 1000)).with_static((("<urn:a>", "<urn:q>", "<urn:b>"),) * 300_000)
    assert choice(table, many, RSPQL, None, warm=False).evaluator == "definition"
    assert choice(table, many, RSPQL, None, warm=True).evaluator == "spark"
    own = choice(table, many, RSPQL, "spark", warm=True)
    assert own.evaluator == "definition"
    assert own.sentence.startswith("definition, because the engine runs on spark: ")
    assert choice(table, query(Window(1000, 1000)), RSPQL, "definition").evaluator == "spark"


def test_what_spark_refuses_is_the_definitions(table):
    bag = replace(RSPQL, content=Counting.BAG)
    much = query(Window(1000, 1000), sparql="SELECT ?s { ?s <urn:p> ?o FILTER EXISTS { ?s <urn:q> ?o } }")
    result = choice(table, much.with_static((("<urn:a>", "<urn:q>", "<urn:b>"),) * 500_000), bag, None, warm=True)
    assert result.evaluator == "definition"
    assert result.sentence.startswith("definition, because Spark does not judge EXISTS over a content that is a bag: ")


def test_where_spark_cannot_start_the_definition_judges_what_spark_would(table, monkeypatch):
    much = query(Window(1000, 1000)).with_static((("<urn:a>", "<urn:q>", "<urn:b>"),) * 300_000)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = choice(table, much, RSPQL, None, warm=True)
    assert result.evaluator == "definition"
    assert result.sentence.startswith("definition, because Spark needs PySpark: pip install 'streamgauge[spark]': ")
    own = choice(table, much, RSPQL, "definition", warm=True)
    assert own.evaluator == "spark"  # no engine is judged by its own evaluator
