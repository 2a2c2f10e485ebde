"""Clocks that drift: which elements a window holds then, and which is the last window, by the definition of a drift."""

from fractions import Fraction
from types import SimpleNamespace

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport, View
from streamgauge.oracle.diagnosis.faults import clock_drift
from streamgauge.oracle.diagnosis.faults.clock_drift import (
    MAX_RATE,
    _at_rate,
    _delayed,
    _falling_behind,
    _last,
    _near,
    _running,
    _shown,
    proposals,
)
from streamgauge.oracle.diagnosis.models import Case, Stream
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, stream

RATES = [Fraction(n, 100) for n in (-25, -10, -3, 3, 10, 25)]
FORM = parse_sparql("SELECT ?s { ?s <urn:p> ?o }")


def case(window=(10, 10), t0=0, until=100, elements=()):
    query = ContinuousQuery(FORM, (StreamWindow(STREAM, Window(*window)),))
    return Case(query, RSPQL, Stream(elements), until, t0)


def report(start, end):
    return DueReport(end, (View(start, end, start, end - 1, 99),))


def held(moved, times):
    (view,) = moved.views
    assert view.seen > 10**9
    return [time for time in times if view.first <= time <= view.last]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("t0", [0, 7])
def test_a_clock_at_another_rate_shows_its_own_time(rate, t0):
    times = range(t0, t0 + 80)
    for start, end in ((0, 10), (10, 20), (25, 55), (40, 50)):
        moved = _at_rate(case(t0=t0), report(t0 + start, t0 + end), rate)
        assert held(moved, times) == [time for time in times if start <= (time - t0) * (1 + rate) < end]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("window", [(10, 10), (20, 10)])
def test_each_window_is_later_than_the_one_before(rate, window):
    size, slide = window
    for number in range(4):
        start, end = number * slide, number * slide + size
        moved = _delayed(case(window), report(start, end), rate)
        delay = number * slide * rate
        times = range(100)
        assert held(moved, times) == [time for time in times if start + delay <= time < end + delay]


def test_a_partial_head_starts_with_the_engine():
    moved = _delayed(case((20, 10)), report(0, 10), Fraction(1, 4))
    assert moved.views[0].first == 0
    assert _at_rate(case(t0=5), report(5, 15), Fraction(1, 4)).views[0].first == 5


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(("window", "t0", "until"), [((10, 10), 0, 100), ((20, 15), 3, 77), ((10, 10), 0, 95)])
def test_the_last_window_is_the_last_that_closes_on_the_clock(rate, window, t0, until):
    size, slide = window
    step = 10 if window == (10, 10) else 5
    borders = [border for border in range(0, 300, step) if border <= (until - t0) * (1 + rate)]
    assert _shown(case(window, t0, until), rate) == t0 + borders[-1]
    # The k-th window after the first is late by k delays.
    closes = [size + k * slide for k in range(40) if size + k * slide * (1 + rate) <= until - t0]
    assert _last(case(window, t0, until), rate) == t0 + closes[-1]


@pytest.mark.parametrize("window", [Window(10, 10), Window(20, 15), Window(12, 8)])
def test_borders_that_a_drift_can_bring_to_a_time(window):
    step = {10: 10, 20: 5, 12: 4}[window.size]
    for offset in (1, 9, 40, 41, 99):
        near = set(_near(offset, window))
        assert near >= {b for b in range(0, 300, step) if offset * (1 - MAX_RATE) <= b <= offset * (1 + MAX_RATE)}
        assert all(border % step == 0 for border in near)
        assert {rate + 1 for rate in _running(offset, window)} == {Fraction(border, offset) for border in near}
        behind = set(_falling_behind(offset, window, window.size))
        for border in near:
            for closes in range(1, 5):
                since = closes * window.slide
                start_or_end = border in (since, since + window.size)
                assert not start_or_end or Fraction(offset - border, since) in behind


def test_rates_between_all_crossings_are_tried_the_smallest_first(monkeypatch):
    text = " | ".join(f"{t}: s p {t}." for t in (9, 11, 25, 38))
    seen = SimpleNamespace(case=case(elements=stream(text), until=40))
    names = [fault.part.name for fault in proposals(seen)]
    plain = [name for name in names if "windows as many" not in name]
    # The round rates first, of which 1% and 2% are less than a millisecond by the end.
    percents, delays = ("5.00%", "10.00%", "15.00%", "20.00%"), ("0.5", "1", "1.5", "2")
    assert plain[:8] == [f"clock {rate} {how}" for rate in percents for how in ("fast", "slow")]
    assert plain[8:16] == [f"each window {delay} ms {how}" for delay in delays for how in ("late", "early")]
    assert all(fault.fine for fault in proposals(seen))
    rates = [float(name.split()[1].rstrip("%")) for name in plain if name.startswith("clock")]
    own = rates[8:]
    assert own == sorted(own)
    assert max(rates) <= 25
    monkeypatch.setattr(clock_drift, "MAX_RATES", 8)
    fewer = [fault.part.name for fault in proposals(seen) if "windows as many" not in fault.part.name]
    assert 16 < len(fewer) <= 16 + 2 * 8 < len(plain)


@pytest.mark.parametrize("window", [(3, 3, "count"), None])
def test_only_one_window_in_time_drifts(window):
    windows = (StreamWindow(STREAM, Window(*window)),) if window else (StreamWindow(STREAM, Window(5, 5)),) * 2
    seen = SimpleNamespace(case=Case(ContinuousQuery(FORM, windows), RSPQL, Stream(()), 100, 0))
    assert list(proposals(seen)) == []
