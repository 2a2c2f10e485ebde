"""Element-driven reports in batches: the ticks of a batch, their contents and looks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np

from streamgauge.incremental.column_joins import ColumnJoins
from streamgauge.incremental.drivers.frames import TimeFrame
from streamgauge.incremental.drivers.relation_to_stream import RelationToStream
from streamgauge.incremental.term_ids import IdTriples, Places
from streamgauge.model.semantics import Tick
from streamgauge.model.terms import Triple


@dataclass(frozen=True, slots=True)
class TickColumns:
    """Triples in columns with their ticks: ``of`` has the tick of each triple, ``instants`` (ms) those of ticks."""

    triples: IdTriples
    of: Places
    instants: Places

    def one_by_one(self) -> list[tuple[int, tuple[Triple, ...]]]:
        """The instants (ms) of ticks, with their triples as terms."""
        texts, borders = list(self.triples), self.of.searchsorted(np.arange(len(self.instants) + 1)).tolist()
        pairs = zip(self.instants.tolist(), borders, borders[1:], strict=False)
        return [(instant, tuple(texts[begin:end])) for instant, begin, end in pairs]

    def joined(
        self,
        pool: ColumnJoins | None,
        frame: TimeFrame,
        streamings: Sequence[RelationToStream],
        non_empty: bool,
        look: Callable[[int], None],
    ) -> bool:
        """Process the ticks in columns; ``False``, after leaving columns, if that does not pay off."""
        if pool is None:
            return False
        if not pool.worth(len(self.triples)):
            pool.leave_columns()
            return False
        seen, begins_only = self.held(frame) if non_empty else self, len(streamings) == 1 and streamings[0].begins_only
        if seen.begun(pool, frame, streamings[0]) if begins_only else seen.told(pool, frame, look):
            if len(self.triples):
                frame.content.hold(self.triples.span[0], self.triples)
            frame.tick(int(self.instants[-1]))
            return True
        pool.leave_columns(for_good=True)
        return False

    def told(self, pool: ColumnJoins, frame: TimeFrame, look: Callable[[int], None]) -> bool:
        """Join the ticks in columns, and look at those with a change; ``False`` if columns refuse."""
        if not len(self.instants):
            return True
        assert pool.columns is not None
        changed = pool.columns.move_by_ticks(self.triples, self.of, frame.looks.horizons(self.instants))
        if changed is None:
            return False
        for tick in changed:
            look(int(self.instants[tick]))
        return True

    def begun(self, pool: ColumnJoins, frame: TimeFrame, streaming: RelationToStream) -> bool:
        """``told`` for answers that only consist of rows that begin."""
        if not len(self.instants):
            return True
        assert pool.columns is not None
        # If an instant is evaluated again with each element, all its ticks count as one; otherwise each tick is its
        # own.
        keys = self.instants if streaming.again else np.arange(len(self.instants))
        left = streaming.left_at(int(self.instants[0]))
        rows = pool.columns.begun_by_ticks(self.triples, self.of, frame.looks.horizons(self.instants), keys, left)
        if rows is None:
            return False
        streaming.set_left(int(self.instants[-1]), left)
        latest, scope, instants = -1, (0, 0), self.instants.tolist()
        for tick, group in groupby(rows, key=itemgetter(0)):
            if instants[tick] != latest:
                look = frame.looks.tick(instants[tick])
                latest, scope = instants[tick], (look.start, look.end)
            streaming.send(tuple([row for _, row in group]), (), latest, scope)
        return True

    def held(self, frame: TimeFrame) -> "TickColumns":
        """The ticks without those at which the content is empty, which have no triples."""
        span = frame.content.span
        newest = np.full(len(self.instants), -(2**62) if span is None else span[1])
        # Several triples may have one tick; ``newest[self.of] = ...`` would keep the last instead of the greatest.
        np.maximum.at(newest, self.of, self.triples.times)
        kept = np.maximum.accumulate(newest) >= frame.looks.horizons(self.instants)
        return self if kept.all() else TickColumns(self.triples, (np.cumsum(kept) - 1)[self.of], self.instants[kept])


def by_ticks(triples: IdTriples, tick: Tick, times: Places, borders: Places) -> TickColumns:
    """The ticks of elements at ``times`` (ms), whose triples are delimited by ``borders``."""
    # A worked example: elements at 3, 3 and 8 ms with two, one and one triples, so the borders are 0, 2, 3, 4. The
    # ticks of the four triples are 0, 1, 2, 3 by triple, 0, 0, 1, 2 by element, and 0, 0, 0, 1 by batch, with the
    # instants 3 and 8.
    if tick is Tick.TUPLE:
        return TickColumns(triples, np.arange(len(triples)), triples.times)
    counts = np.diff(borders)
    if tick is Tick.ELEMENT:
        return TickColumns(triples, np.repeat(np.arange(len(times)), counts), times)
    instants, places = np.unique(times, return_inverse=True)
    return TickColumns(triples, np.repeat(places, counts), instants)


def of_element(triples: IdTriples, tick: Tick, time: int) -> TickColumns:
    """The ticks of one element at a time (ms)."""
    return by_ticks(triples, tick, np.array([time]), np.array([0, len(triples)]))
