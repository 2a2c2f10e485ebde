"""Pages of other origins: refused unless they are let in, and browsers told so with each response."""

import asyncio

import httpx
import pytest

from streamgauge.engines import load
from streamgauge.servers.broker.access import Access, Grant
from streamgauge.servers.broker.http import application as broker_application
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application as fragments_application
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.http.access import CrossOrigin, OriginError, Origins, read_origins
from streamgauge.servers.queries.http import application as queries_application
from streamgauge.servers.queries.registry import Queries
from tests.servers.broker.served import GRAPH, TURTLE
from tests.servers.broker.test_access import converse
from tests.servers.broker.world import broker, select

TOKEN = "a-token-that-nobody-guesses"
HERS, ELSE = "https://app.example", "https://evil.example"


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://app.example", "https://app.example"),
        ("HTTPS://App.Example/", "https://app.example"),
        ("https://app.example:443", "https://app.example"),
        ("http://app.example:80", "http://app.example"),
        ("http://app.example:8080", "http://app.example:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("chrome-extension://abcdef", "chrome-extension://abcdef"),
    ],
)
def test_an_origin_is_read_as_browsers_write_it(text, origin):
    assert read_origins([text], tokens=True).exact == {origin}


@pytest.mark.parametrize(
    "text", ["null", "", "app.example", "https://app.example/page", "https://*.example/x", "https://u@a.example",
             "https://app.example?x", "https://app.example:port", "https://"],
)  # fmt: skip
def test_what_is_no_origin_is_refused(text):
    with pytest.raises(OriginError):
        read_origins([text], tokens=True)


def service(kind, texts, tokens=(TOKEN,)):
    """One of the three services, as its command serves it."""
    origins = read_origins(texts, bool(tokens))
    if kind == "broker":
        made = broker()
        made.create_channel("c", select("?x a :Student"))
        return broker_application(made, Access([Grant(token) for token in tokens]), (), origins), "/channels/c/rows"
    if kind == "queries":
        return queries_application(Queries(load, ("live",)), list(tokens), (), origins), "/queries"
    face = fragments_application([DataSet("trains", MemoryStore(), Style(), lambda: 0)])
    return CrossOrigin(face, origins) if origins else face, "/trains"


def ask(app, path, origin, method="GET", token=TOKEN, **headers):
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    told |= {} if origin is None else {"Origin": origin}
    told |= {} if token is None else {"Authorization": f"Bearer {token}"}

    async def send():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            return await http.request(method, path, headers=told)

    return asyncio.run(send())


SERVICES = ["broker", "queries", "fragments"]


@pytest.mark.parametrize("kind", SERVICES)
def test_a_named_origin_is_let_in_and_no_other(kind):
    app, path = service(kind, [HERS, "http://localhost:8000"])
    said = ask(app, path, HERS)
    assert said.status_code == 200
    assert said.headers["access-control-allow-origin"] == HERS
    assert said.headers["access-control-allow-credentials"] == "true"
    assert "Origin" in said.headers["vary"]
    assert "ETag" in said.headers["access-control-expose-headers"]
    other = ask(app, path, ELSE)
    assert "access-control-allow-origin" not in other.headers
    assert "Origin" in other.headers["vary"]
    assert other.status_code == (200 if kind == "fragments" else 403)
    own = ask(app, path, None)
    assert (own.status_code, "Origin" in own.headers["vary"]) == (200, True)


@pytest.mark.parametrize("kind", SERVICES)
def test_every_origin_is_let_in_without_credentials(kind):
    app, path = service(kind, ["*"])
    said = ask(app, path, ELSE)
    assert (said.status_code, said.headers["access-control-allow-origin"]) == (200, "*")
    assert "access-control-allow-credentials" not in said.headers


@pytest.mark.parametrize("kind", ["broker", "queries"])
def test_refusals_can_be_read_by_a_page_that_is_let_in(kind):
    app, path = service(kind, [HERS])
    for item in (ask(app, path, HERS, token=None), ask(app, "/nowhere", HERS)):
        assert (item.status_code in (401, 404), item.headers["access-control-allow-origin"]) == (True, HERS)


@pytest.mark.parametrize("kind", ["broker", "queries"])
def test_without_the_option_a_page_of_another_origin_is_refused(kind):
    app, path = service(kind, [])
    said = ask(app, path, HERS)
    assert (said.status_code, "--allow-origin" in said.json()["error"]) == (403, True)
    assert "access-control-allow-origin" not in said.headers
    assert not ask(app, path, HERS, "OPTIONS", Access_Control_Request_Method="GET").is_success


def test_without_the_option_fragments_are_everybodys():
    app, path = service("fragments", [])
    assert ask(app, path, HERS).headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("kind", SERVICES)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_a_preflight_needs_no_token_and_says_what_may_be_sent(kind, method):
    app, path = service(kind, [HERS])
    asked = {"Access_Control_Request_Method": method, "Access_Control_Request_Headers": "authorization, if-match"}
    said = ask(app, path, HERS, "OPTIONS", token=None, **asked)
    assert (said.status_code, said.headers["access-control-allow-origin"]) == (204, HERS)
    assert method in said.headers["access-control-allow-methods"]
    allowed = said.headers["access-control-allow-headers"].lower()
    assert {"authorization", "content-type", "idempotency-key", "if-match", "last-event-id"} <= set(allowed.split(", "))
    assert int(said.headers["access-control-max-age"]) > 0
    refused = ask(app, path, ELSE, "OPTIONS", token=None, **asked)
    assert (refused.status_code, "access-control-allow-origin" in refused.headers) == (403, False)


def test_where_there_are_no_tokens_pages_of_every_origin_only_read():
    made = broker()
    made.create_channel("c", select("?x a :Student"))
    app = broker_application(made, None, (), read_origins(["*", HERS], tokens=False))
    assert ask(app, "/channels/c/rows", ELSE, token=None).status_code == 200
    asked = {"Access_Control_Request_Method": "POST"}
    assert ask(app, "/publish", ELSE, "OPTIONS", token=None, **asked).status_code == 403
    assert ask(app, "/channels/c", ELSE, "DELETE", token=None).status_code == 403
    assert ask(app, "/channels/c", HERS, "DELETE", token=None).status_code == 204
    assert ask(app, "/health", ELSE, token=None, Host="evil.example").status_code == 421


def test_a_websocket_of_another_origin_is_let_in_by_name():
    class Served:
        def __init__(self, origins):
            made = broker()
            made.create_channel("c", select("?x a :Student"))
            self.app = broker_application(made, None, (), origins)

        def wait(self, doing):
            return asyncio.run(doing)

    def first(origins):
        return converse(Served(origins), "/channels/c/notifications", {"Origin": HERS})[0]["type"]

    assert first(read_origins([HERS], tokens=False)) == "websocket.accept"
    assert first(read_origins([ELSE], tokens=False)) == "websocket.close"
    assert first(Origins()) == "websocket.close"


@pytest.mark.parametrize("origin", ["null", "http://[", "x"])
def test_an_origin_that_is_none_is_refused_without_failing(origin):
    app, path = service("broker", [HERS])
    assert ask(app, path, origin).status_code == 403


def test_a_repeated_answer_says_each_header_once():
    app, _ = service("queries", [HERS])
    headers = {"Idempotency_Key": "k", "Content_Type": "application/x-ndjson"}
    for _ in range(3):
        said = ask(app, "/streams/urn:x", HERS, "POST", **headers)
        assert said.status_code == 202, said.text
        assert said.headers.get_list("access-control-allow-origin") == [HERS]
        assert said.headers["vary"] == "Origin"


def test_a_page_that_is_let_in_publishes():
    made = broker()
    app = broker_application(made, Access([Grant(TOKEN)]), (), read_origins([HERS], tokens=True))

    async def send():
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as http,
        ):
            headers = {**TURTLE, "Origin": HERS, "Authorization": f"Bearer {TOKEN}"}
            return await http.post("/publish", content=GRAPH, headers=headers)

    said = asyncio.run(send())
    assert (said.status_code, said.headers["access-control-allow-origin"]) == (200, HERS)
