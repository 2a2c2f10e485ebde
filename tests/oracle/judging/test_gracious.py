"""Gracious mode finds the borders that an engine used, both ways at once."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.answer import Answer
from streamgauge.model.semantics import R2S, Borders, Changes, Counting, Report, Scope, Semantics, Tick
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.gracious import gracious
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.semantics.profiles import RSPQL, YABENCH
from streamgauge.semantics.refusal import RefusedError
from tests.examples import examples
from tests.notation import stream
from tests.oracle.runs import right_run

DISTINCT = " | ".join(f"{t}: s{t} p o{t}." for t in range(40))


def rows(times) -> tuple[tuple[str], ...]:
    return tuple((f"<urn:s{t}>",) for t in times)


def found(run, text=DISTINCT):
    held = stream(text)
    return gracious(run, held, check(run, definition(held), 0, JudgingRules()))


def answering(semantics: Semantics, contents, **how):
    """A run of windows (10, 10) whose answers are the rows of these contents instead of the right ones."""
    run = right_run(semantics, text=DISTINCT, window=(10, 10), advance=40, **how)
    answers = [replace(answer, added=rows(times)) for answer, times in zip(run.answers, contents, strict=True)]
    return replace(run, answers=tuple(answers))


def test_figure_5_of_yabench():
    """Precision 1/2 and recall 1/3 under the declared borders; all is explained by the borders that the engine used.

    Of three expected rows the engine sent one, and one of the next window: it started late and ended late.
    """
    text = "1: s1 p o. | 3: s3 p o. | 8: s8 p o. | 12: s12 p o. | 17: s17 p o."
    run = right_run(replace(YABENCH, partial_head=False), text=text, window=(10, 10), advance=20)
    first, second = run.answers
    assert len(first.added) == 3
    late = (replace(first, added=rows([8, 12])), replace(second, added=rows([17])))
    verdict = found(replace(run, answers=late), text)
    window = verdict.windows[0]
    assert (window.precision, window.recall) == (1 / 2, 1 / 3)
    assert (window.start, window.end) == (0, 10)
    assert window.borders == (8, 12)
    assert window.fitted == (1.0, 1.0)
    assert verdict.windows[1].borders == (17, 20)


def test_each_solution_of_a_row_counts():
    """Three facts of one subject are three rows; two were sent, and the nearest borders that hold two begin at 2."""
    text = "1: a p x. | 2: a p y. | 6: a p z. | 8: b p x."
    run = right_run(RSPQL, text=text, window=(10, 10), advance=10)
    twice = replace(run.answers[0], added=(("<urn:a>",),) * 2)
    (window,) = found(replace(run, answers=(twice,)), text).windows
    assert (window.borders, window.fitted) == ((2, 7), (1.0, 1.0))


@pytest.mark.parametrize(("borders", "first"), [(Borders.CLOSED_OPEN, 13), (Borders.OPEN_CLOSED, 12)])
def test_borders_are_named_as_the_semantics_names_them(borders, first):
    run = answering(replace(RSPQL, borders=borders), [range(10), range(13, 23), range(20, 30), range(30, 40)])
    window = found(run).windows[1]
    assert window.borders == (first, first + 10)


@pytest.mark.slow
@examples(12, prove=2000)
@given(st.lists(st.tuples(st.integers(-10, 10), st.integers(-9, 9)), min_size=2, max_size=2), st.booleans())
def test_any_shift_within_a_slide_is_found_exactly(shifts, named):
    """Both borders of two windows of four are shifted, left or right, each by itself."""
    spans = [(0, 10), (10, 20), (20, 30), (30, 40)]
    used = [(o + s, c + e) for (o, c), (s, e) in zip(spans[1:3], shifts, strict=True)]
    contents = [range(10), *(range(o, c) for o, c in used), range(30, 40)]
    verdict = found(answering(replace(RSPQL, name="r"), contents, named=True))
    for window, (start, end) in zip(verdict.windows[1:3], used, strict=True):
        if start < end:
            assert window.fitted == (1.0, 1.0)
            assert window.borders == (start, end)
    assert verdict.windows[0].borders == (0, 10)
    assert verdict.judgement is (Judgement.RIGHT if not any(map(any, shifts)) else Judgement.WRONG)


def test_the_best_is_taken_when_nothing_explains_all():
    run = answering(RSPQL, [range(10), [*range(12, 22), 35], range(20, 30), range(30, 40)])
    window = found(run).windows[1]
    assert window.borders == (12, 22)
    assert window.fitted == (10 / 11, 1.0)


def test_missed_and_surplus_reports_have_no_borders():
    run = answering(RSPQL, [range(10), range(10, 20), range(20, 30), range(30, 40)])
    extra = Answer(("s",), rows([5]), instant=15)
    verdict = found(replace(run, answers=(*run.answers[1:], extra)))
    odd = [window for window in verdict.windows if window.borders is None]
    assert [(window.report is None, window.due) for window in odd] == [(True, True), (False, False)]


def test_istream_compares_with_the_instant_before_under_its_own_borders():
    """Sliding windows whose starts moved left: what is new is what an engine with those borders would send."""
    semantics = replace(RSPQL, name="i", r2s=R2S.ISTREAM)
    run = right_run(semantics, text=DISTINCT, window=(10, 5), advance=30)
    contents = [range(c - 10, c + 2) for c in range(10, 31, 5)]
    before: set[int] = set()
    answers = []
    for answer, times in zip(run.answers, contents, strict=True):
        answers.append(replace(answer, added=rows(sorted(set(times) - before))))
        before = set(times)
    verdict = found(replace(run, answers=tuple(answers)))
    assert verdict.judgement is Judgement.WRONG
    assert {window.fitted for window in verdict.windows} == {(1.0, 1.0)}


def test_what_has_no_borders_in_time_is_refused_by_name():
    run = answering(RSPQL, [range(10), range(10, 20), range(20, 30), range(31, 40)])
    two = replace(run.header.query, windows=run.header.query.windows * 2)
    held = stream(DISTINCT)
    verdict = check(run, definition(held), 0, JudgingRules())
    with pytest.raises(RefusedError, match="borders of one window: the query has 2"):
        gracious(replace(run, header=replace(run.header, query=two)), held, verdict)
    with pytest.raises(RefusedError, match="the engine itself runs on"):
        gracious(replace(run, header=replace(run.header, evaluator="definition")), held, verdict)


@pytest.mark.parametrize(("sends", "news"), [(R2S.ISTREAM, range(15, 22)), (R2S.DSTREAM, range(5, 9))])
def test_what_changes_is_compared_with_the_report_before_though_nothing_was_answered_there(sends, news):
    """The third window took in [10, 22), or [9, 20); the second one's answer was lost."""
    run = right_run(replace(RSPQL, r2s=sends), text=DISTINCT, window=(10, 5), advance=30)
    first, _lost, third, *others = run.answers
    window = found(replace(run, answers=(first, replace(third, added=rows(news)), *others))).windows[2]
    assert window.fitted == (1.0, 1.0)
    assert window.borders == ((10, 22) if sends is R2S.ISTREAM else (9, 20))


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (Report.WINDOW_CLOSE, "1: b p o. | 12: a p o. b p o."),
        (Report.CONTENT_CHANGE, "1: b p o. | 2: c p o. | 6: c p o. | 7: a p o. b p o."),
    ],
)
def test_differences_skip_an_instant_at_which_no_report_is_due(report, text):
    """The window before is empty, or nothing comes at 6 where b goes: b was in the last report, so it is not new."""
    change = {"report": frozenset({report, Report.NON_EMPTY}), "tick": Tick.ELEMENT, "changes": Changes.ARRIVALS}
    semantics = replace(RSPQL, r2s=R2S.ISTREAM, scope=Scope.RANGE, partial_head=True, **change)
    run = right_run(semantics, text=text, window=(5, 5), advance=15)
    *others, last = run.answers
    assert last.added == (("<urn:a>",),)
    both = replace(last, added=(("<urn:a>",), ("<urn:b>",)))
    assert found(replace(run, answers=(*others, both)), text).windows[-1].fitted == (1 / 2, 1.0)


def test_between_borders_that_end_no_later_only_what_was_seen_by_then_is_held():
    """Both elements of 1 were in the answer that the first of them made due: no borders in time hold just these."""
    text = "1: a p o. | 1: b p o. | 2: c p o."
    semantics = replace(RSPQL, report=frozenset({Report.CONTENT_CHANGE}), tick=Tick.ELEMENT, partial_head=True)
    run = right_run(semantics, text=text, window=(10, 10), advance=2)
    early = replace(run.answers[0], added=run.answers[1].added)
    window = found(replace(run, answers=(early, *run.answers[1:])), text).windows[0]
    assert window.fitted == (2 / 2, 2 / 3)
    assert window.borders == (0, 2)


def test_answers_that_are_sets_fit_as_sets():
    text = "1: a p o. | 3: a p n. | 8: b p o. | 12: a p o. | 14: a p n. | 17: c p o."
    run = right_run(replace(RSPQL, answers=Counting.SET), text=text, window=(10, 10), advance=20)
    first, second = run.answers
    assert len(first.added) == 2
    late = replace(first, added=(("<urn:b>",), ("<urn:a>",)))
    window = found(replace(run, answers=(late, replace(second, added=(("<urn:a>",),)))), text).windows[1]
    assert (window.fitted, window.borders) == ((1.0, 1.0), (10, 15))
