"""Optimistic writes: long ones are prepared in a thread and applied if nothing that they depend on has changed since.

A write of few facts is applied directly in the event loop. A larger one is drafted, planned and prepared by the store
in a thread, for ``SECONDS`` of CPU at most, while reads and other writes continue. Then, with the data set's lock, the
queue checks whether others have changed something that the draft depends on: facts of the same triples, or anything if
it read by a pattern. If so, it is prepared again; in the last attempt a draft that took less than ``SHORT_S`` is
prepared again with the lock held. Other writes thus wait only while prepared blocks are put in place.
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
"""Facts up to which a write runs in the event loop: handing it to a thread costs more."""

FEW_QUADS: Final = 200
"""Quads up to which a sweep runs in the event loop."""

TRIES: Final = 3
SHORT_S: Final = 0.1
"""CPU seconds of a draft up to which it may be repeated while other writes wait."""

SECONDS: Final = 10.0
"""CPU seconds that a draft may take."""

GROWTH: Final = 512 * 2**20
"""Bytes by which the process may grow during a draft."""

MAX_WAITING_WRITES: Final = 64
"""Long writes that may wait for others."""


class WriteBusyError(RuntimeError):
    """A write that lost every race against other writes; the sentence says what to do."""


class WriteQueue:
    """Applies the writes of a server's data sets: short ones directly, long ones one at a time in a thread."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds, self._long = seconds, Gate(MAX_WAITING_WRITES, "change many facts")

    async def write(
        self, dataset: DataSet, operations: Sequence[Operation], require: Callable[[], object] = bool
    ) -> WriteResult:
        """Apply operations as one change; WriteBusyError, CrowdedError, DeadlineError, and errors of the operations.

        ``require`` is called with the data set's lock directly before the change, and may raise to prevent it.
        """
        # An estimate by counts, which cost a lookup each.
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
                    # The last try is planned with the lock held, so that nobody is faster, if that takes little time.
                    if number == TRIES and plan.took <= SHORT_S and await asyncio.to_thread(plan.stale):
                        plan.abandon()
                        plan = await asyncio.to_thread(self._planned, dataset, operations)
                    if not await asyncio.to_thread(plan.stale):
                        # Last, and with the lock: a condition that held earlier may not hold any more.
                        require()
                        written = await plan.made()
                        if written is not None:
                            return written
            finally:
                plan.abandon()
                await tidied(dataset)
        raise WriteBusyError(f"the data changed {TRIES} times while this was prepared: change less, or try again")

    def _planned(self, dataset: DataSet, operations: Sequence[Operation]) -> "_PlannedWrite":
        """Draft and plan a change, and have the store prepare it."""
        began = thread_time()
        with gc_young(), DEADLINES.within(self._seconds, GROWTH):
            draft = _drafted(dataset, operations)
            planned = draft.planned(f"w{next(_SERIALS):x}")
        # Outside the deadline: an interruption inside the store could leave its shared state half changed.
        change = None if planned is None else _prepared(dataset, planned)
        return _PlannedWrite(dataset, draft, planned, change, thread_time() - began)


@dataclass
class _PlannedWrite:
    """A planned change that took ``took`` CPU seconds; ``planned`` and ``change`` are ``None`` if it has no effect."""

    dataset: DataSet
    draft: FactDraft
    planned: PlannedChange | None
    change: KeyedChange | None
    took: float

    def stale(self) -> bool:
        """Whether others have changed facts that the plan depends on."""
        return self.draft.stale()

    def abandon(self) -> None:
        """Abandon the prepared change, unless it was applied."""
        if self.change is not None:
            self.dataset.store.abandon(self.change)
            self.change = None

    async def made(self) -> WriteResult | None:
        """Apply the change, with the lock held; ``None`` if others have changed the same quads."""
        if self.planned is None or self.change is None:
            return self.draft.nothing()
        changes = await _changed(self.dataset, self.planned, self.change)
        if changes is None:
            return None
        self.change = None
        return WriteResult(self.planned.come, self.planned.gone, changes)


async def sweep_beside(dataset: DataSet, before: int) -> None:
    """Remove quads that had ended by an instant (ms), except those that others change meanwhile; FullError."""
    gone = dataset.store.expired(before, SWEPT)
    if not gone:
        return
    if len(gone) <= FEW_QUADS:
        async with dataset.writers:
            dataset.change(gone, ())
        return
    planned = PlannedChange(0, 0, gone, [])
    # Without a draft and its checks: quads that others touch meanwhile make the change stale, and stay for the next
    # sweep.
    change = await asyncio.to_thread(_prepared, dataset, planned)
    try:
        async with dataset.writers:
            await _changed(dataset, planned, change)
    finally:
        dataset.store.abandon(change)
        await tidied(dataset)


async def tidied(dataset: DataSet) -> None:
    """Drop unused terms, some at a time, while others read and write; if the disk is full, a later change does it."""
    with suppress(FullError):
        while await asyncio.to_thread(dataset.store.tidy):
            pass


_SERIALS: Final = count()
"""Serial numbers of concurrent plans."""


def _drafted(dataset: DataSet, operations: Sequence[Operation]) -> FactDraft:
    draft = FactDraft(dataset)
    for operation in operations:
        operation.apply(draft)
    return draft


def _prepared(dataset: DataSet, planned: PlannedChange) -> KeyedChange:
    """The store's prepared change for a plan."""
    return dataset.store.prepare(planned.removed, planned.added)


async def _changed(dataset: DataSet, planned: PlannedChange, change: KeyedChange) -> QuadChanges | None:
    """Apply a prepared change in a thread and have the data set follow; requires the lock. ``None`` if it is stale."""
    changes = await asyncio.to_thread(dataset.store.make, change, dataset.clock())
    if changes is not None:
        dataset.adopt(changes, planned.removed, planned.added)
    return changes
