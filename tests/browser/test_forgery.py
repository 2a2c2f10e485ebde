"""Pages elsewhere, in a real browser, change nothing and read nothing: forms, fetch, beacons, events, sockets.

The pages are of ``localhost``, another site, and of another port of 127.0.0.1, which is the same site: a cookie that is
``SameSite=Strict`` is sent from there.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from streamgauge.engines import load
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application as fragments_application
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes.http import WritesHandler
from streamgauge.servers.http.headers import of_host
from streamgauge.servers.http.server import Serving
from streamgauge.servers.queries.http import application as query_application
from streamgauge.servers.queries.registry import Queries
from tests.boundaries.sockets import EVERY
from tests.servers.broker.served import serving
from tests.servers.broker.world import broker, select
from tests.workbench.serving import opened

pytestmark = [pytest.mark.browser, pytest.mark.prove]

TOKEN = "a-token-that-nobody-guesses"
FORGERY = """
const [base, requests, events, sockets, done] = arguments
const found = [], wait = ms => new Promise(go => setTimeout(go, ms))
const form = async (path, type, fields) => {
  const frame = document.createElement("iframe"), made = document.createElement("form")
  frame.name = "f" + Math.random(); document.body.append(frame)
  Object.assign(made, { method: "POST", action: base + path, enctype: type, target: frame.name })
  for (const [name, value] of Object.entries(fields)) {
    const input = document.createElement("input")
    Object.assign(input, { type: "hidden", name, value }); made.append(input)
  }
  document.body.append(made)
  const over = new Promise(go => { frame.onload = go })
  made.submit(); await Promise.race([over, wait(3000)]); made.remove(); frame.remove()
}
const read = async (path, options) => {
  try {
    const reply = await fetch(base + path, { credentials: "include", ...options })
    if (reply.type !== "opaque") found.push((options.method || "GET") + " " + path + " is read")
  } catch { /* refused, as it should be */ }
}
const opens = (make, open) => new Promise(go => {
  const made = make(); const end = said => { made.close(); go(said) }
  made[open] = () => end(true); made.onerror = () => end(false); setTimeout(() => end(false), 3000)
})
const run = async () => {
  for (const [method, path, type, body, fields] of requests) {
    for (const kind of ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data"])
      await form(path, kind, fields)
    await read(path, { method: "POST", mode: "no-cors", headers: { "Content-Type": "text/plain" }, body })
    await read(path, { method: "POST", mode: "no-cors", body: new URLSearchParams(fields) })
    await read(path, { method, headers: { "Content-Type": type }, body })
    navigator.sendBeacon(base + path, new Blob([body], { type: "text/plain" }))
    const image = new Image(); image.src = base + path
  }
  for (const path of events) {
    await read(path, {})
    const source = () => new EventSource(base + path, { withCredentials: true })
    if (await opens(source, "onopen")) found.push("events of " + path)
  }
  for (const path of sockets)
    if (await opens(() => new WebSocket(base.replace("http", "ws") + path), "onopen")) found.push("WebSocket " + path)
  await wait(300); done(found)
}
run()
"""
"""All that a page can send without being let in; gives what it got to see."""


class Blank(BaseHTTPRequestHandler):
    """An empty page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><body></body>")

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Blank) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@contextmanager
def served(app: Any, leave: Callable[[], None] = lambda: None) -> Iterator[str]:
    """The address of an application."""
    said, address = threading.Event(), list[str]()

    def say(at: str) -> None:
        address.append(at.rstrip("/"))
        said.set()

    server = Serving(app, "127.0.0.1", 0, leave, say)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert said.wait(60)
        yield address[0]
    finally:
        server.stop()
        thread.join(60)


Victim = tuple[str, Callable[[], object], list[Any]]
"""An address, what it holds, and what a page tries: requests, paths that are read, WebSockets."""

TURTLE = "<urn:a> <urn:b> <urn:c> ."
NQUADS = "text/turtle"
UPDATE = "INSERT DATA { <urn:a> <urn:b> <urn:c> }"


def a_broker(stack: ExitStack, _folder: Path) -> Victim:
    url, made = stack.enter_context(serving(broker()))
    made.create_channel("c", select("?x a :Student"))
    requests = [
        ("POST", "/publish", NQUADS, TURTLE, {"<urn:a> <urn:b> ": "<urn:c> ."}),
        ("POST", "/update", "application/sparql-update", UPDATE, {"update": UPDATE}),
        ("PUT", "/channels/forged", "application/sparql-query", "SELECT * { ?s ?p ?o }", {"query": "x"}),
        ("DELETE", "/channels/c", "text/plain", "", {}),
        ("PUT", "/channels/c/subscribers/forged", "text/plain", "", {}),
    ]
    events = ["/channels", "/channels/c", "/channels/c/rows", "/metrics", "/channels/c/notifications?after=0"]
    state = lambda: (made.number, [(channel.name, dict(channel.acknowledged)) for channel in made.channels()])  # noqa: E731
    return url, state, [requests, events, ["/subscribe", "/channels/c/notifications"]]


def an_engine(stack: ExitStack, _folder: Path) -> Victim:
    queries = Queries(load, ("live",))
    url = stack.enter_context(served(query_application(queries)))
    httpx.post(f"{url}/queries", content=EVERY, timeout=60).raise_for_status()
    requests = [
        ("POST", "/queries", "application/sparql-query", EVERY, {"query": EVERY}),
        ("POST", "/streams/urn:s?t=1", NQUADS, TURTLE, {"<urn:a> <urn:b> ": "<urn:c> ."}),
        ("PUT", "/static/urn:d", NQUADS, TURTLE, {}),
        ("DELETE", "/queries/q1", "text/plain", "", {}),
    ]
    state = lambda: ([query.name for query in queries.queries()], queries.streams(), dict(queries._shared))  # noqa: E731
    return url, state, [requests, ["/queries", "/streams", "/queries/q1/answers?after=0"], ["/queries/q1/answers"]]


def a_fragments_server(stack: ExitStack, _folder: Path) -> Victim:
    dataset = DataSet("data", MemoryStore(), Style(), lambda: 1_000_000, 100)
    app = fragments_application([dataset], [WritesHandler([TOKEN], of_host, 10_000)])
    url = stack.enter_context(served(app, app.leave))
    requests = [
        ("POST", "/data", NQUADS, TURTLE, {"<urn:a> <urn:b> ": "<urn:c> ."}),
        ("PATCH", "/data", "application/sparql-update", UPDATE, {"update": UPDATE}),
        ("DELETE", "/data?subject=urn:a", "text/plain", "", {}),
    ]
    return url, lambda: dataset.version, [requests, [], []]


def a_workbench(stack: ExitStack, folder: Path, tokens: tuple[str, ...] = ()) -> Victim:
    url = stack.enter_context(opened(folder, tokens)).url
    signed = {"Authorization": f"Bearer {TOKEN}"} if tokens else {}
    shown = ("/live/", "/servers/", "/runs/")

    def state() -> object:
        return [httpx.get(f"{url}{path}", headers=signed, timeout=60).text for path in shown]

    typed, form = {"query": EVERY, "sources": ""}, "application/x-www-form-urlencoded"
    named = {"kind": "broker", "address": "http://127.0.0.1:9/"}
    requests = [
        ("POST", "/live/new", form, f"query={EVERY}", typed),
        ("POST", "/servers/", form, "kind=broker&address=http://127.0.0.1:9/", named),
        ("POST", "/playground/evaluate", "application/json", "{}", {"query": "x"}),
        ("POST", "/runs/experiment/x.toml", form, "do=start", {"do": "start"}),
    ]
    return url, state, [requests, ["/", *shown, "/playground/"], []]


def a_signed_workbench(stack: ExitStack, folder: Path) -> Victim:
    return a_workbench(stack, folder, (TOKEN,))


VICTIMS = {
    "broker": a_broker,
    "engine": an_engine,
    "fragments": a_fragments_server,
    "workbench": a_workbench,
    "signed workbench": a_signed_workbench,
}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize("name", VICTIMS)
def test_a_page_elsewhere_changes_and_reads_nothing(
    browser: Any, elsewhere: int, tmp_path: Path, name: str, host: str
) -> None:
    with ExitStack() as stack:
        url, state, (requests, events, sockets) = VICTIMS[name](stack, tmp_path)
        if name == "signed workbench":
            browser.get(f"{url}/?access_token={TOKEN}")
            assert "access_token" not in browser.current_url
            assert browser.get_cookie("streamgauge_token")["sameSite"] == "Strict"
        before = state()
        browser.get(f"http://{host}:{elsewhere}/")
        browser.set_script_timeout(120)
        assert browser.execute_async_script(FORGERY, url, requests, events, sockets) == []
        assert state() == before
        browser.get("about:blank")
