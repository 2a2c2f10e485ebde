"""Standing property: what Streamgauge answers is never judged wrong by Streamgauge."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, event, given, note
from hypothesis import strategies as st

from streamgauge import expect, verify, watch
from streamgauge.model import algebra as al
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Due, EmptyAggregate, Report, Semantics, Tick
from streamgauge.model.verdict import Judgement
from streamgauge.semantics.profiles import profile
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError
from tests.examples import examples
from tests.notation import STREAM
from tests.watching.standing import ALL_FACTS, WatchCase, cases, landmark_cases, mutated, spark_cases, unmatched


def judged(case: WatchCase, engine: str = "live") -> Judgement:
    """The judgement of what an engine answers."""
    options = dict(case.options)
    try:
        watched = watch(case.query, case.stream, end=case.end, engine=engine, **options)
        answers = list(watched)
    except (RefusedError, OutOfOrderError) as error:
        event(f"refused: {str(error)[:60]}")
        assume(False)
    if isinstance(case.end, int) or options["semantics"].due is Due.LAST:
        options["advance_to"] = watched.horizon
    verdict = verify(case.query, case.stream, answers=answers, explain=False, **options)
    event(f"{verdict.judgement}, {'some' if answers else 'no'} answers {verdict.reason[:60]}")
    note(f"{verdict.windows}\n{answers}")
    return verdict.judgement


@given(cases())
@examples(suite=40, prove=10_000)
def test_what_watch_answers_is_never_wrong(case: WatchCase):
    assert judged(case) is not Judgement.WRONG


@given(landmark_cases("broker"))
@examples(suite=20, prove=2_000)
def test_what_the_broker_answers_is_never_wrong(case: WatchCase):
    assert judged(case, "broker") is not Judgement.WRONG


@given(landmark_cases("fragments"))
@examples(suite=15, prove=1_000)
def test_what_the_query_streamer_answers_is_never_wrong(case: WatchCase):
    assert judged(case, "fragments") is not Judgement.WRONG


def test_a_fact_that_static_data_hold_too_ends_for_the_query_streamer():
    fact, always = ("<urn:x:a>", "<urn:x:knows>", "<urn:x:a>"), ("<urn:x:a>", "<urn:x:knows>", "<urn:x:b>")
    query = ContinuousQuery(
        al.Select(ALL_FACTS, ("s", "p", "o")), (StreamWindow(STREAM, Window(1, 1, "landmark")),), static=(fact, always)
    )
    elements = (StreamElement(STREAM, 0, 0, (fact,), (), 3), StreamElement(STREAM, 4, 1, (fact,), (), 5))
    options = {"semantics": replace(profile("fragments"), period=1), "t0": 0}
    answers = list(watch(query, elements, engine="fragments", end="stream", **options))
    assert [answer.instant for answer in answers] == [0, 3, 4]
    assert verify(query, elements, answers=answers, **options).judgement is Judgement.RIGHT


@pytest.mark.usefixtures("spark")
@given(spark_cases())
@examples(suite=2, prove=150)
def test_what_spark_answers_is_never_wrong(case: WatchCase):
    assert judged(case, "spark") is not Judgement.WRONG


EXAMPLES = Path(__file__).parents[2] / "examples" / "parking"
HOURLY = """PREFIX : <http://ex.org/>
SELECT ?x FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1H STEP PT1H] WHERE { WINDOW <urn:w> { ?x :p ?v } }"""
ELEMENTS = [
    (1_772_352_000_000, '<http://ex.org/a> <http://ex.org/p> "1" .'),
    (1_772_359_300_000, '<http://ex.org/c> <http://ex.org/p> "3" .'),
]


@pytest.mark.parametrize("end", ["stream", "windows"])
@pytest.mark.parametrize(
    ("query", "stream"), [(EXAMPLES / "parking.rq", EXAMPLES / "parking.csv"), (HOURLY, ELEMENTS)], ids=["csv", "hour"]
)
def test_the_documented_example_and_an_hour_with_a_gap(query, stream, end):
    answers = list(watch(query, stream, end=end))
    due = expect(query, stream, advance_to="windows" if end == "windows" else None)
    assert [answer.instant for answer in answers] == [report.due.instant for report in due]
    verdict = verify(query, stream, answers=answers)
    assert (verdict.judgement, len(verdict.windows)) == (Judgement.RIGHT, len(answers))


def test_an_order_that_reads_the_instant_of_the_report():
    text = f"{HOURLY} ORDER BY ?x (NOW()) LIMIT 1"
    assert verify(text, ELEMENTS, answers=watch(text, ELEMENTS)).judgement is Judgement.RIGHT


@pytest.mark.parametrize("empty", EmptyAggregate)
@pytest.mark.parametrize("asked", ["ASK FROM {} {{ {} }}", "SELECT * FROM {} {{ {} }}"])
def test_an_aggregate_over_nothing_beside_the_instant_of_the_report(asked, empty):
    inner = "SELECT (COUNT(*) AS ?n) (NOW() AS ?at) { WINDOW <urn:w> { ?x <urn:none> ?v } }"
    text = asked.format("NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1H STEP PT1H]", inner)
    semantics = Semantics("mine", empty_aggregate=empty)
    answers = watch(text, ELEMENTS, semantics=semantics)
    assert verify(text, ELEMENTS, answers=answers, semantics=semantics).judgement is Judgement.RIGHT


def test_an_engine_that_sends_the_empty_reports_before_the_stream_is_right_too():
    early = [(1_772_352_000_000 - hours * 3_600_000, []) for hours in (2, 1, 0)]
    answers = [*early, *watch(HOURLY, ELEMENTS, end="stream")]
    assert verify(HOURLY, ELEMENTS, answers=answers).judgement is Judgement.RIGHT
    assert verify(HOURLY, ELEMENTS, answers=[early[0], *answers[2:]]).missed == 1


@pytest.mark.slow
@given(st.data())
@examples(suite=40, prove=10_000)
def test_a_verdict_does_not_change_with_a_triple_that_no_pattern_can_match(data):
    drawn = data.draw(unmatched())
    case, options = drawn.case, dict(drawn.case.options)
    assume(drawn.more != case.stream)
    try:
        watched = watch(case.query, case.stream, end=case.end, **options)
        answers = data.draw(mutated(list(watched)))
    except (RefusedError, OutOfOrderError) as error:
        event(f"refused: {str(error)[:60]}")
        assume(False)
    options["advance_to"] = watched.horizon
    plain, more = (
        verify(case.query, stream, answers=answers, explain=False, **options) for stream in (case.stream, drawn.more)
    )
    event(f"{plain.judgement}, {'some' if answers else 'no'} answers {plain.reason[:60]}")
    assert (more.judgement, more.precision, more.recall, more.missed, more.surplus, more.undecided) == (
        plain.judgement, plain.precision, plain.recall, plain.missed, plain.surplus, plain.undecided)  # fmt: skip
    assert [(window.instant, window.due, window.right, window.expected, window.actual) for window in more.windows] == [
        (window.instant, window.due, window.right, window.expected, window.actual) for window in plain.windows
    ]


def test_a_report_that_is_silent_stays_so_beside_a_literal_that_not_all_engines_support():
    """Under Dstream: which silent reports may speak depends on what is open in answers, not on any literal held."""
    text = """SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT0.001S STEP PT0.001S]
    WHERE { WINDOW <urn:w> { ?s <urn:value> ?o FILTER(?o > 0) } }"""
    one, huge = (f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>' for number in (1, 10**22))
    semantics = Semantics(
        "drawn", frozenset({Report.CONTENT_CHANGE}), Tick.ELEMENT, R2S.DSTREAM, notify_empty=False, partial_head=False
    )
    answers = [Answer(("s",), (("<urn:b>",),), instant=3)] * 2
    counts = set()
    for more in ((), (("<urn:x>", "<urn:unmatched>", huge),)):
        held = [
            (1, (("<urn:b>", "<urn:value>", one),)),
            (3, (("<urn:a>", "<urn:near>", "<urn:a>"), *more)),
            (3, (("<urn:a>", "<urn:value>", one),)),
        ]
        elements = [StreamElement("urn:in", time, number, added) for number, (time, added) in enumerate(held)]
        explanation = verify(text, elements, answers=answers, explain=False, semantics=semantics, t0=-1, advance_to=4)
        counts.add(
            (explanation.judgement, explanation.precision, explanation.recall, explanation.missed, explanation.surplus)
        )
    assert len(counts) == 1
