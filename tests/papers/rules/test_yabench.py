"""YABench's rules: closed borders, pairing by index, bags, its content-change records, its gracious modes and slips."""

from dataclasses import replace

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Report
from streamgauge.model.verdict import Judgement
from streamgauge.papers.rules import RuleSettings, judge_as
from streamgauge.papers.yabench.oracle_files import InputReader, OracleLine, OracleWriter, parse
from streamgauge.papers.yabench.page import figure_5
from streamgauge.papers.yabench.rules import lines
from streamgauge.query import parse_sparql
from streamgauge.report.cards import explanation, findings
from streamgauge.semantics.profiles import YABENCH, YABENCH_CHANGE
from streamgauge.semantics.refusal import RefusedError
from tests.notation import STREAM, stream

TEXT = "SELECT ?s { ?s <urn:p> ?o ; <urn:q> ?o }"


def at(*times):
    """Observations a, b, c, d of two triples each, at these times."""
    names = "abcdefgh"
    return stream(" | ".join(f"{time}: {names[i]} p x. {names[i]} q x." for i, time in enumerate(times)))


def run(answers, semantics=YABENCH, sparql=TEXT, window=(5, 5)):
    query = ContinuousQuery(parse_sparql(sparql), (StreamWindow(STREAM, Window(*window)),))
    return Run(RunHeader("test", query, sparql, "rspql", semantics, 100, 1000), tuple(answers), ())


def said(ms, *names):
    return Answer(("s",), tuple((f"<urn:{name}>",) for name in names), received=1000 + ms * 1_000_000)


def rows(*names, ms=5):
    """One answer per row, as an engine that reports on content change sends them."""
    return [said(ms, name) for name in names]


def texts(answers, elements, semantics=YABENCH, **settings):
    return [line.text() for line in lines(run(answers, semantics), elements, RuleSettings(**settings))]


def test_windows_are_closed_at_both_ends():
    result = texts([said(6, "a", "b"), said(9, "b", "c")], at(0, 5, 7))
    assert result == ["1.0,1.0,2,2,4,0,5,1", "1.0,1.0,2,2,4,5,10,-1"]


def test_report_i_belongs_to_window_i_whatever_it_says():
    result = lines(run([said(11, "b"), said(12, "c")]), at(1, 7, 12), RuleSettings())
    assert [(line.precision, line.recall) for line in result] == [(0.0, 0.0), (0.0, 0.0)]
    assert len(result) == 2


def test_scores_are_over_bags():
    (line,) = lines(run([said(5, "a", "a", "x")]), at(1, 2), RuleSettings())
    assert (line.precision, line.recall, line.found) == (1 / 3, 1 / 2, 1)
    (line,) = lines(run([said(5), said(6)]), stream("1: a r x. | 8: a r x."), RuleSettings())
    assert (line.precision, line.recall) == (1.0, 1.0)


def test_a_last_report_without_rows_is_never_seen():
    assert len(texts([said(5, "a"), said(10), said(15)], at(1, 7, 12))) == 2
    assert texts([said(5)], at(1)) == []


def test_reports_after_the_stream_are_not_scored():
    assert len(texts([said(5, "a"), said(10, "x"), said(15, "x")], at(1))) == 1


def test_a_triple_read_ahead_leaks_into_a_window_before_it():
    result = lines(run([said(5, "a"), said(10, "x"), said(15, "x")]), at(1, 12), RuleSettings())
    assert [line.input for line in result] == [2, 1, 2]


def test_gracious_mode_moves_the_start_then_the_end():
    (line,) = lines(run([said(8, "c", "d")]), at(1, 2, 3, 6, 8), RuleSettings(gracious=True))
    assert line.text() == "1.0,1.0,2,3,6,3,6,-1"
    (line,) = lines(run([said(8, "b", "c")]), at(1, 2, 3, 6, 8), RuleSettings(gracious=True))
    assert (line.start, line.end, line.recall) == (2, 5, 1.0)
    (line,) = lines(run([said(8, "x")]), at(1, 2, 3, 6, 8), RuleSettings(gracious=True))
    assert (line.precision, line.recall) == (0.0, 0.0)


def test_figure_5_of_the_paper():
    plain, gracious = figure_5()
    assert (plain.precision, plain.recall) == (1 / 2, 1 / 3)
    assert (gracious.precision, gracious.recall, gracious.start, gracious.end) == (1.0, 1.0, 3000, 6000)


def test_content_change_takes_rows_in_order():
    result = texts(rows("a", "b", "c"), at(1, 2, 7), YABENCH_CHANGE)
    assert result == ["1.0,1.0,2,2,4,0,2,3", "1.0,1.0,1,1,2,5,7,0"]


def test_a_row_that_is_not_expected_is_dropped_or_read_over():
    wrong = rows("x", "y", "a", "b")
    one = lines(run(wrong, YABENCH_CHANGE), at(1, 2), RuleSettings())
    assert [(line.actual, line.expected, line.precision) for line in one] == [(4, -2, 0.0)]
    (many,) = lines(run(wrong, YABENCH_CHANGE), at(1, 2), RuleSettings(single_result=False))
    assert (many.precision, many.actual, many.expected) == (0.5, 4, 2)


def test_singleresult_of_an_imported_config_is_heeded():
    recorded = run(rows("x", "y", "a", "b"), YABENCH_CHANGE)
    told = replace(recorded, header=replace(recorded.header, workload={"singleresult": "False"}))
    (line,) = lines(told, at(1, 2), RuleSettings())
    assert line.precision == 0.5


def test_rows_that_never_come_and_rows_too_many():
    (line,) = lines(run(rows("a"), YABENCH_CHANGE), at(1, 2), RuleSettings())
    assert (line.precision, line.recall, line.actual, line.expected) == (1.0, 0.5, 0, 2)
    (line,) = lines(run(rows("a", "b", "c"), YABENCH_CHANGE), at(1, 2), RuleSettings())
    assert (line.precision, line.recall, line.actual, line.expected) == (2 / 3, 1.0, 3, 1)


def test_with_one_triple_a_time_every_second_time_is_skipped():
    single = stream("1: a r x. | 2: b r x. | 3: c r x. | 4: d r x.")
    ask = "SELECT ?s { ?s <urn:r> ?o }"
    result = lines(run(rows("a", "b", "c", "d", ms=4), YABENCH_CHANGE, ask), single, RuleSettings())
    assert [line.end for line in result] == [4]
    assert result[0].found < 4


def test_gracious_content_change_goes_back_a_slide():
    elements = at(1, 4, 6, 9)
    pairs = "SELECT ?s ?t { ?s <urn:p> ?o . ?t <urn:p> ?o . FILTER(STR(?s) < STR(?t)) }"
    told = [("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d")]
    answers = [Answer(("s", "t"), ((f"<urn:{s}>", f"<urn:{t}>"),), received=1000 + 9_000_000) for s, t in told]
    plain = lines(run(answers, YABENCH_CHANGE, pairs), elements, RuleSettings(single_result=False))
    gracious = lines(run(answers, YABENCH_CHANGE, pairs), elements, RuleSettings(gracious=True))
    assert min(line.precision for line in plain) < 1
    assert [(line.precision, line.recall) for line in gracious] == [(1.0, 1.0)] * len(gracious)
    assert gracious[-1].start < 5


def test_records_are_gathered_by_the_slide_in_which_they_end():
    gathering = OracleWriter(10, 5, lambda start, end: end - start)
    for end, precision in ((3, 1.0), (5, 0.0), (17, 1.0)):
        gathering.add(OracleLine(precision, precision, 1, 1, 1, 0, end, end))
    result = gathering.flush()
    assert [(line.precision, line.expected, line.end) for line in result] == [
        (0.5, 2, 5),
        (1.0, 0, 15),
        (1.0, 0, 20),
        (1.0, 1, 17),
    ]
    assert result[0].delay == 4


def test_the_buffer_holds_what_windows_held_each_once():
    reader = InputReader([(time, (f"<urn:{time}>", "<urn:p>", "<urn:o>")) for time in (1, 2, 3, 7)])
    assert [time for time, _ in reader.window(0, 2).triples] == [1, 2]
    assert [time for time, _ in reader.window(1, 3).triples] == [1, 2, 3]
    assert reader.size(0, 9) == 3
    reader.purge(2)
    assert reader.size(0, 9) == 2
    assert [time for time, _ in reader.from_buffer(3).triples] == [3]
    assert reader.next_time() is None


def test_a_line_is_written_and_read_as_in_its_files():
    text = "1.0,0.9831932773109243,117,119,1750,0,5000,246"
    assert parse(text).text() == text
    with pytest.raises(ValueError, match="eight numbers"):
        parse("1.0,1.0")


def test_the_verdict_is_over_its_lines():
    verdict = judge_as("yabench", run([said(6, "a"), said(9, "x")]), at(0, 7))
    assert (verdict.judgement, verdict.precision, verdict.recall, verdict.rules) == (
        Judgement.WRONG,
        0.5,
        0.5,
        "yabench",
    )
    assert [window.delay for window in verdict.windows] == [1.0, -1.0]
    gracious = judge_as("yabench", run([said(6, "a")]), at(0, 7), RuleSettings(gracious=True))
    assert gracious.windows[0].borders == (0, 5)
    assert gracious.windows[0].delay is None
    assert explanation("window", gracious) == "Every one of 1 window was answered exactly as expected."


def test_a_verdict_that_took_other_borders_says_so():
    """All precision and recall are 1, but none of the answers is the one that was due."""
    told = run([said(8, "b", "c"), said(14, "d", "e")])
    verdict = judge_as("yabench", told, at(1, 2, 3, 7, 8), RuleSettings(gracious=True))
    assert verdict.judgement is Judgement.RIGHT
    borders = [(window.start, window.end, window.borders) for window in verdict.windows]
    assert borders == [(0, 5, (2, 5)), (5, 10, (5, 10))]
    sentence = "1 of 2 windows fits exactly only under moved borders: starts by 2 ms, ends by 0 ms."
    assert explanation("window", verdict) == sentence
    wrong = replace(verdict, judgement=Judgement.WRONG)
    assert sentence in findings("window", wrong)


@pytest.mark.parametrize(
    ("answers", "semantics", "sparql", "reason"),
    [
        ([], YABENCH, TEXT, "scores no window"),
        ([said(5, "a")], replace(YABENCH, report=frozenset({Report.PERIODIC}), period=5), TEXT, "reports otherwise"),
        ([said(5, "a")], YABENCH, "ASK { ?s ?p ?o }", "not a SELECT"),
    ],
)
def test_what_it_does_not_know_is_unknown(answers, semantics, sparql, reason):
    verdict = judge_as("yabench", run(answers, semantics, sparql), at(1))
    assert verdict.judgement is Judgement.UNKNOWN
    assert reason in verdict.reason


def test_where_its_gracious_oracle_fails_the_verdict_is_unknown():
    verdict = judge_as("yabench", run(rows("x"), YABENCH_CHANGE), at(1, 2), RuleSettings(gracious=True))
    assert verdict.judgement is Judgement.UNKNOWN
    assert "no start is left to try" in verdict.reason


def test_an_answer_from_the_far_future_is_no_flood_of_windows():
    gathering = OracleWriter(1, 1, lambda _start, _end: 0)
    gathering.add(OracleLine(0.0, 1.0, 1, 0, 0, 0, 1, 0))
    with pytest.raises(RefusedError, match="windows after the one before it"):
        gathering.add(OracleLine(0.0, 1.0, 1, 0, 0, 0, 10**12, 0))
