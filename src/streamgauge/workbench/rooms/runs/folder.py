"""The folder of the workbench: run folders and experiment files below it, of any origin.

Its content is not trusted: links that lead out of it are not followed, only files and folders are opened, and the
number of folders, files and bytes read is bounded.
"""

import os
import stat
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.formats.manifest import TableError, files, metadata
from streamgauge.formats.tables import opened
from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.workbench.places import is_path

DEPTH: Final = 6
"""How deep below the folder runs and experiments are looked for."""

FOLDERS: Final = 5_000
"""How many folders are looked into."""

RUNS: Final = 2_000
"""How many runs are listed."""

ENTRIES: Final = 5_000
"""How many files a run folder may have."""

JSON_BYTES: Final = 16 * 2**20
"""The size of a JSON file of a run that is read."""

TOML_BYTES: Final = 256 * 2**10
"""The size of an experiment file that is read."""

VALUES: Final = 10_000_000
"""How many values of a table are read for a page."""

TABLE_BYTES: Final = 512 * 2**20
"""How many bytes of tables, before compression, are read for a page."""

_PASSED = frozenset(("streams", "node_modules", "__pycache__"))

Stamp = tuple[tuple[str, int, int], ...]
"""Path, modification time (ns) and size of each file of a run: the key for everything computed from it."""


class BenchError(MistakeError, ValueError):
    """A folder or file that the workbench does not open; the sentence says why."""


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The places of runs and of experiment files, relative to the folder, and ``notes``, sentences about the rest."""

    runs: tuple[str, ...]
    experiments: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass
class _Search:
    """A search of a folder: the places found so far, and the names that were passed over with the reason."""

    runs: list[str] = field(default_factory=list)
    experiments: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    looked: int = 0


def find(root: Path) -> FoundFiles:
    """The runs and experiments below ``root``, in order of their places; a run folder itself has the place ``""``."""
    search = _Search()
    waiting = [(root, "", 0)]
    while waiting and len(search.runs) < RUNS and search.looked < FOLDERS:
        folder, place, depth = waiting.pop()
        search.looked += 1
        below = _look(folder, place, search)
        if depth < DEPTH:
            # A stack of its own: the depth of folders must not be that of Python's calls.
            waiting += [(folder / name, f"{place}{name}/", depth + 1) for name in reversed(below)]
    if waiting:
        search.notes.append(
            f"Only the first {len(search.runs):,} runs in {search.looked:,} folders are listed: "
            "open the workbench over a folder further down to see the others."
        )
    return FoundFiles(tuple(search.runs), tuple(search.experiments), tuple(search.notes[:10]))


def _look(folder: Path, place: str, search: _Search) -> list[str]:
    """Record the run or experiments in a folder; returns the names of its subfolders, none for a run."""
    try:
        with os.scandir(folder) as entries:
            entries_sorted = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        search.notes.append(f"{_shown(place)}: {obstacle(error)}")
        return []
    # Whatever is below a run belongs to it, and holds no other runs.
    if any(entry.name == "run.json" for entry in entries_sorted):
        search.runs.append(place.rstrip("/"))
        return []
    below = []
    for entry in entries_sorted:
        if entry.name.startswith(".") or entry.name in _PASSED:
            continue
        if not _is_text(entry.name):
            search.notes.append(f"{_shown(place)}: a name in it is not text in UTF-8, and is passed over")
        # A link may lead out of the folder, or back into it.
        elif entry.is_symlink():
            search.notes.append(f"{place}{entry.name} is a link, and is not followed")
        elif entry.is_dir(follow_symlinks=False):
            if not entry.name.endswith(".parquet"):
                below.append(entry.name)
        elif entry.name.endswith(".toml") and _is_experiment(Path(entry.path)):
            search.experiments.append(place + entry.name)
    return below


def _shown(place: str) -> str:
    return place.rstrip("/") or "the folder"


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_experiment(file: Path) -> bool:
    """Whether a TOML file has the tables of an experiment; invalid TOML counts if it has their headings."""
    try:
        text = read_text(file, TOML_BYTES)
    except BenchError:
        return False
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError):
        # A file that is being edited stays in the list, where its mistake is shown, rather than vanish.
        return "[workload]" in text and "[[engine]]" in text
    return isinstance(data.get("engine"), list) and isinstance(data.get("workload"), dict) and "query" in data


def inside(root: Path, place: str) -> Path:
    """The path of a place below ``root``; BenchError for one that is elsewhere or reached by a link."""
    parts = [part for part in place.split("/") if part]
    if not is_path(place) or any(part in (".", "..") for part in parts):
        raise BenchError(f"{place!r:.100} is not a place in the folder of the workbench")
    path = root
    for part in parts:
        path /= part
        if path.is_symlink():
            raise BenchError(f"{place:.100}: {part:.100} is a link, and is not followed")
    return path


def refuse_outside(root: Path, path: Path) -> None:
    """Refuse a path that leads out of ``root``, by its parts or by links; BenchError."""
    if not path.resolve().is_relative_to(root):
        raise BenchError(f"{path} lies outside of the folder of the workbench: put a copy into the folder")


def read_text(file: Path, limit: int = JSON_BYTES) -> str:
    """The text of a regular file of at most this many bytes; BenchError."""
    try:
        # Not ``stat``, which would follow a link.
        state = file.lstat()
        if not stat.S_ISREG(state.st_mode):
            raise BenchError(f"{file.name}: no plain file")
        if state.st_size > limit:
            raise BenchError(f"{file.name} has {state.st_size:,} bytes, more than the {limit:,} that are read here")
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{file.name}: cannot be read: {obstacle(error)}") from error


def stamp(folder: Path) -> Stamp:
    """The files of a run folder and of the folders in it; BenchError for links, devices and too many files.

    A run's files are opened only after this: a link could lead anywhere, a pipe would never end.
    """
    stamps = []
    for number, (place, state) in enumerate(_entries(folder)):
        if number >= ENTRIES:
            raise BenchError(f"it has more than {ENTRIES:,} files: this is not a run that Streamgauge recorded")
        if stat.S_ISLNK(state.st_mode):
            raise BenchError(f"{place} is a link, and is not followed: put the file itself there")
        if not stat.S_ISREG(state.st_mode):
            raise BenchError(f"{place} is neither a file nor a folder")
        stamps.append((place, state.st_mtime_ns, state.st_size))
    return tuple(sorted(stamps))


def _entries(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The files of a run folder and of the folders in it, each with its state."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield entry.name, entry.stat(follow_symlinks=False)
                    continue
                with os.scandir(entry.path) as inner:
                    for below in inner:
                        if not below.is_dir(follow_symlinks=False):
                            yield f"{entry.name}/{below.name}", below.stat(follow_symlinks=False)
    except OSError as error:
        raise BenchError(f"{folder.name}: cannot be read: {obstacle(error)}") from error


def refuse_large(folder: Path, names: Sequence[str]) -> None:
    """BenchError for a run whose tables are too large for a page, TableError for damaged tables."""
    values = size = stored = 0
    for name in names:
        table = folder / f"{name}.parquet"
        for file in files(table) if table.exists() else ():
            chunks = list(_chunks(metadata(file)))
            values += sum(chunk.num_values for _, chunk in chunks)
            size += sum(chunk.total_uncompressed_size for _, chunk in chunks)
            stored += file.stat().st_size  # a footer may leave out what is read to check the seal
            # Only if it may still fit, as this reads pages.
            if values <= VALUES and max(size, stored) <= TABLE_BYTES:
                size += sum(_repeated(file, group, chunk) for group, chunk in chunks if _may_repeat(chunk))
            if values > VALUES or max(size, stored) > TABLE_BYTES:
                raise BenchError(
                    f"its tables are too large for this page (more than {VALUES:,} values or {TABLE_BYTES >> 20} MiB, "
                    f"up to {name}.parquet): streamgauge report makes a page of any run"
                )


def _chunks(metadata: pq.FileMetaData) -> Iterator[tuple[int, pq.ColumnChunkMetaData]]:
    """The columns of all row groups, each with the number of its group."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for at in range(row_group.num_columns):
            yield group, row_group.column(at)


def _may_repeat(chunk: pq.ColumnChunkMetaData) -> bool:
    """Whether a column of texts could be too large once each value is written out: a file has equal ones once."""
    # At worst every value is the one text that makes up the whole chunk.
    worst = int(chunk.num_values) * int(chunk.total_uncompressed_size)
    return str(chunk.physical_type) == "BYTE_ARRAY" and worst > TABLE_BYTES


def _repeated(file: Path, group: int, chunk: pq.ColumnChunkMetaData) -> int:
    """The bytes of a column of texts once each value is written out, counted without doing so."""
    with opened(file, [chunk.path_in_schema]) as parquet:
        column = parquet.read_row_group(group, columns=[chunk.path_in_schema]).column(0)
    size = 0
    for part in column.chunks:
        while pa.types.is_list(part.type) or pa.types.is_large_list(part.type):
            part = part.flatten()
        if pa.types.is_dictionary(part.type):
            # The length of each distinct text times how often it occurs, without writing any text twice: one text of 1
            # MB that a million rows refer to would be a terabyte.
            lengths = pc.binary_length(part.dictionary)
            size += pc.sum(lengths.take(part.indices)).as_py() or 0
        else:
            size += part.nbytes
    return size


def column(folder: Path, table: str, name: str) -> pa.ChunkedArray | None:
    """A column of numbers of a run's table; TableError. ``None`` where there is no such table, or too large a one."""
    where = folder / f"{table}.parquet"
    if not where.exists():
        return None
    chunks, values = [], 0
    for file in files(where):
        with opened(file) as parquet:
            if name not in parquet.schema_arrow.names:
                raise TableError(f"{table}.parquet: column {name} is missing")
            kind = parquet.schema_arrow.field(name).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise TableError(f"{table}.parquet: column {name} is {kind}: numbers belong there")
            values += int(parquet.metadata.num_rows)
            if values > VALUES:
                return None
            chunks.append(parquet.read(columns=[name])[name].cast(pa.float64()).combine_chunks())
    return pa.chunked_array(chunks, pa.float64())
