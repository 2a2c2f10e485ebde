"""A journal looked at without a broker: whether it is whole, and what is sound of it as a new journal."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from streamgauge.servers.broker.contract import JournalError
from streamgauge.servers.broker.entry_groups import GROUPS
from streamgauge.servers.broker.soundness import (
    SCHEMA,
    TABLES,
    VERSION,
    in_use,
    inspect,
    is_sound,
    log_of,
    mark_of,
    readable,
    refuse_vanished,
    row_sum,
)
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.servers.durability import UNREADABLE, Inspection, Saved, Witness, copy_readable, unpack

_HEADER: Final = 100
"""Bytes of the header of page 1 (SQLite file format, section 1.3)."""

_ORPHANS: Final = {
    "entries of a log that is lost": f"FROM entry WHERE log != {GROUPS} AND log NOT IN (SELECT number FROM log)",
    "subscribers of a channel that is lost": "FROM subscriber WHERE channel NOT IN (SELECT name FROM channel)",
    "owners of a name that is lost": "FROM owner WHERE channel NOT IN (SELECT name FROM channel)",
}


def verify(path: Path) -> Inspection:
    """All damages of a journal; nothing of it is changed. JournalError when it is not there or in use."""
    _refuse_absent(path)
    try:
        refuse_vanished(path)
    except JournalError as error:
        inspection = Inspection()
        inspection.note("byte 0", str(error))
        return inspection
    mark = _mark(path)
    inspection = Inspection()
    with _copy(path, inspection) as copy, closing(sqlite3.connect(copy, isolation_level=None)) as database:
        try:
            (version,) = database.execute("PRAGMA user_version").fetchone()
        except sqlite3.Error as error:
            inspection.note("page 1", f"no journal ({error})")
            return inspection
        if version != VERSION:
            return _without_sums(
                database, version, inspection, marked=mark_of(path).exists() and mark_of(path).stat().st_size > 0
            )
        return inspect(database, mark, inspection)[0]


def _without_sums(database: sqlite3.Connection, version: int, inspection: Inspection, *, marked: bool) -> Inspection:
    """A journal of a version before checksums is as sound as SQLite can tell; one that had some is damaged."""
    if marked or version != VERSION - 1:
        inspection.note("page 1 or the log", f"its version is {version}, not {VERSION}")
        return inspection
    for (line,) in database.execute("PRAGMA integrity_check(10)"):
        if line != "ok":
            inspection.note("pages", str(line))
    inspection.count("pages, without checksums (a broker that opens it gives it some)", 1)
    return inspection


def save(path: Path, new: Path) -> Saved:
    """Write what is sound to a new journal; what is lost is said. JournalError when nothing can be read."""
    _refuse_absent(path)
    if new.exists() or log_of(new).exists() or mark_of(new).exists():
        raise JournalError(f"{new}: it is there already: name a file that is not")
    refuse_vanished(path)
    inspection = Inspection()
    with _copy(path, inspection) as copy:
        _mend_first_page(copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as database:
            inspect(database, _mark(path), inspection)
            with closing(SqliteJournal(new)) as journal, journal.filled() as target:
                kept, losses = _write(database, target)
    notes = [str(damage) for damage in inspection.damages] + (
        [f"{inspection.more} damages more"] if inspection.more else []
    )
    return Saved(", ".join(f"{count:,} rows of {table}" for table, count in kept.items()), (*notes, *losses))


def _write(database: sqlite3.Connection, connection: sqlite3.Connection) -> tuple[dict[str, int], list[str]]:
    """Sound rows into the tables of a new journal, those aside that belong to nothing."""
    kept = {}
    connection.execute("DELETE FROM publication")
    for table in TABLES:
        rows = (row for row in readable(database, table, Inspection()) if is_sound(table, row))
        columns = len(connection.execute(f"PRAGMA table_info({table})").fetchall())
        connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * columns)})", rows)
        (kept[table],) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    losses = []
    if not kept["publication"]:
        (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM retry").fetchone()
        connection.execute("INSERT INTO publication VALUES (?, ?, NULL)", (last, row_sum("publication", (last,))))
        losses.append(f"the number of the last publication: {last} is taken, that of the last with a key")
    lost_logs = connection.execute(
        "SELECT log, max(start) FROM channel WHERE log NOT IN (SELECT number FROM log) GROUP BY log"
    ).fetchall()
    for log, start in lost_logs:
        row = log, max(start, _last(connection, log))
        connection.execute("INSERT INTO log VALUES (?, ?, ?)", (*row, row_sum("log", row)))
        losses.append(f"the number of log {log}'s last notification: {row[1]} is taken")
    for name, which in _ORPHANS.items():
        gone = connection.execute(f"DELETE {which}").rowcount
        if gone:
            losses.append(f"{gone:,} {name}")
    return kept, losses


_GROUPED: Final = (
    "SELECT max(json_extract(run.value, '$[2]')) FROM entry, json_each(entry.body, '$[1]') AS run WHERE entry.log = ?"
    " AND ? BETWEEN json_extract(run.value, '$[0]') AND json_extract(run.value, '$[1]')"
)
"""The last number of a log among entries that it shares with others."""


def _last(connection: sqlite3.Connection, log: int) -> int:
    """The number of the last entry of a log that is there, 0 without one."""
    (own,) = connection.execute("SELECT max(number) FROM entry WHERE log = ?", (log,)).fetchone()
    (shared,) = connection.execute(_GROUPED, (GROUPS, log)).fetchone()
    return max(own or 0, shared or 0)


def _mend_first_page(copy: Path) -> None:
    """Where the schema cannot be read, put that of a new journal in its place: tables begin at the same pages."""
    with closing(sqlite3.connect(copy, isolation_level=None)) as database, suppress(sqlite3.Error):
        if dict(database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")) == SCHEMA:
            return
    fresh = copy.with_name("fresh")
    SqliteJournal(fresh).close()
    first = bytearray(fresh.read_bytes()[:4096])
    first[28:40] = (copy.stat().st_size // 4096).to_bytes(4) + bytes(8)  # pages; no free ones
    first[92:96] = first[24:28]
    with copy.open("r+b") as file:
        file.write(first)


@contextmanager
def _copy(path: Path, inspection: Inspection) -> Iterator[Path]:
    """A copy of a journal and its log, so that looking at them changes neither; what cannot be read is noted."""
    with TemporaryDirectory(prefix="streamgauge-verify-") as folder:
        copy = Path(folder) / "journal"
        for source, to in ((path, copy), (log_of(path), log_of(copy))):
            if source == path or source.exists():
                for start, end in copy_readable(source, to):
                    inspection.note(f"{source.name}, bytes {start:,} to {end:,}", UNREADABLE)
        yield copy


def _refuse_absent(path: Path) -> None:
    beside = [file for file in (mark_of(path), log_of(path)) if file.exists()]
    if not path.exists() and not beside:
        raise JournalError(f"{path}: no journal is there")
    if path.exists() and in_use(path):
        raise JournalError(f"{path}: a broker has it open: stop the broker first")
    if path.exists() and not os.access(path, os.R_OK):
        raise JournalError(f"{path}: it cannot be read: ask for the right to read it")


def _mark(path: Path) -> Witness | None:
    """The witness; ``None`` where there is none, or none that can be read."""
    try:
        return unpack(mark_of(path).read_bytes())
    except OSError:
        return None
