"""From an experiment to its runs: streams, queries and engines made concrete, bad input refused first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamgauge.engines import load as load_engine
from streamgauge.model.obstacles import obstacle
from streamgauge.model.query import ContinuousQuery, Window
from streamgauge.model.semantics import Semantics
from streamgauge.oracle.expected.background import BackgroundError, beside
from streamgauge.query import detect, fill, parse
from streamgauge.semantics.profiles import profile
from streamgauge.suites.experiments.experiment import Experiment, ExperimentError
from streamgauge.suites.experiments.static import gives_static
from streamgauge.workloads import load as load_workload
from streamgauge.workloads import query_text


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run to do: engine with its own options, semantics, seed and repetition; ``key`` names its folder."""

    engine: str
    semantics: Semantics
    seed: int
    repetition: int
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A folder name that is the same whenever the run is."""
        own = "".join(f"-{name}={value}" for name, value in sorted(self.options.items()))
        return f"{self.engine}{own}-{self.semantics.name}-seed{self.seed}-{self.repetition}".replace("/", "_")


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """The query as text in its dialect and parsed."""

    text: str
    dialect: str
    query: ContinuousQuery


def plan_query(experiment: Experiment) -> PlannedQuery:
    """The experiment's query with its parameters filled in and its static data read."""
    part = experiment.query
    if part.name is not None:
        if experiment.workload.name is None:
            raise ExperimentError(
                "query.name: a recorded stream has no queries of its own: give query.file or query.text"
            )
        template = query_text(load_workload(experiment.workload.name), part.name)
    elif part.file is not None:
        template = read_text(part.file)
    else:
        template = part.text or ""
    text = fill(template, {key: str(value) for key, value in part.parameters.items()})
    own = gives_static(experiment)
    if own and part.static is not None:
        raise ExperimentError(
            f"query.static: workload {experiment.workload.name} has its own static data: give one of them"
        )
    try:
        query = parse(text) if own else beside(parse(text), part.static)
    except BackgroundError as error:
        raise ExperimentError(f"query.static: {error}") from error
    return PlannedQuery(text, detect(text), query)


def read_text(path: Path) -> str:
    """A file's text; ExperimentError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: cannot be read: {obstacle(error)}") from error


def plan_runs(experiment: Experiment, query: ContinuousQuery) -> tuple[PlannedRun, ...]:
    """Every run of the experiment in order; ExperimentError with the engine's sentence when one refuses."""
    return tuple(_runs(experiment, query))


def _runs(experiment: Experiment, query: ContinuousQuery) -> Iterator[PlannedRun]:
    for part in experiment.engine:
        engine = load_engine(part.name)
        for name in part.semantics:
            semantics = profile(name)
            if part.time_unit is not None:
                semantics = replace(semantics, time_unit=part.time_unit)
            if experiment.feed.lateness is not None:
                semantics = replace(semantics, lateness=experiment.feed.lateness)
            if reason := engine.refuse(query, semantics):
                raise ExperimentError(f"engine {part.name} refuses this query under {name}: {reason}")
            for seed in experiment.seeds:
                for repetition in range(1, experiment.repetitions + 1):
                    yield PlannedRun(part.name, semantics, seed, repetition, part.options)


BYTES_PER_TRIPLE = 800
"""What a triple costs inside a window, in the incremental evaluator with its indexes (measured: about 770)."""


def refuse_window(query: ContinuousQuery, triples: int, span: int, limit_mb: int) -> None:
    """Refuse windows whose estimated content (triples over ``span`` ms) exceeds the memory limit."""
    held = sum(_held(each.window, triples, span) for each in query.windows)
    needed = held * BYTES_PER_TRIPLE / 1e6
    if needed > limit_mb:
        sizes = " and ".join(_size(each.window) for each in query.windows)
        raise ExperimentError(
            f"{sizes} would hold about {held:,.0f} triples, {needed:,.0f} MB: more than "
            f"memory_limit_mb = {limit_mb}; take a smaller window or raise memory_limit_mb"
        )


def _held(window: Window, triples: int, span: int) -> float:
    """About how many triples a window holds at most, of a stream with so many over ``span`` ms."""
    if window.kind == "count":
        return min(triples, window.size)
    return triples * (1.0 if window.kind == "landmark" else min(1.0, window.size / max(1, span)))


def _size(window: Window) -> str:
    if window.kind == "landmark":
        return "a landmark window"
    return f"a window of {window.size} {'triples' if window.kind == 'count' else 'ms'}"
