"""Sustainable load: the hardest value of an axis at which an engine is right, in time, and fed on schedule.

The axis is the load, the window's size or slide, or the time unit; a probe, which is a paced run, scores each value
that the search tries.
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
from streamgauge.suites.experiments.variants import put


class Bound(StrEnum):
    """Why an engine does not sustain a load."""

    WRONG = "wrong windows"
    DELAY = "delay"
    FEEDER = "the feeder"
    FAILED = "the engine failed"
    UNKNOWN = "no verdict"
    SHORT = "stream too short"
    REFUSED = "not tried"


OF_ENGINE = frozenset({Bound.WRONG, Bound.DELAY, Bound.FAILED})
"""Bounds that are the engine's own failure; after the others it might sustain more."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Limits of a run: the 99th percentile (ms) of the delays in every window, and of the feeder's lateness.

    A paced run shorter than ``lasting`` (wall ms) proves nothing, because any engine can buffer it.
    """

    delay: float
    feeder: float
    lasting: int = 10_000


@dataclass(frozen=True, slots=True)
class LoadProbe:
    """The score of one value: triples per second of wall time, windows, right windows, delays and lateness in ms.

    ``slowest`` is the greatest 99th percentile of the delays within a window; ``bound`` is ``None`` if the value is
    sustained, otherwise ``reason`` is a sentence.
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
        """Whether the value is sustained, or failed only because the stream was too short."""
        return self.carried or (self.bound is Bound.SHORT and self.excess <= 0)

    @property
    def carried(self) -> bool:
        """Whether every window was right, the delay bounded and the feeder on schedule."""
        return self.bound is None


def probed(value: float, runs: Sequence[tuple[Path, Run, Verdict]], limit: Limit) -> LoadProbe:
    """The score of a value from all its runs, each of which must sustain it."""
    windows = [window for _, _, verdict in runs for window in verdict.windows]
    delays = [window.delay for window in windows if window.delay is not None]
    failed = (failure for _, run, verdict in runs if (failure := _failed(run, verdict, limit)) is not None)
    bound, reason = next(failed, (None, ""))
    slow = max((slowest(run.header.query, verdict.windows) for _, run, verdict in runs), default=0.0)
    return LoadProbe(
        value=value,
        # The least of all runs, and the worst of each other figure: a value counts as sustained only if every run
        # sustained it.
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
    """The gravest bound that the run exceeds: failure, no verdict, wrong windows, short stream, feeder, delay."""
    late, slow = feeder_p99(run), slowest(run.header.query, verdict.windows)
    wrong = sum(not window.right for window in verdict.windows)
    if run.header.failure is not None:
        return Bound.FAILED, run.header.failure
    if verdict.judgement is Judgement.UNKNOWN:
        return Bound.UNKNOWN, verdict.reason
    if wrong:
        return Bound.WRONG, f"{wrong:,} of {len(verdict.windows):,} windows or reports are wrong"
    if (lasted := lasting(run)) < limit.lasting:
        return Bound.SHORT, f"at this pace the stream lasts {lasted:,.0f} ms, but needs {limit.lasting:,}: lengthen it"
    if late > limit.feeder:
        return (
            Bound.FEEDER,
            f"the harness fed {late:,.0f} ms late (99th percentile), {limit.feeder:,.0f} allowed",
        )
    if slow > limit.delay:
        return Bound.DELAY, f"a window's answers were {slow:,.0f} ms late (99th percentile), {limit.delay:,.0f} allowed"
    return None


def slowest(query: ContinuousQuery, windows: Iterable[WindowVerdict]) -> float:
    """The greatest 99th percentile (ms) of delays among the reports of one slide; 0 without delays."""
    slide = min((window.window.slide for window in query.windows if window.window.kind != "count"), default=1)
    delays: dict[int, list[float]] = {}
    for window in windows:
        if window.delay is not None:
            # By slide, so that a short overload is not hidden among the many windows of a long run.
            delays.setdefault((window.instant or 0) // slide, []).append(window.delay)
    return max((percentile(values, 99) or 0.0 for values in delays.values()), default=0.0)


def feeder_p99(run: Run) -> float:
    """99th percentile (ms) of the time between planned and actual feeding."""
    return percentile([(fed.handed - fed.planned) / 1e6 for fed in run.fed if fed.sequence != ADVANCE], 99) or 0.0


def lasting(run: Run) -> float:
    """The duration of the run's stream at its pace, wall ms."""
    return (run.header.advanced_to - run.header.begin) / (run.header.factor or 1.0)


def rate(run: Run) -> float:
    """Planned triples per second of wall time."""
    return sum(fed.size for fed in run.fed) * 1000 / max(1.0, lasting(run))


PACE = "feed.pace"
AXES = ("load", "window", "slide", "time-unit")


@dataclass(frozen=True, slots=True)
class CapacityAxis:
    """An axis to vary: name, unit, start value, direction of difficulty, and how to apply a value."""

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
    """The axis of a name; ``load`` is the key that axis ``load`` varies. ExperimentError if it cannot be varied."""
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
        raise ExperimentError(f"--load {load}: its value is {value!r}, but a load is a whole number of at least 1")
    return CapacityAxis(name, "", value, Harder.GREATER, True, lambda at, to: varied(at, {load: int(to)}))


def varied(experiment: Experiment, values: Mapping[str, object]) -> Experiment:
    """The experiment with other values at these keys (``workload.stations``), validated again."""
    data = experiment.model_dump()
    for key, value in values.items():
        put(data, key, value)
    return Experiment.model_validate(data)


def _with_unit(experiment: Experiment, value: float) -> Experiment:
    parts = [{**part.model_dump(), "time_unit": int(value)} for part in experiment.engine]
    return varied(experiment, {"engine": parts})


def _window(experiment: Experiment) -> Window:
    """The query's only window, which must be time-based; ExperimentError."""
    windows = plan_query(experiment).query.windows
    if len(windows) != 1 or windows[0].window.kind != "time":
        raise ExperimentError("--axis window and --axis slide need a query with exactly one window, a time-based one")
    return windows[0].window


def _sized(experiment: Experiment, value: float) -> Experiment:
    """Set the window's size; a tumbling window stays tumbling, a sliding one keeps its slide."""
    own = _window(experiment)
    size = int(value)
    return _with_window(experiment, Window(size, size if own.size == own.slide else own.slide))


def _with_window(experiment: Experiment, window: Window) -> Experiment:
    """The experiment with another window, written into its query in the query's own dialect."""
    planned = plan_query(experiment)
    windows = tuple(replace(window_, window=window) for window_ in planned.query.windows)
    text = print_query(replace(planned.query, windows=windows), planned.dialect)
    # The text has its parameters filled in already.
    query: dict[str, object] = {"text": text, "static": experiment.query.static, "parameters": {}}
    return varied(experiment, {"query": query})


SPOILT = (Bound.FEEDER, Bound.DELAY)
"""Bounds that other work on the machine can cause; such a probe is repeated."""

DRAIN_MS = 60_000
"""How long (ms) a probe may continue after its stream's end, on top of ten times the delay limit."""


@dataclass(frozen=True, slots=True)
class CapacitySearch:
    """The search for a capacity: axis, range, limits, and attempts at a probe that was late."""

    axis: CapacityAxis
    reach: SearchRange
    limit: Limit
    tries: int = 2


@dataclass(frozen=True, slots=True)
class Capacity:
    """The load that an engine sustains under a semantics, with all probes; ``absent`` is why it could not be tried."""

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
        """The probe of the easiest value that did not pass, which bounds the capacity."""
        return next((probe for probe in self.probes if probe.value == self.failed), None)

    @property
    def reached(self) -> bool:
        """Whether the engine's limit was reached: a harder value failed, by the engine's own fault."""
        return not self.doubt and self.beyond is not None and self.beyond.bound in OF_ENGINE

    @property
    def doubt(self) -> str:
        """Why the search gives no figure although a value passed; empty if it gives one.

        An engine that is slower at a lighter load than at a heavier one was disturbed by something else. The greatest
        such drop is the noise of the search, and a delay that exceeds the limit by less proves nothing. Example: the
        slowest windows at pace 20, 57 and 59 took 809, 417 and 1,006 ms. They drop by 392 ms, and 1,006 exceeds a
        limit of 1,000 by only 6, so the search is in doubt.
        """
        failed = self.beyond
        if self.passed is None or failed is None:
            return ""
        if failed.bound is Bound.SHORT:
            return failed.reason
        # Easiest first: on some axes, such as the window's size, smaller values are harder.
        by_load = self.probes if failed.value > self.passed else self.probes[::-1]
        heavier = by_load[by_load.index(failed) + 1 :]
        if failed.bound in OF_ENGINE and (fine := next((probe for probe in heavier if probe.in_time), None)):
            return f"{failed.reason}, but at the harder {fine.value:g} it was right and in time"
        noise = _noise([probe.slowest for probe in by_load if probe.slowest is not None])
        if failed.bound is Bound.DELAY and failed.excess < noise:
            return f"{failed.reason}, and easier values were up to {noise:,.0f} ms slower than harder ones"
        return ""


def _noise(delays: Sequence[float]) -> float:
    """The greatest drop from a delay to a later one; 0 if they never drop."""
    worst = fall = 0.0
    for delay in delays:
        worst = max(worst, delay)
        fall = max(fall, worst - delay)
    return fall


def capacities(experiment: Experiment, search: CapacitySearch, context: ExperimentContext) -> Iterator[Capacity]:
    """The capacity of every engine under each of its semantics, as soon as it is known.

    Every probe is a run folder below ``context.out`` and is not repeated; ``absent`` explains an unavailable engine.
    """
    shared = replace(context, streams=context.out / "streams")
    all_of = [(part, semantics) for part in experiment.engine for semantics in part.semantics]
    for number, (part, semantics) in enumerate(all_of):
        only = part.model_copy(update={"semantics": (semantics,)})
        try:
            yield _capacity(experiment, only, search, shared.part(number, len(all_of)))
        except EngineError as error:
            yield Capacity(part.name, semantics, absent=str(error))


def with_engines(experiment: Experiment, names: tuple[str, ...]) -> Experiment:
    """The experiment for these engines only; new ones get their own first profile, else that of the first engine."""
    # Reversed, so that of several entries of an engine the first one counts.
    parts = {part.name: part for part in reversed(experiment.engine)}
    for name in map(named, names):
        if name not in parts:
            own = profiles(load_engine(name)) or experiment.engine[0].semantics
            parts[name] = EnginePart(name=name, semantics=own[:1])
    return experiment.model_copy(update={"engine": tuple(parts[name] for name in map(named, names))})


def _capacity(
    experiment: Experiment, part: EnginePart, search_: CapacitySearch, context: ExperimentContext
) -> Capacity:
    alone = experiment.model_copy(update={"engine": (part,)})
    first = at(alone, search_.reach.start, search_)
    query = plan_query(first)
    try:
        plan_runs(first, query)
    except ExperimentError as error:
        return Capacity(part.name, part.semantics[0], absent=str(error))
    probed_values: dict[float, LoadProbe] = {}

    def passes(value: float) -> bool:
        # How many values the search will try is unknown: the share approaches 1, slower with each.
        share = len(probed_values) / (len(probed_values) + 6)
        title = f"{part.name} as {part.semantics[0]}, {search_.axis.name} {search_.axis.written(value)}"
        context.tell(title, share)
        titled = replace(context, tell=lambda what, _share: context.tell(f"{title}: {what}", share))
        probed_values[value] = _probe(alone, value, search_, titled, first=not probed_values)
        return probed_values[value].carried

    bracket = search(passes, search_.reach)
    probes = tuple(probed_values[value] for value in sorted(probed_values))
    return Capacity(part.name, part.semantics[0], probes, bracket.passed, bracket.failed)


def _probe(
    experiment: Experiment, value: float, search: CapacitySearch, context: ExperimentContext, *, first: bool
) -> LoadProbe:
    """Probe one value; a value that the harness refuses, as a window beyond the memory limit, does not pass."""
    name = f"{search.axis.folder}={search.axis.written(value)}"
    try:
        paced = at(experiment, value, search)
        for attempt in range(1, search.tries + 1):
            folder = context.out / (name if attempt == 1 else f"{name}-again-{attempt}")
            probe = probed(value, tuple(run_experiment(paced, replace(context, out=folder))), search.limit)
            if probe.bound not in SPOILT:
                break
    except ExperimentError as error:
        if first:
            raise
        # The first value is the user's own, and its refusal is an error; a later one only ends the search in that
        # direction.
        return LoadProbe(value, bound=Bound.REFUSED, reason=str(error))
    return probe


def at(experiment: Experiment, value: float, search: CapacitySearch) -> Experiment:
    """The experiment of a probe: paced, the axis at ``value``, its stream long enough, its time bounded."""
    # Unpaced, every load is sustained: the engine takes its time, and the feeder waits.
    paced = experiment if experiment.feed.factor is not None else varied(experiment, {PACE: 1.0})
    long = _long_enough(search.axis.apply(paced, value), search.limit.lasting)
    drain = DRAIN_MS + round(10 * search.limit.delay)
    return varied(long, {"feed.time_limit": min(long.feed.time_limit, _wall(long) + drain)})


def _long_enough(experiment: Experiment, lasting: int) -> Experiment:
    """Multiply the workload's duration so that the paced run lasts at least ``lasting`` (wall ms)."""
    own = _duration(experiment)
    if own is None or _wall(experiment) >= lasting:
        return experiment
    # Rounded up. Worked example: 60 s of stream at 20 times real time last 3 s; for 10 s, 200 s are needed, 4 times 60
    # s.
    times = -(-lasting * (experiment.feed.factor or 1.0) // own)
    return varied(experiment, {"workload.duration": own * int(times), "feed.advance_to": None})


def _duration(experiment: Experiment) -> int | None:
    """The duration (ms) of a workload's stream; ``None`` for a recorded one and a workload without that parameter."""
    own = parameters_of(experiment).get("duration")
    return own if isinstance(own, int) and own > 0 else None


def _wall(experiment: Experiment) -> int:
    """The duration of the paced stream (wall ms); its time limit if unknown."""
    own = _duration(experiment)
    return experiment.feed.time_limit if own is None else round(own / (experiment.feed.factor or 1.0))
