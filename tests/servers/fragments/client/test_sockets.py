"""Servers behind real sockets that break off, stall or speak no HTTP: tried again, then said."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from streamgauge.servers.fragments.client import LinkedDataError, UnavailableError
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.transport import ClientLimits, guarded_client
from tests.servers.fragments.client.fakes import Clock

pytestmark = pytest.mark.server

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/n-quads\r\n"
GOOD = HEAD + b"Content-Length: 4\r\n\r\ngood"
BOMB = gzip.compress(bytes(3_000_000))

PASSING = {
    "closes at once": b"",
    "closes in the head": HEAD[:20],
    "closes in the body": HEAD + b"Content-Length: 400\r\n\r\nhalf",
    "closes in a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n40\r\nhalf",
    "closes before the last chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    "closes in a gzip body": HEAD + b"Content-Encoding: gzip\r\n\r\n" + BOMB[:50],
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "no number for a status": b"HTTP/1.1 OK\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"x" * 300_000,
    "a chunk that is not a number": HEAD + b"Transfer-Encoding: chunked\r\n\r\nmany\r\nhalf\r\n",
    "busy": b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
}


@asynccontextmanager
async def scripted(*answers: bytes | None) -> AsyncIterator[str]:
    """A server that answers connections in turn, the last for ever; ``None`` says nothing and stays."""
    turn, stays = iter(answers), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said = next(turn, answers[-1])
        try:
            await reader.readuntil(b"\r\n\r\n")
            if said is None:
                await stays.wait()
            else:
                writer.write(said)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/d"
    finally:
        stays.set()
        server.close()
        await server.wait_closed()


def got(*answers: bytes | None, limits: ClientLimits | None = None) -> bytes:
    """The body that a client gets in the end."""

    async def run() -> bytes:
        clock = Clock()
        async with scripted(*answers) as address:
            web = CachingHttpClient(guarded_client(), clock, clock.sleep, limits or ClientLimits(), random=Random(1))
            try:
                return (await web.get(address, web.reach(address))).body
            finally:
                await web.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize("fault", PASSING)
def test_what_breaks_off_is_tried_again(fault: str) -> None:
    assert got(PASSING[fault], PASSING[fault], GOOD) == b"good"


@pytest.mark.parametrize("fault", PASSING)
def test_what_stays_broken_is_said(fault: str) -> None:
    with pytest.raises(
        UnavailableError, match=r"^http://127\.0\.0\.1:\d+/d: (no answer|answers 503).*after 2 attempts"
    ):
        got(PASSING[fault], limits=ClientLimits(attempts=2))


def test_a_server_that_takes_connections_and_says_nothing() -> None:
    assert got(None, GOOD, limits=ClientLimits(seconds=1.0)) == b"good"


def test_a_server_that_is_not_there() -> None:
    async def run() -> None:
        async with scripted(GOOD) as address:
            pass
        clock = Clock()
        web = CachingHttpClient(guarded_client(), clock, clock.sleep, ClientLimits(attempts=2))
        with pytest.raises(UnavailableError, match=r"no answer: .*after 2 attempts"):
            await web.get(address, web.reach(address))
        await web.aclose()

    asyncio.run(run())


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    assert got(HEAD + b"\r\ngood") == b"good"


def test_a_bomb_is_not_unpacked() -> None:
    with pytest.raises(LinkedDataError, match="unpacks to more than 100000 bytes"):
        got(HEAD + b"Content-Encoding: gzip\r\n\r\n" + BOMB, limits=ClientLimits(unpacked=100_000))
