"""The poll loop: poll a plan, emit the changes of the answer, wait for the next expiration, retry failures.

A poll comes at the nearest expiration, spread so that clients do not come all at once, and later after failures. A
failure that no later poll mends ends the loop (``PollPatience``).
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Final, TypeAlias

from streamgauge.incremental import Bag
from streamgauge.incremental.operators import difference
from streamgauge.model.answer import Answer
from streamgauge.model.terms import Row
from streamgauge.outgoing.failures import permanent_status
from streamgauge.servers.fragments.client import (
    UNSAID,
    HopelessError,
    LinkedDataError,
    StatusError,
    UnavailableError,
    UnknownHostError,
)
from streamgauge.servers.fragments.client.transport import RefusedAddressError
from streamgauge.servers.fragments.labels import LabelError
from streamgauge.servers.fragments.live_queries import LivePlan, LiveQuery, PollResult
from streamgauge.sources.backoff import Backoff


@dataclass(frozen=True, slots=True)
class Failed:
    """A poll failed: why, and in how many seconds it is tried again."""

    why: str
    again: float


@dataclass(frozen=True, slots=True)
class Fresh:
    """A poll succeeded: the server's time (ms) of the answer, when the next poll is (own clock, ms).

    ``late`` is how much later (ms) than due it began, by the own clock.
    """

    instant: int
    next: int
    late: int


@dataclass(frozen=True, slots=True)
class Listening:
    """The changes at an address are sent from now on: the address is not polled."""

    address: str


@dataclass(frozen=True, slots=True)
class Polling:
    """An address is polled although events were asked for: why, and in how many seconds they are asked for again.

    ``again`` is ``None`` where it has none.
    """

    why: str
    again: float | None


Event: TypeAlias = Failed | Fresh | Listening | Polling
Tell: TypeAlias = Callable[[Event], None]


SHORTEST: Final = 250
"""Between two polls, ms."""

SHORTEST_TOLD: Final = 50
"""The shortest time between two polls (ms) where events tell the changes, so that a poll is no request."""

EMPTY: Final = 1000
"""Until the next poll, ms, when what should have been renewed was not (QueryStreamer.js waits as long)."""

STALE: Final = 1_000
"""How long before a poll began (ms) what it read may have become stale, as dates of HTTP are whole seconds."""


@dataclass(frozen=True, slots=True)
class PollTiming:
    """All in ms: ``at_most_every`` between polls even when facts end sooner, ``period`` at the longest between them.

    A poll comes up to ``share`` of the time since the last one, at most ``spread``, after it is due. Where events have
    ``told`` what changes polls are no requests: then it comes when it is due.
    """

    at_most_every: int | None = None
    period: int | None = None
    share: float = 0.1
    spread: int = 5_000

    def next(self, begun: int, now: int, polled: PollResult, random: Random, notified: bool = False) -> int:
        """When to poll after a poll that began and ended at these times, by the own clock."""
        due = self._due(begun, now, polled)
        if self.at_most_every is not None:
            due = max(due, begun + self.at_most_every)
        if notified:
            return max(due, now)
        due = max(due, now + SHORTEST)
        return due + int(random.uniform(0, min(self.spread, self.share * (due - begun))))

    def soonest(self, begun: int, notified: bool = False) -> int:
        """When to poll at the earliest after a poll that began then, whatever is new."""
        return begun + max(SHORTEST_TOLD if notified else SHORTEST, self.at_most_every or 0)

    def _due(self, begun: int, now: int, polled: PollResult) -> int:
        times = [
            polled.due,
            None if self.period is None else begun + self.period,
            now + EMPTY if polled.lapsed else None,
        ]
        if known := [time for time in times if time is not None]:
            return min(known)
        if polled.until is None or polled.until <= begun - STALE:
            return begun + UNSAID  # nothing is said, or a cache gives what is stale
        return polled.until


PATIENCE: Final = 600_000
"""How long polls may fail without one that succeeds (ms), unless told otherwise."""


class GaveUpError(LinkedDataError):
    """A watch whose polls failed for longer than its patience; the sentence says why the last one did."""


@dataclass(slots=True)
class PollPatience:
    """The retries of failed polls; ``clock`` in ms, ``longest`` (ms, ``None``: for ever) is how long polls may fail.

    Before the first poll that succeeds only a source that does not answer is waited for: all else is a mistake in what
    was asked for. Later also one that sends what cannot be read.
    """

    backoff: Backoff
    clock: Callable[[], int]
    longest: int | None = PATIENCE
    worked: bool = False
    since: int | None = None

    def success(self) -> None:
        """A poll succeeded."""
        self.backoff.reset()
        self.worked, self.since = True, None

    def wait(self, error: LinkedDataError | LabelError) -> float:
        """The seconds until the next try; the error itself when no try mends it, GaveUpError when it is enough."""
        if isinstance(error, LinkedDataError) and self._permanent(error):
            raise error
        now = self.clock()
        self.since = now if self.since is None else self.since
        after = error.after if isinstance(error, UnavailableError) else None
        wait = max(self.backoff.next(), after or 0.0)
        if self.longest is not None and now - self.since + wait * 1000 > self.longest:
            address = error.address if isinstance(error, LinkedDataError) else "what was read"
            why = str(error).removeprefix(f"{address}: ")
            message = f" and asks to come again in {after:g} s" if after else ""
            cause = (
                f", as --patience is {self.longest / 1000:g} s" if self.longest else ": --patience 10m goes on trying"
            )
            raise GaveUpError(address, f"{why}{message}: given up{cause}")
        return wait

    def _permanent(self, error: LinkedDataError) -> bool:
        if isinstance(error, StatusError):
            return permanent_status(error.status)
        if isinstance(error, RefusedAddressError | HopelessError):
            return True
        return not self.worked and (isinstance(error, UnknownHostError) or not isinstance(error, UnavailableError))


FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0
"""Seconds between attempts to poll or to listen after failures, which double from the first to the longest."""


class AnswerContent(StrEnum):
    """The content of an answer."""

    CHANGES = "changes"  # rows that came and rows that went, when there are any
    WHOLE = "whole"  # all rows, at each poll


@dataclass(slots=True)
class PollLoop:
    """Polls a plan; ``prepare`` makes the plan, with the first poll in a ``round`` of the web.

    ``rest`` waits so many seconds, or until there is something new; ``patience`` (ms) is how long polls may fail.
    ``told`` says whether events tell what is new.
    """

    asked: LiveQuery
    prepare: Callable[[], Awaitable[LivePlan]]
    round: Callable[[], AbstractContextManager[None]]
    clock: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]]
    rest: Callable[[float], Awaitable[None]]
    timing: PollTiming
    sends: AnswerContent
    tell: Tell
    random: Random
    patience: int | None = PATIENCE
    told: Callable[[], bool] = bool
    _shown: Bag = field(default_factory=dict)
    _begun: bool = False

    async def answers(self) -> AsyncGenerator[Answer, None]:
        """The answers, without an end; LinkedDataError when no later poll mends what failed, or patience is over."""
        plan: LivePlan | None = None
        patience = PollPatience(Backoff(self.random, FIRST_WAIT, LONGEST_WAIT), self.clock, self.patience)
        due = self.clock()
        while True:
            begun = self.clock()
            try:
                if plan is None:
                    plan, polled = await self._first()
                else:
                    polled = await plan.poll()
            except (LinkedDataError, LabelError) as error:
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

    async def _first(self) -> tuple[LivePlan, PollResult]:
        """The plan and its first poll, in which what was needed to make it is not fetched again."""
        with self.round():
            plan = await self.prepare()
            return plan, await plan.poll()

    def _said(self, polled: PollResult) -> list[Answer]:
        """The answer of a poll, if it has anything to say."""
        before, self._shown = self._shown, polled.bag
        first, self._begun = not self._begun, True
        if self.sends is AnswerContent.WHOLE:
            return [self._answer(polled.instant, _rows(polled.bag), ())]
        change = difference(polled.bag, before)
        added = {row: count for row, count in change.items() if count > 0}
        removed = {row: -count for row, count in change.items() if count < 0}
        return [self._answer(polled.instant, _rows(added), _rows(removed))] if change or first else []

    def _answer(self, instant: int, added: tuple[Row, ...], removed: tuple[Row, ...]) -> Answer:
        return Answer(self.asked.columns, added, removed, self.asked.kind, instant)


def _rows(bag: Bag) -> tuple[Row, ...]:
    return tuple(row for row, count in bag.items() for _ in range(count))
