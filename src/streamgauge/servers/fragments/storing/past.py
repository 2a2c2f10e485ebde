"""When quads were there: runs of time of those that are not any more, and since when the others are."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from streamgauge.servers.fragments.storing import Keep
from streamgauge.servers.fragments.storing.endings import EVER, TIME, stamped, time_of
from streamgauge.servers.fragments.storing.order import Edit, EditSketch, Order
from streamgauge.servers.fragments.storing.shelf import Shelf, Writes
from streamgauge.servers.fragments.storing.turns import KEY, TURNS, straight, turned

_SINCE, _LAST = b"m:since", b"m:last"
_RUN = KEY + 2 * TIME
_DROPPED = 64


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What a change makes of runs (key, final, initial) and of beginnings (key, initial)."""

    runs: set[bytes] = field(default_factory=set)
    ended: set[bytes] = field(default_factory=set)
    begun: set[bytes] = field(default_factory=set)
    left: set[bytes] = field(default_factory=set)


class Past:
    """Runs on a shelf, in the orders of quads and by their ends; ``keep`` says which are dropped.

    A quad that is added again at the instant at which it ended goes on: its two runs are one.
    """

    def __init__(self, keep: Keep, shelf: Shelf) -> None:
        self._keep, self._shelf = keep, shelf
        self._runs = [Order(b"ABCDEF"[number : number + 1], _RUN, shelf) for number in range(len(TURNS))]
        self._by_final, self._begun = Order(b"G", _RUN, shelf), Order(b"H", KEY + TIME, shelf)

    def __len__(self) -> int:
        return len(self._by_final)

    @property
    def since(self) -> int | None:
        """From when on (ms) it is known what was there; ``None`` before the first change."""
        since = self._shelf.get(_SINCE)
        return None if since is None else time_of(since)

    def began(self, key: bytes) -> int | None:
        """Since when a key is there; ``None`` since ever."""
        initial = self._initial(key)
        return None if initial == EVER else time_of(initial)

    def at(self, number: int, prefix: bytes, wanted: Callable[[bytes], bool], instant: int) -> Iterator[bytes]:
        """Keys that were there at an instant and left, of those that begin so in a sequence, which are ``wanted``."""
        later = stamped(instant + 1)
        if self._runs[number].count(prefix) > len(self) - self._by_final.rank(later):
            ended_later = (entry[TIME : TIME + KEY] for entry in self._by_final.above(later) if entry[-TIME:] < later)
            return filter(wanted, ended_later)
        runs = self._runs[number].within(prefix)
        return (straight(run[:KEY], number) for run in runs if run[-TIME:] < later <= run[KEY:-TIME])

    def loaded(self, at: int) -> Writes:
        """What is to be written when quads are loaded, all of them there since ever."""
        return {_SINCE: stamped(at), _LAST: stamped(at)}

    def edit(
        self,
        at: int,
        left: Mapping[bytes, int | None],
        renewed: Mapping[bytes, int | None],
        come: Mapping[bytes, int | None],
    ) -> tuple[list[tuple[Order, Edit]], Writes, bytes]:
        """What a change at ``at`` makes: keys that leave or get another end, with the end they had, and new ones.

        Third are the keys of runs that are dropped. No change is before the last: it is then at the time of that.
        """
        last = self._shelf.get(_LAST)
        at = at if last is None else max(at, time_of(last))
        recorded = _Recorded()
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
        since = max(self._shelf.get(_SINCE) or stamped(at), dropped[-1][:TIME] if dropped else EVER)
        keys = b"".join(entry[TIME : TIME + KEY] for entry in dropped)
        return self._edits(recorded), {_LAST: stamped(at), _SINCE: since}, keys

    def uses(self, number: bytes) -> bool:
        """Whether a term of that number is in a run."""
        return any(order.one(number) for order in self._runs[:4])

    def _initial(self, key: bytes) -> bytes:
        return self._begun.one(key)[KEY:] or EVER

    def _leave(self, recorded: _Recorded, key: bytes, final: int) -> None:
        initial = self._initial(key)
        if initial != EVER:
            recorded.left.add(key + initial)
        if initial < stamped(final):
            recorded.runs.add(key + stamped(final) + initial)

    def _come(self, recorded: _Recorded, key: bytes, at: int, end: int | None) -> None:
        """A key begins now, or when the run did that ends now, unless it comes when it has ended already."""
        run = self._runs[0].one(key + stamped(at)) if end is None or end > at else b""
        recorded.ended.update([run] if run else ())
        initial = run[-TIME:] if run else stamped(at)
        if initial != EVER:
            recorded.begun.add(key + initial)

    def _outlived(self, recorded: _Recorded, at: int) -> list[bytes]:
        """Some of the runs, by their ends, that the policy does not keep, the oldest first."""
        surplus = 0 if self._keep.runs is None else len(self) + len(recorded.runs) - self._keep.runs
        outlived = 0 if self._keep.span is None else self._by_final.rank(stamped(at - self._keep.span))
        return list(self._by_final.first(min(max(surplus, outlived), _DROPPED + 2 * len(recorded.runs))))

    def _edits(self, recorded: _Recorded) -> list[tuple[Order, Edit]]:
        """The orders that change: runs that came and went within the change are in none."""
        runs, ended = recorded.runs, recorded.ended
        edits = [
            (order, order.edit(EditSketch(_turned(ended, number), _turned(runs, number))))
            for number, order in enumerate(self._runs)
        ]
        edits.append((self._by_final, self._by_final.edit(EditSketch(_by_final(ended), _by_final(runs)))))
        edits.append((self._begun, self._begun.edit(EditSketch(sorted(recorded.left), sorted(recorded.begun)))))
        return edits


def _turned(runs: Iterable[bytes], number: int) -> list[bytes]:
    return sorted(turned(run, number) + run[KEY:] for run in runs)


def _by_final(runs: Iterable[bytes]) -> list[bytes]:
    return sorted(run[KEY:-TIME] + run[:KEY] + run[-TIME:] for run in runs)
