"""No client of the project follows a redirect to a private address that its user did not name."""

import asyncio
import socket
import threading
from contextlib import contextmanager, suppress

import httpx
import pytest

from streamgauge.model.mistake import MistakeError
from streamgauge.servers.fragments.client import LinkedDataError
from tests.boundaries.client_growth import CLIENTS
from tests.outgoing.test_clients import answering

pytestmark = pytest.mark.server

TARGETS = (
    "http://127.0.0.1:{}/", "http://localhost:{}/", "http://127.1:{}/", "http://2130706433:{}/", "http://0x7f.1:{}/",
    "http://0:{}/", "http://[::ffff:127.0.0.1]:{}/", "http://0.0.0.0:{}/", "//127.0.0.1:{}/", "http://a@127.0.0.1:{}/",
)  # fmt: skip
STATUSES = (301, 302, 303, 307, 308)


@contextmanager
def listening():
    """A port of this machine, and the requests that come there."""
    came = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept():
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.settimeout(5)
                        with suppress(OSError):
                            came.append(connection.recv(1000))
                            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1], came
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def visited(client, status, target):
    """What came to the private port that a redirect of the server named by the user leads to."""
    with listening() as (private, came):
        place = target.format(private)
        moved = f"HTTP/1.1 {status} Moved\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode()

        async def ask(url):
            with suppress(httpx.HTTPError, MistakeError, LinkedDataError, TimeoutError, OSError):
                async with asyncio.timeout(3):
                    await CLIENTS[client](url)

        with answering(lambda connection: connection.sendall(moved)) as port:
            asyncio.run(ask(f"http://127.0.0.1:{port}/"))
        return came


@pytest.mark.parametrize("client", CLIENTS)
def test_no_client_follows_a_redirect_to_a_private_address(client):
    assert visited(client, 302, TARGETS[0]) == []


@pytest.mark.prove
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("client", CLIENTS)
def test_no_client_follows_any_redirect_to_a_private_address(client, status, target):
    assert visited(client, status, target) == []


def test_a_client_that_follows_is_seen(monkeypatch):
    async def follows(url):
        async with httpx.AsyncClient(follow_redirects=True) as web:
            await web.get(url)

    monkeypatch.setitem(CLIENTS, "follows", follows)
    assert visited("follows", 302, TARGETS[0])
