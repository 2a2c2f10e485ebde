"""The loop of the query streamer: poll, say what changed, wait for the next expiration; failures are told, retried.

What no later poll mends ends the loop (``patience``).
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Final

from streamgauge.incremental import Bag
from streamgauge.incremental.bags import difference
from streamgauge.model.answer import Answer
from streamgauge.model.terms import Row
from streamgauge.servers.fragments.fetching.contract import SourceError
from streamgauge.servers.fragments.labelling import LabelError
from streamgauge.servers.fragments.streaming.asked import Asked
from streamgauge.servers.fragments.streaming.events import Failed, Fresh, Tell
from streamgauge.servers.fragments.streaming.patience import PATIENCE, Patience
from streamgauge.servers.fragments.streaming.plan import Plan, Polled
from streamgauge.servers.fragments.streaming.timing import Timing
from streamgauge.sources.backoff import Backoff

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0
"""Seconds between attempts after failures, which double from the first to the longest."""


def never() -> bool:
    """No events."""
    return False


class Sends(StrEnum):
    """What an answer holds."""

    CHANGES = "changes"  # rows that came and rows that went, when there are any
    WHOLE = "whole"  # all rows, at each poll


@dataclass(slots=True)
class Following:
    """Polls a plan; ``prepare`` makes the plan, with the first poll in a ``round`` of the web.

    ``rest`` waits so many seconds, or until there is something new; ``patience`` (ms) is how long polls may fail.
    ``told`` says whether events tell what is new.
    """

    asked: Asked
    prepare: Callable[[], Awaitable[Plan]]
    round: Callable[[], AbstractContextManager[None]]
    clock: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]]
    rest: Callable[[float], Awaitable[None]]
    timing: Timing
    sends: Sends
    tell: Tell
    random: Random
    patience: int | None = PATIENCE
    told: Callable[[], bool] = never
    _shown: Bag = field(default_factory=dict)
    _begun: bool = False

    async def answers(self) -> AsyncGenerator[Answer, None]:
        """The answers, without an end; SourceError when no later poll mends what failed, or patience is over."""
        plan: Plan | None = None
        patience = Patience(Backoff(self.random, FIRST_WAIT, LONGEST_WAIT), self.clock, self.patience)
        due = self.clock()
        while True:
            begun = self.clock()
            try:
                if plan is None:
                    plan, polled = await self._first()
                else:
                    polled = await plan.poll()
            except (SourceError, LabelError) as error:
                wait = patience.wait(error)
                self.tell(Failed(str(error), wait))
                await self.sleep(wait)
                continue
            patience.success()
            late, due = begun - due, self.timing.next(begun, self.clock(), polled, self.random, self.told())
            self.tell(Fresh(polled.instant, due, max(0, late)))
            for answer in self._said(polled):
                yield answer
            await self.rest(max(0, due - self.clock()) / 1000)
            if (left := self.timing.soonest(begun, self.told()) - self.clock()) > 0:
                await self.sleep(left / 1000)

    async def _first(self) -> tuple[Plan, Polled]:
        """The plan and its first poll, in which what was needed to make it is not fetched again."""
        with self.round():
            plan = await self.prepare()
            return plan, await plan.poll()

    def _said(self, polled: Polled) -> list[Answer]:
        """The answer of a poll, if it has anything to say."""
        before, self._shown = self._shown, polled.bag
        first, self._begun = not self._begun, True
        if self.sends is Sends.WHOLE:
            return [self._answer(polled.instant, _rows(polled.bag), ())]
        change = difference(polled.bag, before)
        added = {row: count for row, count in change.items() if count > 0}
        removed = {row: -count for row, count in change.items() if count < 0}
        return [self._answer(polled.instant, _rows(added), _rows(removed))] if change or first else []

    def _answer(self, instant: int, added: tuple[Row, ...], removed: tuple[Row, ...]) -> Answer:
        return Answer(self.asked.columns, added, removed, self.asked.kind, instant)


def _rows(bag: Bag) -> tuple[Row, ...]:
    return tuple(row for row, count in bag.items() for _ in range(count))
