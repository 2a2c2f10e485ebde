"""Times of quads, in three structures over a key-value store.

``EndTimes`` has the known ends of current quads (sorted by time), ``ChangeLog`` the quads removed and added by version,
and ``PastRuns`` the intervals during which removed quads held, for data sets that keep their past.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final, TypeAlias

from streamgauge.servers.fragments.store import EditSketch, IndexEdit, Keep, KeyValueStore, SortedIndex, Writes
from streamgauge.servers.fragments.store.quad_keys import (
    INDEX_ORDERS,
    KEY,
    TIME,
    in_order,
    quad_key,
    rows,
    stamped,
    time_of,
)

BEFORE_ALL: Final = bytes(TIME)
"""The stamp of "always": smaller than any time."""

BY_KEY: Final = b"k"
BY_END: Final = b"e"
"""The names of the two orders of ends."""


class EndTimes:
    """Ends (ms) of keys of ``width`` bytes, at most one per key; ``nearest`` inspects at most ``few`` of them."""

    few: Final = 256

    def __init__(self, width: int, records: KeyValueStore) -> None:
        self._width = width
        self._by_key, self._by_end = (
            SortedIndex(BY_KEY, width + TIME, records),
            SortedIndex(BY_END, TIME + width, records),
        )

    def __len__(self) -> int:
        """The number of keys with an end."""
        return len(self._by_key)

    def end(self, key: bytes) -> int | None:
        """The end of a key (ms), ``None`` if unknown."""
        entry = self._by_key.one(key)
        return time_of(entry[self._width :]) if entry else None

    def nearest(self, wanted: Callable[[bytes], bool], now: int) -> int | None:
        """A lower bound of the earliest end after ``now`` of a wanted key; ``None`` if no key ends.

        It is exact if that end is among the first ``few`` after ``now``, else the last of these. The caller uses it as
        the expiry of a cached page, which may be too early but never too late.
        """
        last = None
        for entry in islice(self._by_end.above(stamped(now + 1)), self.few):
            last = time_of(entry[:TIME])
            if wanted(entry[TIME:]):
                return last
        longer = next(islice(self._by_end.above(stamped(now + 1)), self.few, None), None) is not None
        return last if longer else None

    def until(self, now: int, limit: int) -> Iterator[bytes]:
        """At most ``limit`` keys that ended at or before ``now``, earliest end first."""
        # Ends are whole ms, so those at `now` are the ones below `now + 1`.
        count = min(limit, self._by_end.rank(stamped(now + 1)))
        return (entry[TIME:] for entry in self._by_end.first(count))

    def edits(
        self, ended: Mapping[bytes, int | None], ends: Mapping[bytes, int | None]
    ) -> list[tuple[SortedIndex, EditSketch]]:
        """The edits that replace the current ends ``ended`` by ``ends``; empty if nothing differs."""
        gone = [(key, end) for key, end in ended.items() if end is not None and ends.get(key) != end]
        come = [(key, end) for key, end in ends.items() if end is not None and ended.get(key) != end]
        if not (gone or come):
            return []
        by_key = EditSketch(
            sorted(key + stamped(end) for key, end in gone), sorted(key + stamped(end) for key, end in come)
        )
        by_end = EditSketch(
            sorted(stamped(end) + key for key, end in gone), sorted(stamped(end) + key for key, end in come)
        )
        return [(self._by_key, by_key), (self._by_end, by_end)]


MAX_VERSIONS: Final = 1_000
MAX_LOGGED_QUADS: Final = 100_000
"""Limits of the log: versions, and quads of all versions together; the last version is always kept."""

_LOG = b"l"
LoggedChange: TypeAlias = tuple[bytes, bytes]
"""Keys of the removed quads, concatenated, and of the added ones."""


class ChangeLog:
    """The log of changes by version; ``width`` is the size of a quad's key.

    A removed quad may be the last use of a term. Its number must not be reused while a logged change names it, so the
    log counts the terms of removed quads (``mentions``).
    """

    def __init__(self, width: int, records: KeyValueStore) -> None:
        self._width, self._records = width, records
        self._kept = deque((int.from_bytes(key[1:]), size // width) for key, size in records.sizes(_LOG))
        self._quads = sum(quads for _, quads in self._kept)
        self._mentioned: Counter[bytes] = Counter()
        for version, _ in self._kept:
            self._mentioned.update(_term_numbers(self._change(version)[0]))

    def since(self, version: int, now: int) -> Iterator[LoggedChange] | None:
        """The changes after a version up to version ``now``, oldest first; ``None`` if some are no longer logged."""
        # A version of the future is of another store.
        if version > now or (version < now and (not self._kept or self._kept[0][0] > version + 1)):
            return None
        return (self._change(change) for change, _ in self._kept if change > version)

    def writes(self, version: int, change: LoggedChange) -> Writes:
        """The writes of a new version: its record, and the deletion of the oldest ones beyond the limits."""
        removed, added = change
        # The length in front: keys have no separators.
        value = len(removed).to_bytes(8) + removed + added
        # In the same transaction as the new version, so that the log never exceeds its limits.
        gone = {self._key(key): None for key in self._forgotten((len(removed) + len(added)) // self._width)}
        return {**gone, self._key(version): value}

    def forgets(self, change: LoggedChange) -> bytes:
        """The keys of quads removed in the versions that a new one displaces."""
        removed, added = change
        versions = self._forgotten((len(removed) + len(added)) // self._width)
        return b"".join(self._change(version)[0] for version in versions)

    def mentions(self, number: bytes) -> bool:
        """Whether a term is in a quad that a logged version removed."""
        return number in self._mentioned

    def apply(self, version: int, change: LoggedChange, forgotten: bytes) -> None:
        """Update the counts in memory for a new version and the keys that it ``forgets``, once its writes are shown."""
        quads = sum(map(len, change)) // self._width
        for _ in self._forgotten(quads):
            self._quads -= self._kept.popleft()[1]
        for number in _term_numbers(forgotten):
            self._mentioned[number] -= 1
            if not self._mentioned[number]:
                del self._mentioned[number]
        self._mentioned.update(_term_numbers(change[0]))
        self._kept.append((version, quads))
        self._quads += quads

    def _forgotten(self, quads: int) -> list[int]:
        """The versions that a new one with ``quads`` quads displaces."""
        gone: list[int] = []
        left, versions = self._quads + quads, len(self._kept) + 1
        for version, size in self._kept:
            if left <= MAX_LOGGED_QUADS and versions <= MAX_VERSIONS:
                break
            gone.append(version)
            left, versions = left - size, versions - 1
        return gone

    def _change(self, version: int) -> LoggedChange:
        value = self._records.get(self._key(version))
        if value is None:
            raise self._records.lost(self._key(version))
        middle = 8 + int.from_bytes(value[:8])
        return value[8:middle], value[middle:]

    @staticmethod
    def _key(version: int) -> bytes:
        return _LOG + version.to_bytes(8)


def _term_numbers(keys: bytes) -> Iterator[bytes]:
    return chain.from_iterable(rows(keys))


_SINCE, _LAST = b"m:since", b"m:last"
_RUN = KEY + 2 * TIME
_DROPPED = 64


@dataclass(frozen=True, slots=True)
class _RunChanges:
    """Runs (key, final, initial) and beginnings (key, initial) that a change inserts and deletes.

    ``runs`` are inserted and ``ended`` deleted; ``begun`` are beginnings inserted and ``left`` those deleted.
    """

    runs: set[bytes] = field(default_factory=set)
    ended: set[bytes] = field(default_factory=set)
    begun: set[bytes] = field(default_factory=set)
    left: set[bytes] = field(default_factory=set)


class PastRuns:
    """Runs (intervals) of removed quads in the six orders and by their ends; ``keep`` limits how many are kept.

    Beginnings of current quads are kept too, unless they held before the store was loaded. A quad that is added again
    at the instant at which it ended continues its run. For example: a quad is added at 10 and removed at 20, which
    gives the run [10, 20). Added again at 20, that run is deleted and the quad's beginning is 10; added again at 25
    instead, the run stays and the beginning is 25.
    """

    def __init__(self, keep: Keep, records: KeyValueStore) -> None:
        self._keep, self._records = keep, records
        self._runs = [SortedIndex(b"ABCDEF"[number : number + 1], _RUN, records) for number in range(len(INDEX_ORDERS))]
        self._by_final, self._begun = SortedIndex(b"G", _RUN, records), SortedIndex(b"H", KEY + TIME, records)

    def __len__(self) -> int:
        return len(self._by_final)

    @property
    def since(self) -> int | None:
        """The time (ms) from which on the past is complete; ``None`` before the first change."""
        since = self._records.get(_SINCE)
        return None if since is None else time_of(since)

    def began(self, key: bytes) -> int | None:
        """When a current quad began (ms); ``None`` if it was loaded."""
        initial = self._initial(key)
        return None if initial == BEFORE_ALL else time_of(initial)

    def at(self, number: int, prefix: bytes, wanted: Callable[[bytes], bool], instant: int) -> Iterator[bytes]:
        """Keys of removed quads that held at an instant, with a prefix in order ``number``; ``wanted`` tests a key."""
        later = stamped(instant + 1)
        # The smaller of two ranges is scanned: runs with the prefix, or runs of any quad that ended after the instant.
        if self._runs[number].count(prefix) > len(self) - self._by_final.rank(later):
            ended_later = (entry[TIME : TIME + KEY] for entry in self._by_final.above(later) if entry[-TIME:] < later)
            return filter(wanted, ended_later)
        runs = self._runs[number].within(prefix)
        return (quad_key(run[:KEY], number) for run in runs if run[-TIME:] < later <= run[KEY:-TIME])

    def loaded(self, at: int) -> Writes:
        """The writes of a load at ``at``, whose quads count as always having held."""
        return {_SINCE: stamped(at), _LAST: stamped(at)}

    def edit(
        self,
        at: int,
        left: Mapping[bytes, int | None],
        renewed: Mapping[bytes, int | None],
        come: Mapping[bytes, int | None],
    ) -> tuple[list[tuple[SortedIndex, IndexEdit]], Writes, bytes]:
        """The edits, the writes and the keys of dropped runs for a change at ``at`` (ms).

        ``left`` and ``renewed`` are the keys of quads that are removed or get another end, with their former end;
        ``come`` are the new keys with their ends. A change dated before the last one takes effect at that one's time.
        """
        last = self._records.get(_LAST)
        # Runs of a quad must not overlap, whatever a clock that was set back says.
        at = at if last is None else max(at, time_of(last))
        recorded = _RunChanges()
        for key, end in left.items():
            # A quad that had ended by itself held until then, not until it was swept.
            self._leave(recorded, key, at if end is None else min(at, end))
        for key, end in renewed.items():
            # A quad that had ended by itself before it got a new end did not hold in between.
            if end is not None and end < at:
                self._leave(recorded, key, end)
                recorded.begun.add(key + stamped(at))
        for key, end in come.items():
            self._come(recorded, key, at, end)
        dropped = self._outlived(recorded, at)
        recorded.ended.update(entry[TIME : TIME + KEY] + entry[:TIME] + entry[-TIME:] for entry in dropped)
        # The past is complete only from the end of the last run that was dropped.
        since = max(self._records.get(_SINCE) or stamped(at), dropped[-1][:TIME] if dropped else BEFORE_ALL)
        keys = b"".join(entry[TIME : TIME + KEY] for entry in dropped)
        return self._edits(recorded), {_LAST: stamped(at), _SINCE: since}, keys

    def uses(self, number: bytes) -> bool:
        """Whether a term is in a quad of a run."""
        # The first four of six orders begin with each of the four places.
        return any(order.one(number) for order in self._runs[:4])

    def _initial(self, key: bytes) -> bytes:
        return self._begun.one(key)[KEY:] or BEFORE_ALL

    def _leave(self, recorded: _RunChanges, key: bytes, final: int) -> None:
        initial = self._initial(key)
        if initial != BEFORE_ALL:
            recorded.left.add(key + initial)
        # A quad that was added and removed at the same instant has never held.
        if initial < stamped(final):
            recorded.runs.add(key + stamped(final) + initial)

    def _come(self, recorded: _RunChanges, key: bytes, at: int, end: int | None) -> None:
        """Record the beginning of a key: now, or that of a run that ends now.

        A quad that has already ended has none.
        """
        run = self._runs[0].one(key + stamped(at)) if end is None or end > at else b""
        recorded.ended.update([run] if run else ())
        initial = run[-TIME:] if run else stamped(at)
        if initial != BEFORE_ALL:
            recorded.begun.add(key + initial)

    def _outlived(self, recorded: _RunChanges, at: int) -> list[bytes]:
        """The runs that ``keep`` no longer covers, earliest end first.

        Bounded, so that no change pays for all at once.
        """
        surplus = 0 if self._keep.runs is None else len(self) + len(recorded.runs) - self._keep.runs
        outlived = 0 if self._keep.span is None else self._by_final.rank(stamped(at - self._keep.span))
        return list(self._by_final.first(min(max(surplus, outlived), _DROPPED + 2 * len(recorded.runs))))

    def _edits(self, recorded: _RunChanges) -> list[tuple[SortedIndex, IndexEdit]]:
        """The edits of all indexes of runs."""
        runs, ended = recorded.runs, recorded.ended
        edits = [
            (order, order.edit(EditSketch(_in_order(ended, number), _in_order(runs, number))))
            for number, order in enumerate(self._runs)
        ]
        edits.append((self._by_final, self._by_final.edit(EditSketch(_by_final(ended), _by_final(runs)))))
        edits.append((self._begun, self._begun.edit(EditSketch(sorted(recorded.left), sorted(recorded.begun)))))
        return edits


def _in_order(runs: Iterable[bytes], number: int) -> list[bytes]:
    return sorted(in_order(run, number) + run[KEY:] for run in runs)


def _by_final(runs: Iterable[bytes]) -> list[bytes]:
    return sorted(run[KEY:-TIME] + run[:KEY] + run[-TIME:] for run in runs)
