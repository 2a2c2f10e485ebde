"""The query streamer as an engine: it answers as the definition says, over facts that begin and end."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines import fragments
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.semantics import Borders, Report
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import Valid, definition
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import CSPARQL, FRAGMENTS, FRAGMENTS_PROTOTYPE
from streamgauge.suites.conformance.cases import load as cases
from tests.examples import examples

STREAM = "http://ex.org/streams/test"
HOLDS = (StreamWindow(STREAM, Window(1000, 1000, "landmark")),)
ASKED = (
    "SELECT ?s ?o { ?s <urn:p> ?o }",
    "SELECT ?s ?n { ?s <urn:p> <urn:a> ; <urn:q> ?n }",
    "SELECT ?s ?n { ?s <urn:p> ?o OPTIONAL { ?o <urn:q> ?n } }",
    "SELECT ?o (COUNT(?s) AS ?n) { ?s <urn:p> ?o } GROUP BY ?o",
    "ASK { ?s <urn:p> ?s }",
)


def query(text, static=()):
    return ContinuousQuery(parse_sparql(text), HOLDS, static=static)


def answered(asked, semantics, elements, advance):
    answers = []
    session = fragments.start(asked, semantics, answers.append)
    for element in elements:
        session.push(element)
    session.advance(advance)
    session.close()
    return answers


def shown(answers):
    return [(answer.instant, sorted(map(str, answer.added))) for answer in answers]


def due(asked, semantics, elements, advance):
    result = expected(elements, asked, semantics, advance, semantics.t0)
    return [(report.due.instant, sorted(map(str, report.rows))) for report in result]


OWN = [case for case in cases() if fragments.refuse(case.query, case.semantics) is None]


def test_some_cases_are_its_own():
    assert len(OWN) >= 4
    assert all(Report.EXPIRATION in case.semantics.report for case in OWN)


@pytest.mark.parametrize("case", OWN, ids=lambda case: case.name)
def test_cases(case):
    result = answered(case.query, case.semantics, case.stream, case.advance)
    assert shown(result) == [(instant, sorted(map(str, rows))) for instant, rows in case.expected]


TRIPLES = st.tuples(
    st.sampled_from(["<urn:a>", "<urn:b>"]),
    st.sampled_from(["<urn:p>", "<urn:q>"]),
    st.sampled_from(["<urn:a>", "<urn:c>"]),
)
LASTS = st.one_of(st.none(), st.integers(1, 9))
FACTS = st.lists(st.tuples(st.integers(0, 4), LASTS, st.lists(TRIPLES, min_size=1, max_size=3)), max_size=7)


def drawn(facts, alike):
    """Elements whose triples come once, as copies of a triple are one fact to the client, with ``alike`` predicates."""
    time, elements, known = 0, [], set()
    for number, (step, lasts, triples) in enumerate(facts):
        time += step
        told = [(s, "<urn:p>", o) if alike else (s, p, o) for s, p, o in triples]
        new = tuple(dict.fromkeys(triple for triple in told if triple not in known))
        known.update(new)
        if new:
            elements.append(StreamElement(STREAM, time, number, new, (), None if lasts is None else time + lasts))
    return elements, time + 6


@examples(12, prove=2000)
@given(FACTS, st.integers(1, 3))
def test_it_reports_and_answers_as_the_definition_says(facts, period):
    elements, advance = drawn(facts, alike=True)
    asked, semantics = query(ASKED[0]), replace(FRAGMENTS, period=period)
    assert shown(answered(asked, semantics, elements, advance)) == due(asked, semantics, elements, advance)


@pytest.mark.slow
@examples(20, prove=2000)
@given(FACTS, st.sampled_from(ASKED), st.lists(TRIPLES, max_size=2), st.integers(1, 3))
def test_every_answer_is_that_of_the_facts_valid_at_its_instant(facts, text, static, period):
    elements, advance = drawn(facts, alike=False)
    asked, semantics = query(text, tuple(static)), replace(FRAGMENTS, period=period)
    valid = Valid(asked, semantics, elements)
    result = answered(asked, semantics, elements, advance)
    assert result[0].instant == 0
    assert shown(result) == [(answer.instant, sorted(map(str, valid.at(answer.instant)))) for answer in result]


def board(updates, period):
    """Departures that are renewed, one of which is late from the third update on."""
    for turn in range(updates):
        for number in range(5):
            late = "5" if number == 2 and turn > 2 else "0"
            triple = (f"<urn:train{number}>", "<urn:delay>", f'"{late}"')
            yield StreamElement(STREAM, turn * period, turn * 5 + number, (triple,), (), (turn + 1) * period)


def test_the_oracle_judges_it_and_staleness_is_delay():
    asked, elements, advance = query("SELECT ?t ?d { ?t <urn:delay> ?d }"), tuple(board(6, 10_000)), 60_000
    result = answered(asked, FRAGMENTS, elements, advance)
    assert [len(answer.added) for answer in result] == [5, 5, 5, 5, 5, 5, 0]
    second = 1_000_000_000
    late = [replace(answer, received=(answer.instant // 1000) * second + 2 * second) for answer in result]
    fed = [
        Fed(element.sequence, element.time, element.time * 1_000_000, element.time * 1_000_000, 1)
        for element in elements
    ]
    header = RunHeader("fragments", asked, "", "sparql", FRAGMENTS, advance, 0, factor=1.0, evaluator="changes")
    judge = definition(elements)
    verdict = check(Run(header, tuple(late), tuple(fed)), judge, 0, JudgingRules())
    assert (verdict.judgement, verdict.max_delay) == (Judgement.RIGHT, 2000.0)
    stale = [*late[:3], replace(late[3], added=late[2].added), *late[4:]]
    assert check(Run(header, tuple(stale), tuple(fed)), judge, 0, JudgingRules()).judgement is Judgement.WRONG


def test_what_it_refuses():
    over = ContinuousQuery(parse_sparql(ASKED[0]), (StreamWindow(STREAM, Window(5, 5)),))
    named = ContinuousQuery(parse_sparql(ASKED[0]), (StreamWindow(STREAM, Window(5, 5, "landmark"), "urn:w"),))
    assert "use a landmark window" in fragments.refuse(over, FRAGMENTS)
    assert "a named window" in fragments.refuse(named, FRAGMENTS)
    assert "use fragments instead of csparql" in fragments.refuse(query(ASKED[0]), CSPARQL)
    assert FRAGMENTS_PROTOTYPE.borders is Borders.OPEN_CLOSED
    assert "instead of fragments-prototype" in fragments.refuse(query(ASKED[0]), FRAGMENTS_PROTOTYPE)
