"""Manifests: the ordered parts of a table with their rows, ranges and digests, written when the table is complete.

A table is a Parquet file, or a folder of part files. A folder's manifest is its file ``_manifest.json``, which Parquet
readers skip. The digest of a part is its seal (``seals``). For a table without a manifest, written by
another program, and for parts that were added later, entries are derived from the footers of the files.

Worked example: Spark wrote ``part-00000`` with the sequence numbers 5 to 9 and ``part-00001`` with 0 to 4. The manifest
lists ``part-00001`` first, so that elements are read in their order.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.formats.seals import SealError, check_parquet, parquet_seal, seal, unseal
from streamgauge.model.mistake import MistakeError, obstacle

NAME: Final = "_manifest.json"
FORMAT: Final = "streamgauge table"
VERSION: Final = 1
"""The supported schema version of tables."""

_SEQUENCE: Final = ("sequence", "report", "index")
_TIME: Final = ("time", "instant", "at")
"""Columns that order a table, and those of its times (ms, or ns of a clock); a table has at most one of each."""

_STREAM: Final = frozenset(("stream", "sequence", "position"))
"""Columns of stream tables, whose parts are ordered by their sequence numbers; those of other tables by name."""


class TableError(MistakeError, ValueError):
    """A table that is missing, unreadable or of another shape, or a full disk; names the file and column."""


class Range(NamedTuple):
    """The minimum and maximum of a column."""

    least: int
    greatest: int


@dataclass(frozen=True, slots=True)
class TablePart:
    """A part file: its rows, the ranges of its order and times (``None`` without values), and its digest (hex)."""

    file: str
    rows: int
    sequence: Range | None = None
    time: Range | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A table's parts in order; ``streams`` are the names in a stream table, ``None`` if unknown."""

    parts: tuple[TablePart, ...]
    streams: tuple[str, ...] | None = None

    @property
    def rows(self) -> int:
        """The number of rows in all parts."""
        return sum(part.rows for part in self.parts)

    @property
    def time(self) -> Range | None:
        """The range of times."""
        return _union([part.time for part in self.parts if part.time is not None])

    @property
    def sequence(self) -> Range | None:
        """The range of sequence numbers."""
        return _union([part.sequence for part in self.parts if part.sequence is not None])

    def first_parts(self, rows: int) -> list[TablePart]:
        """The parts that contain the ``rows`` rows with the least sequence numbers.

        Worked example: three parts of 10 rows have the numbers 0 to 9, 5 to 14 and 20 to 29. The first 10 rows are in
        the first two.
        """
        ranges = sorted((part.sequence, part.file, part) for part in self.parts if part.sequence is not None)
        chosen, size, reach = list[TablePart](), 0, -1
        for sequence, _, part in ranges:
            # ``reach``: rows of later parts with smaller sequence numbers would belong before rows that are taken.
            if size < rows:
                reach = max(reach, sequence.greatest)
            elif sequence.least > reach:
                break
            chosen.append(part)
            size += part.rows
        return chosen


def _union(ranges: Sequence[Range]) -> Range | None:
    return Range(min(one.least for one in ranges), max(one.greatest for one in ranges)) if ranges else None


def files(path: Path) -> list[Path]:
    """The Parquet files of a table in order, 9 before 10; TableError if there are none, or one differs from its entry.

    A file without a seal is not checked: another program wrote it in place of ours.
    """
    listed = _stored(path)
    if listed is None:
        return _unlisted(path)
    present = {file.name: file for file in _present(path)}
    for part in listed.parts:
        if part.file not in present:
            raise TableError(f"{path / part.file}: missing: {path / NAME} lists it: restore the table from a copy")
        if part.digest is not None and digest(present[part.file]) not in (part.digest, None):
            raise TableError(str(SealError(present[part.file], f"; {path / NAME} has the digest of another")))
    names = [part.file for part in listed.parts]
    return [present[name] for name in names] + [file for name, file in present.items() if name not in names]


def manifest(path: Path) -> Manifest:
    """The manifest of a table: the stored one, completed by added parts, or one derived from its files; TableError."""
    ordered, listed = files(path), _stored(path)
    entries = {part.file: part for part in listed.parts} if listed is not None else {}
    parts = tuple(entries.get(file.name) or made(file) for file in ordered)
    # Parts that were added later may have further streams.
    complete = listed is not None and len(entries) == len(parts)
    return Manifest(parts, listed.streams if complete and listed is not None else None)


def commit(folder: Path) -> Manifest:
    """Write the manifest of a folder whose table is complete, replacing an earlier one; TableError."""
    # First, so that a crash in between leaves a table without a manifest, and not one with a wrong one.
    retract(folder)
    ordered = files(folder)
    parts = tuple(made(file) for file in ordered)
    written = Manifest(parts, _streams(ordered))
    write(folder, written)
    return written


def write(folder: Path, content: Manifest) -> None:
    """Write a manifest atomically; TableError."""
    # Hidden from readers of the folder until it is complete.
    unfinished = folder / f".{NAME}"
    try:
        unfinished.write_text(encoded(content), "utf-8")
        unfinished.replace(folder / NAME)
    except OSError as error:
        raise TableError(f"{folder / NAME}: could not be written: {obstacle(error)}") from error


def encoded(content: Manifest) -> str:
    """A manifest as sealed JSON."""
    return json.dumps(seal({"format": FORMAT, "version": VERSION, **asdict(content)}), indent=1) + "\n"


def decoded(text: str, where: str) -> Manifest:
    """The manifest in a JSON text; TableError names the file ``where`` it was read."""
    try:
        data = json.loads(text)
        if data.get("format") != FORMAT or data.get("version") != VERSION:
            raise TableError(f"{where}: expected version {VERSION} of a {FORMAT!r}, which is what this release reads")
        content = unseal(data, where)
        streams = content["streams"]
        return Manifest(tuple(map(_part, content["parts"])), None if streams is None else tuple(streams))
    except SealError as error:
        raise TableError(str(error)) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(
            f"{where}: not a readable manifest: remove it, and one is derived from the table's files"
        ) from error


def _part(data: dict[str, Any]) -> TablePart:
    ranges = {name: data[name] and Range(*data[name]) for name in ("sequence", "time")}
    return TablePart(**(data | ranges))


def retract(folder: Path) -> None:
    """Remove the manifest of a folder whose table is incomplete again."""
    (folder / NAME).unlink(missing_ok=True)


def _stored(path: Path) -> Manifest | None:
    """The manifest in a folder, ``None`` without one."""
    file = path / NAME
    try:
        text = file.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(f"{file}: cannot be read: {obstacle(error)}") from error
    return decoded(text, str(file))


def _unlisted(path: Path) -> list[Path]:
    """The files of a table without a manifest; those of a stream table by their sequence numbers."""
    present = _present(path)
    if not present:
        raise TableError(f"{path}: missing: a Parquet file or a folder of Parquet files is expected here")
    if len(present) == 1 or not set(metadata(present[0]).schema.to_arrow_schema().names) >= _STREAM:
        return present
    ranges = {file: made(file).sequence for file in present}
    return sorted(present, key=lambda file: (ranges[file] or Range(-1, -1)).least)


def _present(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path] if path.is_file() else []
    return sorted((file for file in path.glob("*.parquet") if not file.name.startswith(("_", "."))), key=_order)


def _order(file: Path) -> list[str]:
    """A sort key for file names that compares numbers by value."""
    # Worked example: part-9 and part-10 have the keys [part-, 0..09, ...] and [part-, 0..10, ...], so 9 is before 10.
    return [part.zfill(20) if part.isdigit() else part for part in re.split(r"(\d+)", file.name)]


def made(file: Path) -> TablePart:
    """The entry of a part file, from its footer; TableError."""
    footer = metadata(file)
    names = footer.schema.to_arrow_schema().names
    order, times = (next((name for name in choice if name in names), None) for choice in (_SEQUENCE, _TIME))
    return TablePart(file.name, footer.num_rows, _range(file, footer, order), _range(file, footer, times), digest(file))


def _range(file: Path, footer: pq.FileMetaData, name: str | None) -> Range | None:
    """The minimum and maximum of a column, from the footer's statistics or else from its values."""
    if name is None or not footer.num_rows:
        return None
    # The index among leaf columns: a list has several.
    place = [footer.schema.column(column).path for column in range(len(footer.schema))].index(name)
    groups = [footer.row_group(number).column(place) for number in range(footer.num_row_groups)]
    # Statistics are optional in Parquet; without them the column is read.
    if all(group.is_stats_set and group.statistics.has_min_max for group in groups):
        return _union([Range(group.statistics.min, group.statistics.max) for group in groups])
    try:
        bounds = pc.min_max(pq.read_table(file, columns=[name]).column(0)).as_py()
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file) from error
    return None if bounds["min"] is None else Range(bounds["min"], bounds["max"])


def _streams(ordered: Sequence[Path]) -> tuple[str, ...] | None:
    """The names of the streams of a stream table."""
    if not set(metadata(ordered[0]).schema.to_arrow_schema().names) >= _STREAM:
        return None
    return tuple(sorted(set().union(*map(_names, ordered))))


def _names(file: Path) -> Iterator[str]:
    try:
        with pq.ParquetFile(file, read_dictionary=["stream"]) as parquet:
            for batch in parquet.iter_batches(columns=["stream"]):
                yield from pc.unique(batch.column(0)).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file) from error


def digest(file: Path) -> str | None:
    """The digest in a part file, unchecked; ``None`` without one. TableError."""
    try:
        return parquet_seal(file)
    except OSError as error:
        raise unreadable(file) from error


def metadata(file: Path) -> pq.FileMetaData:
    """The footer of a Parquet file; TableError, also for a damaged file."""
    try:
        return pq.read_metadata(file)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file) from error


def unreadable(file: Path) -> TableError:
    """The error for a file that is not Parquet, or not any more."""
    try:
        check_parquet(file)
    except SealError as error:
        return TableError(str(error))
    except OSError:
        pass
    return TableError(f"{file}: not a readable Parquet file: was it cut, or is it of another kind?")
