"""Instants and borders that are some ms off, and rows of two reports exchanged: the simplest explanation is named."""

from dataclasses import replace

import pytest

from streamgauge.oracle.diagnosis.diagnose import diagnose
from streamgauge.semantics.profiles import RSPQL
from tests.notation import stream
from tests.oracle.runs import right_run

TEXT = " | ".join(f"{t}: s{t} p o{t}." for t in range(0, 6000, 37))
ROWS = "SELECT ?s { ?s <urn:p> ?o }"
SEMANTICS = replace(RSPQL, name="declared")


def recorded(*, named=True, window=(1000, 1000), semantics=SEMANTICS, text=TEXT):
    """A run whose answers come out."""
    return right_run(semantics, text=text, window=window, advance=6000, sparql=ROWS, named=named)


def names(run, text=TEXT):
    """The parts of the simplest model under which the answers come out, at its t0."""
    diagnosis = diagnose(run, stream(text))
    assert diagnosis.exact
    return [part.name for part in diagnosis.models[0]]


def labelled(run, label):
    """The run with other instants."""
    return replace(run, answers=tuple(replace(answer, instant=label(answer.instant)) for answer in run.answers))


@pytest.mark.parametrize("window", [(1000, 1000), (2000, 500)])
def test_answers_named_by_the_start_of_their_window(window):
    run = labelled(recorded(window=window), lambda instant: instant - window[0])
    assert names(run) == ["answers named by the window's start"]


@pytest.mark.parametrize("offset", [1, -1, 250, -333])
def test_answers_named_a_constant_off(offset):
    run = labelled(recorded(), lambda instant: instant + offset)
    assert names(run) == [f"instants {offset:+,} ms"]


def answering(run, contents):
    """The run with the rows of these contents (from, to before, ms)."""
    times = range(0, 6000, 37)
    rows = [tuple((f"<urn:s{t}>",) for t in times if start <= t < end) for start, end in contents]
    return replace(run, answers=tuple(replace(a, added=r) for a, r in zip(run.answers, rows, strict=True)))


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("shift", [50, 120, -60])
def test_windows_that_are_all_as_late_or_early(named, shift):
    run = recorded(named=named)
    contents = [(k * 1000 + shift, (k + 1) * 1000 + shift) for k in range(6)]
    (name,) = names(answering(run, contents))
    # Between two elements, 37 ms apart, all shifts give the same: the least is named.
    assert name.startswith("windows ")
    assert name.endswith("late" if shift > 0 else "early")
    assert abs(shift) - 37 <= int(name.split()[1]) <= abs(shift)


def test_elements_that_no_pattern_matches_do_not_tell_windows_apart():
    """Each window's least shift ends at another unmatched element; one shift is still as far as each of theirs."""
    unmatched = [(t, f"{t}: x{t} q y.") for t in range(0, 6000, 7) if t % 37]
    matched = [(t, f"{t}: s{t} p o{t}.") for t in range(0, 6000, 37)]
    text = " | ".join(item for _, item in sorted([*unmatched, *matched]))
    run = recorded(text=text)
    shifted = answering(run, [(k * 1000 + 50, (k + 1) * 1000 + 50) for k in range(6)])
    (name,) = names(shifted, text)
    assert name.startswith("windows ")
    assert name.endswith(" ms late")


def test_a_window_with_rows_of_static_data_alone_limits_no_shift():
    """No element comes from 2,000 to 3,200 ms; ``s`` is in every content."""
    times = [t for t in range(0, 6000, 37) if not 2000 < t < 3200]
    text = " | ".join(f"{t}: s{t} p o{t}." for t in times)
    run = recorded(text=text)
    query = replace(run.header.query, static=(("<urn:s>", "<urn:p>", "<urn:o>"),))
    rows = [[f"s{t}" for t in times if k * 1000 + 50 <= t < (k + 1) * 1000 + 50] for k in range(6)]
    answers = [
        replace(answer, added=tuple((f"<urn:{name}>",) for name in (*names_, "s")))
        for answer, names_ in zip(run.answers, rows, strict=True)
    ]
    (name,) = names(replace(run, header=replace(run.header, query=query), answers=tuple(answers)), text)
    assert name.endswith(" ms late")


def test_windows_whose_borders_are_each_off_by_their_own():
    shifts = [(0, 40), (-80, 120), (60, -40), (0, 80), (120, 0), (-40, -80)]
    contents = [(k * 1000 + start, (k + 1) * 1000 + end) for k, (start, end) in enumerate(shifts)]
    run = answering(recorded(), contents)
    diagnosis = diagnose(run, stream(TEXT))
    assert [part.name for part in diagnosis.models[0]] == ["borders of each window moved"]
    assert "of 6 windows are off, each by its own: starts by " in diagnosis.models[0][0].sentence


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("one", "other"), [(1, 3), (0, 5), (2, 3)])
def test_two_reports_with_each_others_rows(named, one, other):
    run = recorded(named=named)
    answers = list(run.answers)
    answers[one] = replace(run.answers[one], added=run.answers[other].added)
    answers[other] = replace(run.answers[other], added=run.answers[one].added)
    swapped = not named and other == one + 1  # two answers in another order are the same, and simpler
    expected = "1 report swapped" if swapped else "rows of 1 report exchanged"
    assert names(replace(run, answers=tuple(answers))) == [expected]


def test_a_clock_that_drifts_is_still_a_clock():
    """Borders later and later: a constant shift does not fit, and each by its own takes more words."""
    contents = [(round(k * 1050), round((k + 1) * 1050)) for k in range(5)]
    run = recorded()
    run = answering(replace(run, answers=run.answers[:5]), contents)
    assert names(run)[0].startswith(("clock 5.00% slow", "each window", "clock"))


@pytest.mark.parametrize("named", [True, False])
def test_windows_that_begin_at_another_time(named):
    begun = recorded(named=named, semantics=replace(SEMANTICS, t0=260))
    run = replace(recorded(), answers=begun.answers)
    (name,) = names(run)
    # Between two elements, at 259 and 296, all beginnings give the same.
    assert name == "t0 = 260 ms"
