"""Writes beside the loop: what takes long is worked out in a thread, and made when what it rests on has not changed.

Few facts are written at once, between two requests. What is more, or asks by a pattern, is drafted in a thread while
reads and other writes go on, for ``SECONDS`` of CPU at most. Then, with the only right to change the data set, it is
seen whether others changed what the draft rests on: facts of the same triples, or, where it asked by a pattern,
anything. If they did, it is drafted again; what took ``SHORT_S`` is drafted a last time while other writes wait.
"""

import asyncio
from collections.abc import Callable, Sequence
from time import thread_time
from typing import Final

from streamgauge.services.fragments.quads import Lasting, Quad
from streamgauge.services.fragments.serving.dataset import DataSet
from streamgauge.services.fragments.serving.operations import Operation
from streamgauge.services.fragments.serving.writing import SWEPT, Draft, Written
from streamgauge.services.fragments.storing import Changes
from streamgauge.services.web.deadlines import DEADLINES
from streamgauge.services.web.gates import Gate

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


class BusyError(RuntimeError):
    """A write that could not be made because of others; the sentence says what to do."""


class Writers:
    """Makes the writes of a server's data sets: short ones at once, long ones one after the other beside them."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds, self._long = seconds, Gate(WAITING, "write so much")

    async def write(
        self, dataset: DataSet, operations: Sequence[Operation], require: Callable[[], object] = bool
    ) -> Written:
        """Make the operations, as one change; BusyError, CrowdedError, DeadlineError and what operations raise.

        ``require`` is asked just before, with the right to write; what it raises is raised and nothing is written.
        """
        if sum(each.cost(dataset) for each in operations) <= FEW:
            async with dataset.writers:
                require()
                return _drafted(dataset, operations).commit()
        async with self._long.through():
            return await self._written(dataset, operations, require)

    async def _written(
        self, dataset: DataSet, operations: Sequence[Operation], require: Callable[[], object]
    ) -> Written:
        for number in range(1, TRIES + 1):
            draft, took = await asyncio.to_thread(self._timed, dataset, operations)
            async with dataset.writers:
                if number == TRIES and took <= SHORT_S and draft.stale():
                    draft, _ = await asyncio.to_thread(self._timed, dataset, operations)
                if not draft.stale():
                    require()
                    return await _made(dataset, draft)
        raise BusyError(f"the data changed {TRIES} times while this was worked out: ask for less, or come again")

    def _timed(self, dataset: DataSet, operations: Sequence[Operation]) -> tuple[Draft, float]:
        """The draft, and the CPU seconds that it took."""
        began = thread_time()
        with DEADLINES.within(self._seconds, GROWTH):
            draft = _drafted(dataset, operations)
        return draft, thread_time() - began


async def sweep_beside(dataset: DataSet, before: int) -> None:
    """Forget what had ended by an instant (ms); FullError."""
    gone = dataset.store.expired(before, SWEPT)
    if gone:
        async with dataset.writers:
            await _changed(dataset, gone, ())


def _drafted(dataset: DataSet, operations: Sequence[Operation]) -> Draft:
    draft = Draft(dataset)
    for operation in operations:
        operation.apply(draft)
    return draft


async def _made(dataset: DataSet, draft: Draft) -> Written:
    planned = await asyncio.to_thread(draft.planned)
    if planned is None:
        return draft.nothing()
    return Written(planned.come, planned.gone, await _changed(dataset, planned.removed, planned.added))


async def _changed(dataset: DataSet, removed: Sequence[Quad], added: Sequence[Lasting]) -> Changes:
    """As ``DataSet.change``, beside the loop where it takes long; for who has the right to change it."""
    if len(removed) + len(added) <= FEW_QUADS:
        return dataset.change(removed, added)
    changes = await asyncio.to_thread(dataset.store.change, removed, added, dataset.clock())
    dataset.adopt(changes, removed, added)
    return changes
