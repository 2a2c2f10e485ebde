"""From an experiment to its trials, with all input validated first, and the time that they take at least.

Example: 6 runs of 30 s of stream in real time, 60,000 triples each: 6 * (1.5 + 30 + 60,000 / 30,000) = 201 s.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from streamgauge.engines import load as load_engine
from streamgauge.formats.files import hardlink
from streamgauge.formats.manifest import NAME as MANIFEST
from streamgauge.formats.manifest import Manifest, Range, commit, files, manifest
from streamgauge.formats.pipe import StaticFile
from streamgauge.formats.run import read_json, write_json
from streamgauge.formats.seals import check_beside, seal_beside
from streamgauge.formats.stream import time_at
from streamgauge.formats.streams import Reading
from streamgauge.formats.streams.format import Note, logged
from streamgauge.harness import PlannedQuery, Trial, made_once
from streamgauge.model.mistake import obstacle
from streamgauge.model.phrases import counted, elapsed
from streamgauge.model.query import ContinuousQuery, Window
from streamgauge.model.terms import Triple
from streamgauge.oracle.expected.reports import BackgroundError, beside
from streamgauge.query import detect, fill, parse
from streamgauge.query.prologue import declared_prefixes
from streamgauge.semantics.profiles import profile
from streamgauge.sources.contract import parse_address
from streamgauge.sources.named import NamedSource, refuse_names, stream_table
from streamgauge.suites.experiments import Experiment, ExperimentError, Variant, WorkloadPart
from streamgauge.workloads import load as load_workload
from streamgauge.workloads import parameters as check_parameters
from streamgauge.workloads import query_text
from streamgauge.workloads.plan import Maker

LINE_LIMIT: Final = 1_000_000
"""Maximum number of static triples in the task line of a program that does not read them from a file."""


_ADVANCE: Final = "streamgauge advance"
ADVANCED: Final = "advanced_to"
"""A file next to a stream table with the time (ms) of the recording's last advance."""


def refuse_streams(workload: WorkloadPart, query: ContinuousQuery) -> None:
    """Refuse stream names that the query does not read, before any stream is made; ExperimentError, SourceError."""
    refuse_names(workload.sources, query.streams)
    if workload.name is not None and workload.stream is not None and workload.stream not in query.streams:
        read = " and ".join(f"<{name}>" for name in query.streams)
        raise ExperimentError(
            f"workload.stream: the workload generates <{workload.stream}>, but the query reads {read}: "
            "name the same stream in both"
        )


def recorded_reading(experiment: Experiment, text: str, note: Note = logged) -> Reading:
    """The reading of the experiment's recorded sources for a query's ``text``, whose prefixes they may use."""
    return Reading(
        lateness=experiment.feed.lateness,
        checked=True,
        prefixes=declared_prefixes(text),
        note=note,
        **experiment.workload.timing,
    )


def write_recorded(
    experiment: Experiment, query: ContinuousQuery, text: str, folder: Path, note: Note = logged
) -> None:
    """The experiment's recorded sources as a stream table in a new folder; errors name file and line."""
    reading = recorded_reading(experiment, text, note)
    folder.mkdir()
    _, course = stream_table(experiment.workload.sources, query.streams, reading, folder, always=True)
    commit(folder)
    if course.last is not None:
        write_advance(folder, course.last)


def write_advance(folder: Path, advanced: int) -> None:
    """Write the time (ms) of the last advance next to a stream table; RunError."""
    write_json(folder / ADVANCED, {"format": _ADVANCE, "version": 1, "time": advanced})


def read_advance(folder: Path) -> int | None:
    """The time (ms) of the last advance next to a stream table, ``None`` without one; RunError."""
    file = folder / ADVANCED
    return int(read_json(file, _ADVANCE, 1)["time"]) if file.is_file() else None


def elsewhere(part: WorkloadPart) -> tuple[str, ...]:
    """The addresses of sources that are not local files: ``identity`` does not notice when their content changes."""
    return tuple(one.address for one in part.sources if parse_address(one.address).scheme != "file")


def identity(part: WorkloadPart, query: ContinuousQuery) -> dict[str, str]:
    """A digest that identifies a recorded stream: its sources with their content, streams and reading options."""
    if not part.sources:
        return {}
    digest = hashlib.sha256()
    for source in part.sources:
        # NUL cannot be in either, so that no two different pairs give the same bytes.
        digest.update(f"{source.iri}\0{source.address}\0".encode())
        for file in _files(source):
            state = file.stat()
            digest.update(file.name.encode() + _digest(file, state.st_size, state.st_mtime_ns))
    for file in part.option_files:
        digest.update(file.read_bytes() if file.is_file() else b"")
    beside = {**part.timing, "streams": " ".join(query.streams)}
    digest.update(repr(sorted(beside.items())).encode())
    return {"content": digest.hexdigest()[:16]}


@lru_cache(maxsize=256)
def _digest(file: Path, size: int, changed: int) -> bytes:  # noqa: ARG001
    """The digest of a file's content, cached until its size or modification time changes."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()


def _files(source: NamedSource) -> Iterator[Path]:
    """The files of a source, and the column mapping next to them."""
    address = parse_address(source.address)
    path = Path(address.path)
    if address.scheme != "file" or not path.exists():
        return
    if path.is_dir():
        yield from sorted(file for file in path.rglob("*") if file.is_file())
        return
    yield path
    if (beside := path.with_name(f"{path.name}-metadata.json")).is_file():
        yield beside


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """The number of triples of a stream, its first and last application time, and its last advance (ms).

    ``begins`` is the time of the element that arrived first.
    """

    triples: int
    begins: int
    first: int
    last: int
    advanced_to: int

    @classmethod
    def of(cls, table: Manifest, begins: int, time: Range, advanced: int | None) -> "StreamFacts":
        """The facts of a table with these times and the time of its recording's last advance (ms), if known."""
        return cls(table.rows, begins, *time, max(time.greatest, time.greatest if advanced is None else advanced))

    @property
    def span(self) -> int:
        """From the first to the last element, ms, at least 1."""
        # Never 0, because it is divided by.
        return max(1, self.last - self.first + 1)


def stream_facts(stream: Path, name: str | None = None) -> StreamFacts:
    """The facts of a stream table on disk; ExperimentError, with its ``name``, for one without triples."""
    stream_manifest = manifest(stream)
    if stream_manifest.time is None or stream_manifest.sequence is None:
        raise ExperimentError(f"{name or stream}: the stream has no triples, so it has no answers")
    until = read_advance(stream)
    # The element that arrived first has the least sequence number, and not always the least time.
    begins = time_at(stream, stream_manifest.sequence.least)
    return StreamFacts.of(stream_manifest, begins, stream_manifest.time, until)


def stream_folder(part: WorkloadPart, query: ContinuousQuery, seed: int, streams: Path) -> Path:
    """The path of a workload's stream table for a seed; it may not exist yet."""
    # Everything that the stream depends on is in the name, so that other parameters never find this table.
    source = {"name": part.name, "file": str(part.file), "seed": seed, **part.parameters, **identity(part, query)}
    digest = hashlib.sha256(json.dumps(source, sort_keys=True, default=str).encode()).hexdigest()[:16]
    return streams / digest


def write_workload(part: WorkloadPart, seed: int, folder: Path, tables: Maker) -> None:
    """Write a workload's stream for a seed as a stream table into a new folder."""
    workload = load_workload(part.name or "")
    tables.write_stream(workload, seed, check_parameters(workload, part.parameters), folder)


def parameters_of(experiment: Experiment) -> Mapping[str, object]:
    """All parameters of the experiment's workload, defaults included; a recorded stream has none."""
    part = experiment.workload
    return {} if part.name is None else check_parameters(load_workload(part.name), part.parameters)


def gives_static(experiment: Experiment) -> bool:
    """Whether the experiment's workload has static data of its own (parameter ``static_triples``)."""
    return bool(parameters_of(experiment).get("static_triples"))


def static_data(part: WorkloadPart, seed: int, stream: Path, tables: Maker) -> StaticFile:
    """The workload's static data in ``<stream>.nt`` next to the stream table, generated if missing."""
    workload = load_workload(part.name or "")
    parameters = check_parameters(workload, part.parameters)
    file = stream.with_name(f"{stream.name}.nt")
    made_once(file, partial(tables.write_static, workload, seed, parameters))
    if not check_beside(file):
        seal_beside(file)
    return StaticFile(file)


def as_taken(engine: str, static: StaticFile) -> Collection[Triple]:
    """The static data in a form that the engine accepts, a file or triples; ExperimentError for too many triples.

    Engines in Python read files; programs on the pipe do so if their module sets ``STATIC_FILE = True``.
    """
    module = load_engine(engine)
    if not hasattr(module, "command") or getattr(module, "STATIC_FILE", False):
        return static
    if len(static) > LINE_LIMIT:
        raise ExperimentError(
            f"engine {engine} does not read static data from a file: workload.static_triples is {len(static)}, "
            f"give it at most {LINE_LIMIT}"
        )
    return tuple(static)


def link(source: Path, target: Path) -> None:
    """Hard-link the files into another folder, or copy them if the file system has no hard links."""
    target.mkdir(parents=True)
    # With the manifest, so that the linked table is checked and sized as its source.
    for file in [*files(source), *source.glob(MANIFEST)]:
        hardlink(file, target / file.name)


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


def plan_runs(experiment: Experiment, query: PlannedQuery, point: Mapping[str, str] | None = None) -> tuple[Trial, ...]:
    """Every run of the experiment in order; ExperimentError with the engine's sentence when one refuses.

    ``point`` has the values that distinguish the experiment from the other variants of its file.
    """
    return tuple(_trials(experiment, query, point or {}))


@dataclass(frozen=True, slots=True)
class PlannedVariant:
    """A variant of an experiment file with its query and its runs."""

    experiment: Experiment
    query: PlannedQuery
    trials: tuple[Trial, ...]


def plan_variants(variants: Sequence[Variant]) -> tuple[PlannedVariant, ...]:
    """The variants of an experiment file with their runs; ExperimentError for the first that is refused."""

    def planned(variant: Variant) -> PlannedVariant:
        query = plan_query(variant.experiment)
        return PlannedVariant(variant.experiment, query, plan_runs(variant.experiment, query, variant.point))

    return tuple(map(planned, variants))


def _trials(experiment: Experiment, planned: PlannedQuery, point: Mapping[str, str]) -> Iterator[Trial]:
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
                        point,
                    )


def workload_fields(part: WorkloadPart, query: ContinuousQuery, seed: int) -> Mapping[str, object]:
    """The fields that identify a workload's stream for a seed, for the run's header."""
    source = part.name or ", ".join(source.address for source in part.sources)
    parameters = {key: str(value) for key, value in part.parameters.items()}
    return {"name": source, "seed": seed, **parameters, **identity(part, query)}


BYTES_PER_TRIPLE = 800
"""Memory per triple of a window in the incremental evaluator with its indexes (measured: about 770 bytes)."""


def refuse_window(query: ContinuousQuery, triples: int, span: int, limit_mb: int) -> None:
    """Refuse windows whose estimated content (triples over ``span`` ms) exceeds the memory limit."""
    size = sum(_window_triples(window.window, triples, span) for window in query.windows)
    needed = size * BYTES_PER_TRIPLE / 1e6
    if needed > limit_mb:
        sizes = " and ".join(_size(window.window) for window in query.windows)
        raise ExperimentError(
            f"{sizes} would hold about {size:,.0f} triples, {needed:,.0f} MB: more than "
            f"memory_limit_mb = {limit_mb}; take a smaller window or raise memory_limit_mb"
        )


def _window_triples(window: Window, triples: int, span: int) -> float:
    """Estimate of the largest window content, in triples, of a stream with ``triples`` over ``span`` ms."""
    if window.kind == "count":
        return min(triples, window.size)
    # A worked example: a million triples over 100 s. A window of 10 s holds about 100,000 of them, hence 80 MB.
    return triples * (1.0 if window.kind == "landmark" else min(1.0, window.size / max(1, span)))


def _size(window: Window) -> str:
    if window.kind == "landmark":
        return "a landmark window"
    return f"a window of {window.size} {'triples' if window.kind == 'count' else 'ms'}"


RUN_S: Final = 1.5
"""An engine's process, a run folder and a verdict with few windows, in s of CPU (measured: 1 to 2)."""

TRIPLES_S: Final = 30_000
"""Triples that are answered, recorded and judged per second of CPU, with one report per second of the stream
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
        """The feeding time of one run, s; 0 if it is fed as fast as possible, where ``TRIPLES_S`` counts instead."""
        return 0.0 if self.factor is None else self.span / 1000 / self.factor

    @property
    def words(self) -> str:
        """The runs and their cost as text: ``6 runs of 30 s each, fed in real time``."""
        runs = counted(self.runs, "run")
        if self.factor is not None:
            pace = "in real time" if self.factor == 1 else f"at {self.factor:g} times real time"
            return f"{runs} of {elapsed(self.feed_seconds)} each, fed {pace}"
        return f"{runs} of {counted(self.triples, 'triple')}" if self.triples else runs

    @property
    def seconds(self) -> float:
        """The total of all runs, in sequence, s."""
        return self.runs * (RUN_S + self.feed_seconds + self.triples / TRIPLES_S)


@dataclass(frozen=True, slots=True)
class ExperimentEstimate:
    """The estimates of the variants of an experiment, at least one."""

    parts: tuple[RunEstimate, ...]

    @property
    def seconds(self) -> float:
        """The total of all variants, s."""
        return sum(part.seconds for part in self.parts)

    @property
    def runs(self) -> int:
        """The runs of all variants."""
        return sum(part.runs for part in self.parts)

    @property
    def paced(self) -> bool:
        """Whether some run is fed at a pace."""
        return any(part.factor is not None for part in self.parts)

    @property
    def words(self) -> str:
        """The runs as text, with the cost of each if it is the same for all."""
        # Variants with nothing to run are left out; if there are only such, the first gives the text, `0 runs of ...`.
        to_do = [part for part in self.parts if part.runs] or self.parts[:1]
        if len({replace(part, runs=0) for part in to_do}) == 1:
            return replace(to_do[0], runs=self.runs).words
        return f"{counted(self.runs, 'run')} of {counted(len(to_do), 'variant')}"
