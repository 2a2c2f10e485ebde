"""The poll loop: poll a plan, emit the changes of the answer, wait for the next expiration, retry failures.

A poll is scheduled at the nearest expiration, with a random delay so that clients do not all come at once, and later
after failures. A permanent failure ends the loop (``PollPatience``).
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
    DEFAULT_INTERVAL,
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
    """A poll failed: why, and the seconds until the next attempt."""

    why: str
    again: float


@dataclass(frozen=True, slots=True)
class Fresh:
    """A poll succeeded: the server's time (ms) of the answer, and the time of the next poll (own clock, ms).

    ``late`` is the delay (ms) of its start behind schedule, by our clock.
    """

    instant: int
    next: int
    late: int


@dataclass(frozen=True, slots=True)
class Listening:
    """An address is subscribed to, and not polled any more."""

    address: str


@dataclass(frozen=True, slots=True)
class Polling:
    """An address is polled although push was requested: why, and the seconds until events are tried ``again``.

    ``again`` is ``None`` if the source offers no events.
    """

    why: str
    again: float | None


Event: TypeAlias = Failed | Fresh | Listening | Polling
Tell: TypeAlias = Callable[[Event], None]


MIN_INTERVAL: Final = 250
"""Minimum interval between polls (ms)."""

MIN_PUSHED_INTERVAL: Final = 50
"""Minimum interval between polls (ms) if all sources push their changes, so that a poll makes no request."""

LAPSED_INTERVAL: Final = 1000
"""Interval (ms) until the next poll if expired facts were not renewed, as in QueryStreamer.js."""

STALE: Final = 1_000
"""How much older than a poll (ms) the end of freshness may be, since dates of HTTP are whole seconds."""


@dataclass(frozen=True, slots=True)
class PollTiming:
    """Intervals in ms: at least ``at_most_every`` between polls even if facts end sooner, at most ``period``.

    A poll is delayed at random by up to ``share`` of the time since the last one, at most ``spread``. If all sources
    push their changes (``notified``), polls make no requests and are not delayed.
    """

    at_most_every: int | None = None
    period: int | None = None
    share: float = 0.1
    spread: int = 5_000

    def next(self, begun: int, now: int, polled: PollResult, random: Random, notified: bool = False) -> int:
        """The time of the next poll after one that began at ``begun`` and ended at ``now``; own clock, ms."""
        due = self._due(begun, now, polled)
        if self.at_most_every is not None:
            due = max(due, begun + self.at_most_every)
        if notified:
            return max(due, now)
        # Facts may end every ms, and a poll costs the server a request.
        due = max(due, now + MIN_INTERVAL)
        # Worked example: 1,000 clients of one timetable all see the same next expiration. After 30 s of rest each
        # waits up to 3 s more (10%), so the server gets about 330 requests a second instead of 1,000 at one instant.
        return due + int(random.uniform(0, min(self.spread, self.share * (due - begun))))

    def soonest(self, begun: int, notified: bool = False) -> int:
        """The earliest time of the next poll after one that began at ``begun``, whatever has changed."""
        return begun + max(MIN_PUSHED_INTERVAL if notified else MIN_INTERVAL, self.at_most_every or 0)

    def _due(self, begun: int, now: int, polled: PollResult) -> int:
        # The earliest of these decides; an expiration that is known does not make the period longer.
        times = [
            polled.due,
            None if self.period is None else begun + self.period,
            now + LAPSED_INTERVAL if polled.lapsed else None,
        ]
        if known := [time for time in times if time is not None]:
            return min(known)
        if polled.until is None or polled.until <= begun - STALE:
            return begun + DEFAULT_INTERVAL  # nothing is stated, or a cache serves stale responses
        return polled.until


PATIENCE: Final = 600_000
"""Default time (ms) for which polls may fail without a success."""


class GaveUpError(LinkedDataError):
    """A watch whose polls have failed for longer than its patience; the sentence gives the last reason."""


@dataclass(slots=True)
class PollPatience:
    """Decides on retries of failed polls; they may fail for ``longest`` ms (``None``: without limit) by ``clock`` (ms).

    Before the first success only a source that does not respond is retried; any other failure is probably a mistake of
    the user. After it, a source that sends invalid data is retried too.
    """

    backoff: Backoff
    clock: Callable[[], int]
    longest: int | None = PATIENCE
    worked: bool = False
    since: int | None = None

    def success(self) -> None:
        """Record that a poll has succeeded."""
        self.backoff.reset()
        self.worked, self.since = True, None

    def wait(self, error: LinkedDataError | LabelError) -> float:
        """The seconds until the next attempt.

        Raises the error itself if it is permanent, GaveUpError after ``longest``.
        """
        if isinstance(error, LinkedDataError) and self._permanent(error):
            raise error
        now = self.clock()
        # Counted from the first failure of a series, not from the last success, which may be long ago if polls are
        # rare.
        self.since = now if self.since is None else self.since
        after = error.after if isinstance(error, UnavailableError) else None
        # The server's wish may lengthen the wait; it cannot switch the backoff off.
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
        # A name that was found once is not a typing mistake.
        return not self.worked and (isinstance(error, UnknownHostError) or not isinstance(error, UnavailableError))


FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0
"""Seconds between attempts to poll or to listen after failures, which double from the first to the longest."""


class AnswerContent(StrEnum):
    """The content of an answer."""

    CHANGES = "changes"  # rows added and removed, if any
    WHOLE = "whole"  # all rows, after each poll


@dataclass(slots=True)
class PollLoop:
    """Polls a plan, which ``prepare`` makes in the same ``round`` of the client as the first poll.

    ``rest`` waits for seconds, or until an event arrives; ``patience`` (ms) is how long polls may fail. ``notified``
    says whether all sources currently push their changes.
    """

    query: LiveQuery
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
    notified: Callable[[], bool] = bool
    _shown: Bag = field(default_factory=dict)
    _begun: bool = False

    async def answers(self) -> AsyncGenerator[Answer, None]:
        """The endless answers; LinkedDataError after a permanent failure, or when the patience is exhausted."""
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
            late, due = begun - due, self.timing.next(begun, self.clock(), polled, self.random, self.notified())
            self.tell(Fresh(polled.instant, due, max(0, late)))
            for answer in self._changes(polled):
                yield answer
            # May end early by an event; `soonest` then keeps a burst of events from becoming a burst of polls.
            await self.rest(max(0, due - self.clock()) / 1000)
            if (left := self.timing.soonest(begun, self.notified()) - self.clock()) > 0:
                await self.sleep(left / 1000)

    async def _first(self) -> tuple[LivePlan, PollResult]:
        """The plan and its first poll, in one round so that nothing is fetched twice."""
        with self.round():
            plan = await self.prepare()
            return plan, await plan.poll()

    def _changes(self, polled: PollResult) -> list[Answer]:
        """The answer after a poll: all rows, or the changes if there are any or it is the first."""
        before, self._shown = self._shown, polled.bag
        first, self._begun = not self._begun, True
        # Also if nothing has changed: each poll is an answer of its own then.
        if self.sends is AnswerContent.WHOLE:
            return [self._answer(polled.instant, _rows(polled.bag), ())]
        change = difference(polled.bag, before)
        added = {row: count for row, count in change.items() if count > 0}
        removed = {row: -count for row, count in change.items() if count < 0}
        return [self._answer(polled.instant, _rows(added), _rows(removed))] if change or first else []

    def _answer(self, instant: int, added: tuple[Row, ...], removed: tuple[Row, ...]) -> Answer:
        return Answer(self.query.columns, added, removed, self.query.kind, instant)


def _rows(bag: Bag) -> tuple[Row, ...]:
    return tuple(row for row, count in bag.items() for _ in range(count))
