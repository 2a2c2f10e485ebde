"""A fragments server on a socket, in a thread of this process or as a process of its own."""

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from streamgauge.servers.fragments.pages.http import FragmentsApp
from streamgauge.servers.http.server import Serving

PLAIN = (
    b"GET /data?predicate=urn:p HTTP/1.1\r\nHost: localhost\r\nAccept: application/n-quads\r\nConnection: close\r\n\r\n"
)


@contextmanager
def listening(app: FragmentsApp) -> Iterator[int]:
    """The port at which a server in a thread listens."""
    with serving(app) as (_, port):
        yield port


@contextmanager
def serving(app: FragmentsApp) -> Iterator[tuple[Serving, int]]:
    """A server in a thread, and its port."""
    said, ports = threading.Event(), []

    def say(address: str) -> None:
        ports.append(int(address.rsplit(":", 1)[1].strip("/")))
        said.set()

    settings = {"date_header": False, "server_header": False, "timeout_keep_alive": 0.1, "proxy_headers": False}
    server = Serving(app, "127.0.0.1", 0, app.leave, say, 300, settings)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert said.wait(300)
    try:
        yield server, ports[0]
    finally:
        server.stop()
        thread.join(20)
        assert not thread.is_alive()


def connect(port: int, timeout: float = 20.0) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout)


def rest(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    parts = []
    with suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def ask(port: int, request: bytes = PLAIN) -> bytes:
    with connect(port) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request)
        return rest(connection)


@contextmanager
def process(words: Sequence[str], port: int = 0) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """``streamgauge fragments serve`` as a process, and its port; killed in the end."""
    command = [sys.executable, "-m", "streamgauge.cli.main", "fragments", "serve", *words, "--port", str(port)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert running.stderr is not None
    messages = []
    try:
        for line in running.stderr:
            messages.append(line)
            if match := re.search(r" at http://[^ ]*:(\d+)/$", line.strip()):
                yield running, int(match[1])
                break
        else:
            raise AssertionError("".join(messages))
    finally:
        running.kill()
        running.stderr.close()
        running.wait(300)


def tokens(folder: Path, token: str) -> str:
    file = folder / "tokens"
    file.write_text(f"{token}\n")
    file.chmod(0o600)
    return str(file)
