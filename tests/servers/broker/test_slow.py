"""Connections that stall, in a broker of its own: they are left, memory stays bounded, others are told in time."""

import asyncio
import json
import socket
import time
from contextlib import ExitStack, suppress
from threading import Thread

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from streamgauge.servers.broker.http import application
from streamgauge.servers.http.connections import HEAD_PATIENCE_S, PatientHttpProtocol
from tests.servers.broker.process import Process, until
from tests.servers.broker.world import broker, select

pytestmark = pytest.mark.server

SIZE, COUNT = 60_000, 400
UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
NOTIFICATIONS = "GET /channels/texts/notifications{} HTTP/1.1\r\nHost: localhost\r\n{}\r\n"
STALLED = {
    "no request": "",
    "half a head": "GET /channels HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    "half a body": "POST /publish HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/turtle\r\n"
    "Content-Length: 1000\r\n\r\n<",
    "no reading of events": NOTIFICATIONS.format("?subscriber=stalled", ""),
    "no reading of messages": NOTIFICATIONS.format("", UPGRADE),
    "no reading of rows": "GET /channels/texts/rows HTTP/1.1\r\nHost: localhost\r\n\r\n",
}
EACH = 10


class Stalled:
    """Connections that send what they send, a byte more every second where that is slow, and read nothing."""

    def __init__(self, port, stack):
        self._sockets = {}
        for name, text in STALLED.items():
            for _ in range(EACH):
                made = stack.enter_context(socket.socket())
                made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                made.connect(("127.0.0.1", port))
                made.sendall(text.encode())
                self._sockets.setdefault(name, []).append(made)

    def drip(self):
        """The slow ones go on."""
        for name in ("half a head", "half a body"):
            for _socket in self._sockets[name]:
                with suppress(OSError):
                    _socket.send(b"x")


class Healthy(Thread):
    """A subscriber that reads."""

    def __init__(self, url):
        super().__init__()
        self._url, self.numbers, self.ready = url, [], False

    def run(self):
        with httpx.stream("GET", f"{self._url}/channels/texts/notifications", timeout=300) as events:
            self.ready = events.is_success
            for line in events.iter_lines():
                if line.startswith("id: "):
                    self.numbers.append(int(line[4:]))
                    if len(self.numbers) == COUNT:
                        return


def publish(http, n):
    text = f"<urn:t:s{n}> <urn:t:name> '{'x' * SIZE}{n}' ."
    return http.post("/publish", content=text, headers={"Content-Type": "text/turtle"})


@pytest.mark.prove
def test_connections_that_stall_are_left_and_hurt_nobody(tmp_path, capsys):
    folder = tmp_path / "broker"
    folder.mkdir()
    with (
        Process(folder, journal=False) as broker,
        httpx.Client(base_url=broker.url, timeout=300) as http,
        ExitStack() as stack,
    ):
        assert http.put("/channels/texts", content=select("?x :name ?n")).is_success
        assert http.put("/channels/texts/subscribers/stalled").is_success
        healthy = Healthy(broker.url)
        healthy.start()
        until(lambda: healthy.ready)
        before, most = broker.memory, 0
        stalled = Stalled(broker.port, stack)
        until(lambda: broker.sockets >= EACH * len(STALLED))
        for n in range(COUNT):
            assert publish(http, n).is_success
            most = max(most, broker.memory)
            if n % 20 == 0:
                stalled.drip()
        healthy.join(300)
        assert healthy.numbers == list(range(1, COUNT + 1))
        begun = time.monotonic()

        def gone():
            stalled.drip()
            time.sleep(1)
            return broker.sockets <= 2

        until(gone, 300)
        took = time.monotonic() - begun
        with capsys.disabled():
            print(
                f"\n{EACH * len(STALLED)} stalled connections: {(most - before) >> 20} MB more, left {took:.0f} s later"
            )
        assert most - before < 200 * 2**20
        assert resumed(http) == (COUNT, True)


def resumed(http):
    """The last number that the stalled subscriber gets when it comes back, and whether it is told what it missed."""
    missed = False
    with http.stream("GET", "/channels/texts/notifications?subscriber=stalled") as events:
        for line in events.iter_lines():
            missed = missed or (line.startswith("data: ") and "missed" in json.loads(line[6:]))
            if line == f"id: {COUNT}":
                return COUNT, missed
    return 0, missed


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system has no TCP_USER_TIMEOUT")
def test_a_client_that_is_gone_without_a_word_is_left_in_time():
    async def run():
        config, made = uvicorn.Config(application(broker())), []
        config.load()

        def connected():
            made.append(PatientHttpProtocol(config=config, server_state=ServerState(), app_state={}))
            return made[0]

        server = await asyncio.get_running_loop().create_server(connected, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        while not (made and made[0].transport):
            await asyncio.sleep(0.01)
        held = made[0].transport.get_extra_info("socket")
        result = held.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        writer.close()
        made[0].transport.close()
        server.close()
        await asyncio.sleep(0.01)
        return result

    assert asyncio.run(run()) == 1000 * HEAD_PATIENCE_S
