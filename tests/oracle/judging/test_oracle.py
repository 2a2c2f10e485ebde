"""The oracle on runs that are right, wrong in one known way, late, or not to be judged."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.semantics import Report, Semantics
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.semantics.profiles import CQELS, CSPARQL, PROFILES, RSPQL
from tests.notation import stream
from tests.oracle.runs import TEXT, right_run

CLOSE = replace(RSPQL, name="close")
SMALL_CSPARQL = replace(CSPARQL, time_unit=1)


def verdict(run, rules: JudgingRules = JudgingRules()):  # noqa: B008
    return check(run, definition(stream(TEXT)), 0, rules)


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize("semantics", [CLOSE, SMALL_CSPARQL, replace(CQELS, time_unit=1)], ids=lambda s: s.name)
def test_a_right_run_is_right(semantics: Semantics, named: bool):
    result = verdict(right_run(semantics, named=named))
    assert (result.judgement, result.precision, result.recall) == (Judgement.RIGHT, 1.0, 1.0)
    assert result.t0 == 0
    assert result.missed == result.surplus == 0


def test_t0_is_found():
    shifted = replace(SMALL_CSPARQL, t0=3)
    run = right_run(shifted, named=False)
    result = verdict(replace(run, header=replace(run.header, semantics=SMALL_CSPARQL)))
    assert (result.judgement, result.t0) == (Judgement.RIGHT, 3)


def test_a_lost_report_costs_one_window_and_not_all_after_it():
    run = right_run(CLOSE, named=False)
    result = verdict(replace(run, answers=run.answers[:1] + run.answers[2:]))
    assert result.judgement is Judgement.WRONG
    assert [window.right for window in result.windows] == [True, False, True, True]
    assert (result.missed, result.surplus) == (1, 0)
    assert result.windows[1].delay is None


def test_an_extra_report_is_a_unit_of_its_own():
    run = right_run(CLOSE)
    extra = replace(run.answers[0], instant=7, scope=None)
    result = verdict(replace(run, answers=(*run.answers, extra)))
    assert (result.judgement, result.missed, result.surplus) == (Judgement.WRONG, 0, 1)
    assert result.precision < 1.0
    assert result.recall == 1.0


def test_missing_and_surplus_rows_are_kept_as_witnesses():
    run = right_run(CLOSE)
    first = run.answers[0]
    changed = replace(first, added=(("<urn:never>",), *first.added[1:]))
    result = verdict(replace(run, answers=(changed, *run.answers[1:])))
    window = result.windows[0]
    assert window.missing == (first.added[0],)
    assert window.surplus == (("<urn:never>",),)
    assert window.precision == window.recall == pytest.approx(4 / 5)


def test_an_empty_answer_that_was_not_sent_is_missed():
    text = "1: a q b. | 6: b p c."
    run = right_run(CLOSE, text=text, advance=10)
    result = check(replace(run, answers=run.answers[1:]), definition(stream(text)), 1, JudgingRules())
    assert (result.judgement, result.missed) == (Judgement.WRONG, 1)
    assert result.recall < 1.0


def test_delay_is_measured_from_the_hand_over_that_made_the_report_due():
    result = verdict(right_run(CLOSE))
    assert [window.delay for window in result.windows] == [1.0] * 4
    late = verdict(right_run(CLOSE), JudgingRules(max_delay=0.5))
    assert (late.judgement, late.late) == (Judgement.LATE, 4)


def test_paced_delay_is_measured_from_the_wall_clock():
    run = right_run(CLOSE)
    paced = replace(run, header=replace(run.header, factor=2.0))
    result = verdict(paced)
    assert [window.delay for window in result.windows] == [5 / 2 + 1, 10 / 2 + 1, 15 / 2 + 1, 20 / 2 + 1]


def test_nobody_is_judged_by_the_evaluator_it_runs_on():
    run = right_run(CLOSE)
    result = verdict(replace(run, header=replace(run.header, evaluator="definition")))
    assert result.judgement is Judgement.UNKNOWN
    assert "may not judge it" in result.reason


def test_an_engine_that_failed_is_not_right():
    run = right_run(CLOSE)
    result = verdict(replace(run, header=replace(run.header, failure="it crashed")))
    assert (result.judgement, result.reason) == (Judgement.WRONG, "it crashed")


def test_columns_in_another_order_are_the_same_answer():
    sparql = "SELECT ?s ?o { ?s <urn:p> ?o }"
    run = right_run(CLOSE, sparql=sparql)
    turned = [replace(a, variables=("o", "s"), added=tuple(row[::-1] for row in a.added)) for a in run.answers]
    assert verdict(replace(run, answers=tuple(turned))).judgement is Judgement.RIGHT


@given(st.sampled_from([CLOSE, SMALL_CSPARQL]), st.data())
def test_any_changed_row_is_seen(semantics: Semantics, data):
    run = right_run(semantics, named=data.draw(st.booleans()))
    at = data.draw(st.integers(0, len(run.answers) - 1))
    answer = run.answers[at]
    row = data.draw(st.integers(0, len(answer.added) - 1))
    kept = answer.added[:row] + answer.added[row + 1 :]
    wrong = replace(answer, added=kept + ((("<urn:x>",),) if data.draw(st.booleans()) else ()))
    answers = (*run.answers[:at], wrong, *run.answers[at + 1 :])
    assert verdict(replace(run, answers=answers)).judgement is Judgement.WRONG


def test_every_profile_judges_its_own_right_run():
    for profile in PROFILES.values():
        if Report.EXPIRATION in profile.report:
            continue
        small = replace(profile, time_unit=1)
        result = verdict(right_run(small))
        assert result.judgement is Judgement.RIGHT, profile.name
