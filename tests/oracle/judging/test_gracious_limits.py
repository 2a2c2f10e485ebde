"""Gracious mode: which borders are tried first, and what is too much to try."""

from dataclasses import replace

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Counting, EmptyAggregate
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging import gracious as searching
from streamgauge.oracle.judging.gracious import cautions, fit_alone, fitted, gracious, refuse
from streamgauge.oracle.judging.oracle import JudgingRules, RowScores, check
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL, SENS
from streamgauge.semantics.refusal import RefusedError
from tests.notation import STREAM, stream
from tests.oracle.runs import right_run

TEXT = " | ".join(f"{t}: s{t} p o{t}." for t in range(20))


def rows(times) -> tuple[tuple[str], ...]:
    return tuple((f"<urn:s{t}>",) for t in times)


def graced(run, text=TEXT, progress=lambda _done, _of: None):
    held = stream(text)
    return gracious(run, held, check(run, definition(held), 0, JudgingRules()), progress)


def answering(second, text=TEXT, window=(5, 5), semantics=RSPQL):
    """A run whose second answer is this instead of the right one."""
    run = right_run(semantics, text=text, window=window)
    return replace(run, answers=(run.answers[0], replace(run.answers[1], added=second), *run.answers[2:]))


def test_the_least_shift_of_equal_fits_is_taken():
    # Nothing comes from 10 to 12: an end at 9, 10, 11 or 12 holds the same.
    text = " | ".join(f"{t}: s{t} p o{t}." for t in (0, 3, 5, 6, 9, 13, 15, 18))
    window = graced(answering(rows([6, 9]), text), text).windows[1]
    assert (window.fitted, window.borders) == ((1.0, 1.0), (6, 10))
    window = graced(answering(rows([5, 6, 9, 13]), text), text).windows[1]
    assert (window.fitted, window.borders) == ((1.0, 1.0), (5, 14))


def test_an_answer_of_rows_that_nothing_gives_keeps_its_borders():
    window = graced(answering((("<urn:none>",),))).windows[1]
    assert (window.fitted, window.borders) == ((0.0, 0.0), (5, 10))


def test_a_right_answer_is_not_searched():
    verdict = graced(right_run(RSPQL, text=TEXT))
    assert {window.fitted for window in verdict.windows} == {(1.0, 1.0)}
    assert [window.borders for window in verdict.windows] == [(0, 5), (5, 10), (10, 15), (15, 20)]


def test_how_far_the_search_is_is_told():
    messages: list[tuple[int, int]] = []
    graced(answering(rows([6])), progress=lambda *item: messages.append(item))
    assert messages == [(1, 4), (2, 4), (3, 4), (4, 4)]


NEGATED = "SELECT ?s { ?s <urn:p> ?o FILTER NOT EXISTS { ?s <urn:q> ?o } }"
"""A query that is asked anew between each pair of borders."""


def searched(budget, monkeypatch):
    """The verdict on three windows of 10 that are answered wrongly, with so many triples to be looked at."""
    text = " | ".join(f"{t}: s{t} p o{t}." for t in range(30))
    run = right_run(RSPQL, text=text, window=(10, 10), sparql=NEGATED, advance=30)
    shifted = [
        replace(answer, added=rows(range(answer.instant - 8, min(answer.instant + 2, 30)))) for answer in run.answers
    ]
    monkeypatch.setattr(searching, "BUDGET", budget)
    return graced(replace(run, answers=tuple(shifted)), text)


def test_as_much_as_the_budget_allows_is_tried_and_the_rest_is_said(monkeypatch):
    whole = searched(searching.BUDGET, monkeypatch)
    assert whole.cautions == ()
    assert [(window.borders, window.fitted) for window in whole.windows] == [
        ((start, min(start + 10, 30)), (1, 1)) for start in (2, 12, 22)
    ]
    near = searched(3 * 9 * 110, monkeypatch)
    assert [window.borders for window in near.windows] == [(2, 11), (11, 21), (21, 30)]
    assert near.cautions == (
        "Gracious mode: for 3 of the windows only borders up to 1 ms away were tried: the query is asked anew between "
        "each two, and there are too many.",
    )
    assert near.judgement is whole.judgement is Judgement.WRONG


def test_a_window_alone_fits_as_it_does_among_the_others(monkeypatch):
    held, run = stream(TEXT), answering(rows([6, 7, 8, 9, 10, 11]))
    window = graced(run).windows[1]
    unit = RowScores(run, definition(held), JudgingRules()).units(0)[1]
    alone = fit_alone(run, held, 0, unit, 1, 1)
    assert fitted(window, unit.report.due.views[0], alone.fit) == window
    assert (window.borders, window.fitted, alone.near) == ((6, 12), (1.0, 1.0), None)
    narrow = fit_alone(run, held, 0, unit, 1, 5)  # at most 1 ms away
    assert (narrow.fit.first, narrow.fit.last, narrow.near) == (6, 10, None)
    negated = right_run(RSPQL, text=TEXT, sparql=NEGATED)
    negated = replace(negated, answers=run.answers)
    monkeypatch.setattr(searching, "BUDGET", 3 * 5 * 105)
    part = fit_alone(negated, held, 0, unit, 3, 1)
    assert (part.fit.first, part.fit.last, part.near) == (
        5,
        9,
        1,
    )  # of two times for each border, the earlier of equals
    assert fit_alone(negated, held, 0, unit, 20, 1) == searching.FittedWindow(None, None)


@pytest.mark.parametrize(
    "sparse", ["0: | 6: | 10: | 14: | 15: | 17: | 18: | 19:", "0: | 8: | 9: | 10: | 15: | 19: | 25:"]
)
def test_a_search_is_complete_up_to_the_nearer_of_its_two_bounds(sparse, monkeypatch):
    """Of two times for each border, one is 4 ms from the declared border and the other 1 ms."""
    text = sparse.replace(":", ": s p o.")
    run = right_run(RSPQL, text=text, window=(10, 10), sparql=NEGATED, advance=20)
    run = replace(run, answers=(run.answers[0], replace(run.answers[1], added=rows(["none"]))))
    held = stream(text)
    unit = RowScores(run, definition(held), JudgingRules()).units(0)[1]
    size = sum(10 <= element.time < 20 for element in held)
    monkeypatch.setattr(searching, "BUDGET", 4 * (size + searching.CONTENT_COST))
    assert fit_alone(run, held, 0, unit, 1, 1).near == 1


def test_the_least_shift_of_equal_fits_is_taken_also_where_each_pair_is_evaluated():
    # What comes at 3, 4 and 11 changes no answer.
    text = " | ".join(f"{t}: s{t} {'r' if t in (3, 4, 11) else 'p'} o{t}." for t in range(16))
    run = right_run(RSPQL, text=text, window=(5, 5), sparql=NEGATED, advance=15)

    def second(*times):
        return graced(replace(run, answers=(run.answers[0], replace(run.answers[1], added=rows(times)))), text).windows[
            1
        ]

    exact, nearly, one = second(5, 6, 7, 8, 9, 10), second(5, 6, 7, 8, 9, "none"), second(7)
    assert (exact.borders, exact.fitted) == ((5, 11), (1.0, 1.0))
    assert (nearly.borders, nearly.fitted) == ((5, 10), (5 / 6, 1.0))
    assert (one.borders, one.fitted) == ((7, 8), (1.0, 1.0))


def test_answers_compared_as_sets_fit_as_sets_where_each_pair_is_evaluated():
    """Two facts of each subject are one row; the second window's answer is that of the contents from 6 to 7."""
    text = " | ".join(f"{t}: s{t} p a. s{t} p b." for t in range(10))
    run = right_run(replace(RSPQL, answers=Counting.SET), text=text, window=(5, 5), sparql=NEGATED, advance=10)
    run = replace(run, answers=(run.answers[0], replace(run.answers[1], added=rows([6, 7]))))
    window = graced(run, text).windows[1]
    assert (window.borders, window.fitted) == ((6, 8), (1.0, 1.0))


def test_differences_between_contents_that_are_evaluated_for_each_pair():
    run = right_run(replace(RSPQL, r2s=R2S.ISTREAM), text=TEXT, window=(10, 5), sparql=NEGATED)
    late = replace(run, answers=(run.answers[0], replace(run.answers[1], added=rows(range(10, 16))), *run.answers[2:]))
    window = graced(late).windows[1]
    assert (window.borders, window.fitted) == ((5, 16), (1.0, 1.0))


def test_what_an_early_fit_leaves_of_the_budget_is_the_next_windows(monkeypatch):
    run = right_run(RSPQL, text=TEXT, window=(5, 5), sparql=NEGATED, advance=15)
    near, never = rows([6, 7, 8, 9]), rows(["none"])
    answers = (run.answers[0], replace(run.answers[1], added=near), replace(run.answers[2], added=never))
    monkeypatch.setattr(searching, "BUDGET", 130 * 110)
    verdict = graced(replace(run, answers=answers))
    assert [window.borders for window in verdict.windows] == [(0, 5), (6, 10), (10, 15)]
    (caution,) = verdict.cautions
    assert caution.startswith("Gracious mode: for 1 of the windows only ")


def test_the_declared_borders_are_evaluated_with_the_last_of_the_budget(monkeypatch):
    held, run = stream(TEXT), right_run(RSPQL, text=TEXT, window=(5, 5), sparql=NEGATED)
    run = replace(run, answers=(run.answers[0], replace(run.answers[1], added=rows([6])), *run.answers[2:]))
    unit = RowScores(run, definition(held), JudgingRules()).units(0)[1]
    for room, fit in ((0, (5, 9)), (-1, None)):
        monkeypatch.setattr(searching, "BUDGET", 5 + searching.CONTENT_COST + room)
        result = fit_alone(run, held, 0, unit, 1, 1).fit
        assert (result and (result.first, result.last)) == fit


def test_all_pairs_are_tried_where_as_many_are_allowed():
    text = "0: s p o. | 6: t p o. | 10: u p o. | 14: v p o. | 15: w p o. | 19: x p o."
    run, held = right_run(RSPQL, text=text, window=(10, 10), sparql=NEGATED, advance=20), stream(text)
    view = RowScores(run, definition(held), JudgingRules()).units(0)[1].report.due.views[0]
    firsts, lasts = (times.tolist() for times in searching._BorderSearch(run, held, 0, 9)._contents.candidates(view))
    assert all(type(time) is int for time in (*firsts, *lasts))
    every = len(firsts) * len(lasts)
    assert len(firsts) != len(lasts)
    for number in (every - 1, every, every + 1):
        plain = searching._BorderSearch(run, held, 0, 9).plain
        pairs = plain._pairs(view, number)
        assert bool(plain.near) is (number < every)
        assert number < every or len(pairs) == sum(first <= last for first in firsts for last in lasts)


def test_only_answered_reports_are_counted_where_no_difference_is_sent():
    messages: list[tuple[int, int]] = []
    run = answering(rows([6]))
    graced(replace(run, answers=run.answers[:3]), progress=lambda *item: messages.append(item))
    assert messages == [(1, 3), (2, 3), (3, 3)]


def test_the_distance_of_several_searches_is_that_of_the_shortest():
    (caution,) = cautions([7, 3, 5], 0)
    assert caution.startswith("Gracious mode: for 3 of the windows only borders up to 3 ms away were tried: ")
    assert list(cautions([], 0)) == []


def test_what_nothing_is_left_for_is_not_searched_and_said(monkeypatch):
    verdict = searched(105, monkeypatch)
    assert [window.borders for window in verdict.windows] == [None] * 3
    (caution,) = verdict.cautions
    assert caution.startswith("Gracious mode: for 3 of the windows no borders were tried: their contents are too large")


def test_the_budget_is_20_million_triples():
    assert searching.BUDGET == 20_000_000


def test_what_cannot_be_searched_is_named():
    form = parse_sparql("SELECT ?s { ?s <urn:p> ?o }")

    def asked(*windows: Window) -> ContinuousQuery:
        return ContinuousQuery(form, tuple(StreamWindow(STREAM, window) for window in windows))

    assert refuse(asked(Window(5, 5)), None) is None
    assert refuse(asked(Window(5, 5)), "spark") is None
    assert refuse(asked(Window(5, 5), Window(5, 5)), None) == (
        "gracious mode moves the borders of one window: the query has 2"
    )
    assert refuse(asked(Window(5, 5, "count")), None) == (
        "gracious mode moves borders in time: a count-based window has none"
    )
    assert "which the engine itself runs on" in (refuse(asked(Window(5, 5)), "definition") or "")


def test_rows_that_come_and_go_in_one_answer_are_refused():
    run = right_run(replace(SENS, t0=0), text=TEXT, window=(5, 5))
    assert run.header.semantics.r2s is R2S.CHANGES
    with pytest.raises(RefusedError, match="rows come and go in one answer"):
        graced(run)


def test_an_unknown_verdict_stays():
    run = right_run(RSPQL)
    verdict = replace(check(run, definition(stream(TEXT)), 0, JudgingRules()), judgement=Judgement.UNKNOWN)
    assert gracious(run, stream(TEXT), verdict) is verdict


def test_dstream_compares_with_the_instant_before():
    run = right_run(replace(RSPQL, r2s=R2S.DSTREAM), text=TEXT, window=(5, 5))
    late = (replace(run.answers[0]), replace(run.answers[1], added=rows([0, 1, 2, 3])), *run.answers[2:])
    verdict = graced(replace(run, answers=late))
    assert verdict.windows[1].fitted is not None
    assert verdict.windows[0].fitted == (1.0, 1.0)


def averaged(text, second, semantics=RSPQL):
    """The second window of a run of averages, whose answer is this one."""
    run = right_run(semantics, text=text, sparql="SELECT (AVG(?v) AS ?m) { ?s <urn:v> ?v }")
    answers = (run.answers[0], replace(run.answers[1], added=second), *run.answers[2:])
    return graced(replace(run, answers=answers), text).windows[1]


def test_a_computed_number_fits_by_its_value():
    text = " | ".join(f"{t}: s{t} v {t}." for t in range(20))
    result = averaged(text, (('"7.5E0"^^<http://www.w3.org/2001/XMLSchema#double>',),))
    assert (result.fitted, result.borders) == ((1.0, 1.0), (5, 11))


def test_nothing_fits_where_the_semantics_sends_no_row_for_it():
    text = "0: a v 1. | 6: z w 9. | 8: b v 2. | 12: c v 3. | 19: d v 4."
    result = averaged(text, (), replace(RSPQL, empty_aggregate=EmptyAggregate.NO_ROW))
    assert result.fitted == (1.0, 1.0)
    assert averaged(text, ()).fitted == (0.0, 0.0)
