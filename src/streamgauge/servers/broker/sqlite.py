"""The broker's journal in SQLite: the effects of publications (facts, notifications, keys) are stored atomically."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from streamgauge.model.terms import Triple
from streamgauge.servers.broker.contract import (
    Accepted,
    AnswerEntry,
    Journal,
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
from streamgauge.servers.broker.schema import JOURNAL, fact_sum
from streamgauge.servers.http.access import OPEN
from streamgauge.servers.http.retries import RetryKey
from streamgauge.servers.sealed.database import SealedDatabase
from streamgauge.servers.sealed.soundness import row_sum

_RETRY: Final = "INSERT OR IGNORE INTO retry VALUES (?, ?, ?, ?, ?)"


class SqliteJournal(SealedDatabase, Journal):
    """The journal in a file, created if missing and locked by this broker. For one thread at a time.

    Keys are stored until ``Accepted.forgotten`` names their publications.
    """

    schema = JOURNAL

    def _recall(self) -> None:
        """Read figures that are cached: the newest publication, the last entry of each log, the groups."""
        super()._recall()
        self._lasts = dict(self._database.execute("SELECT number, last FROM log").fetchall())
        self._groups = GroupIndex()
        for number, _, runs in self._grouped():
            self._groups.add(number, runs, tuple(self._lasts))

    def _grouped(self) -> Iterator[tuple[int, AnswerEntry, Runs]]:
        """The shared rows: their numbers, entries and runs."""
        query = "SELECT number, body FROM entry WHERE log = ? ORDER BY number"
        for number, body in self._database.execute(query, (GROUPS,)).fetchall():
            yield number, *read_group(body)

    def facts(self) -> Iterator[Triple]:
        """The stored explicit facts."""
        return iter(self._database.execute("SELECT s, p, o FROM fact"))

    def holding(self, triples: Iterable[Triple]) -> set[Triple]:
        """Those of the triples that are stored explicit facts."""
        query = "SELECT 1 FROM fact WHERE s = ? AND p = ? AND o = ?"
        return {triple for triple in triples if self._database.execute(query, triple).fetchone()}

    def channels(self) -> list[Opened]:
        """All channels, in order of creation."""
        query = (
            "SELECT channel.name, query, log, start, coalesce(owner, '') FROM channel"
            " LEFT JOIN owner ON owner.channel = channel.name AND owner.name = '' ORDER BY channel.rowid"
        )
        return [Opened(*row) for row in self._database.execute(query)]

    def subscribers(self) -> list[Subscriber]:
        """All subscribers of all channels."""
        query = (
            "SELECT channel, name, acknowledged, coalesce(owner, '') FROM subscriber"
            " LEFT JOIN owner USING (channel, name)"
        )
        return [Subscriber(*row) for row in self._database.execute(query)]

    def entries(self) -> Iterator[UnacknowledgedEntry]:
        """The stored entries, by log and number; of shared rows only those that a subscriber still needs."""
        # Shared rows are added below, hence the sort at the end.
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
        """The stored keys, the newest last."""
        rows = self._database.execute("SELECT owner, key, digest, number FROM retry ORDER BY number")
        return [(RetryKey(owner, key, digest), number) for owner, key, digest, number in rows]

    def load(self, triples: Iterable[Triple]) -> None:
        """Store many facts in one transaction."""
        with self.filled() as database:
            rows = ((*triple, fact_sum(triple)) for triple in triples)
            database.executemany("INSERT OR IGNORE INTO fact VALUES (?, ?, ?, ?)", rows)

    def accept(self, accepted: Accepted) -> None:
        """Store everything in one transaction."""
        with self.transaction():
            for publication, _ in accepted.publications:
                self._change(publication)
            # Before new keys are stored: a new key may have the name of a forgotten one.
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
        """Delete and insert facts; only rows that really change are counted in the seal."""
        cursor, run, seal = self._cursor, self._cursor.execute, self._seal
        for triple in publication.removed:
            run("DELETE FROM fact WHERE s = ? AND p = ? AND o = ?", triple)
            # Facts are the bulk of a publication: computing their checksum costs less than reading the stored one.
            if cursor.rowcount:
                seal.leave(fact_sum(triple))
        for triple in publication.added:
            value = fact_sum(triple)
            run("INSERT OR IGNORE INTO fact VALUES (?, ?, ?, ?)", (*triple, value))
            if cursor.rowcount:
                seal.enter(value)

    def _notify(self, accepted: Accepted) -> None:
        """Insert entries, store acknowledgements, and delete settled entries."""
        if accepted.entries:
            rows = [self._row(entry, members) for entry, members in grouped(accepted.entries)]
            self._cursor.executemany(self._inserts["entry"], [(*row, self._seal.entered("entry", row)) for row in rows])
        if accepted.lasts:
            self._cursor.executemany(
                "UPDATE log SET last = ?, sum = ? WHERE number = ?", self._advanced(accepted.lasts)
            )
        for subscriber in accepted.acknowledged:
            self._enrol(subscriber)
        for log, number in accepted.settled.items():
            if number > 0:
                # The key (log, number) makes it a range of the primary key.
                self._delete("entry", "log = ? AND number <= ?", log, number)
                self._ungroup(self._groups.settle(log, number))

    def _row(self, entry: AnswerEntry, members: Sequence[tuple[int, int]]) -> tuple[int, int, str]:
        """The row of an entry: its own, or a shared one if several logs have it."""
        if len(members) == 1:
            return (*members[0], msgspec.json.encode(entry).decode())
        runs, number = runs_of(members), self._groups.newest + 1
        self._groups.add(number, runs)
        return GROUPS, number, write_group(entry, runs)

    def _ungroup(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._delete("entry", "log = ? AND number = ?", GROUPS, number)

    def _advanced(self, lasts: Mapping[int, int]) -> list[tuple[int, int, int]]:
        """(last, checksum, log) of logs with new entries; the seal is updated."""
        rows = []
        for log, last in lasts.items():
            self._seal.leave(row_sum("log", (log, self._lasts[log])))
            self._lasts[log] = last
            rows.append((last, self._seal.entered("log", (log, last)), log))
        return rows

    def _remember(self, row: tuple[str, str, bytes, int]) -> None:
        """Store a key, replacing one of the same name."""
        value = row_sum("retry", row)
        self._cursor.execute(_RETRY, (*row, value))
        if not self._cursor.rowcount:
            self._delete("retry", "owner = ? AND key = ?", *row[:2])
            self._cursor.execute(_RETRY, (*row, value))
        self._seal.enter(value)

    def create(self, channel: Opened, subscribers: Sequence[Subscriber] = ()) -> None:
        """Store a channel with its first subscribers, and its log if that is new."""
        with self.transaction():
            # A channel that shares a log finds it here.
            if channel.log not in self._lasts:
                self._insert("log", (channel.log, channel.start))
                self._lasts[channel.log] = channel.start
            self._insert("channel", channel[:4])
            if channel.owner != OPEN:
                self._own(channel.name, "", channel.owner)
            for subscriber in subscribers:
                self._begin_subscriber(subscriber)

    def drop(self, channel: str, log: int | None) -> None:
        """Delete a channel with everything that belongs to it."""
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
        """Store a subscriber with its initial number, and the owner of its name."""
        with self.transaction():
            self._begin_subscriber(subscriber)

    def _begin_subscriber(self, subscriber: Subscriber) -> None:
        self._enrol(subscriber)
        if subscriber.owner != OPEN:
            self._own(subscriber.channel, subscriber.name, subscriber.owner)

    def unsubscribe(self, channel: str, name: str) -> None:
        """Delete a subscriber and the owner of its name."""
        with self.transaction():
            for table in ("subscriber", "owner"):
                self._delete(table, "channel = ? AND name = ?", channel, name)

    def _enrol(self, subscriber: Subscriber) -> None:
        """Store a subscriber, replacing one of the same name."""
        # Deleted and inserted, not replaced: REPLACE would not tell the checksum of the old row, which has to leave the
        # seal.
        self._delete("subscriber", "channel = ? AND name = ?", subscriber.channel, subscriber.name)
        self._insert("subscriber", (subscriber.channel, subscriber.name, subscriber.acknowledged))

    def _own(self, channel: str, name: str, owner: str) -> None:
        """Store the owner of a name; the owner of the channel itself has the name ''."""
        self._delete("owner", "channel = ? AND name = ?", channel, name)
        self._insert("owner", (channel, name, owner))


_entry = msgspec.json.Decoder(AnswerEntry).decode
