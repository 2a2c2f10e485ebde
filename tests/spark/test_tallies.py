"""Aggregates that follow solutions as they come and go are what each report's solutions give by themselves."""

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.spark.aggregates import TallyKind, groups
from streamgauge.spark.intervals import latest

REPORTS = 12
REALS = st.sampled_from([0.1, -2.5, 1e20, 1e-300, 3.0, math.inf, -math.inf, math.nan, None])
WHOLES = st.sampled_from([0, 1, -7, 1 << 40, (1 << 63) - 1, None])


@st.composite
def rows(draw, values):
    """Rows (lo, hi, term, number) in order of lo; equal numbers have equal terms."""
    results = []
    for _ in range(draw(st.integers(0, 8))):
        low, number = draw(st.integers(0, REPORTS - 1)), draw(values)
        term = None if number is None and draw(st.booleans()) else f"t{number}"
        results.append((low, draw(st.integers(low, REPORTS - 1)), term, number))
    return sorted(results, key=lambda row: row[0])


def said(result, kind, keyed):
    """The sweep's cells at each report, the same in blocks of any width; no two of its rows speak of one report."""
    one, *others = ({**cells(result, kind, keyed, width)} for width in (REPORTS, 1, 3, REPORTS + 5))
    assert all(other == one for other in others)
    return one


def cells(result, kind, keyed, width):
    known = {}
    for first in range(0, REPORTS, width):
        last = first + width - 1
        held = [row for row in result if row[0] <= last and row[1] >= first]
        inside = sorted(((max(low, first), min(high, last), *one) for low, high, *one in held), key=lambda row: row[0])
        rows = inside if keyed else [(first, None, None, None), *inside]
        for low, high, *values in groups(rows, (kind,), keyed, REPORTS, width) if rows else ():
            for report in range(low, high + 1):
                assert report not in known
                known[report] = tuple(values)
    return known


def inside(result, report):
    return [(term, number) for low, high, term, number in result if low <= report <= high]


def once(kind, there):
    return list(dict(there).items()) if kind.distinct else there


@given(rows(REALS), st.booleans(), st.booleans())
def test_counts(found, distinct, keyed):
    kind = TallyKind("count", distinct)
    wanted = {
        report: (len([term for term, _ in once(kind, there) if term is not None]),)
        for report in range(REPORTS)
        if (there := inside(found, report)) or not keyed
    }
    assert said(found, kind, keyed) == wanted


@given(rows(REALS), st.booleans())
def test_real_sums_are_exact(found, distinct):
    kind = TallyKind("sum", distinct)
    cells = said(found, kind, False)
    for report in range(REPORTS):
        numbers = [number for _, number in once(kind, inside(found, report))]
        total, count, whole = cells[report]
        known = [number for number in numbers if number is not None]
        finite = [number for number in known if math.isfinite(number)]
        special = sum(number for number in known if not math.isfinite(number))
        wanted = special if len(finite) < len(known) else float(sum(map(Fraction, finite)))
        assert total == wanted or (math.isnan(total) and math.isnan(wanted))
        assert count == len(known)
        assert whole == (None if not numbers else count if len(known) == len(numbers) else -1)


@given(rows(WHOLES))
def test_whole_sums(found):
    cells = said(found, TallyKind("sum", whole=True), False)
    for report in range(REPORTS):
        total = sum(number for _, number in inside(found, report) if number is not None)
        assert cells[report][0] == str(total)


@given(rows(REALS), st.sampled_from(["least", "greatest"]))
def test_extremes(found, function):
    """NaN is the greatest; a solution without a number leaves the aggregate without a value."""
    cells = said(found, TallyKind(function), True)
    for report in range(REPORTS):
        there = inside(found, report)
        assert (report in cells) == bool(there)
        if there:
            keys = {
                (math.isnan(number), 0 if math.isnan(number) else number): t
                for t, number in there
                if number is not None
            }
            best = (min if function == "least" else max)(keys, default=None)
            error = any(number is None for _, number in there)
            assert cells[report] == (None if error or best is None else keys[best],)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 5))))
def test_latest(found):
    ordered = sorted((min(a, b), max(a, b), value) for a, b, value in found)
    shown = {}
    for low, high, value in latest(ordered):
        for report in range(low, high + 1):
            assert report not in shown
            shown[report] = value
    for report in range(10):
        assert shown.get(report) == max((v for low, high, v in ordered if low <= report <= high), default=None)
