"""What plots are drawn from: points with tooltips, read off the judged reports and the samples of a run."""

from collections.abc import Callable, Iterator, Sequence

from streamgauge.model.run import Fed, Run, Sample
from streamgauge.model.verdict import WindowVerdict
from streamgauge.report.numbers import duration, interval, mebibytes, moment, number, percent
from streamgauge.report.series import Judged, Series, place, state
from streamgauge.report.thin import Bin, Point, bins


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
    """How much later than planned (ms) an element was handed over."""
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
