"""What the evaluator is given that was chosen, and queries in the place of a run's own."""

from dataclasses import replace

import pytest

from streamgauge.formats.stream import elements, write
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Clock, Origin
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.judging.estimate import choice
from streamgauge.oracle.judging.judge import (
    Means,
    expectation,
    expected_reports,
    first_time,
    judge_run,
    judge_stored,
    other_stream,
    with_query,
)
from streamgauge.query import QueryError, parse_sparql
from streamgauge.semantics.profiles import RSPQL
from streamgauge.semantics.refusal import RefusedError
from tests.notation import STREAM, stream
from tests.oracle.runs import right_run

TEXT = "1: s1 p o1. | 6: s2 p o2. | 12: s3 p o3."


def no_spark():
    raise AssertionError("the definition needs no session")


@pytest.fixture
def table(tmp_path):
    write(stream(TEXT), tmp_path / "stream.parquet")
    return tmp_path / "stream.parquet"


def query(*windows: Window) -> ContinuousQuery:
    over = tuple(StreamWindow(STREAM, window, f"urn:w{n}" if n else None) for n, window in enumerate(windows))
    return ContinuousQuery(parse_sparql("SELECT ?s { ?s <urn:p> ?o }"), over)


def test_an_empty_stream_is_the_definitions(tmp_path):
    write(stream(""), tmp_path / "stream.parquet")
    file = tmp_path / "stream.parquet"
    assert choice(file, query(Window(10, 10)), RSPQL, None).evaluator == "definition"
    first = replace(RSPQL, origin=Origin.FIRST)
    assert choice(file, query(Window(10, 10)), first, None, 10).evaluator == "definition"
    expect, first, last = expectation("definition", file, Means(no_spark), lambda: tuple(elements(file)))
    assert (first, last) == (None, 0)
    assert [report.due.instant for report in expect(query(Window(5, 5)), RSPQL, 10, 0)] == [5, 10]
    assert other_stream(file, query(Window(5, 5))) is None


def test_the_first_element_is_that_of_the_smallest_system_time(table):
    held = stream(TEXT)
    _, first, last = expectation("definition", table, Means(no_spark), lambda: tuple(elements(table)))
    assert (first, last) == (1, 12)
    assert first_time([replace(element, sequence=-element.sequence) for element in held]) == 12
    assert first_time([]) is None


@pytest.mark.parametrize("clock", [Clock.APPLICATION, Clock.ARRIVAL])
def test_no_delay_is_too_long_unless_one_is_named(table, clock):
    run = right_run(RSPQL, text=TEXT)
    run = replace(run, header=replace(run.header, semantics=replace(RSPQL, clock=clock)))
    slow = replace(run, answers=tuple(replace(answer, received=answer.received + 10**12) for answer in run.answers))
    assert judge_run(slow, table, Means(no_spark)).judgement is Judgement.RIGHT
    assert judge_run(slow, table, Means(no_spark, max_delay=1.0)).judgement is Judgement.LATE


def test_both_clocks_are_judged_by_the_definition(table):
    run = right_run(RSPQL, text=TEXT)
    wall = replace(run, header=replace(run.header, semantics=replace(RSPQL, clock=Clock.ARRIVAL)))
    verdict = judge_run(wall, table, Means(no_spark))
    assert verdict.judgement is Judgement.RIGHT
    assert verdict.other_clock == ("application", 1.0, 1.0)
    endless = replace(wall, fed=(*wall.fed[:-1], replace(wall.fed[-1], handed=10**14)))
    verdict = judge_run(endless, table, Means(no_spark, "definition"))
    assert verdict.judgement is Judgement.UNKNOWN
    assert "too many for the definition" in verdict.reason


def test_plain_sparql_judges_over_the_windows_of_the_run():
    run = right_run(RSPQL, text=TEXT)
    named = replace(run.header.query, windows=(replace(run.header.query.windows[0], name="urn:w"),))
    run = replace(run, header=replace(run.header, query=named))
    plain = with_query(run, "SELECT ?o { ?s <urn:p> ?o FILTER(?o != ${NOT}) }", {"NOT": "<urn:o1>"})
    text = "SELECT ?o { ?s <urn:p> ?o FILTER(?o != <urn:o1>) }"
    assert (plain.header.query.sparql, plain.header.query_text) == (text, text)
    assert plain.header.query.form == parse_sparql(text)
    assert [window.name for window in plain.header.query.windows] == [None]
    graph = with_query(run, "SELECT ?o { GRAPH ?g { ?s <urn:p> ?o } }", {})
    assert [window.name for window in graph.header.query.windows] == ["urn:w"]


def test_a_continuous_query_judges_with_its_own_windows_and_the_static_data():
    run = right_run(RSPQL, text=TEXT)
    run = replace(
        run, header=replace(run.header, query=run.header.query.with_static((("<urn:a>", "<urn:p>", "<urn:b>"),)))
    )
    window = f"FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE PT7S STEP PT7S]"
    text = f"SELECT ?s {window} {{ WINDOW <urn:w> {{ ?s <urn:p> ?o }} }}"
    result = with_query(run, text, {}).header.query
    assert [window.window for window in result.windows] == [Window(7000, 7000)]
    assert result.static == run.header.query.static


def test_a_parameter_without_a_value_and_a_broken_query_are_told():
    run = right_run(RSPQL, text=TEXT)
    with pytest.raises(QueryError, match="TEMP"):
        with_query(run, "SELECT ?s { ?s ?p ?o FILTER(?o > ${TEMP}) }", {})
    with pytest.raises(QueryError):
        with_query(run, "SELECT ?s { ?s ?p }", {})
    with pytest.raises(QueryError, match="OTHER"):
        with_query(run, "SELECT ?s { ?s ?p ?o }", {"OTHER": 1})


def test_a_query_of_another_stream_is_judged_by_nobody(tmp_path):
    write(stream(TEXT), tmp_path / "stream.parquet")
    run = right_run(RSPQL, text=TEXT)
    windows = (replace(run.header.query.windows[0], stream="urn:other"),)
    other = replace(run, header=replace(run.header, query=replace(run.header.query, windows=windows)))
    verdict = judge_run(other, tmp_path / "stream.parquet", Means(no_spark))
    assert verdict.judgement is Judgement.UNKNOWN
    assert verdict.reason == other_stream(tmp_path / "stream.parquet", other.header.query)
    assert "urn:other" in verdict.reason


def test_answers_that_are_changes_are_judged_as_the_bags_that_they_add_up_to(table):
    """s2 stays: only s3, which came, and s1, which went, are told of the second window."""
    run = right_run(RSPQL, text=TEXT, window=(10, 5), advance=15)
    first, second = run.answers
    (s1, s2), (_, s3) = first.added, second.added
    changes = replace(run, answers=(first, replace(second, added=(s3,), removed=(s1,))))
    assert second.added == (s2, s3)
    assert judge_run(changes, table, Means(no_spark, "definition")).judgement is Judgement.RIGHT


def test_another_stream_than_the_querys_needs_no_session(table):
    run = right_run(RSPQL, text=TEXT)
    other = replace(run.header.query, windows=(StreamWindow("urn:other", Window(5, 5)),))
    strange = replace(run, header=replace(run.header, query=other))
    verdict = judge_stored(strange, lambda: strange, table, Means(no_spark, "spark"))
    assert verdict.judgement is Judgement.UNKNOWN
    assert verdict.reason.startswith("the query reads <urn:other>, but what was recorded is ")
    with pytest.raises(RefusedError, match="the query reads <urn:other>"):
        expected_reports(other, RSPQL, table, Means(no_spark))
