"""A journal in one SQLite database: a write-ahead log that is synchronised once for all publications taken together.

SQLite, because what one publication changes (facts, notifications, its key) must become durable as one, a crash at any
point must leave that state or the one before, and it is proven for that; docs/broker.md says what it costs.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from streamgauge.model.terms import Triple
from streamgauge.services.broker.contract import Entry
from streamgauge.services.broker.journal import Accepted, Kept, Opened, Subscriber
from streamgauge.services.web.retries import RetryKey
from streamgauge.services.web.tokens import OPEN

_VERSION: Final = 2
_SCHEMA: Final = f"""
CREATE TABLE fact (s TEXT, p TEXT, o TEXT, PRIMARY KEY (s, p, o)) WITHOUT ROWID;
CREATE TABLE publication (number INTEGER PRIMARY KEY, key TEXT UNIQUE);
CREATE TABLE log (number INTEGER PRIMARY KEY, last INTEGER NOT NULL);
CREATE TABLE channel (name TEXT PRIMARY KEY, query TEXT NOT NULL, log INTEGER NOT NULL, start INTEGER NOT NULL);
CREATE TABLE subscriber (channel TEXT, name TEXT, acknowledged INTEGER NOT NULL, PRIMARY KEY (channel, name))
  WITHOUT ROWID;
CREATE TABLE entry (log INTEGER, number INTEGER, body TEXT NOT NULL, PRIMARY KEY (log, number)) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""
_OWNED: Final = f"""
CREATE TABLE IF NOT EXISTS retry (owner TEXT, key TEXT, digest BLOB NOT NULL, number INTEGER NOT NULL,
  PRIMARY KEY (owner, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS retry_number ON retry (number);
CREATE TABLE IF NOT EXISTS owner (channel TEXT, name TEXT, owner TEXT NOT NULL, PRIMARY KEY (channel, name))
  WITHOUT ROWID;
INSERT OR IGNORE INTO retry SELECT '{OPEN}', key, x'', number FROM publication WHERE key IS NOT NULL;
UPDATE publication SET key = NULL WHERE key IS NOT NULL;
"""
"""Whose keys and names are: an older journal, which does not say, gets the tables, and its keys are of everybody.

The owner of a channel has the name ''.
"""
_SUBSCRIBE: Final = "INSERT OR REPLACE INTO subscriber VALUES (?, ?, ?)"
_OWN: Final = "INSERT OR REPLACE INTO owner VALUES (?, ?, ?)"
_RETRY: Final = "INSERT OR REPLACE INTO retry VALUES (?, ?, ?, ?)"


class JournalError(RuntimeError):
    """A file that is no journal, or cannot be written; the sentence says why."""


class SqliteJournal:
    """The journal in a file, made when it is not there; the file is this broker's alone. One thread at a time.

    Keys are remembered until they are said to be forgotten; ``patience`` is how long to wait for a file that another
    still has (seconds).
    """

    def __init__(self, path: Path, *, patience: float = 5.0) -> None:
        self._path = path
        try:
            self._database = sqlite3.connect(path, patience, isolation_level=None, check_same_thread=False)
            self._prepare()
        except sqlite3.Error as error:
            raise JournalError(f"{path}: no journal can be kept here: {error}") from error

    def _prepare(self) -> None:
        run = self._database.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("PRAGMA cache_size = -65536")
        (version,) = run("PRAGMA user_version").fetchone()
        if version == 0 and not run("SELECT 1 FROM sqlite_master").fetchone():
            self._database.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
        elif version != _VERSION:
            raise JournalError(f"{self._path}: its version is {version}, this reads {_VERSION}: name another file")
        self._database.executescript(f"BEGIN; {_OWNED} COMMIT;")

    def facts(self) -> Iterator[Triple]:
        """The explicit facts."""
        return iter(self._database.execute("SELECT s, p, o FROM fact"))

    def channels(self) -> list[Opened]:
        """All of them."""
        query = (
            "SELECT channel.name, query, log, start, coalesce(owner, '') FROM channel"
            " LEFT JOIN owner ON owner.channel = channel.name AND owner.name = '' ORDER BY channel.rowid"
        )
        return [Opened(*row) for row in self._database.execute(query)]

    def subscribers(self) -> list[Subscriber]:
        """All of them."""
        query = (
            "SELECT channel, name, acknowledged, coalesce(owner, '') FROM subscriber"
            " LEFT JOIN owner USING (channel, name)"
        )
        return [Subscriber(*row) for row in self._database.execute(query)]

    def entries(self) -> Iterator[Kept]:
        """Those that are kept."""
        found = self._database.execute("SELECT log, number, body FROM entry ORDER BY log, number")
        return (Kept(log, number, _entry(body)) for log, number, body in found)

    def numbers(self) -> tuple[int, dict[int, int]]:
        """The last numbers of publications, and of entries by log."""
        (last,) = self._database.execute("SELECT max(number) FROM publication").fetchone()
        return last or 0, dict(self._database.execute("SELECT number, last FROM log"))

    def keys(self) -> list[tuple[RetryKey, int]]:
        """The keys that are remembered."""
        found = self._database.execute("SELECT owner, key, digest, number FROM retry ORDER BY number")
        return [(RetryKey(owner, key, digest), number) for owner, key, digest, number in found]

    def load(self, triples: Iterable[Triple]) -> None:
        """Many facts at once."""
        with self._all():
            self._database.executemany("INSERT OR IGNORE INTO fact VALUES (?, ?, ?)", triples)

    def accept(self, accepted: Accepted) -> None:
        """One transaction."""
        run = self._database.executemany
        with self._all():
            for publication, key in accepted.publications:
                run("DELETE FROM fact WHERE s = ? AND p = ? AND o = ?", publication.removed)
                run("INSERT OR IGNORE INTO fact VALUES (?, ?, ?)", publication.added)
                if key is not None:
                    self._database.execute(_RETRY, (*key, publication.number))
            if accepted.publications:
                self._number(accepted.publications[-1][0].number)
            run("DELETE FROM retry WHERE number = ?", ((number,) for number in accepted.forgotten))
            kept = accepted.entries
            run("INSERT INTO entry VALUES (?, ?, ?)", ((each.log, each.number, _body(each.entry)) for each in kept))
            run("UPDATE log SET last = ? WHERE number = ?", ((last, log) for log, last in accepted.lasts.items()))
            run(_SUBSCRIBE, ((each.channel, each.name, each.acknowledged) for each in accepted.acknowledged))
            run("DELETE FROM entry WHERE log = ? AND number <= ?", accepted.settled.items())
            for log, channels in accepted.ended.items():
                for channel in channels:
                    self._drop(channel, log)

    def _number(self, newest: int) -> None:
        """The number of the newest publication, the only one that is kept."""
        self._database.execute("INSERT INTO publication VALUES (?, NULL)", (newest,))
        self._database.execute("DELETE FROM publication WHERE number < ?", (newest,))

    def create(self, channel: Opened) -> None:
        """A channel, and its log when it is the first."""
        with self._all():
            self._database.execute("INSERT OR IGNORE INTO log VALUES (?, ?)", (channel.log, channel.start))
            self._database.execute("INSERT INTO channel VALUES (?, ?, ?, ?)", channel[:4])
            if channel.owner != OPEN:
                self._database.execute(_OWN, (channel.name, "", channel.owner))

    def drop(self, channel: str, log: int | None) -> None:
        """A channel is gone with all that belongs to it."""
        with self._all():
            self._drop(channel, log)

    def _drop(self, channel: str, log: int | None) -> None:
        for table, column in (("channel", "name"), ("subscriber", "channel"), ("owner", "channel")):
            self._database.execute(f"DELETE FROM {table} WHERE {column} = ?", (channel,))
        for table, column in (("log", "number"), ("entry", "log")):
            self._database.execute(f"DELETE FROM {table} WHERE {column} = ?", (log,))

    def subscribe(self, subscriber: Subscriber) -> None:
        """A subscriber, from where it begins, and whose the name is."""
        with self._all():
            self._database.execute(_SUBSCRIBE, (subscriber.channel, subscriber.name, subscriber.acknowledged))
            if subscriber.owner != OPEN:
                self._database.execute(_OWN, (subscriber.channel, subscriber.name, subscriber.owner))

    def unsubscribe(self, channel: str, name: str) -> None:
        """A subscriber goes, and its name is nobody's."""
        with self._all():
            for table in ("subscriber", "owner"):
                self._database.execute(f"DELETE FROM {table} WHERE channel = ? AND name = ?", (channel, name))

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _all(self) -> "_Transaction":
        return _Transaction(self._database, self._path)


class _Transaction:
    """All or nothing; JournalError when the disk does not take it."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database, self._path = database, path

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            self._database.execute("COMMIT" if error is None else "ROLLBACK")
        except sqlite3.Error as wrong:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise JournalError(f"{self._path}: could not be written: {wrong}") from wrong
        if isinstance(error, sqlite3.Error):
            raise JournalError(f"{self._path}: could not be written: {error}") from error


def _body(entry: Entry) -> str:
    return msgspec.json.encode(entry).decode()


_entry = msgspec.json.Decoder(Entry).decode
