"""A journal in one SQLite database: a write-ahead log that is synchronised once for all publications taken together.

SQLite, because what one publication changes (facts, notifications, its key) must become durable as one, a crash at any
point must leave that state or the one before, and it is proven for that; docs/broker.md says what it costs. Damage that
SQLite does not see (a changed bit, a log that lost its end, a file of another journal) is found by checksums and a
witness.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, cast

import msgspec

from streamgauge.model.mistake import obstacle
from streamgauge.model.terms import Triple
from streamgauge.servers.broker.contract import (
    Accepted,
    AnswerEntry,
    Journal,
    JournalError,
    NotWrittenError,
    Opened,
    Publication,
    Subscriber,
    UnacknowledgedEntry,
)
from streamgauge.servers.broker.entry_groups import (
    GROUPS,
    GroupIndex,
    Runs,
    grouped,
    members_of,
    read_group,
    runs_of,
    write_group,
)
from streamgauge.servers.broker.soundness import (
    BEFORE_SUMS,
    TABLES,
    VERSION,
    Seal,
    Sealed,
    advice,
    checked,
    create_tables,
    fact_sum,
    log_of,
    mark_of,
    new_name,
    packed,
    refuse_vanished,
    row_sum,
    upgrade,
)
from streamgauge.servers.durability import Witness, WitnessFile, explained, open_beside, open_private, unreadable
from streamgauge.servers.http.access import OPEN
from streamgauge.servers.http.retries import RetryKey

__all__ = ["JournalError", "SqliteJournal"]

_INSERT: Final = {
    table: f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})"
    for table, columns in (("log", 3), ("channel", 5), ("subscriber", 4), ("owner", 4), ("entry", 4))
}
_RETRY: Final = "INSERT OR IGNORE INTO retry VALUES (?, ?, ?, ?, ?)"


class SqliteJournal(Journal):
    """The journal in a file, made when it is not there; the file is this broker's alone. One thread at a time.

    Keys are remembered until they are said to be forgotten; ``patience`` is how long to wait for a file that another
    still has (seconds). JournalError for a file that is damaged, which is left as it is; NotWrittenError, from whatever
    changes something, when the disk does not take it.
    """

    def __init__(self, path: Path, *, patience: float = 5.0) -> None:
        self._path = path
        refuse_vanished(path)
        with _log_preserved(path):
            with suppress(OSError):  # which SQLite meets too, and tells
                os.close(open_private(path))
            try:
                self._database = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
            except sqlite3.Error as error:
                raise JournalError(f"{path}: no journal can be kept here: {self._unopened(error)}") from error
            try:
                self._prepare()
            except (sqlite3.Error, OSError) as error:
                self._database.close()
                raise JournalError(self._refusal(error)) from error
            except BaseException:
                self._database.close()
                raise

    def _refusal(self, error: sqlite3.Error | OSError) -> str:
        """Why the file cannot be used."""
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")) or isinstance(error, OSError):
            return f"{self._path}: no journal can be kept here: {self._why(error)}"
        damaged = name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))
        if not damaged:
            return f"{self._path}: no journal can be kept here: {self._unopened(error)}"
        message = f"{self._path}: no journal can be kept here: page 1 is damaged or was never a journal's"
        return f"{message}: {advice(self._path)}"

    def _unopened(self, error: sqlite3.Error) -> str:
        """Why the file cannot be opened, which SQLite does not say; SQLite's words for any other error."""
        try:
            with self._path.open("ab"):
                return self._lost(error) or str(error)
        except OSError as found:
            return obstacle(found)

    def _why(self, error: sqlite3.Error | OSError) -> str:
        if lost := self._lost(error):
            return lost
        full = getattr(error, "sqlite_errorname", "") == "SQLITE_FULL"
        return explained(self._path.parent, str(error), full=full)

    def _lost(self, error: sqlite3.Error | OSError) -> str:
        """Where the disk cannot read the file, and how the rest is saved; empty for other errors."""
        lost = unreadable(self._path) if getattr(error, "sqlite_errorname", "").startswith("SQLITE_IOERR") else ""
        return f"{lost}: {advice(self._path)}" if lost else ""

    def _prepare(self) -> None:
        run = self._database.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("PRAGMA cache_size = -65536")
        run("PRAGMA temp_store = MEMORY")
        (version,) = run("PRAGMA user_version").fetchone()
        new = version == 0 and not run("SELECT 1 FROM sqlite_master").fetchone()
        with open_beside(mark_of(self._path)) as mark:
            witness = WitnessFile(mark)
            before, begun = witness.read(), not witness.empty
        self._refuse_version(version, new=new, begun=begun)
        if new:
            run("BEGIN IMMEDIATE")
            create_tables(self._database)
        elif version == BEFORE_SUMS:
            upgrade(self._path, self._database)
        if new or version == BEFORE_SUMS:
            self._begin()
        else:
            self._resume(*checked(self._path, self._database, before), before)

    def _refuse_version(self, version: int, *, new: bool, begun: bool) -> None:
        """JournalError for another version, and for a file without sums where there was one with them."""
        if begun and version != VERSION:
            raise JournalError(
                f"{self._path}: damaged: page 1 or the log: its version is {version} and that of the journal that was"
                f" kept here is {VERSION}: {advice(self._path)}; to begin anew remove {mark_of(self._path).name} too"
            )
        if not new and version not in (BEFORE_SUMS, VERSION):
            raise JournalError(f"{self._path}: its version is {version}, this reads {VERSION}: name another file")

    def _begin(self) -> None:
        """Name and seal a journal in the transaction that made its tables; publication 0 is there for the seal."""
        run, name = self._database.execute, new_name()
        run("INSERT INTO journal VALUES (?, ?)", (name, row_sum("journal", (name,))))
        if run("SELECT 1 FROM publication").fetchone() is None:
            run("INSERT INTO publication VALUES (0, ?, NULL)", (row_sum("publication", (0,)),))
        sealed = self._counted(1)
        run("UPDATE publication SET seal = ?", (packed(sealed),))
        run("COMMIT")
        self._resume(name, sealed, None)

    def _counted(self, number: int) -> Sealed:
        """The seal of all rows, for a transaction of that number."""
        queries = [f"SELECT count(*), coalesce(sum(sum), 0) FROM {table}" for table in TABLES]
        counts = [self._database.execute(query).fetchone() for query in queries]
        return Sealed(number, sum(rows for rows, _ in counts), sum(total for _, total in counts) & (1 << 63) - 1)

    def _resume(self, name: bytes, sealed: Sealed, before: Witness | None) -> None:
        """Go on from a seal; the witness agrees with it."""
        self._seal = Seal(name, sealed)
        self._recall()
        self._cursor, self._sealed = self._database.cursor(), cast(Sealed | None, None)
        self._mark = open_beside(mark_of(self._path))
        self._witness = WitnessFile(self._mark)
        if sealed.witness(name) != before:
            self._witness.begin(sealed.witness(name))

    def _recall(self) -> None:
        """Cached figures of the tables: the number of the newest publication, those of logs' last entries."""
        (self._newest,) = self._database.execute("SELECT max(number) FROM publication").fetchone()
        self._lasts = dict(self._database.execute("SELECT number, last FROM log").fetchall())
        self._groups = GroupIndex()
        for number, _, runs in self._grouped():
            self._groups.add(number, runs, tuple(self._lasts))

    def _grouped(self) -> Iterator[tuple[int, AnswerEntry, Runs]]:
        """The rows of entries that several logs have: their numbers, entries and runs."""
        query = "SELECT number, body FROM entry WHERE log = ? ORDER BY number"
        for number, body in self._database.execute(query, (GROUPS,)).fetchall():
            yield number, *read_group(body)

    def facts(self) -> Iterator[Triple]:
        """The explicit facts."""
        return iter(self._database.execute("SELECT s, p, o FROM fact"))

    def holding(self, triples: Iterable[Triple]) -> set[Triple]:
        """The triples among these that are explicit facts."""
        query = "SELECT 1 FROM fact WHERE s = ? AND p = ? AND o = ?"
        return {triple for triple in triples if self._database.execute(query, triple).fetchone()}

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

    def entries(self) -> Iterator[UnacknowledgedEntry]:
        """The entries that are kept."""
        rows = self._database.execute("SELECT log, number, body FROM entry WHERE log != ?", (GROUPS,))
        entries = [UnacknowledgedEntry(log, number, _entry(body)) for log, number, body in rows]
        settled = (
            "SELECT log, min(start + acknowledged) FROM subscriber JOIN channel ON channel = channel.name GROUP BY log"
        )
        wanted = dict(self._database.execute(settled))
        for _, entry, runs in self._grouped():
            entries += [
                UnacknowledgedEntry(log, number, entry)
                for log, number in members_of(runs)
                if log in self._lasts and number > wanted.get(log, number)
            ]
        return iter(sorted(entries, key=lambda entry: entry[:2]))

    def numbers(self) -> tuple[int, dict[int, int]]:
        """The last numbers of publications, and of entries by log."""
        (last,) = self._database.execute("SELECT max(number) FROM publication").fetchone()
        return last or 0, dict(self._database.execute("SELECT number, last FROM log"))

    def keys(self) -> list[tuple[RetryKey, int]]:
        """The keys that are remembered."""
        rows = self._database.execute("SELECT owner, key, digest, number FROM retry ORDER BY number")
        return [(RetryKey(owner, key, digest), number) for owner, key, digest, number in rows]

    def load(self, triples: Iterable[Triple]) -> None:
        """Many facts at once."""
        with self.filled() as database:
            rows = ((*triple, fact_sum(triple)) for triple in triples)
            database.executemany("INSERT OR IGNORE INTO fact VALUES (?, ?, ?, ?)", rows)

    def accept(self, accepted: Accepted) -> None:
        """One transaction."""
        with self.transaction():
            for publication, _ in accepted.publications:
                self._change(publication)
            for number in accepted.forgotten:
                self._delete("retry", "number = ?", number)
            for publication, key in accepted.publications:
                if key is not None:
                    self._remember((*key, publication.number))
            self._notify(accepted)
            for log, channels in accepted.ended.items():
                for channel in channels:
                    self._drop(channel, log)
            if accepted.publications:
                self._number(accepted.publications[-1][0].number)

    def _change(self, publication: Publication) -> None:
        """Facts of a publication leave and enter, those of them that make a difference."""
        cursor, run, seal = self._cursor, self._cursor.execute, self._seal
        for triple in publication.removed:
            run("DELETE FROM fact WHERE s = ? AND p = ? AND o = ?", triple)
            if cursor.rowcount:
                seal.leave(fact_sum(triple))
        for triple in publication.added:
            value = fact_sum(triple)
            run("INSERT OR IGNORE INTO fact VALUES (?, ?, ?, ?)", (*triple, value))
            if cursor.rowcount:
                seal.enter(value)

    def _notify(self, accepted: Accepted) -> None:
        """Entries of logs enter, those that nobody waits for leave; subscribers have acknowledged."""
        if accepted.entries:
            rows = [self._row(entry, members) for entry, members in grouped(accepted.entries)]
            self._cursor.executemany(_INSERT["entry"], [(*row, self._seal.entered("entry", row)) for row in rows])
        if accepted.lasts:
            self._cursor.executemany(
                "UPDATE log SET last = ?, sum = ? WHERE number = ?", self._advanced(accepted.lasts)
            )
        for subscriber in accepted.acknowledged:
            self._enrol(subscriber)
        for log, number in accepted.settled.items():
            if number > 0:
                self._delete("entry", "log = ? AND number <= ?", log, number)
                self._ungroup(self._groups.settle(log, number))

    def _row(self, entry: AnswerEntry, members: Sequence[tuple[int, int]]) -> tuple[int, int, str]:
        """The row of an entry of one log, or of several."""
        if len(members) == 1:
            return (*members[0], msgspec.json.encode(entry).decode())
        runs, number = runs_of(members), self._groups.newest + 1
        self._groups.add(number, runs)
        return GROUPS, number, write_group(entry, runs)

    def _ungroup(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._delete("entry", "log = ? AND number = ?", GROUPS, number)

    def _advanced(self, lasts: Mapping[int, int]) -> list[tuple[int, int, int]]:
        """Logs' new last entries, with the checksums of their rows, which take the place of those before."""
        rows = []
        for log, last in lasts.items():
            self._seal.leave(row_sum("log", (log, self._lasts[log])))
            self._lasts[log] = last
            rows.append((last, self._seal.entered("log", (log, last)), log))
        return rows

    def _remember(self, row: tuple[str, str, bytes, int]) -> None:
        """A key and its publication; one of the same name that is still there goes."""
        value = row_sum("retry", row)
        self._cursor.execute(_RETRY, (*row, value))
        if not self._cursor.rowcount:
            self._delete("retry", "owner = ? AND key = ?", *row[:2])
            self._cursor.execute(_RETRY, (*row, value))
        self._seal.enter(value)

    def _number(self, newest: int) -> None:
        """The number of the newest publication, with the seal: the only row of its table."""
        self._seal.leave(row_sum("publication", (self._newest,)))
        self._newest = newest
        value = self._seal.entered("publication", (newest,))
        self._sealed = self._seal.next
        self._cursor.execute(
            "UPDATE publication SET number = ?, sum = ?, seal = ?", (newest, value, packed(self._sealed))
        )

    def create(self, channel: Opened, subscribers: Sequence[Subscriber] = ()) -> None:
        """A channel with its first subscribers, and its log when it is the first."""
        with self.transaction():
            if channel.log not in self._lasts:
                self._insert("log", (channel.log, channel.start))
                self._lasts[channel.log] = channel.start
            self._insert("channel", channel[:4])
            if channel.owner != OPEN:
                self._own(channel.name, "", channel.owner)
            for subscriber in subscribers:
                self._begin_subscriber(subscriber)

    def drop(self, channel: str, log: int | None) -> None:
        """A channel is gone with all that belongs to it."""
        with self.transaction():
            self._drop(channel, log)

    def _drop(self, channel: str, log: int | None) -> None:
        for table, column in (("channel", "name"), ("subscriber", "channel"), ("owner", "channel")):
            self._delete(table, f"{column} = ?", channel)
        if log is not None:
            for table, column in (("log", "number"), ("entry", "log")):
                self._delete(table, f"{column} = ?", log)
            self._ungroup(self._groups.settle(log))
            self._lasts.pop(log, None)

    def subscribe(self, subscriber: Subscriber) -> None:
        """A subscriber, from where it begins, and whose the name is."""
        with self.transaction():
            self._begin_subscriber(subscriber)

    def _begin_subscriber(self, subscriber: Subscriber) -> None:
        self._enrol(subscriber)
        if subscriber.owner != OPEN:
            self._own(subscriber.channel, subscriber.name, subscriber.owner)

    def unsubscribe(self, channel: str, name: str) -> None:
        """A subscriber goes, and its name is nobody's."""
        with self.transaction():
            for table in ("subscriber", "owner"):
                self._delete(table, "channel = ? AND name = ?", channel, name)

    def _enrol(self, subscriber: Subscriber) -> None:
        """A subscriber takes the place of the one of the same name."""
        self._delete("subscriber", "channel = ? AND name = ?", subscriber.channel, subscriber.name)
        self._insert("subscriber", (subscriber.channel, subscriber.name, subscriber.acknowledged))

    def _own(self, channel: str, name: str, owner: str) -> None:
        """A name belongs to an identity; the owner of a channel has the name ''."""
        self._delete("owner", "channel = ? AND name = ?", channel, name)
        self._insert("owner", (channel, name, owner))

    def _insert(self, table: str, row: Sequence[object]) -> None:
        self._cursor.execute(_INSERT[table], (*row, self._seal.entered(table, row)))

    def _delete(self, table: str, which: str, *values: str | int) -> None:
        gone = self._database.execute(f"SELECT sum FROM {table} WHERE {which}", values).fetchall()
        if gone:
            self._database.execute(f"DELETE FROM {table} WHERE {which}", values)
            for (value,) in gone:
                self._seal.leave(value)

    def close(self) -> None:
        """Close the files."""
        self._database.close()
        self._mark.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block in which all that is changed becomes durable as one, sealed; then the witness says so.

        NotWrittenError when the disk does not take it: everything is as it was before.
        """
        self._sealed = None
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise self._not_written(error) from error
        try:
            yield
            sealed = self._sealed
            if sealed is None:
                sealed = self._seal.next
                self._cursor.execute("UPDATE publication SET seal = ?", (packed(sealed),))
            self._cursor.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise self._not_written(error) from error
        except BaseException:
            self._roll_back()
            raise
        self._witness.follow(self._seal.commit(sealed))

    @contextmanager
    def filled(self) -> Iterator[sqlite3.Connection]:
        """The connection, for a block that inserts rows with their sums; they are counted when it ends."""
        with self.transaction():
            yield self._database
            self._recall()
            self._seal.count(self._counted(0))

    def _roll_back(self) -> None:
        """Everything is as it was before the transaction."""
        if self._database.in_transaction:
            with suppress(sqlite3.Error):  # what it met first is what is told
                self._database.execute("ROLLBACK")
        self._seal.roll_back()
        self._recall()

    def _not_written(self, error: sqlite3.Error) -> JournalError:
        """The error for a write that failed."""
        name = error.sqlite_errorname if hasattr(error, "sqlite_errorname") else ""
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return JournalError(f"{self._path}: damaged while it was written ({error}): {advice(self._path)}")
        return NotWrittenError(f"{self._path}: could not be written: {self._why(error)}")


@contextmanager
def _log_preserved(path: Path) -> Iterator[None]:
    """While a journal is looked at its log has a second name: SQLite removes the log of one that is refused."""
    log = log_of(path)
    kept = log.with_name(f"{log.name}-before")
    if kept.exists() and not log.exists():
        kept.rename(log)  # a broker that refused the journal was killed before it could
    kept.unlink(missing_ok=True)
    with suppress(OSError):  # there is no log, or the file system has no second names
        os.link(log, kept)
    try:
        yield
    except BaseException:
        if kept.exists() and not log.exists():
            kept.rename(log)
        raise
    finally:
        kept.unlink(missing_ok=True)


_entry = msgspec.json.Decoder(AnswerEntry).decode
