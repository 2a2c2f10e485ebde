"""Heads that two readers could understand differently are refused, whatever server and route they are for."""

import asyncio
import socket

import pytest

from streamgauge.servers.http.heads import SINGLE, encoded_target, head_fault
from streamgauge.servers.http.server import Serving
from tests.servers.broker.served import serving
from tests.servers.broker.world import broker

HOST = (b"host", b"a.example")


@pytest.mark.parametrize(
    ("version", "target", "headers", "says"),
    [
        ("1.1", b"/", [HOST], ""),
        ("1.0", b"/", [], ""),
        ("1.1", b"/", [], "Host is missing"),
        ("1.1", b"/", [HOST, HOST], "Host came more than once"),
        ("1.1", b"/", [HOST, (b"host", b"b.example")], "Host came more than once"),
        ("1.0", b"/", [HOST, HOST], "Host came more than once"),
        ("1.1", b"/", [(b"host", b"a.example:80")], ""),
        ("1.1", b"/", [(b"host", b"[::1]:80")], ""),
        ("1.1", b"/", [(b"host", b"")], "expected a host"),
        ("1.1", b"/", [(b"host", b"a.example, b.example")], "expected a host"),
        ("1.1", b"/", [(b"host", b"user@a.example")], "expected a host"),
        ("1.1", b"/", [(b"host", b"a.example/path")], "expected a host"),
        ("1.1", b"/", [(b"host", b"a b")], "expected a host"),
        ("1.1", b"/", [(b"host", b"a.example:80:80")], "expected a host"),
        ("1.1", b"http://a.example/", [HOST], ""),
        ("1.1", b"http://A.EXAMPLE/x", [HOST], ""),
        ("1.1", b"http://b.example/", [HOST], "another host"),
        (
            "1.1",
            b"/",
            [HOST, (b"content-length", b"3"), (b"content-length", b"4")],
            "Content-Length came more than once",
        ),
        ("1.1", b"/", [HOST, (b"content-length", b"3"), (b"transfer-encoding", b"chunked")], "one of them"),
        ("1.1", b"/", [HOST, (b"if-match", b'"a"'), (b"if-match", b'"b"')], ""),
        ("1.1", b"/", [HOST, (b"accept", b"a/b"), (b"accept", b"c/d")], ""),
    ],
)
def test_a_head_is_clear_or_refused(version, target, headers, says):
    fault = head_fault(version, target, headers)
    assert (says in fault, bool(fault)) == (True, bool(says)), fault


@pytest.mark.parametrize("name", sorted(SINGLE))
def test_fields_that_come_once_come_once(name):
    others = [] if name == b"host" else [HOST]
    assert "came more than once: send it once" in head_fault("1.1", b"/", [*others, (name, b"x"), (name, b"x")])


GET, POST = "GET /health HTTP/1.1\n", "POST /publish HTTP/1.1\nHost: 127.0.0.1\n"
SOCKET = (
    "Upgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n"
)
HEADS = {
    "two hosts": (f"{GET}Host: 127.0.0.1\nHost: 127.0.0.1\n\n", 400),
    "two different hosts": (f"{GET}Host: 127.0.0.1\nHost: evil.example\n\n", 400),
    "no host": (f"{GET}\n", 400),
    "no host in 1.0": ("GET /openapi.json HTTP/1.0\n\n", 421),
    "an empty host": (f"{GET}Host:\n\n", 400),
    "one host": (f"{GET}Host: 127.0.0.1\nConnection: close\n\n", 200),
    "another in the target": ("GET http://evil.example/health HTTP/1.1\nHost: 127.0.0.1\n\n", 400),
    "two lengths": (f"{POST}Content-Length: 1\nContent-Length: 2\n\nxy", 400),
    "a length twice": (f"{POST}Content-Length: 1\nContent-Length: 1\n\nx", 400),
    "a list of lengths": (f"{POST}Content-Length: 1, 1\n\nx", 400),
    "a length with a sign": (f"{POST}Content-Length: +1\n\nx", 400),
    "length and chunks": (f"{POST}Content-Length: 5\nTransfer-Encoding: chunked\n\n0\n\n", 400),
    "another coding": (f"{POST}Transfer-Encoding: gzip\n\n", 400),
    "two keys": (
        f"{POST}Idempotency-Key: a\nIdempotency-Key: b\nContent-Type: text/turtle\nContent-Length: 0\n\n",
        400,
    ),
    "two tokens": (f"{GET}Host: 127.0.0.1\nAuthorization: Bearer a\nAuthorization: Bearer b\n\n", 400),
    "a space before the colon": (f"{GET}Host : 127.0.0.1\n\n", 400),
    "a folded line": (f"{GET}Host: 127.0.0.1\nAccept: a\n b\n\n", 400),
    "a socket with two hosts": (f"GET /subscribe HTTP/1.1\nHost: 127.0.0.1\nHost: 127.0.0.1\n{SOCKET}\n", 400),
}


@pytest.fixture(scope="module")
def port():
    with serving(broker()) as (url, _):
        yield int(url.rpartition(":")[2])


@pytest.mark.server
@pytest.mark.parametrize("kind", HEADS)
def test_a_server_answers_what_is_clear_and_no_other(port, kind):
    head, status = HEADS[kind]
    with socket.create_connection(("127.0.0.1", port), 10) as held:
        held.sendall(head.replace("\n", "\r\n").encode())
        held.settimeout(10)
        said = held.recv(65_536)
        while said and not said.endswith((b"}", b".")) and (more := held.recv(65_536)):
            said += more
    assert int(said.split()[1]) == status, said
    assert said.count(b"\r\n\r\n") == 1


@pytest.mark.server
def test_after_a_refused_head_the_connection_ends(port):
    with socket.create_connection(("127.0.0.1", port), 10) as held:
        held.sendall(b"GET /health HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        held.settimeout(10)
        said = b""
        while more := held.recv(65_536):
            said += more
    assert said.count(b"\r\n\r\n") == 1
    assert b"400 Bad Request" in said


def test_a_client_on_this_machine_does_not_say_the_scheme_or_the_address_of_another():
    """uvicorn listens to X-Forwarded-* of 127.0.0.1 unless it is told not to."""
    seen = []

    async def application(scope, receive, send):
        seen.append((scope["scheme"], scope["client"]))

    config = Serving(application, "127.0.0.1", 0, lambda: None, lambda _: None).config
    config.load()
    told = [(b"x-forwarded-proto", b"https"), (b"x-forwarded-for", b"192.0.2.1")]
    scope = {"type": "http", "scheme": "http", "client": ("127.0.0.1", 1), "headers": told}
    asyncio.run(config.loaded_app(scope, None, None))
    assert seen == [("http", ("127.0.0.1", 1))]


def test_an_address_in_utf8_is_encoded_as_an_iri_becomes_a_uri():
    assert encoded_target('GET /grün?o="é" HTTP/1.1\r'.encode()) == b'GET /gr%C3%BCn?o="%C3%A9" HTTP/1.1\r'


@pytest.mark.server
@pytest.mark.parametrize("size", [1, 7, 30, 10_000])
def test_an_address_in_utf8_is_read_however_its_bytes_arrive(size):
    """As curl and proxies send what people write; the next request of the connection is read alike."""
    data = "GET /channels/grün HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    last = "GET /channels/größer HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
    with (
        serving(broker()) as (address, _),
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), 30) as client,
    ):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for request in (data, last):
            for start in range(0, len(request), size):
                client.sendall(request[start : start + size])
            reply = b""
            while b"}" not in reply:
                reply += client.recv(65536)
            assert b" 404 " in reply.partition(b"\r\n")[0]
            name = request.decode().split()[1].rpartition("/")[2]
            assert name in reply.decode()
