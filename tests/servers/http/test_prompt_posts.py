"""Small POSTs that ``prompt_post`` answers: as the application answers them, however their bytes arrive."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import uvicorn
from hypothesis import example, given, settings
from hypothesis import strategies as st
from uvicorn.server import ServerState

from streamgauge.servers.http import connections
from streamgauge.servers.http.connections import AWAITED_BODY, PROMPT_BODY, PatientHttpProtocol
from streamgauge.servers.http.replies import Reply
from tests.servers.http.test_known_heads import Transport

HEAD = b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
POST, EMPTY = HEAD % 4 + b"abcd", HEAD % 0

CHUNKS = [
    POST,
    POST[:-4],
    POST[:-2],
    POST[-2:],
    POST[-4:],
    POST[:20],
    POST[20:],
    POST + POST,
    POST + POST[:30],
    POST[30:],
    POST.replace(b"/p", b"/long/way"),
    POST.replace(b"/p", b"/q?x=%20"),
    POST.replace(b"/p", b"http://a/p"),
    POST.replace(b"1.1", b"1.0"),
    POST.replace(b"Host: a\r\n", b"Host: a\r\nConnection: close\r\n"),
    POST.replace(b"Host: a\r\n", b"Host: a\r\nExpect: 100-continue\r\n"),
    POST.replace(b"Host: a\r\n", b"Host: a\r\nHost: b\r\n"),
    EMPTY,
    b"POST /p HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    b"GET /p HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /p HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd",
    b"PUT /p HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd",
    HEAD % (AWAITED_BODY + 1),
    b"x" * (AWAITED_BODY + 1),
    HEAD % (PROMPT_BODY + 1) + b"x" * (PROMPT_BODY + 1),
    POST.replace(b"/p", b"/a\xff"),
]


class Flowing(Transport):
    """Its reading may be paused."""

    def pause_reading(self) -> None:
        """Nothing is read here."""

    resume_reading = pause_reading


class Upper:
    """Repeats bodies in upper case."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        said = b"%s %s %s" % (scope["method"].encode(), scope["path"].encode(), body.upper())
        await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"%d" % len(said))]})
        await send({"type": "http.response.body", "body": said})


class PromptUpper(Upper):
    """The same, at once but for ``/long/way``; counts what it answered."""

    def __init__(self) -> None:
        self.prompted = 0

    def prompt_post(self, target: bytes, headers: Any, body: bytes) -> Reply | None:
        if target == b"/long/way":
            return None
        self.prompted += 1
        assert int(headers.get(b"content-length", b"0")) == len(body)
        return Reply(202, [], b"POST %s %s" % (target.partition(b"?")[0], body.upper()))


async def answered(app: Upper, chunks: Sequence[bytes], pause: float = 0.0) -> tuple[bytes, bool]:
    """What is written when these come one after the other, and whether the connection ends."""
    settings_ = uvicorn.Config(app, lifespan="off", log_level="critical", date_header=False, server_header=False)
    settings_.load()
    settings_.loaded_app = app
    protocol, transport = PatientHttpProtocol(settings_, ServerState(), {}), Flowing()
    protocol.connection_made(transport)
    for chunk in chunks:
        if not transport.is_closing():
            protocol.data_received(chunk)
        for _ in range(6):
            await asyncio.sleep(pause)
    written, closing = transport.written, transport.is_closing()
    protocol.connection_lost(None)
    return written, closing


@settings(deadline=None)
@given(st.lists(st.sampled_from(CHUNKS), max_size=8))
@example([POST[:-2], POST[-2:], POST])
@example([POST + POST[:30], POST[30:], POST])
@example([HEAD % (AWAITED_BODY + 1), b"x" * (AWAITED_BODY + 1), POST])
@example([POST[:-4], POST[-2:], POST[-2:], b"GET /p HTTP/1.1\r\nHost: a\r\n\r\n"])
def test_answers_are_those_of_the_application(chunks: list[bytes]) -> None:
    direct, closing = asyncio.run(answered(PromptUpper(), chunks))
    written, closing_ = asyncio.run(answered(Upper(), chunks))
    if b" 400 " in written:  # written at once, before the answer to a request of the same read
        assert sorted(direct.split(b"HTTP/1.1 ")) == sorted(written.split(b"HTTP/1.1 "))
    else:
        assert direct == written
    assert closing == closing_


@pytest.mark.parametrize(
    ("chunks", "prompted"),
    [
        ([POST, POST], 2),
        ([POST[:-4], POST[-4:]], 1),
        ([EMPTY], 1),
        ([POST.replace(b"/p", b"/long/way"), POST], 1),
        ([POST + POST], 1),
        ([CHUNKS[13]], 0),
        ([CHUNKS[15]], 0),
        ([CHUNKS[19]], 0),
        ([CHUNKS[25]], 0),
        ([HEAD % (AWAITED_BODY + 1), b"x" * (AWAITED_BODY + 1)], 0),
        ([HEAD % (AWAITED_BODY + 1) + b"x" * (AWAITED_BODY + 1)], 1),
    ],
)
def test_small_posts_are_answered_directly(chunks: list[bytes], prompted: int) -> None:
    app = PromptUpper()
    asyncio.run(answered(app, chunks))
    assert app.prompted == prompted


def test_the_application_gets_a_post_whose_body_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BODY_PATIENCE_S", 0.001)
    app, chunks = PromptUpper(), [POST[:-2], POST[-2:], POST]
    assert asyncio.run(answered(app, chunks, 0.002)) == asyncio.run(answered(Upper(), chunks))
    assert app.prompted == 1
