"""Rows with intervals as rows of terms, and the values that rows of a cut answer may have."""

from dataclasses import replace

import pytest

from streamgauge.model.terms import XSD
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging import choices
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.oracle.judging.undecided import named
from streamgauge.semantics.profiles import RSPQL
from tests.notation import stream, term
from tests.oracle.runs import right_run

AROUND = '"1 2 3/2"^^<urn:streamgauge:interval:3>'
SECOND = frozenset({1})


def row(name: str, value: str) -> tuple[str, str]:
    return term(name), value if value.startswith('"') else term(value)


def test_an_interval_is_the_plain_answers_number_that_fits():
    plain = [row("a", "9e0"), row("a", "1.25e0"), row("b", "1.75e0")]
    assert named([row("a", AROUND), row("b", AROUND)], plain, SECOND) == (plain[1], plain[2])


def test_a_row_of_the_plain_answer_is_taken_once():
    plain = [row("a", "1.25e0")]
    own = row("a", f'"1.5"^^<{XSD}double>')
    assert named([row("a", AROUND)] * 2, plain, SECOND) == (plain[0], own)
    assert named([plain[0], row("a", AROUND)], plain, SECOND) == (plain[0], own)
    assert named([row("a", AROUND)] * 2, plain * 2, SECOND) == (plain[0], plain[0])


def test_without_one_that_fits_the_interval_is_its_own_value():
    assert named([row("a", AROUND)], [row("a", "3e0"), row("b", "1.25e0")], SECOND) == (
        row("a", f'"1.5"^^<{XSD}double>'),
    )
    assert named([row("a", "7")], [], SECOND) == (row("a", "7"),)
    assert named([], [row("a", "7")], SECOND) == ()


@pytest.mark.parametrize("limit", ["LIMIT 1", "ORDER BY STRLEN(STR(?s)) LIMIT 1", ""])
@pytest.mark.parametrize(
    ("name", "value", "judgement"),
    [
        ("a", "0.3", Judgement.RIGHT),
        ("a", "0.30000000000000004", Judgement.RIGHT),
        ("b", "0.7", Judgement.RIGHT),
        ("b", "0.7000000000000001", Judgement.RIGHT),
        ("a", "0.7", Judgement.WRONG),
        ("b", "0.3", Judgement.WRONG),
        ("b", "0.71", Judgement.WRONG),
    ],
)
def test_the_row_that_is_kept_may_have_any_number_that_implementations_compute(limit, name, value, judgement):
    sparql = f"SELECT ?s (SUM(?v) AS ?t) {{ ?s <urn:p> ?v }} GROUP BY ?s {limit}"
    text = "1: a p 0.1e0. a p 0.2e0. b p 0.3e0. b p 0.4e0."
    run = right_run(RSPQL, text=text, sparql=sparql, advance=5)
    sent = (f"<urn:{name}>", f'"{value}"^^<{XSD}double>')
    others = [] if limit else [each for each in run.answers[0].added if each[0] != sent[0]]
    said = replace(run, answers=(replace(run.answers[0], added=(sent, *others)),))
    assert check(said, definition(stream(text)), 0, JudgingRules()).judgement is judgement


def test_an_open_term_is_a_legal_value_of_its_own():
    held = choices.choice([term("y"), term("x")])
    joined = choices.pieces(["b", "a"], "-")
    assert named([("<urn:a>", held), ("<urn:a>", joined)], [], SECOND) == (row("a", "x"), ("<urn:a>", '"a-b"'))
    assert named([("<urn:a>", held)], [row("a", "y")], SECOND) == (row("a", "y"),)
    assert named([("<urn:a>", None)], [], SECOND) == (("<urn:a>", None),)
