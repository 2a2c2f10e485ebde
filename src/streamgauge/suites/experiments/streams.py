"""Streams and static data of an experiment: made once for a seed, or read from recorded files, kept as tables."""

import gc
import hashlib
import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Final, TypeVar

import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.engines import load as load_engine
from streamgauge.formats.files import hardlink
from streamgauge.formats.pipe import StaticFile
from streamgauge.formats.stream import files
from streamgauge.formats.streams import Reading
from streamgauge.formats.streams.format import Note, logged
from streamgauge.harness.trial import made_once
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import Triple
from streamgauge.query.text import declared_prefixes
from streamgauge.sources.contract import parse_address
from streamgauge.sources.named import NamedSource, refuse_names, stream_table
from streamgauge.suites.experiments.experiment import Experiment, ExperimentError, WorkloadPart
from streamgauge.workloads import load as load_workload
from streamgauge.workloads import parameters as check_parameters
from streamgauge.workloads.tables import Maker

LINE_LIMIT: Final = 1_000_000
"""How many static triples may stand in the task line of a program that does not read them from a file."""


ADVANCED: Final = "advanced_to"
"""A file beside a stream table: how far the stream's file said that time came (ms)."""


def refuse_streams(workload: WorkloadPart, query: ContinuousQuery) -> None:
    """Refuse what is said to be other streams than the query's, before any is made; ExperimentError, SourceError."""
    refuse_names(workload.sources, query.streams)
    if workload.name is not None and workload.stream is not None and workload.stream not in query.streams:
        read = " and ".join(f"<{name}>" for name in query.streams)
        raise ExperimentError(
            f"workload.stream: the stream is made as <{workload.stream}>, but the query reads {read}: "
            "name the same stream in both"
        )


def write_recorded(
    experiment: Experiment, query: ContinuousQuery, text: str, folder: Path, note: Note = logged
) -> None:
    """The experiment's recorded sources as a stream table in a new folder; errors name file and line."""
    part = experiment.workload
    reading = Reading(
        lateness=experiment.feed.lateness,
        checked=True,
        prefixes=declared_prefixes(text),
        note=note,
        **part.timing,
    )
    folder.mkdir()
    _, advanced = stream_table(part.sources, query.streams, reading, folder, always=True)
    if advanced is not None:
        (folder / ADVANCED).write_text(str(advanced), "ascii")


def identity(part: WorkloadPart, query: ContinuousQuery) -> dict[str, str]:
    """The fields that tell a recorded stream from another: its sources with their content, streams, how it is read."""
    if not part.sources:
        return {}
    digest = hashlib.sha256()
    for source in part.sources:
        digest.update(f"{source.iri}\0{source.address}\0".encode())
        for file in _files(source):
            state = file.stat()
            digest.update(file.name.encode() + _digest(file, state.st_size, state.st_mtime_ns))
    for mapping in () if part.csv_mapping is None else (Path(part.csv_mapping),):
        digest.update(mapping.read_bytes() if mapping.is_file() else b"")
    beside = {**part.timing, "streams": " ".join(query.streams)}
    digest.update(repr(sorted(beside.items())).encode())
    return {"content": digest.hexdigest()[:16]}


@lru_cache(maxsize=256)
def _digest(file: Path, size: int, changed: int) -> bytes:  # noqa: ARG001
    """The digest of a file's content; one that has neither another size nor time is read once."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()


def _files(source: NamedSource) -> Iterator[Path]:
    """The files that a source is read from, mappings of columns beside them."""
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


def stream_folder(part: WorkloadPart, query: ContinuousQuery, seed: int, streams: Path) -> Path:
    """Where the stream table of a workload for a seed is kept, or will be."""
    source = {"name": part.name, "file": str(part.file), "seed": seed, **part.parameters, **identity(part, query)}
    digest = hashlib.sha256(json.dumps(source, sort_keys=True, default=str).encode()).hexdigest()[:16]
    return streams / digest


def write_workload(part: WorkloadPart, seed: int, folder: Path, tables: Maker) -> None:
    """A workload's stream for a seed as a stream table in a new folder."""
    workload = load_workload(part.name or "")
    tables.write_stream(workload, seed, check_parameters(workload, part.parameters), folder)


def gives_static(experiment: Experiment) -> bool:
    """Whether the experiment's workload has static data of its own (parameter ``static_triples``)."""
    if experiment.workload.name is None:
        return False
    workload = load_workload(experiment.workload.name)
    return bool(check_parameters(workload, experiment.workload.parameters).get("static_triples"))


def static_data(part: WorkloadPart, seed: int, stream: Path, tables: Maker) -> StaticFile:
    """The workload's static data, as ``<stream>.nt`` beside the stream table, made unless it is there."""
    workload = load_workload(part.name or "")
    given = check_parameters(workload, part.parameters)
    file = stream.with_name(f"{stream.name}.nt")
    return StaticFile(made_once(file, partial(tables.write_static, workload, seed, given)))


def as_taken(engine: str, static: StaticFile) -> Collection[Triple]:
    """The static data in a form that the engine takes: a file, else triples; ExperimentError when there are too many.

    Engines in Python read files; a program on the pipe does when its module says ``STATIC_FILE = True``.
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


Item = TypeVar("Item")

AHEAD: Final = 300_000
"""How many elements are read before a paced run begins: reading would hold up the feeder for 0.1 s at a time."""


@contextmanager
def ahead(stream: Iterator[Item], factor: float | None) -> Iterator[Iterator[Item]]:
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


def link(source: Path, target: Path) -> None:
    """The same files in another folder, without a second copy where the file system can share them."""
    target.mkdir(parents=True)
    for file in files(source):
        hardlink(file, target / file.name)
