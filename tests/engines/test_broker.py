"""The broker as an engine: what it refuses, and that it tells what the definition says on every case it takes."""

from collections import defaultdict
from dataclasses import replace

import pytest

from streamgauge.engines import broker
from streamgauge.model.algebra import Ask
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import CAME, WENT, expected, operator, signed
from streamgauge.semantics.profiles import CQELS, SENS
from streamgauge.semantics.refusal import OutOfOrderError, StreamNameError
from streamgauge.suites.conformance.cases import ConformanceTask, Scale, asked, load
from tests.notation import STREAM, stream

LANDMARK = Window(1, 1, "landmark")
QUERY = ContinuousQuery(parse_sparql("SELECT ?s { ?s <urn:p> ?o }"), (StreamWindow(STREAM, LANDMARK),))
TASKS = [
    task for task in asked(load(), broker.PROFILES, Scale()) if broker.refuse(task.case.query, task.semantics) is None
]


def said(task: ConformanceTask) -> dict[int, list[str]]:
    answers: list[Answer] = []
    session = broker.start(task.case.query, task.semantics, answers.append)
    for element in task.case.stream:
        session.push(element)
    session.advance(task.case.advance)
    session.close()
    both = operator(task.case.query, task.semantics) is R2S.CHANGES
    result = defaultdict(list)
    for answer in answers:
        rows = (*signed(answer.added, CAME), *signed(answer.removed, WENT)) if both else answer.added
        result[answer.instant or 0] += map(str, rows)
    return {instant: sorted(rows) for instant, rows in result.items()}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_it_tells_what_the_definition_says(task):
    case = task.case
    due = expected(case.stream, case.query, task.semantics, case.advance, task.semantics.t0)
    assert said(task) == {report.due.instant: sorted(map(str, report.rows)) for report in due}


def test_it_takes_the_cases_about_publishing():
    assert sum(task.case.theme == "publishing" and task.semantics.name == "own" for task in TASKS) == 8


@pytest.mark.parametrize(
    ("query", "semantics", "sentence"),
    [
        (QUERY, CQELS, "use sens instead of cqels"),
        (replace(QUERY, windows=(StreamWindow(STREAM, Window(2, 1)),)), SENS, "a time-based window"),
        (replace(QUERY, windows=(StreamWindow(STREAM, LANDMARK, "urn:w"),)), SENS, "a named window"),
        (replace(QUERY, r2s=R2S.RSTREAM), SENS, "Rstream: a broker sends changes"),
        (replace(QUERY, form=Ask(QUERY.form.pattern)), SENS, "ASK and CONSTRUCT: only changes of rows"),
        (replace(QUERY, windows=()), SENS, "no window"),
    ],
)
def test_what_it_refuses_is_named(query, semantics, sentence):
    assert sentence in (broker.refuse(query, semantics) or "")
    with pytest.raises(ValueError, match=r"\w"):
        broker.start(query, semantics, lambda _answer: None)


def test_a_subscriber_to_one_sign_hears_no_other():
    results = {}
    for r2s in (R2S.ISTREAM, R2S.DSTREAM):
        answers: list[Answer] = []
        session = broker.start(replace(QUERY, r2s=r2s), SENS, answers.append)
        for element in stream("1..3: a p b."):
            session.push(element)
        session.advance(4)
        results[r2s] = [(answer.instant, answer.added, answer.removed) for answer in answers]
    assert results == {
        R2S.ISTREAM: [(1, (("<urn:a>",),), ())],
        R2S.DSTREAM: [(3, (("<urn:a>",),), ())],
    }


def test_time_goes_on_and_streams_have_names():
    session = broker.start(QUERY, SENS, lambda _answer: None)
    (first, second) = stream("3: a p b. | 5: b p c.")
    session.push(second)
    with pytest.raises(OutOfOrderError, match="goes back to 3 ms"):
        session.push(first)
    other = broker.start(QUERY, SENS, lambda _answer: None)
    other.push(replace(first, stream="http://example.org/another"))
    with pytest.raises(StreamNameError, match="another"):
        other.close()
