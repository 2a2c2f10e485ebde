"""The tools for agents: verdicts with a witness, due answers, translations, reasons; bounded tools, sentences."""

import re

import pytest

from streamgauge.agents import tools
from streamgauge.agents.server import _in_sentences
from streamgauge.agents.tools import GivenAnswer, GivenElement, _verified, expect, explain, task_of, translate, verify
from streamgauge.model.mistake import MistakeError
from streamgauge.oracle.diagnosis.diagnose import PatienceError, explained

QUERY = """PREFIX : <urn:> SELECT ?s ?v FROM NAMED WINDOW :w ON :in [RANGE PT5S STEP PT5S]
    WHERE { WINDOW :w { ?s :v ?v } }"""
TWO = """PREFIX : <urn:> SELECT ?s FROM NAMED WINDOW :w ON :in [RANGE PT5S STEP PT5S]
    FROM NAMED WINDOW :x ON :other [RANGE PT5S STEP PT5S] WHERE { WINDOW :w { ?s :v ?v } WINDOW :x { ?s :v ?v } }"""
STREAM = [
    GivenElement(time=at * 1000, triples=f":{name} :v {at} .") for at, name in ((1, "a"), (2, "b"), (5, "e"), (7, "c"))
]
FIVE = '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'


def answers(*reports):
    return [GivenAnswer(instant=instant, rows=rows) for instant, rows in reports]


A, B, E, C = ({"s": f"<urn:{name}>", "v": value} for name, value in (("a", 1), ("b", 2), ("e", 5), ("c", 7)))
RIGHT = answers((5000, [A, B]), (10_000, [E, C]))
OPEN_AT_THE_LEFT = answers((5000, [A, B, E]), (10_000, [C]))


def test_right_answers_have_no_witness():
    told = verify(QUERY, STREAM, RIGHT)
    assert (told["judgement"], told["windows"], told["not_as_expected"], told["witness"]) == ("right", 2, 0, None)
    assert told["time_came_to"] == 10_000
    assert told["semantics"] == "rspql"


def test_the_witness_is_the_first_window_that_is_not_as_expected():
    told = verify(QUERY, STREAM, OPEN_AT_THE_LEFT)
    assert told["judgement"] == "wrong"
    assert told["witness"] == {
        "window": 0,
        "start": 0,
        "end": 5000,
        "instant": 5000,
        "state": "wrong",
        "expected_rows": 2,
        "received_rows": 3,
        "missing": [],
        "surplus": [{"s": "<urn:e>", "v": FIVE}],
    }
    assert told["diagnosis"][0].startswith("Diagnosis: The borders of a window are (o, c].")
    assert verify(QUERY, STREAM, OPEN_AT_THE_LEFT, explain=False)["diagnosis"] == []


def test_due_answers_are_right_when_given_back():
    told = expect(QUERY, STREAM, advance_to="10s")
    assert told["complete"]
    assert [(entry["instant"], entry["triples_in_window"]) for entry in told["reports"]] == [(5000, 2), (10_000, 2)]
    back = answers(*((entry["instant"], entry["rows"]) for entry in told["reports"]))
    assert verify(QUERY, STREAM, back, advance_to="10s")["judgement"] == "right"


def test_a_meaning_and_static_data_count():
    query = QUERY.replace("?s :v ?v }", "?s :v ?v } ?s :name ?n").replace("?s ?v", "?n")
    told = expect(query, STREAM, static=":a :name 'roof' .", advance_to=5000)
    assert told["reports"][0]["rows"] == [{"n": '"roof"'}]
    assert verify(QUERY, STREAM, [], semantics="csparql", advance_to=4000)["semantics"] == "csparql"


def test_explain_has_every_model_and_a_window_worked_through():
    told = explain(QUERY, STREAM, OPEN_AT_THE_LEFT)
    assert told["judgement"] == "wrong"
    assert told["exact"]
    assert told["models"][0][0]["name"] == "borders = (o, c]"
    assert told["window"]["instant"] == 5000
    assert explain(QUERY, STREAM, RIGHT)["judgement"] == "right"


def test_explain_says_when_it_takes_too_long_and_what_is_known_by_then(monkeypatch):
    monkeypatch.setattr(tools, "PATIENCE_S", -1)
    told = explain(QUERY, STREAM, OPEN_AT_THE_LEFT)
    [sentence] = told["sentences"]
    assert re.fullmatch(r"stream: none was found within .* shorten it to the windows that are wrong\.", sentence)
    assert not told["complete"]
    assert told["models"] == []
    assert told["differs"] > 0
    assert told["window"]["instant"] == 5000
    monkeypatch.undo()
    assert explain(QUERY, STREAM, OPEN_AT_THE_LEFT)["complete"]


def test_a_search_that_is_ended_keeps_what_it_found():
    calls = []

    def listen(done: int, of: int) -> None:
        calls.append((done, of))
        if len(calls) == most:
            raise PatienceError("long enough")

    task = task_of(QUERY, STREAM, None, None, None, OPEN_AT_THE_LEFT)
    explanation = _verified(task, OPEN_AT_THE_LEFT, explain=False)
    most = 0
    whole = explained(explanation.run, explanation.stream, listen)
    most = len(calls)
    calls.clear()
    cut = explained(explanation.run, explanation.stream, listen)
    assert cut.ended == "long enough"
    assert not whole.ended
    assert {item.parts for item in cut.found} <= {item.parts for item in whole.found}
    assert cut.diagnosis.exact
    assert cut.diagnosis.models[0][0].name == "borders = (o, c]"


def test_translate_writes_another_dialect():
    told = translate(QUERY, "csparql")
    assert told["from"] == "rspql"
    assert "FROM STREAM <urn:in> [RANGE 5s STEP 5s]" in " ".join(told["query"].split())


ENDLESS = [GivenElement(time=0, triples=":a :v 1 .")]
REFUSED = {
    "a path": (lambda: verify("/etc/passwd", STREAM, RIGHT), "no file is read"),
    "a long query": (lambda: translate("{" * 60_000, "cqels"), "query: 60,000 characters, 50,000 at most"),
    "no query": (lambda: translate("{ } ", "cqels"), "this query has no stream"),
    "no dialect": (lambda: translate(QUERY, "sql"), "sql"),
    "no such windows": (lambda: translate(TWO, "csparql"), "C-SPARQL has no named windows"),
    "no Turtle": (lambda: expect(QUERY, [GivenElement(time=0, triples="a b c")]), "stream, element 1: 'a b c'"),
    "which stream": (lambda: expect(TWO, STREAM), "element 1: its stream is missing, and the query reads 2"),
    "another stream": (
        lambda: expect(QUERY, [GivenElement(time=0, triples=":a :v 1 .", stream="urn:x")]),
        "the query reads no stream urn:x: it reads urn:in",
    ),
    "many elements": (lambda: expect(QUERY, STREAM * 1251), "stream: 5,004 elements, 5,000 at most"),
    "many answers": (lambda: verify(QUERY, STREAM, RIGHT * 2501), "answers: 5,002 reports, 5,000 at most"),
    "much time": (lambda: expect(QUERY, ENDLESS, advance_to="30d"), "advance_to: 518,400 instants"),
    "odd time": (lambda: expect(QUERY, STREAM, advance_to="soon"), "expected a duration"),
    "a profile that is none": (lambda: expect(QUERY, STREAM, semantics="sql"), "sql"),
    "a row that is none": (lambda: verify(QUERY, STREAM, answers((5, [{"x": 1}]))), "the query has no variable x"),
    "much static data": (lambda: expect(QUERY, STREAM, static=" " * 500_001), "static: 500,001 characters"),
}


@pytest.mark.parametrize(("ask", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_asked_is_said_in_a_sentence(ask, sentence):
    with pytest.raises(MistakeError) as refused:
        ask()
    assert sentence in str(refused.value)


def test_only_mistakes_are_said_to_the_client():
    """Any other error is the SDK's to log, without its text in the answer."""

    def tool(error):
        raise error

    call = _in_sentences(tool, RuntimeError)
    with pytest.raises(RuntimeError, match="name one"):
        call(error=MistakeError("name one"))
    with pytest.raises(ValueError, match="a slip"):
        call(error=ValueError("a slip"))


def test_reports_are_complete_as_long_as_no_row_is_left_out(monkeypatch):
    rows = sum(report["expected_rows"] for report in expect(QUERY, STREAM)["reports"])
    monkeypatch.setattr(tools, "MAX_RETURNED_ROWS", rows)
    assert expect(QUERY, STREAM)["complete"]
    monkeypatch.setattr(tools, "MAX_RETURNED_ROWS", rows - 1)
    assert not expect(QUERY, STREAM)["complete"]


def test_many_triples_and_rows_are_refused(monkeypatch):
    monkeypatch.setattr(tools, "TRIPLES", 3)
    with pytest.raises(MistakeError, match="stream: 4 triples, 3 at most"):
        expect(QUERY, STREAM)
    monkeypatch.setattr(tools, "ROWS", 3)
    with pytest.raises(MistakeError, match="answers: 4 rows, 3 at most"):
        verify(QUERY, [], RIGHT)
