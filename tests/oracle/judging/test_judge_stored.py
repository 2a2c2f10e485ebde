"""Which evaluators judge a run on disk in its tables, and what judges it where none can; Spark's part is a stand-in."""

from dataclasses import replace
from typing import Any

import pytest

from streamgauge.formats.manifest import Manifest
from streamgauge.formats.places import RemotePlace, RemotePlaceError
from streamgauge.formats.stream import write
from streamgauge.model.semantics import R2S, Due, Report, Tick
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging import judge, tables
from streamgauge.oracle.judging.estimate import EvaluatorChoice
from streamgauge.oracle.judging.judge import Means, judge_stored
from streamgauge.oracle.judging.oracle import JudgingRules, check, unknown
from streamgauge.semantics.profiles import RSPQL
from streamgauge.spark import hadoop_tables
from tests.notation import STREAM, stream
from tests.oracle.runs import right_run

TEXT = "1: s1 p o1. | 6: s2 p o2. | 12: s3 p o3."
RUN = right_run(RSPQL, text=TEXT)
REMOTE = RemotePlace("hdfs://host/stream")


class Tables:
    """Judges in tables unless it refuses the evaluator, and keeps what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, float | None, bool, bool]] = []
        self.refuses: tuple[str, ...] = ()
        monkeypatch.setattr(tables, "judge_tables", self._judged)

    def _judged(self, _session: Any, run: Any, _stream: Any, rules: JudgingRules, progress: Any, *, gracious: bool):
        progress(1, 1)
        self.asked.append((rules.evaluator, rules.max_delay, rules.exact_datatypes, gracious))
        if rules.evaluator in self.refuses:
            raise tables.NotInTablesError(f"rows that {rules.evaluator} cannot count")
        return replace(check(RUN, definition(stream(TEXT)), 1, JudgingRules()), reason="in tables")

    @property
    def evaluators(self) -> list[str]:
        return [entry[0] for entry in self.asked]


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Tables:
    return Tables(monkeypatch)


@pytest.fixture
def table(tmp_path):
    write(stream(TEXT), tmp_path / "stream.parquet")
    return tmp_path / "stream.parquet"


def in_tables(run: Any, place: Any, means: Means) -> bool:
    return judge_stored(run, lambda: RUN, place, means).reason == "in tables"


def test_spark_judges_in_tables_and_small_streams_of_the_definition_do_not(judged, table):
    assert in_tables(RUN, table, Means(object, "spark", max_delay=7.0, exact_datatypes=True, gracious=True))
    assert judged.asked == [("spark", 7.0, True, True)]
    assert not in_tables(RUN, table, Means(object, "definition"))
    assert not in_tables(RUN, table, Means(object, "definition", in_tasks=3))
    assert not in_tables(None, table, Means(object, "definition", in_tasks=2))
    assert judged.evaluators == ["spark"]
    assert in_tables(RUN, table, Means(object, "definition", in_tasks=2))
    assert judged.evaluators == ["spark", "definition"]


def test_half_is_done_when_borders_are_still_sought(judged, table):
    done: list[tuple[int, int]] = []
    for gracious in (False, True):
        in_tables(RUN, table, Means(object, "spark", gracious=gracious, progress=lambda *item: done.append(item)))
    assert done == [(1, 1), (1, 2)]


def test_a_large_stream_is_judged_by_any_evaluator_that_can(judged, table):
    judged.refuses = ("definition",)
    assert in_tables(RUN, table, Means(object, in_tasks=2))
    assert judged.evaluators == ["definition", "spark"]
    judged.refuses = ("definition", "spark")
    assert not in_tables(RUN, table, Means(object, in_tasks=2))
    assert judged.evaluators == ["definition", "spark"] * 2


def test_of_what_spark_judges_by_changes_the_definition_tries_no_table(judged, table, monkeypatch):
    monkeypatch.setattr(judge, "choice", lambda *_: EvaluatorChoice("spark", "spark: it costs less"))
    monkeypatch.setattr(judge, "judge_run", lambda run, *_: unknown(run, "judged by rows"))
    judged.refuses = ("spark",)
    change = replace(RSPQL, report=frozenset({Report.CONTENT_CHANGE}), tick=Tick.BATCH, partial_head=True)
    periodic = replace(change, report=frozenset({Report.PERIODIC}), period=5)
    for semantics, evaluators in ((change, []), (periodic, ["spark", "definition"])):
        judged.asked.clear()
        in_tables(right_run(semantics, text=TEXT), table, Means(object, in_tasks=2))
        assert judged.evaluators == evaluators


def test_a_query_that_the_definition_refuses_is_unknown_with_the_reason(judged, table):
    late = replace(RUN, header=replace(RUN.header, semantics=replace(RSPQL, due=Due.LAST, lateness=1)))
    verdict = judge_stored(late, lambda: late, table, Means(lambda: None))
    assert (verdict.judgement, judged.asked) == (Judgement.UNKNOWN, [])
    assert "late" in verdict.reason


def test_the_evaluator_is_chosen_once(table):
    messages: list[str] = []
    verdict = judge_stored(RUN, lambda: RUN, table, Means(object, chosen=messages.append))
    assert (verdict.judgement, verdict.evaluator, len(messages)) == (Judgement.RIGHT, "definition", 1)


def test_no_session_is_started_for_what_no_evaluator_judges_in_tables(judged, table):
    def no_session() -> Any:
        raise AssertionError("a session was started")

    own = replace(RUN, header=replace(RUN.header, evaluator="definition"))
    assert not in_tables(own, table, Means(no_session, "definition", in_tasks=2))
    failed = replace(RUN, header=replace(RUN.header, failure="it crashed"))
    assert not in_tables(failed, table, Means(no_session, in_tasks=2))


def test_the_definition_judges_in_tables_what_spark_does_not_count(judged, table):
    """A difference, which Spark refuses."""
    differences = right_run(replace(RSPQL, r2s=R2S.ISTREAM), text=TEXT)
    assert in_tables(differences, table, Means(object, "definition", in_tasks=2))
    assert judged.evaluators == ["definition"]


def test_an_engine_on_an_evaluator_is_judged_by_the_other(judged, table):
    own = replace(RUN, header=replace(RUN.header, evaluator="definition"))
    assert in_tables(own, table, Means(object, in_tasks=2))
    assert judged.evaluators == ["spark"]


def test_a_stream_on_another_file_system_is_judged_in_tables_alone(judged, monkeypatch):
    recorded = {"streams": (STREAM,)}
    monkeypatch.setattr(hadoop_tables, "manifest", lambda _session, _place: Manifest((), **recorded))
    assert in_tables(RUN, REMOTE, Means(object))
    assert judged.evaluators == ["spark"]
    judged.refuses = ("spark",)
    assert in_tables(RUN, REMOTE, Means(object))
    assert judged.evaluators == ["spark", "spark", "definition"]
    with pytest.raises(RemotePlaceError, match="hdfs://host/stream: rows that spark cannot count are judged on this "):
        judge_stored(RUN, lambda: RUN, REMOTE, Means(object, "spark"))
    with pytest.raises(RemotePlaceError, match="rows cannot be told by their answers is judged on this machine: copy"):
        judge_stored(None, lambda: RUN, REMOTE, Means(object))
    recorded["streams"] = ("urn:other",)
    verdict = judge_stored(RUN, lambda: RUN, REMOTE, Means(object))
    assert verdict.judgement is Judgement.UNKNOWN
    assert verdict.reason.endswith("(a file's is named by IRI=FILE)")
