"""The clocks of a query, merged: which instants come up to a time, what is looked at there, which may report."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
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

    def up_to(self, limit: int) -> Iterator[tuple[int, list[Move], bool]]:
        """The instants up to ``limit`` (ms), each once: what moves, and whether a report may be due.

        Of the instants of one clock only the last may report where the semantics says so.
        """
        given = [(hand, hand.ticking.up_to(limit)) for hand in self._hands]
        self.next = self._earliest()
        ordered = merge(
            *([(instant, hand, instant == range_[-1]) for instant in range_] for hand, range_ in given),
            key=lambda found: found[0],
        )
        for instant, group in groupby(ordered, key=lambda found: found[0]):
            found = list(group)
            moves = [move for _, hand, _ in found for move in hand.moves]
            yield instant, moves, not self._last or any(last for _, _, last in found)

    def skip_to(self, limit: int) -> None:
        """Leave out the instants up to ``limit`` (ms): what would have moved is moved to the last of them."""
        for hand in self._hands:
            if left_out := hand.ticking.up_to(limit):
                for move in hand.moves:
                    move(left_out[-1])
        self.next = self._earliest()

    def _earliest(self) -> int:
        return min((hand.ticking.next for hand in self._hands), default=NEVER)


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
