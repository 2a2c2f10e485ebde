"""Messages to many subscribers: encoded once, written to all connections without waking a task for each.

A subscriber that has taken all there was joins the ``Fanout`` of what it follows. From then on the fan-out takes what
comes, encodes it once, and writes the same bytes to the connections of its members, some of them in each turn of the
event loop. A connection that takes no more for now leaves with its place, and so does one whose subscription ends:
its own coroutine (``as_events``, ``converse``) goes on from there, waits for the client, and comes back when it has
caught up.

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
"""Bytes above which no more are written to a connection, or sent as one message, at once."""

TURN: Final = 128
"""Connections that are written to before others have their turn."""

PUSH: Final = "streamgauge.push"
"""The extension of an ASGI scope of which ``CONNECTION`` is the connection itself, a ``Connection``."""

CONNECTION: Final = "connection"


class Connection(Protocol):
    """A connection to which whole messages can be written from the event loop."""

    def write(self, data: bytes) -> bool:
        """Write; false where the client takes no more for now, or is gone: then nothing is written."""
        ...


class NumberedItem(Protocol):
    """A numbered item: a client that comes back names the number of the last one that it got."""

    @property
    def number(self) -> int:
        """From 1."""
        ...


Sent = TypeVar("Sent", bound=NumberedItem)


class Place(Protocol[Sent]):
    """A place in what is sent, which may be given up for a while."""

    @property
    def place(self) -> int:
        """The number of the last that was taken."""
        ...

    @property
    def over(self) -> End | None:
        """Why no more will come."""
        ...

    @property
    def missed(self) -> int:
        """How many after its place are not kept any more."""
        ...

    def take(self) -> Sequence[Sent]:
        """The items that came since the last take, in order."""
        ...

    def before(self, sent: Sent) -> int:
        """The place just before one that was taken."""
        ...

    def pause(self) -> None:
        """Be woken no more."""
        ...

    def resume(self, place: int) -> None:
        """Go on after a place, and be woken."""
        ...

    def close(self) -> None:
        """Leave."""
        ...


Encode = Callable[[Sequence[Sent]], bytes]


class Member(Generic[Sent]):
    """One subscriber: its place, its connection, and what wakes its coroutine. In the event loop's thread alone.

    ``within`` gives the fan-out to join.
    """

    def __init__(
        self, place: Place[Sent], connection: Connection, signal: Signal, within: "Callable[[], Fanout[Sent]]"
    ) -> None:
        self.place, self.connection, self.signal = place, connection, signal
        self.at = 0
        """The place up to which the fan-out has written."""
        self._within = within
        self._inside: Fanout[Sent] | None = None
        self._told = False

    def join(self) -> bool:
        """Join the fan-out, which writes to this member from now on; false where there is something to take first."""
        fan = self._within()
        if fan.place < self.place.place:
            fan.catch_up()
        if self.place.over or fan.over or fan.place != self.place.place:
            fan.close_if_empty()
            return False
        self.place.pause()
        self.at = fan.place
        fan.members[self] = None
        self._inside = fan
        return True

    def leave(self) -> None:
        """Go on alone, after what was written."""
        fan, self._inside = self._inside, None
        if fan is not None:
            del fan.members[self]
            fan.close_if_empty()
            self.place.resume(self.at)

    def release(self) -> None:
        """Let the subscriber's coroutine go on alone."""
        self.leave()
        self.signal.set()

    def write(self, data: bytes) -> bool:
        """Write to the connection."""
        self._told = True
        return self.connection.write(data)

    def was_silent(self) -> bool:
        """Whether nothing was written since this was asked last."""
        active, self._told = self._told, False
        return not active


@dataclass(slots=True)
class _Piece(Generic[Sent]):
    """Items that came after place ``before``."""

    before: int
    sent: list[Sent]


class Fanout(Generic[Sent]):
    """The members of one thing that is followed, all at its place. ``gone`` is called when there is none any more."""

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
        """The number of the last that was taken, for all that are members now."""
        return self._place.place

    @property
    def over(self) -> End | None:
        """Why no more will come."""
        return self._place.over

    def close_if_empty(self) -> None:
        """Drop a fan-out without members: the next member has another one."""
        if not self.members:
            self._place.close()
            self._pieces.clear()
            self._gone()

    def catch_up(self) -> None:
        """Take what has come, unless some of what was taken before is still to be written."""
        if not self._pieces:
            self._take()
            self._call.set()

    def _turn(self) -> None:
        """Write some of what has come; the rest, and what comes while that is written, in other turns."""
        under_way = bool(self._pieces)
        if not under_way:
            self._take()
        self._write()
        if self._pieces or under_way:
            self._call.set()
        elif self.over:
            for member in list(self.members):
                member.release()

    def _take(self) -> None:
        """The messages, in pieces, for the present members."""
        size = 0
        for answer in self._place.take():
            if not size or size > PIECE:
                self._pieces.append(_Piece(self._place.before(answer), []))
                size = 0
            self._pieces[-1].sent.append(answer)
            size += self._size(answer) + 1
        self._all = list(self.members)
        self._begin()

    def _begin(self) -> None:
        """The next piece."""
        self._left = self._all.copy() if self._pieces else []
        self._data = self._encode(self._pieces[0].sent) if self._pieces else b""
        self._after = self._pieces[1].before if len(self._pieces) > 1 else self.place

    def _write(self) -> None:
        """Write the piece to some that have not got it yet."""
        if not self._pieces:
            return
        before = self._pieces[0].before
        for _ in range(min(TURN, len(self._left))):
            member = self._left.pop()
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
    """Fan-outs by what is followed, and how it is encoded."""

    def __init__(self) -> None:
        self._fans: dict[Key, Fanout[Sent]] = {}

    def within(
        self,
        key: Key,
        follow: Callable[[Callable[[], None]], Place[Sent]],
        encode: Encode[Sent],
        size: Callable[[Sent], int],
    ) -> Fanout[Sent]:
        """The fan-out of a key, new where there is none."""
        fan = self._fans.get(key)
        if fan is None or fan.over:
            fan = self._fans[key] = Fanout(follow, encode, size, lambda: self._forget(key, fan))
        return fan

    def _forget(self, key: Key, fan: Fanout[Sent] | None) -> None:
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
"""How a WebSocket is closed (RFC 6455, 7.4.1)."""


async def as_events(
    place: Place[Sent],
    line: Callable[[Sent], bytes],
    signal: events.Signal,
    member: Member[Sent] | None = None,
) -> AsyncIterator[bytes]:
    """Events until no more will come, or the subscriber is too slow; then an event that says why.

    While there is nothing to send, a ``member`` is written to by its fan-out.
    """
    try:
        if missed := place.missed:
            yield events.event(json.dumps({"missed": missed}).encode(), kind="missed")
        while True:
            over = place.over
            for piece in _together(events.event(line(answer), answer.number) for answer in place.take()):
                yield piece
            if over:
                yield events.event(json.dumps({over.kind: over.why}).encode(), kind=over.kind)
                return
            inside = member is not None and member.join()
            while not await signal.wait(events.BEAT_S):
                if member is None or member.was_silent() or not inside:
                    yield events.BEAT
                if not inside:
                    break
            if member is not None:
                member.leave()
    finally:
        _closed(place, member)


def _closed(place: Place[Sent], member: Member[Sent] | None) -> None:
    if member is not None:
        member.leave()
    place.close()


def _together(chunks_: Iterable[bytes]) -> Iterator[bytes]:
    """Events joined to few pieces: sending a piece costs more than making it."""
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
) -> None:
    """Messages until either side ends; ``hear`` listens to the client and ends when it is to be left.

    While there is nothing to send, a ``member`` is written to by its fan-out.
    """
    hearing = asyncio.create_task(_heard(hear, signal))
    try:
        if missed := place.missed:
            await events.in_time(websocket.send_json({"missed": missed}))
        while not hearing.done():
            over = place.over
            for answer in place.take():
                await events.in_time(websocket.send_text(text(answer)))
            if over:
                await websocket.close(CODES[over.kind], over.why[:120])
                break
            inside = member is not None and member.join()
            while not await signal.wait(events.BEAT_S) and inside:
                pass
            if member is not None:
                member.leave()
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
    """Hear a client whose words are not looked at, until it leaves."""
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass
