"""Slow, half-open, endless and broken clients; a server that is killed while it is written to."""

import random
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import FragmentsApp, application
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes.http import WritesHandler
from streamgauge.servers.http import connections, limits, untaken
from streamgauge.servers.http.headers import of_host
from tests.servers.fragments.pages.sockets import PLAIN, ask, connect, listening, process, rest, serving, tokens

pytestmark = pytest.mark.server

TOKEN = "sixteen-letters-or-more"
POST = (
    f"POST /data HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: text/turtle\r\n".encode()
)


def served(quads: int = 3, page_size: int = 100) -> FragmentsApp:
    data = DataSet("data", MemoryStore(), Style(), lambda: 1_000_000, page_size)
    long = "x" * 100
    data.change([], [((f"<urn:s{n}>", "<urn:p>", f'"{long}{n}"', ""), None) for n in range(quads)])
    return application([data], [WritesHandler([TOKEN], of_host, 100_000)])


def test_a_request_byte_by_byte() -> None:
    with listening(served()) as port, connect(port) as connection:
        for byte in PLAIN:
            connection.sendall(bytes([byte]))
        assert rest(connection).startswith(b"HTTP/1.1 200")


def test_half_open_connections_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_PATIENCE_S", 1.5)
    with listening(served()) as port, ExitStack() as stack:
        silent = [stack.enter_context(connect(port)) for _ in range(60)]
        begun = [stack.enter_context(connect(port)) for _ in range(60)]
        again = [stack.enter_context(connect(port)) for _ in range(3)]
        for connection in begun:
            connection.sendall(PLAIN[:40])
        for connection in again:
            connection.sendall(PLAIN.replace(b"close", b"keep-alive") + PLAIN[:40])
        assert ask(port).startswith(b"HTTP/1.1 200")
        assert all(b"408 Request Timeout" in rest(connection) for connection in (*silent, *begun))
        assert all(rest(connection).startswith(b"HTTP/1.1 200") for connection in again)
        assert ask(port).startswith(b"HTTP/1.1 200")


def test_a_head_without_an_end_is_refused() -> None:
    with listening(served()) as port, connect(port) as connection:
        with suppress(OSError):
            connection.sendall(PLAIN[:-2])
            for _ in range(5_000):
                connection.sendall(b"X-More: " + b"x" * 1_000 + b"\r\n")
        with suppress(OSError):
            assert b"431" in rest(connection)[:20]
        assert ask(port).startswith(b"HTTP/1.1 200")


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATIENCE_S", 0.2)
    with listening(served()) as port, connect(port) as connection:
        connection.sendall(POST + b"Content-Length: 1000\r\n\r\n<urn:s>")
        connection.settimeout(300)
        said = connection.recv(65_536)
        assert said.startswith(b"HTTP/1.1 408")
        assert b"did not come within" in said + connection.recv(65_536)


def test_who_goes_on_with_a_refused_body_is_left_after_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATIENCE_S", 0.1)
    monkeypatch.setattr(connections, "LINGER_S", 0.3)
    with serving(served()) as (server, port), connect(port) as connection:
        connection.sendall(POST + b"Content-Length: 100000\r\n\r\n<urn:s>")
        said, pause = b"", threading.Event()
        connection.settimeout(0.01)
        with suppress(OSError):
            for _ in range(2_000):
                connection.sendall(b"x")
                with suppress(TimeoutError):
                    said += connection.recv(65_536)
                if not server.server_state.connections:
                    break
                pause.wait(0.01)
        assert b"did not come within" in said
        assert not server.server_state.connections


def test_a_refused_body_that_ends_leaves_the_connection_to_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATIENCE_S", 0.1)
    monkeypatch.setattr(connections, "LINGER_S", 0.5)
    with listening(served()) as port, connect(port) as connection:
        connection.sendall(POST + b"Content-Length: 10\r\n\r\n<urn:s>")
        connection.settimeout(300)
        said = connection.recv(65_536)
        while not said.endswith(b"}"):
            said += connection.recv(65_536)
        connection.sendall(b"123")
        threading.Event().wait(0.7)
        connection.sendall(PLAIN)
        assert rest(connection).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("length", [b"Content-Length: 99999999999\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"])
def test_a_body_without_an_end_is_refused(length: bytes) -> None:
    chunk = b"# nothing\n" * 1_000
    with listening(served()) as port, connect(port) as connection:
        with suppress(OSError):
            connection.sendall(POST + length)
            for _ in range(500):
                connection.sendall(b"2710\r\n" + chunk + b"\r\n" if b"chunked" in length else chunk)
        with suppress(OSError):
            assert b"413" in connection.recv(65_536)[:20]
        assert ask(port).startswith(b"HTTP/1.1 200")


def test_clients_that_take_nothing_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of 1.3 MB that are asked for and not read hold up nobody else, and go."""
    monkeypatch.setattr(untaken, "TAKE_S", 0.3)
    with serving(served(10_000, 10_000)) as (server, port), ExitStack() as stack:
        for _ in range(10):
            lazy = stack.enter_context(connect(port))
            lazy.sendall(PLAIN.replace(b"predicate=urn:p", b"").replace(b"close", b"keep-alive") * 12)
        assert len(ask(port)) > 1_000_000
        assert ask(port, PLAIN.replace(b"urn:p", b"urn:q")).startswith(b"HTTP/1.1 200")
        gone = threading.Event()
        for _ in range(3000):
            if not server.server_state.connections:
                break
            gone.wait(0.1)
        assert not server.server_state.connections


def test_a_slow_client_that_takes_what_it_can_is_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untaken, "TAKE_S", 0.2)
    with listening(served(10_000, 10_000)) as port, connect(port) as slow:
        slow.sendall(PLAIN.replace(b"predicate=urn:p", b"").replace(b"close", b"keep-alive") * 6 + PLAIN)
        taken, pause = 0, threading.Event()
        while part := slow.recv(400_000):
            taken += len(part)
            pause.wait(0.02)
        assert taken > 8_000_000


BROKEN = st.one_of(
    st.binary(max_size=200),
    st.tuples(st.integers(0, len(PLAIN)), st.binary(max_size=20)).map(
        lambda at: PLAIN[: at[0]] + at[1] + PLAIN[at[0] :]
    ),
    st.integers(0, len(PLAIN) - 5).map(lambda at: PLAIN[:at] + PLAIN[at + 4 :]),
)


def test_broken_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_PATIENCE_S", 0.05)
    with listening(served()) as port:

        @settings(max_examples=150, deadline=None, database=None)
        @given(BROKEN)
        def send(request: bytes) -> None:
            said = ask(port, request)
            assert said == b"" or (said.startswith(b"HTTP/1.1 ") and not said.startswith(b"HTTP/1.1 5"))

        send()
        monkeypatch.setattr(connections, "HEAD_PATIENCE_S", 30)
        assert ask(port).startswith(b"HTTP/1.1 200")


class Writer:
    """Writes one fact after the other, and knows which were acknowledged; a write may be tried again by its key."""

    def __init__(self) -> None:
        self.acknowledged: list[int] = []
        self.tried = 0

    def write(self, port: int, stop: threading.Event) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "text/turtle"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=300) as web:
            while not stop.is_set():
                self.tried += 1
                try:
                    reply = web.post("/data?for=1h", content=f"<urn:s{self.tried}> <urn:p> {self.tried} .")
                except httpx.HTTPError:
                    return
                if reply.status_code == 200:
                    self.acknowledged.append(self.tried)


def killed_while_written(folder: Path, rounds: int) -> None:
    """Nothing that was acknowledged is lost, and what was not is there whole or not at all."""
    file, writer, draw = folder / "data.nt", Writer(), random.Random(7)
    file.write_text('<urn:s0> <urn:p> "0" .\n')
    words = [str(file), "--store", str(folder / "store"), "--token-file", tokens(folder, TOKEN), "--page-size", "10000"]
    for _ in range(rounds):
        with process(words) as (running, port):
            stop, already = threading.Event(), len(writer.acknowledged)
            thread = threading.Thread(target=writer.write, args=(port, stop))
            thread.start()
            while len(writer.acknowledged) < already + draw.randint(5, 60) and thread.is_alive():
                thread.join(0.005)
            running.kill()
            stop.set()
            thread.join(30)
        with process(words) as (_, port):
            reply = httpx.get(
                f"http://127.0.0.1:{port}/data?predicate=urn:p", headers={"Accept": "application/n-quads"}
            )
            there = {int(line.split('"')[1]) for line in reply.text.splitlines() if " <urn:p> " in line}
            assert set(writer.acknowledged) <= there
            assert there <= set(range(writer.tried + 1))
            labels = httpx.get(
                f"http://127.0.0.1:{port}/data?predicate=http://example.org/temporal%23expiration",
                headers={"Accept": "application/n-quads"},
            )
            graphs = {
                line.split(" ")[3] for line in reply.text.splitlines() if line.count(" ") == 4 and "<urn:p>" in line
            }
            labelled = {line.split(" ")[0] for line in labels.text.splitlines() if 'expiration> "' in line}
            assert graphs == labelled


def test_a_server_killed_while_it_is_written_to_loses_nothing_acknowledged(tmp_path: Path) -> None:
    killed_while_written(tmp_path, 1)


@pytest.mark.prove
def test_a_server_killed_again_and_again_loses_nothing_acknowledged(tmp_path: Path) -> None:
    killed_while_written(tmp_path, 20)
