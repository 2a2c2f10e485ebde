"""Bytes that a client sends beside a body, and frames: bounded before anybody looks at who it is."""

import asyncio
import logging
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress

import pytest

from streamgauge.servers.http.heads import HEAD, HeadBytes, LargeHeads, LongHeadError
from streamgauge.servers.http.server import DescriptorReports, Serving, provide_descriptors
from streamgauge.servers.http.websocket import MAX_FRAGMENTS

pytestmark = pytest.mark.server

CHUNKED = b"POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
UPGRADE = (
    b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
MASK = b"\x00\x00\x00\x00"


async def echo(scope, receive, send):
    """Echo bodies and messages; ``/refused`` is answered before its body comes."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": str(len(message.get("text") or message.get("bytes") or b""))})
        return
    body, more, headers = b"", scope["path"] != "/refused", repr(scope["headers"]).encode()
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    said = body if scope["path"] != "/headers" else headers
    status = 401 if scope["path"] == "/refused" else 200
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"%d" % len(said))]})
    await send({"type": "http.response.body", "body": said})


@contextmanager
def serving(app=echo, connections=100):
    addresses, ready = [], threading.Event()

    def say(address):
        addresses.append(address)
        ready.set()

    server = Serving(app, "127.0.0.1", 0, lambda: None, say, connections, {"lifespan": "off"})
    thread = threading.Thread(target=server.run)
    thread.start()
    assert ready.wait(20)
    try:
        yield int(addresses[0].rstrip("/").rpartition(":")[2])
    finally:
        server.stop()
        thread.join()


def connect(port):
    return socket.create_connection(("127.0.0.1", port), 20)


def rest(connection):
    parts = []
    with suppress(OSError):
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def sent(connection, pieces):
    """How many bytes the server took before it left."""
    total = 0
    try:
        for piece in pieces:
            connection.sendall(piece)
            total += len(piece)
    except OSError:
        pass
    return total


FIELDS = {
    "trailers": (CHUNKED + b"1\r\nx\r\n0\r\n", b"X-T: " + b"x" * 1000 + b"\r\n"),
    "a trailer that does not end": (CHUNKED + b"0\r\nX-T: ", b"x" * 1000),
    "trailers after an answer": (CHUNKED.replace(b"/x", b"/refused") + b"0\r\n", b"a:b\r\n" * 200),
    "an extension of a chunk": (CHUNKED + b"5;x=", b"x" * 1000),
    "a target": (b"GET /", b"x" * 1000),
    "a field of the head": (CHUNKED[:-2] + b"X: ", b"x" * 1000),
    "fields of the head": (CHUNKED[:-2], b"a:b\r\n" * 200),
    "empty lines": (b"", b"\r\n" * 500),
}


@pytest.mark.parametrize("kind", FIELDS)
def test_what_does_not_end_beside_a_body_is_refused(kind):
    begin, piece = FIELDS[kind]
    with serving() as port, connect(port) as connection:
        taken = sent(connection, [begin, *[piece] * 30_000])
        assert taken < 8 * 2**20, "more than the sockets' buffers"


@pytest.mark.parametrize("kind", ["a head", "trailers"])
def test_one_read_may_not_bring_more_than_a_head_may_have(kind):
    fields = b"".join(b"x-%d: y\r\n" % number for number in range(HEAD // 9))
    request = CHUNKED[:-2] + fields + b"\r\n0\r\n\r\n" if kind == "a head" else CHUNKED + b"0\r\n" + fields + b"\r\n"
    with serving() as port, connect(port) as connection:
        connection.sendall(request)
        assert rest(connection).startswith(b"HTTP/1.1 431 ")


def test_large_heads_of_all_connections_have_a_budget():
    large = LargeHeads(100_000)
    first, second = HeadBytes(large), HeadBytes(large)
    first.add_field(b"x", b"y" * 60_000)
    second.add_field(b"x", b"y" * 4_000)
    with pytest.raises(LongHeadError):
        second.add_field(b"x", b"y" * 50_000)
    first.begin()
    second.begin()
    second.add_field(b"x", b"y" * 60_000)
    second.progress()
    second.read(10)
    second.begin()
    first.add_field(b"x", b"y" * 60_000)


def test_trailers_are_no_headers():
    with serving() as port, connect(port) as connection:
        connection.sendall(
            CHUNKED.replace(b"/x", b"/headers").replace(b"Host", b"Connection: close\r\nHost")
            + b"1\r\nx\r\n0\r\nAuthorization: Bearer y\r\n\r\n"
        )
        answer = rest(connection)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"authorization" not in answer


def test_many_small_chunks_are_a_body():
    with serving() as port, connect(port) as connection:
        connection.sendall(
            CHUNKED.replace(b"Host", b"Connection: close\r\nHost") + b"1\r\nx\r\n" * 40_000 + b"0\r\n\r\n"
        )
        assert rest(connection).endswith(b"x" * 40_000)


def test_few_requests_of_a_connection_wait_for_the_one_before():
    begun = []

    async def silent(scope, receive, send):
        begun.append(scope["path"])
        while (await receive())["type"] != "http.disconnect":
            pass

    with serving(silent) as port, connect(port) as connection:
        connection.sendall(b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 500)
        assert rest(connection).startswith(b"HTTP/1.1 400 ")
    assert begun == ["/x"]


def test_an_application_learns_that_its_client_left_though_requests_wait_behind():
    left = threading.Event()

    async def endless(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()

    with serving(endless) as port:
        with connect(port) as connection:
            connection.sendall(b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 3)
            connection.recv(100)
        assert left.wait(20)


def test_half_heads_lock_nobody_out():
    with serving(connections=20) as port:
        halves = [connect(port) for _ in range(50)]
        for half in halves:
            half.sendall(b"GET /x HTTP/1.1\r\n")
        for _ in range(3):
            with connect(port) as connection:
                connection.sendall(b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                assert rest(connection).startswith(b"HTTP/1.1 200")
        for half in halves:
            half.close()


def frame(opcode, data=b"", fin=True):
    length = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack("!H", len(data))
    return bytes([(0x80 if fin else 0) | opcode]) + length + MASK + data


def opened(port):
    connection = connect(port)
    connection.sendall(UPGRADE + b"\r\n")
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(1000)
    assert head.startswith(b"HTTP/1.1 101")
    return connection


def test_messages_come_in_order_whatever_is_read_at_once():
    with serving() as port, opened(port) as connection:
        connection.sendall(b"".join(frame(1, b"x" * (number % 100)) for number in range(3000)))
        said = b""
        while said.count(b"\x81") < 3000:
            said += connection.recv(65_536)
        expected = b"".join(b"\x81" + bytes([len(text)]) + text for text in (b"%d" % (n % 100) for n in range(3000)))
        assert said == expected


INVALID = {
    "text that is not UTF-8": frame(1, b"\xff\xfe"),
    "a reserved opcode": frame(3),
    "a frame without a mask": b"\x81\x01x",
    "a continuation of nothing": frame(0, b"x"),
    "a close frame of one byte": frame(8, b"x"),
    "too long a message": b"\x81\xff" + struct.pack("!Q", 2**40) + MASK,
    "frames without content": frame(1, b"", fin=False) + frame(0, b"", fin=False) * (MAX_FRAGMENTS + 1),
    "noise": bytes(range(256)) * 4,
}


@pytest.mark.parametrize("kind", INVALID)
def test_invalid_frames_end_the_connection_without_a_traceback(kind, caplog):
    caplog.set_level(logging.WARNING)
    with serving() as port, opened(port) as connection:
        connection.sendall(INVALID[kind])
        rest(connection)
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]


def test_a_bad_handshake_ends_the_connection():
    with serving() as port, connect(port) as connection:
        connection.sendall(UPGRADE + b"X: " + b"x" * 10_000 + b"\r\n\r\n")
        assert rest(connection).startswith(b"HTTP/1.1 400")


def test_a_client_that_takes_no_pongs_is_not_read():
    with serving() as port, opened(port) as connection:
        connection.settimeout(2)
        taken = sent(connection, [frame(9, b"x" * 125) * 1000] * 500)
        assert taken < 40 * 2**20


def test_aborted_uploads_leave_no_traceback(caplog):
    async def reads(scope, receive, send):
        from starlette.requests import Request

        await Request(scope, receive).body()
        raise AssertionError("not reached")

    with serving(reads) as port:
        for _ in range(5):
            with connect(port) as connection:
                connection.sendall(b"POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nabc")
    assert not caplog.records


def test_running_out_of_descriptors_is_a_sentence_now_and_then(caplog):
    now = [100.0]
    reports = DescriptorReports(lambda: now[0])
    loop = asyncio.new_event_loop()
    for at in (100.0, 101.0, 120.0):
        now[0] = at
        reports(loop, {"message": "accept", "exception": OSError(24, "Too many open files")})
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("ERROR", None)] * 2
    caplog.clear()
    reports(loop, {"message": "other", "exception": ValueError("x")})
    assert caplog.records[0].exc_info
    loop.close()


LIMITED = """
import resource, sys
from streamgauge.servers.http.server import provide_descriptors
resource.setrlimit(resource.RLIMIT_NOFILE, (64, int(sys.argv[1])))
print(provide_descriptors(1000), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(("hard", "says"), [(4096, "1000 1256"), (500, "244 500")])
def test_descriptors_are_raised_to_the_connections(hard, says):
    done = subprocess.run([sys.executable, "-c", LIMITED, str(hard)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == says


SERVED = """
import sys
from streamgauge.servers.http.server import Serving
async def app(scope, receive, send):
    pass
Serving(app, "127.0.0.1", 0, lambda: None, lambda at: print(at, flush=True), settings={"lifespan": "off"}).run()
"""


def test_sighup_stops_nobody():
    with subprocess.Popen([sys.executable, "-c", SERVED], stdout=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline()
        os.kill(process.pid, signal.SIGHUP)
        connect(int(address.rstrip("/\n").rpartition(":")[2])).close()
        assert process.poll() is None
        process.terminate()
        assert process.wait(20) in (0, -signal.SIGTERM)


def test_descriptors_of_this_process_suffice():
    assert provide_descriptors(10) == 10
