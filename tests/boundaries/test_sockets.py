"""Every listening socket has the guards of the shared layer, whatever command opens it; one without is found."""

import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.boundaries.sockets import (
    BOUNDARIES,
    GROWTH,
    HERE,
    SHOWN,
    SRC,
    TOKEN,
    Boundary,
    another_coding,
    ask,
    connect,
    connects,
    foreign_page,
    listens,
    nobody,
    request,
    started,
    status,
    two_hosts,
    violations,
)

NAMED = tomllib.loads((Path(__file__).parent / "sockets.toml").read_text())


SIGNS = ("listen", "Serving", "open_sink", "connect", "bind", "serve", "urlopen", "Transport", "Producer", "paho")


def modules(test):
    texts = {str(path.relative_to(SRC)): path.read_text() for path in SRC.rglob("*.py")}
    return {name for name, text in texts.items() if any(sign in text for sign in SIGNS) and test(text)}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "test"), [("listens", listens), ("connects", connects)])
def test_every_module_that_listens_or_connects_is_known(kind, test):
    assert modules(test) == set(NAMED[kind])


def test_every_boundary_is_opened_by_a_module():
    assert set(BOUNDARIES) <= set(NAMED["listens"].values())


@pytest.mark.parametrize(
    "text",
    [
        "import asyncio\nasyncio.start_server(print, '0.0.0.0', 1)",
        "import socket\ns = socket.socket()\ns.bind(('', 1))",
        "from streamgauge.servers.http.server import Serving\nServing(None, '', 0, None).run()",
        "from streamgauge.servers.sinks import open_sink\nopen_sink('sse+http://0.0.0.0/x')",
    ],
)
def test_a_new_socket_is_found(text):
    assert listens(text)


@pytest.fixture(scope="module", params=BOUNDARIES)
def running(request, tmp_path_factory):
    boundary = BOUNDARIES[request.param]
    with started(boundary, tmp_path_factory.mktemp("boundary")) as result:
        yield result
        end_under_load(result)


def end_under_load(running):
    """SIGTERM ends it in good order within 5 s, whoever listens, uploads or has said half of a request."""
    boundary, port = running.boundary, running.ports[0]
    with ExitStack() as stack:
        for path in boundary.streams:
            listener = stack.enter_context(connect(port))
            listener.sendall(request("GET", path, HERE, SHOWN, "Accept: text/event-stream"))
            assert status(listener.recv(65_536)) == 200, path
        for head in (request("GET", boundary.reads, HERE)[:-2], request("POST", "/", HERE, SHOWN, "Content-Length: 9")):
            stack.enter_context(connect(port)).sendall(head)
        begin = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        code = running.process.wait(60)
        assert time.monotonic() - begin < 5
    assert code in (0, 143, -signal.SIGTERM)
    assert "Traceback" not in running.text


@pytest.mark.server
@pytest.mark.slow
def test_every_socket_of_a_command_has_the_guards(running):
    """No growth beyond 64 MB, which is given back; no traceback; SIGHUP ends nobody."""
    if running.boundary.stays:
        os.kill(running.process.pid, signal.SIGHUP)
    results = {port: violations(port, running.boundary) for port in running.ports}
    assert not any(results.values()), results
    for _ in range(100):
        if running.grown() < GROWTH:
            break
        time.sleep(0.1)
    assert running.grown() < GROWTH
    assert running.process.is_running()
    assert "Traceback" not in running.text


@pytest.mark.server
def test_a_head_of_a_stream_of_events_ends(running):
    """It would hold the connection, and a subscription, for events that HEAD never sends."""
    running.boundary.prepare(running.ports[0])
    for path in running.boundary.streams:
        answer = b""
        with connect(running.ports[0]) as connection:
            connection.sendall(request("HEAD", path, HERE, SHOWN, "Accept: text/event-stream, */*"))
            connection.sendall(request("GET", "/health", HERE, SHOWN, "Connection: close"))
            while part := connection.recv(65_536):
                answer += part
        assert status(answer) == 200, path
        assert answer.count(b"HTTP/1.1 ") == 2, (path, answer)


@pytest.mark.server
def test_health_needs_no_token_and_says_nothing_of_what_is_served(running):
    answers = {path: ask(running.ports[0], request("GET", path, HERE, "Connection: close")) for path in PROBES}
    assert {path: (status(answer), answer.partition(b"\r\n\r\n")[2]) for path, answer in answers.items()} == {
        "/health": (200, b'{"status":"up"}'),
        "/ready": (200, PUBLIC_READY if running.boundary.public else b'{"status":"ready"}'),
    }


PROBES = ("/health", "/ready")
PUBLIC_READY = b'{"status":"ready","fault":"","sources":{}}'


@pytest.mark.server
def test_tokens_are_read_again_on_sighup(running):
    """A new token is admitted; a file without one changes nothing, and is told."""
    if not running.boundary.stays:
        return
    file, new = running.log.parent / "tokens", "another-token-that-is-new"
    path = running.boundary.writes

    def admitted():
        head = request("POST", path, HERE, f"Authorization: Bearer {new}", "Content-Length: 0", "Connection: close")
        return status(ask(running.ports[0], head)) != 401

    assert not admitted()
    for text, expected in ((f"{TOKEN}\n{new}\n", True), ("", True), (f"{TOKEN}\n", False)):
        logged = running.text.count("not reloaded")
        file.write_text(text)
        running.process.send_signal(signal.SIGHUP)
        for _ in range(200):
            if admitted() == expected and (text or running.text.count("not reloaded") > logged):
                break
            time.sleep(0.05)
        assert admitted() == expected, (text, running.text)
    assert f"{file}: the file has no token" in running.text


@pytest.mark.server
@pytest.mark.parametrize("name", ["broker", "engine", "workbench"])
def test_no_command_listens_for_others_without_a_token(name, tmp_path):
    words = BOUNDARIES[name].words(tmp_path)[:-2]
    command = [sys.executable, "-m", "streamgauge", *words, "--host", "0.0.0.0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert "0.0.0.0 can be reached by others: give a token" in done.stderr


class Unguarded(BaseHTTPRequestHandler):
    """A server of the standard library, which answers everything."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_args):
        pass


@pytest.mark.server
def test_an_unguarded_socket_fails():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Unguarded)
    server.handle_error = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    checks = (two_hosts, foreign_page, nobody, another_coding)
    wrong = violations(server.server_port, Boundary(lambda _: [], "/publish"), checks)
    server.shutdown()
    server.server_close()
    assert len(wrong) == len(checks), wrong
