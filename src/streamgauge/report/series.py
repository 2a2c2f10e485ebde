"""Runs sorted into series, repetitions of one engine under one semantics, and their points, bins and boxes in plots."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from statistics import median
from typing import NamedTuple, TypeAlias

from streamgauge.model.run import Fed, Run, RunHeader, Sample
from streamgauge.model.semantics import Report, Semantics
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.report.numbers import duration, interval, mebibytes, moment, number, percent

Judged: TypeAlias = tuple[Run, Verdict]

_WORST_FIRST = (Judgement.WRONG, Judgement.UNKNOWN, Judgement.LATE, Judgement.RIGHT)
_PER_REPETITION = frozenset({"seed"})
_FOUND = frozenset({"triples", "notes"})
"""Entries of a header's workload that say what was found in a stream."""


@dataclass(frozen=True)
class Series:
    """Repetitions that belong together; ``index`` gives its colour and shape in every plot."""

    index: int
    label: str
    runs: tuple[Judged, ...]

    @property
    def header(self) -> RunHeader:
        """The header of the first repetition, which speaks for the others."""
        return self.runs[0][0].header

    @cached_property
    def _names(self) -> Mapping[int, str]:
        headers = [run.header for run, _ in self.runs]
        numbers = [header.repetition for header in headers]
        if len(set(numbers)) < len(numbers):
            numbers = list(range(1, len(headers) + 1))
        seeds = [header.workload.get("seed") for header in headers]
        named = ["" if seed is None or len(set(map(str, seeds))) == 1 else f" (seed {seed})" for seed in seeds]
        return {
            id(header): f"repetition {number}{seed}"
            for header, number, seed in zip(headers, numbers, named, strict=True)
        }

    def repetition(self, header: RunHeader) -> str:
        """The name of one of its runs, empty where there is no other: ``repetition 2 (seed 7)``."""
        return self._names[id(header)] if len(self.runs) > 1 else ""

    @property
    def judgement(self) -> Judgement:
        """The worst judgement of the repetitions."""
        found = {verdict.judgement for _, verdict in self.runs}
        return next(judgement for judgement in _WORST_FIRST if judgement in found)

    @property
    def unit(self) -> str:
        """The name of one line of the verdict: a window, or a report where reports are not window closes."""
        return unit_of(self.header.semantics)


def unit_of(semantics: Semantics) -> str:
    """``window`` where windows report as they close, else ``report``."""
    return "window" if Report.WINDOW_CLOSE in semantics.report else "report"


def unit_over(series: Sequence[Series]) -> str:
    """The name of a line of these verdicts: a report where some are windows and some are not."""
    units = {one.unit for one in series}
    return units.pop() if len(units) == 1 else "report"


def series_of(runs: Sequence[Judged]) -> tuple[Series, ...]:
    """The series of these runs, in order of first appearance; repetitions in order of number and seed.

    Runs of one experiment, engine, query, semantics, parameters and pace are repetitions of one series, whatever was
    found. Example: of seeds 1 and 2 with 400 and 402 triples there is one series of two repetitions.
    """
    groups: dict[Hashable, list[Judged]] = {}
    for judged in runs:
        groups.setdefault(identity(judged[0].header), []).append(judged)
    labels = _labels([members[0][0].header for members in groups.values()])
    return tuple(
        Series(index, label, tuple(sorted(members, key=_order)))
        for index, (label, members) in enumerate(zip(labels, groups.values(), strict=True))
    )


def identity(header: RunHeader) -> Hashable:
    """All that was asked of a run but its seed and the number of its repetition; nothing that was found."""
    return header.experiment, header.engine, header.query_text, header.semantics, _pairs(header)


def _pairs(header: RunHeader) -> Hashable:
    tables = (_workload(header), header.options, header.parameters)
    return header.factor, tuple(tuple(sorted((key, str(value)) for key, value in table.items())) for table in tables)


def _workload(header: RunHeader) -> Mapping[str, object]:
    return {key: value for key, value in header.workload.items() if key not in _PER_REPETITION | _FOUND}


def _order(judged: Judged) -> tuple[int, str]:
    header = judged[0].header
    seed = header.workload.get("seed", "")
    return header.repetition, f"{seed:>20}"


def _labels(headers: Sequence[RunHeader]) -> Iterator[str]:
    """A label for each series: the engine, its semantics, and what tells the series from others; a number at last."""
    everywhere = _varying([_traits(header) for header in headers])
    seen: Counter[str] = Counter()
    for header in headers:
        alike = [one for one in headers if (one.engine, one.semantics.name) == (header.engine, header.semantics.name)]
        own = _varying([_own(one) for one in alike])
        label = ", ".join([_engine(header), *_named(_traits(header), everywhere), *_named(_own(header), own)])
        seen[label] += 1
        yield label if seen[label] == 1 else f"{label} ({seen[label]})"


def _engine(header: RunHeader) -> str:
    name = header.semantics.name
    return header.engine if header.engine == name else f"{header.engine} as {name}"


def _named(traits: Mapping[str, str], names: Sequence[str]) -> Iterator[str]:
    return (f"{name} {traits[name]}" for name in names if traits.get(name))


def _traits(header: RunHeader) -> Mapping[str, str]:
    """Traits that may differ between any two series, in words."""
    pace = "unpaced" if header.factor is None else f"{header.factor:g}"
    tables = (_workload(header), header.parameters)
    given = {key: str(value) for table in tables for key, value in table.items()}
    return {"experiment": header.experiment, "query": header.query.name or "", **given, "pace": pace}


def _own(header: RunHeader) -> Mapping[str, str]:
    """Traits that may differ between two series of an engine under semantics of one name."""
    semantics = {
        one.name.replace("_", " "): _written(getattr(header.semantics, one.name))
        for one in fields(header.semantics)
        if one.name not in {"name", "sources"}
    }
    return semantics | {key: str(value) for key, value in header.options.items()}


def _written(value: object) -> str:
    return " and ".join(sorted(map(str, value))) if isinstance(value, frozenset) else str(value)


def _varying(traits: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    keys = dict.fromkeys(key for trait in traits for key in trait)
    return tuple(key for key in keys if len({trait.get(key) for trait in traits}) > 1)


def median_delay(windows: Sequence[WindowVerdict]) -> float | None:
    """The median delay (ms) of the reports that came, ``None`` when none did."""
    delays = [window.delay for window in windows if window.delay is not None]
    return median(delays) if delays else None


def delay_of(window: WindowVerdict) -> str:
    """The delay of a report in words, marked where it is beyond the bound."""
    return f"{duration(window.delay)}, late" if window.late else duration(window.delay)


def place(window: WindowVerdict) -> int | None:
    """The place of a report in stream time (ms): its instant, else its end; ``None`` when it names neither."""
    return window.instant if window.instant is not None else window.end


def state(window: WindowVerdict) -> str:
    """One word for a judged report: right, late (right but too late), missed, surplus or wrong."""
    if window.right:
        return "late" if window.late else "right"
    if window.report is None:
        return "missed"
    return "wrong" if window.due else "surplus"


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
