"""Offline checks of a broker's journal: inspecting it for damage, and saving its sound rows as a new journal."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from streamgauge.servers.broker.entry_groups import GROUPS
from streamgauge.servers.broker.schema import JOURNAL
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.servers.durability import Inspection, Saved
from streamgauge.servers.sealed.copies import mark_in, readable_copy, refuse_absent, verify_copy
from streamgauge.servers.sealed.soundness import (
    JournalError,
    inspect,
    is_sound,
    log_of,
    mark_of,
    readable,
    refuse_vanished,
    row_sum,
)

_ORPHANS: Final = {
    "entries of a log that is lost": f"FROM entry WHERE log != {GROUPS} AND log NOT IN (SELECT number FROM log)",
    "subscribers of a channel that is lost": "FROM subscriber WHERE channel NOT IN (SELECT name FROM channel)",
    "owners of a name that is lost": "FROM owner WHERE channel NOT IN (SELECT name FROM channel)",
}


def verify(path: Path) -> Inspection:
    """All damage of a journal, which is not changed. JournalError if it does not exist or is in use."""
    return verify_copy(JOURNAL, path)


def save(path: Path, new: Path) -> Saved:
    """Write the sound rows to a new journal, and report the losses. JournalError if nothing can be read."""
    refuse_absent(path)
    if new.exists() or log_of(new).exists() or mark_of(new).exists():
        raise JournalError(f"{new}: it already exists: choose another file")
    refuse_vanished(path)
    inspection = Inspection()
    with readable_copy(path, inspection) as copy:
        # On the copy: the damaged file itself stays as it is.
        _mend_first_page(copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as database:
            # The witness lies beside the original, not beside the copy.
            inspect(JOURNAL, database, mark_in(path), inspection)
            with closing(SqliteJournal(new)) as journal, journal.filled() as target:
                kept, losses = _write(database, target)
    notes = [str(damage) for damage in inspection.damages] + (
        [f"{inspection.more} damages more"] if inspection.more else []
    )
    return Saved(", ".join(f"{count:,} rows of {table}" for table, count in kept.items()), (*notes, *losses))


def _write(database: sqlite3.Connection, connection: sqlite3.Connection) -> tuple[dict[str, int], list[str]]:
    """Copy sound rows to a new journal, without those that refer to lost ones; returns counts and losses."""
    kept = {}
    # The new journal's own row; the one that is copied has the number of the last publication.
    connection.execute("DELETE FROM publication")
    for table in JOURNAL.tables:
        # Damage was noted by ``inspect`` before, hence the throw-away inspection.
        rows = (row for row in readable(JOURNAL, database, table, Inspection()) if is_sound(JOURNAL, table, row))
        columns = len(connection.execute(f"PRAGMA table_info({table})").fetchall())
        connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * columns)})", rows)
        (kept[table],) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    losses = []
    # A number must not be given out twice: it is what clients and receipts refer to.
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
"""The last number of a log among the entries that it shares with other logs."""


def _last(connection: sqlite3.Connection, log: int) -> int:
    """The number of a log's last stored entry, 0 without one."""
    (own,) = connection.execute("SELECT max(number) FROM entry WHERE log = ?", (log,)).fetchone()
    (shared,) = connection.execute(_GROUPED, (GROUPS, log)).fetchone()
    return max(own or 0, shared or 0)


def _mend_first_page(copy: Path) -> None:
    """If the schema is unreadable, replace page 1 by that of a new journal.

    That works because a journal's tables are created in a fixed order, so that their root pages are always the same.
    """
    with closing(sqlite3.connect(copy, isolation_level=None)) as database, suppress(sqlite3.Error):
        if dict(database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")) == JOURNAL.statements:
            return
    fresh = copy.with_name("fresh")
    SqliteJournal(fresh).close()
    first = bytearray(fresh.read_bytes()[:4096])
    first[28:40] = (copy.stat().st_size // 4096).to_bytes(4) + bytes(8)  # number of pages, and no list of free ones
    # SQLite trusts the number of pages only if this equals the change counter (file format, 1.3.7).
    first[92:96] = first[24:28]
    with copy.open("r+b") as file:
        file.write(first)
