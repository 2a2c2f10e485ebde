"""``assert_right`` and ``verify``: what is right passes, what is not is named by window, rows and reason."""

from dataclasses import replace
from decimal import Decimal

import pytest

import streamgauge
from streamgauge.formats.run import write_run
from streamgauge.formats.stream import write
from streamgauge.formats.streams import jsonl, write_stream
from streamgauge.model.mistake import MistakeError
from streamgauge.testing import RecordedSession, StreamBuilder, assert_right
from streamgauge.verification import diagnosed, verified

QUERY = """PREFIX : <urn:> SELECT ?s ?v FROM NAMED WINDOW :w ON :in [RANGE PT5S STEP PT5S]
    WHERE { WINDOW :w { ?s :v ?v } }"""
ASK = QUERY.replace("SELECT ?s ?v", "ASK").replace("?s :v", ":e :v")
STREAM = StreamBuilder("urn:in", {"": "urn:"})
for at, name in ((1, "a"), (2, "b"), (5, "e"), (7, "c")):
    STREAM.at(f"{at}s", f":{name} :v {at} .")
RIGHT = [(5000, [{"s": "<urn:a>", "v": 1}, {"s": "<urn:b>", "v": 2}]), (10_000, [("<urn:e>", 5), ("<urn:c>", 7)])]
OPEN_AT_THE_LEFT = [(5000, [*RIGHT[0][1], {"s": "<urn:e>", "v": 5}]), (10_000, [("<urn:c>", 7)])]


def test_right_answers_pass_in_every_form():
    verdict = assert_right(QUERY, STREAM, RIGHT)
    assert verdict.judgement == "right"
    assert verdict.horizon == 10_000
    due = streamgauge.expect(QUERY, STREAM, advance_to="10s")
    assert_right(QUERY, STREAM, [(one.due.instant, one.rows) for one in due])
    assert_right(QUERY, (STREAM,), [(None, rows) for _, rows in RIGHT], advance_to="10s")
    assert streamgauge.verify(ASK, STREAM, answers=[(5000, False), (10_000, True)]).judgement == "right"


def test_a_file_that_is_read_in_columns_is_fed_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "ROWS_FIRST", 0)
    made = StreamBuilder("urn:in", {"": "urn:"})
    for at in range(40):
        made.at(f"{at}s", f":e{at} :v {at} .")
    write_stream(list(made), tmp_path / "in.jsonl")
    with RecordedSession(QUERY) as session:
        session.feed(tmp_path / "in.jsonl").advance("40s")
    assert [len(answer.rows()) for answer in session.answers] == [5] * 8


def test_a_failure_names_windows_rows_and_the_reason():
    with pytest.raises(AssertionError) as failed:
        assert_right(QUERY, STREAM, OPEN_AT_THE_LEFT)
    lines = str(failed.value).splitlines()
    assert lines[0] == "these answers: wrong: 2 of 2 windows not as expected: precision 75%, recall 75%."
    integer = '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert lines[1:5] == [
        "window 0 [0, 5) s, report at 5 s: wrong, expected 2 rows, received 3",
        f"  surplus: ?s = <urn:e>, ?v = {integer}",
        "window 1 [5, 10) s, report at 10 s: wrong, expected 2 rows, received 1",
        f"  missing: ?s = <urn:e>, ?v = {integer}",
    ]
    assert any(line.startswith("Diagnosis: The borders of a window are (o, c].") for line in lines)


def test_a_verdict_has_its_diagnosis_unless_it_is_not_asked_for():
    verdict = streamgauge.verify(QUERY, STREAM, answers=OPEN_AT_THE_LEFT)
    assert verdict.diagnosis is not None
    assert verdict.diagnosis.exact
    assert streamgauge.verify(QUERY, STREAM, answers=OPEN_AT_THE_LEFT, explain=False).diagnosis is None


def test_a_diagnosis_that_takes_too_long_is_left_out_and_said():
    explanation = verified(QUERY, [STREAM], OPEN_AT_THE_LEFT, explain=False)
    times = iter(range(0, 1000, 7))
    verdict = diagnosed(explanation.run, explanation.stream, explanation.verdict, 20, lambda: next(times))
    assert verdict.diagnosis is None
    assert verdict.cautions == (
        "No diagnosis: none was found within 20 s of CPU time (streamgauge explain takes longer).",
    )
    assert next(times) == 28


@pytest.mark.parametrize(
    ("query", "answers", "sentence"),
    [
        (QUERY, [7], "answer 1 is 7: give an Answer, or"),
        (QUERY, [("5s", [])], "answer 1: its instant is '5s'"),
        (QUERY, [(5000, "abc")], "answer 1: its rows are 'abc'"),
        (QUERY, [(5000, []), (9, [{"x": 1}])], "answer 2, row {'x': 1}: the query has no variable x: it has s, v"),
        (QUERY, [(5000, [(1, 2, 3)])], "or 2 terms (s, v)"),
        (QUERY, [(5000, [("plain", 2)])], "terms are written as in N-Triples"),
        (QUERY, [(5000, [("<urn:a>", 2j)])], "2j is not a term"),
        (ASK, [(5000, [])], "the query is an ASK, so its rows are True or False"),
    ],
)
def test_answers_that_are_none_are_refused_by_number(query, answers, sentence):
    with pytest.raises(MistakeError) as refused:
        streamgauge.verify(query, STREAM, answers=answers)
    assert sentence in str(refused.value)


def test_numbers_of_python_are_literals_of_their_datatype():
    given = [Decimal("1.5"), 2.0, True, float("inf"), None]
    built = StreamBuilder("urn:in", {"": "urn:"})
    built.at(0, ':a :v 1.5 . :a :w "2.0"^^<http://www.w3.org/2001/XMLSchema#double> . :a :x true .')
    query = QUERY.replace("?s ?v", "?a ?b ?c ?d ?e").replace("?s :v ?v", "?s :v ?a; :w ?b; :x ?c . BIND(1e0/0e0 AS ?d)")
    assert_right(query, built, [(5000, [given])])


def test_a_semantics_that_counts_arrivals_is_refused():
    with pytest.raises(MistakeError, match="counts when elements arrive"):
        streamgauge.verify(QUERY, STREAM, answers=[], semantics="cqels-1.x")


def test_an_element_that_is_none_is_refused_with_its_time():
    with pytest.raises(MistakeError, match="the element at 3s"):
        StreamBuilder("urn:in").at("3s", ":a :v 1 .")
    with pytest.raises(MistakeError, match="the element at 4 has no triple"):
        StreamBuilder("urn:in").at(4, "")


def test_elements_come_at_a_step():
    built = StreamBuilder("urn:in", {"": "urn:"}).every("2s", 3, lambda number: f":a :v {number} .", begin="1s")
    assert [(element.time, element.sequence) for element in built] == [(1000, 0), (3000, 1), (5000, 2)]
    assert len(built) == len(built.triples) == 3


def test_a_run_folder_is_judged(tmp_path):
    with RecordedSession(QUERY) as session:
        run, elements = session.feed(STREAM).advance("10s").recorded()
    write(elements, tmp_path / "stream.parquet")
    write_run(tmp_path, run)
    assert_right(tmp_path)
    assert_right(str(tmp_path))
    wrong = replace(run.answers[0], added=())
    write_run(tmp_path, replace(run, answers=(wrong, *run.answers[1:])))
    with pytest.raises(AssertionError, match=r"(?s)missing: .*Diagnosis: "):
        assert_right(tmp_path)


def test_a_session_is_kept_and_judged():
    with RecordedSession(QUERY) as session:
        session.feed(STREAM).advance("10s")
        assert len(session.answers) == 2
        assert_right(session)
        session.answers.pop()
        with pytest.raises(AssertionError, match="missed, expected 2 rows, received 0"):
            assert_right(session)


def test_a_session_far_from_1970_begins_near_its_first_element():
    begun = 1_700_000_000_000
    session = RecordedSession(QUERY)
    session.push(begun + 1000, '<urn:a> <urn:v> "1" .').advance(begun + 5000)
    assert len(session.answers) <= 3
    assert session.answers[-1].instant == begun + 5000
    assert_right(session)


def test_a_session_that_an_engine_refuses_is_refused_in_its_words():
    with pytest.raises(MistakeError, match="its own semantics"):
        RecordedSession(QUERY, engine="broker", semantics="cqels")
