"""Whatever a fragments server is asked: no failure, no write without a token, nothing that grows without bound."""

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from streamgauge.model.fact import Fact
from streamgauge.servers.fragments.annotations import method, methods
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.pages.dataset import DataSet, located_facts
from streamgauge.servers.fragments.pages.http import FragmentsApp, application
from streamgauge.servers.fragments.pages.representations import FragmentLimits
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes import add
from streamgauge.servers.fragments.writes.http import METHODS, WritesHandler
from streamgauge.servers.http.headers import of_host
from tests.examples import examples

TOKEN = "sixteen-letters-or-more"
NOW = 1_449_570_000_000
TRIPLES = [(f"<urn:s{n}>", f"<urn:p{n % 3}>", f'"{n}"@en') for n in range(12)]
LIMITS = FragmentLimits(address=2_000, body=5_000, kept=50_000, subscribers=3)

_WORDS = """
urn:s1
<urn:s1>
urn:p1
"1"@en
"1"^^urn:t
?x
?
"
_:b
<<( <urn:s> <urn:p> 1 )>>
now
0
-1
1
2
99999999999999999999
2015-12-08T10:20:00Z
10s
0s
@default
graphs
reifiers
colours
interval
instant
paper
inclusive
version
a b
é
%
&=
(?s) {("urn:s1")}
(?s ?p) { (<urn:s1> <urn:p1>) (UNDEF <urn:p2>) }
{}
(?s) {
"""
_BODIES = """
<urn:s1> <urn:p1> 1 .
[] <urn:p1> [] .
<urn:s1> <urn:p1>
GRAPH <urn:g> { <urn:s1> <urn:p1> 1 }
<urn:g> <http://example.org/temporal#expiration> "now" .
<urn:s1> <urn:p1> <<( <urn:a> <urn:b> 1 )>> .
{}
[{"@id":"urn:s1","urn:p1":1}]
INSERT DATA { <urn:s9> <urn:p1> 1 }
DELETE WHERE { ?s <urn:p1> ?o }
DELETE WHERE { ?s ?p ?o }
CLEAR ALL
LOAD <http://localhost:1/>
INSERT DATA {
DELETE { ?s ?p ?o } INSERT { ?o ?p ?s } WHERE { ?s ?p ?o }
[{"add": "<urn:s1> <urn:p1> 2 .", "for": "1s"}, {"remove": {"subject": "urn:s1"}}]
[{"expire": 1}]
[[[]]]
[{"replace": {"predicate": "urn:p1"}, "by": "<urn:s1> <urn:p1> 3 .", "until": 1449570009000}]
null
1e999
"""
_NAMES = "subject predicate object graph values page since what from until for at method label vocabulary border"

WORDS = st.sampled_from(["\x00", "x" * 900, "<<(<a:b><a:c>" * 150, *_WORDS.split("\n")])
NAMES = st.sampled_from(["", "colour", "%73ubject", "access_token", *_NAMES.split()])
BODIES = st.sampled_from(
    [
        b"\xff\xfe\x00",
        b"[" * 4_000,
        b"x" * 5_001,
        b"<a:b> <a:c> " + b"<<(<a:b><a:c>" * 380,
        b"(" * 4_900,
        *_BODIES.encode().split(b"\n"),
    ]
)
TYPES = ["text/turtle", "application/n-triples", "application/n-quads", "application/trig", "application/ld+json"]
MEANT = [  # requests that are understood, before something in them is made odd
    ("POST", "for=10s", "text/turtle", b"<urn:s1> <urn:p1> 5 . [] <urn:p2> [] ."),
    ("POST", "method=graphs&label=interval", "application/n-quads", b"<urn:s2> <urn:p1> <urn:o> ."),
    ("POST", "from=0", "application/trig", b"<urn:s2> <urn:p1> <<( <urn:a> <urn:b> 1 )>> ."),
    ("PUT", "subject=urn:s1", "text/turtle", b"<urn:s1> <urn:p1> 6 ."),
    ("PUT", "predicate=urn:p1&until=1449570008000", "application/n-triples", b'<urn:s3> <urn:p1> "x" .'),
    ("DELETE", "subject=urn:s2", "", b""),
    ("DELETE", "predicate=urn:p1&at=now", "", b""),
    (
        "PATCH",
        "for=9s",
        "application/sparql-update",
        b"DELETE { ?s <urn:p2> ?o } INSERT { ?s <urn:p2> 1 } WHERE { ?s <urn:p2> ?o }",
    ),
    ("PATCH", "", "application/sparql-update", b"DELETE DATA { <urn:s1> <urn:p1> 5 } ; INSERT DATA { [] <urn:p1> 7 }"),
    (
        "PATCH",
        "",
        "application/json",
        b'[{"replace": {"predicate": "urn:p1"}, "by": "<urn:s1> <urn:p1> 3 .", "until": 1449570009000}]',
    ),
    (
        "PATCH",
        "",
        "application/json",
        b'[{"add": "<urn:s1> <urn:p1> 2 .", "from": 5}, {"remove": {"subject": "urn:s1"}}]',
    ),
    ("GET", "subject=urn:s1&predicate=?p", "", b""),
    ("GET", "values=(?s) { (<urn:s1>) }&subject=?s&page=1", "", b""),
    ("GET", f"since={NOW}.1&predicate=urn:p1", "", b""),
    ("HEAD", "object=%221%22@en", "", b""),
]
HEADERS = st.fixed_dictionaries(
    {
        "host": st.sampled_from([*["localhost"] * 9, "h:1", "a b", "", "[::1]:80", "h/../x", "\xff"]),
        "authorization": st.sampled_from([*[f"Bearer {TOKEN}"] * 4, "Bearer x", "Basic x", "\xe9", ""]),
        "accept": st.sampled_from(
            ["*/*", "", "text/html", "application/ld+json;q=0.1,*/*;q=x", "a/b", "text/event-stream"]
        ),
    },
    optional={
        "accept-encoding": st.sampled_from(["br", "gzip;q=0", "identity;q=0", ",,;=", "*"]),
        "content-length": st.sampled_from(["0", "-1", "x", "99999999999"]),
        "idempotency-key": st.sampled_from(["a", "b", "", "x" * 300]),
        "if-none-match": st.sampled_from(["*", '"x"', 'W/"x"', '"', ","]),
        "if-modified-since": st.sampled_from(
            ["yesterday", "Tue, 08 Dec 2015 10:20:00 GMT", "Tue, 99 Dec 99999 10:20:00 GMT"]
        ),
        "last-event-id": st.sampled_from(["1", f"{NOW}.1", f"{NOW}.99", "x", "\xe9"]),
        "x-forwarded-host": st.sampled_from(["evil.example", "a b"]),
    },
)
PATHS = st.sampled_from(["/", "/health", "/metrics", "/openapi.json", "/nothing", "/data/", "//", "/\udcff", "*"])
VERBS = st.sampled_from(["GET", *METHODS, "HEAD", "OPTIONS", "TRACE", "get", "PROPFIND", "\xff"])
ODD = {
    "method": VERBS,
    "path": PATHS,
    "query": st.lists(st.tuples(NAMES, WORDS).map("=".join), max_size=4).map("&".join).map(str.encode)
    | st.binary(max_size=40),
    "type": st.sampled_from([*TYPES, "application/json", "application/sparql-update", "text/csv", ";", ""]),
    "body": BODIES,
}


@st.composite
def requests(draw: st.DrawFn) -> dict[str, object]:
    """A request that is meant well, with up to three odd parts, or a body with a wrong byte."""
    verb, query, kind, body = draw(st.sampled_from(MEANT))
    request = {"method": verb, "path": "/data", "query": query.encode(), "type": kind, "body": body}
    for part in draw(st.lists(st.sampled_from(sorted(ODD)), max_size=3, unique=True)):
        request[part] = draw(ODD[part])
    if body and draw(st.integers(0, 4)) == 0:
        place = draw(st.integers(0, len(body) - 1))
        request["body"] = body[:place] + draw(st.binary(max_size=3)) + body[place + 1 :]
    return request | {"headers": {**draw(HEADERS), "content-type": request["type"]}}


class Served:
    """A server whose data are what they should be after each request, whatever that was."""

    def __init__(self, style: Style) -> None:
        self.data = DataSet("data", MemoryStore(), style, lambda: NOW, 5)
        lasting = {"until": NOW + 1 if style.label is Label.INSTANT else NOW + 9_000}
        add(self.data, [Fact(triple, NOW, lasting["until"]) for triple in TRIPLES])
        self.writes = WritesHandler([TOKEN], of_host, LIMITS.body)
        self.app: FragmentsApp = application([self.data], [self.writes], LIMITS)
        self.app.leave()  # streams of events end at once

    async def ask(self, request: dict) -> tuple[int, dict[str, str], bytes]:
        sent: list[dict] = []
        parts = [{"type": "http.request", "body": request["body"], "more_body": False}, {"type": "http.disconnect"}]

        async def receive() -> dict:
            return parts.pop(0) if len(parts) > 1 else parts[0]

        async def send(message: dict) -> None:
            sent.append(message)

        path = request["path"].encode("utf-8", "surrogateescape")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": request["method"],
            "scheme": "http",
            "path": path.decode("utf-8", "replace"),
            "raw_path": path,
            "query_string": request["query"],
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in request["headers"].items()],
            "client": ("127.0.0.1", 1),
        }
        await self.app(scope, receive, send)
        start, body = sent[0], b"".join(message.get("body", b"") for message in sent[1:])
        return start["status"], {n.decode().lower(): v.decode("latin-1") for n, v in start["headers"]}, body

    def holds(self, request: dict) -> None:
        """Ask, and see that everything is as it must be."""
        version = self.data.store.version
        status, headers, body = asyncio.run(self.ask(request))
        assert 200 <= status < 500, (request, body)
        assert headers["access-control-allow-origin"] == "*"
        if status >= 400 and request["method"] != "HEAD":
            assert len(json.loads(body)["error"]) > 10
        may = request["headers"].get("authorization") == f"Bearer {TOKEN}" and request["method"] in METHODS
        if not may or status >= 400:
            assert self.data.store.version == version, request
        if self.data.store.version != version:
            self.readable()

    def readable(self) -> None:
        quads = self.data.store.page((None,) * 4, 0, 100_000)
        said = set(method(self.data.style.method).facts(quads, self.data.style))
        assert {fact.fact for fact in located_facts(self.data.store, (None, None, None), self.data.style)} == said


SERVED: dict[Style, Served] = {}


def served(style: Style) -> Served:
    """The server of a style, a new one after so many changes."""
    if style not in SERVED or SERVED[style].data.store.version > 200:
        SERVED[style] = Served(style)
    return SERVED[style]


STYLES = st.builds(Style, st.sampled_from(methods()), st.sampled_from(Label), grouped=st.booleans())
EASY = [HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.mark.slow
@examples(300, prove=12_000, deadline=None, suppress_health_check=EASY)
@given(STYLES, requests())
def test_no_request_is_too_odd(style: Style, request: dict) -> None:
    server = served(style)
    server.holds(request)
    assert server.app._reading.held <= LIMITS.kept
    assert len(server.writes._done) <= 2
