"""The times of quads: when they end, which changes were last, and when those that left were there.

Three parts, each over a key-value store: ``EndTimes`` (the nearest end first), ``ChangeLog`` (quads removed and added,
by version) and ``PastRuns`` (runs of time of quads that left, kept only where a data set keeps its past).
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
"""Before any time."""

BY_KEY: Final = b"k"
BY_END: Final = b"e"
"""The names of the two orders of ends."""


class EndTimes:
    """Ends (ms) of keys of ``width`` bytes over a key-value store; a key has one or none.

    ``few`` ends at most are looked at for the nearest.
    """

    few: Final = 256

    def __init__(self, width: int, records: KeyValueStore) -> None:
        self._width = width
        self._by_key, self._by_end = (
            SortedIndex(BY_KEY, width + TIME, records),
            SortedIndex(BY_END, TIME + width, records),
        )

    def __len__(self) -> int:
        """How many keys have an end."""
        return len(self._by_key)

    def end(self, key: bytes) -> int | None:
        """When a key ends."""
        entry = self._by_key.one(key)
        return time_of(entry[self._width :]) if entry else None

    def nearest(self, wanted: Callable[[bytes], bool], now: int) -> int | None:
        """The earliest end after ``now`` of a wanted key, or that of the last that was looked at, which is before."""
        last = None
        for entry in islice(self._by_end.above(stamped(now + 1)), self.few):
            last = time_of(entry[:TIME])
            if wanted(entry[TIME:]):
                return last
        longer = next(islice(self._by_end.above(stamped(now + 1)), self.few, None), None) is not None
        return last if longer else None

    def until(self, now: int, limit: int) -> Iterator[bytes]:
        """Keys that ended at or before ``now``, those that ended first, at most ``limit``."""
        count = min(limit, self._by_end.rank(stamped(now + 1)))
        return (entry[TIME:] for entry in self._by_end.first(count))

    def edits(
        self, ended: Mapping[bytes, int | None], ends: Mapping[bytes, int | None]
    ) -> list[tuple[SortedIndex, EditSketch]]:
        """The orders that change by other ends, ``ended`` being those there are; none when they are the same."""
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


VERSIONS: Final = 1_000
QUADS: Final = 100_000
"""Remembered are at most so many versions, and versions of at most so many quads in all (but always the last)."""

_LOG = b"l"
LoggedChange: TypeAlias = tuple[bytes, bytes]
"""Keys of quads removed, one after the other; and added."""


class ChangeLog:
    """The log over a key-value store; ``width`` is that of a quad's key."""

    def __init__(self, width: int, records: KeyValueStore) -> None:
        self._width, self._records = width, records
        self._kept = deque((int.from_bytes(key[1:]), size // width) for key, size in records.sizes(_LOG))
        self._quads = sum(quads for _, quads in self._kept)
        self._mentioned: Counter[bytes] = Counter()
        for version, _ in self._kept:
            self._mentioned.update(_term_numbers(self._change(version)[0]))

    def since(self, version: int, now: int) -> Iterator[LoggedChange] | None:
        """The changes after a version up to ``now``, oldest first; ``None`` when they are not all remembered."""
        if version > now or (version < now and (not self._kept or self._kept[0][0] > version + 1)):
            return None
        return (self._change(change) for change, _ in self._kept if change > version)

    def writes(self, version: int, change: LoggedChange) -> Writes:
        """The writes of a new version: its own record, and the removal of versions forgotten for it."""
        removed, added = change
        value = len(removed).to_bytes(8) + removed + added
        gone = {self._key(key): None for key in self._forgotten((len(removed) + len(added)) // self._width)}
        return {**gone, self._key(version): value}

    def forgets(self, change: LoggedChange) -> bytes:
        """The keys of quads removed in the versions that are forgotten for a new one."""
        removed, added = change
        versions = self._forgotten((len(removed) + len(added)) // self._width)
        return b"".join(self._change(version)[0] for version in versions)

    def mentions(self, number: bytes) -> bool:
        """Whether a term of that number is in a quad that was removed in a version that is remembered."""
        return number in self._mentioned

    def apply(self, version: int, change: LoggedChange, forgotten: bytes) -> None:
        """Hold a new version, and not the keys it ``forgets``, once its writes are shown."""
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
        """The versions that go when one of so many quads comes."""
        gone: list[int] = []
        left, versions = self._quads + quads, len(self._kept) + 1
        for version, size in self._kept:
            if left <= QUADS and versions <= VERSIONS:
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
    """The effect of a change on runs (key, final, initial) and on beginnings (key, initial)."""

    runs: set[bytes] = field(default_factory=set)
    ended: set[bytes] = field(default_factory=set)
    begun: set[bytes] = field(default_factory=set)
    left: set[bytes] = field(default_factory=set)


class PastRuns:
    """Runs on a records, in the orders of quads and by their ends; ``keep`` says which are dropped.

    A quad that is added again at the instant at which it ended goes on: its two runs are one.
    """

    def __init__(self, keep: Keep, records: KeyValueStore) -> None:
        self._keep, self._records = keep, records
        self._runs = [SortedIndex(b"ABCDEF"[number : number + 1], _RUN, records) for number in range(len(INDEX_ORDERS))]
        self._by_final, self._begun = SortedIndex(b"G", _RUN, records), SortedIndex(b"H", KEY + TIME, records)

    def __len__(self) -> int:
        return len(self._by_final)

    @property
    def since(self) -> int | None:
        """From when on (ms) it is known what was there; ``None`` before the first change."""
        since = self._records.get(_SINCE)
        return None if since is None else time_of(since)

    def began(self, key: bytes) -> int | None:
        """Since when a key is there; ``None`` since ever."""
        initial = self._initial(key)
        return None if initial == BEFORE_ALL else time_of(initial)

    def at(self, number: int, prefix: bytes, wanted: Callable[[bytes], bool], instant: int) -> Iterator[bytes]:
        """Keys that were there at an instant and left, of those that begin so in a sequence, which are ``wanted``."""
        later = stamped(instant + 1)
        if self._runs[number].count(prefix) > len(self) - self._by_final.rank(later):
            ended_later = (entry[TIME : TIME + KEY] for entry in self._by_final.above(later) if entry[-TIME:] < later)
            return filter(wanted, ended_later)
        runs = self._runs[number].within(prefix)
        return (quad_key(run[:KEY], number) for run in runs if run[-TIME:] < later <= run[KEY:-TIME])

    def loaded(self, at: int) -> Writes:
        """The writes of a load, whose quads count as there since ever."""
        return {_SINCE: stamped(at), _LAST: stamped(at)}

    def edit(
        self,
        at: int,
        left: Mapping[bytes, int | None],
        renewed: Mapping[bytes, int | None],
        come: Mapping[bytes, int | None],
    ) -> tuple[list[tuple[SortedIndex, IndexEdit]], Writes, bytes]:
        """The edits and writes of a change at ``at``: keys that leave or are renewed, with their former end; new keys.

        Third are the keys of runs that are dropped. A change dated before the last one counts at the last one's time.
        """
        last = self._records.get(_LAST)
        at = at if last is None else max(at, time_of(last))
        recorded = _RunChanges()
        for key, end in left.items():
            self._leave(recorded, key, at if end is None else min(at, end))
        for key, end in renewed.items():
            if end is not None and end < at:
                self._leave(recorded, key, end)
                recorded.begun.add(key + stamped(at))
        for key, end in come.items():
            self._come(recorded, key, at, end)
        dropped = self._outlived(recorded, at)
        recorded.ended.update(entry[TIME : TIME + KEY] + entry[:TIME] + entry[-TIME:] for entry in dropped)
        since = max(self._records.get(_SINCE) or stamped(at), dropped[-1][:TIME] if dropped else BEFORE_ALL)
        keys = b"".join(entry[TIME : TIME + KEY] for entry in dropped)
        return self._edits(recorded), {_LAST: stamped(at), _SINCE: since}, keys

    def uses(self, number: bytes) -> bool:
        """Whether a term of that number is in a run."""
        return any(order.one(number) for order in self._runs[:4])

    def _initial(self, key: bytes) -> bytes:
        return self._begun.one(key)[KEY:] or BEFORE_ALL

    def _leave(self, recorded: _RunChanges, key: bytes, final: int) -> None:
        initial = self._initial(key)
        if initial != BEFORE_ALL:
            recorded.left.add(key + initial)
        if initial < stamped(final):
            recorded.runs.add(key + stamped(final) + initial)

    def _come(self, recorded: _RunChanges, key: bytes, at: int, end: int | None) -> None:
        """A key begins now, or when the run did that ends now, unless it comes when it has ended already."""
        run = self._runs[0].one(key + stamped(at)) if end is None or end > at else b""
        recorded.ended.update([run] if run else ())
        initial = run[-TIME:] if run else stamped(at)
        if initial != BEFORE_ALL:
            recorded.begun.add(key + initial)

    def _outlived(self, recorded: _RunChanges, at: int) -> list[bytes]:
        """The oldest runs, by their ends, that the policy does not keep, at most a number for each change."""
        surplus = 0 if self._keep.runs is None else len(self) + len(recorded.runs) - self._keep.runs
        outlived = 0 if self._keep.span is None else self._by_final.rank(stamped(at - self._keep.span))
        return list(self._by_final.first(min(max(surplus, outlived), _DROPPED + 2 * len(recorded.runs))))

    def _edits(self, recorded: _RunChanges) -> list[tuple[SortedIndex, IndexEdit]]:
        """The orders that change: runs that came and went within the change are in none."""
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
