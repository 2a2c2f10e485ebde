"""Opinions on the answers of one report: legal, illegal with the nearest legal answer, or unknown with the reason."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Counting, EmptyAggregate, Semantics
from streamgauge.model.terms import Row
from streamgauge.oracle.worlds.intervals import OpenError
from streamgauge.oracle.worlds.legality import Opinion, ReportLegality
from streamgauge.oracle.worlds.membership import Overlap
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Arrival
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, rows, triples

DUE, OTHER = DueReport(5, ()), DueReport(10, ())
SAMPLE = "SELECT ?s (SAMPLE(?v) AS ?m) { ?s :p ?v } GROUP BY ?s"
CONTENT = "a p 1. a p 2. b p 3"


def legality(text: str, content: str = CONTENT, semantics: Semantics = RSPQL, *, exact: bool = False):
    """The legal answers over a content at 5, and over nothing at 10."""
    query = ContinuousQuery(parse_sparql(f"PREFIX : <urn:> {text}"), (StreamWindow(STREAM, Window(5, 5)),))
    asked: list[DueReport] = []

    def contents(due: DueReport):
        asked.append(due)
        return ((Arrival(STREAM, 0, None, tuple(triples(content if due == DUE else ""))),),)

    result = ReportLegality(contents, query, semantics, exact_datatypes=exact)
    return result, asked


@pytest.mark.parametrize(
    ("received", "legal", "nearest"),
    [
        ("a 1 ; b 3", True, Overlap(2, (), ())),
        ("b 3 ; a 2", True, Overlap(2, (), ())),
        ("a 3 ; b 3", False, Overlap(1, rows("a 1"), rows("a 3"))),
        ("b 3", False, Overlap(1, rows("a 1"), ())),
        ("", False, Overlap(0, rows("a 1 ; b 3"), ())),
    ],
)
def test_an_answer_is_legal_or_compared_with_the_nearest_that_is(received: str, legal: bool, nearest: Overlap) -> None:
    result, _ = legality(SAMPLE)
    assert result.of(DUE, rows(received)) == Opinion(legal)
    assert result.nearest(DUE, rows(received)) == nearest


def test_contents_are_asked_for_once_for_each_kind_of_answers() -> None:
    result, asked = legality(SAMPLE)
    assert not asked
    for _ in range(3):
        assert result.of(DUE, rows("a 1 ; b 3")).legal
        assert not result.of(DUE, rows("a 7 ; b 3")).legal
    assert asked == [DUE]


@pytest.mark.parametrize(
    ("text", "content", "closed", "certain", "speaks"),
    [
        (SAMPLE, CONTENT, False, False, True),
        (SAMPLE, "a p 1", False, True, True),
        (SAMPLE, "", False, True, False),
        ("SELECT ?s { ?s :p ?v FILTER(?v > 1) }", "a p 2", True, True, True),
        ("SELECT ?s { ?s :p ?v FILTER(?v > 1.5) }", "a p 0.1f", True, True, False),
        ("SELECT ?s { ?s :p ?v FILTER(?v + ?v > 1.5) }", "a p 0.1f", False, True, False),
        ("SELECT ?s { ?s :p ?v } LIMIT 1", CONTENT, False, False, True),
        # What cannot be decided may have rows, and is not certain.
        ("SELECT (STR(AVG(?v)) AS ?m) { ?s :p ?v }", "a p 0.1f. b p 0.2f", False, False, True),
    ],
)
def test_what_is_closed_what_is_certain_and_what_may_have_rows(
    text: str, content: str, closed: bool, certain: bool, speaks: bool
) -> None:
    result, _ = legality(text, content)
    for _ in range(2):
        assert result.is_certain(DUE) is certain
        assert result.may_speak(DUE) is speaks
    if closed:
        assert result.is_closed(DUE) is True


def test_what_cannot_be_decided_is_unknown_with_the_reason() -> None:
    result, asked = legality("SELECT (STR(AVG(?v)) AS ?m) { ?s :p ?v }", "a p 0.1f. b p 0.2f")
    opinion = result.of(DUE, rows("'0.15'"))
    assert (opinion.legal, opinion.nearest) == (False, None)
    assert "an inexact number is used as a term" in opinion.unknown
    assert result.nearest(DUE, rows("'0.15'")) is None
    with pytest.raises(OpenError, match="an inexact number is used as a term"):
        result.answers(DUE)
    assert asked == [DUE]  # an error is remembered too


def test_what_implementations_need_not_support_is_unknown_where_only_it_is_legal() -> None:
    result, asked = legality("SELECT (?v + 1 AS ?w) { ?s :p ?v }", "a p 9223372036854775807")
    assert result.of(DUE, rows("9223372036854775808")) == Opinion(True)
    assert asked == [DUE]
    wrapped = result.of(DUE, rows("-9223372036854775808"))
    assert (wrapped.legal, wrapped.unknown.startswith("a number of more than 18 digits")) == (False, True)
    assert result.of(DUE, rows("7")) == Opinion(False)
    assert asked == [DUE, DUE]


def test_sets_have_each_row_once_and_no_limit_to_their_rows() -> None:
    as_sets = replace(RSPQL, answers=Counting.SET)
    result, _ = legality("SELECT (SAMPLE(?v) AS ?m) { ?s :p ?v } GROUP BY ?s", "a p 1. a p 2. b p 1", as_sets)
    assert [result.of(DUE, rows(said)).legal for said in ("1", "1 ; 2", "2")] == [True, True, False]
    cut, _ = legality("SELECT ?s { ?s :p ?v } LIMIT 1", CONTENT, as_sets)
    assert cut.of(DUE, rows("a")).unknown == "answers compared as sets do not tell how many rows LIMIT kept"
    bags, _ = legality("SELECT ?s { ?s :p ?v } LIMIT 2", CONTENT)
    assert [bags.of(DUE, rows(said)).legal for said in ("a ; b", "a ; a", "b ; b", "a")] == [True, True, False, False]
    assert bags.nearest(DUE, rows("a")) is None  # a slice has none


@pytest.mark.parametrize(("exact", "legal"), [(False, True), (True, False)])
def test_datatypes_are_compared_where_that_is_asked_for(exact: bool, legal: bool) -> None:
    result, _ = legality("SELECT (SUM(?v) AS ?n) { ?s :p ?v }", "a p 1. b p 2", exact=exact)
    assert result.of(DUE, rows("3.0")).legal is legal
    assert result.of(DUE, rows("3")).legal


@pytest.mark.parametrize(
    ("empty", "said"), [(EmptyAggregate.SPARQL, "0"), (EmptyAggregate.UNBOUND, "-"), (EmptyAggregate.NO_ROW, "")]
)
def test_an_aggregate_over_nothing_is_that_of_the_semantics(empty: EmptyAggregate, said: str) -> None:
    result, _ = legality("SELECT (SUM(?v) AS ?n) { ?s :p ?v }", CONTENT, replace(RSPQL, empty_aggregate=empty))
    for other in ("0", "-", ""):
        assert result.of(OTHER, held(other)).legal is (other == said)
    assert result.of(DUE, rows("6")).legal


@pytest.mark.parametrize("cut", ["", "ORDER BY ?n", "ORDER BY ?n LIMIT 1", "LIMIT 1"])
@pytest.mark.parametrize(
    ("pattern", "content"),
    [
        # The difference of two rounded floats may be above 0.1 or not; a sample may be 2 or 1.
        ("?x :p ?v ; :q ?w FILTER(?v - ?w > 0.1)", "a p 50.2f. a q 50.1f"),
        ("{ SELECT ?x (SAMPLE(?v) AS ?m) { ?x :p ?v } GROUP BY ?x } FILTER(?m > 1)", "a p 1. a p 2"),
    ],
)
def test_whether_anything_matches_and_what_is_counted_are_one_decision(pattern: str, content: str, cut: str) -> None:
    text = f"SELECT (COUNT(*) AS ?n) {{ {pattern} }} {cut}"
    result, _ = legality(text, content, replace(RSPQL, empty_aggregate=EmptyAggregate.NO_ROW))
    assert [result.of(DUE, rows(said)).legal for said in ("1", "", "0", "2")] == [True, True, False, False]
    plain, _ = legality(text, content)
    assert [plain.of(DUE, rows(said)).legal for said in ("1", "", "0", "2")] == [True, False, True, False]


def held(text: str) -> Sequence[Row]:
    return [(None,)] if text == "-" else rows(text)


def test_blank_nodes_are_those_of_the_legal_answer_whatever_their_names() -> None:
    text = "SELECT ?b ?m { { SELECT ?s (SAMPLE(?v) AS ?m) { ?s :p ?v } GROUP BY ?s } BIND(BNODE() AS ?b) }"
    result, _ = legality(text)
    assert result.of(DUE, rows("_:x 2 ; _:y 3")).legal
    assert not result.of(DUE, rows("_:x 2 ; _:x 3")).legal
    assert result.nearest(DUE, rows("_:x 2 ; _:y 7")).common == 1
