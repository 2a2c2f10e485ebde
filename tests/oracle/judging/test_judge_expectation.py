"""Expected answers of a stream table and a query without a run: how far time comes, and what is refused."""

from dataclasses import replace

import pytest

from streamgauge.formats.stream import write
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S
from streamgauge.oracle.judging.judge import Means, expected_reports
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import CSPARQL, RSPQL
from streamgauge.semantics.refusal import RefusedError
from streamgauge.sources.named import Course
from tests.notation import STREAM, stream

PARTIAL = replace(RSPQL, name="partial", partial_head=True)


def no_spark():
    raise AssertionError("the definition needs no session")


MEANS = Means(no_spark)


@pytest.fixture
def table(tmp_path):
    write(stream("1: a p b. | 6: c p d. | 12: e p f."), tmp_path / "stream.parquet")
    return tmp_path / "stream.parquet"


def query(*windows: Window, name: str = STREAM) -> ContinuousQuery:
    form = parse_sparql("SELECT ?s { ?s <urn:p> ?o }")
    return ContinuousQuery(
        form, tuple(StreamWindow(name, window, f"urn:w{n}" if n else None) for n, window in enumerate(windows))
    )


def instants(table, semantics=RSPQL, window=Window(5, 5), **how):  # noqa: B008
    horizons: list[int] = []

    def name(horizon: int, _awaited: str) -> None:
        horizons.append(horizon)

    result = expected_reports(query(window), semantics, table, MEANS, name=name, **how)
    return [report.due.instant for report in result], horizons


def course(first: int, last: int) -> Course:
    """Time as a source tells it, which may come further than its elements."""
    course = Course()
    course.first, course.last = first, last
    return course


@pytest.mark.parametrize(
    ("how", "result", "horizon"),
    [
        ({}, [5, 10], 12),
        ({"course": course(1, 17)}, [5, 10, 15], 17),
        ({"course": course(7, 17)}, [10, 15], 17),
        ({"advance_to": "windows"}, [5, 10, 15], 17),
        ({"advance_to": 9}, [5], 9),
        ({"advance_to": 9, "course": course(1, 17)}, [5], 9),
        ({"windows": 1}, [5], 5),
        ({"windows": 3}, [5, 10, 15], 15),
        ({"windows": 2, "t0": 3}, [8, 13], 13),
        ({"t0": 3}, [8], 12),
        ({"t0": 0}, [5, 10], 12),
    ],
)
def test_time_comes_as_far_as_it_is_said(table, how, result, horizon):
    assert instants(table, **how) == (result, [horizon])


def test_so_many_windows_close_from_the_first_on(table):
    assert instants(table, window=Window(10, 4), windows=3) == ([10, 14, 18], [18])
    assert instants(table, PARTIAL, Window(10, 4), windows=3) == ([4, 8, 12], [12])


def test_without_t0_the_first_candidate_counts(table):
    seconds = replace(CSPARQL, t0=2000)
    assert instants(table, seconds, Window(5000, 5000), advance_to=8000)[0] == []
    assert instants(
        table, replace(seconds, notify_empty=True, report=RSPQL.report), Window(5000, 5000), advance_to=8000
    )[0] == [7000]


@pytest.mark.parametrize("windows", [[Window(5, 5), Window(5, 5)], [Window(5, 5, "count")]])
def test_a_number_of_windows_says_nothing_where_they_do_not_close_in_step(table, windows):
    with pytest.raises(RefusedError, match="say how far time comes"):
        expected_reports(query(*windows), RSPQL, table, MEANS, windows=2)


def test_another_stream_and_an_operator_that_is_not_there_are_refused(table):
    with pytest.raises(RefusedError, match="what was recorded is"):
        expected_reports(query(Window(5, 5), name="http://ex.org/other"), RSPQL, table, MEANS)
    with pytest.raises(RefusedError, match="csparql has no Istream"):
        expected_reports(replace(query(Window(5, 5)), r2s=R2S.ISTREAM), CSPARQL, table, MEANS)


def test_an_empty_stream_has_no_time(tmp_path):
    write(stream(""), tmp_path / "stream.parquet")
    assert instants(tmp_path / "stream.parquet") == ([], [0])
    assert instants(tmp_path / "stream.parquet", advance_to=5) == ([], [5])  # reports begin with the stream
