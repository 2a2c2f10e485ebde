"""Which evaluator judges, what it is given, and that both say the same of undecided rows and of every change."""

from dataclasses import replace

import pytest

from streamgauge.formats.stream import StreamError, write
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Report, Tick
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.judging.judge import DEFINITION_LIMIT, Means, choose, judge_run, other_stream
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, stream
from tests.oracle.runs import right_run

HOT = "SELECT ?s (AVG(?v) AS ?mean) { ?s <urn:p> ?v } GROUP BY ?s HAVING(AVG(?v) > 7)"
TEXT = "1: a p 6.9f. a p 7.1f. b p 8f. c p 6f. | 3: d p 7f. | 6: a p 9f. b p 6.9f. b p 7.1f. | 11: e p 7.5. a p 7f."
CHANGE = replace(RSPQL, name="change", report=frozenset({Report.CONTENT_CHANGE}), tick=Tick.BATCH, partial_head=True)


def query(*windows: Window) -> ContinuousQuery:
    over = tuple(StreamWindow(STREAM, window, f"urn:w{n}") for n, window in enumerate(windows))
    return ContinuousQuery(parse_sparql("SELECT * { ?s ?p ?o }"), over)


@pytest.fixture
def table(tmp_path):
    write(stream(TEXT), tmp_path / "stream.parquet")
    return tmp_path / "stream.parquet"


def test_never_the_evaluator_that_the_engine_runs_on(table):
    asked = query(Window(5, 5))
    assert choose(table, asked, RSPQL, None) == "definition"
    assert choose(table, asked, RSPQL, "changes") == "definition"
    assert choose(table, asked, RSPQL, "definition") == "spark"
    assert choose(table, asked, RSPQL, "spark") == "definition"


@pytest.mark.parametrize(
    ("windows", "semantics", "large"),
    [
        ([Window(10_000, 10_000)], RSPQL, False),
        ([Window(10_000, 1)], RSPQL, True),
        ([Window(3_000, 1, "count")], RSPQL, True),
        ([Window(3_000, 3_000, "count")], RSPQL, False),
        ([Window(1_000, 1_000, "landmark")], RSPQL, False),
        ([Window(1, 1, "landmark")], RSPQL, True),
        ([Window(1, 1), Window(10_000, 1)], RSPQL, True),
        ([Window(30_000, 30_000)], CHANGE, True),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_large_work_goes_to_spark(tmp_path, windows, semantics, large):
    file = tmp_path / "stream.parquet"
    write(stream(" | ".join(f"{t}: a p {t}." for t in range(0, 60_000, 20))), file)
    chosen = choose(file, query(*windows), semantics, None)
    assert (chosen == "spark") is large, DEFINITION_LIMIT


def test_no_stream_in_common_is_named(table):
    asked = query(Window(5, 5))
    assert other_stream(table, asked) is None
    elsewhere = replace(asked, windows=(replace(asked.windows[0], stream="urn:else"),))
    assert "<urn:else>" in (other_stream(table, elsewhere) or "")
    both = replace(asked, windows=(*asked.windows, *elsewhere.windows))
    assert other_stream(table, both) is None


def test_a_stream_table_that_cannot_be_read_is_named(table):
    table.write_bytes(table.read_bytes()[:-20])
    with pytest.raises(StreamError, match=r"stream\.parquet"):
        choose(table, query(Window(5, 5)), RSPQL, None)


def in_any_order(verdict: Verdict) -> Verdict:
    """Without the evaluator's name and the order of rows."""
    bags = ("missing", "surplus", "doubtful")
    windows = [replace(one, **{name: tuple(sorted(getattr(one, name))) for name in bags}) for one in verdict.windows]
    return replace(verdict, evaluator=None, windows=tuple(windows))


@pytest.mark.parametrize(
    "semantics", [pytest.param(RSPQL, marks=pytest.mark.prove, id="rspql"), pytest.param(CHANGE, id="change")]
)
def test_spark_and_definition_say_the_same(spark, table, semantics):
    """Rows are compared under window close, changes counted under content change."""
    run = right_run(semantics, text=TEXT, sparql=HOT, window=(5, 5), advance=15)
    lost = replace(run, answers=tuple(replace(answer, added=answer.added[1:]) for answer in run.answers))
    found = [judge_run(lost, table, Means(lambda: spark, name)) for name in ("definition", "spark")]
    assert found[0].undecided
    assert found[0].evaluator != found[1].evaluator
    assert in_any_order(found[0]) == in_any_order(found[1])
    assert judge_run(run, table, Means(lambda: spark, "definition")).judgement is Judgement.RIGHT


def test_time_that_goes_on_without_end_is_refused_not_waited_for(table):
    run = right_run(RSPQL, text=TEXT, window=(5, 5), advance=15)
    endless = replace(run, header=replace(run.header, advanced_to=20_000_000))
    verdict = judge_run(endless, table, Means(lambda: None, "definition"))  # type: ignore[arg-type]
    assert verdict.judgement is Judgement.UNKNOWN
    assert "4,000,000 instants" in verdict.reason
    assert choose(table, query(Window(5, 5)), RSPQL, None, 20_000_000) == "spark"


def test_large_static_data_is_judged_on_spark(tmp_path):
    table = tmp_path / "stream.parquet"
    write(stream("0: a p b. | 9: b p c."), table)
    asked, much = query(Window(5, 5)), (("<urn:a>", "<urn:q>", "<urn:b>"),) * 1_000_000
    assert choose(table, asked.with_static(much), RSPQL, None, 10) == "definition"
    assert choose(table, asked.with_static(much), RSPQL, None, 25) == "spark"
