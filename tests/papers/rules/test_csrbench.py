"""CSRBench's rules: scopes, sets with their quirk, the contiguous part."""

from dataclasses import replace
from itertools import islice

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import CQL, R2S, Report
from streamgauge.model.terms import XSD
from streamgauge.model.verdict import Judgement
from streamgauge.papers.csrbench.rules import (
    AnswerRelation,
    CsrbenchOracle,
    ScopeAnswers,
    changing,
    closing,
    counts,
    grouped,
    number,
    place,
    recorded,
)
from streamgauge.papers.rules import Equality, RuleSettings, UnknownRulesError, judge_as, names
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import CQELS, CSPARQL, SPARQLSTREAM, YABENCH
from tests.notation import STREAM, stream

TEXT = "SELECT ?s { ?s <urn:p> ?o }"
DATA = "1000: a p x. | 3000: b p x. | 12000: c p x. | 15000: d p x."


def oracle(window=(5000, 5000), semantics=CSPARQL, text=DATA, sparql=TEXT, equality=Equality.NUMBERS):
    query = ContinuousQuery(parse_sparql(sparql), (StreamWindow(STREAM, Window(*window)),))
    return CsrbenchOracle(ScopeAnswers(query, stream(text)), semantics, equality=equality)


def run(answers, semantics=CSPARQL, window=(5000, 5000), sparql=TEXT):
    query = ContinuousQuery(parse_sparql(sparql), (StreamWindow(STREAM, Window(*window)),))
    return Run(RunHeader("test", query, sparql, "rspql", semantics, 60_000, 0), tuple(answers), ())


def said(*rows):
    return Answer(("s",), tuple((f"<urn:{name}>",) for name in rows))


@pytest.mark.parametrize(
    ("window", "t0", "scopes"),
    [
        ((10, 3), 0, [(0, 2), (0, 4), (3, 13), (6, 16)]),
        ((10, 3), 2, [(2, 4), (5, 13), (8, 16)]),
        ((1, 1), 0, [(1, 2), (3, 4), (12, 13), (15, 16)]),
    ],
)
def test_scopes_on_content_change_are_those_of_its_own_tests(window, t0, scopes):
    assert list(changing(Window(*window), t0, (1, 3, 12, 15), 1)) == scopes


def test_scopes_on_window_close_are_those_of_its_own_tests():
    assert list(islice(closing(Window(10, 3), 2), 3)) == [(2, 12), (5, 15), (8, 18)]
    assert list(islice(closing(Window(5, 5), 5), 2)) == [(5, 10), (10, 15)]


def test_data_at_t0_is_never_reported_by_itself():
    assert [scope[1] for scope in changing(Window(5, 5), 3, (3, 4), 1)] == [5]


def test_candidates_for_t0_hold_both_ends():
    assert list(oracle(semantics=SPARQLSTREAM).candidates) == [0, 1000, 2000, 3000, 4000, 5000]


def test_windows_without_data_are_skipped_or_empty_by_the_strategy():
    assert [relation.end for relation in oracle().output(0)] == [5000, 15000, 20000]
    everything = replace(CSPARQL, report=frozenset({Report.WINDOW_CLOSE}))
    ends = [(relation.end, len(relation.rows)) for relation in oracle(semantics=everything).output(0)]
    assert ends == [(5000, 2), (10000, 0), (15000, 1), (20000, 1), (25000, 0)]


def test_empty_answers_are_sent_when_the_semantics_notifies():
    none = "SELECT ?s { ?s <urn:q> ?o }"
    assert counts(oracle(sparql=none).output(0)) == (3, 0)
    assert oracle(sparql=none, semantics=SPARQLSTREAM).output(0) == ()


def test_istream_and_dstream_are_differences_of_sets():
    sliding = replace(CSPARQL, notify_empty=False, r2s_able=frozenset(CQL))
    rows = {
        r2s: [
            sorted(row[0] for row in relation.rows)
            for relation in oracle((4000, 2000), replace(sliding, r2s=r2s)).output(0)
        ]
        for r2s in CQL
    }
    assert rows[R2S.RSTREAM][:2] == [["<urn:a>", "<urn:b>"], ["<urn:b>"]]
    assert rows[R2S.ISTREAM] == [["<urn:a>", "<urn:b>"], ["<urn:c>"], ["<urn:d>"]]
    assert rows[R2S.DSTREAM] == [["<urn:a>"], ["<urn:b>"], ["<urn:c>"]]


@pytest.mark.parametrize(
    ("term", "value"),
    [
        ('"90."^^<urn:any>', 90.0),
        ('"9e1"', 90.0),
        (f'"90"^^<{XSD}integer>', 90.0),
        ('"null"', None),
        ("<urn:90>", None),
    ],
)
def test_numbers_are_told_by_their_text(term, value):
    assert number(term) == value


def test_a_solution_with_numbers_is_equal_by_its_numbers_alone():
    rows = (("<urn:a>", '"9"'), ("<urn:b>", '"9.0"'))
    for equality, size in ((Equality.NUMBERS, 1), (Equality.WHOLE, 2)):
        assert len(AnswerRelation(("s", "v"), rows, equality=equality).mappings) == size


def test_a_contiguous_part_is_contained_wherever_it_starts():
    output = recorded([said("a"), said("b"), said(), said("c", "d")])
    assert place(output, recorded([said("b"), said()]), 0).offset == 1
    assert place(output, recorded([said("b"), said()]), 0).contained
    assert place(output, recorded([said("d", "c")]), 0).contained
    assert place(output, (), 0).contained
    assert not place(output, recorded([said("a"), said()]), 0).contained
    assert not place(output, recorded([said("c", "d"), said("e")]), 0).contained
    assert not place(output, recorded([said("b"), said("b")]), 0).contained


def test_the_first_t0_that_fits_is_found_and_times_are_ignored():
    verdict = judge_as("csrbench", run([said("c"), said("d")]), stream(DATA))
    assert (verdict.judgement, verdict.t0, verdict.rules) == (Judgement.RIGHT, 0, "csrbench")
    verdict = judge_as("csrbench", run([said("c", "d")]), stream(DATA))
    assert (verdict.judgement, verdict.t0) == (Judgement.RIGHT, 1000)


def test_the_best_placing_of_a_wrong_run_shows_what_differs():
    verdict = judge_as("csrbench", run([said("x"), said("a", "b"), said("c"), said("e")]), stream(DATA))
    assert verdict.judgement is Judgement.WRONG
    assert "For no t0 from 0 to 5000 ms" in verdict.reason
    assert [window.due for window in verdict.windows] == [False, True, True, True]
    assert verdict.windows[3].missing == (("<urn:d>",),)
    assert verdict.windows[3].surplus == (("<urn:e>",),)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"answers": [Answer(("s",), ((None,),))]}, "leaves ?s unbound"),
        ({"semantics": replace(CSPARQL, report=frozenset({Report.PERIODIC}), period=1000)}, "periodic"),
        ({"sparql": "ASK { ?s ?p ?o }"}, "not a SELECT"),
    ],
)
def test_what_it_does_not_know_is_unknown(changed, reason):
    verdict = judge_as("csrbench", run(**{"answers": [said("a")], **changed}), stream(DATA))
    assert verdict.judgement is Judgement.UNKNOWN
    assert reason in verdict.reason


@pytest.mark.parametrize("rules", names())
def test_elements_of_other_streams_do_not_count_and_wrong_names_are_named(rules):
    other = tuple(replace(element, stream="http://ex.org/other") for element in stream("2000: z p x."))
    semantics = CSPARQL if rules == "csrbench" else YABENCH
    told = run([said("a", "b")], semantics)
    mixed = (*stream("1000: a p x. | 3000: b p x."), *(replace(one, sequence=9) for one in other))
    assert judge_as(rules, told, mixed).judgement is Judgement.RIGHT
    verdict = judge_as(rules, told, other)
    assert verdict.judgement is Judgement.UNKNOWN
    assert "the elements are of http://ex.org/other" in verdict.reason


def test_rule_sets_are_listed_from_their_folder():
    assert names() == ("csrbench", "yabench")
    with pytest.raises(UnknownRulesError, match="csrbench, yabench"):
        judge_as("other", run([]), stream(DATA))


def test_rows_are_taken_together_by_the_second():
    answers = [replace(said(name), received=ms * 1_000_000) for name, ms in (("a", 1100), ("b", 1900), ("c", 2000))]
    assert [len(answer.added) for answer in grouped(answers, 1000)] == [2, 1]


def test_settings_say_whether_the_quirk_counts():
    text = "0: a v '9'. | 1000: b v '9'."
    sparql = "SELECT ?s ?v { ?s <urn:v> ?v }"
    told = [Answer(("s", "v"), (("<urn:x>", '"9.0"'),))]
    judgements = [
        judge_as("csrbench", run(told, sparql=sparql), stream(text), RuleSettings(equality=equality)).judgement
        for equality in Equality
    ]
    assert judgements == [Judgement.RIGHT, Judgement.WRONG]


def test_cqels_profile_reports_rows_by_sets():
    result = oracle((5000, 5000), CQELS).output(0)
    assert [[row[0] for row in relation.rows] for relation in result] == [
        ["<urn:a>"],
        ["<urn:b>"],
        ["<urn:c>"],
        ["<urn:d>"],
    ]
