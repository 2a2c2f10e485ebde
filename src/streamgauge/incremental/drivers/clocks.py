"""The clocks of a query, merged: which instants come up to a time, what is looked at there, which may report."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from streamgauge.incremental.drivers.frames import Frame, TimeFrame
from streamgauge.incremental.drivers.instants import NEVER, Ticking, clock_of, closes_of, closing
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Due, Semantics

Move: TypeAlias = Callable[[int], None]
"""Moves a window to an instant (ms)."""


@dataclass(frozen=True, slots=True)
class Hand:
    """One clock, and what moves at its instants."""

    ticking: Ticking
    moves: tuple[Move, ...]


class Clocks:
    """Several clocks as one; ``next`` is the earliest instant (ms) that was not given yet."""

    def __init__(self, hands: Sequence[Hand], due: Due) -> None:
        self._hands = tuple(hands)
        self._last = due is Due.LAST
        self.next = self._earliest()

    @property
    def passed(self) -> int | None:
        """The latest instant that was given or left out, ``None`` before the first."""
        return max((at for hand in self._hands if (at := hand.ticking.passed) is not None), default=None)

    def up_to(self, limit: int, still: Callable[[], bool] = lambda: False) -> Iterator[tuple[int, list[Move], bool]]:
        """The instants up to ``limit`` (ms), each once: what moves, and whether a report may be due.

        Of the instants of one clock only the last may report where the semantics says so. As soon as all is ``still``
        the others are left out: what would have moved is moved to the last of them. Instants are made one by one, since
        a jump in time has thousands of millions.
        """
        given = [(hand, hand.ticking.up_to(limit)) for hand in self._hands]
        self.next = self._earliest()
        ordered = merge(*(_marked(hand, instants) for hand, instants in given), key=itemgetter(0))
        for instant, group in groupby(ordered, key=itemgetter(0)):
            if still():
                _move_to_last(given)
                return
            found = list(group)
            moves = [move for _, hand, _ in found for move in hand.moves]
            yield instant, moves, not self._last or any(last for _, _, last in found)

    def _earliest(self) -> int:
        return min((hand.ticking.next for hand in self._hands), default=NEVER)


def _marked(hand: Hand, instants: range) -> Iterator[tuple[int, Hand, bool]]:
    """The instants of a clock, and whether each is the last."""
    final = instants[-1] if instants else 0
    return ((instant, hand, instant == final) for instant in instants)


def _move_to_last(given: Sequence[tuple[Hand, range]]) -> None:
    """Everything moves to the last of its instants."""
    for hand, instants in given:
        if instants:
            for move in hand.moves:
                move(instants[-1])


def clocks(query: ContinuousQuery, frames: Sequence[Frame], semantics: Semantics, t0: int) -> Clocks | None:
    """The closes of a query's windows, or its one clock; ``None`` when elements alone drive the reports."""
    if closing(semantics):
        pairs = zip(query.windows, frames, strict=True)
        hands = [
            Hand(closes_of(each.window, semantics, t0), (frame.close,))
            for each, frame in pairs
            if isinstance(frame, TimeFrame)
        ]
        return Clocks(hands, semantics.due)
    ticking = clock_of(semantics, t0)
    if ticking is None:
        return None
    return Clocks([Hand(ticking, tuple(frame.clock for frame in frames))], Due.ALL)
