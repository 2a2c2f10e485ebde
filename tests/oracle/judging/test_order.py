"""ORDER BY is judged where the recording keeps the order of rows, and named as left out elsewhere."""

import pytest

from streamgauge.engines import live
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, rows, stream

CONTENT = "0: a p 3. b p 1. c p 2. d p 'x'. e p 1.0."
ORDERED = "SELECT ?s ?v { ?s <urn:p> ?v FILTER(isNumeric(?v)) } ORDER BY "


def verdict(text: str, said: str, *, ordered: bool = True, sends: R2S = R2S.RSTREAM) -> Verdict:
    form = parse_sparql(text)
    semantics = Semantics("s", r2s=sends, r2s_able=frozenset(R2S))
    query = ContinuousQuery(form, (StreamWindow(STREAM, Window(5, 5)),))
    header = RunHeader("e", query, text, "rspql", semantics, advanced_to=5, started=0, ordered=ordered)
    answer = Answer(("s", "v"), rows(said), instant=5)
    return check(Run(header, (answer,), ()), definition(stream(CONTENT)), 0, JudgingRules())


@pytest.mark.parametrize(
    ("keys", "message", "right"),
    [
        ("?v", "b 1 ; e 1.0 ; c 2 ; a 3", True),
        ("?v", "e 1.0 ; b 1 ; c 2 ; a 3", True),
        ("?v", "a 3 ; b 1 ; e 1.0 ; c 2", False),
        ("?v", "b 1 ; c 2 ; e 1.0 ; a 3", False),
        ("DESC(?v)", "a 3 ; c 2 ; b 1 ; e 1.0", True),
        ("DESC(?v)", "b 1 ; e 1.0 ; c 2 ; a 3", False),
        ("?v ?s", "b 1 ; e 1.0 ; c 2 ; a 3", True),
        ("?v ?s", "e 1.0 ; b 1 ; c 2 ; a 3", False),
        ("?v DESC(?s)", "e 1.0 ; b 1 ; c 2 ; a 3", True),
    ],
)
def test_rows_have_to_come_in_order(keys: str, message: str, right: bool) -> None:
    judged = verdict(ORDERED + keys, message)
    assert (judged.judgement is Judgement.RIGHT) is right
    assert judged.tolerance.endswith("; rows in the order of ORDER BY")
    assert bool(judged.windows[0].missing) is not right


def test_rows_that_are_not_ordered_come_anywhere() -> None:
    every = "SELECT ?s ?v { ?s <urn:p> ?v } ORDER BY ?v"
    for item in ("d 'x' ; b 1 ; e 1.0 ; c 2 ; a 3", "b 1 ; e 1.0 ; d 'x' ; c 2 ; a 3"):
        assert verdict(every, item).judgement is Judgement.RIGHT
    assert verdict(every, "c 2 ; d 'x' ; b 1 ; e 1.0 ; a 3").judgement is Judgement.WRONG


def test_the_order_of_a_subquery_is_not_that_of_the_answer() -> None:
    judged = verdict(f"SELECT ?s ?v {{ {{ {ORDERED} ?v }} }}", "a 3 ; b 1 ; e 1.0 ; c 2")
    assert (judged.judgement, judged.tolerance) == (Judgement.RIGHT, "terms compared exactly")


def test_a_cut_is_in_order_too() -> None:
    cut = ORDERED + "?v LIMIT 3"
    assert verdict(cut, "e 1.0 ; b 1 ; c 2").judgement is Judgement.RIGHT
    assert verdict(cut, "c 2 ; e 1.0 ; b 1").judgement is Judgement.WRONG


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (ORDERED + "?v", {"ordered": False}),
        (ORDERED + "(0 - ?v)", {}),
        (ORDERED + "?v", {"sends": R2S.ISTREAM}),
    ],
)
def test_elsewhere_the_order_is_left_out(text: str, more: dict[str, bool | R2S]) -> None:
    judged = verdict(text, "c 2 ; a 3 ; b 1 ; e 1.0", **more)  # type: ignore[arg-type]
    assert (judged.judgement, judged.tolerance) == (
        Judgement.RIGHT,
        "terms compared exactly; the order of rows is left out",
    )


def test_a_query_without_an_order_says_nothing_of_it() -> None:
    plain = "SELECT ?s ?v { ?s <urn:p> ?v FILTER(isNumeric(?v)) }"
    assert verdict(plain, "c 2 ; a 3 ; b 1 ; e 1.0").tolerance == "terms compared exactly"


@pytest.mark.parametrize("keys", ["?v", "DESC(?v) ?s", "?s", "(0 - ?v)"])
@pytest.mark.parametrize("cut", ["", " LIMIT 3"])
def test_live_sends_whole_answers_in_order(keys: str, cut: str) -> None:
    """Also where rows came and went since the answer before."""
    text = "SELECT ?s ?v { ?s <urn:p> ?v } ORDER BY " + keys + cut
    query = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(5, 2)),))
    elements = stream("0: a p 3. b p 1. | 2: c p 2. d p 7. | 4: e p 5. f p 0. | 6: a p 1. g p 4. | 9: h p 9.")
    answers: list[Answer] = []
    session = live.start(query, RSPQL, answers.append)
    for element in elements:
        session.push(element)
    session.advance(12)
    header = RunHeader("live", query, text, "rspql", RSPQL, advanced_to=12, started=0, ordered=True)
    judged = check(Run(header, tuple(answers), ()), definition(elements), 0, JudgingRules())
    assert judged.judgement is Judgement.RIGHT
    assert ("in the order of" in judged.tolerance) is (keys[0] != "(")
    values = [row[1] for row in answers[-1].added]
    assert keys != "?v" or values == sorted(values)
