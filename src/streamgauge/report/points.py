"""Points of plots, with tooltips off judged reports and samples, thinned to bins, and the boxes of box plots."""

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from streamgauge.model.run import Fed, Run, Sample
from streamgauge.model.verdict import WindowVerdict
from streamgauge.report.numbers import duration, interval, mebibytes, moment, number, percent
from streamgauge.report.series import Judged, Series, place, state


class Point(NamedTuple):
    """One observation: where, how much, and the words of its tooltip."""

    x: float
    y: float
    tip: str


class Bin(NamedTuple):
    """All observations at one place (or in one stretch) of the x axis."""

    x: float
    low: float
    middle: float
    high: float
    values: int
    tip: str


def bins(points: Sequence[Point], limit: int, show: Callable[[float], str]) -> list[Bin]:
    """At most ``limit`` bins: one per distinct x while these fit, else equal stretches of the x axis.

    ``show`` writes a y value in the tooltip of a bin that holds several observations.
    """
    places: dict[float, list[Point]] = {}
    for point in points:
        places.setdefault(point.x, []).append(point)
    if len(places) > limit:
        places = _stretches(points, limit)
    return [_bin(places[x], show) for x in sorted(places)]


def _stretches(points: Sequence[Point], limit: int) -> dict[float, list[Point]]:
    low = min(point.x for point in points)
    width = (max(point.x for point in points) - low) / limit
    places: dict[float, list[Point]] = {}
    for point in points:
        places.setdefault(min(limit - 1, int((point.x - low) / width)), []).append(point)
    return places


def _bin(points: list[Point], show: Callable[[float], str]) -> Bin:
    values = [point.y for point in points]
    low, middle, high = min(values), median(values), max(values)
    x = median(point.x for point in points)
    if len(points) == 1:
        return Bin(x, low, middle, high, 1, points[0].tip)
    first, last = min(point.x for point in points), max(point.x for point in points)
    where = f"{first:,.1f} s" if first == last else f"{first:,.1f} to {last:,.1f} s"
    tip = f"{where}, {len(points):,} values: median {show(middle)}, lowest {show(low)}, highest {show(high)}"
    return Bin(x, low, middle, high, len(points), tip)


def spread_sample(points: Sequence[Point], limit: int) -> list[Point]:
    """About ``limit`` distinct points: when there are more, the highest of each x and an even sample of the rest."""
    distinct = list({(point.x, point.y): point for point in points}.values())
    if len(distinct) <= limit:
        return distinct
    highest: dict[float, Point] = {}
    for point in distinct:
        if point.x not in highest or point.y > highest[point.x].y:
            highest[point.x] = point
    peaks = sorted(highest.values(), key=lambda point: -point.y)[: limit // 2]
    step = -(-len(distinct) // (limit - len(peaks)))
    return list(dict.fromkeys([*peaks, *distinct[::step]]))


class Box(NamedTuple):
    """A box of a box plot: lowest, quartiles and highest of so many ``values``."""

    low: float
    first: float
    middle: float
    third: float
    high: float
    values: int


def box(values: Sequence[float]) -> Box:
    """The box of these values; quartiles by YABench's rule (index p*n/100, mean of both neighbours when whole)."""
    ordered = sorted(values)
    first, middle, third = (_quantile(ordered, share) for share in (25, 50, 75))
    return Box(ordered[0], first, middle, third, ordered[-1], len(ordered))


def _quantile(ordered: Sequence[float], share: int) -> float:
    whole, rest = divmod(share * len(ordered), 100)
    if rest == 0 and 0 < whole < len(ordered):
        return (ordered[whole - 1] + ordered[whole]) / 2
    return ordered[min(whole, len(ordered) - 1)]


def tooltip(series: Series, judged: Judged, window: WindowVerdict) -> str:
    """Everything about one judged report in a line or two of text."""
    header = judged[0].header
    again = f", {name}" if (name := series.repetition(header)) else ""
    where = interval(window.start, window.end, header.semantics.borders)
    return (
        f"{series.label}{again}, {series.unit} {window.index:,} {where}, {state(window)}: "
        f"precision {percent(window.precision)}, recall {percent(window.recall)}, "
        f"{window.expected:,} rows expected, {window.actual:,} received, {window.true_positives:,} in both, "
        f"{window.content:,} triples in the window, delay {duration(window.delay)}"
    )


def of_windows(series: Series, value: Callable[[WindowVerdict], float | None]) -> list[Point]:
    """One point per judged report that has the value and a place in stream time: x is that, in s."""
    return [point for judged in series.runs for point in _of_run(series, judged, value)]


def _of_run(series: Series, judged: Judged, value: Callable[[WindowVerdict], float | None]) -> Iterator[Point]:
    for window in judged[1].windows:
        at, found = place(window), value(window)
        if at is not None and found is not None:
            yield Point(at / 1000, found, tooltip(series, judged, window))


def of_samples(series: Series, value: Callable[[Sample], float], show: Callable[[float], str]) -> list[Point]:
    """One point per resource sample: x in s since the feed's start."""
    return [
        Point((sample.at - run.header.started) / 1e9, value(sample), _sampled(series, run, sample, show(value(sample))))
        for run, _ in series.runs
        for sample in run.samples
    ]


def _sampled(series: Series, run: Run, sample: Sample, shown: str) -> str:
    at = number((sample.at - run.header.started) / 1e9)
    return f"{series.label}, {at} s after the start: {shown} ({_sample(sample)})"


def _sample(sample: Sample) -> str:
    share = percent(sample.memory_percent / 100)
    return (
        f"{mebibytes(sample.rss)}, {share} of the memory, CPU {number(sample.cpu_percent)}%, {sample.threads} threads"
    )


def lateness(fed: Fed) -> float:
    """The lateness (ms) with which an element was handed over."""
    return (fed.handed - fed.planned) / 1e6


def of_feed(series: Series) -> list[Point]:
    """One point per element of the paced runs: x in s of stream time, y the feeder's lateness in ms."""
    return [
        Point(
            fed.time / 1000,
            lateness(fed),
            f"{series.label}, element of {moment(fed.time)}: {duration(lateness(fed))} late",
        )
        for run, _ in series.runs
        if run.header.factor is not None
        for fed in run.fed
    ]


def binned(series: Series, points: Sequence[Point], limit: int, show: Callable[[float], str]) -> list[Bin]:
    """The points in bins, at most as many as one repetition has points, and at most ``limit``."""
    if not points:
        return []
    most = max(1, -(-len(points) // len(series.runs)))
    return bins(points, min(limit, most), show)
