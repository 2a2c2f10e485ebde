"""Soundness of a journal: checksums, and a check that finds damaged, missing and outdated rows and pages.

Row checksums are the CRC-32 (ISO 3309) of the MessagePack of the values, so that text, numbers and NULL are
distinguished. Every transaction rewrites the seal (``seal``), in the row of the newest change, whose page is written
anyway.
"""

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

import msgspec

from streamgauge.model.mistake import MistakeError
from streamgauge.servers.durability import Inspection, Witness, unreadable
from streamgauge.servers.sealed.seal import RunningSeal, Seal, vanished


class JournalError(MistakeError, RuntimeError):
    """A file that is not a journal, is damaged, or cannot be written; the sentence says why."""


class NotWrittenError(JournalError):
    """A change that the disk refused: it has no effect, and later changes may succeed."""


@dataclass(frozen=True)
class Schema:
    """The tables of a kind of journal, each with a column ``sum``: the checksum of the columns before it.

    The table ``newest`` has one row: a number, its checksum, and the seal of all rows. ``keys`` gives the order of rows
    for tables without rowid. ``advice`` returns the remedy for a damaged file.
    """

    version: int
    newest: str
    tables: Mapping[str, str]
    advice: Callable[[Path], str]
    indexes: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def statements(self) -> dict[str, str]:
        """The statements that create all tables and indexes, including the table with the journal's id."""
        return {**self.tables, **_OWN_NAME, **self.indexes}

    def sum_at(self, table: str) -> int:
        """The position of a table's checksum column."""
        return 1 if table == self.newest else -1

    def create(self, database: sqlite3.Connection) -> None:
        """Create the tables of a journal, within a transaction."""
        for statement in self.statements.values():
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {self.version}")


_OWN_NAME: Final = {"journal": "CREATE TABLE journal (name BLOB NOT NULL, sum INTEGER NOT NULL)"}

_BODY: Final = Struct(">QQQ")
_SUM: Final = 4
_encode = msgspec.msgpack.Encoder().encode


class _Seeds(dict[str, int]):
    """Initial CRC values by table, so that a row copied to another table has a wrong checksum."""

    def __missing__(self, table: str) -> int:
        seed = self[table] = crc32(table.encode())
        return seed


_SEEDS: Final = _Seeds()


def row_sum(table: str, values: Sequence[object]) -> int:
    """The checksum of a table's row, from 0 to 2^32 - 1; UnicodeEncodeError for invalid text."""
    return crc32(_encode(values), _SEEDS[table])


class RowSeal(RunningSeal):
    """The seal of a journal during a transaction."""

    def entered(self, table: str, row: Sequence[object]) -> int:
        """Count a new row; returns its checksum."""
        # `row_sum` written out: one call less for every row of every publication.
        value = crc32(_encode(row), _SEEDS[table])
        self._records += 1
        self._total += value
        return value


def packed(seal: Seal) -> bytes:
    """A seal as bytes, without the journal's id, followed by its own checksum."""
    body = _BODY.pack(*seal[1:])
    return body + crc32(body).to_bytes(_SUM)


def read_seal(schema: Schema, database: sqlite3.Connection) -> Seal | None:
    """The stored seal; ``None`` if it or the journal's id is missing, or their checksums are wrong."""
    name = database.execute("SELECT name, sum FROM journal").fetchone()
    row = database.execute(f"SELECT seal FROM {schema.newest}").fetchone()
    if name is None or row_sum("journal", name[:1]) != name[1]:
        return None
    # SQLite's columns have no fixed types: a changed bit may make a text or a number of a BLOB.
    if row is None or not isinstance(row[0], bytes) or len(row[0]) != _BODY.size + _SUM:
        return None
    body = row[0][:-_SUM]
    return Seal(name[0], *_BODY.unpack(body)) if crc32(body).to_bytes(_SUM) == row[0][-_SUM:] else None


def mark_of(path: Path) -> Path:
    """The path of a journal's witness."""
    return path.with_name(f"{path.name}-mark")


def log_of(path: Path) -> Path:
    """The path of a journal's write-ahead log, named by SQLite."""
    return path.with_name(f"{path.name}-wal")


def refuse_vanished(path: Path) -> None:
    """JournalError if a journal is missing or empty although another file shows that it had content."""
    if why := vanished(path, (mark_of(path), log_of(path))):
        raise JournalError(f"{path}: {why}")


def checked(schema: Schema, path: Path, database: sqlite3.Connection, mark: Witness | None) -> Seal:
    """The seal of a sound journal; JournalError, in one sentence, if it is damaged."""
    inspection, seal = inspect(schema, database, mark)
    if inspection.whole and seal is not None:
        return seal
    # An inspection keeps the first damages and counts the others.
    rest = len(inspection.damages) - 1 + inspection.more
    more = f", and {rest} more" if rest > 0 else ""
    first = unreadable(path) or inspection.damages[0]
    raise JournalError(f"{path}: damaged: {first}{more}; {inspection.remains} can be saved: {schema.advice(path)}")


def inspect(
    schema: Schema, database: sqlite3.Connection, mark: Witness | None, inspection: Inspection | None = None
) -> tuple[Inspection, Seal | None]:
    """All damage of an open journal, and its seal if that is readable; ``mark`` is its witness.

    Damage is added to ``inspection``, which may have entries already.
    """
    inspection = Inspection() if inspection is None else inspection
    # First the schema: what follows reads tables by the names that it gives.
    _check_schema(schema, database, inspection)
    _check_pages(database, inspection)
    rows = total = 0
    for table in schema.tables:
        count, value = _check_rows(schema, database, table, inspection)
        rows, total = rows + count, total + value
    seal: Seal | None = None
    try:
        seal = read_seal(schema, database)
    except sqlite3.Error as error:
        inspection.note(f"tables journal and {schema.newest}", f"name and seal cannot be read ({error})")
    if seal is None:
        inspection.note(
            f"tables journal and {schema.newest}", "the checksum of the journal's name or seal does not hold"
        )
        return inspection, seal
    # Sound rows are not enough: an older copy of the whole file is sound too.
    if (contradiction := seal.contradiction(mark)) is not None:
        inspection.note(*contradiction)
    # Rows that other damage made unreadable are not counted, so the sums could not agree.
    if inspection.whole and not seal.counts(rows, total):
        inspection.note(
            "all tables", f"the rows are not those that were written ({rows:,} are there, {seal.records:,} were sealed)"
        )
    return inspection, seal


def _check_schema(schema: Schema, database: sqlite3.Connection, inspection: Inspection) -> None:
    try:
        there = dict(database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    except sqlite3.Error as error:
        inspection.note("page 1", f"the schema cannot be read ({error})")
        return
    for name, statement in schema.statements.items():
        if there.get(name) != statement:
            inspection.note("page 1", f"the schema of {name} is not a journal's")
    others = set(there) - set(schema.statements)
    if others:
        inspection.note(
            "page 1", f"there are tables or indexes that no journal has ({', '.join(map(repr, sorted(others)))})"
        )


def _check_pages(database: sqlite3.Connection, inspection: Inspection) -> None:
    """Run SQLite's own check: structure of pages, order of keys, indexes against their tables."""
    try:
        # Ten errors at most: one damaged page may cause thousands.
        for (line,) in database.execute("PRAGMA integrity_check(10)"):
            if line != "ok":
                inspection.note("pages", " ".join(str(line).split()))
    except sqlite3.Error as error:
        inspection.note("pages", f"they cannot be read ({error})")


def _check_rows(schema: Schema, database: sqlite3.Connection, table: str, inspection: Inspection) -> tuple[int, int]:
    """Check the rows of a table; returns the number of readable rows and the sum of their stored checksums."""
    rows = total = sound = 0
    at = schema.sum_at(table)
    for row in readable(schema, database, table, inspection):
        value = row[at]
        rows, total = rows + 1, total + (value if isinstance(value, int) else 0)
        if is_sound(schema, table, row):
            sound += 1
        else:
            inspection.note(f"table {table}, row {rows:,}", "its checksum does not hold")
    inspection.count(f"rows of {table}", sound)
    return rows, total


def is_sound(schema: Schema, table: str, row: tuple[object, ...]) -> bool:
    """Whether a row's checksum holds."""
    at = schema.sum_at(table)
    try:
        return row_sum(table, row[:at]) == row[at]
    except UnicodeEncodeError:
        return False


def readable(
    schema: Schema, database: sqlite3.Connection, table: str, inspection: Inspection
) -> Iterator[tuple[object, ...]]:
    """The rows that can be read: from the first up to a damaged page, then from the last back to it."""
    order = schema.keys.get(table, "rowid")
    keys = order.split(", ")
    last: tuple[object, ...] | None = None
    try:
        # An explicit order, so that the second loop meets the rows in exactly the reverse.
        for key, row in _rows(database, f"SELECT {order}, * FROM {table} ORDER BY {order}", len(keys)):
            last = key
            yield row
        return
    except (sqlite3.Error, UnicodeDecodeError) as error:
        inspection.note(
            f"table {table}, after row {last}" if last else f"table {table}", f"it cannot be read ({error})"
        )
    try:
        behind = ", ".join(f"{key} DESC" for key in keys)
        for key, row in _rows(database, f"SELECT {order}, * FROM {table} ORDER BY {behind}", len(keys)):
            # Everything before was yielded by the first loop.
            if key == last:
                return
            yield row
    except (sqlite3.Error, UnicodeDecodeError):
        return


def _rows(
    database: sqlite3.Connection, query: str, keys: int
) -> Iterator[tuple[tuple[object, ...], tuple[object, ...]]]:
    """The keys of rows, and the rows."""
    return ((row[:keys], row[keys:]) for row in database.execute(query))


def in_use(path: Path) -> bool:
    """Whether a process has a journal open: SQLite's lock of its shared bytes is taken."""
    with path.open("rb") as file:
        try:
            # The 510 bytes that all readers of a database lock, behind the pending and reserved byte (SQLite's os.h).
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 510, 0x40000002, os.SEEK_SET)
        except OSError:
            return True
        fcntl.lockf(file, fcntl.LOCK_UN, 510, 0x40000002, os.SEEK_SET)
    return False
