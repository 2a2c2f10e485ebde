"""Sustainable load: the hardest value of an axis at which an engine is right, in time, and fed on schedule."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from streamgauge.engines import EngineError, named, profiles
from streamgauge.engines import load as load_engine
from streamgauge.suites.experiments.capacity_axes import PACE, Axis, varied
from streamgauge.suites.experiments.capacity_probe import Bound, Limit, Probe, probed
from streamgauge.suites.experiments.capacity_search import Reach, search
from streamgauge.suites.experiments.experiment import EnginePart, Experiment, ExperimentError
from streamgauge.suites.experiments.plan import plan_query, plan_runs
from streamgauge.suites.experiments.running import Doing, run_experiment
from streamgauge.workloads import load as load_workload
from streamgauge.workloads import parameters as check_parameters

SPOILT = (Bound.FEEDER, Bound.DELAY)
"""What other work on the machine can cause: such a probe is tried again."""

DRAIN_MS = 60_000
"""How long a probe may go on after its stream's end, beside ten times the bound on the delay."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is sought: the axis, where to look on it, the limits, and how often a probe that came late is tried."""

    axis: Axis
    reach: Reach
    limit: Limit
    tries: int = 2


@dataclass(frozen=True, slots=True)
class Capacity:
    """What an engine carries under a semantics: every probe by its value; ``absent`` says why there is none:
    the engine is not there, or refuses the query.
    """

    engine: str
    semantics: str
    probes: tuple[Probe, ...] = ()
    passed: float | None = None
    failed: float | None = None
    absent: str = ""

    @property
    def carried(self) -> Probe | None:
        """The probe of the hardest value that passed."""
        return next((probe for probe in self.probes if probe.value == self.passed), None)

    @property
    def beyond(self) -> Probe | None:
        """The probe of the easiest value that did not pass: what bounds the capacity."""
        return next((probe for probe in self.probes if probe.value == self.failed), None)

    @property
    def reached(self) -> bool:
        """Whether the engine's limit was reached: a harder value failed by what the engine did."""
        return self.beyond is not None and self.beyond.bound is not None and self.beyond.bound.of_engine


def capacities(experiment: Experiment, asked: Asked, doing: Doing) -> Iterator[Capacity]:
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


def _part_of(doing: Doing, number: int, of: int) -> Doing:
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


def _capacity(experiment: Experiment, part: EnginePart, asked: Asked, doing: Doing) -> Capacity:
    alone = experiment.model_copy(update={"engine": (part,)})
    first = at(alone, asked.reach.start, asked)
    query = plan_query(first).query
    try:
        plan_runs(first, query)
    except ExperimentError as error:
        return Capacity(part.name, part.semantics[0], absent=str(error))
    found: dict[float, Probe] = {}

    def passes(value: float) -> bool:
        share = len(found) / (len(found) + 6)
        title = f"{part.name} as {part.semantics[0]}, {asked.axis.name} {asked.axis.written(value)}"
        found[value] = _probe(alone, value, asked, _told(doing, title, share), first=not found)
        return found[value].carried

    bracket = search(passes, asked.reach)
    probes = tuple(found[value] for value in sorted(found))
    return Capacity(part.name, part.semantics[0], probes, bracket.passed, bracket.failed)


def _told(doing: Doing, title: str, share: float) -> Doing:
    """The same, told under a title."""
    doing.tell(title, share)
    return replace(doing, tell=lambda what, _share: doing.tell(f"{title}: {what}", share))


def _probe(experiment: Experiment, value: float, asked: Asked, doing: Doing, *, first: bool) -> Probe:
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
        return Probe(value, bound=Bound.REFUSED, reason=str(error))
    return probe


def at(experiment: Experiment, value: float, asked: Asked) -> Experiment:
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
