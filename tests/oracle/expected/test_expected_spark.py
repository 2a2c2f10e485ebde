"""The oracle on Spark expects what the definition expects: instants, scopes, sizes and bags, over whole semantics."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.formats.notation import term
from streamgauge.formats.stream import write
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Borders, Changes, Counting, EmptyAggregate, Report, Scope, Tick
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.on_spark import SparkReports, arrived, read_header
from streamgauge.oracle.expected.reports import definition, refuse_spark
from streamgauge.oracle.judging.judge import Means, expected_reports, judge_run
from streamgauge.oracle.worlds.closed import literal_class
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import CQELS, CQELS_1, CSPARQL, CSPARQL_097, RSPQL, SENS, YABENCH
from streamgauge.semantics.refusal import RefusedError
from tests.notation import STREAM, stream
from tests.oracle.runs import right_run

TEXT = " | ".join(
    f"{t}: s{t % 4} p o{t % 3}. s{t % 4} v {t % 5}. s{(t + 1) % 4} q s{t % 4}."
    for t in (0, 1, 1, 3, 4, 6, 6, 11, 13, 14, 19)
)
LATE = "2: s0 p o0. s0 v 1. | 9: s1 p o1. s1 v 2. | 1: s2 p o2. s2 v 3. | 7: s3 p o0. s3 v 4. | 15: s0 p o1. s0 v 2."
QUERIES = {
    "join": "SELECT ?s ?v { ?s <urn:p> ?o . ?s <urn:v> ?v FILTER(?v > 1) }",
    "aggregate": "SELECT (COUNT(*) AS ?n) (AVG(?v) AS ?a) { ?s <urn:v> ?v }",
    "optional": "SELECT DISTINCT ?s ?r { ?s <urn:p> ?o OPTIONAL { ?r <urn:q> ?s } }",
}
CLOSE = replace(RSPQL, name="close")
CHANGE = frozenset({Report.CONTENT_CHANGE})
CASES = {
    "close": (CLOSE, TEXT, "join"),
    "csparql": (replace(CSPARQL, time_unit=1, t0=1), TEXT, "optional"),
    "csparql-0.9.7": (replace(CSPARQL_097, time_unit=2), TEXT, "aggregate"),
    "cqels": (replace(CQELS, time_unit=1), TEXT, "join"),
    "cqels-1.x": (CQELS_1, TEXT, "join"),
    "yabench": (YABENCH, TEXT, "aggregate"),
    "triple by triple": (replace(CLOSE, report=CHANGE, tick=Tick.TUPLE, partial_head=True), TEXT, "join"),
    "element by element": (replace(CLOSE, report=CHANGE, tick=Tick.ELEMENT, partial_head=True), TEXT, "aggregate"),
    "late": (replace(CLOSE, lateness=3), LATE, "join"),
    "bag": (replace(CLOSE, report=CHANGE, content=Counting.BAG, partial_head=True), TEXT, "join"),
    "empty string": (replace(CLOSE, empty_aggregate=EmptyAggregate.EMPTY_STRING), TEXT, "aggregate"),
    "arrivals only": (replace(CLOSE, report=CHANGE, changes=Changes.ARRIVALS, r2s=R2S.DSTREAM), TEXT, "optional"),
    "sens": (replace(SENS, since=3), TEXT, "optional"),
    "periodic range": (
        replace(CLOSE, report=frozenset({Report.PERIODIC, Report.NON_EMPTY}), period=3, scope=Scope.RANGE,
                borders=Borders.OPEN_CLOSED, r2s=R2S.DSTREAM, answers=Counting.SET),
        TEXT,
        "optional",
    ),
}  # fmt: skip


def query_of(name: str) -> ContinuousQuery:
    return ContinuousQuery(parse_sparql(QUERIES[name]), (StreamWindow(STREAM, Window(6, 4)),))


def told(reports):
    return [(report.due, Counter(report.rows), report.content) for report in reports]


IN_SUITE = ("csparql", "cqels", "element by element", "late", "bag", "sens", "periodic range")


@pytest.mark.parametrize(
    "case", [case if case in IN_SUITE else pytest.param(case, marks=pytest.mark.prove) for case in CASES]
)
def test_spark_expects_what_the_definition_expects(case, spark, tmp_path):
    semantics, text, name = CASES[case]
    write(stream(text), tmp_path / "stream.parquet")
    query = query_of(name)
    wanted = expected_reports(
        query, semantics, tmp_path / "stream.parquet", Means(lambda: spark, "definition"), advance_to=24
    )
    result = expected_reports(
        query, semantics, tmp_path / "stream.parquet", Means(lambda: spark, "spark"), advance_to=24
    )
    assert wanted
    assert told(result) == told(wanted)


def test_a_run_judged_by_spark(spark, tmp_path):
    run = right_run(CLOSE)
    text = " | ".join(f"{t}: s{t % 3} p o{t}." for t in range(20))
    write(stream(text), tmp_path / "stream.parquet")
    means = Means(lambda: spark, "spark")
    assert judge_run(run, tmp_path / "stream.parquet", means).judgement is Judgement.RIGHT
    wrong = replace(run, answers=run.answers[1:])
    verdict = judge_run(wrong, tmp_path / "stream.parquet", means)
    assert (verdict.judgement, verdict.evaluator, verdict.missed) == (Judgement.WRONG, "spark", 1)


def test_a_relative_path_with_the_characters_of_patterns_is_judged_by_spark(spark, tmp_path, monkeypatch):
    """Spark's JVM may have been started in another folder, and takes paths for patterns."""
    (tmp_path / "runs [1]").mkdir()
    write(stream("0: a p b. | 1: b p c. | 19: c p d."), tmp_path / "runs [1]" / "stream.parquet")
    monkeypatch.chdir(tmp_path)
    expected_answers = {
        evaluator: expected_reports(
            query_of("optional"), CLOSE, Path("runs [1]/stream.parquet"), Means(lambda: spark, evaluator), advance_to=24
        )
        for evaluator in ("spark", "definition")
    }
    assert expected_answers["definition"]
    assert told(expected_answers["spark"]) == told(expected_answers["definition"])


@pytest.mark.parametrize(
    ("text", "semantics", "word"),
    [
        ("SELECT * { ?s <urn:p>+ ?o }", replace(CLOSE, content=Counting.BAG), "property paths over a content"),
        ("SELECT * { ?s <urn:p> ?o FILTER EXISTS { ?o ?p ?q } }", replace(CLOSE, content=Counting.BAG), "EXISTS over"),
        ("SELECT * { ?s <urn:p> ?o . ?s <urn:p> ?o }", replace(CLOSE, content=Counting.BAG), "written twice"),
        ("ASK { }", replace(CLOSE, empty_aggregate=EmptyAggregate.UNBOUND), "aggregate over nothing in ASK"),
        ("SELECT (RAND() AS ?x) { ?s ?p ?o }", CLOSE, "RAND"),
    ],
)
def test_what_spark_does_not_expect_is_refused_by_name(text, semantics, word, spark, tmp_path):
    write(stream(TEXT), tmp_path / "stream.parquet")
    query = replace(query_of("join"), form=parse_sparql(text), sparql=text)
    assert word in (refuse_spark(query, semantics) or "")
    with pytest.raises(RefusedError, match=word):
        expected_reports(query, semantics, tmp_path / "stream.parquet", Means(lambda: spark, "spark"), advance_to=24)


@pytest.mark.parametrize("answers", [Counting.SET, pytest.param(Counting.BAG, marks=pytest.mark.prove)])
def test_a_run_of_many_reports_is_judged_by_its_changes(answers, spark, tmp_path):
    """Whole bags under content change, one of them short of a row: found, and shown."""
    run = right_run(replace(CLOSE, report=CHANGE, tick=Tick.BATCH, partial_head=True, answers=answers), window=(6, 2))
    text = " | ".join(f"{t}: s{t % 3} p o{t}." for t in range(20))
    write(stream(text), tmp_path / "stream.parquet")
    means = Means(lambda: spark, "spark")
    assert judge_run(run, tmp_path / "stream.parquet", means).judgement is Judgement.RIGHT
    short = replace(run.answers[4], added=run.answers[4].added[1:])
    wrong = replace(run, answers=(*run.answers[:4], short, *run.answers[5:]))
    verdict = judge_run(wrong, tmp_path / "stream.parquet", means)
    assert [window.missing for window in verdict.windows if not window.right] == [run.answers[4].added[:1]]
    assert verdict.precision == 1.0
    assert verdict.recall < 1.0


def test_both_clocks_are_shown(tmp_path):
    """An engine that windows by arrival: fed in real time, its answers are right under arrival times."""
    run = right_run(replace(CQELS_1, name="by arrival"))
    write(stream(" | ".join(f"{t}: s{t % 3} p o{t}." for t in range(20))), tmp_path / "stream.parquet")
    slower = [replace(fed, handed=fed.handed * 2) for fed in run.fed]
    verdict = judge_run(replace(run, fed=tuple(slower)), tmp_path / "stream.parquet", Means(lambda: None))
    assert verdict.other_clock == ("application", 1.0, 1.0)
    assert verdict.judgement is Judgement.WRONG
    assert definition(())(query_of("join"), CLOSE, 6, 0)[0].rows == ()


def test_spark_expects_by_arrival(spark, tmp_path):
    """An element that never arrived is not there, the others are where they arrived."""
    path = tmp_path / "stream.parquet"
    write(stream(TEXT), path)
    times = {element.sequence: 2 * element.time + 1 for element in stream(TEXT)[1:]}
    table = arrived(spark, path, times)
    result = SparkReports(spark, table, read_header(table))(query_of("join"), CLOSE, 40, 0)
    moved = [replace(element, time=times[element.sequence]) for element in stream(TEXT)[1:]]
    assert told(result) == told(definition(moved)(query_of("join"), CLOSE, 40, 0))


def test_spark_names_a_literal_of_each_class_of_the_query_s_streams(spark, tmp_path):
    path = tmp_path / "stream.parquet"
    write(stream("0: a p 1. a p 2. a q 'x'@en. a q b. | 1: a p 3. b p 'y'. | [other] 2: a p 1.5."), path)
    objects = SparkReports(spark, path, read_header(spark.read.parquet(str(path)))).objects(
        query_of("join"), literal_class
    )
    assert sorted(objects) == sorted(term(text) for text in ("1", "'x'@en", "'y'"))
