"""The face: formats, methods, errors as sentences, addresses behind proxies, health and metrics."""

import asyncio
import re

import pytest

from streamgauge.servers.fragments.pages import FragmentShape
from streamgauge.servers.fragments.pages.dataset import MAX_SCANNED
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.pages.representations import FragmentLimits, acceptable_offers
from streamgauge.servers.fragments.writes.http import WritesHandler
from streamgauge.servers.http.headers import content_coding, fixed, of_host, of_proxy
from tests.servers.fragments.pages.served import BASE, E, Server, address, iri, read

PROMPT = [
    ("GET", "/data", {}),
    ("GET", "/data?predicate=http%3A%2F%2Fexample.org%2Fp", {"accept": "text/turtle", "accept-encoding": "br"}),
    ("GET", "/data?page=3&predicate=?p", {"accept": "text/html"}),
    ("GET", "/data", {"if-none-match": "*"}),
    ("GET", "/data", {"if-modified-since": "Thu, 01 Jan 2099 00:00:00 GMT"}),
]
LONG_WAY = [
    ("/data?since=1", {}),
    ("/data?at=now", {}),
    ("/data", {"accept": "text/event-stream"}),
    ("/data?subject=x", {}),
    ("/data", {"accept": "image/png"}),
    ("/data?subject=?x&object=?x&values=(?x)+{}", {}),
    ("/", {}),
    ("/other", {}),
    ("/data#x", {}),
    ("/data?limit=200", {"host": "a b"}),
]


def many():
    """A data set of more than a page."""
    server = Server()
    server.dataset("data", [((iri(f"s{n}"), iri("p"), f'"{n}"', ""), None) for n in range(250)])
    return server


@pytest.mark.parametrize(("method", "target", "headers"), PROMPT)
def test_what_is_answered_at_once_is_what_the_long_way_answers(method, target, headers):
    made = many()
    app = application(made.datasets)
    for _ in ("made", "kept"):
        raw = {name.encode(): value.encode() for name, value in {"host": "data.test", **headers}.items()}
        head, _, body = app.prompt("http", target.encode(), raw).partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        asked = {name.replace("-", "_"): value for name, value in headers.items()}
        said = made.ask(f"{BASE}{target}", method, application(made.datasets), **asked)
        assert int(status.split()[1]) == said.status_code
        assert sorted(tuple(line.split(": ", 1)) for line in lines) == sorted(said.headers.items())
        assert len(body) == int(said.headers.get("content-length", 0))
        if "content-encoding" not in said.headers:
            assert body == said.content
    assert sum(app.counts.requests.values()) == 2


@pytest.mark.parametrize(("target", "headers"), LONG_WAY)
def test_what_is_not_a_page_goes_the_long_way(target, headers):
    raw = {name.encode(): value.encode() for name, value in {"host": "data.test", **headers}.items()}
    assert application(many().datasets).prompt("http", target.encode(), raw) is None


@pytest.mark.parametrize("shape", list(FragmentShape))
def test_turtle_says_the_same_in_fewer_bytes(shape):
    server = Server()
    quads = [(iri(f"s{n % 7}"), f"<http://example.org/v#p{n % 5}>", iri(f"o{n % 3}"), "") for n in range(90)]
    server.dataset("data", [(quad, None) for quad in quads], shape=shape)
    for item in ({}, {"predicate": "http://example.org/v#p1"}, {"object": f"{E}o1"}, {"subject": f"{E}s1"}):
        pages = [server.ask(address("data", **item), accept=kind) for kind in ("application/n-triples", "text/turtle")]
        said = [{quad for quad in read(page).quads if "_:" not in "".join(quad)} for page in pages]
        assert said[0] == said[1]
        assert len(pages[1].content) < len(pages[0].content) / 1.8


TYPES = [
    ("", "application/trig"),
    ("*/*", "application/trig"),
    ("text/turtle", "text/turtle"),
    ("application/*", "application/trig"),
    ("text/*", "text/turtle"),
    ("application/n-quads,application/trig;q=0.9", "application/n-quads"),
    ("application/n-quads;q=0.1, text/turtle;q=0.2", "text/turtle"),
    ("*/*;q=0.1, application/n-triples", "application/n-triples"),
    ("application/trig;q=0, */*", "application/n-quads"),
    ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
    ("application/json", "application/json"),
    ("TEXT/TURTLE; q=1.0; level=1", "text/turtle"),
    ("text/n3, application/pdf", "text/n3"),
    ("text/turtle;q=2, application/n-quads;q=0.1", "application/n-quads"),
]
CODINGS = [
    ("", "identity"),
    ("gzip, deflate, br", "br"),
    ("gzip;q=1, br;q=0.5", "gzip"),
    ("*", "br"),
    ("br;q=0, *;q=0.5", "gzip"),
    ("deflate", "identity"),
    ("gzip;q=0.2, identity;q=0.9", "identity"),
]


@pytest.mark.parametrize(("header", "kind"), TYPES)
def test_the_best_of_what_is_accepted(header, kind):
    assert acceptable_offers(header)[0].type == kind


@pytest.mark.parametrize(("header", "name"), CODINGS)
def test_the_best_coding(header, name):
    assert content_coding(header, ("br", "gzip")) == name


def server() -> Server:
    server = Server()
    server.dataset("data", [((iri("s"), iri("p"), '"o <b>"', iri("g")), None)])
    server.dataset("more", [((iri("s"), iri("p"), '"o"', ""), None)], shape=FragmentShape.TRIPLES)
    return server


ERRORS = [
    ("GET", "/none", 404, "data sets are at /data, /more"),
    ("GET", "/data/", 404, "there is no /data/"),
    ("GET", "/data?subject=lit", 400, "subject: lit: not an absolute IRI"),
    ("GET", "/data?predicate=_:b", 400, "a blank node has no name"),
    ("GET", "/data?object=%22open", 400, "not a literal"),
    ("GET", "/data?subject=%ff", 400, "not UTF-8"),
    ("GET", "/data?sbject=http://a", 400, "sbject: not a parameter of this form"),
    ("GET", "/more?graph=http://a", 400, "graph: not a parameter of this form"),
    ("GET", "/data?page=1&page=2", 400, "given twice"),
    ("GET", "/data?page=0", 400, "is not a number from 1 to 10000000"),
    ("GET", "/data?page=-1", 400, "is not a number from 1 to 10000000"),
    ("GET", "/data?page=one", 400, "is not a number from 1 to 10000000"),
    ("GET", "/data?page=99999999999", 400, "is not a number from 1 to 10000000"),
    ("GET", "/data?limit=0", 400, "limit: '0' is not a number from 1 to"),
    ("GET", "/data?limit=1001", 400, "limit: '1001' is not a number from 1 to"),
    ("GET", "/data?values=(%3Fx)", 400, "is missing"),
    ("GET", "/data?subject=" + "x" * 20_000, 414, "longer than 16384 bytes"),
    ("POST", "/", 405, "POST is not served here"),
    ("DELETE", "/health", 405, "DELETE is not served here"),
]


@pytest.mark.parametrize(("method", "path", "status", "why"), ERRORS)
def test_errors_are_sentences_that_any_page_may_read(method, path, status, why):
    response = server().ask(BASE + path, method)
    assert response.status_code == status
    assert why in response.json()["error"]
    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["date"] == "Thu, 01 Jan 1970 00:16:40 GMT"
    assert (response.headers.get("allow") is not None) == (status == 405)


def test_nothing_acceptable():
    response = server().ask(address("data"), accept="application/pdf")
    assert response.status_code == 406
    assert "application/trig" in response.json()["error"]


def test_options():
    response = server().ask(address("data"), "OPTIONS", origin="http://elsewhere")
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (204, "*")
    assert response.headers["allow"].startswith("GET, HEAD, OPTIONS")
    assert "If-None-Match" in response.headers["access-control-allow-headers"]


def test_too_much_to_compare():
    server = Server()
    data = server.dataset("data", [])
    data.store.count = lambda match: MAX_SCANNED + 1
    response = server.ask(address("data", subject="?x", object="?x"))
    assert (response.status_code, "compared one by one" in response.json()["error"]) == (422, True)


def test_a_failure_is_an_answer(caplog):
    server = Server()
    data = server.dataset("data", [])
    data.store.first_page = lambda *_: 1 / 0
    response = server.ask(address("data"))
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (500, "*")
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    "kind", ["application/trig", "application/n-quads", "text/turtle", "application/n-triples", "application/ld+json"]
)
def test_the_list_of_data_sets(kind):
    quads = read_all(server().ask(BASE + "/", accept=kind))
    hydra = "http://www.w3.org/ns/hydra/core#"
    assert {o for _, p, o, _ in quads if p == f"<{hydra}member>"} == {
        f"<{BASE}/data#dataset>",
        f"<{BASE}/more#dataset>",
    }
    templates = {o for _, p, o, _ in quads if p == f"<{hydra}template>"}
    assert f'"{BASE}/more{{?subject,predicate,object}}"' in templates


def read_all(response):
    import pyoxigraph as ox

    from tests.servers.fragments.pages.served import SYNTAX, quad_of

    syntax = SYNTAX[response.headers["content-type"].partition(";")[0]]
    return [quad_of(item) for item in ox.parse(response.content, format=syntax)]


def test_pages_for_people():
    made = server()
    page = made.ask(address("data", object='"o <b>"'), accept="text/html")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "script" not in page.headers["content-security-policy"]
    assert "<b>" not in page.text, "what data say is text"
    assert 'value="&#34;o &lt;b&gt;&#34;"' in page.text
    assert f'href="{BASE}/data?subject=' in page.text
    links = re.findall(r'<td[^>]*><a href="([^"]*)"', page.text)
    assert len(links) == 4
    for link in links:
        assert read(made.ask(link.replace("&amp;", "&"))).total == 1
    index = made.ask(BASE + "/", accept="text/html").text
    assert f'href="{BASE}/data"' in index
    assert f'href="{BASE}/more"' in index


def forwarded(**headers: str) -> str:
    made = server()
    app = application(made.datasets, addressing=of_proxy)
    return read(made.ask(address("more"), app=app, **headers)).fragment


@pytest.mark.parametrize(
    ("headers", "base"),
    [
        ({}, "http://data.test"),
        ({"x_forwarded_host": "a.org, b.org", "x_forwarded_proto": "https"}, "https://a.org"),
        ({"forwarded": 'for=1.2.3.4;host="a.org:8443";proto=https, for=5.6.7.8'}, "https://a.org:8443"),
        ({"x_forwarded_host": "a.org", "x_forwarded_prefix": "/ldf/"}, "http://a.org/ldf"),
    ],
)
def test_behind_a_proxy(headers, base):
    assert forwarded(**headers) == f"<{base}/more>"


def test_headers_of_proxies_are_not_believed_unless_told():
    made = server()
    page = read(made.ask(address("more"), x_forwarded_host="evil.org", forwarded="host=evil.org"))
    assert page.fragment == f"<{BASE}/more>"


def test_a_given_base():
    made = server()
    app = application(made.datasets, addressing=fixed("https://data.org/ldf/"))
    assert read(made.ask(address("more"), app=app)).fragment == "<https://data.org/ldf/more>"


@pytest.mark.parametrize("host", ["", "a b", "a.org/x", 'a"><script>', "a.org:port", "a@b"])
def test_a_host_that_is_none(host):
    response = server().ask(address("more"), host=host)
    assert (response.status_code, "Host header" in response.json()["error"]) == (400, True)


def test_the_forwarded_values_are_checked_too():
    made = server()
    app = application(made.datasets, addressing=of_proxy)
    for headers in ({"x_forwarded_host": "a b"}, {"x_forwarded_proto": "ftp"}, {"x_forwarded_prefix": "a b"}):
        assert made.ask(address("more"), app=app, **headers).status_code == 400


def test_health_and_metrics():
    made = server()
    app = application(made.datasets)
    assert made.ask(BASE + "/health", app=app).json() == {"status": "up"}
    first = made.ask(address("data"), app=app)
    made.ask(address("data"), app=app, if_none_match=first.headers["etag"])
    made.ask(address("data"), app=app, if_none_match=first.headers["etag"])
    made.ask(address("data", subject="lit"), app=app)
    text = made.ask(BASE + "/metrics", app=app).text
    for line in (
        'streamgauge_fragments_requests_total{dataset="data",status="200"} 1',
        'streamgauge_fragments_requests_total{dataset="data",status="304"} 2',
        'streamgauge_fragments_requests_total{dataset="data",status="400"} 1',
        'streamgauge_fragments_bodies_total{from="kept"} 1',
        'streamgauge_fragments_bodies_total{from="made"} 2',
        'streamgauge_fragments_quads{dataset="data"} 1',
    ):
        assert line in text


def test_what_changed_and_what_was_there_count_as_requests():
    made = server()
    app = application(made.datasets, [WritesHandler((), of_host, 1_000)])
    version = made.ask(address("data"), app=app).headers["dataset-version"]
    before = counted(made.ask(BASE + "/metrics", app=app).text)
    answers = [
        made.ask(address("data", since=version), app=app),
        made.ask(address("data", since="1.1"), app=app),
        made.ask(address("data", at="1970-01-01T00:00:00Z"), app=app),
        made.ask(address("data"), method="POST", app=app),
        made.ask(address("data"), method="HEAD", app=app),
    ]
    assert [answer.status_code for answer in answers] == [200, 410, 410, 403, 200]
    after = counted(made.ask(BASE + "/metrics", app=app).text)
    sent = after.pop("bytes_total") - before.pop("bytes_total")
    assert sent == sum(len(answer.content) for answer in answers) + before.pop("last")
    assert {key: value - before.get(key, 0) for key, value in after.items() if key != "last"} == {
        'requests_total{dataset="",status="200"}': 1,  # the metrics themselves, which say what was before them
        'requests_total{dataset="data",status="200"}': 2,
        'requests_total{dataset="data",status="403"}': 1,
        'requests_total{dataset="data",status="410"}': 2,
    }


def counted(text):
    """Requests and bytes that metrics tell of, and the length of the metrics' own text, which comes after."""
    lines = re.findall(r"^streamgauge_fragments_((?:requests|bytes)_total\S*) (\d+)$", text, re.MULTILINE)
    return {name: int(value) for name, value in lines} | {"last": len(text)}


def test_bodies_are_kept_within_a_limit():
    server = Server()
    server.dataset("data", [((iri(f"s{n}"), iri("p"), '"o"', ""), None) for n in range(50)])
    app = application(server.datasets, limits=FragmentLimits(kept=20_000))
    for n in [*range(50), *range(50)]:
        server.ask(address("data", subject=f"{E}s{n}"), app=app)
    match = re.search(
        r"^streamgauge_fragments_kept_bytes (\d+)", server.ask(BASE + "/metrics", app=app).text, re.MULTILINE
    )
    assert match
    assert 10_000 < int(match[1]) <= 20_000


def test_repeated_and_odd_addresses_are_said_as_they_were_asked():
    made = server()
    odd = BASE + "/data?subject=http://example.org/s&object=?o&predicate="
    page = read(made.ask(odd))
    assert page.fragment == f"<{odd}>"
    assert page.total == 1


def test_websockets_and_the_end_of_the_process():
    app, sent = application(server().datasets), []

    async def talk(scope, *messages):
        waiting = iter(messages)

        async def receive():
            return next(waiting)

        async def send(message):
            sent.append(message["type"])

        await app(scope, receive, send)

    asyncio.run(talk({"type": "websocket", "headers": []}))
    asyncio.run(talk({"type": "lifespan"}, {"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}))
    assert sent == ["websocket.close", "lifespan.startup.complete", "lifespan.shutdown.complete"]


CANNOT_MATCH = [
    "subject=%22a%22",
    "predicate=%22a%22%40en",
    "subject=%3C%3C(%3Curn:a%3E%20%3Curn:b%3E%20%3Curn:c%3E)%3E%3E",
]


@pytest.mark.parametrize("pattern", CANNOT_MATCH)
def test_a_pattern_that_cannot_match_is_an_empty_fragment_with_its_controls(pattern):
    """Comunica binds literals to subjects: nothing matches."""
    server = Server()
    server.dataset("data", [((iri("s"), iri("p"), '"a"', ""), None)])
    reply = server.ask(f"{BASE}/data?{pattern}", "GET", application(server.datasets), accept="application/trig")
    assert reply.status_code == 200
    assert "hydra:totalItems 0" in reply.text
    assert "hydra:search" in reply.text
