"""The recorded stream of an experiment: its files under ``[workload]``, of which streams they are, how to read them."""

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from streamgauge.formats.streams import Reading
from streamgauge.formats.streams.format import Note, logged
from streamgauge.model.query import ContinuousQuery
from streamgauge.query.prologue import declared_prefixes
from streamgauge.sources.address import parse_address
from streamgauge.sources.named import NamedSource, refuse_names, stream_table
from streamgauge.suites.experiments.experiment import Experiment, ExperimentError, WorkloadPart

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
