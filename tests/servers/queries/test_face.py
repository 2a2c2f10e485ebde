"""The query service on the web: every route, what it refuses and how, tokens, events, WebSocket, a real server."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from urllib.parse import quote

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from streamgauge.engines import load
from streamgauge.formats.lines import encode_advance, encode_element
from streamgauge.formats.streams import stream_formats
from streamgauge.servers.http.access import identity
from streamgauge.servers.http.server import Serving
from streamgauge.servers.queries.http import application
from streamgauge.servers.queries.limits import QueriesBusyError, QueryLimits
from streamgauge.servers.queries.registry import Queries
from tests.servers.programs import DYING
from tests.servers.queries.asks import IN, OUT, construct, element, select
from tests.servers.queries.test_registry import WAIT, Stuck

pytestmark = pytest.mark.server

TOKEN = "a-token-that-nobody-guesses"
REMOVES = b'{"t":1,"n":7,"stream":"urn:in","add":"","remove":"<urn:a> <urn:b> <urn:c> .\\n"}'
RDF_XML = b"""<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<r:Description r:about="urn:a"><p xmlns="urn:">1</p></r:Description></r:RDF>"""
LINES = {"Content-Type": "application/x-ndjson"}


def lines(*times: int) -> bytes:
    """Elements of these times as JSON lines, numbered by their times."""
    results = [element(time, f"s{time} p o.") for time in times]
    return b"".join(encode_element(item).replace(b'"n":0', b'"n":%d' % item.time) for item in results)


class Client:
    """Requests to an application without a server."""

    def __init__(self, queries: Queries, **options) -> None:
        self.queries = queries
        self.headers = options.pop("headers", {})
        self._app = application(queries, **options)

    def __call__(self, method: str, path: str, **options) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost", headers=self.headers
            ) as http:
                return await http.request(method, path, **options)

        return asyncio.run(ask())


@pytest.fixture
def ask() -> Iterator[Client]:
    queries = Queries(load, ("live",), QueryLimits(body=5000), clock=lambda: 4000)
    yield Client(queries)
    queries.close("the test is over")


def test_a_query_is_registered_listed_and_ended(ask):
    made = ask("POST", "/queries", json={"query": select(), "semantics": "csparql", "lateness": 10})
    assert (made.status_code, made.headers["location"]) == (201, "/queries/q1")
    assert ask("POST", f"/streams/{IN}", content=lines(0, 1000, 2500), headers=LINES).json() == {
        "items": 3,
        "queries": 1,
    }
    ask.queries.settle(WAIT)
    (one,) = ask("GET", "/queries").json()["queries"]
    assert one == ask("GET", "/queries/q1").json()
    assert (one["semantics"], one["state"], one["elements"], one["answers"]) == ("csparql", "running", 3, 1)
    known = {"stream": IN, "elements": 3, "read_by": ["q1"], "written_by": None}
    assert ask("GET", "/streams").json() == {"streams": [known]}
    assert ask("DELETE", "/queries/q1").status_code == 204
    assert ask("GET", "/queries/q1").status_code == 404


def test_a_query_as_text_with_options_beside_it(ask):
    made = ask("POST", "/queries?semantics=cqels&advance=wall", content=select())
    assert made.json()["semantics"] == "cqels"
    refused = ask("POST", "/queries?speed=high", content=select())
    assert (refused.status_code, "unknown: speed" in refused.json()["error"]) == (400, True)


@pytest.mark.parametrize(
    ("kind", "body", "path"),
    [
        ("application/x-ndjson", lines(0, 2500), ""),
        ("application/x-ndjson", lines(0) + encode_advance(2000), ""),
        ("application/x-ndjson", b'{"t": 2500, "add": "<urn:a> <urn:p> <urn:o> ."}', ""),
        ("application/x-ndjson", b'{"add": "<urn:a> <urn:p> <urn:o> ."}', "?t=2500"),
        ("application/x-ndjson", lines(0) + b"{}\n", "?t=2500"),
        ("application/n-quads", b"".join(map(stream_formats()["nquads"].encode, (element(0), element(2500)))), ""),
        ("application/trig", stream_formats()["trig"].encode(element(2500)), ""),
        ("text/turtle; charset=utf-8", b"<urn:a> <urn:p> 1 .", "?t=2500"),
        ("application/n-triples", b"<urn:a> <urn:p> <urn:o> .\n", "?t=now"),
        ("text/turtle", b"<urn:a> <urn:p> 1 .", ""),
        ("application/x-turtle", b"<urn:a> <urn:p> 1 .", ""),
        ("application/rdf+xml", RDF_XML, ""),
        ("", b"<urn:a> <urn:p> 1 .", "?form=turtle"),
    ],
)
def test_elements_come_in_many_formats(ask, kind, body, path):
    ask("POST", "/queries", json={"query": select(), "t0": 0})
    said = ask("POST", f"/streams/{IN}{path}", content=body, headers={"Content-Type": kind})
    assert said.status_code == 202, said.text
    ask.queries.settle(WAIT)
    assert ask("GET", "/queries/q1").json()["answers"] >= 1


def test_a_stream_iri_is_percent_encoded(ask):
    iri = "http://ex.org/streams/x?y=z"
    ask("POST", "/queries", json={"query": select(iri)})
    said = ask("POST", f"/streams/{quote(iri, safe='')}", content=lines(0), headers=LINES)
    assert said.json()["queries"] == 1
    known = {"stream": iri, "elements": 1, "read_by": ["q1"], "written_by": None}
    assert ask("GET", "/streams").json() == {"streams": [known]}


@pytest.mark.parametrize(
    ("method", "path", "options", "status", "says"),
    [
        ("POST", "/queries", {"content": "SELECT"}, 400, "this query has no stream"),
        ("POST", "/queries", {"content": b"\xff"}, 400, "not UTF-8"),
        ("POST", "/queries", {"content": "x" * 6000}, 413, "longer than 5000 bytes"),
        ("POST", "/queries", {"content": "{", "headers": {"Content-Type": "application/json"}}, 400, "not JSON"),
        ("POST", "/queries", {"json": {"query": select(), "semantics": "mine"}}, 400, "no semantics named"),
        ("POST", "/queries", {"json": {"query": select(), "semantics": {"tick": 3}}}, 400, "tick"),
        ("POST", "/queries", {"json": {"query": select(), "semantics": "cqels-1.x"}}, 400, "clock"),
        ("DELETE", "/queries/q7", {}, 404, "no query q7"),
        ("GET", "/queries/q7/answers", {}, 404, "no query q7"),
        ("GET", "/queries/q1/answers?after=x", {}, 400, "expected the number of an event"),
        ("POST", f"/streams/{IN}", {"content": b"{}", "headers": LINES}, 400, "body: field t is missing"),
        ("POST", f"/streams/{IN}", {"content": REMOVES, "headers": LINES}, 400, "element 7 removes triples"),
        ("POST", f"/streams/{IN}?t=soon", {"content": lines(0), "headers": LINES}, 400, "t is 'soon'"),
        (
            "POST",
            f"/streams/{IN}",
            {"content": b"x", "headers": {"Content-Type": "text/html"}},
            400,
            "text/html is none",
        ),
        ("POST", f"/streams/{OUT}", {"content": lines(0), "headers": LINES}, 409, "is the output of q1"),
        ("POST", "/streams", {"json": {"stream": IN}}, 400, "a source is attached by"),
        ("POST", "/streams", {"json": {"stream": IN, "source": "mqtt://localhost/t"}}, 403, "not allowed"),
        ("DELETE", f"/streams/{IN}", {}, 409, "no source attached"),
        ("PUT", "/static/urn:s", {"content": "<urn:a"}, 400, "static, line 1"),
    ],
)
def test_what_is_refused_is_said(ask, method, path, options, status, says):
    ask("POST", "/queries", content=construct())
    said = ask(method, path, **options)
    assert (said.status_code, says in said.json()["error"]) == (status, True), said.text


def test_limits_are_told_by_status():
    queries = Queries(load, ("live",), QueryLimits(queries=1, subscribers=0, elements_per_second=1), steady=lambda: 0.0)
    ask = Client(queries)
    ask("POST", "/queries", content=select())
    assert ask("POST", "/queries", content=select()).status_code == 429
    assert ask("GET", "/queries/q1/answers").status_code == 429
    queries.close("over")


def test_a_publisher_is_told_to_come_again(monkeypatch):
    monkeypatch.setattr("streamgauge.servers.queries.publications.PATIENCE_S", 0.2)
    stuck = Stuck()
    queries = Queries(lambda name: stuck, ("stuck",), QueryLimits(waiting=1))
    ask = Client(queries)
    ask("POST", "/queries", content=select())
    said = [ask("POST", f"/streams/{IN}", content=lines(0), headers=LINES)]
    assert stuck.begun.wait(WAIT)
    said += [ask("POST", f"/streams/{IN}", content=lines(time), headers=LINES) for time in (1, 2)]
    assert [item.status_code for item in said] == [202, 202, 429]
    assert said[2].headers["retry-after"] == "1"
    stuck.go.set()
    queries.close("over")


def test_shared_static_data(ask):
    assert ask("PUT", "/static/urn:s", content="<urn:a> <urn:b> 1, 2 .").json() == {"static": "urn:s", "triples": 2}
    made = ask("POST", "/queries", content=select().replace("FROM NAMED", "FROM <urn:s> FROM NAMED"))
    assert made.status_code == 201
    assert made.json()["memory"] > 0


def test_health_metrics_description_and_page(ask):
    ask("POST", "/queries", content=select())
    assert ask("GET", "/health").json() == {"status": "up"}
    assert ask("GET", "/ready").json() == {"status": "ready", "fault": "", "sources": {}}
    metrics = ask("GET", "/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'streamgauge_query_answers_total{query="q1"} 0\n' in metrics.text
    described = ask("GET", "/openapi.json").json()
    routes = {route.path.replace(":path", "") for route in ask._app.routes} - {"/", "/openapi.json"}
    assert set(described["paths"]) == routes
    assert described["components"]["schemas"]["Query"]["properties"]["engine"]["enum"] == ["live"]
    page = ask("GET", "/")
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_tokens():
    queries = Queries(load, ("live",))
    ask = Client(queries, tokens=("another-token-of-ours", TOKEN))
    for item in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
        said = ask("GET", "/queries", headers=item)
        assert (said.status_code, said.headers["www-authenticate"]) == (401, "Bearer")
    assert ask("GET", "/queries", headers={"Authorization": f"bearer {TOKEN}"}).status_code == 200
    assert ask("GET", f"/queries?access_token={TOKEN}").status_code == 200
    assert ask("POST", f"/queries?access_token={TOKEN}", content=select()).status_code == 401
    assert [ask("GET", path).status_code for path in ("/", "/health", "/openapi.json")] == [200] * 3


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost:8765"}, 200),
        ({"Host": "[::1]"}, 200),
        ({"Host": "[::1]:8765"}, 200),
        ({"Host": "127.0.0.2:8765"}, 200),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost"}, 200),
        ({"Origin": "null"}, 403),
    ],
)
def test_pages_of_others_are_kept_out(ask, headers, status):
    assert ask("GET", "/queries", headers=headers).status_code == status


def test_a_source_is_attached_where_it_is_allowed(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "s.jsonl").write_bytes(lines(0, 1000, 2500))
    (tmp_path / "inner.jsonl").write_bytes(lines(0))
    queries = Queries(load, ("live",))
    ask = Client(queries, allowed=(str(tmp_path / "in"),))
    ask("POST", "/queries", content=select())
    for path in (tmp_path / "inner.jsonl", tmp_path / "in" / ".." / "inner.jsonl", f"mqtt://h{tmp_path}/in/t"):
        assert ask("POST", "/streams", json={"stream": IN, "source": str(path)}).status_code == 403
    source = {"stream": IN, "source": str(tmp_path / "in" / "s.jsonl")}
    assert ask("POST", "/streams", json=source).status_code == 201
    until(lambda: ask("GET", "/streams").json()["streams"][0].get("ended"))
    queries.settle(WAIT)
    assert (queries.query("q1").elements, queries.query("q1").answers.number) == (3, 1)
    assert ask("DELETE", f"/streams/{IN}").status_code == 204
    queries.close("over")


def until(met) -> None:
    """Wait for something that another thread does."""
    end = time.monotonic() + WAIT
    while not met():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextmanager
def served(queries: Queries, **options):
    """The service on a free port, in a thread."""
    addresses: list[str] = []
    server = Serving(application(queries, **options), "127.0.0.1", 0, queries.leave, addresses.append)
    thread = threading.Thread(target=server.run, name="test-server")
    thread.start()
    try:
        until(lambda: addresses)
        yield SimpleNamespace(url=addresses[0].rstrip("/"), queries=queries, server=server)
    finally:
        server.stop()
        thread.join(WAIT)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def service():
    queries = Queries(load, ("live",), QueryLimits(kept=6, lag=3))
    with served(queries) as running:
        yield running


def events(response: httpx.Response, count: int) -> list[dict[str, str]]:
    """The first events of a response."""
    results: list[dict[str, str]] = [{}]
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            results[-1][name] = value
        elif results[-1]:
            results.append({})
            if len(results) > count:
                break
    return results[:count]


def registered(service, text: str) -> str:
    return httpx.post(f"{service.url}/queries", content=text).json()["id"]


def publish(service, *times: int) -> None:
    assert httpx.post(f"{service.url}/streams/{IN}", content=lines(*times), headers=LINES).status_code == 202
    assert service.queries.settle(WAIT)


def test_answers_as_events_and_resumed(service):
    name = registered(service, select())
    with httpx.stream("GET", f"{service.url}/queries/{name}/answers") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        publish(service, 0, 1000, 2500, 4100)
        result = events(response, 2)
    assert [entry["id"] for entry in result] == ["1", "2"]
    assert json.loads(result[0]["data"])["instant"] == 2000
    publish(service, 6000, 8000)
    with httpx.stream("GET", f"{service.url}/queries/{name}/answers", headers={"Last-Event-ID": "1"}) as response:
        assert [event["id"] for event in events(response, 3)] == ["2", "3", "4"]
    until(lambda: service.queries.query(name).answers.subscribers == 0)
    publish(service, *range(10_000, 30_000, 2000))
    with httpx.stream("GET", f"{service.url}/queries/{name}/answers?after=1") as response:
        first, second = events(response, 2)
    assert (first["event"], json.loads(first["data"])["missed"], second["id"]) == ("missed", 7, "9")
    with httpx.stream("GET", f"{service.url}/queries/{name}/answers?after=14") as response:
        httpx.delete(f"{service.url}/queries/{name}")
        (last,) = events(response, 1)
    assert (last["event"], json.loads(last["data"])) == ("over", {"over": "deregistered"})


def test_a_small_body_waits_in_a_thread_where_the_streams_are_in_use(service):
    name = registered(service, select())
    posted: list[int] = []

    def post() -> None:
        posted.append(httpx.post(f"{service.url}/streams/{IN}", content=lines(90_000), headers=LINES).status_code)

    poster = threading.Thread(target=post)
    with service.queries._lock:
        poster.start()
        for _ in range(5):
            assert httpx.get(f"{service.url}/health").status_code == 200
            time.sleep(0.02)
        assert not posted
    poster.join(WAIT)
    assert posted == [202]
    assert service.queries.settle(WAIT)
    assert service.queries.query(name).elements == 1
    service.queries.deregister(name)


def test_answers_by_websocket(service):
    name = registered(service, select())
    url = f"{service.url.replace('http', 'ws')}/queries/{name}/answers"
    with connect(url) as socket:
        publish(service, 100_000, 102_500)
        first = json.loads(socket.recv(timeout=WAIT))
        assert (first["id"], first["answer"]["instant"]) == (1, 102_000)
    until(lambda: service.queries.query(name).answers.subscribers == 0)
    with connect(f"{url}?after=0") as socket:
        assert json.loads(socket.recv(timeout=WAIT)) == first
        service.queries.deregister(name)
        with pytest.raises(ConnectionClosed, match="deregistered"):
            socket.recv(timeout=WAIT)
    with pytest.raises(InvalidStatus, match="403"):
        connect(url)


def test_a_program_that_dies_ends_its_answers_with_an_error():
    with served(Queries(lambda _name: DYING, ("dying",))) as service:
        name = registered(service, select())
        url = f"{service.url}/queries/{name}/answers"
        with httpx.stream("GET", url) as response, connect(url.replace("http", "ws")) as socket:
            httpx.post(f"{service.url}/streams/{IN}", content=lines(0), headers=LINES).raise_for_status()
            (last,) = events(response, 1)
            with pytest.raises(ConnectionClosed, match="1011") as closed:
                socket.recv(timeout=WAIT)
        document = httpx.get(f"{service.url}/queries/{name}").json()
    assert "exit code 1" in closed.value.rcvd.reason
    assert (last["event"], json.loads(last["data"])) == ("failed", {"failed": document["fault"]})
    assert (document["state"], "out of luck" in document["fault"]) == ("failed", True)


def test_a_client_that_takes_nothing_is_left(monkeypatch):
    monkeypatch.setattr("streamgauge.servers.http.events.SEND_S", 0.3)
    with served(Queries(load, ("live",))) as service:
        name = registered(service, select())
        host, port = service.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(f"GET /queries/{name}/answers HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            until(lambda: service.queries.query(name).answers.subscribers == 1)
            for time in range(0, 40, 2):
                if not service.queries.query(name).answers.subscribers:
                    break
                long = '<urn:a> <urn:p> "' + "x" * 500_000 + '" .'
                path = f"{service.url}/streams/{IN}?t={time * 1000}"
                httpx.post(path, content=long, headers={"Content-Type": "text/turtle"}).raise_for_status()
            until(lambda: service.queries.query(name).answers.subscribers == 0)
        assert httpx.get(f"{service.url}/queries/{name}").json()["state"] == "running"


def test_a_request_that_does_not_arrive_is_refused(monkeypatch):
    monkeypatch.setattr("streamgauge.servers.http.limits.PATIENCE_S", 0.2)
    with served(Queries(load, ("live",))) as service:
        host, port = service.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(f"POST /queries HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\nSEL".encode())
            head, _, said = client.makefile("rb").read(2000).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 408")
            assert b"did not come within 0.2 s" in said


@pytest.mark.parametrize("last", ["0a1b2c3d.1", "ffffffff.1"])
def test_numbers_of_another_run_are_told_from_those_of_this_one(last):
    with served(Queries(load, ("live",)), run="0a1b2c3d") as running:
        url = f"{running.url}/queries/{registered(running, select())}/answers"
        publish(running, 0, 1000, 2500, 4100)
        with httpx.stream("GET", url, headers={"Last-Event-ID": last}) as response:
            pushed = [(event.get("event"), event.get("id")) for event in events(response, 1 if last[0] == "0" else 3)]
        own = [(None, "0a1b2c3d.1"), (None, "0a1b2c3d.2")]
        assert pushed == (own[1:] if last[0] == "0" else [("missed", None), *own])
        with connect(f"{url.replace('http', 'ws')}?after={last}") as socket:
            first = json.loads(socket.recv())
            assert first == {"missed": None} or (first["id"], first["run"]) == (2, "0a1b2c3d")
            assert ("missed" in first) is (last[0] == "f")


def test_tokens_hold_for_websocket_and_events():
    with served(Queries(load, ("live",)), tokens=(TOKEN,)) as service:
        name = httpx.post(
            f"{service.url}/queries", content=select(), headers={"Authorization": f"Bearer {TOKEN}"}
        ).json()["id"]
        url = f"{service.url}/queries/{name}/answers"
        assert httpx.get(url).status_code == 401
        with pytest.raises(InvalidStatus, match="403"):
            connect(url.replace("http", "ws"))
        with connect(f"{url.replace('http', 'ws')}?access_token={TOKEN}"):
            pass
        with httpx.stream("GET", f"{url}?access_token={TOKEN}") as response:
            assert response.status_code == 200


def test_stopping_ends_long_responses_in_good_order():
    with served(Queries(load, ("live",))) as service:
        name = registered(service, select())
        with httpx.stream("GET", f"{service.url}/queries/{name}/answers?after=0") as response:
            publish(service, 0, 2500)
            service.server.stop()
            answer, last = events(response, 2)
    assert (answer["id"], last["event"]) == ("1", "over")
    assert service.queries.query(name).fault == "the service has ended"


KEYED = {**LINES, "Idempotency-Key": "k"}


def bearing(token: str, **headers: str) -> dict[str, str]:
    return {**KEYED, "Authorization": f"Bearer {token}", **headers}


@pytest.fixture
def held() -> Iterator[Client]:
    """A service with two tokens and one query."""
    queries = Queries(load, ("live",), clock=lambda: 4000)
    client = Client(queries, tokens=[TOKEN, TOKEN * 2])
    client("POST", "/queries", json={"query": select()}, headers={"Authorization": f"Bearer {TOKEN}"})
    yield client
    queries.close("the test is over")


def test_what_is_published_with_a_key_is_taken_once_per_token(held):
    path = f"/streams/{IN}"
    assert held("POST", path, content=lines(0), headers=bearing(TOKEN)).json()["items"] == 1
    assert held("POST", path, content=lines(0), headers=bearing(TOKEN)).json()["items"] == 1
    assert held.queries.streams()[IN] == 1
    for other in (
        held("POST", path, content=lines(0, 1000), headers=bearing(TOKEN)),
        held("POST", f"{path}?form=jsonl", content=lines(0), headers=bearing(TOKEN)),
        held("POST", f"{path}2", content=lines(0), headers=bearing(TOKEN)),
    ):
        assert (other.status_code, "another request" in other.json()["error"]) == (422, True)
    assert held("POST", path, content=lines(500), headers=bearing(TOKEN * 2)).status_code == 202
    assert held.queries.streams()[IN] == 2


def test_a_query_is_registered_once_per_key_and_what_failed_may_be_sent_again(held):
    headers = {"Authorization": f"Bearer {TOKEN}", "Idempotency-Key": "q"}
    assert held("POST", "/queries", content="SELECT", headers=headers).status_code == 400
    one, two = (held("POST", "/queries", json={"query": select()}, headers=headers) for _ in range(2))
    assert (one.status_code, one.json()["id"], two.json()["id"]) == (201, "q2", "q2")


def test_a_query_is_ended_only_as_it_is_demanded(held):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    tag = held("GET", "/queries/q1", headers=headers).headers["etag"]
    assert held("GET", "/queries/q1", headers={**headers, "If-None-Match": tag}).status_code == 304
    held("POST", f"/streams/{IN}", content=lines(0), headers={**LINES, **headers})
    held.queries.settle(WAIT)
    refused = held("DELETE", "/queries/q1", headers={**headers, "If-Match": tag})
    assert (refused.status_code, "is another by now" in refused.json()["error"]) == (412, True)
    tag = held("GET", "/queries/q1", headers=headers).headers["etag"]
    assert held("DELETE", "/queries/q1", headers={**headers, "If-Match": f'"x", {tag}'}).status_code == 204
    assert held("DELETE", "/queries/q1", headers={**headers, "If-Match": "*"}).status_code == 404


def test_static_data_is_replaced_only_as_it_is_demanded(ask):
    ask.queries.share("urn:t", (("<urn:a>", "<urn:b>", "<urn:c>"),))
    fresh = {"If-None-Match": "*"}
    assert ask("PUT", "/static/urn:t", content="<urn:a> <urn:b> 1 .", headers=fresh).status_code == 412
    made = ask("PUT", "/static/urn:s", content="<urn:a> <urn:b> 1 .", headers=fresh)
    assert made.status_code == 201
    assert ask("PUT", "/static/urn:s", content="<urn:a> <urn:b> 1 .", headers=fresh).status_code == 412
    tagged = {"If-Match": made.headers["etag"]}
    assert ask("PUT", "/static/urn:s", content="<urn:a> <urn:b> 2 .", headers=tagged).status_code == 201
    assert ask("PUT", "/static/urn:s", content="<urn:a> <urn:b> 3 .", headers=tagged).status_code == 412


@pytest.mark.parametrize("condition", ["If-Match", "If-None-Match"])
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/queries"), ("POST", "/streams"), ("POST", f"/streams/{IN}"), ("DELETE", f"/streams/{IN}")],
)
def test_what_has_no_entity_tag_refuses_conditions(ask, method, path, condition):
    refused = ask(method, path, content=select(), headers={condition: "*"})
    assert (refused.status_code, "has no entity tag" in refused.json()["error"]) == (412, True)
    assert (ask.queries.queries(), ask.queries.streams()) == ([], {})
    assert ask(method, path, content=select(), headers={condition: "x"}).status_code == 400


def test_quotas_are_of_a_token():
    clock = [0.0]
    limits = QueryLimits(queries=1, elements_per_second=2)
    queries = Queries(load, ("live",), limits, clock=lambda: 4000, steady=lambda: clock[0])
    ask = Client(queries, tokens=[TOKEN, TOKEN * 2])
    for token in (TOKEN, TOKEN * 2):
        headers = {"Authorization": f"Bearer {token}"}
        assert ask("POST", "/queries", json={"query": select()}, headers=headers).status_code == 201
        refused = ask("POST", "/queries", json={"query": select()}, headers=headers)
        assert (refused.status_code, "1 queries are registered" in refused.json()["error"]) == (429, True)
        assert queries.publish(IN, [element(0)] * 2, token) == len(queries.queries())
        with pytest.raises(QueriesBusyError, match="more than 2 elements"):
            queries.publish(IN, [element(0)], token)
    assert ask("DELETE", "/queries/q1", headers=headers).status_code == 204
    assert (
        ask("POST", "/queries", json={"query": select()}, headers={"Authorization": f"Bearer {TOKEN}"}).status_code
        == 201
    )
    queries.close("the test is over")


def test_subscribers_are_of_a_token():
    tokens = ("the-token-of-ann-1234", "the-token-of-bob-1234")
    service = Queries(load, ("live",), QueryLimits(subscribers=1), steady=lambda: 0.0)
    ask = Client(service, tokens=tokens)
    for token in tokens:
        who, owner = {"Authorization": f"Bearer {token}"}, identity(token)
        running = service.query(ask("POST", "/queries", content=select(), headers=who).json()["id"])
        subscription = service.subscribe(running, None, lambda: None, owner)
        said = ask("GET", f"/queries/{running.name}/answers", headers=who)
        assert (said.status_code, "1 of your subscribers" in said.text) == (429, True)
        subscription.close()
        service.subscribe(running, None, lambda: None, owner)
    service.close("over")
