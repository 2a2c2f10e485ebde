"""From scores under each candidate for t0 to the verdict: the best wins, and a reason is given where there is none."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.answer import Answer
from streamgauge.model.semantics import R2S, Grain, Origin
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.oracle import (
    JudgedWindow,
    JudgingRules,
    RowScores,
    Scored,
    best_possible,
    check,
    decide,
    in_columns,
    unknown,
)
from streamgauge.semantics.profiles import RSPQL
from tests.notation import stream
from tests.oracle.runs import TEXT, right_run

SEARCH = replace(RSPQL, name="search", origin=Origin.SEARCH)
A, B, C = ("<urn:a>",), ("<urn:b>",), ("<urn:c>",)


def judged(run, text=TEXT, rules=JudgingRules(), progress=lambda _a, _b: None):  # noqa: B008
    return check(run, definition(stream(text)), 0, rules, progress)


def test_the_judge_is_the_definition_unless_another_is_named():
    run = right_run(RSPQL)
    assert judged(run).evaluator == "definition"
    assert judged(run, rules=JudgingRules("changes")).evaluator == "changes"


def test_no_evaluator_judges_itself():
    run = right_run(RSPQL)
    own = replace(run, header=replace(run.header, evaluator="definition"))
    verdict = judged(own)
    assert verdict.judgement is Judgement.UNKNOWN
    assert verdict.reason == "the engine itself runs on definition, which may not judge it: name another evaluator"
    assert judged(own, rules=JudgingRules("changes")).judgement is Judgement.RIGHT


def test_a_failure_before_any_answer_is_the_reason():
    run = right_run(RSPQL)
    failed = replace(run, header=replace(run.header, failure="out of memory"), answers=())
    verdict = judged(failed)
    assert (verdict.judgement, verdict.reason) == (
        Judgement.UNKNOWN,
        "the engine failed before it answered: out of memory",
    )
    later = judged(replace(failed, answers=run.answers))
    assert (later.judgement, later.reason) == (Judgement.WRONG, "out of memory")


def test_answers_that_remove_rows_need_an_operator_that_does():
    run = right_run(replace(RSPQL, r2s=R2S.ISTREAM))
    verdict = judged(replace(run, answers=(*run.answers, replace(run.answers[0], removed=(A,)))))
    assert verdict.judgement is Judgement.UNKNOWN
    assert "its answers remove rows, which Istream never does" in verdict.reason


def searching(t0: int):
    run = right_run(replace(RSPQL, t0=t0), named=False)
    return replace(run, header=replace(run.header, semantics=SEARCH))


def test_the_first_candidate_that_is_right_ends_the_search():
    tried: list[tuple[int, int]] = []
    verdict = judged(searching(2), progress=lambda *told: tried.append(told))
    assert (verdict.judgement, verdict.t0) == (Judgement.RIGHT, 2)
    assert tried == [(1, 6), (2, 6), (3, 6)]


def test_the_best_of_wrong_candidates_wins_and_the_smallest_of_equal_ones():
    run = searching(2)
    worse = replace(run, answers=(*run.answers[:-1], replace(run.answers[-1], added=(A,))))
    tried: list[tuple[int, int]] = []
    verdict = judged(worse, progress=lambda *told: tried.append(told))
    assert (verdict.judgement, verdict.t0, tried[-1]) == (Judgement.WRONG, 2, (6, 6))
    nothing = judged(replace(run, answers=tuple(replace(answer, added=(A,)) for answer in run.answers)))
    # From 0 on there are four reports, from 1 on three, as there are answers: no report is missed.
    assert (nothing.judgement, nothing.t0, nothing.precision, nothing.recall) == (Judgement.WRONG, 1, 0.0, 0.0)


@pytest.mark.slow
@given(st.data())
def test_the_bound_of_a_candidate_changes_no_verdict(data):
    """Answers that were lost, moved, or have wrong rows, under every operator and grain, beside a search without it."""
    semantics = replace(SEARCH, r2s=data.draw(st.sampled_from(R2S)), r2s_able=frozenset(R2S))
    run = right_run(replace(semantics, origin=Origin.FIXED, t0=data.draw(st.integers(0, 5))))
    moved = [
        replace(answer, instant=answer.instant + data.draw(st.sampled_from((0, 0, 1))), added=(*answer.added, *wrong))
        for answer in run.answers
        if data.draw(st.integers(0, 4)) and (wrong := data.draw(st.sampled_from(((), (), (A,))))) is not None
    ]
    grain = data.draw(st.sampled_from(Grain))
    said = moved if grain is Grain.REPORT else [replace(item, added=(row,)) for item in moved for row in item.added]
    run = replace(run, answers=tuple(said), header=replace(run.header, semantics=replace(semantics, grain=grain)))
    expect = definition(stream(TEXT))
    assert judged(run) == decide(run, RowScores(run, expect, JudgingRules()), 0, JudgingRules())


def test_a_candidate_that_cannot_be_better_is_not_scored():
    run = right_run(RSPQL)
    bound = best_possible(run, definition(stream(TEXT)))
    assert bound is not None
    assert bound(0) == (True, 1 + 1e-9, 0)
    assert [bound(t0) for t0 in range(1, 5)] == [(False, 0.0, -len(run.answers))] * 4
    # Twice at each instant is two answers, or one of two rows where an answer is a row of a window's report.
    twice = replace(run, answers=tuple(answer for answer in run.answers for _ in range(2)))
    by_row = replace(twice, header=replace(run.header, semantics=replace(RSPQL, grain=Grain.ROW)))
    for several, surplus in ((twice, 2 * len(run.answers)), (by_row, len(run.answers))):
        bound = best_possible(several, definition(stream(TEXT)))
        assert bound is not None
        assert bound(1) == (False, 0.0, -surplus)
    # Two answers at 5, of 1 and 2 rows, may be right; one at 7, of 4 rows, is not: at most 3 of 7 rows are.
    said = tuple(Answer(("s",), (A,) * count, instant=at) for at, count in ((5, 1), (5, 2), (7, 4)))
    other = best_possible(replace(run, answers=said), definition(stream(TEXT)))
    assert other is not None
    assert other(0) == (False, pytest.approx(0.6), -1)
    assert other(0)[1] >= 0.6
    empty = replace(run, answers=(Answer(("s",), (), instant=7), Answer(("s",), (A,), instant=5)))
    other = best_possible(empty, definition(stream(TEXT)))
    assert other is not None
    assert other(0) == (False, pytest.approx(2 / 3), -1)  # an answer without rows weighs one
    unnamed = replace(run, answers=tuple(replace(answer, instant=None) for answer in run.answers))
    assert best_possible(unnamed, definition(stream(TEXT))) is None
    scored: list[int] = []
    wrong = replace(run, answers=(*run.answers[:-1], replace(run.answers[-1], added=(A,))))
    searched = replace(wrong, header=replace(run.header, semantics=SEARCH))
    score = RowScores(searched, definition(stream(TEXT)), JudgingRules())
    result = decide(searched, lambda t0: scored.append(t0) or score(t0), 0, JudgingRules(), bound=bound)
    assert (scored, result.t0) == ([0, 5], 0)


def test_of_candidates_with_equal_rows_the_one_with_fewest_missed_reports_wins():
    run = right_run(SEARCH)
    whole = RowScores(run, definition(stream(TEXT)), JudgingRules())(0)
    wrong = replace(whole.windows[0], precision=0.0, recall=0.0, true_positives=0)
    gone = replace(whole.windows[1], report=None, recall=1.0, expected=0, actual=0, true_positives=0)
    missed = {0: 2, 1: 1, 2: 3}

    def score(t0: int):
        return Scored.of((), map(JudgedWindow, (wrong, *[gone] * missed.get(t0, 4))), None)

    result = decide(run, score, 0, JudgingRules())
    assert (result.t0, result.missed) == (1, 1)


def test_rows_are_put_in_the_order_of_the_columns():
    answer = Answer(("b", "a", "z"), (("1", "2", "3"),), (("4", "5", "6"),))
    result = in_columns(answer, ("a", "x", "b"))
    assert (result.variables, result.added, result.removed) == (
        ("a", "x", "b", "z"),
        (("2", None, "1", "3"),),
        (("5", None, "4", "6"),),
    )
    assert in_columns(answer, ("b", "a", "z")) is answer


def test_a_graph_has_a_triple_once():
    graph = Answer(("s", "p", "o"), (A, B, A), (C, C), kind="triples")
    assert (in_columns(graph, ()).added, in_columns(graph, ()).removed) == ((A, B), (C,))


def test_a_late_answer_is_late_beyond_the_bound_only():
    run = right_run(RSPQL)
    delays = [window.delay for window in judged(run).windows]
    assert delays
    bound = max(delay for delay in delays if delay is not None)
    at, below = (
        judged(run, rules=JudgingRules(max_delay=bound)),
        judged(run, rules=JudgingRules(max_delay=bound - 0.001)),
    )
    assert (at.judgement, at.late, at.max_delay, at.delay_bound) == (Judgement.RIGHT, 0, bound, bound)
    assert below.judgement is Judgement.LATE
    assert below.late == sum(delay == bound for delay in delays)
    assert [window.late for window in below.windows] == [delay == bound for delay in delays]


def test_an_unknown_verdict_counts_nothing():
    run = right_run(RSPQL)
    result = unknown(run, "nobody knows")
    assert (result.judgement, result.reason, result.last_answer) == (Judgement.UNKNOWN, "nobody knows", 21.0)
    assert (result.evaluator, result.t0, result.max_delay, result.variables, result.windows) == (
        None,
        None,
        None,
        (),
        (),
    )
    assert (result.precision, result.recall, result.missed, result.surplus, result.late) == (0.0, 0.0, 0, 0, 0)


def test_of_each_window_20_missing_and_20_surplus_rows_are_kept():
    text = "0: " + " ".join(f"s{n} p o." for n in range(25))
    run = right_run(RSPQL, text=text, advance=5)
    for number in (1, 20, 25):
        added = tuple((f"<urn:x{n}>",) for n in range(number))
        (window,) = judged(replace(run, answers=(replace(run.answers[0], added=added),)), text).windows
        assert (len(window.missing), len(window.surplus)) == (20, min(number, 20))


def test_a_verdict_counts_what_was_missed_surplus_and_late():
    run = right_run(RSPQL)
    surplus = replace(run.answers[0], instant=999, scope=None)
    slow = replace(run.answers[2], received=run.answers[2].received + 10**9)
    verdict = judged(
        replace(run, answers=(run.answers[1], slow, run.answers[3], surplus)), rules=JudgingRules(max_delay=500)
    )
    assert (verdict.judgement, verdict.missed, verdict.surplus, verdict.late) == (Judgement.WRONG, 1, 1, 1)
    assert (verdict.max_delay, verdict.delay_bound, verdict.horizon) == (1001.0, 500, 20)
    assert [window.late for window in verdict.windows if window.due] == [False, False, True, False]
