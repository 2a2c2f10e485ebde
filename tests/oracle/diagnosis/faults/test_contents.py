"""Faults in what windows hold: another size and slide, the newest per subject only, a cap, a clock that drifts."""

from dataclasses import replace
from itertools import product

import pytest

from streamgauge.model.semantics import R2S, Grain
from tests.oracle.diagnosis.faults.recordings import CLOSE, best, diagnosed, recording, with_rows

QUERY = "SELECT ?s ?v { ?s <urn:p> ?v }"
TEXT = " | ".join(f"{t}: s{t * t // 7 % 4} p {t}." for t in range(0, 120, 3))
TIMES = range(0, 120, 3)


def held(start, end):
    """The rows of a window [start, end), one per element: its subject, time, and row."""
    return [(f"s{t * t // 7 % 4}", t, (f"<urn:s{t * t // 7 % 4}>", _value(t))) for t in TIMES if start <= t < end]


def _value(number):
    return f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def half(cases):
    """Every second case, which has each value of each parameter; the others in proofs."""
    return [pytest.param(*case, marks=[pytest.mark.prove] if at % 2 else []) for at, case in enumerate(cases)]


def rows(contents):
    return [[row for _, _, row in content] for content in contents]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    "window",
    [(10, 15), (15, 10), (5, 15), (20, 15), (15, 15), (7, 5)],
    ids=lambda window: f"RANGE {window[0]} SLIDE {window[1]}",
)
def test_a_window_of_another_size_and_slide_is_named(window, named):
    size, slide = window
    declared = (10, 5) if window != (7, 5) else (5, 7)
    run = recording(TEXT, QUERY, window=declared, wrong_window=window, advance=120, named=named)
    assert f"window is RANGE {size} ms, SLIDE {slide} ms" in best(diagnosed(run, TEXT))


def test_a_start_that_moves_with_each_answer_is_the_same_as_another_slide():
    """After each answer t0 is 5 ms later: the k-th window is [10 k + 5 k, 10 k + 5 k + 10)."""
    run = recording(TEXT, QUERY, advance=120)
    moved = [rows([held(15 * k, 15 * k + 10)])[0] for k in range(8)]
    answers = [replace(run.answers[0], added=tuple(item)) for item in moved]
    diagnosis = diagnosed(replace(run, answers=tuple(answers)), TEXT)
    assert best(diagnosis) == ["window is RANGE 10 ms, SLIDE 15 ms"]
    assert "when t0 moves 5 ms on with each answer" in diagnosis.models[0][0].sentence


@pytest.mark.parametrize("newest", [True, False])
def test_the_newest_or_oldest_value_of_each_subject_is_named(newest):
    run = recording(TEXT, QUERY, window=(20, 20), advance=120)

    def kept(content):
        chosen = {}
        for entry in content if newest else reversed(content):
            chosen[entry[0]] = entry
        return list(chosen.values())

    diagnosis = diagnosed(with_rows(run, rows(kept(held(start, start + 20)) for start in range(0, 120, 20))), TEXT)
    which = "newest" if newest else "oldest"
    assert best(diagnosis) == [f"{which} per subject only", f"{which} per subject and predicate only"]


@pytest.mark.parametrize(("slide", "newest", "cap"), half(product([20, 10], [True, False], [2, 3, 5])))
def test_a_window_capped_at_n_elements_is_named(cap, newest, slide):
    run = recording(TEXT, QUERY, window=(20, slide), advance=120)
    closes = range(20, 121, slide)
    contents = [held(close - 20, close) for close in closes]
    diagnosis = diagnosed(
        with_rows(run, rows(content[-cap:] if newest else content[:cap] for content in contents)), TEXT
    )
    assert f"window capped at the {'newest' if newest else 'oldest'} {cap} elements" in best(diagnosis)


def test_a_window_capped_at_n_triples_is_named_where_elements_differ_in_size():
    text = " | ".join(f"{t}: s p {t}." + (f" r p {t + 100}." if t % 2 else "") for t in TIMES)
    run = recording(text, "SELECT ?v { ?s <urn:p> ?v }", window=(20, 20), advance=120)

    def values(start):
        every = [v for t in TIMES if start <= t < start + 20 for v in ([t, t + 100] if t % 2 else [t])]
        return [(_value(v),) for v in every[-4:]]

    diagnosis = diagnosed(with_rows(run, map(values, range(0, 120, 20))), text)
    assert "window capped at the newest 4 triples" in best(diagnosis)


def test_a_buffer_that_takes_nothing_in_while_it_is_full_is_named():
    run = recording(TEXT, QUERY, window=(20, 10), advance=120)
    kept = []
    for entry in held(0, 120):
        if sum(entry[1] - other[1] < 20 for other in kept) < 3:
            kept.append(entry)
    contents = [[entry for entry in kept if close - 20 <= entry[1] < close] for close in range(20, 121, 10)]
    assert "full at 3 elements" in best(diagnosed(with_rows(run, rows(contents)), TEXT))


@pytest.mark.slow
@pytest.mark.parametrize(("named", "percent"), half(product([True, False], [10, -10, 4, -4, -7])))
def test_a_clock_that_drifts_is_named(percent, named):
    """An element at t comes at t * (1 + rate) by the engine's clock."""
    run = recording(TEXT, QUERY, advance=120, named=named)
    rate = 1 + percent / 100
    contents = [
        [entry for entry in held(0, 120) if close - 10 <= int(entry[1] * rate + 1e-9) < close]
        for close in range(10, int(120 * rate + 1e-9) + 1, 10)
    ]
    answers = [replace(run.answers[0], added=tuple(row)) for row in rows(contents)]
    if named:
        answers = [replace(answer, instant=10 * n, scope=None) for n, answer in enumerate(answers, 1)]
    diagnosis = diagnosed(replace(run, answers=tuple(answers)), TEXT)
    assert best(diagnosis)
    assert all(name.startswith(("clock ", "each window ")) for name in best(diagnosis))
    assert any(name.endswith("fast" if percent > 0 else "slow") for name in best(diagnosis))


@pytest.mark.slow
@pytest.mark.parametrize("late", [1, -1, 2])
def test_windows_that_close_a_little_later_each_time_are_named(late):
    run = recording(TEXT, QUERY, window=(20, 10), advance=120, named=True)
    contents = [held(k * 10 + k * late, k * 10 + k * late + 20) for k in range(11)]
    diagnosis = diagnosed(with_rows(run, rows(contents)), TEXT)
    assert any(
        name.startswith(f"each window {abs(late)} ms {'late' if late > 0 else 'early'}") for name in best(diagnosis)
    )


@pytest.mark.parametrize("r2s", [R2S.ISTREAM, R2S.DSTREAM])
def test_faults_of_the_content_are_named_behind_a_difference(r2s):
    semantics = replace(CLOSE, r2s=r2s)
    run = recording(TEXT, QUERY, window=(20, 10), wrong_window=(25, 15), advance=120, semantics=semantics)
    assert "window is RANGE 25 ms, SLIDE 15 ms" in best(diagnosed(run, TEXT))


def test_a_window_of_another_size_and_slide_is_named_where_a_row_is_an_answer():
    semantics = replace(CLOSE, grain=Grain.ROW)
    run = recording(TEXT, QUERY, window=(20, 10), wrong_window=(25, 15), advance=120, semantics=semantics)
    assert "window is RANGE 25 ms, SLIDE 15 ms" in best(diagnosed(run, TEXT))
