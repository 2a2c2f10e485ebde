"""Static data inside a window clause: the field ``static_data``, whatever stands outside of the clause."""

import pytest

import streamgauge as sg
from streamgauge.model.semantics import Semantics, StaticData
from streamgauge.query import parse, print_query
from streamgauge.semantics.profiles import CQELS, CSPARQL, RSPQL
from streamgauge.semantics.static_data import as_printed, with_matched_static

STREAM = [(1000, '<urn:a> <urn:p> "stream" .')]
STATIC = [("<urn:a>", "<urn:p>", '"static"'), ("<urn:a>", "<urn:t>", '"T"')]
HEAD = "SELECT ?o FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S STEP PT1S] WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } "
OUTSIDE = ["}", "?s <urn:t> ?x }", "OPTIONAL { ?s <urn:none> ?x } }"]


def rows(text: str, semantics: Semantics) -> list[str | None]:
    (report,) = sg.expect(text, STREAM, semantics=semantics, t0=1000, advance_to=2000, static=STATIC)
    return sorted(row[0] for row in report.rows)


@pytest.mark.parametrize("outside", OUTSIDE)
def test_rspql_matches_none_inside_a_window(outside: str) -> None:
    assert rows(HEAD + outside, Semantics("own")) == ['"stream"']


def test_one_graph_where_the_semantics_says_so() -> None:
    beside = Semantics("own", static_data=StaticData.BESIDE)
    assert rows(HEAD + "}", beside) == ['"static"', '"stream"']
    assert rows(HEAD + OUTSIDE[1], beside) == ['"stream"']


@pytest.mark.parametrize(
    ("text", "semantics"),
    [
        ("SELECT ?o FROM STREAM <urn:s> [RANGE 1s STEP 1s] WHERE { ?s <urn:p> ?o }", CSPARQL),
        ("SELECT ?o WHERE { STREAM <urn:s> [RANGE 1s SLIDE 1s] { ?s <urn:p> ?o } }", CQELS),
    ],
)
def test_other_dialects_have_no_window_clause(text: str, semantics: Semantics) -> None:
    query = parse(text).with_static(STATIC)
    assert not query.window_clause
    assert with_matched_static(query, semantics) is with_matched_static(query, RSPQL) is query
    printed = parse(print_query(query, "rspql")).with_static(STATIC)
    assert with_matched_static(printed, as_printed(query, RSPQL, "rspql")) is printed
    assert with_matched_static(printed, RSPQL).static == ()
    assert as_printed(query.with_static(()), RSPQL, "rspql") is as_printed(query, RSPQL, "csparql") is RSPQL


@pytest.mark.parametrize(("rows_", "judgement"), [([['"stream"']], "right"), ([['"stream"'], ['"static"']], "wrong")])
def test_answers_are_judged_by_the_same_rule(rows_: list[list[str]], judgement: str) -> None:
    options = {"semantics": Semantics("own"), "t0": 1000, "advance_to": 2000, "static": STATIC, "explain": False}
    assert sg.verify(HEAD + "}", STREAM, answers=[(2000, rows_)], **options).judgement == judgement


def test_live_answers_by_the_same_rule() -> None:
    options = {"semantics": Semantics("own"), "t0": 1000, "end": 2000, "static": STATIC}
    with sg.watch(HEAD + "}", STREAM, **options) as answers:
        assert [answer.added for answer in answers] == [(('"stream"',),)]
