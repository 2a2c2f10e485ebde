"""Doing an experiment: streams made once, each run recorded, judged and kept; finished runs are not done again."""

import gc
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.engines import dialect, evaluator
from streamgauge.engines import load as load_engine
from streamgauge.formats.making import keep_first, making, put, share
from streamgauge.formats.run import RunError, read_run, write_run
from streamgauge.formats.stream import files
from streamgauge.formats.streams.format import Note, logged
from streamgauge.formats.verdict import read_verdict, write_verdict
from streamgauge.formats.written import read_written
from streamgauge.harness.record import Limits, program, record, task_of
from streamgauge.harness.surroundings import machine, versions
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.verdict import Verdict
from streamgauge.oracle.judging.judge import Means, judge_run, other_stream
from streamgauge.query import parse
from streamgauge.semantics.beginning import near
from streamgauge.semantics.due import refuse_clock
from streamgauge.semantics.order import origins
from streamgauge.semantics.refusal import RefusedError
from streamgauge.suites.experiments.estimate import RunEstimate
from streamgauge.suites.experiments.experiment import Experiment, ExperimentError
from streamgauge.suites.experiments.plan import PlannedQuery, PlannedRun, plan_query, plan_runs, refuse_window
from streamgauge.suites.experiments.recorded import ADVANCED, identity, refuse_streams, write_recorded
from streamgauge.suites.experiments.static import as_taken, gives_static, static_data
from streamgauge.workloads import load as load_workload
from streamgauge.workloads import parameters as check_parameters
from streamgauge.workloads.tables import Maker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = "stream"
"""The folder of the stream table inside a run folder."""

Tell = Callable[[str, float], None]
"""Told what is being done and how far it is, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What doing an experiment may use: where to write, how to get Spark, whom to tell, whether to do runs again.

    ``streams`` is where stream tables are kept, ``out/streams`` unless several experiments share them. ``on_spark``:
    streams are made on Spark whatever their size. ``note`` hears what was taken for granted when files were read,
    ``foretell`` before the first run how long all that are to be done will take.
    """

    out: Path
    spark: "Callable[[], SparkSession]"
    tell: Tell = lambda _what, _share: None
    again: bool = False
    streams: Path | None = None
    on_spark: bool = False
    note: Note = logged
    foretell: Callable[[RunEstimate], object] = lambda _estimate: None

    @property
    def tables(self) -> Maker:
        """What makes the tables of workloads."""
        return Maker(self.spark, self.on_spark)


def run_experiment(experiment: Experiment, doing: Doing) -> Iterator[tuple[Path, Run, Verdict]]:
    """Every run of the experiment with its folder and verdict, as each is finished."""
    planned = plan_query(experiment)
    runs = plan_runs(experiment, planned.query)
    refuse_streams(experiment.workload, planned.query)
    foretold = False
    for number, plan in enumerate(runs):
        doing.tell(f"{plan.key}, run {number + 1} of {len(runs)}", number / len(runs))
        folder = doing.out / plan.key
        if not doing.again and (kept := finished(folder)) is not None:
            refuse_other(folder, kept[0].header, experiment, planned, plan)
            yield folder, *kept
            continue
        stream, facts = _stream(experiment, planned, plan.seed, doing)
        refuse_window(planned.query, facts.triples, facts.span, experiment.memory_limit_mb)
        if not foretold:
            doing.foretell(_estimate(experiment, runs[number:], facts, doing))
            foretold = True
        given = _beside_static(experiment, planned, plan, stream, doing)
        begun = replace(plan, semantics=near(planned.query.windows, plan.semantics, facts.first))
        yield folder, *_do(experiment, given, begun, stream, facts, doing)
    doing.tell("done", 1.0)


def finished(folder: Path) -> tuple[Run, Verdict] | None:
    """A run that was done and judged before; ``None`` when there is none or it is not whole."""
    try:
        return read_run(folder, parse), read_verdict(folder)
    except (RunError, OSError):
        return None


def refuse_other(
    folder: Path, kept: RunHeader, experiment: Experiment, planned: PlannedQuery, plan: PlannedRun
) -> None:
    """Refuse to take a kept run for another experiment's; ExperimentError names the folder and what differs."""
    before = {name: value for name, value in kept.workload.items() if name != "triples"}
    now = dict(_source(experiment, planned, plan.seed))
    if "content" not in before:  # recorded before files were told apart by what is in them
        now.pop("content", None)
    same = {
        "workload": before == now,
        "query": kept.query_text == planned.text
        and (gives_static(experiment) or kept.query.static == planned.query.static),
        "semantics": replace(kept.semantics, t0=plan.semantics.t0) == plan.semantics,
        "engine.options": dict(kept.options) == dict(plan.options),
        "feed.pace": kept.factor == experiment.feed.factor,
    }
    other = ", ".join(name for name, equal in same.items() if not equal)
    if other:
        raise ExperimentError(
            f"{folder}: a run with another {other} is kept there: give --out another folder, or --again to replace it"
        )


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """How many triples a stream has, the first and last application time, and how far its time came (ms)."""

    triples: int
    first: int
    last: int
    advanced_to: int

    @property
    def span(self) -> int:
        """From the first to the last element, ms, at least 1."""
        return max(1, self.last - self.first + 1)


def stream_facts(stream: Path, name: str | None = None) -> StreamFacts:
    """The facts of a stream table on disk; ExperimentError, with its ``name``, for one without triples."""
    columns = [pq.read_table(file, columns=["time"])["time"] for file in files(stream)]
    bounds = [pc.min_max(column).as_py() for column in columns if len(column)]
    if not bounds:
        raise ExperimentError(f"{name or stream}: the stream has no triples: nothing can be answered on it")
    last = max(bound["max"] for bound in bounds)
    said = stream / ADVANCED
    until = int(said.read_text("ascii")) if stream.is_dir() and said.is_file() else last
    return StreamFacts(sum(map(len, columns)), min(bound["min"] for bound in bounds), last, max(last, until))


def _stream(experiment: Experiment, planned: PlannedQuery, seed: int, doing: Doing) -> tuple[Path, StreamFacts]:
    """The stream table of the experiment's workload for a seed, made unless it is there; RefusedError for another's."""
    workload = experiment.workload
    source = {"name": workload.name, "file": str(workload.file), "seed": seed, **workload.parameters}
    source |= identity(workload, planned.query)
    digest = hashlib.sha256(json.dumps(source, sort_keys=True, default=str).encode()).hexdigest()[:16]
    path = (doing.streams or doing.out / "streams") / digest
    if not path.is_dir():
        doing.tell(f"making the stream, seed {seed}", 0.0)
        with making(path) as place:
            _make_stream(experiment, planned, seed, place, doing)
            keep_first(place, path)
    if reason := other_stream(path, planned.query):
        raise RefusedError(reason)
    return path, stream_facts(path)


def _make_stream(experiment: Experiment, planned: PlannedQuery, seed: int, place: Path, doing: Doing) -> None:
    if experiment.workload.sources:
        write_recorded(experiment, planned.query, planned.text, place, doing.note)
        return
    workload = load_workload(experiment.workload.name or "")
    given = check_parameters(workload, experiment.workload.parameters)
    doing.tables.write_stream(workload, seed, given, place)


def _beside_static(
    experiment: Experiment, planned: PlannedQuery, plan: PlannedRun, stream: Path, doing: Doing
) -> PlannedQuery:
    """The query with the workload's static data, if it has some; ExperimentError when the engine does not take it."""
    found = static_data(experiment, plan.seed, stream, doing.tables)
    if found is None:
        return planned
    query = planned.query.with_static(as_taken(plan.engine, found))
    if reason := load_engine(plan.engine).refuse(query, plan.semantics):
        raise ExperimentError(f"engine {plan.engine} refuses this query beside static data: {reason}")
    return replace(planned, query=query)


def _duration(experiment: Experiment, facts: StreamFacts) -> int:
    """How far the stream's time comes (ms): as stated, else the workload's duration, else as its file says."""
    if experiment.feed.advance_to is not None:
        return experiment.feed.advance_to
    if experiment.workload.name is not None:
        given = check_parameters(load_workload(experiment.workload.name), experiment.workload.parameters)
        if isinstance(duration := given.get("duration"), int):
            return max(duration, facts.last)
    return facts.advanced_to


def _estimate(experiment: Experiment, runs: Sequence[PlannedRun], facts: StreamFacts, doing: Doing) -> RunEstimate:
    """How long those of the runs take that are not kept, by the stream of the first."""
    to_do = [plan for plan in runs if doing.again or not (doing.out / plan.key / "verdict.json").exists()]
    span = _duration(experiment, facts) - (0 if experiment.workload.name is not None else facts.first)
    return RunEstimate(len(to_do), span, facts.triples, experiment.feed.factor)


def _do(
    experiment: Experiment, planned: PlannedQuery, plan: PlannedRun, stream: Path, facts: StreamFacts, doing: Doing
) -> tuple[Run, Verdict]:
    header = _header(experiment, planned, plan, facts)
    refuse_clock(
        planned.query.windows,
        plan.semantics,
        min(origins(plan.semantics, planned.query.windows, facts.first)),
        header.advanced_to,
    )
    limits = Limits(experiment.feed.time_limit / 1000, experiment.feed.output_limit_mb << 20)
    task = task_of(header, dialect(load_engine(plan.engine)))
    if header.factor is not None:
        seconds = (header.advanced_to - header.begin) / 1000 / header.factor
        doing.tell(f"{plan.key}: the stream is fed for {seconds:,.0f} s", 0.0)
    with ahead(read_written(stream), header.factor) as fed:
        run = record(header, program(plan.engine), fed, limits, task=task)
    with making(doing.out / plan.key) as place:
        write_run(place, run)
        link(stream, place / STREAM)
        verdict = _judged(run, place / STREAM, plan, experiment, doing)
        write_verdict(place, verdict)
        return _kept(experiment, planned, plan, place, doing) or (run, verdict)


def _judged(run: Run, stream: Path, plan: PlannedRun, experiment: Experiment, doing: Doing) -> Verdict:
    doing.tell(f"judging {plan.key}", 0.0)

    def tried(t0s: int, of: int) -> None:
        doing.tell(f"judging {plan.key}: {t0s} of {of} candidates for t0", 0.0)

    return judge_run(run, stream, Means(doing.spark, max_delay=experiment.max_delay, progress=tried))


def _kept(
    experiment: Experiment, planned: PlannedQuery, plan: PlannedRun, place: Path, doing: Doing
) -> tuple[Run, Verdict] | None:
    """Put a run where it belongs; where another process has finished the same one meanwhile, that one is kept."""
    folder = doing.out / plan.key
    if not doing.again and (kept := finished(folder)) is not None:
        refuse_other(folder, kept[0].header, experiment, planned, plan)
        return kept
    put(place, folder)
    return None


T = TypeVar("T")

AHEAD = 300_000
"""How many elements are read before a paced run begins: reading would hold up the feeder for 0.1 s at a time."""


@contextmanager
def ahead(stream: Iterator[T], factor: float | None) -> Iterator[Iterator[T]]:
    """The same elements, the first of them in memory and out of the garbage collector's way when the run is paced."""
    if factor is None:
        yield stream
        return
    held = list(islice(stream, AHEAD))
    gc.collect()
    gc.freeze()
    try:
        yield chain(held, stream)
    finally:
        gc.unfreeze()


def _header(experiment: Experiment, planned: PlannedQuery, plan: PlannedRun, facts: StreamFacts) -> RunHeader:
    return RunHeader(
        engine=plan.engine,
        query=planned.query,
        query_text=planned.text,
        dialect=planned.dialect,
        semantics=plan.semantics,
        advanced_to=_duration(experiment, facts),
        started=0,
        begin=0 if experiment.workload.name is not None else facts.first,
        evaluator=evaluator(load_engine(plan.engine)),
        factor=experiment.feed.factor,
        workload={**_source(experiment, planned, plan.seed), "triples": facts.triples},
        versions=versions(),
        machine=machine(),
        repetition=plan.repetition,
        options=plan.options,
        experiment=experiment.name,
        parameters={key: str(value) for key, value in experiment.query.parameters.items()},
    )


def _source(experiment: Experiment, planned: PlannedQuery, seed: int) -> Mapping[str, object]:
    source = experiment.workload.name or ", ".join(each.address for each in experiment.workload.sources)
    given = {key: str(value) for key, value in experiment.workload.parameters.items()}
    return {"name": source, "seed": seed, **given, **identity(experiment.workload, planned.query)}


def link(source: Path, target: Path) -> None:
    """The same files in another folder, without a second copy where the file system can share them."""
    target.mkdir(parents=True)
    for file in files(source):
        share(file, target / file.name)
