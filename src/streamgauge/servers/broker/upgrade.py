"""Journals of version 2, without checksums: brought to the tables of today in one transaction, when they are opened."""

import sqlite3
from pathlib import Path
from typing import Final

from streamgauge.servers.broker.journal import JournalError
from streamgauge.servers.broker.seal import row_sum
from streamgauge.servers.broker.soundness import SCHEMA, TABLES, VERSION
from streamgauge.servers.http.tokens import OPEN

BEFORE_SUMS: Final = 2
"""The version of journals without checksums."""

_OWNED: Final = (
    "CREATE TABLE IF NOT EXISTS retry (owner TEXT, key TEXT, digest BLOB NOT NULL, number INTEGER NOT NULL,"
    " PRIMARY KEY (owner, key)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS owner (channel TEXT, name TEXT, owner TEXT NOT NULL, PRIMARY KEY (channel, name))"
    " WITHOUT ROWID",
    f"INSERT OR IGNORE INTO retry SELECT '{OPEN}', key, x'', number FROM publication WHERE key IS NOT NULL",
    "DELETE FROM publication WHERE number < (SELECT max(number) FROM publication)",
    "DROP INDEX IF EXISTS retry_number",
)
"""Whose keys and names are: the oldest journals do not say, and their keys are of everybody."""

_COLUMNS: Final = {"publication": "number"}
"""The columns that stay, where not all do."""


def make(database: sqlite3.Connection) -> None:
    """The tables of a journal; within a transaction."""
    for statement in SCHEMA.values():
        database.execute(statement)
    database.execute(f"PRAGMA user_version = {VERSION}")


def upgrade(path: Path, database: sqlite3.Connection) -> None:
    """Give a journal's rows their checksums; the transaction stays open. JournalError for one that is damaged."""
    run = database.execute
    (said,) = run("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise JournalError(f"{path}: damaged: pages: {said}; it has no checksums: restore it from a copy")
    database.create_function("row_sum", -1, lambda table, *values: row_sum(table, values))
    run("BEGIN IMMEDIATE")
    for statement in _OWNED:
        run(statement)
    for table in TABLES:
        run(f"ALTER TABLE {table} RENAME TO before_{table}")
    make(database)
    for table in TABLES:
        there = ", ".join(name for _, name, *_ in run(f"PRAGMA table_info(before_{table})"))
        columns = _COLUMNS.get(table, there)
        into = f"{table} ({columns}, sum)"
        run(f"INSERT INTO {into} SELECT {columns}, row_sum('{table}', {columns}) FROM before_{table}")
        run(f"DROP TABLE before_{table}")
