"""From an experiment to its trials, bad input refused first; and how long they will take, at least.

Example: 6 runs of 30 s of stream in real time, 60,000 triples each: 6 * (1.5 + 30 + 60,000 / 30,000) = 201 s.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from streamgauge.engines import load as load_engine
from streamgauge.harness.trial import PlannedQuery, Trial
from streamgauge.model.mistake import obstacle
from streamgauge.model.query import ContinuousQuery, Window
from streamgauge.oracle.expected.background import BackgroundError, beside
from streamgauge.query import detect, fill, parse
from streamgauge.semantics.profiles import profile
from streamgauge.suites.experiments.experiment import Experiment, ExperimentError, WorkloadPart
from streamgauge.suites.experiments.streams import gives_static, identity
from streamgauge.workloads import load as load_workload
from streamgauge.workloads import query_text


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


def plan_runs(experiment: Experiment, query: PlannedQuery) -> tuple[Trial, ...]:
    """Every run of the experiment in order; ExperimentError with the engine's sentence when one refuses."""
    return tuple(_trials(experiment, query))


def _trials(experiment: Experiment, planned: PlannedQuery) -> Iterator[Trial]:
    for part in experiment.engine:
        engine = load_engine(part.name)
        for name in part.semantics:
            semantics = profile(name)
            if part.time_unit is not None:
                semantics = replace(semantics, time_unit=part.time_unit)
            if experiment.feed.lateness is not None:
                semantics = replace(semantics, lateness=experiment.feed.lateness)
            if reason := engine.refuse(planned.query, semantics):
                raise ExperimentError(f"engine {part.name} refuses this query under {name}: {reason}")
            for seed in experiment.seeds:
                for repetition in range(1, experiment.repetitions + 1):
                    yield Trial(
                        part.name,
                        semantics,
                        planned,
                        workload_fields(experiment.workload, planned.query, seed),
                        seed,
                        repetition,
                        part.options,
                        experiment.feed.factor,
                        gives_static(experiment),
                    )


def workload_fields(part: WorkloadPart, query: ContinuousQuery, seed: int) -> Mapping[str, object]:
    """The fields that tell a workload's stream for a seed from another; a run's header has them."""
    source = part.name or ", ".join(each.address for each in part.sources)
    given = {key: str(value) for key, value in part.parameters.items()}
    return {"name": source, "seed": seed, **given, **identity(part, query)}


BYTES_PER_TRIPLE = 800
"""Bytes that a triple takes inside a window, in the incremental evaluator with its indexes (measured: about 770)."""


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


RUN_S: Final = 1.5
"""An engine's process, a run folder and a verdict with few windows, in s of CPU (measured: 1 to 2)."""

TRIPLES_S: Final = 30_000
"""Triples that are answered, recorded and judged in a second of CPU, where a report is due each second of the stream
(measured with ``live`` as C-SPARQL: 105,000 in 3.3 s). Semantics that report at each change take longer."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """A number of runs of a stream of ``span`` ms and ``triples``, fed at ``factor`` of real time (``None``: fast)."""

    runs: int
    span: int
    triples: int
    factor: float | None

    @property
    def feed_seconds(self) -> float:
        """How long one run is fed, s; 0 as fast as possible, where the work itself is what takes time."""
        return 0.0 if self.factor is None else self.span / 1000 / self.factor

    @property
    def seconds(self) -> float:
        """All runs, one after the other, s."""
        return self.runs * (RUN_S + self.feed_seconds + self.triples / TRIPLES_S)
