"""Writes beside the event loop: long writes are worked out in a thread, and made when nothing they rest on changed.

Few facts are written at once, between two requests. A write of more facts, or one that asks by a pattern, is drafted
and planned in a thread, and the store works the plan out, while reads and other writes go on, for ``SECONDS`` of CPU at
most. Then, with the only right to change the data set, the queue sees whether others changed what the draft rests on:
facts of the same triples, or, where the draft asked by a pattern, anything. If they did, all is done again; a draft
that took ``SHORT_S`` is made a last time while other writes wait. So another write waits only for the change itself:
blocks that are put in place.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from time import thread_time
from typing import Final

from streamgauge.incremental.budget import gc_young
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.store import FullError, KeyedChange, QuadChanges
from streamgauge.servers.fragments.writes import SWEPT, FactDraft, Operation, PlannedChange, WriteResult
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.servers.http.limits import Gate

FEW: Final = 50
"""Facts that are looked at or written sooner than a thread is asked to."""

FEW_QUADS: Final = 200
"""Quads that are changed sooner than a thread is asked to."""

TRIES: Final = 3
SHORT_S: Final = 0.1
"""How long, in CPU seconds, a draft may have taken that is made while other writes wait."""

SECONDS: Final = 10.0
"""CPU seconds that a draft may take."""

GROWTH: Final = 512 * 2**20
"""Bytes that the process may grow by while a draft is made."""

WAITING: Final = 64
"""Long writes that wait for those before them."""


class WriteBusyError(RuntimeError):
    """A write that could not be made because of others; the sentence says what to do."""


class WriteQueue:
    """Makes the writes of a server's data sets: short ones at once, long ones one after the other beside them."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds, self._long = seconds, Gate(WAITING, "write so much")

    async def write(
        self, dataset: DataSet, operations: Sequence[Operation], require: Callable[[], object] = bool
    ) -> WriteResult:
        """Make the operations, as one change; BusyError, CrowdedError, DeadlineError and what operations raise.

        ``require`` is asked just before, with the right to write; what it raises is raised and nothing is written.
        """
        if sum(operation.cost(dataset) for operation in operations) <= FEW:
            async with dataset.writers:
                require()
                return _drafted(dataset, operations).commit()
        async with self._long.through():
            return await self._written(dataset, operations, require)

    async def _written(
        self, dataset: DataSet, operations: Sequence[Operation], require: Callable[[], object]
    ) -> WriteResult:
        for number in range(1, TRIES + 1):
            plan = await asyncio.to_thread(self._planned, dataset, operations)
            try:
                async with dataset.writers:
                    if number == TRIES and plan.took <= SHORT_S and await asyncio.to_thread(plan.stale):
                        plan.abandon()
                        plan = await asyncio.to_thread(self._planned, dataset, operations)
                    if not await asyncio.to_thread(plan.stale):
                        require()
                        written = await plan.made()
                        if written is not None:
                            return written
            finally:
                plan.abandon()
                await tidied(dataset)
        raise WriteBusyError(f"the data changed {TRIES} times while this was worked out: ask for less, or come again")

    def _planned(self, dataset: DataSet, operations: Sequence[Operation]) -> "_PlannedWrite":
        """Draft the change, and have the store work it out."""
        began = thread_time()
        with gc_young(), DEADLINES.within(self._seconds, GROWTH):
            draft = _drafted(dataset, operations)
            planned = draft.planned(f"w{next(_SERIALS):x}")
        change = None if planned is None else _prepared(dataset, planned)
        return _PlannedWrite(dataset, draft, planned, change, thread_time() - began)


@dataclass
class _PlannedWrite:
    """A change that was worked out in ``took`` CPU seconds; there is none of the store's where nothing changes."""

    dataset: DataSet
    draft: FactDraft
    planned: PlannedChange | None
    change: KeyedChange | None
    took: float

    def stale(self) -> bool:
        """Whether others changed facts that the plan rests on."""
        return self.draft.stale()

    def abandon(self) -> None:
        """Abandon the prepared change, unless it was made."""
        if self.change is not None:
            self.dataset.store.abandon(self.change)
            self.change = None

    async def made(self) -> WriteResult | None:
        """Make the change, with the right to write; ``None`` when others changed the same quads."""
        if self.planned is None or self.change is None:
            return self.draft.nothing()
        changes = await _changed(self.dataset, self.planned, self.change)
        if changes is None:
            return None
        self.change = None
        return WriteResult(self.planned.come, self.planned.gone, changes)


async def sweep_beside(dataset: DataSet, before: int) -> None:
    """Remove quads that had ended by an instant (ms); FullError. Quads that others change meanwhile stay."""
    gone = dataset.store.expired(before, SWEPT)
    if not gone:
        return
    if len(gone) <= FEW_QUADS:
        async with dataset.writers:
            dataset.change(gone, ())
        return
    planned = PlannedChange(0, 0, gone, [])
    change = await asyncio.to_thread(_prepared, dataset, planned)
    try:
        async with dataset.writers:
            await _changed(dataset, planned, change)
    finally:
        dataset.store.abandon(change)
        await tidied(dataset)


async def tidied(dataset: DataSet) -> None:
    """Drop the terms that are in no quad any more, some at a time, while others read and write.

    Where the disk does not take that, they are dropped by a later change.
    """
    with suppress(FullError):
        while await asyncio.to_thread(dataset.store.tidy):
            pass


_SERIALS: Final = count()
"""Numbers of changes that are worked out beside others."""


def _drafted(dataset: DataSet, operations: Sequence[Operation]) -> FactDraft:
    draft = FactDraft(dataset)
    for operation in operations:
        operation.apply(draft)
    return draft


def _prepared(dataset: DataSet, planned: PlannedChange) -> KeyedChange:
    """The store's prepared change for a plan, in time proportional to the plan's size."""
    return dataset.store.prepare(planned.removed, planned.added)


async def _changed(dataset: DataSet, planned: PlannedChange, change: KeyedChange) -> QuadChanges | None:
    """As ``DataSet.change``, beside the loop; for who has the right to change it."""
    changes = await asyncio.to_thread(dataset.store.make, change, dataset.clock())
    if changes is not None:
        dataset.adopt(changes, planned.removed, planned.added)
    return changes
