"""The tables of the broker's journal."""

from pathlib import Path
from typing import Final

from streamgauge.servers.sealed.soundness import Schema, row_sum

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
)
"""The journal's schema; the table ``publication`` stores only the newest one."""
