"""Series of runs (the repetitions of one engine under one semantics) and their points, bins and boxes in plots."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from streamgauge.model.controls import visible
from streamgauge.model.phrases import counted
from streamgauge.model.run import Fed, Run, RunHeader, Sample
from streamgauge.model.semantics import Report, Semantics
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.report.numbers import duration, interval, mebibytes, moment, number, percent, scope_borders

Judged: TypeAlias = tuple[Run, Verdict]
FloatColumn: TypeAlias = npt.NDArray[np.float64]
Tip: TypeAlias = str | Callable[[], str]
"""A tooltip's text, or a function that returns it, as few of 100,000 points are drawn."""

_WORST_FIRST = (Judgement.WRONG, Judgement.UNKNOWN, Judgement.LATE, Judgement.RIGHT)
_PER_REPETITION = frozenset({"seed"})
_MEASURED_ENTRIES = frozenset({"triples", "notes"})
"""Entries of a header's workload that were measured on the stream, not requested."""


@dataclass(frozen=True)
class Series:
    """Repetitions that belong together; ``index`` gives its colour and shape in every plot."""

    index: int
    label: str
    runs: tuple[Judged, ...]

    @property
    def header(self) -> RunHeader:
        """The header of the first repetition, which represents the others."""
        return self.runs[0][0].header

    @cached_property
    def _names(self) -> Mapping[int, str]:
        headers = [run.header for run, _ in self.runs]
        numbers = [header.repetition for header in headers]
        # Runs of several invocations may have the same numbers.
        if len(set(numbers)) < len(numbers):
            numbers = list(range(1, len(headers) + 1))
        seeds = [header.workload.get("seed") for header in headers]
        named = ["" if seed is None or len(set(map(str, seeds))) == 1 else f" (seed {seed})" for seed in seeds]
        return {
            # By identity: a header holds mappings and has no hash.
            id(header): f"repetition {number}{seed}"
            for header, number, seed in zip(headers, numbers, named, strict=True)
        }

    def repetition(self, header: RunHeader) -> str:
        """The name of a run, such as ``repetition 2 (seed 7)``; empty if it is the only one."""
        return self._names[id(header)] if len(self.runs) > 1 else ""

    @property
    def by_seed(self) -> tuple[tuple[str, int], ...]:
        """(seed, place) of the runs, grouped by seed.

        Without several seeds that have several repetitions, the runs keep their order and the seed is empty.
        """
        seeds = [str(run.header.workload.get("seed", "")) for run, _ in self.runs]
        if not 1 < len(set(seeds)) < len(seeds):
            return tuple(("", place) for place in range(len(seeds)))
        return tuple((seed, place) for seed in dict.fromkeys(seeds) for place, own in enumerate(seeds) if own == seed)

    @property
    def judgement(self) -> Judgement:
        """The worst judgement of the repetitions."""
        judgements = {verdict.judgement for _, verdict in self.runs}
        return next(judgement for judgement in _WORST_FIRST if judgement in judgements)

    @property
    def unit(self) -> str:
        """The name of a line of the verdict: window, or report if reports are not window closes."""
        return unit_of(self.header.semantics)


def unit_of(semantics: Semantics) -> str:
    """``window`` if reports are window closes, else ``report``."""
    return "window" if Report.WINDOW_CLOSE in semantics.report else "report"


def unit_over(series: Sequence[Series]) -> str:
    """The unit of several series: ``report`` unless all have windows."""
    units = {one.unit for one in series}
    return units.pop() if len(units) == 1 else "report"


def series_of(runs: Sequence[Judged]) -> tuple[Series, ...]:
    """The series of these runs, in order of first appearance; repetitions by number and seed.

    Runs with the same experiment, engine, query, semantics, parameters and pace are repetitions, whatever was measured:
    seeds 1 and 2 with 400 and 402 triples are one series of two repetitions.
    """
    groups: dict[Hashable, list[Judged]] = {}
    for judged in map(_shown, runs):
        groups.setdefault(identity(judged[0].header), []).append(judged)
    labels = _labels([members[0][0].header for members in groups.values()])
    return tuple(
        Series(index, label, tuple(sorted(members, key=_order)))
        for index, (label, members) in enumerate(zip(labels, groups.values(), strict=True))
    )


def _shown(judged: Judged) -> Judged:
    """A run with printable texts, as engines and harnesses may write control characters."""
    run, verdict = judged
    header = run.header
    texts = {name: _visible(getattr(header, name)) for name in _FREE}
    semantics = replace(header.semantics, name=visible(header.semantics.name))
    printable = replace(verdict, reason=visible(verdict.reason), cautions=tuple(map(visible, verdict.cautions)))
    shown = replace(header, semantics=semantics, **texts)
    return judged if (shown, printable) == (header, verdict) else (replace(run, header=shown), printable)


_FREE = (
    "engine", "query_text", "workload", "versions", "machine", "failure", "options", "experiment", "parameters",
    "query_name",
)  # fmt: skip
"""The fields of a header that hold free text."""


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {visible(name): _visible(inner) for name, inner in value.items()}
    return value


def identity(header: RunHeader) -> Hashable:
    """The settings of a run except for its seed and repetition, and no measurements."""
    return header.experiment, header.engine, header.query_text, header.semantics, _pairs(header)


def _pairs(header: RunHeader) -> Hashable:
    # As text: values may be lists, which have no hash.
    tables = (_workload(header), header.options, header.parameters)
    return header.factor, tuple(tuple(sorted((key, str(value)) for key, value in table.items())) for table in tables)


def _workload(header: RunHeader) -> Mapping[str, object]:
    return {key: value for key, value in header.workload.items() if key not in _PER_REPETITION | _MEASURED_ENTRIES}


def _order(judged: Judged) -> tuple[int, str]:
    header = judged[0].header
    seed = header.workload.get("seed", "")
    # Padded, so that numbers in texts are in the order of their values: 2 before 10.
    return header.repetition, f"{seed:>20}"


def _labels(headers: Sequence[RunHeader]) -> Iterator[str]:
    """A label per series: engine, semantics, the traits in which it differs, and a number if needed."""
    everywhere = varying([traits_of(header) for header in headers])
    seen: Counter[str] = Counter()
    for header in headers:
        # A setting that all series of one engine share would only lengthen their labels.
        alike = [one for one in headers if (one.engine, one.semantics.name) == (header.engine, header.semantics.name)]
        own = varying([own_traits(one) for one in alike])
        label = ", ".join([_engine(header), *_named(traits_of(header), everywhere), *_named(own_traits(header), own)])
        seen[label] += 1
        yield label if seen[label] == 1 else f"{label} ({seen[label]})"


def _engine(header: RunHeader) -> str:
    name = header.semantics.name
    return header.engine if header.engine == name else f"{header.engine} as {name}"


def _named(traits: Mapping[str, str], names: Sequence[str]) -> Iterator[str]:
    return (f"{name} {traits[name]}" for name in names if traits.get(name))


def traits_of(header: RunHeader) -> Mapping[str, str]:
    """Traits that may differ between any two series, by name."""
    pace = "unpaced" if header.factor is None else f"{header.factor:g}"
    tables = (_workload(header), header.parameters)
    traits = {key: str(value) for table in tables for key, value in table.items()}
    return {
        "experiment": header.experiment,
        "query": header.query_name or header.query.name or "",
        **traits,
        "pace": pace,
    }


def own_traits(header: RunHeader) -> Mapping[str, str]:
    """Traits that may differ between two series of an engine under semantics of the same name."""
    semantics = {
        one.name.replace("_", " "): _written(getattr(header.semantics, one.name))
        for one in fields(header.semantics)
        if one.name not in {"name", "sources"}
    }
    return semantics | {key: str(value) for key, value in header.options.items()}


def _written(value: object) -> str:
    return " and ".join(sorted(map(str, value))) if isinstance(value, frozenset) else str(value)


def varying(traits: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """The keys with different values."""
    keys = dict.fromkeys(key for trait in traits for key in trait)
    return tuple(key for key in keys if len({trait.get(key) for trait in traits}) > 1)


def median_delay(windows: Sequence[WindowVerdict]) -> float | None:
    """The median delay (ms) of the reports, ``None`` if there is none."""
    delays = np.fromiter((window.delay for window in windows if window.delay is not None), float)
    return float(np.median(delays)) if len(delays) else None


def delay_of(window: WindowVerdict) -> str:
    """The delay of a report, with ``late`` if it exceeds the bound."""
    return f"{duration(window.delay)}, late" if window.late else duration(window.delay)


def place(window: WindowVerdict) -> int | None:
    """The place of a report in stream time (ms): its instant, else its window's end; ``None`` without both."""
    return window.instant if window.instant is not None else window.end


def state(window: WindowVerdict) -> str:
    """The state of a judged report: right, late (right but too late), missed, surplus or wrong."""
    if window.right:
        return "late" if window.late else "right"
    if window.report is None:
        return "missed"
    return "wrong" if window.due else "surplus"


class Point(NamedTuple):
    """One observation: its coordinates and its tooltip."""

    x: float
    y: float
    tip: Tip

    @property
    def words(self) -> str:
        """The text of the tooltip."""
        return self.tip if isinstance(self.tip, str) else self.tip()


class Bin(NamedTuple):
    """The observations at one x, or in an interval of the x axis."""

    x: float
    low: float
    middle: float
    high: float
    values: int
    tip: str


class PointCloud(NamedTuple):
    """Many observations as columns; ``tip`` returns the tooltip of one by its index.

    Ten million elements take 160 MB.
    """

    xs: FloatColumn
    ys: FloatColumn
    tip: Callable[[int], str]

    @classmethod
    def of(cls, points: Sequence[Point]) -> "PointCloud":
        """The cloud of these points."""
        xs, ys = (np.array([point[place] for point in points], dtype=float) for place in (0, 1))
        return cls(xs, ys, lambda at: points[at].words)

    @classmethod
    def joined(cls, clouds: Sequence["PointCloud"]) -> "PointCloud":
        """The cloud of all points of some clouds, in order."""
        xs, ys = (np.concatenate([np.empty(0), *(cloud[place] for cloud in clouds)]) for place in (0, 1))
        ends = list(accumulate(cloud.size for cloud in clouds))

        def tip(at: int) -> str:
            number = bisect_right(ends, at)
            return clouds[number].tip(at - (ends[number - 1] if number else 0))

        return cls(xs, ys, tip)

    @property
    def size(self) -> int:
        """The number of observations."""
        return len(self.xs)

    @property
    def highest(self) -> float:
        """The greatest y, 0 without observations."""
        return float(self.ys.max()) if self.size else 0.0

    def bins(self, limit: int, show: Callable[[float], str]) -> list[Bin]:
        """At most ``limit`` bins: one per distinct x while these fit, else equal stretches of the x axis."""
        if not self.size:
            return []
        # Points of several repetitions are concatenated, so x is not ascending.
        order = np.argsort(self.xs, kind="stable")
        xs = self.xs[order]
        starts = np.flatnonzero(np.concatenate(([True], xs[1:] != xs[:-1])))
        if len(starts) > limit:
            # The last x divides to ``limit`` exactly, and belongs to the last stretch.
            stretch = np.minimum(limit - 1, ((xs - xs[0]) / ((xs[-1] - xs[0]) / limit)).astype(int))
            starts = np.flatnonzero(np.concatenate(([True], stretch[1:] != stretch[:-1])))
        return [self._bin(group, show) for group in np.split(order, starts[1:])]

    def _bin(self, places: npt.NDArray[np.intp], show: Callable[[float], str]) -> Bin:
        xs, ys = self.xs[places], self.ys[places]
        if len(places) == 1:
            x, y = float(xs[0]), float(ys[0])
            return Bin(x, y, y, y, 1, self.tip(int(places[0])))
        low, middle, high = float(ys.min()), float(np.median(ys)), float(ys.max())
        x = float(np.median(xs))
        first, last = (moment(1000 * float(end)) for end in (xs.min(), xs.max()))
        where = first if first == last else f"{first.removesuffix(' s')} to {last}"
        tip = f"{where}, {len(places):,} values: median {show(middle)}, lowest {show(low)}, highest {show(high)}"
        return Bin(x, low, middle, high, len(places), tip)


def bins(points: Sequence[Point], limit: int, show: Callable[[float], str]) -> list[Bin]:
    """At most ``limit`` bins: one per distinct x if these fit, else equal stretches of the x axis.

    ``show`` formats y values in the tooltips of bins with several observations.
    """
    return PointCloud.of(points).bins(limit, show)


def spread_sample(points: PointCloud, limit: int) -> list[Point]:
    """About ``limit`` distinct points: the highest of each x and an even sample of the rest."""
    xs, ys = points.xs, points.ys
    # The first of equal points, in order of their places.
    distinct = np.sort(np.unique(np.stack([xs, ys]), axis=1, return_index=True)[1])
    kept = distinct
    if len(distinct) > limit:
        upwards = distinct[np.lexsort((-ys[distinct], xs[distinct]))]
        highest = upwards[np.unique(xs[upwards], return_index=True)[1]]
        # Outliers are what a delay plot is read for, and an even sample would drop them.
        peaks = highest[np.argsort(-ys[highest], kind="stable")][: limit // 2]
        step = -(-len(distinct) // (limit - len(peaks)))
        kept = np.array([*dict.fromkeys([*peaks.tolist(), *distinct[::step].tolist()])], np.intp)
    return [Point(float(xs[at]), float(ys[at]), points.tip(at)) for at in kept.tolist()]


class Box(NamedTuple):
    """A box of a box plot: minimum, quartiles and maximum of ``values`` values."""

    low: float
    first: float
    middle: float
    third: float
    high: float
    values: int


def box(values: Sequence[float]) -> Box:
    """The box of these values; quartiles by YABench's rule (index p*n/100, mean of both neighbours if whole)."""
    ordered = sorted(values)
    first, middle, third = (_quantile(ordered, share) for share in (25, 50, 75))
    return Box(ordered[0], first, middle, third, ordered[-1], len(ordered))


def _quantile(ordered: Sequence[float], share: int) -> float:
    whole, rest = divmod(share * len(ordered), 100)
    # Of 8 values the quartiles are at 2, 4 and 6: the mean of the 2nd and 3rd value, and so on. Of 10 they are the
    # 3rd, the mean of the 5th and 6th, and the 8th.
    if rest == 0 and 0 < whole < len(ordered):
        return (ordered[whole - 1] + ordered[whole]) / 2
    return ordered[min(whole, len(ordered) - 1)]


def tooltip(series: Series, judged: Judged, window: WindowVerdict) -> str:
    """The tooltip of a judged report with all its figures."""
    header = judged[0].header
    again = f", {name}" if (name := series.repetition(header)) else ""
    where = interval(window.start, window.end, scope_borders(header.query, header.semantics))
    return (
        f"{series.label}{again}, {series.unit} {window.index:,} {where}, {state(window)}: "
        f"precision {percent(window.precision)}, recall {percent(window.recall)}, {rows_of(window)}, "
        f"{counted(window.content, 'triple')} in the window, delay {duration(window.delay)}"
    )


def rows_of(window: WindowVerdict) -> str:
    """The numbers of rows of a report, such as ``137 rows expected and received``."""
    expected = counted(window.expected, "row")
    if window.right:
        return f"{expected} expected and received"
    return f"{expected} expected, {window.actual:,} received, {window.true_positives:,} in both"


def stream_seconds(window: WindowVerdict) -> float | None:
    """The place of a report in stream time, in s."""
    at = place(window)
    return None if at is None else at / 1000


def of_windows(
    series: Series,
    value: Callable[[WindowVerdict], float | None],
    across: Callable[[WindowVerdict], float | None] = stream_seconds,
) -> PointCloud:
    """One point per judged report that has the value, which is y, and the one of ``across``, which is x."""
    xs, ys, repetitions, indexes = array("d"), array("d"), array("i"), array("q")
    for repetition, (_, verdict) in enumerate(series.runs):
        for index, window in enumerate(verdict.windows):
            x, y = across(window), value(window)
            if x is not None and y is not None:
                xs.append(x)
                ys.append(y)
                repetitions.append(repetition)
                indexes.append(index)

    def tip(at: int) -> str:
        # Read again on demand: verdicts of many windows stay on disk.
        judged = series.runs[repetitions[at]]
        return tooltip(series, judged, judged[1].windows[indexes[at]])

    return PointCloud(np.array(xs, float), np.array(ys, float), tip)


def of_samples(series: Series, value: Callable[[Sample], float], show: Callable[[float], str]) -> PointCloud:
    """One point per resource sample: x in s since the feed's start."""
    points = [
        Point(
            (sample.at - run.header.started) / 1e9,
            value(sample),
            partial(_sampled, series, run, sample, show(value(sample))),
        )
        for run, _ in series.runs
        for sample in run.samples
    ]
    return PointCloud.of(points)


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


def of_feed(series: Series) -> PointCloud:
    """One point per element of the paced runs: x in s of stream time, y the feeder's lateness in ms."""
    runs = [run.fed for run, _ in series.runs if run.header.factor is not None]
    columns = [
        np.concatenate([np.fromiter(map(value, fed), float, len(fed)) for fed in runs] or [np.empty(0)])
        for value in (lambda fed: fed.time / 1000, lateness)
    ]
    # A tooltip's record is searched on demand: a list of (run, element) would undo what the arrays save.
    ends = list(accumulate(map(len, runs)))

    def tip(at: int) -> str:
        run = bisect_right(ends, at)
        return _handed(series, runs[run][at - (ends[run - 1] if run else 0)])

    return PointCloud(columns[0], columns[1], tip)


def _handed(series: Series, fed: Fed) -> str:
    return f"{series.label}, element of {moment(fed.time)}: {duration(lateness(fed))} late"


def binned(series: Series, points: PointCloud, limit: int, show: Callable[[float], str]) -> list[Bin]:
    """The points in at most ``limit`` bins, and no more than the points of one repetition."""
    # Repetitions have points at nearly the same places, which share bins.
    limit_ = max(1, -(-points.size // len(series.runs)))
    return points.bins(min(limit, limit_), show)
