"""Runs of an experiment: streams generated once, each run recorded, judged and stored.

Finished runs are not repeated.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from streamgauge.engines import dialect, evaluator
from streamgauge.engines import load as load_engine
from streamgauge.formats.run import RunError, read_run, read_verdict, write_run, write_verdict
from streamgauge.formats.stream import Followed, StoredStream
from streamgauge.formats.streams.format import Note, logged
from streamgauge.harness import PlannedQuery, RunStore, Trial, made_once
from streamgauge.harness.resources import machine, versions
from streamgauge.harness.systems import RunLimits
from streamgauge.harness.systems.pipe import Watch, program, record, task_of
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.verdict import Verdict
from streamgauge.oracle.judging.judge import Means, judge_run, other_stream
from streamgauge.query import parse
from streamgauge.semantics.arrivals import origins
from streamgauge.semantics.beginning import begun
from streamgauge.semantics.due import refuse_clock
from streamgauge.semantics.refusal import RefusedError
from streamgauge.suites.experiments import Experiment, ExperimentError, Variant, WorkloadPart
from streamgauge.suites.experiments.plan import (
    ExperimentEstimate,
    PlannedVariant,
    RunEstimate,
    StreamFacts,
    as_taken,
    elsewhere,
    link,
    parameters_of,
    plan_variants,
    refuse_streams,
    refuse_window,
    static_data,
    stream_facts,
    stream_folder,
    write_recorded,
    write_workload,
)
from streamgauge.suites.experiments.progress import ProgressFolder
from streamgauge.workloads.plan import Maker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Tell = Callable[[str, float], object]
"""Called with the current step and the completed share, 0 to 1."""

EVERY_S: Final = 1.0
"""Interval of progress messages about a run, in seconds."""

FEEDING: Final = 0.9
"""The share of feeding in the progress of a run; the last answers and the verdict have the rest."""


AnyFollowed = TypeVar("AnyFollowed", bound=Followed)


class FeedProgress:
    """A stream during feeding, with its progress; ``begin`` and ``end`` are the stream's time in ms.

    The feeder's thread only notes the current element, so that progress messages delay no element.
    """

    def __init__(self, stream: Iterable[Followed], begin: int, end: int) -> None:
        self._stream, self._begin, self._end = stream, begin, end
        self._last: Followed | None = None
        self._over = False

    def __iter__(self) -> Iterator[Followed]:
        return self.follow(iter(self._stream))

    def follow(self, items: Iterator[AnyFollowed]) -> Iterator[AnyFollowed]:
        """Yield the elements of the stream, in any form, and note each as it is taken."""
        for item in items:
            # A single assignment, which the reporting thread may read at any time without a lock.
            self._last = item
            yield item
        self._over = True

    @property
    def come(self) -> int | None:
        """The time (ms) of the last element fed, ``None`` before the first; the end once all are fed."""
        if self._over:
            return self._end
        return None if self._last is None else self._last.time

    def place(self) -> tuple[str, float]:
        """The run's progress as text and as a share from 0 to 1.

        Example: ``("fed to 12 s of 60 s, element 1,200", 0.18)``.
        """
        last, span = self._last, self._end - self._begin
        if self._over:
            return "all elements are fed, waiting for the last answers", FEEDING
        if last is None:
            return "starting the engine", 0.0
        if span <= 0:
            return f"fed to element {last.sequence + 1:,}", 0.0
        come = min(max(0, last.time - self._begin), span)
        return f"fed to {_seconds(come)} of {_seconds(span)}, element {last.sequence + 1:,}", FEEDING * come / span


def _seconds(ms: int) -> str:
    return f"{ms / 1000:,.0f} s" if ms >= 10_000 or ms % 1000 == 0 else f"{ms / 1000:.1f} s"


@contextmanager
def progress_reported(fed: FeedProgress, tell: Tell, every: float = EVERY_S) -> Iterator[Iterator[Followed]]:
    """The stream, while another thread reports the progress every ``every`` seconds."""
    ended = threading.Event()
    thread = threading.Thread(target=_tell, args=(fed, tell, every, ended), daemon=True, name="fed")
    thread.start()
    try:
        yield iter(fed)
    finally:
        ended.set()
        thread.join()


def _tell(fed: FeedProgress, tell: Tell, every: float, ended: threading.Event) -> None:
    while not ended.wait(every):
        tell(*fed.place())


Judged: TypeAlias = tuple[Run, Verdict]

STREAM: Final = "stream"
"""The folder of the stream table inside a run folder."""


@dataclass(frozen=True, slots=True)
class ExperimentContext:
    """The environment of an experiment: output folder, Spark session, progress, and whether runs are repeated.

    ``streams`` is the folder of stream tables, ``out/streams`` unless several experiments share them. ``on_spark``:
    streams are generated on Spark whatever their size. ``note`` receives assumptions made in reading files,
    ``foretell`` an estimate of the remaining runs before the first; ``progress`` is written during the runs.
    """

    out: Path
    spark: "Callable[[], SparkSession]"
    tell: Tell = lambda _what, _share: None
    again: bool = False
    streams: Path | None = None
    on_spark: bool = False
    note: Note = logged
    foretell: Callable[[ExperimentEstimate], object] = lambda _estimate: None
    progress: ProgressFolder | None = None

    def part(self, number: int, of: int) -> "ExperimentContext":
        """The context of part ``number`` (from 0) of ``of`` equal parts: its shares are scaled to that part."""
        # A worked example: half of the third of four parts, (2 + 0.5) / 4, is 62.5% of the whole.
        return replace(self, tell=lambda what, share: self.tell(what, (number + share) / of))

    @property
    def tables(self) -> Maker:
        """The maker of workloads' tables."""
        return Maker(self.spark, self.on_spark)

    @property
    def store(self) -> RunStore[Judged]:
        """The store of run folders."""
        return RunStore(self.out, finished)


def run_experiment(experiment: Experiment, context: ExperimentContext) -> Iterator[tuple[Path, Run, Verdict]]:
    """Every run of the experiment with its folder and verdict, as soon as it is finished."""
    return run_variants([Variant(experiment)], context)


def run_variants(variants: Sequence[Variant], context: ExperimentContext) -> Iterator[tuple[Path, Run, Verdict]]:
    """Every run of all variants as soon as it is finished; all are planned before the first starts."""
    planned = plan_variants(variants)
    for variant in planned:
        refuse_streams(variant.experiment.workload, variant.query.query)
        streams = {_stream(variant.experiment, variant.query, trial.seed, context) for trial in variant.trials}
        made = [stream for stream in streams if stream.is_dir()]
        for stream in made if made and read_again(variant.experiment.workload, context) else ():
            rmtree(stream)
    first = True
    for number, variant in enumerate(planned):
        part = context.part(number, len(planned)) if len(planned) > 1 else context
        # Only the first variant with runs to do foretells, and then for all that follow.
        yield from _run_variant(variant, part, planned[number:] if first else ())
        first = False
    context.tell("done", 1.0)


def read_again(part: WorkloadPart, context: ExperimentContext) -> bool:
    """Whether to drop an existing stream table, as ``again`` asks for where sources are elsewhere; if not, a note."""
    if (remote := elsewhere(part)) and not context.again:
        kept = "as it was read in an earlier run, whatever has changed there: --again reads it again"
        context.note(f"{' and '.join(remote)}: {kept}")
    return bool(remote) and context.again


def _run_variant(
    variant: PlannedVariant, context: ExperimentContext, foretold: Sequence[PlannedVariant]
) -> Iterator[tuple[Path, Run, Verdict]]:
    """The runs of a variant; before the first, an estimate of the variants ``foretold`` is reported."""
    experiment, planned, trials = variant.experiment, variant.query, variant.trials
    for number, trial in enumerate(trials):
        context.tell(f"{trial.name}, run {number + 1} of {len(trials)}", number / len(trials))
        folder = context.store.place(trial.name)
        if not context.again and (kept := context.store.finished(trial.name)) is not None:
            refuse_other(folder, kept[0].header, trial)
            yield folder, *kept
            continue
        stream, facts = made_stream(experiment, planned, trial.seed, context)
        refuse_window(planned.query, facts.triples, facts.span, experiment.memory_limit_mb)
        if foretold:
            context.foretell(estimate(foretold, facts, context))
            foretold = ()
        settled = replace(
            beside_static(experiment, trial, stream, context),
            semantics=begun(planned.query.windows, trial.semantics, facts.begins),
        )
        yield folder, *_do(experiment, settled, stream, facts, context.part(number, len(trials)))


def finished(folder: Path) -> Judged | None:
    """An earlier finished and judged run; ``None`` if it is missing or incomplete."""
    try:
        return read_run(folder, parse), read_verdict(folder)
    except (RunError, OSError):
        return None


def refuse_other(folder: Path, kept: RunHeader, trial: Trial) -> None:
    """Refuse to reuse another trial's run; ExperimentError names the folder and the difference."""
    if other := ", ".join(trial.differences(kept)):
        raise ExperimentError(
            f"{folder}: this is a run with another {other}: name another folder with --out, or replace it with --again"
        )


def made_stream(
    experiment: Experiment, planned: PlannedQuery, seed: int, context: ExperimentContext
) -> tuple[Path, StreamFacts]:
    """The stream table for a seed, generated if missing; RefusedError for one of another query's streams."""
    part = experiment.workload
    path = _stream(experiment, planned, seed, context)
    if not path.is_dir():
        context.tell(f"generating the stream, seed {seed}", 0.0)
        if part.sources:
            made_once(path, partial(write_recorded, experiment, planned.query, planned.text, note=context.note))
        else:
            made_once(path, partial(write_workload, part, seed, tables=context.tables))
    # Also for a stream that was there already: its folder's name depends on the query only in part.
    if reason := other_stream(path, planned.query):
        raise RefusedError(reason)
    return path, stream_facts(path)


def _stream(experiment: Experiment, planned: PlannedQuery, seed: int, context: ExperimentContext) -> Path:
    return stream_folder(experiment.workload, planned.query, seed, context.streams or context.out / "streams")


def beside_static(experiment: Experiment, trial: Trial, stream: Path, context: ExperimentContext) -> Trial:
    """The trial with the workload's static data, if any; ExperimentError if the engine refuses it."""
    if not trial.static:
        return trial
    static = static_data(experiment.workload, trial.seed, stream, context.tables)
    query = trial.query.query.with_static(as_taken(trial.system, static))
    if reason := load_engine(trial.system).refuse(query, trial.semantics):
        raise ExperimentError(f"engine {trial.system} refuses this query with static data: {reason}")
    return replace(trial, query=replace(trial.query, query=query))


def _duration(experiment: Experiment, facts: StreamFacts) -> int:
    """The stream's end (ms): as the experiment sets it, else the workload's duration, else the recording's end."""
    if experiment.feed.advance_to is not None:
        return experiment.feed.advance_to
    duration = parameters_of(experiment).get("duration")
    return max(duration, facts.last) if isinstance(duration, int) else facts.advanced_to


def estimate(variants: Sequence[PlannedVariant], facts: StreamFacts, context: ExperimentContext) -> ExperimentEstimate:
    """An estimate of the runs that are still to do, from the stream of the first."""

    def of_one(variant: PlannedVariant) -> RunEstimate:
        places = [context.store.place(run.name) for run in variant.trials]
        to_do = sum(context.again or not (place / "verdict.json").exists() for place in places)
        span = _duration(variant.experiment, facts)
        # Recorded streams are fed from their first element on, generated ones from time 0.
        span -= 0 if variant.experiment.workload.name is not None else facts.first
        return RunEstimate(to_do, span, facts.triples, variant.experiment.feed.factor)

    return ExperimentEstimate(tuple(map(of_one, variants)))


def recorded_run(
    experiment: Experiment, trial: Trial, stream: Path, facts: StreamFacts, context: ExperimentContext
) -> Run:
    """Run a trial: feed its stream to its engine and record the answers."""
    header = header_of(experiment, trial, facts)
    windows = trial.query.query.windows
    refuse_clock(windows, trial.semantics, min(origins(trial.semantics, windows, facts.begins)), header.advanced_to)
    limits = RunLimits(experiment.feed.time_limit / 1000, experiment.feed.output_limit_mb << 20)
    task = task_of(header, dialect(load_engine(trial.system)))
    if header.factor is not None:
        seconds = (header.advanced_to - header.begin) / 1000 / header.factor
        context.tell(f"{trial.name}: feeding the stream takes {seconds:,.0f} s", 0.0)
    stored = StoredStream(stream)
    so_far = FeedProgress(stored, header.begin, header.advanced_to)
    stored.follow = so_far.follow
    progress, watch = _progress(trial, header, stream, so_far, context)
    with progress_reported(so_far, progress):
        return record(header, program(trial.system), stored, limits, task=task, watch=watch)


def _do(experiment: Experiment, trial: Trial, stream: Path, facts: StreamFacts, context: ExperimentContext) -> Judged:
    """Record, judge and store the run of a trial, unless another process has finished the same one meanwhile."""
    run = recorded_run(experiment, trial, stream, facts, context)
    # In a place of its own until the verdict is written: a run folder that others see is complete.
    with context.store.stage(trial.name) as place:
        write_run(place, run)
        link(stream, place / STREAM)
        verdict = _verdict(run, place / STREAM, trial, experiment, context)
        write_verdict(place, verdict)
        kept = context.store.keep(place, trial.name, again=context.again)
    if kept is not None:
        refuse_other(context.store.place(trial.name), kept[0].header, trial)
    return kept or (run, verdict)


def _progress(
    trial: Trial, header: RunHeader, stream: Path, so_far: FeedProgress, context: ExperimentContext
) -> tuple[Tell, Watch | None]:
    """The callback for the feed's progress, called every second, and the one for the harness's observation."""
    progress = context.progress
    if progress is not None:
        progress.begin(trial.name, header, stream)

    def report_progress(what: str, share: float) -> None:
        context.tell(f"{trial.name}: {what}", share)
        if progress is not None:
            progress.add(so_far.come)

    return report_progress, None if progress is None else progress.watch


def _verdict(run: Run, stream: Path, trial: Trial, experiment: Experiment, context: ExperimentContext) -> Verdict:
    context.tell(f"judging {trial.name}", 0.0)

    def tried(t0s: int, of: int) -> None:
        context.tell(f"judging {trial.name}: {t0s} of {of} candidates for t0", 0.0)

    return judge_run(run, stream, Means(context.spark, max_delay=experiment.max_delay, progress=tried))


def header_of(experiment: Experiment, trial: Trial, facts: StreamFacts) -> RunHeader:
    """The header of a trial's run before its start."""
    own = evaluator(load_engine(trial.system))
    return RunHeader(
        engine=trial.system,
        query=trial.query.query,
        query_text=trial.query.text,
        dialect=trial.query.dialect,
        semantics=trial.semantics,
        advanced_to=_duration(experiment, facts),
        started=0,
        begin=0 if experiment.workload.name is not None else facts.first,
        evaluator=own,
        factor=trial.pace,
        workload={**trial.workload, "triples": facts.triples},
        versions=versions(),
        machine=machine(),
        repetition=trial.repetition,
        options=trial.options,
        experiment=experiment.name,
        query_name=trial.point.get("query", experiment.query.label),
        parameters={key: str(value) for key, value in experiment.query.parameters.items()},
        ordered=own != "spark",
    )
