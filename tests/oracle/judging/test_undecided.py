"""Rows at a bound of FILTER or HAVING, within the tolerance of computed numbers, count for neither side."""

from dataclasses import replace

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.semantics import R2S
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.bounds import bounded
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import SIGN
from streamgauge.semantics.profiles import RSPQL
from tests.notation import stream
from tests.oracle.runs import right_run

FLOAT = "<http://www.w3.org/2001/XMLSchema#float>"
HOT = "SELECT ?s (AVG(?v) AS ?mean) { ?s <urn:p> ?v } GROUP BY ?s HAVING(AVG(?v) > 75)"
RISES = "SELECT ?s { ?s <urn:p> ?v ; <urn:q> ?w FILTER(?v - ?w > 1) }"
AT, OVER, UNDER = "a p 74.9f. a p 75.1f.", "b p 76f.", "c p 74f."


def judged(run, text):
    return check(run, definition(stream(text)), 0, JudgingRules())


@pytest.mark.parametrize(
    ("sparql", "rewritten"),
    [
        (HOT, True),
        (RISES, True),
        ("SELECT ?s { ?s <urn:p> ?v FILTER(?v > 75) }", False),
        ("SELECT ?s { ?s <urn:p> ?v FILTER(STRLEN(?v) > 75) }", False),
        ("SELECT ?s { ?s <urn:p> ?v BIND(?v * 2 AS ?w) FILTER(!(?w >= 75) && ?v > 3) }", True),
        ("SELECT ?s { ?s <urn:p> ?v BIND(?v * 2 AS ?w) OPTIONAL { ?s <urn:q> ?x FILTER(?w = ?x) } }", True),
        ("ASK { ?s <urn:p> ?v FILTER(?v + 1 IN (3, 4)) }", True),
        ("ASK { ?s <urn:p> ?v FILTER(?v IN (3, 4)) }", False),
        ("ASK { ?s <urn:p> ?v FILTER(?v + 1 IN ()) }", True),
        ("ASK { ?s <urn:p> ?v FILTER(?v IN ()) }", False),
        ("SELECT ?s { ?s <urn:p> ?v FILTER NOT EXISTS { ?s <urn:q> ?w FILTER(?v + ?w < 3) } }", True),
    ],
)
def test_only_bounds_on_computed_numbers_are_moved(sparql, rewritten):
    form = parse_sparql(sparql)
    assert (bounded(form) is not None) is rewritten


@pytest.mark.parametrize("reports_it", [True, False], ids=["sent", "not sent"])
@pytest.mark.parametrize("bound", [">", ">="])
def test_a_row_at_the_bound_is_right_either_way(bound, reports_it):
    text = f"1: {AT} {OVER} {UNDER}"
    run = right_run(RSPQL, text=text, sparql=HOT.replace("> 75", f"{bound} 75"), advance=5)
    row = ("<urn:a>", f'"75"^^{FLOAT}')
    added = [one for one in run.answers[0].added if one != row] + [row] * reports_it
    found = judged(replace(run, answers=(replace(run.answers[0], added=tuple(added)),)), text)
    assert (found.judgement, found.precision, found.recall) == (Judgement.RIGHT, 1.0, 1.0)
    window = found.windows[0]
    assert (found.undecided, window.undecided, window.doubtful) == (1, 1, (row,))
    assert (window.expected, window.actual) == (1, 1)


def test_a_row_well_over_or_under_the_bound_is_decided():
    text = f"1: {AT} {OVER} {UNDER}"
    run = right_run(RSPQL, text=text, sparql=HOT, advance=5)
    for added in ((), (*run.answers[0].added, ("<urn:c>", f'"74"^^{FLOAT}'))):
        found = judged(replace(run, answers=(replace(run.answers[0], added=added),)), text)
        assert found.judgement is Judgement.WRONG


def test_whole_numbers_and_decimals_are_exact_and_never_undecided():
    for value, bound in (("3", "2"), ("2.5", "1.5")):
        text = f"1: a p {value}. a q 1."
        sparql = f"SELECT ?s {{ ?s <urn:p> ?v ; <urn:q> ?w FILTER(?v - ?w >= {bound}) }}"
        run = right_run(RSPQL, text=text, sparql=sparql, advance=5)
        found = judged(run, text)
        assert (found.judgement, found.undecided, found.windows[0].expected) == (Judgement.RIGHT, 0, 1)


def test_terms_that_are_no_numbers_are_compared_as_before():
    sparql = "SELECT ?s (MAX(?v) AS ?most) { ?s <urn:p> ?v } GROUP BY ?s HAVING(MAX(?v) > 'a')"
    text = "1: s p 'b'. t p 'a'."
    run = right_run(RSPQL, text=text, sparql=sparql, advance=5)
    found = judged(run, text)
    assert (found.judgement, found.undecided, found.windows[0].expected) == (Judgement.RIGHT, 0, 1)


def test_a_count_over_an_undecided_row_is_undecided_itself():
    sparql = "SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?v ; <urn:q> ?w FILTER(?v - ?w > 1) }"
    text = "1: a p 77.1f. a q 76.1f. b p 78f. b q 76f."
    run = right_run(RSPQL, text=text, sparql=sparql, advance=5)
    integer = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    for count, judgement in ((1, Judgement.RIGHT), (2, Judgement.RIGHT), (3, Judgement.WRONG)):
        said = replace(run.answers[0], added=((integer.format(count),),))
        assert judged(replace(run, answers=(said,)), text).judgement is judgement


def test_a_report_that_is_due_only_for_an_undecided_row_may_be_sent_or_not():
    quiet = replace(RSPQL, name="quiet", notify_empty=False)
    text = f"1: {OVER} | 6: {AT}"
    run = right_run(quiet, text=text, sparql=HOT, advance=10)
    assert len(run.answers) == 1
    assert judged(run, text).judgement is Judgement.RIGHT
    said = replace(run.answers[0], added=(("<urn:a>", f'"75"^^{FLOAT}'),), instant=10, scope=(5, 10))
    found = judged(replace(run, answers=(*run.answers, said)), text)
    assert (found.judgement, found.surplus, found.undecided) == (Judgement.RIGHT, 0, 1)


@pytest.mark.parametrize(
    ("said", "judgement"), [("b", Judgement.RIGHT), ("ab", Judgement.UNKNOWN), ("abc", Judgement.UNKNOWN)]
)
def test_nothing_is_undecided_where_intervals_cannot_tell(said, judgement):
    """The text of an inexact number is asked for: the evaluator's answer is right, another unknown."""
    sparql = "SELECT ?s { ?s <urn:p> ?v ; <urn:q> ?w FILTER(?v * ?w > 1.0 && STR(?v * ?w) != 'x') }"
    text = "1: a p 0.1e0. a q 10e0. b p 0.3e0. b q 10e0. c p 0.02e0. c q 10e0."
    run = right_run(RSPQL, text=text, sparql=sparql, advance=5)
    rows = tuple((f"<urn:{name}>",) for name in said)
    found = judged(replace(run, answers=(replace(run.answers[0], added=rows),)), text)
    assert (found.judgement, found.undecided) == (judgement, 0)
    assert ("inexact number" in found.reason) is (judgement is Judgement.UNKNOWN)


@pytest.mark.parametrize("reports_it", [True, False], ids=["sent", "not sent"])
def test_a_double_that_a_float_was_added_to_is_as_near_as_the_float(reports_it):
    """An implementation may carry "0.3"^^xsd:float wider, so that it is 0.3 or 0.300000012 in an xsd:double."""
    text = "1: a p 0.3f. a q 0e0. b p 9f. b q 0e0."
    sparql = "SELECT ?s { ?s <urn:p> ?v ; <urn:q> ?w FILTER(?v + ?w > 0.3e0) }"
    run = right_run(RSPQL, text=text, sparql=sparql, advance=5)
    rows = (("<urn:b>",), *[("<urn:a>",)] * reports_it)
    found = judged(replace(run, answers=(replace(run.answers[0], added=rows),)), text)
    assert (found.judgement, found.undecided) == (Judgement.RIGHT, 1)


def test_a_report_of_changes_that_an_undecided_row_alone_makes_due_has_the_sign_too():
    quiet = replace(RSPQL, name="quiet", notify_empty=False, r2s=R2S.CHANGES, r2s_able=frozenset(R2S))
    text = f"1: {AT}"
    run = right_run(quiet, text=text, sparql=HOT, advance=5)
    assert run.answers == ()
    said = Answer(("s", "mean"), (("<urn:a>", f'"75"^^{FLOAT}'),), instant=5, scope=(0, 5))
    for answers in ((), (said,)):
        found = judged(replace(run, answers=answers), text)
        assert (found.judgement, found.undecided) == (Judgement.RIGHT, len(answers))
        assert found.variables == ("s", "mean", SIGN)
