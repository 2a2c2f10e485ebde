"""Clients beside servers that send too much, too slowly, packed, or elsewhere."""

import asyncio
import gzip
import socket
import threading
import time
from contextlib import contextmanager, suppress

import httpx
import pytest

from streamgauge.outgoing.clients import ExchangeLimits, async_client, client, guarded_client
from streamgauge.outgoing.sockets import check_reachable

pytestmark = pytest.mark.server

LIMITS = ExchangeLimits(seconds=0.5, received=100_000, silence=0.3)
PACKED = gzip.compress(b"x" * 10_000_000)


def piecewise(pieces, pause):
    def answer(connection):
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)

    return answer


OK = b"HTTP/1.1 200 OK\r\n"
EVENTS = OK + b"Content-Type: text/event-stream\r\n\r\n"
FAULTY = {
    "an endless body": (piecewise([OK + b"\r\n", *[b"x" * 50_000] * 200], 0), httpx.ReadError),
    "endless events that the request does not accept": (
        piecewise([EVENTS, *[b"data: {}\n\n" * 5_000] * 200], 0),
        httpx.ReadError,
    ),
    "an endless event": (piecewise([EVENTS, *[b"data: " + b"x" * 50_000] * 200], 0), httpx.ReadError),
    "a body that trickles": (piecewise([OK + b"\r\n", *[b"x"] * 100], 0.05), httpx.ReadTimeout),
    "a head that trickles": (piecewise([OK, *[b"X: y\r\n"] * 100], 0.05), httpx.ReadTimeout),
    "a status that trickles": (piecewise([bytes([byte]) for byte in OK * 10], 0.05), httpx.ReadTimeout),
    "no answer": (piecewise([b""] * 20, 0.1), httpx.ReadTimeout),
    "silent events": (piecewise([EVENTS, b"data: x\n\n", *[b""] * 20], 0.1), httpx.ReadTimeout),
    "an endless head": (piecewise([OK, *[b"X: " + b"y" * 1000 + b"\r\n"] * 2000], 0), httpx.RemoteProtocolError),
    "a packed body": (
        piecewise([OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED], 0),
        httpx.DecodingError,
    ),
}


@contextmanager
def answering(answer):
    """A server that reads a request and answers so, each connection in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(connection):
            with connection, suppress(OSError):
                connection.recv(65_536)
                answer(connection)

        def accept():
            with suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("kind", FAULTY)
def test_a_client_that_waits_ends_in_time_and_within_its_bytes(kind):
    answer, error = FAULTY[kind]
    with answering(answer) as port, client(LIMITS) as web, pytest.raises(error):
        web.get(f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize("kind", FAULTY)
def test_a_client_that_awaits_does_too(kind):
    answer, error = FAULTY[kind]

    async def run(port):
        async with async_client(LIMITS) as web:
            await web.get(f"http://127.0.0.1:{port}/")

    with answering(answer) as port, pytest.raises(error):
        asyncio.run(run(port))


def test_events_go_on_for_longer_than_an_exchange():
    pieces = [EVENTS, *[b"data: " + b"x" * 40_000 + b"\r\n\r\n"] * 10]
    with (
        answering(piecewise(pieces, 0.1)) as port,
        client(LIMITS) as web,
        web.stream("GET", f"http://127.0.0.1:{port}/", headers={"Accept": "text/event-stream"}) as response,
    ):
        assert sum(map(len, response.iter_bytes())) == 10 * 40_010


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:%d/other", "http://169.254.169.254/latest", "http://2130706433:%d/"]
)
def test_a_redirect_leads_to_no_private_address_but_the_named_one(location):
    with socket.create_server(("127.0.0.1", 0)) as other:
        target = location % other.getsockname()[1] if "%d" in location else location
        moved = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s\r\n\r\n" % target.encode()
        with (
            answering(lambda connection: connection.sendall(moved)) as port,
            client(LIMITS, private={("127.0.0.1", port)}, follow_redirects=True) as web,
            pytest.raises(httpx.ConnectError, match="which is not public"),
        ):
            web.get(f"http://127.0.0.1:{port}/")


def test_a_client_for_named_addresses_goes_to_public_ones_only():
    async def run():
        async with guarded_client(lambda _address, why: httpx.ConnectError(why), limits=LIMITS) as web:
            await web.get("http://127.0.0.1:9/")

    with pytest.raises(httpx.ConnectError, match="which is not public"):
        asyncio.run(run())


def test_a_port_where_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_reachable("127.0.0.1", port, 5)
    with pytest.raises(OSError, match="refused"):
        check_reachable("127.0.0.1", port, 5)
