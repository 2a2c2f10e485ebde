"""Server-sent events: our server and client over cut connections, limits, and what other servers may send."""

import socket
from contextlib import suppress
from itertools import islice
from threading import Thread
from time import monotonic

import httpx
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.lines import encode_element
from streamgauge.model.element import StreamElement
from streamgauge.servers.sinks import open_sink
from streamgauge.sources import Delivery, SourceError, open_source
from streamgauge.sources.sse.events import EventParser, ServerEvent, write_event
from tests.outgoing.test_clients import answering, piecewise

from .conftest import free_port

pytestmark = pytest.mark.server


def element(number: int) -> StreamElement:
    return StreamElement("urn:s", 10 * number, number, ((f"<urn:a{number}>", "<urn:b>", "<urn:c>"),))


def numbers(items) -> list[int]:
    return [item.sequence for item in items]


def send(sink, elements) -> None:
    for one in elements:
        sink.send(encode_element(one))


def serve(options="", port=0):
    return open_sink(f"sse+http://127.0.0.1:{port}/answers{options}")


def read(sink, options=""):
    return open_source(f"sse+{sink.url}{options}")


def test_every_client_gets_every_event_until_the_end():
    sink = serve()
    sources = [read(sink), read(sink)]
    results: list[list[int]] = [[], []]
    readers = [
        Thread(target=lambda s=s, f=f: f.extend(numbers(s.items()))) for s, f in zip(sources, results, strict=True)
    ]
    for reader in readers:
        reader.start()
    send(sink, map(element, range(3000)))
    assert sink.close() == sink.close() == Delivery(3000, 0)
    for reader in readers:
        reader.join(20)
    assert results == [list(range(3000))] * 2
    for source in sources:
        source.close()
        source.close()
    with pytest.raises(SourceError, match="the sink is closed"):
        sink.send(b"late")


class Cutting:
    """A way to a server that can be cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._ends: list[socket.socket] = []
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                near.close()
                continue
            self._ends += [near, far]
            Thread(target=self._copy, args=(near, far), daemon=True).start()
            Thread(target=self._copy, args=(far, near), daemon=True).start()

    def _copy(self, near: socket.socket, far: socket.socket) -> None:
        try:
            while data := near.recv(1000):
                far.sendall(data)
        except OSError:
            pass

    def cut(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._ends.clear()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()


def test_a_cut_connection_goes_on_after_the_last_event():
    sink = serve()
    way = Cutting(int(sink.url.split(":")[2].split("/")[0]))
    source = open_source(f"sse+http://127.0.0.1:{way.port}/answers")
    items, result = source.items(), []
    for start in range(0, 400, 100):
        send(sink, map(element, range(start, start + 100)))
        result += numbers(islice(items, 70))
        way.cut()
    result += numbers(islice(items, 120))
    assert result == list(range(400))
    assert sink.close() == Delivery(400, 0)
    source.close()
    assert list(items) == []
    way.close()


def test_a_server_that_comes_back_is_found_again():
    port = free_port()
    sink = serve(port=port)
    source = read(sink)
    items = source.items()
    send(sink, [element(0)])
    assert numbers(islice(items, 1)) == [0]
    sink._server.force_exit = True  # as when it is killed: without an end
    sink._server.should_exit = True
    sink._thread.join()
    second = serve(port=port)
    send(second, map(element, range(1, 4)))
    assert numbers(islice(items, 3)) == [1, 2, 3]
    assert second.close() == Delivery(3, 0)
    source.close()


def test_what_is_no_longer_kept_is_told():
    sink = serve("?buffer=5&wait=50")
    send(sink, map(element, range(9)))
    source = read(sink, "?last=0")
    assert numbers(islice(source.items(), 5)) == [4, 5, 6, 7, 8]
    source.close()
    run = sink._buffer._run
    with pytest.raises(SourceError, match="2 events are missing: the server no longer has them"):
        next(read(sink, f"?last={run}.2").items())
    source = read(sink, f"?last={run}.2&bad=skip")
    assert numbers(islice(source.items(), 5)) == [4, 5, 6, 7, 8]
    assert source.refused == 1
    source.close()
    assert sink.close() == Delivery(5, 4, "no client took it while it was kept")


def test_without_a_client_nothing_is_delivered_by_the_loop_of_all_servers():
    sink = serve()
    assert isinstance(sink._loop, uvloop.Loop)
    sink.send(b"lost")
    assert sink.close() == Delivery(0, 1, "no client took it while it was kept")


def test_a_client_that_reads_nothing_holds_up_the_end_no_longer_than_its_patience(caplog):
    sink = serve()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", httpx.URL(sink.url).port))
        client.sendall(b"GET /answers HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"
        for _ in range(20):
            sink.send(b"x" * 500_000)
        begun = monotonic()
        assert sink.close(1.2).undelivered > 0
    assert monotonic() - begun < 2
    assert "Traceback" not in caplog.text


def test_limits():
    sink = serve("?clients=1&limit=100&token=secret-of-sixteen")
    with pytest.raises(SourceError, match="the server responds with 401") as refused:
        read(sink, "?token=wrong")
    assert "wrong" not in str(refused.value)
    source = read(sink, "?token=secret-of-sixteen")
    assert httpx.get(sink.url, headers={"authorization": "Bearer secret-of-sixteen"}).status_code == 503
    with pytest.raises(SourceError, match="the server responds with 503"):
        read(sink, "?token=secret-of-sixteen")
    shown = {"authorization": "Bearer secret-of-sixteen"}
    assert httpx.post(sink.url).status_code == 401
    assert httpx.post(sink.url, headers=shown).status_code == 405
    assert httpx.get(sink.url + "/else", headers=shown).status_code == 404
    sink.send(b"x" * 101)
    with pytest.raises(SourceError, match="server-sent events are UTF-8 text"):
        sink.send(b"\xff")
    assert sink.close() == Delivery(0, 1, "101 bytes are more than the limit, 100")
    source.close()


def test_a_sink_is_for_this_machine_or_has_a_token():
    with pytest.raises(SourceError, match=r"0\.0\.0\.0 can be reached by others: give a token"):
        open_sink("sse+http://0.0.0.0:0/answers")
    with pytest.raises(SourceError, match="at least 16 characters"):
        serve("?token=short")
    sink = serve()
    assert httpx.get(sink.url, headers={"host": "evil.example"}).status_code == 421
    assert httpx.get(sink.url, headers={"origin": "http://evil.example"}).status_code == 403
    shown = {"last-event-id": f"{sink._buffer._run}.{'9' * 5000}"}
    with httpx.stream("GET", sink.url, headers=shown) as response:
        assert response.status_code == 200
    sink.close()


def test_a_waiting_source_can_be_closed():
    sink = serve()
    source = read(sink)
    reader = Thread(target=lambda: list(source.items()))
    reader.start()
    source.close()
    reader.join(20)
    assert not reader.is_alive()
    assert sink.close() == Delivery(0, 0)


@pytest.mark.parametrize("bad", ["stop", "skip"])
def test_an_event_without_an_end_ends_the_source_instead_of_coming_again_and_again(bad):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    with answering(piecewise([head, *[b"data: " + b"x" * 1000] * 100], 0)) as port:
        source = open_source(f"sse+http://127.0.0.1:{port}/x?limit=1000&bad={bad}")
        with pytest.raises(SourceError, match="an event has more than 2000 bytes: raise `limit`"):
            list(source.items())
        source.close()


def test_a_server_that_stays_away_is_named():
    sink = serve()
    source = read(sink, "?patience=200")
    sink._server.force_exit = sink._server.should_exit = True
    sink._thread.join()
    with pytest.raises(
        SourceError, match=r"the server was unavailable for more than 200 ms: no server is listening there"
    ):
        next(source.items())
    source.close()


BAD = {
    "nobody": ("sse+http://127.0.0.1:{port}/x", "no server is listening there"),
    "option": ("sse+http://127.0.0.1:{port}/x?group=1", "unknown option group: there are bad, base, ca, "),
    "form": ("sse+http://127.0.0.1:{port}/x?form=yabench", "messages cannot be in the format 'yabench'"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_reached_is_named(case):
    text, said = BAD[case]
    with pytest.raises(SourceError, match=said):
        open_source(text.format(port=free_port()))


def test_a_port_that_is_taken_is_named():
    sink = serve()
    with pytest.raises(SourceError, match="cannot listen there: another program already uses this port"):
        open_sink(f"sse+{sink.url}")
    with pytest.raises(SourceError, match="put a proxy with TLS before it"):
        open_sink("sse+https://127.0.0.1/x")
    sink.close()


EVENTS = {
    "plain": (b"data: a\n\n", [("message", b"a", None)]),
    "lines": (b"data: a\r\ndata:b\r\rdata\n\n", [("message", b"a\nb", None), ("message", b"", None)]),
    "named": (
        b"\xef\xbb\xbfevent: x\nid: 7\ndata:  a\n: note\n\ndata: b\n\n",
        [("x", b" a", "7"), ("message", b"b", "7")],
    ),
    "empty": (b"id: 3\n\nevent: x\n\nodd: y\n\ndata: a\n", []),
    "too long": (b"data: " + b"x" * 30 + b"\n\ndata: b\n\n", [("message", None, None), ("message", b"b", None)]),
    "too many": (b"data: aaaaaaaaaaa\n" * 2 + b"\ndata: b\n\n", [("message", None, None), ("message", b"b", None)]),
    "far too long": (b"data: " + b"x" * 3000 + b"\n\ndata: b\n\n", [("message", None, None), ("message", b"b", None)]),
    "no id": (b"id: a\0b\nretry: x\ndata: a\n\n", [("message", b"a", None)]),
}


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize("case", EVENTS)
def test_events_of_other_servers(case, size):
    text, expected = EVENTS[case]
    parser = EventParser(20, None)
    parsed = [e for at in range(0, len(text), size) for e in parser.feed(text[at : at + size])]
    assert parsed == [ServerEvent(*one) for one in expected]


def test_the_time_to_wait_is_kept():
    parser = EventParser(20, None)
    assert list(parser.feed(b"retry: 1500\n\n")) == []
    assert parser.retry == 1500


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r")).map(str.encode)


@given(st.lists(st.tuples(TEXT, st.none() | st.from_regex(r"[a-z0-9.]{1,9}", fullmatch=True))), st.integers(1, 50))
def test_what_is_written_is_parsed(messages, size):
    text = b"".join(write_event(data, identifier) for data, identifier in messages)
    parser = EventParser(10_000, None)
    parsed = [e for at in range(0, len(text), size) for e in parser.feed(text[at : at + size])]
    assert [event.data for event in parsed] == [data.removesuffix(b"\n") for data, _ in messages]
    last = None
    for event, (_, identifier) in zip(parsed, messages, strict=True):
        last = identifier or last
        assert event.id == last
