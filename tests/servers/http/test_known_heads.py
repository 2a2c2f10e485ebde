"""Requests whose head, but for its target, was read before: answered as the parser has them answered, without it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import uvicorn
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from uvicorn.server import ServerState

from streamgauge.servers.http import connections
from streamgauge.servers.http.connections import PatientHttpProtocol
from streamgauge.servers.http.heads import HEAD, KnownHeads

FIRST = b"GET /p HTTP/1.1\r\nHost: a\r\n\r\n"
OTHER = b"GET /q?x=%20 HTTP/1.1\r\nHost: a\r\nAccept: b/c\r\nContent-Length: 0\r\n\r\n"
BEGUN, WITHIN = b"GET /p HTTP/1.1\r\nX: ", b"GET /p HTTP/1.1\r\nHost: z\r\n\r\n"
"""The beginning of a head, and a head that may be its end."""

CHUNKS = [
    FIRST,
    FIRST.replace(b"/p", b"/q"),
    OTHER,
    OTHER.replace(b"/q", b"/r"),
    FIRST.replace(b"/p", b"/long/way"),
    FIRST.replace(b"/p", b"//"),
    FIRST.replace(b"/p", b"/a b"),
    FIRST.replace(b"/p", b"http://b/p"),
    FIRST.replace(b"1.1", b"1.0"),
    FIRST.replace(b"\r\n", b"\n"),
    FIRST + FIRST,
    FIRST[:9],
    FIRST[9:],
    FIRST[:-2] + b"Content-Length: %d\r\n\r\n" % len(FIRST),
    FIRST[:-2] + b"Connection: close\r\n\r\n",
    FIRST[:-2] + b"If-None-Match: x\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(FIRST),
    b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab",
    b"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"0\r\n\r\n",
    b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(FIRST),
    BEGUN,
    WITHIN,
    *(FIRST.replace(b"/p", target) for target in (b"/a\nb", b"/a\r\nX:b", b"/a\x01", b"/a\xff", b"/a\tb")),
]


class Transport(asyncio.Transport):
    """Holds what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self._closed = b"", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True

    abort = close

    def get_write_buffer_size(self) -> int:
        return 0


class Echo:
    """Says what it is asked for: at once but for ``/long/way`` and methods other than GET, whose bodies it repeats.

    ``/early`` is answered before its body comes.
    """

    def prompt(self, scheme: str, target: bytes, headers: Any) -> bytes | None:
        if target == b"/long/way" or b" " in target:
            return None
        return b"[%s %s %s]" % (scheme.encode(), target, repr(dict(headers)).encode())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", scope["path"] != "/early"
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        said = b"%s %s %s" % (scope["method"].encode(), scope["path"].encode(), body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(said))]})
        await send({"type": "http.response.body", "body": said})


class Counted(PatientHttpProtocol):
    """Counts the requests that the parser began."""

    begun = 0

    def on_message_begin(self) -> None:
        type(self).begun += 1
        super().on_message_begin()


async def answered(chunks: Sequence[bytes]) -> tuple[bytes, bool, int]:
    """What is written when these come one after the other, whether the connection ends, requests parsed."""
    settings_ = uvicorn.Config(Echo(), lifespan="off", log_level="critical", date_header=False, server_header=False)
    settings_.load()
    settings_.loaded_app = Echo()
    Counted.begun = 0
    protocol, transport = Counted(settings_, ServerState(), {}), Transport()
    protocol.connection_made(transport)
    for chunk in chunks:
        if not transport.is_closing():
            protocol.data_received(chunk)
        for _ in range(6):
            await asyncio.sleep(0)
    written, closing = transport.written, transport.is_closing()
    protocol.connection_lost(None)
    return written, closing, Counted.begun


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.sampled_from(CHUNKS), max_size=8))
@example([FIRST, CHUNKS[13], FIRST])
@example([FIRST[:9], FIRST, FIRST])
@example([CHUNKS[20], FIRST, FIRST])
@example([BEGUN, WITHIN, WITHIN])
@example([FIRST, FIRST.replace(b"/p", b"/" + b"p" * HEAD), FIRST])
@example([FIRST, CHUNKS[16], FIRST, FIRST])
@example([OTHER, FIRST[:9], FIRST[9:], OTHER, FIRST + FIRST, FIRST])
def test_answers_are_those_of_the_parser(monkeypatch: pytest.MonkeyPatch, chunks: list[bytes]) -> None:
    """Bodies that look like a known head included, heads in pieces, several at once."""
    monkeypatch.setattr(connections, "HEADS", KnownHeads(limit=1, longest=0))
    parsed = asyncio.run(answered(chunks))
    monkeypatch.setattr(connections, "HEADS", KnownHeads())
    asyncio.run(answered([FIRST, OTHER]))
    assert asyncio.run(answered(chunks))[:2] == parsed[:2]


@pytest.mark.parametrize("chunk", CHUNKS[-5:])
def test_a_target_with_other_bytes_is_left_to_the_parser(monkeypatch: pytest.MonkeyPatch, chunk: bytes) -> None:
    monkeypatch.setattr(connections, "HEADS", KnownHeads())
    written, closing, begun = asyncio.run(answered([FIRST, chunk]))
    assert begun == 2
    assert asyncio.run(answered([chunk]))[:2] == (written.replace(asyncio.run(answered([FIRST]))[0], b""), closing)


def test_a_known_head_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADS", KnownHeads())
    written, _, begun = asyncio.run(answered([FIRST, OTHER, *[OTHER.replace(b"/q", b"/%d" % n) for n in range(20)]]))
    assert begun == 2
    assert written.count(b"[http /") == 22
    assert asyncio.run(answered([CHUNKS[16], FIRST, FIRST]))[2] == 1, "the body of a POST, and one after it"


def test_only_whole_heads_of_a_bounded_length_and_number_are_kept() -> None:
    heads = KnownHeads(limit=3, longest=100)
    rest = b" HTTP/1.1\r\nHost: a\r\n\r\n"
    for data in (FIRST + b"x", FIRST + FIRST, FIRST[:-2], b"HEAD /p" + rest, b"GET p" + rest, b"GET /p" + rest[1:]):
        heads.keep(data, {})
        assert heads.headers(data[data.find(b" ", 4) :]) is None
    heads.keep(b"GET /" + b"a" * 1000 + rest, {b"host": b"a"})
    assert heads.headers(rest) == {b"host": b"a"}
    long = rest[:-2] + b"A: " + b"a" * 100 + b"\r\n\r\n"
    heads.keep(b"GET /" + long, {})
    assert heads.headers(long) is None
    for number in range(3):
        heads.keep(b"GET /" + rest.replace(b"a", b"%d" % number), {})
    assert heads.headers(rest) is None, "others took its place"
