"""What SPARQL leaves open is no reason to call an answer wrong."""

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Semantics
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
