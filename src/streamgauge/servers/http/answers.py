"""Answers on their way to subscribers: numbered, the newest kept, each subscriber at its own place."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

Line = TypeVar("Line")
"""What one answer is: a line of JSON where nothing else is said."""


class Bounds(Protocol):
    """How many answers, of how many bytes, are kept, and how many of them a subscriber may be behind."""

    @property
    def kept(self) -> int:
        """The most answers that are kept."""
        ...

    @property
    def kept_bytes(self) -> int:
        """The most bytes of them."""
        ...

    @property
    def lag(self) -> int:
        """How many answers behind a subscriber is left."""
        ...


class Numbered(msgspec.Struct, Generic[Line], frozen=True, gc=False):
    """An answer with its number, from 1, and its size in bytes; the collector of garbage does not look at it."""

    number: int
    line: Line
    size: int


@dataclass(frozen=True, slots=True)
class End:
    """Why no more answers will come, a sentence; ``error`` when the engine failed."""

    why: str
    kind: Literal["over", "error"] = "over"


class Subscription(Generic[Line]):
    """A place in the answers; ``wake`` is called, from any thread, when there is something to take.

    ``over`` says why no more will come: the query ended, or the subscriber fell too far behind (it may resume).
    """

    def __init__(self, answers: "Answers[Line]", place: int, wake: Callable[[], None]) -> None:
        self.place, self.wake = place, wake
        self.over: End | None = None
        self._answers = answers

    def take(self) -> list[Numbered[Line]]:
        """What has come since the last take, in order."""
        return self._answers.since(self)

    @property
    def missed(self) -> int:
        """How many answers after its place are not kept any more."""
        return self._answers.missed(self.place)

    def pause(self) -> None:
        """Be woken no more, until ``resume``."""
        self._answers.leave(self)

    def resume(self, place: int) -> None:
        """Go on after an answer's number."""
        self.place = place
        self._answers.enter(self)

    def close(self) -> None:
        """Leave."""
        self._answers.leave(self)


class Answers(Generic[Line]):
    """The newest answers and who takes them; ``number`` is that of the last one before."""

    def __init__(self, limits: Bounds, number: int = 0) -> None:
        self._limits, self._lock = limits, Lock()
        self._kept: deque[Numbered[Line]] = deque()
        self._subscribers: dict[int, Subscription[Line]] = {}
        self._over: End | None = None
        self.number, self.bytes = number, 0

    @property
    def subscribers(self) -> int:
        """How many take answers now."""
        return len(self._subscribers)

    @property
    def oldest(self) -> int:
        """The number of the oldest answer that is kept, or of the next one."""
        kept = self._kept
        return kept[0].number if kept else self.number + 1

    def add(self, line: Line, size: int) -> int:
        """A new answer of ``size`` bytes: kept, the oldest let go, subscribers woken; returns its number."""
        limits, kept = self._limits, self._kept
        with self._lock:
            number = self.number = self.number + 1
            kept.append(Numbered(number, line, size))
            self.bytes += size
            if len(kept) > limits.kept or self.bytes > limits.kept_bytes:
                self._let_go()
            woken = list(self._subscribers.values()) if self._subscribers else ()
        for subscription in woken:
            if number - subscription.place > limits.lag and not subscription.over:
                behind = number - subscription.place
                subscription.over = End(f"too slow: {behind} answers behind, resume from here")
            subscription.wake()
        return number

    def _let_go(self) -> None:
        """The oldest go beyond the limits; the newest stays."""
        limits, kept = self._limits, self._kept
        while len(kept) > limits.kept or (self.bytes > limits.kept_bytes and len(kept) > 1):
            self.bytes -= kept.popleft().size

    def subscribe(self, after: int | None, wake: Callable[[], None]) -> Subscription[Line]:
        """Begin after an answer's number: of those kept, all later ones are given first; ``None`` for new ones only.

        A number that was never given out, as from before a restart, begins with the oldest kept.
        """
        with self._lock:
            place = self.number if after is None else after if 0 <= after <= self.number else self.oldest - 1
        subscription = Subscription(self, place, wake)
        self.enter(subscription)
        return subscription

    def enter(self, subscription: Subscription[Line]) -> None:
        """Wake a subscription from now on."""
        with self._lock:
            subscription.over = subscription.over or self._over
            self._subscribers[id(subscription)] = subscription

    def since(self, subscription: Subscription[Line]) -> list[Numbered[Line]]:
        """The kept answers after a subscription's place, which moves behind them."""
        with self._lock:
            place, found = subscription.place, []
            for answer in reversed(self._kept):
                if answer.number <= place:
                    break
                found.append(answer)
            if found:
                subscription.place = found[0].number
                found.reverse()
            return found

    def missed(self, place: int) -> int:
        """How many answers after a place were let go."""
        with self._lock:
            return max(0, self.oldest - place - 1)

    def leave(self, subscription: Subscription[Line]) -> None:
        """A subscriber goes."""
        with self._lock:
            self._subscribers.pop(id(subscription), None)

    def end(self, end: End) -> None:
        """No more answers will come; what is kept can still be taken."""
        with self._lock:
            self._over = end
            woken = list(self._subscribers.values())
            for subscription in woken:
                subscription.over = subscription.over or end
        for subscription in woken:
            subscription.wake()
