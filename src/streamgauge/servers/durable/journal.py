"""The journal of a session: a sealed database with records by kind and name, segments of items, and answers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from streamgauge.model.mistake import obstacle
from streamgauge.servers.durability import PRIVATE_FOLDER, Inspection
from streamgauge.servers.durable.segments import SegmentExtent
from streamgauge.servers.sealed.copies import verify_copy
from streamgauge.servers.sealed.database import SealedDatabase
from streamgauge.servers.sealed.soundness import JournalError, Schema

FILE: Final = "session.journal"
"""The name of the journal in its folder."""

Record: TypeAlias = tuple[str, str]
"""A record's kind and name."""


def advice(path: Path) -> str:
    """Advice for a damaged journal."""
    return f"restore {path.parent} from a copy, or begin anew with another folder"


SESSION: Final = Schema(
    version=2,
    newest="change",
    tables={
        "change": "CREATE TABLE change (number INTEGER PRIMARY KEY, sum INTEGER NOT NULL, seal BLOB)",
        "record": "CREATE TABLE record (kind TEXT, name TEXT, body BLOB NOT NULL, sum INTEGER NOT NULL,"
        " PRIMARY KEY (kind, name)) WITHOUT ROWID",
        "segment": "CREATE TABLE segment (number INTEGER PRIMARY KEY, extent BLOB NOT NULL, body BLOB NOT NULL,"
        " sum INTEGER NOT NULL)",
        "answer": "CREATE TABLE answer (query TEXT, number INTEGER, line BLOB NOT NULL, sum INTEGER NOT NULL,"
        " PRIMARY KEY (query, number)) WITHOUT ROWID",
    },
    advice=advice,
    keys={"record": "kind, name", "answer": "query, number"},
)


class NumberedLine(NamedTuple):
    """An answer as a line; each query numbers its answers from 1."""

    query: str
    number: int
    line: bytes


class Segment(NamedTuple):
    """Items in columns; without a body, only the latest times in its extent remain."""

    extent: SegmentExtent
    body: bytes = b""


@dataclass(slots=True)
class Change:
    """One transaction. A record of ``None`` is deleted; answers up to the ``settled`` number of a query are too."""

    records: dict[Record, Any] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    answers: list[NumberedLine] = field(default_factory=list)
    settled: dict[str, int] = field(default_factory=dict)


class SessionJournal(SealedDatabase):
    """The journal of a session in a folder, created if missing. Not thread-safe; errors as in the base class."""

    schema = SESSION

    def __init__(self, folder: Path) -> None:
        try:
            # Streams and answers may be private; the usual umask would let everybody read them.
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            why = "it is a file: name a folder" if folder.is_file() else obstacle(error)
            raise JournalError(f"{folder}: no state can be kept here: {why}") from error
        super().__init__(folder / FILE)

    def records(self, kind: str) -> dict[str, Any]:
        """The records of a kind, by name."""
        rows = self._database.execute("SELECT name, body FROM record WHERE kind = ?", (kind,))
        return {name: msgspec.msgpack.decode(body) for name, body in rows}

    def segments(self) -> Iterator[Segment]:
        """The segments in order."""
        for number, extent, body in self._database.execute("SELECT number, extent, body FROM segment ORDER BY number"):
            yield Segment(SegmentExtent.decode(number, extent), body)

    def extents(self) -> list[SegmentExtent]:
        """The extents of all segments in order."""
        rows = self._database.execute("SELECT number, extent FROM segment ORDER BY number")
        return [SegmentExtent.decode(*row) for row in rows]

    def answers(self, query: str) -> list[NumberedLine]:
        """The stored answers of a query in order."""
        rows = self._database.execute("SELECT number, line FROM answer WHERE query = ? ORDER BY number", (query,))
        return [NumberedLine(query, *row) for row in rows]

    def write(self, change: Change) -> None:
        """Commit a change with a single disk sync. After NotWrittenError, nothing was written."""
        with self.transaction():
            for (kind, name), value in change.records.items():
                # Deleted and inserted instead of replaced, since the seal has to lose the checksum of the old row.
                self._delete("record", "kind = ? AND name = ?", kind, name)
                if value is not None:
                    self._insert("record", (kind, name, msgspec.msgpack.encode(value)))
            # Before the insertions: a segment that only keeps its times is dropped and written again under the same
            # number.
            for number in change.dropped:
                self._delete("segment", "number = ?", number)
            for segment in change.segments:
                self._insert("segment", (segment.extent.number, segment.extent.encode(), segment.body))
            for answer in change.answers:
                self._insert("answer", answer)
            for query, number in change.settled.items():
                self._delete("answer", "query = ? AND number <= ?", query, number)
            self._number(self._newest + 1)

    @property
    def size(self) -> int:
        """Size of the file and its log in bytes."""
        beside = (self._path, self._path.with_name(f"{self._path.name}-wal"))
        return sum(path.stat().st_size for path in beside if path.exists())


def verify(folder: Path) -> Inspection:
    """Inspect a session's journal without changing it; JournalError if it is missing or in use."""
    return verify_copy(SESSION, folder / FILE)
