"""Numbered answers pushed to subscribers as server-sent events (HTML standard, 9.2).

``Answers`` keeps the newest; an ``AnswerSubscription`` is one subscriber's place in them. ``Signal`` and ``LoopCall``
carry notifications from any thread into the event loop.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from threading import Lock
from typing import Final, Generic, Literal, Protocol, TypeVar
from weakref import WeakKeyDictionary, ref

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

Line = TypeVar("Line")
"""The type of one answer, usually a line of JSON."""


class AnswerBounds(Protocol):
    """Limits of the answers kept, and of how far a subscriber may be behind."""

    @property
    def kept(self) -> int:
        """Maximum number of answers kept."""

    @property
    def kept_bytes(self) -> int:
        """Maximum size of the answers kept, in bytes."""

    @property
    def lag(self) -> int:
        """Number of answers behind the newest at which a subscriber is disconnected."""


class Numbered(msgspec.Struct, Generic[Line], frozen=True, gc=False):
    """An answer with its number, from 1, and its size in bytes; without ``gc``, since servers keep many thousands."""

    number: int
    line: Line
    size: int


@dataclass(frozen=True, slots=True)
class End:
    """Why a sequence of answers has ended, as a sentence.

    An engine's failure has the kind ``failed`` because ``error`` is an event of EventSource itself.
    """

    why: str
    kind: Literal["over", "failed"] = "over"


class AnswerSubscription(Generic[Line]):
    """One subscriber's place in the answers; ``wake`` is called, from any thread, when there are new ones.

    ``over`` says why it has ended: the query ended, or the subscriber fell too far behind (it may resume).
    """

    def __init__(self, answers: "Answers[Line]", place: int, wake: Callable[[], None], owner: str = "") -> None:
        self.place, self.wake, self.owner = place, wake, owner
        self.over: End | None = None
        self._answers = answers

    def take(self) -> list[Numbered[Line]]:
        """The items since the last take, in order."""
        return self._answers.since(self)

    @property
    def missed(self) -> int:
        """The number of answers after its place that have been discarded."""
        return self._answers.missed(self.place)

    def before(self, answer: Numbered[Line]) -> int:
        """The place just before an answer."""
        return answer.number - 1

    def pause(self) -> None:
        """Stop wake-ups until ``resume``."""
        self._answers.leave(self)

    def resume(self, place: int) -> None:
        """Continue after the answer of this number, with wake-ups."""
        self.place = place
        self._answers.enter(self)

    def close(self) -> None:
        """End the subscription to the answers."""
        self._answers.leave(self)


class Answers(Generic[Line]):
    """The newest answers and their subscribers; ``number`` is the last number given out before. Thread-safe."""

    def __init__(self, limits: AnswerBounds, number: int = 0) -> None:
        self._limits, self._lock = limits, Lock()
        self._kept: deque[Numbered[Line]] = deque()
        self._subscribers: dict[int, AnswerSubscription[Line]] = {}
        self._over: End | None = None
        self.number, self.bytes = number, 0

    @property
    def subscribers(self) -> int:
        """The number of active subscriptions."""
        return len(self._subscribers)

    def subscribers_of(self, owner: str) -> int:
        """The number of active subscriptions of an identity."""
        with self._lock:
            return sum(subscriber.owner == owner for subscriber in self._subscribers.values())

    @property
    def oldest(self) -> int:
        """The number of the oldest answer kept, or of the next one if none is kept."""
        kept = self._kept
        return kept[0].number if kept else self.number + 1

    def add(self, line: Line, size: int) -> int:
        """Add an answer of ``size`` bytes, discard the oldest beyond the limits, wake subscribers.

        Return its number.
        """
        limits, kept = self._limits, self._kept
        with self._lock:
            number = self.number = self.number + 1
            kept.append(Numbered(number, line, size))
            self.bytes += size
            # Tested here too, although `_let_go` does: this is the path of every answer, and a call costs more than the
            # comparison.
            if len(kept) > limits.kept or self.bytes > limits.kept_bytes:
                self._let_go()
            woken = list(self._subscribers.values()) if self._subscribers else ()
        # Outside the lock: `wake` is the subscriber's code, and may take the answer in the same call.
        for subscription in woken:
            # The place is read without its lock: a take that goes on meanwhile can only make the subscriber look slower
            # by one batch, and it may resume.
            if number - subscription.place > limits.lag and not subscription.over:
                behind = number - subscription.place
                subscription.over = End(f"too slow: {behind} answers behind, resume from here")
            subscription.wake()
        return number

    def _let_go(self) -> None:
        """Discard the oldest answers beyond the limits, but never the newest."""
        limits, kept = self._limits, self._kept
        while len(kept) > limits.kept or (self.bytes > limits.kept_bytes and len(kept) > 1):
            self.bytes -= kept.popleft().size

    def shrink(self, size: int) -> int:
        """Discard the oldest until at most ``size`` bytes are kept, but never the newest; returns how many."""
        with self._lock:
            before = len(self._kept)
            while self.bytes > size and len(self._kept) > 1:
                self.bytes -= self._kept.popleft().size
            return before - len(self._kept)

    def subscribe(self, after: int | None, wake: Callable[[], None], owner: str = "") -> AnswerSubscription[Line]:
        """Subscribe after an answer's number, first to the later ones that are kept; ``None`` for new answers only.

        A number that was never given out, such as one from before a restart, starts at the oldest answer kept.
        ``owner`` is the subscriber's identity.
        """
        with self._lock:
            # Starting at the oldest rather than at the newest repeats answers but hides none, and the client drops what
            # it knows.
            place = self.number if after is None else after if 0 <= after <= self.number else self.oldest - 1
        # An answer added between these two locks is not lost: the first take starts at ``place``.
        subscription = AnswerSubscription(self, place, wake, owner)
        self.enter(subscription)
        return subscription

    def enter(self, subscription: AnswerSubscription[Line]) -> None:
        """Register a subscription for wake-ups."""
        with self._lock:
            subscription.over = subscription.over or self._over
            self._subscribers[id(subscription)] = subscription

    def since(self, subscription: AnswerSubscription[Line]) -> list[Numbered[Line]]:
        """Take the kept answers that a subscription has not seen, oldest first, and move its place past them."""
        with self._lock:
            place, answers = subscription.place, []
            # From the newest end: a subscriber is usually a few answers behind, while thousands are kept.
            for answer in reversed(self._kept):
                if answer.number <= place:
                    break
                answers.append(answer)
            if answers:
                subscription.place = answers[0].number
                answers.reverse()
            return answers

    def kept(self) -> list[Numbered[Line]]:
        """All kept answers, the oldest first."""
        with self._lock:
            return list(self._kept)

    def missed(self, place: int) -> int:
        """The number of answers after a place that were discarded."""
        with self._lock:
            return max(0, self.oldest - place - 1)

    def leave(self, subscription: AnswerSubscription[Line]) -> None:
        """Stop wake-ups of a subscription."""
        with self._lock:
            self._subscribers.pop(id(subscription), None)

    def end(self, end: End) -> None:
        """End the sequence; kept answers can still be taken."""
        with self._lock:
            self._over = end
            woken = list(self._subscribers.values())
            # A subscriber already cut off for lagging keeps that reason: it may resume.
            for subscription in woken:
                subscription.over = subscription.over or end
        for subscription in woken:
            subscription.wake()


MEDIA_TYPE = "text/event-stream"
BEAT_S = 15.0
"""Interval between comments that keep a silent response alive."""

SEND_S = 20.0
"""How long a send may block before its client is disconnected."""

BEAT = b": alive\n\n"


_MAX_DIGITS: Final = 18
"""Digits of an event's number: it fits SQLite's 64 bits, and ``int`` refuses thousands of digits by itself."""


class EventError(ValueError):
    """A text that is not the number of an event."""


def event(data: bytes, number: int | str | None = None, kind: str = "") -> bytes:
    """One event. ``data`` may have several lines; a client that reconnects sends ``number`` as Last-Event-ID."""
    named = b"" if number is None else b"id: %s\n" % str(number).encode()
    head = (b"event: %s\n" % kind.encode() if kind else b"") + named
    return b"%sdata: %s\n\n" % (head, data.replace(b"\n", b"\ndata: "))


ANEW: Final = -1
"""Result for a client whose last event is from another run of the server, whose numbers mean nothing now."""

_RUN: Final = re.compile(r"[0-9a-f]{8}")


def event_id(number: int, run: str) -> str:
    """The id of an event: its number, behind the name of a ``run`` where each run numbers anew."""
    return f"{run}.{number}" if run else str(number)


def last_event(header: str | None, run: str | None = None) -> int | None:
    """The number of the last event that a client received, ``None`` if it names none; EventError.

    ``run`` is the current run of a server whose numbers start anew in some runs (empty if they go on): the result is
    ``ANEW`` if the client's number is from another run.
    """
    if header is None or header == "":
        return None
    named, _, number = header.rpartition(".")
    if run is not None and _RUN.fullmatch(named):
        return last_event(number) if named == run else ANEW
    if not header.isascii() or not header.isdigit() or len(header) > _MAX_DIGITS:
        raise EventError(f"Last-Event-ID is {header!r:.40}: expected the number of an event")
    return int(header)


class Events(StreamingResponse):
    """A response of server-sent events that ends when a send blocks for ``SEND_S``.

    A HEAD gets only the headers; ``close`` then ends the subscription that the events would have come from.
    """

    def __init__(self, events: AsyncIterator[bytes], close: Callable[[], object] = lambda: None) -> None:
        # nginx buffers responses unless told otherwise, and events would come in blocks of 4 or 8 KB.
        super().__init__(
            events, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the headers, and the events unless the method is HEAD."""
        if scope["method"] == "HEAD":
            self._close()
            await self._leave()
            await Response(headers=self.headers)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        """Send each event in time."""

        async def timely(message: Message) -> None:
            await in_time(send(message))

        try:
            await super().stream_response(timely)
        except TimeoutError:
            await self._leave()

    async def _leave(self) -> None:
        if isinstance(self.body_iterator, AsyncGenerator):
            await self.body_iterator.aclose()


async def in_time(sending: Awaitable[None]) -> None:
    """Await a send; TimeoutError if it blocks for ``SEND_S``."""
    async with asyncio.timeout(SEND_S):
        await sending


class LoopFlag(ABC):
    """A flag that any thread may raise; the running event loop then calls ``pass_on``."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._bell, self._raised = _bell(self._loop), False

    def set(self) -> None:
        """Raise the flag; no effect while it is raised, or once the event loop has ended."""
        if not self._raised:
            self._raised = True
            self._bell.ring(self)

    @abstractmethod
    def pass_on(self) -> None:
        """React to the flag, in the event loop's thread."""


class LoopCall(LoopFlag):
    """Calls a function in the event loop, once for all ``set`` before it."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self._call = call

    def pass_on(self) -> None:
        """Call the function; a ``set`` from now on calls it again."""
        self._raised = False
        self._call()


class Signal(LoopFlag):
    """Wakes a coroutine from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self._waiter: asyncio.Future[None] | None = None

    async def wait(self, timeout: float) -> bool:
        """Whether it was woken within ``timeout`` seconds."""
        if not self._raised:
            self._waiter = self._loop.create_future()
            # Not `asyncio.wait_for`, which makes a task or a timeout context of each wait: thousands of subscribers
            # wait at a time.
            timer = self._loop.call_later(timeout, _release, self._waiter)
            try:
                await self._waiter
            finally:
                timer.cancel()
        woken, self._raised = self._raised, False
        return woken

    def pass_on(self) -> None:
        """Wake the coroutine if it still waits, in the event loop's thread."""
        if self._raised and self._waiter is not None:
            _release(self._waiter)


def _release(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


class _Bell:
    """Delivers signals in their event loop, ``_TURN`` per callback so that other callbacks get turns.

    One ``call_soon_threadsafe``, which writes to a pipe, serves all signals that are raised before it runs.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Weak, because the loop is the key of `_BELLS`: a strong reference from the value would keep the key alive for
        # ever.
        self._loop = ref(loop)
        self._rung: deque[LoopFlag] = deque()
        self._called = False

    def ring(self, signal: LoopFlag) -> None:
        """Deliver a signal soon; from any thread."""
        self._rung.append(signal)
        loop = self._loop()
        # Two threads may both get here; the second callback then finds an empty deque.
        if not self._called and loop is not None and not loop.is_closed():
            self._called = True
            loop.call_soon_threadsafe(self._pass_on)

    def _pass_on(self) -> None:
        # Reset before the deque is read, so that a signal that comes later schedules a call of its own.
        self._called = False
        for _ in range(min(len(self._rung), _TURN)):
            self._rung.popleft().pass_on()
        loop = self._loop()
        if self._rung and not self._called and loop is not None:
            self._called = True
            loop.call_soon(self._pass_on)


def _bell(loop: asyncio.AbstractEventLoop) -> _Bell:
    return _BELLS.get(loop) or _BELLS.setdefault(loop, _Bell(loop))


_BELLS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Bell]] = WeakKeyDictionary()
_TURN: Final = 64
"""Signals delivered in one callback: a publisher's request does not wait for thousands of subscribers."""
