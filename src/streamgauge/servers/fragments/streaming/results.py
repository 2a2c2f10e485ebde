"""The result manager: answers of materialised static queries, kept for their lifetime, asked once (ESWC 2016, 6.2)."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from streamgauge.incremental import Bag
from streamgauge.model.terms import Row

MOST: Final = 10_000
"""Answers that are kept; those least lately used go first."""

Find: TypeAlias = Callable[[Row], Awaitable[tuple[Bag, int]]]
"""Asks for the answer of a key; its rows, and until when (own clock, ms) they may be used."""


@dataclass(slots=True)
class Results:
    """At most ``most`` static answers by the values of the variables that they share with the dynamic part."""

    find: Find
    clock: Callable[[], int]
    most: int = MOST
    hits: int = 0
    misses: int = 0
    _kept: OrderedDict[Row, tuple[Bag, int]] = field(default_factory=OrderedDict)
    _asked: dict[Row, asyncio.Task[tuple[Bag, int]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._kept)

    async def of(self, key: Row) -> Bag:
        """The answer of a key; one that is under way is waited for, not asked again."""
        kept = self._kept.get(key)
        if kept is not None and self.clock() < kept[1]:
            self.hits += 1
            self._kept.move_to_end(key)
            return kept[0]
        self.misses += 1
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.ensure_future(self.find(key))
            task.add_done_callback(partial(self._over, key))
        found = await asyncio.shield(task)
        self._keep(key, found)
        return found[0]

    def _over(self, key: Row, task: asyncio.Task[tuple[Bag, int]]) -> None:
        """A question is answered; that it failed is known although nobody may wait any more."""
        self._asked.pop(key, None)
        if not task.cancelled():
            task.exception()

    def _keep(self, key: Row, found: tuple[Bag, int]) -> None:
        self._kept[key] = found
        self._kept.move_to_end(key)
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)
