"""An experiment stage by stage: generate, run, judge, diagnose, report; each stage resumes where it was stopped.

A stage is done when its result is complete: a stream with its manifest, a finished run folder, a verdict, a diagnosis.
The stages are the same functions on the same tables in process and on Spark; a stream on another file system is
generated, answered and judged by Spark alone.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from streamgauge.formats.files import overwrite
from streamgauge.formats.manifest import NAME
from streamgauge.formats.places import Place, RemotePlace
from streamgauge.formats.run import (
    read_heads,
    read_run,
    read_shown,
    read_verdict,
    stored_verdict,
    stream_place,
    write_run,
    write_verdict,
)
from streamgauge.harness import PlannedQuery, Trial
from streamgauge.model.run import Run
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.diagnosis.prefix import NoPrefixError
from streamgauge.oracle.diagnosis.whole_run import explain_stored
from streamgauge.oracle.judging.judge import Means, judge_stored, unread
from streamgauge.query import parse
from streamgauge.semantics.beginning import begun
from streamgauge.semantics.refusal import RefusedError
from streamgauge.servers.http.freed_memory import FreedMemory
from streamgauge.suites.experiments import Experiment, ExperimentError
from streamgauge.suites.experiments.plan import (
    ADVANCED,
    StreamFacts,
    elsewhere,
    link,
    parameters_of,
    plan_query,
    plan_runs,
    read_advance,
    recorded_reading,
    refuse_streams,
    stream_facts,
    stream_folder,
    write_advance,
)
from streamgauge.suites.experiments.runner import (
    STREAM,
    ExperimentContext,
    beside_static,
    header_of,
    made_stream,
    read_again,
    recorded_run,
    refuse_other,
)
from streamgauge.workloads import load as load_workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK: Final = "spark"
"""The engine that reads tables on any file system."""

HERE: Final = "in this process"
"""The place of a stage that needs no Spark session."""


class Stage(StrEnum):
    """The stages, in order."""

    GENERATE = "generate"
    RUN = "run"
    JUDGE = "judge"
    DIAGNOSE = "diagnose"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class StageResult:
    """A finished stage of one stream or run, with its place, triples and seconds; ``kept`` if from an earlier call."""

    stage: Stage
    what: str
    where: str
    triples: int = 0
    seconds: float = 0.0
    kept: bool = False
    note: str = ""


Done = Callable[[StageResult], object]


@dataclass(frozen=True)
class Pipeline:
    """The stages of a variant of an experiment: run folders go to ``context.out``, stream tables to ``streams``.

    A ``master``, or streams on another file system, moves stages to Spark; otherwise they run in this process.
    """

    experiment: Experiment
    context: ExperimentContext
    streams: Place
    master: str | None = None
    done: Done = lambda _result: None
    point: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    memory: FreedMemory = field(default_factory=FreedMemory)

    @cached_property
    def planned(self) -> PlannedQuery:
        """The query of the experiment, planned."""
        return plan_query(self.experiment)

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """The runs, in order; ExperimentError for an engine that cannot read streams on that file system."""
        trials = plan_runs(self.experiment, self.planned, self.point)
        refuse_streams(self.experiment.workload, self.planned.query)
        other = [trial.system for trial in trials if trial.system != SPARK]
        static = any(trial.static for trial in trials)
        several = len(self.experiment.workload.sources) > 1
        if isinstance(self.streams, RemotePlace) and (other or static or several):
            what = (
                f"engine {other[0]}"
                if other
                else "static data of a workload"
                if static
                else "a stream of several files"
            )
            raise ExperimentError(
                f"{self.streams}: {what} needs local files: on another file system use a workload without "
                f"static data, or one recorded file or folder, and the engine {SPARK}"
            )
        return trials

    @property
    def on_spark(self) -> bool:
        """Whether stages are done on Spark."""
        return self.master is not None or isinstance(self.streams, RemotePlace)

    def _placed(self) -> tuple[ExperimentContext, Callable[[], str]]:
        """The context of one stage, and a function that names its place: Spark if the stage requested a session."""
        sessions: list[SparkSession] = []

        def spark() -> "SparkSession":
            # The list only notes that there was a session, which tells where the stage was done.
            sessions.append(self.context.spark())
            return sessions[-1]

        context = replace(self.context, spark=spark, on_spark=self.on_spark)
        return context, lambda: self._spark if sessions else HERE

    @property
    def _spark(self) -> str:
        return f"on Spark, {self.master or 'local[*]'}"

    def run(self) -> list[tuple[Run, Verdict]]:
        """Do all stages but the report and return the runs and verdicts that it shows."""
        for trial in self.trials if self.context.again else ():
            # With its checkpoint: a streaming job would resume the run that is to be repeated.
            for stale in (self.folder(trial), self._checkpoint(trial)):
                rmtree(stale, ignore_errors=True)
        # Each seed once, in order: all engines and semantics read the same stream.
        seeds, part = dict.fromkeys(trial.seed for trial in self.trials), self.experiment.workload
        made = list(filter(self._is_made, map(self.stream, seeds))) if elsewhere(part) else []
        for stream in made if made and read_again(part, self.context) else ():
            self._remove(stream)
        for seed in seeds:
            self._generated(seed)
        for trial in self.trials:
            self._answered(trial)
        for trial in self.trials:
            self._judged(trial)
        for trial in self.trials:
            self._diagnosed(trial)
        return [(read_shown(folder, parse), read_verdict(folder)) for folder in map(self.folder, self.trials)]

    def stream(self, seed: int) -> Place:
        """The place of the stream of a seed."""
        folder = stream_folder(self.experiment.workload, self.planned.query, seed, Path())
        return self.streams / folder.name

    def folder(self, trial: Trial) -> Path:
        """The run folder of a trial."""
        return self.context.store.place(trial.name)

    def _checkpoint(self, trial: Trial) -> Path:
        """The checkpoint of a streaming job, from which a stopped job resumes."""
        return self.context.out / ".checkpoints" / trial.name

    def facts(self, seed: int) -> StreamFacts:
        """The facts of a generated stream."""
        stream = self.stream(seed)
        if isinstance(stream, Path):
            return stream_facts(stream)
        session = self.context.spark()
        from streamgauge.oracle.expected.extent import extent
        from streamgauge.spark.hadoop_tables import manifest, read_table

        listed = manifest(session, stream)
        reach = extent(read_table(session, stream), self.planned.query.streams)
        if listed.time is None or reach.first is None:
            raise ExperimentError(f"{stream}: the stream has no triples, so it has no answers")
        return StreamFacts.of(listed, reach.first, listed.time, self._advance(stream))

    def _generated(self, seed: int) -> None:
        stream = self.stream(seed)
        began, what = self.clock(), f"stream, seed {seed}"
        context, where = self._placed()
        kept = self._is_made(stream)
        if not kept and isinstance(stream, Path):
            made_stream(self.experiment, self.planned, seed, replace(context, streams=stream.parent))
        elif not kept and isinstance(stream, RemotePlace):
            self.context.tell(f"generate: {what}", 0.0)
            # What a stopped stage left has no manifest, but may have files.
            self._remove(stream)
            self._write_remote(seed, stream, context)
        self._tell(Stage.GENERATE, what, self.facts(seed).triples, began, kept=kept, where=where())

    def _write_remote(self, seed: int, stream: RemotePlace, context: ExperimentContext) -> None:
        """Write a stream to another file system: a workload's, or a recorded one with the time that it reached."""
        part, query = self.experiment.workload, self.planned.query
        if not part.sources:
            context.tables.write_stream(load_workload(part.name or ""), seed, parameters_of(self.experiment), stream)
            return
        session = context.spark()
        from streamgauge.spark.hadoop import HadoopFiles
        from streamgauge.spark.hadoop_tables import manifest
        from streamgauge.spark.recorded_streams import write_recorded

        (source,) = part.sources
        reading = recorded_reading(self.experiment, self.planned.text, context.note)
        course = write_recorded(session, source, query.streams, reading, stream)
        if reason := unread(manifest(session, stream).streams or (), query):
            raise RefusedError(reason)
        with TemporaryDirectory() as scratch:
            write_advance(Path(scratch), course.last or 0)
            HadoopFiles(session).put(Path(scratch) / ADVANCED, stream / ADVANCED)

    def _advance(self, stream: RemotePlace) -> int | None:
        """The time (ms) that a recorded stream on another file system reached; ``None`` for a workload's."""
        if not self.experiment.workload.sources:
            return None
        from streamgauge.spark.hadoop import HadoopFiles

        with TemporaryDirectory() as scratch:
            HadoopFiles(self.context.spark()).get(stream / ADVANCED, Path(scratch) / ADVANCED)
            return read_advance(Path(scratch))

    def _is_made(self, stream: Place) -> bool:
        """Whether a stream is complete: its manifest is written last, or the time that a recorded one reached."""
        if isinstance(stream, Path):
            return stream.is_dir()
        session = self.context.spark()
        from streamgauge.spark.hadoop import HadoopFiles

        return HadoopFiles(session).exists(stream / (ADVANCED if self.experiment.workload.sources else NAME))

    def _remove(self, place: Place) -> None:
        """Remove a stream table, or the partial result of a stopped stage."""
        if isinstance(place, Path):
            rmtree(place)
            return
        from streamgauge.spark.hadoop import HadoopFiles

        HadoopFiles(self.context.spark()).remove(place)

    def _answered(self, trial: Trial) -> None:
        folder, began, facts = self.folder(trial), self.clock(), self.facts(trial.seed)
        kept = _is_finished(folder)
        stream = self.stream(trial.seed)
        semantics = begun(self.planned.query.windows, trial.semantics, facts.begins)
        settled = replace(trial, semantics=semantics)
        if isinstance(stream, Path) and not kept:
            settled = replace(beside_static(self.experiment, trial, stream, self.context), semantics=semantics)
        if kept and (heads := read_heads(folder, parse)) is not None:
            refuse_other(folder, heads.header, settled)
        elif trial.system == SPARK and self.on_spark:
            self._stream_job(settled, stream, facts)
        elif isinstance(stream, Path):
            self._run_here(settled, stream, facts)
        streamed = trial.system == SPARK and self.on_spark
        where = self._spark if streamed else f"by {trial.system}, fed from this process"
        self._tell(Stage.RUN, trial.name, facts.triples, began, kept=kept, where=where)

    def _run_here(self, trial: Trial, stream: Path, facts: StreamFacts) -> None:
        """Feed a stream to an engine from this process, and write the run folder."""
        run = recorded_run(self.experiment, trial, stream, facts, self.context)
        with self.context.store.stage(trial.name) as place:
            write_run(place, run)
            link(stream, place / STREAM)
            overwrite(place, self.folder(trial))

    def _stream_job(self, trial: Trial, stream: Place, facts: StreamFacts) -> None:
        """Answer a table with Structured Streaming until its end, resuming a stopped job."""
        session = self.context.spark()
        from streamgauge.engines.spark.micro_batches import BatchDone
        from streamgauge.engines.spark.pipeline import Job, run

        began, header = self.clock(), header_of(self.experiment, trial, facts)

        def tell(done: BatchDone) -> None:
            rows, seconds = done.after.rows, max(1e-3, self.clock() - began)
            rate = f"{rows:,} triples, {rows / seconds:,.0f} per second"
            self.context.tell(f"run {trial.name}: {rate}, {done.after.sent:,} reports", rows / facts.triples)

        query = trial.query
        address = stream if isinstance(stream, RemotePlace) else stream.absolute()
        job = Job(
            query.query, query.text, query.dialect, trial.semantics, str(address), str(self.folder(trial)),
            self._checkpoint(trial).absolute(), drain=True, header=header,
        )  # fmt: skip
        run(session, job, tell)

    def _judged(self, trial: Trial) -> None:
        folder, began = self.folder(trial), self.clock()
        context, where = self._placed()
        verdict = stored_verdict(folder)
        kept = verdict is not None
        if verdict is None:
            self.context.tell(f"judge: {trial.name}", 0.0)
            # With 0 every run is large enough to be judged in tasks of Spark.
            in_tasks = 0 if self.on_spark else None
            means = Means(context.spark, max_delay=self.experiment.max_delay, in_tasks=in_tasks)
            whole = partial(read_run, folder, parse)
            verdict = judge_stored(read_heads(folder, parse), whole, stream_place(folder), means)
            write_verdict(folder, verdict)
        note = f"{verdict.judgement} by {verdict.evaluator}"
        size = self.facts(trial.seed).triples
        self._tell(Stage.JUDGE, trial.name, size, began, kept=kept, where=where(), note=note)

    def _diagnosed(self, trial: Trial) -> None:
        """Diagnose a wrong run, or a prefix of it if it is large."""
        folder, began = self.folder(trial), self.clock()
        verdict = read_verdict(folder)
        if verdict.judgement is not Judgement.WRONG:
            return
        context, where = self._placed()
        kept, note = verdict.diagnosis is not None, ""
        size = self.facts(trial.seed).triples
        if not kept:
            self.context.tell(f"diagnose: {trial.name}", 0.0)
            session = context.spark if self.on_spark else None
            try:
                diagnosis = explain_stored(folder, parse, self.stream(trial.seed), session)
                cautions = (*verdict.cautions, *diagnosis.cautions)
                write_verdict(folder, replace(verdict, diagnosis=diagnosis.explained.diagnosis, cautions=cautions))
                size, note = diagnosis.seen, diagnosis.note
            except (NoPrefixError, RefusedError) as error:
                note = f"none: {error}"
        place = HERE if where() == HERE else f"{HERE}, the whole run {where()}"
        self._tell(Stage.DIAGNOSE, trial.name, size, began, kept=kept, where=place, note=note)

    def _tell(
        self, stage: Stage, what: str, triples: int, began: float, *, kept: bool, where: str, note: str = ""
    ) -> None:
        # What a run of millions of triples freed would otherwise be the driver's in all later stages.
        self.memory.give_back()
        self.done(StageResult(stage, what, where, triples, self.clock() - began, kept, note))

    def publish(self, files: Sequence[Path], target: RemotePlace) -> None:
        """Copy run folders and the report to another file system; HadoopError."""
        from streamgauge.spark.hadoop import HadoopFiles

        far = HadoopFiles(self.context.spark())
        for file in files:
            # First, so that files of an earlier run with another shape do not stay.
            far.remove(target / file.name)
            far.put(file, target / file.name)


def _is_finished(folder: Path) -> bool:
    """Whether a run folder is complete."""
    try:
        return json.loads((folder / "run.json").read_text("utf-8")).get("finished") is True
    except (OSError, ValueError, AttributeError):
        return False
