"""Sustainable load: the hardest value of an axis at which an engine is right, in time, and fed on schedule.

An axis is varied in the experiment: the load, the window's size or slide, the time unit.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamgauge.engines import EngineError, named, profiles
from streamgauge.engines import load as load_engine
from streamgauge.model.query import Window
from streamgauge.query import print_query
from streamgauge.semantics.profiles import profile
from streamgauge.suites.experiments.capacity_search import Bound, Harder, Limit, LoadProbe, SearchRange, probed, search
from streamgauge.suites.experiments.experiment import EnginePart, Experiment, ExperimentError
from streamgauge.suites.experiments.plan import plan_query, plan_runs
from streamgauge.suites.experiments.runner import ExperimentContext, run_experiment
from streamgauge.workloads import load as load_workload
from streamgauge.workloads import parameters as check_parameters

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
        """Its name and unit, as a column or an axis is headed."""
        return f"{self.name}, {self.unit}" if self.unit else self.name

    @property
    def folder(self) -> str:
        """Its name in folders and files."""
        return self.name.replace(" ", "-")

    def written(self, value: float) -> str:
        """A value as a folder and a table have it."""
        return f"{value:.0f}" if self.whole else f"{value:g}"


def axis(name: str, experiment: Experiment, load: str = PACE) -> CapacityAxis:
    """The axis of that name; ``load`` is the key that is the load. ExperimentError says what cannot be varied."""
    if name == "window":
        return CapacityAxis("window", "ms", _window(experiment).size, Harder.SMALLER, True, _sized)
    if name == "slide":
        return CapacityAxis("slide", "ms", _window(experiment).slide, Harder.SMALLER, True, _slid)
    if name == "time-unit":
        unit = max(profile(each).time_unit for part in experiment.engine for each in part.semantics)
        return CapacityAxis("time unit", "ms", max(2, unit), Harder.SMALLER, True, _with_unit)
    if name != "load":
        raise ExperimentError(f"--axis {name}: choose from {', '.join(AXES)}")
    if load == PACE:
        pace = experiment.feed.factor or 1.0
        return CapacityAxis("pace", "times real time", pace, Harder.GREATER, False, _paced)
    return _parameter(experiment, load)


def _parameter(experiment: Experiment, load: str) -> CapacityAxis:
    """A whole-number parameter of the workload or the query as the load."""
    table, _, name = load.rpartition(".")
    if table not in {"workload", "query.parameters"} or not name:
        raise ExperimentError(f"--load {load}: name {PACE}, workload.NAME or query.parameters.NAME")
    given: Mapping[str, Any] = experiment.query.parameters
    if table == "workload":
        if experiment.workload.name is None:
            raise ExperimentError(f"--load {load}: a recorded stream has no parameters: the load is {PACE}")
        given = check_parameters(load_workload(experiment.workload.name), experiment.workload.parameters)
    value = given.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ExperimentError(f"--load {load}: its value is {value!r}: a load is a whole number of at least 1")

    def set_to(at: Experiment, to: float) -> Experiment:
        return varied(at, {load: int(to)})

    return CapacityAxis(name, "", value, Harder.GREATER, True, set_to)


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


def _paced(experiment: Experiment, value: float) -> Experiment:
    return varied(experiment, {PACE: value})


def _with_unit(experiment: Experiment, value: float) -> Experiment:
    parts = [{**part.model_dump(), "time_unit": int(value)} for part in experiment.engine]
    return varied(experiment, {"engine": parts})


def _window(experiment: Experiment) -> Window:
    """The one window of the query, measured in time."""
    windows = plan_query(experiment).query.windows
    if len(windows) != 1 or windows[0].window.kind != "time":
        raise ExperimentError("--axis window and --axis slide vary the one time-based window of a query: it has none")
    return windows[0].window


def _sized(experiment: Experiment, value: float) -> Experiment:
    """A tumbling window stays tumbling, a sliding one keeps its slide."""
    own = _window(experiment)
    size = int(value)
    return _with_window(experiment, Window(size, size if own.size == own.slide else own.slide))


def _slid(experiment: Experiment, value: float) -> Experiment:
    return _with_window(experiment, Window(_window(experiment).size, int(value)))


def _with_window(experiment: Experiment, window: Window) -> Experiment:
    """The same query over another window, as text of its own dialect."""
    planned = plan_query(experiment)
    windows = tuple(replace(each, window=window) for each in planned.query.windows)
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
    """The load that an engine carries under a semantics: every probe by its value; ``absent`` says why there is none:
    the engine is not there, or refuses the query.
    """

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
        return self.beyond is not None and self.beyond.bound is not None and self.beyond.bound.of_engine


def capacities(experiment: Experiment, asked: CapacitySearch, doing: ExperimentContext) -> Iterator[Capacity]:
    """The capacity of every engine under each of its semantics, as each is found.

    Every probe is a run folder below ``doing.out`` and not done again; an engine that is not there says so.
    """
    shared = replace(doing, streams=doing.out / "streams")
    all_of = [(part, semantics) for part in experiment.engine for semantics in part.semantics]
    for number, (part, semantics) in enumerate(all_of):
        only = part.model_copy(update={"semantics": (semantics,)})
        try:
            yield _capacity(experiment, only, asked, _part_of(shared, number, len(all_of)))
        except EngineError as error:
            yield Capacity(part.name, semantics, absent=str(error))


def _part_of(doing: ExperimentContext, number: int, of: int) -> ExperimentContext:
    """The same, whose shares are those of one of ``of`` equal parts."""
    return replace(doing, tell=lambda what, share: doing.tell(what, (number + share) / of))


def with_engines(experiment: Experiment, names: tuple[str, ...]) -> Experiment:
    """The experiment for these engines only; one that it does not name has its own first profile, or the first's."""
    parts = tuple(
        next((part for part in experiment.engine if part.name == name), _added(experiment, name))
        for name in map(named, names)
    )
    return experiment.model_copy(update={"engine": parts})


def _added(experiment: Experiment, name: str) -> EnginePart:
    own = profiles(load_engine(name))
    return EnginePart(name=name, semantics=own[:1] if own else experiment.engine[0].semantics[:1])


def _capacity(experiment: Experiment, part: EnginePart, asked: CapacitySearch, doing: ExperimentContext) -> Capacity:
    alone = experiment.model_copy(update={"engine": (part,)})
    first = at(alone, asked.reach.start, asked)
    query = plan_query(first)
    try:
        plan_runs(first, query)
    except ExperimentError as error:
        return Capacity(part.name, part.semantics[0], absent=str(error))
    found: dict[float, LoadProbe] = {}

    def passes(value: float) -> bool:
        share = len(found) / (len(found) + 6)
        title = f"{part.name} as {part.semantics[0]}, {asked.axis.name} {asked.axis.written(value)}"
        found[value] = _probe(alone, value, asked, _told(doing, title, share), first=not found)
        return found[value].carried

    bracket = search(passes, asked.reach)
    probes = tuple(found[value] for value in sorted(found))
    return Capacity(part.name, part.semantics[0], probes, bracket.passed, bracket.failed)


def _told(doing: ExperimentContext, title: str, share: float) -> ExperimentContext:
    """The same, told under a title."""
    doing.tell(title, share)
    return replace(doing, tell=lambda what, _share: doing.tell(f"{title}: {what}", share))


def _probe(
    experiment: Experiment, value: float, asked: CapacitySearch, doing: ExperimentContext, *, first: bool
) -> LoadProbe:
    """One value tried; one that the harness refuses (a window beyond the memory limit) is not carried."""
    name = f"{asked.axis.folder}={asked.axis.written(value)}"
    try:
        asked_for = at(experiment, value, asked)
        for attempt in range(1, asked.tries + 1):
            folder = doing.out / (name if attempt == 1 else f"{name}-again-{attempt}")
            probe = probed(value, tuple(run_experiment(asked_for, replace(doing, out=folder))), asked.limit)
            if probe.bound not in SPOILT:
                break
    except ExperimentError as error:
        if first:
            raise
        return LoadProbe(value, bound=Bound.REFUSED, reason=str(error))
    return probe


def at(experiment: Experiment, value: float, asked: CapacitySearch) -> Experiment:
    """The experiment of a probe: paced, the axis at ``value``, its stream long enough, its time bounded."""
    paced = experiment if experiment.feed.factor is not None else varied(experiment, {PACE: 1.0})
    long = _long_enough(asked.axis.apply(paced, value), asked.limit.lasting)
    drain = DRAIN_MS + round(10 * asked.limit.delay)
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
    if experiment.workload.name is None:
        return None
    given = check_parameters(load_workload(experiment.workload.name), experiment.workload.parameters)
    own = given.get("duration")
    return own if isinstance(own, int) and own > 0 else None


def _wall(experiment: Experiment) -> int:
    """How long (wall ms) the paced stream takes; as long as its time limit when that is not known."""
    own = _duration(experiment)
    return experiment.feed.time_limit if own is None else round(own / (experiment.feed.factor or 1.0))
