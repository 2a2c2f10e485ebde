"""Sustainable load: the hardest value of an axis at which an engine is right, in time, and fed on schedule.

An axis is varied in the experiment: the load, the window's size or slide, the time unit; each value that the search
asks for is scored by a probe, a paced run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from streamgauge.engines import EngineError, named, profiles
from streamgauge.engines import load as load_engine
from streamgauge.model.query import ContinuousQuery, Window
from streamgauge.model.run import Run
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.judging.metrics import ADVANCE, percentile
from streamgauge.query import print_query
from streamgauge.semantics.profiles import profile
from streamgauge.suites.experiments import EnginePart, Experiment, ExperimentError
from streamgauge.suites.experiments.load_search import Harder, SearchRange, search
from streamgauge.suites.experiments.plan import parameters_of, plan_query, plan_runs
from streamgauge.suites.experiments.runner import ExperimentContext, run_experiment


class Bound(StrEnum):
    """The reason why an engine failed at a load that it does not carry."""

    WRONG = "wrong windows"
    DELAY = "delay"
    FEEDER = "the feeder"
    FAILED = "the engine failed"
    UNKNOWN = "no verdict"
    SHORT = "stream too short"
    REFUSED = "not tried"


OF_ENGINE = frozenset({Bound.WRONG, Bound.DELAY, Bound.FAILED})
"""Bounds by which the engine itself failed; the others say nothing of how much more it carries."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The limits of a run: the 99th percentile of the delays in every window, and of the feeder's lateness (ms).

    A paced run that is shorter than ``lasting`` (wall ms) tells nothing: any engine can buffer it.
    """

    delay: float
    feeder: float
    lasting: int = 10_000


@dataclass(frozen=True, slots=True)
class LoadProbe:
    """The score of one value: triples a second of wall time, windows and right ones, delays and lateness in ms.

    ``slowest`` is the greatest 99th percentile of the delays within a window; ``bound`` is ``None`` when the value is
    carried, and ``reason`` says in a sentence why it is not.
    """

    value: float
    rate: float = 0.0
    windows: int = 0
    right: int = 0
    precision: float = 0.0
    recall: float = 0.0
    p50: float | None = None
    p99: float | None = None
    slowest: float | None = None
    feeder: float = 0.0
    bound: Bound | None = None
    reason: str = ""
    folders: tuple[Path, ...] = ()
    excess: float = 0.0

    @property
    def in_time(self) -> bool:
        """Whether it was carried, or would have been but for a stream that is too short."""
        return self.carried or (self.bound is Bound.SHORT and self.excess <= 0)

    @property
    def carried(self) -> bool:
        """Whether every window was right, the delay bounded and the feeder on schedule."""
        return self.bound is None


def probed(value: float, runs: Sequence[tuple[Path, Run, Verdict]], limit: Limit) -> LoadProbe:
    """The score of a value from all of its runs: a value is carried when each of them is."""
    windows = [window for _, _, verdict in runs for window in verdict.windows]
    delays = [window.delay for window in windows if window.delay is not None]
    failed = (failure for _, run, verdict in runs if (failure := _failed(run, verdict, limit)) is not None)
    bound, reason = next(failed, (None, ""))
    slow = max((slowest(run.header.query, verdict.windows) for _, run, verdict in runs), default=0.0)
    return LoadProbe(
        value=value,
        rate=min(rate(run) for _, run, _ in runs),
        windows=len(windows),
        right=sum(window.right for window in windows),
        precision=min(verdict.precision for _, _, verdict in runs),
        recall=min(verdict.recall for _, _, verdict in runs),
        p50=percentile(delays, 50),
        p99=percentile(delays, 99),
        slowest=slow,
        feeder=max(feeder_p99(run) for _, run, _ in runs),
        bound=bound,
        reason=reason,
        folders=tuple(folder for folder, _, _ in runs),
        excess=slow - limit.delay,
    )


def _failed(run: Run, verdict: Verdict, limit: Limit) -> tuple[Bound, str] | None:
    """The bound that the run fails by, the gravest first: failure, no verdict, wrong windows, feeder, delay."""
    late, slow = feeder_p99(run), slowest(run.header.query, verdict.windows)
    wrong = sum(not window.right for window in verdict.windows)
    if run.header.failure is not None:
        return Bound.FAILED, run.header.failure
    if verdict.judgement is Judgement.UNKNOWN:
        return Bound.UNKNOWN, verdict.reason
    if wrong:
        return Bound.WRONG, f"{wrong:,} of {len(verdict.windows):,} windows or reports are wrong"
    if (lasted := lasting(run)) < limit.lasting:
        return Bound.SHORT, f"at this pace the stream lasts {lasted:,.0f} ms, {limit.lasting:,} are asked: lengthen it"
    if late > limit.feeder:
        return (
            Bound.FEEDER,
            f"the harness itself fed {late:,.0f} ms late (99th percentile), {limit.feeder:,.0f} allowed",
        )
    if slow > limit.delay:
        return Bound.DELAY, f"a window's answers came {slow:,.0f} ms late (99th percentile), {limit.delay:,.0f} allowed"
    return None


def slowest(query: ContinuousQuery, windows: Iterable[WindowVerdict]) -> float:
    """The greatest 99th percentile (ms) of the delays of the reports within a window's slide; 0 without any."""
    slide = min((window.window.slide for window in query.windows if window.window.kind != "count"), default=1)
    delays: dict[int, list[float]] = {}
    for window in windows:
        if window.delay is not None:
            delays.setdefault((window.instant or 0) // slide, []).append(window.delay)
    return max((percentile(values, 99) or 0.0 for values in delays.values()), default=0.0)


def feeder_p99(run: Run) -> float:
    """How late the feeder handed elements over, 99th percentile in ms."""
    return percentile([(fed.handed - fed.planned) / 1e6 for fed in run.fed if fed.sequence != ADVANCE], 99) or 0.0


def lasting(run: Run) -> float:
    """How long the run's stream takes at its pace, wall ms."""
    return (run.header.advanced_to - run.header.begin) / (run.header.factor or 1.0)


def rate(run: Run) -> float:
    """Triples a second of wall time, as the pace plans it."""
    return sum(fed.size for fed in run.fed) * 1000 / max(1.0, lasting(run))


PACE = "feed.pace"
AXES = ("load", "window", "slide", "time-unit")


@dataclass(frozen=True, slots=True)
class CapacityAxis:
    """One thing that is varied: its name and unit, where it starts, which way it gets harder, and how it is set."""

    name: str
    unit: str
    start: float
    harder: Harder
    whole: bool
    apply: Callable[[Experiment, float], Experiment]

    @property
    def title(self) -> str:
        """The heading of the axis in tables and plots: its name and unit."""
        return f"{self.name}, {self.unit}" if self.unit else self.name

    @property
    def folder(self) -> str:
        """The axis' name in folders and files."""
        return self.name.replace(" ", "-")

    def written(self, value: float) -> str:
        """A value as text for folder names and tables."""
        return f"{value:.0f}" if self.whole else f"{value:g}"


def axis(name: str, experiment: Experiment, load: str = PACE) -> CapacityAxis:
    """The axis of that name; ``load`` is the key that is the load. ExperimentError says what cannot be varied."""
    if name == "window":
        return CapacityAxis("window", "ms", _window(experiment).size, Harder.SMALLER, True, _sized)
    if name == "slide":
        return CapacityAxis(
            "slide",
            "ms",
            _window(experiment).slide,
            Harder.SMALLER,
            True,
            lambda at, to: _with_window(at, Window(_window(at).size, int(to))),
        )
    if name == "time-unit":
        unit = max(profile(semantic).time_unit for part in experiment.engine for semantic in part.semantics)
        return CapacityAxis("time unit", "ms", max(2, unit), Harder.SMALLER, True, _with_unit)
    if name != "load":
        raise ExperimentError(f"--axis {name}: choose from {', '.join(AXES)}")
    if load == PACE:
        pace = experiment.feed.factor or 1.0
        return CapacityAxis(
            "pace", "times real time", pace, Harder.GREATER, False, lambda at, to: varied(at, {PACE: to})
        )
    return _parameter(experiment, load)


def _parameter(experiment: Experiment, load: str) -> CapacityAxis:
    """A whole-number parameter of the workload or the query as the load."""
    table, _, name = load.rpartition(".")
    if table not in {"workload", "query.parameters"} or not name:
        raise ExperimentError(f"--load {load}: name {PACE}, workload.NAME or query.parameters.NAME")
    parameters: Mapping[str, Any] = experiment.query.parameters
    if table == "workload":
        if experiment.workload.name is None:
            raise ExperimentError(f"--load {load}: a recorded stream has no parameters: the load is {PACE}")
        parameters = parameters_of(experiment)
    value = parameters.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ExperimentError(f"--load {load}: its value is {value!r}: a load is a whole number of at least 1")
    return CapacityAxis(name, "", value, Harder.GREATER, True, lambda at, to: varied(at, {load: int(to)}))


def varied(experiment: Experiment, values: Mapping[str, object]) -> Experiment:
    """The experiment with other values at these keys (``workload.stations``); it is checked again."""
    data = experiment.model_dump()
    for key, value in values.items():
        *tables, last = key.split(".")
        at = data
        for table in tables:
            at = at[table]
        at[last] = value
    return Experiment.model_validate(data)


def _with_unit(experiment: Experiment, value: float) -> Experiment:
    parts = [{**part.model_dump(), "time_unit": int(value)} for part in experiment.engine]
    return varied(experiment, {"engine": parts})


def _window(experiment: Experiment) -> Window:
    """The window of the query, which has to be its only one and time-based."""
    windows = plan_query(experiment).query.windows
    if len(windows) != 1 or windows[0].window.kind != "time":
        raise ExperimentError("--axis window and --axis slide vary the one time-based window of a query: it has none")
    return windows[0].window


def _sized(experiment: Experiment, value: float) -> Experiment:
    """A tumbling window stays tumbling, a sliding one keeps its slide."""
    own = _window(experiment)
    size = int(value)
    return _with_window(experiment, Window(size, size if own.size == own.slide else own.slide))


def _with_window(experiment: Experiment, window: Window) -> Experiment:
    """The same query over another window, as text of its own dialect."""
    planned = plan_query(experiment)
    windows = tuple(replace(window_, window=window) for window_ in planned.query.windows)
    text = print_query(replace(planned.query, windows=windows), planned.dialect)
    query: dict[str, object] = {"text": text, "static": experiment.query.static, "parameters": {}}
    return varied(experiment, {"query": query})


SPOILT = (Bound.FEEDER, Bound.DELAY)
"""Bounds that other work on the machine can cause: such a probe is tried again."""

DRAIN_MS = 60_000
"""How long a probe may go on after its stream's end, beside ten times the bound on the delay."""


@dataclass(frozen=True, slots=True)
class CapacitySearch:
    """The search for a capacity: axis, range, limits, and how often a probe that came late is tried."""

    axis: CapacityAxis
    reach: SearchRange
    limit: Limit
    tries: int = 2


@dataclass(frozen=True, slots=True)
class Capacity:
    """The load that an engine carries under a semantics, every probe by its value; ``absent``: why there is none."""

    engine: str
    semantics: str
    probes: tuple[LoadProbe, ...] = ()
    passed: float | None = None
    failed: float | None = None
    absent: str = ""

    @property
    def carried(self) -> LoadProbe | None:
        """The probe of the hardest value that passed."""
        return next((probe for probe in self.probes if probe.value == self.passed), None)

    @property
    def beyond(self) -> LoadProbe | None:
        """The probe of the easiest value that did not pass: what bounds the capacity."""
        return next((probe for probe in self.probes if probe.value == self.failed), None)

    @property
    def reached(self) -> bool:
        """Whether the engine's limit was reached: a harder value failed by what the engine did."""
        return not self.doubt and self.beyond is not None and self.beyond.bound in OF_ENGINE

    @property
    def doubt(self) -> str:
        """Why the search gives no figure although a value was carried; empty where it gives one.

        An engine that is slower at a lighter load than at a heavier one is disturbed by something else. The greatest
        such fall is the noise of the search, and a delay over the limit by no more than that says nothing. Example:
        slowest windows of 809, 417 and 1,006 ms at pace 20, 57 and 59 fall by 392 ms, a limit of 1,000 is passed by 6.
        """
        failed = self.beyond
        if self.passed is None or failed is None:
            return ""
        if failed.bound is Bound.SHORT:
            return failed.reason
        by_load = self.probes if failed.value > self.passed else self.probes[::-1]
        heavier = by_load[by_load.index(failed) + 1 :]
        if failed.bound in OF_ENGINE and (fine := next((probe for probe in heavier if probe.in_time), None)):
            return f"{failed.reason}, but at {fine.value:g}, which is harder, it was right and in time"
        noise = _noise([probe.slowest for probe in by_load if probe.slowest is not None])
        if failed.bound is Bound.DELAY and failed.excess < noise:
            return f"{failed.reason}, and easier values were up to {noise:,.0f} ms slower than harder ones"
        return ""


def _noise(delays: Sequence[float]) -> float:
    """The greatest fall from one delay to a later one; 0 where they never fall."""
    worst = fall = 0.0
    for delay in delays:
        worst = max(worst, delay)
        fall = max(fall, worst - delay)
    return fall


def capacities(experiment: Experiment, search: CapacitySearch, doing: ExperimentContext) -> Iterator[Capacity]:
    """The capacity of every engine under each of its semantics, as each is found.

    Every probe is a run folder below ``doing.out`` and not done again; an engine that is not there says so.
    """
    shared = replace(doing, streams=doing.out / "streams")
    all_of = [(part, semantics) for part in experiment.engine for semantics in part.semantics]
    for number, (part, semantics) in enumerate(all_of):
        only = part.model_copy(update={"semantics": (semantics,)})
        try:
            yield _capacity(experiment, only, search, shared.part(number, len(all_of)))
        except EngineError as error:
            yield Capacity(part.name, semantics, absent=str(error))


def with_engines(experiment: Experiment, names: tuple[str, ...]) -> Experiment:
    """The experiment for these engines only; one that it does not name has its own first profile, or the first's."""
    there = {part.name: part for part in reversed(experiment.engine)}
    for name in map(named, names):
        if name not in there:
            own = profiles(load_engine(name)) or experiment.engine[0].semantics
            there[name] = EnginePart(name=name, semantics=own[:1])
    return experiment.model_copy(update={"engine": tuple(there[name] for name in map(named, names))})


def _capacity(experiment: Experiment, part: EnginePart, search_: CapacitySearch, doing: ExperimentContext) -> Capacity:
    alone = experiment.model_copy(update={"engine": (part,)})
    first = at(alone, search_.reach.start, search_)
    query = plan_query(first)
    try:
        plan_runs(first, query)
    except ExperimentError as error:
        return Capacity(part.name, part.semantics[0], absent=str(error))
    probed_values: dict[float, LoadProbe] = {}

    def passes(value: float) -> bool:
        share = len(probed_values) / (len(probed_values) + 6)
        title = f"{part.name} as {part.semantics[0]}, {search_.axis.name} {search_.axis.written(value)}"
        doing.tell(title, share)
        context = replace(doing, tell=lambda what, _share: doing.tell(f"{title}: {what}", share))
        probed_values[value] = _probe(alone, value, search_, context, first=not probed_values)
        return probed_values[value].carried

    bracket = search(passes, search_.reach)
    probes = tuple(probed_values[value] for value in sorted(probed_values))
    return Capacity(part.name, part.semantics[0], probes, bracket.passed, bracket.failed)


def _probe(
    experiment: Experiment, value: float, search: CapacitySearch, doing: ExperimentContext, *, first: bool
) -> LoadProbe:
    """One value tried; one that the harness refuses (a window beyond the memory limit) is not carried."""
    name = f"{search.axis.folder}={search.axis.written(value)}"
    try:
        asked_for = at(experiment, value, search)
        for attempt in range(1, search.tries + 1):
            folder = doing.out / (name if attempt == 1 else f"{name}-again-{attempt}")
            probe = probed(value, tuple(run_experiment(asked_for, replace(doing, out=folder))), search.limit)
            if probe.bound not in SPOILT:
                break
    except ExperimentError as error:
        if first:
            raise
        return LoadProbe(value, bound=Bound.REFUSED, reason=str(error))
    return probe


def at(experiment: Experiment, value: float, search: CapacitySearch) -> Experiment:
    """The experiment of a probe: paced, the axis at ``value``, its stream long enough, its time bounded."""
    paced = experiment if experiment.feed.factor is not None else varied(experiment, {PACE: 1.0})
    long = _long_enough(search.axis.apply(paced, value), search.limit.lasting)
    drain = DRAIN_MS + round(10 * search.limit.delay)
    return varied(long, {"feed.time_limit": min(long.feed.time_limit, _wall(long) + drain)})


def _long_enough(experiment: Experiment, lasting: int) -> Experiment:
    """The workload's duration as a multiple of its own, so that the paced run lasts at least ``lasting`` (wall ms)."""
    own = _duration(experiment)
    if own is None or _wall(experiment) >= lasting:
        return experiment
    times = -(-lasting * (experiment.feed.factor or 1.0) // own)
    return varied(experiment, {"workload.duration": own * int(times), "feed.advance_to": None})


def _duration(experiment: Experiment) -> int | None:
    """How long (ms) a workload's stream is; ``None`` for a recorded one and a workload without that parameter."""
    own = parameters_of(experiment).get("duration")
    return own if isinstance(own, int) and own > 0 else None


def _wall(experiment: Experiment) -> int:
    """How long (wall ms) the paced stream takes; as long as its time limit when that is not known."""
    own = _duration(experiment)
    return experiment.feed.time_limit if own is None else round(own / (experiment.feed.factor or 1.0))
