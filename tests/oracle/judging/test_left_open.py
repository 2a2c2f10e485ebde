"""What SPARQL leaves open is no reason to call an answer wrong."""

from dataclasses import replace

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.choices import joins
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import parse_sparql
from tests.notation import STREAM, stream

ELEMENTS = stream("0: a p 'x'. | 1: b p 'y'. c p 'x'.")


def run_of(text: str, *rows: tuple[str, ...]) -> Run:
    form = parse_sparql(text)
    query = ContinuousQuery(form, (StreamWindow(STREAM, Window(2, 2)),))
    header = RunHeader("e", query, text, "rspql", Semantics("s"), advanced_to=2, started=0)
    return Run(header, (Answer(form.variables, rows),), ())


JOINED = "SELECT (GROUP_CONCAT(?o; separator='; ') AS ?all) { ?s <urn:p> ?o }"


@pytest.mark.parametrize(
    ("said", "judged"),
    [
        ("x; x; y", Judgement.RIGHT),
        ("y; x; x", Judgement.RIGHT),
        ("x; y", Judgement.WRONG),
        ("y; y; x", Judgement.WRONG),
    ],
)
def test_the_order_of_a_concatenation_is_open(said: str, judged: Judgement) -> None:
    run = run_of(JOINED, (f'"{said}"',))
    assert check(run, definition(ELEMENTS), 0, JudgingRules()).judgement is judged


@pytest.mark.parametrize(
    ("said", "judged"), [('"x"', Judgement.RIGHT), ('"y"', Judgement.RIGHT), ('"z"', Judgement.WRONG)]
)
def test_sample_may_give_any_value_of_its_group(said: str, judged: Judgement) -> None:
    run = run_of("SELECT (SAMPLE(?o) AS ?any) { ?s <urn:p> ?o }", (said,))
    assert check(run, definition(ELEMENTS), 0, JudgingRules()).judgement is judged


def test_a_comparison_with_a_sample_is_undecided_where_its_values_differ() -> None:
    text = "SELECT ?p (SAMPLE(?o) AS ?any) { ?s ?p ?o } GROUP BY ?p HAVING(SAMPLE(?o) = 'x')"
    for rows in ((), (("<urn:p>", '"x"'),)):
        verdict = check(run_of(text, *rows), definition(ELEMENTS), 0, JudgingRules())
        assert (verdict.judgement, verdict.undecided) == (Judgement.RIGHT, 1)
    assert check(run_of(text, ("<urn:q>", '"x"')), definition(ELEMENTS), 0, JudgingRules()).judgement is Judgement.WRONG


def test_a_sample_whose_term_is_read_is_unknown_unless_it_is_the_same() -> None:
    text = "SELECT (CONCAT(SAMPLE(?o), '!') AS ?any) { ?s <urn:p> ?o }"
    verdict = check(run_of(text, ('"z!"',)), definition(ELEMENTS), 0, JudgingRules())
    assert verdict.judgement is Judgement.UNKNOWN
    assert "SAMPLE" in verdict.reason


@pytest.mark.parametrize(
    ("text", "strings", "separator", "joined"),
    [
        ("a b c", ["a", "b c"], " ", True),
        ("b c a", ["a", "b c"], " ", True),
        ("a c b", ["a", "b c"], " ", False),
        ("ab", ["b", "c"], "", False),
        ("ba", ["b", "a"], "", True),
        ("aaa", ["a", "aa"], "", True),
        ("a a aa", ["a", "a", "aa"], " ", True),
        ("a aa aa", ["a", "a", "aa"], " ", False),
        ("", [""], ",", True),
        (",", ["", ""], ",", True),
        ("a", ["a", ""], ",", False),
        (",a", ["a", ""], ",", True),
    ],
)
def test_a_concatenation_is_its_pieces_in_some_order(
    text: str, strings: list[str], separator: str, joined: bool
) -> None:
    assert joins(text, strings, separator) is joined


@pytest.mark.parametrize(
    ("sends", "form", "reason"),
    [
        (R2S.ISTREAM, "SELECT (SAMPLE(?o) AS ?any) { ?s <urn:p> ?o }", "differences to it cannot be compared"),
        (R2S.ISTREAM, "SELECT (GROUP_CONCAT(?o) AS ?all) { ?s <urn:p> ?o }", "differences to it cannot be compared"),
        (R2S.RSTREAM, "CONSTRUCT { <urn:r> <urn:a> ?v } { SELECT (SAMPLE(?o) AS ?v) { ?s <urn:p> ?o } }", "CONSTRUCT"),
        (R2S.RSTREAM, "CONSTRUCT { <urn:r> <urn:a> ?v } { SELECT (AVG(?o) AS ?v) { ?s <urn:n> ?o } }", "CONSTRUCT"),
    ],
)
def test_a_term_that_is_open_and_cannot_be_compared_is_unknown_where_it_differs(sends, form, reason):
    elements = stream(
        "0: a p 'x'. b p 'y'. a n 0.1e0. b n 0.2e0. | 2: a p 'z'. a p 'w'. a n 0.4e0. b n 0.3e0. | 5: a q b."
    )
    semantics = Semantics("s", r2s=sends, r2s_able=frozenset(R2S))
    query = ContinuousQuery(parse_sparql(form), (StreamWindow(STREAM, Window(2, 2)),))
    right = definition(elements)(query, semantics, 4, 0)
    answers = tuple(Answer(each.variables, each.rows, instant=each.due.instant) for each in right)
    run = Run(RunHeader("e", query, form, "rspql", semantics, advanced_to=4, started=0), answers, ())
    assert check(run, definition(elements), 0, JudgingRules()).judgement is Judgement.RIGHT
    other = replace(answers[1], added=tuple((*row[:-1], '"other"') for row in answers[1].added))
    verdict = check(replace(run, answers=(answers[0], other)), definition(elements), 0, JudgingRules())
    assert (verdict.judgement, reason in verdict.reason) == (Judgement.UNKNOWN, True)
