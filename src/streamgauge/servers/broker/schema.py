"""The tables of the broker's journal; ``upgrade`` adds checksums to those of version 2."""

import sqlite3
from pathlib import Path
from typing import Final

from streamgauge.servers.http.access import OPEN
from streamgauge.servers.sealed.soundness import JournalError, Schema, row_sum

TABLES: Final = {
    "publication": "CREATE TABLE publication (number INTEGER PRIMARY KEY, sum INTEGER NOT NULL, seal BLOB)",
    "fact": "CREATE TABLE fact (s TEXT, p TEXT, o TEXT, sum INTEGER NOT NULL, PRIMARY KEY (s, p, o)) WITHOUT ROWID",
    "log": "CREATE TABLE log (number INTEGER PRIMARY KEY, last INTEGER NOT NULL, sum INTEGER NOT NULL)",
    "channel": "CREATE TABLE channel (name TEXT PRIMARY KEY, query TEXT NOT NULL, log INTEGER NOT NULL,"
    " start INTEGER NOT NULL, sum INTEGER NOT NULL)",
    "subscriber": "CREATE TABLE subscriber (channel TEXT, name TEXT, acknowledged INTEGER NOT NULL,"
    " sum INTEGER NOT NULL, PRIMARY KEY (channel, name)) WITHOUT ROWID",
    "entry": "CREATE TABLE entry (log INTEGER, number INTEGER, body TEXT NOT NULL, sum INTEGER NOT NULL,"
    " PRIMARY KEY (log, number)) WITHOUT ROWID",
    "retry": "CREATE TABLE retry (owner TEXT, key TEXT, digest BLOB NOT NULL, number INTEGER NOT NULL,"
    " sum INTEGER NOT NULL, PRIMARY KEY (owner, key)) WITHOUT ROWID",
    "owner": "CREATE TABLE owner (channel TEXT, name TEXT, owner TEXT NOT NULL, sum INTEGER NOT NULL,"
    " PRIMARY KEY (channel, name)) WITHOUT ROWID",
}


def fact_sum(triple: tuple[str, str, str]) -> int:
    """``row_sum`` of a fact."""
    return row_sum("fact", triple)


def advice(path: Path) -> str:
    """The remedy for a damaged journal, the end of a message."""
    return f"`streamgauge broker verify {path} --save-to NEW` writes what is sound to a new journal"


_OWNED: Final = (
    "CREATE TABLE IF NOT EXISTS retry (owner TEXT, key TEXT, digest BLOB NOT NULL, number INTEGER NOT NULL,"
    " PRIMARY KEY (owner, key)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS owner (channel TEXT, name TEXT, owner TEXT NOT NULL, PRIMARY KEY (channel, name))"
    " WITHOUT ROWID",
    f"INSERT OR IGNORE INTO retry SELECT '{OPEN}', key, x'', number FROM publication WHERE key IS NOT NULL",
    "DELETE FROM publication WHERE number < (SELECT max(number) FROM publication)",
    "DROP INDEX IF EXISTS retry_number",
)
"""Statements that add owners of keys and names, which the oldest journals lack; their keys belong to everybody."""

_COLUMNS: Final = {"publication": "number"}
"""By table, the columns to copy, if not all of them."""


def upgrade(path: Path, database: sqlite3.Connection) -> None:
    """Add checksums to all rows of a journal, leaving the transaction open; JournalError if it is damaged."""
    run = database.execute
    (outcome,) = run("PRAGMA integrity_check(1)").fetchone()
    if outcome != "ok":
        raise JournalError(f"{path}: damaged: pages: {outcome}; it has no checksums: restore it from a copy")
    # Within SQLite, so that a table is copied by one statement.
    database.create_function("row_sum", -1, lambda table, *values: row_sum(table, values))
    run("BEGIN IMMEDIATE")
    # Before the renaming: from here on journals of all ages have the same tables.
    for statement in _OWNED:
        run(statement)
    for table in TABLES:
        run(f"ALTER TABLE {table} RENAME TO before_{table}")
    JOURNAL.create(database)
    for table in TABLES:
        existing = ", ".join(name for _, name, *_ in run(f"PRAGMA table_info(before_{table})"))
        columns = _COLUMNS.get(table, existing)
        into = f"{table} ({columns}, sum)"
        run(f"INSERT INTO {into} SELECT {columns}, row_sum('{table}', {columns}) FROM before_{table}")
        # Table by table: SQLite reuses the pages of the dropped one.
        run(f"DROP TABLE before_{table}")


JOURNAL: Final = Schema(
    version=3,
    newest="publication",
    tables=TABLES,
    advice=advice,
    indexes={"retry_number": "CREATE INDEX retry_number ON retry (number)"},
    keys={
        "fact": "s, p, o",
        "subscriber": "channel, name",
        "entry": "log, number",
        "retry": "owner, key",
        "owner": "channel, name",
    },
    before=2,
    upgrade=upgrade,
)
"""The journal's schema; the table ``publication`` stores only the newest one."""
