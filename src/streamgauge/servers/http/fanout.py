"""Messages to many subscribers: encoded once, written to all connections without waking a task for each.

A subscriber that has caught up joins the ``Fanout`` of its channel or query. The fan-out takes new items, encodes them
once, and writes the same bytes to the connections of its members, a bounded number in each turn of the event loop. A
member whose write buffer is full, or whose subscription ends, leaves and keeps its place: its own coroutine
(``as_events``, ``converse``) goes on from there, waits for the client, and rejoins when it has caught up.

A worked example: ``a`` and ``b`` are members at place 7. Entries 8 and 9 come: both are one piece, written to ``a``;
the buffer of ``b`` is full, so ``b`` leaves at place 7. Its coroutine sends 8 and 9 when the client has taken what
waited, and joins again at place 9.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from starlette.websockets import WebSocket, WebSocketDisconnect

from streamgauge.servers.http import events
from streamgauge.servers.http.events import End, LoopCall, Signal

PIECE: Final = 64 * 2**10
"""Bytes after which a piece is complete: items are joined into pieces for writing."""

TURN: Final = 128
"""Connections written to before the event loop's other callbacks get a turn."""

PUSH: Final = "streamgauge.push"
"""The extension of an ASGI scope whose entry ``CONNECTION`` is the ``Connection`` itself."""

CONNECTION: Final = "connection"


class Connection(Protocol):
    """A connection to which whole messages can be written from the event loop."""

    def write(self, data: bytes) -> bool:
        """Write; false, with nothing written, if the write buffer is full or the client has gone."""


class NumberedItem(Protocol):
    """A numbered item: a client that comes back names the number of the last one that it got."""

    @property
    def number(self) -> int:
        """Its number, counted from 1."""


Sent = TypeVar("Sent", bound=NumberedItem)


class Place(Protocol[Sent]):
    """A subscriber's position in a sequence of items; wake-ups can be paused."""

    @property
    def place(self) -> int:
        """The number of the last item taken."""

    @property
    def over(self) -> End | None:
        """Why the sequence has ended; ``None`` if it has not."""

    @property
    def missed(self) -> int:
        """The number of items after its place that have been discarded."""

    def take(self) -> Sequence[Sent]:
        """The items since the last take, in order."""

    def before(self, sent: Sent) -> int:
        """The place just before an item that was taken."""

    def pause(self) -> None:
        """Stop wake-ups until ``resume``."""

    def resume(self, place: int) -> None:
        """Continue after ``place``, with wake-ups."""

    def close(self) -> None:
        """End the subscription and its stream."""


Encode = Callable[[Sequence[Sent]], bytes]


class Member(Generic[Sent]):
    """One subscriber: its place, its connection, and the signal of its coroutine. For the event loop's thread only.

    ``within`` returns the fan-out to join.
    """

    def __init__(
        self, place: Place[Sent], connection: Connection, signal: Signal, within: "Callable[[], Fanout[Sent]]"
    ) -> None:
        self.place, self.connection, self.signal = place, connection, signal
        self.at = 0
        """The place up to which the fan-out has written."""
        self._within = within
        self._inside: Fanout[Sent] | None = None
        self._wrote = False

    def join(self) -> bool:
        """Join the fan-out, which from then on writes to this member; false if this member has to take items first."""
        fan = self._within()
        # The fan-out takes items in its next turn; this member has already taken them itself.
        if fan.place < self.place.place:
            fan.catch_up()
        if self.place.over or fan.over or fan.place != self.place.place:
            fan.close_if_empty()
            return False
        # After the last test of `over`: a paused place gets no wake-up, the fan-out's own place reports the end in its
        # stead.
        self.place.pause()
        self.at = fan.place
        fan.members[self] = None
        self._inside = fan
        return True

    def leave(self) -> None:
        """Leave the fan-out and continue after the items that it wrote."""
        fan, self._inside = self._inside, None
        if fan is not None:
            del fan.members[self]
            fan.close_if_empty()
            # Which may be before what the fan-out has taken by now: the rest is this member's own to take.
            self.place.resume(self.at)

    def release(self) -> None:
        """Leave the fan-out and wake the subscriber's own coroutine."""
        self.leave()
        self.signal.set()

    def write(self, data: bytes) -> bool:
        """Write to the connection."""
        self._wrote = True
        return self.connection.write(data)

    def was_silent(self) -> bool:
        """Whether nothing was written since the last call."""
        active, self._wrote = self._wrote, False
        return not active


@dataclass(slots=True)
class _Piece(Generic[Sent]):
    """Items that directly follow place ``before``, encoded and written together."""

    before: int
    sent: list[Sent]


class Fanout(Generic[Sent]):
    """The members that follow one channel or query, all at the same place.

    ``gone`` is called after the last has left.
    """

    def __init__(
        self,
        follow: Callable[[Callable[[], None]], Place[Sent]],
        encode: Encode[Sent],
        size: Callable[[Sent], int],
        gone: Callable[[], None],
    ) -> None:
        self.members: dict[Member[Sent], None] = {}
        self._encode, self._size, self._gone = encode, size, gone
        self._call = LoopCall(self._turn)
        self._place = follow(self._call.set)
        self._pieces: deque[_Piece[Sent]] = deque()
        self._all: list[Member[Sent]] = []
        self._left: list[Member[Sent]] = []
        self._data, self._after = b"", 0

    @property
    def place(self) -> int:
        """The number of the last item taken for all current members."""
        return self._place.place

    @property
    def over(self) -> End | None:
        """Why the sequence has ended; ``None`` if it has not."""
        return self._place.over

    def close_if_empty(self) -> None:
        """Close a fan-out without members; the next member gets a new one."""
        if not self.members:
            self._place.close()
            self._pieces.clear()
            self._gone()

    def catch_up(self) -> None:
        """Take new items, unless earlier ones are still being written."""
        if not self._pieces:
            self._take()
            self._call.set()

    def _turn(self) -> None:
        """Write to some members; the others, and items that arrive meanwhile, have later turns."""
        under_way = bool(self._pieces)
        if not under_way:
            self._take()
        self._write()
        # Also when the last piece has just been written: items that came during the turns of writing wait for a take.
        if self._pieces or under_way:
            self._call.set()
        elif self.over:
            # A copy, since `release` removes the member from the dictionary.
            for member in list(self.members):
                member.release()

    def _take(self) -> None:
        """Take new items as pieces, to be written to the members of this moment."""
        size = 0
        for answer in self._place.take():
            if not size or size > PIECE:
                self._pieces.append(_Piece(self._place.before(answer), []))
                size = 0
            self._pieces[-1].sent.append(answer)
            # One more, so that `size` is above 0 after the first item even if an item counts as empty.
            size += self._size(answer) + 1
        # Members that join later have taken these items themselves.
        self._all = list(self.members)
        self._begin()

    def _begin(self) -> None:
        """Encode the next piece, and list whom to write it to."""
        self._left = self._all.copy() if self._pieces else []
        self._data = self._encode(self._pieces[0].sent) if self._pieces else b""
        # Not the number of the last item: numbers of a channel and places of its log differ by the channel's start.
        self._after = self._pieces[1].before if len(self._pieces) > 1 else self.place

    def _write(self) -> None:
        """Write the current piece to at most ``TURN`` members that lack it."""
        if not self._pieces:
            return
        before = self._pieces[0].before
        for _ in range(min(TURN, len(self._left))):
            member = self._left.pop()
            # Members may have left, or left and rejoined at a later place, since the piece was taken for them.
            if member.at == before and member in self.members:
                if member.write(self._data):
                    member.at = self._after
                else:
                    member.release()
        if not self._left and self._pieces:
            self._pieces.popleft()
            self._begin()


Key = TypeVar("Key", bound=Hashable)


class Fanouts(Generic[Key, Sent]):
    """Fan-outs by key: the channel or query, and the encoding."""

    def __init__(self) -> None:
        self._fans: dict[Key, Fanout[Sent]] = {}

    def within(
        self,
        key: Key,
        follow: Callable[[Callable[[], None]], Place[Sent]],
        encode: Encode[Sent],
        size: Callable[[Sent], int],
    ) -> Fanout[Sent]:
        """The fan-out of a key, created if it does not exist or has ended."""
        fan = self._fans.get(key)
        if fan is None or fan.over:
            fan = self._fans[key] = Fanout(follow, encode, size, lambda: self._forget(key, fan))
        return fan

    def _forget(self, key: Key, fan: Fanout[Sent] | None) -> None:
        # A fan-out that had ended may have been replaced before its last member left.
        if self._fans.get(key) is fan:
            del self._fans[key]


def frames(texts: Iterable[bytes]) -> bytes:
    """Text messages as frames of a server (RFC 6455, 5.2): whole, not masked, not compressed."""
    return b"".join(_frame(text) for text in texts)


def _frame(text: bytes) -> bytes:
    size = len(text)
    if size < 126:
        return b"\x81%c%s" % (size, text)
    length = b"\x7e" + size.to_bytes(2, "big") if size < 2**16 else b"\x7f" + size.to_bytes(8, "big")
    return b"\x81" + length + text


def chunk(data: bytes) -> bytes:
    """A chunk of a response (RFC 9112, 7.1)."""
    return b"%x\r\n%s\r\n" % (len(data), data)


CODES = {"over": 1000, "failed": 1011}
"""Close codes of a WebSocket by kind of end (RFC 6455, 7.4.1)."""

REASON_BYTES: Final = 123
"""Bytes of a close frame's reason (RFC 6455, 5.5)."""


def close_reason(why: str) -> str:
    """The longest beginning of a sentence, in whole characters, that a close frame can hold."""
    # `replace` for lone surrogates, which UTF-8 has no bytes for; `ignore` drops the character that the cut has halved.
    return why.encode("utf-8", "replace")[:REASON_BYTES].decode("utf-8", "ignore")


async def as_events(
    place: Place[Sent],
    line: Callable[[Sent], bytes],
    signal: events.Signal,
    member: Member[Sent] | None = None,
    run: str = "",
    *,
    anew: bool = False,
) -> AsyncIterator[bytes]:
    """Server-sent events until the sequence ends or the subscriber is too slow, then an event with the reason.

    Once the subscriber has caught up, the fan-out of its ``member`` writes to it. ``run`` is part of the ids. If its
    last event was from another run (``anew``), the number of events it missed is unknown.
    """
    try:
        if (missed := place.missed) or anew:
            yield events.event(_missed(missed, anew).encode(), kind="missed")
        while True:
            # Read before take(): an end seen after it could hide answers added in between.
            over = place.over
            ids = ((answer, events.event_id(answer.number, run)) for answer in place.take())
            for piece in _together(events.event(line(answer), name) for answer, name in ids):
                yield piece
            if over:
                yield events.event(json.dumps({over.kind: over.why}).encode(), kind=over.kind)
                return
            inside = member is not None and member.join()
            # While the fan-out writes, this coroutine only sends the signs of life, and none where something was
            # written meanwhile.
            while not await signal.wait(events.BEAT_S):
                if member is None or member.was_silent() or not inside:
                    yield events.BEAT
                # It could not join, so it takes what has come and tries again after each beat.
                if not inside:
                    break
            if member is not None:
                member.leave()
    finally:
        _closed(place, member)


def _missed(count: int, anew: bool) -> str:
    """The message to a subscriber about events that it cannot get."""
    return json.dumps({"missed": None if anew else count})


def _closed(place: Place[Sent], member: Member[Sent] | None) -> None:
    if member is not None:
        member.leave()
    place.close()


def _together(chunks_: Iterable[bytes]) -> Iterator[bytes]:
    """Events joined into pieces of ``PIECE`` bytes: a send costs more than a join."""
    waiting: list[bytes] = []
    size = 0
    for piece in chunks_:
        waiting.append(piece)
        size += len(piece)
        if size >= PIECE:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)


async def converse(
    websocket: WebSocket,
    place: Place[Sent],
    text: Callable[[Sent], str],
    signal: events.Signal,
    hear: Callable[[], Awaitable[None]],
    member: Member[Sent] | None = None,
    *,
    anew: bool = False,
) -> None:
    """Send messages until either side ends; ``hear`` reads the client's messages and returns when it disconnects.

    Once the subscriber has caught up, the fan-out of its ``member`` writes to it.
    """
    hearing = asyncio.create_task(_heard(hear, signal))
    try:
        if (missed := place.missed) or anew:
            await events.in_time(websocket.send_text(_missed(missed, anew)))
        while not hearing.done():
            # Read before take(), as in as_events.
            over = place.over
            for answer in place.take():
                await events.in_time(websocket.send_text(text(answer)))
            if over:
                await websocket.close(CODES[over.kind], close_reason(over.why))
                break
            inside = member is not None and member.join()
            while not await signal.wait(events.BEAT_S) and inside:
                pass
            if member is not None:
                member.leave()
    # Starlette raises RuntimeError for a send after the client's close.
    except (WebSocketDisconnect, RuntimeError, TimeoutError):
        return
    finally:
        _closed(place, member)
        hearing.cancel()


async def _heard(hear: Callable[[], Awaitable[None]], signal: events.Signal) -> None:
    try:
        await hear()
    finally:
        signal.set()


async def nothing(websocket: WebSocket) -> None:
    """Discard a client's messages until it disconnects."""
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass
