"""The broker on the web: every route, what it refuses and how, tokens by operation and channel, events."""

import asyncio
import json
import re
from pathlib import Path

import httpx
import pytest

from streamgauge.servers.broker.access import Access, read_grants
from streamgauge.servers.broker.http import application
from streamgauge.servers.broker.limits import Limits, read_changes
from streamgauge.servers.http.access import TokenError
from streamgauge.servers.sealed.soundness import JournalError
from tests.servers.broker.served import GRAPH, OTHER, TURTLE, Client, serving
from tests.servers.broker.world import BASE, broker, fact, select

ALL, PUB, SUB = "all-may-be-done-by-this", "only-publish-by-this-one", "only-subscribe-to-news-1"
GRANTS = f"# who\n{ALL}\n\n{PUB} publish\n{SUB} subscribe,unsubscribe news-*\n".splitlines()


@pytest.fixture
def ask():
    made = broker(limits=Limits(graph=10, body=2000, query_text=300, channels=3))
    made.load(BASE)
    with Client(made) as client:
        yield client


def test_a_graph_is_published_and_deleted_and_rows_say_so(ask):
    made = ask("PUT", "/channels/students", content=select("?x a :Student"))
    assert (made.status_code, made.headers["location"]) == (201, "/channels/students")
    assert ask("POST", "/publish", content=GRAPH, headers=TURTLE).json() == {"publication": 1, "repeated": False}
    result = ask("GET", "/channels/students/rows")
    assert result.headers["content-type"] == "application/sparql-results+json"
    assert (result.headers["notification"], result.json()["results"]["bindings"]) == (
        "1",
        [{"x": {"type": "uri", "value": "urn:t:s1"}}],
    )
    assert ask("POST", "/delete", content=GRAPH, headers=TURTLE).json()["publication"] == 2
    assert ask("GET", "/channels/students/rows").json()["results"]["bindings"] == []
    listed = ask("GET", "/channels").json()
    assert (listed["channels"], listed["more"]) == (["students"], False)
    assert listed["kept"] == {"bytes": ask.broker.budget.bytes(""), "limit": 2**28, "refused": ""}
    assert ask("GET", "/channels/students").json()["notification"] == 2
    assert ask("DELETE", "/channels/students").status_code == 204
    assert ask("GET", "/channels/students").status_code == 404


def test_a_key_makes_a_publication_repeatable(ask):
    keyed = {**TURTLE, "Idempotency-Key": "k"}
    assert ask("POST", "/publish", content=GRAPH, headers=keyed).json() == {"publication": 1, "repeated": False}
    assert ask("POST", "/publish", content=GRAPH, headers=keyed).json() == {"publication": 1, "repeated": True}


UPDATE = {"Content-Type": "application/sparql-update"}
PREFIX = "PREFIX : <urn:t:> "


@pytest.mark.parametrize(
    ("update", "left"),
    [
        ("INSERT DATA { :s2 a :Student . :s3 a :Student }", {"s1", "s2", "s3"}),
        ("DELETE DATA { :s1 a :Student }", set()),
        ("DELETE WHERE { ?x a :Student }", set()),
        ("DELETE { ?x a :Student } INSERT { :s9 a :Student } WHERE { ?x a :Student ; a :Person }", {"s9"}),
        ("DELETE WHERE { ?x a :Student } ; INSERT DATA { :s4 a :Student }", {"s4"}),
        ("INSERT DATA { :s4 a :Student } ; DELETE DATA { :s4 a :Student . :s1 a :Student }", set()),
        ("INSERT { ?x a :Student } WHERE { ?x :teaches ?c }", {"s1", "p0", "p1"}),
    ],
)
def test_a_sparql_update_is_a_publication(ask, update, left):
    ask("PUT", "/channels/c", content=select("?x a :Student"))
    ask("POST", "/publish", content=GRAPH, headers=TURTLE)
    keyed = {**UPDATE, "Idempotency-Key": "k"}
    assert ask("POST", "/update", content=PREFIX + update, headers=keyed).json() == {
        "publication": 2,
        "repeated": False,
    }
    assert ask("POST", "/update", content=PREFIX + update, headers=keyed).json()["repeated"]
    document = ask("GET", "/channels/c/rows").json()["results"]["bindings"]
    assert {row["x"]["value"].removeprefix("urn:t:") for row in document} == left


@pytest.mark.parametrize("name", ["using-graph-uri", "using-named-graph-uri", "default-graph-uri", "named-graph-uri"])
def test_a_graph_that_is_named_beside_a_text_is_refused(ask, name):
    """SPARQL 1.1 Protocol, 2.2.3: passed over, the update would read another graph than was asked for."""
    made = ask("PUT", "/channels/c", params={name: "urn:g"}, content=select("?x a :Student"))
    assert (made.status_code, f"{name} is not supported: write " in made.json()["error"]) == (400, True)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/query", "using-graph-uri"),
        ("/query", "named"),
        ("/update", "default-graph-uri"),
        ("/update", "named-graph-uri"),
    ],
)
def test_a_parameter_that_is_not_of_the_operation_is_refused(ask, path, name):
    kind = "application/sparql-update" if path == "/update" else "application/sparql-query"
    text = f"{PREFIX}DELETE {{ ?s :p ?o }} WHERE {{ ?s :p ?o }}" if path == "/update" else "SELECT * { ?s ?p ?o }"
    refused = ask("POST", path, params={name: "urn:g"}, content=text, headers={"Content-Type": kind})
    assert (refused.status_code, f"{name}: not a parameter of a" in refused.json()["error"]) == (400, True)


def test_an_update_sees_what_was_published_just_before_it():
    made = broker()
    publishing = made.submit((fact("s1", "a", "Student"), fact("s2", "a", "Student")), ())
    modifying = made.modify(read_changes("DELETE WHERE { <urn:t:s1> ?p ?o }"))
    after = made.submit((fact("s3", "a", "Student"),), ())
    while made.step():
        pass
    assert [item.result().number for item in (publishing, modifying, after)] == [1, 2, 3]
    assert {subject for subject, _, end in made.facts() if end == "<urn:t:Student>"} == {"<urn:t:s2>", "<urn:t:s3>"}


def test_an_update_beyond_the_limit_changes_nothing(ask):
    graph = " ".join(f"<urn:t:x{n}> <urn:t:p> {n} ." for n in range(8))
    ask("POST", "/publish", content=graph, headers=TURTLE)
    cross = "INSERT { ?a <urn:t:q> ?b } WHERE { ?a <urn:t:p> ?x . ?b <urn:t:p> ?y }"
    refused = ask("POST", "/update", content=cross, headers=UPDATE)
    assert (refused.status_code, "more than 10 solutions" in refused.json()["error"]) == (422, True)
    assert not [fact for fact in ask.broker.facts() if fact[1] == "<urn:t:q>"]


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "status", "says"),
    [
        ("POST", "/publish", "<urn:a> <urn:b>", "text/turtle", 400, "line 1: not text/turtle"),
        ("POST", "/publish", b"<urn:a> \xff", "text/turtle", 400, "not text/turtle"),
        ("POST", "/publish", "", "text/csv", 415, "text/csv: send a graph as one of"),
        ("POST", "/publish", "x" * 2001, "text/turtle", 413, "longer than 2000 bytes"),
        ("POST", "/publish", " ".join(f"<a:{n}> <a:p> 1." for n in range(11)), "text/turtle", 422, "more than 10 tri"),
        (
            "POST",
            "/publish",
            '{"@graph":[{"@id":"a:s","a:p":1}],"@id":"_:g"}',
            "application/ld+json",
            400,
            "name it by an IRI",
        ),
        ("POST", "/publish", "<<(" * 40, "text/turtle", 400, "nested more than"),
        ("POST", "/delete", "_:a <urn:p> 1.", "text/turtle", 400, "a blank node cannot identify data to delete"),
        ("POST", "/update", "LOAD <urn:x>", "application/sparql-update", 400, "LOAD is not supported"),
        (
            "POST",
            "/update",
            "DELETE WHERE {?s ?p 1}; DELETE WHERE {?s ?p 2}",
            UPDATE["Content-Type"],
            400,
            "beside an ontology",
        ),
        ("POST", "/update", "", "text/turtle", 415, "application/sparql-update"),
        ("PUT", "/channels/c", "SELECT", "", 400, ""),
        ("PUT", "/channels/c", "SELECT * {}" + " " * 300, "", 422, "more than 300 characters"),
        ("PUT", f"/channels/{'c' * 201}", "SELECT * {?s ?p ?o}", "", 400, "1 to 200 printable"),
        ("PUT", "/channels/sepa:mine", "SELECT * {?s ?p ?o}", "", 400, "take another"),
        ("GET", "/channels/none/notifications", "", "", 404, "there is no channel none"),
        ("DELETE", "/channels/none", "", "", 404, "there is no channel none"),
        ("DELETE", "/channels/none/subscribers/me", "", "", 404, "there is no channel none"),
    ],
)
def test_what_cannot_be_read_is_said(ask, method, path, body, kind, status, says):
    refused = ask(method, path, content=body, headers={"Content-Type": kind})
    assert (refused.status_code, says in refused.json()["error"]) == (status, True), refused.text
    assert ask("GET", "/health").json() == {"status": "up"}


def test_a_named_event_that_is_none_is_refused(ask):
    ask("PUT", "/channels/c", content=select("?x a :Student"))
    refused = ask("GET", "/channels/c/notifications", headers={"Last-Event-ID": "x"})
    assert (refused.status_code, "expected the number" in refused.json()["error"]) == (400, True)


def test_channels_are_not_created_twice_nor_too_many(ask):
    for n in range(3):
        assert ask("PUT", f"/channels/c{n}", content=select("?x a :Student")).status_code == 201
    assert ask("PUT", "/channels/c0", content=select("?x a :Student")).status_code == 409
    assert ask("PUT", "/channels/c3", content=select("?x a :Student")).status_code == 422


def test_metrics_description_and_page(ask):
    ask("POST", "/publish", content=GRAPH, headers=TURTLE)
    text = ask("GET", "/metrics").text
    assert "\nstreamgauge_broker_publications_total 1\n" in text
    assert "\nstreamgauge_broker_interned_terms " in text
    assert 'streamgauge_broker_memory_bytes{of="process"} ' in text
    assert 'streamgauge_gc_pause_seconds_count{generation="2"} ' in text
    paths = ask("GET", "/openapi.json").json()["paths"]
    assert {"/publish", "/delete", "/channels/{name}", "/channels/{name}/notifications"} <= set(paths)
    page = ask("GET", "/")
    assert (page.status_code, "default-src 'none'" in page.headers["content-security-policy"]) == (200, True)


def test_the_routes_of_the_documentation_exist(ask):
    """Paths of the table in docs/broker.md, with NAME and WHO in place of parameters."""
    paths = ask("GET", "/openapi.json").json()["paths"]
    known = {(method.upper(), re.sub(r"{\w+}", "X", path)) for path, methods in paths.items() for method in methods}
    page = Path(__file__).resolve().parents[3] / "docs" / "broker.md"
    table = page.read_text().partition("## HTTP")[2].partition("Names have")[0]
    named = re.findall(r"(GET|POST|PUT|DELETE) (/[\w/]+)", table)
    assert len(named) >= 10
    assert {(method, re.sub(r"NAME|WHO", "X", path)) for method, path in named} <= known


@pytest.mark.parametrize(
    ("token", "allowed"),
    [
        (None, set()),
        ("a-token-that-is-none-of-them", set()),
        (PUB, {"publish"}),
        (SUB, {"rows of news-1", "channel news-1", "unsubscribe news-1"}),
        (
            ALL,
            {"publish", "delete", "create", "rows of news-1", "rows of other", "channel news-1", "unsubscribe news-1"},
        ),
    ],
)
def test_a_token_is_for_operations_and_channels(token, allowed):
    made = broker()
    for name in ("news-1", "other"):
        made.create_channel(name, select("?x a :Student"))
    tries = {
        "publish": ("POST", "/publish", GRAPH),
        "delete": ("POST", "/delete", GRAPH),
        "update": ("POST", "/update", ""),
        "create": ("PUT", "/channels/more", select("?x a :Student")),
        "rows of news-1": ("GET", "/channels/news-1/rows", ""),
        "rows of other": ("GET", "/channels/other/rows", ""),
        "channel news-1": ("GET", "/channels/news-1", ""),
        "unsubscribe news-1": ("DELETE", "/channels/news-1/subscribers/me", ""),
    }
    headers = TURTLE if token is None else {**TURTLE, "Authorization": f"Bearer {token}"}
    with Client(made, Access(read_grants(GRANTS))) as ask:
        codes = {name: ask(method, path, content=body, headers=headers) for name, (method, path, body) in tries.items()}
        listed = ask("GET", "/channels", headers=headers).json().get("channels")
    assert codes.pop("update").status_code == (415 if token == ALL else 401 if token not in (PUB, SUB) else 403)
    assert {name for name, code in codes.items() if code.is_success} == allowed
    refused = {code.status_code for name, code in codes.items() if name not in allowed}
    assert refused <= ({403} if token in (PUB, SUB, ALL) else {401})
    assert listed == {PUB: [], SUB: ["news-1"], ALL: ["more", "news-1", "other"]}.get(token)
    assert made.number == len(allowed & {"publish", "delete"})


def test_a_grant_of_an_unknown_operation_is_refused():
    with pytest.raises(TokenError, match="line 2: there is no operation 'write'"):
        read_grants(["# tokens", "abcdefghijklmnopqrst write"])


def lines(response, count):
    """The first events of a response: id and data."""
    result, number = [], None
    for line in response.iter_lines():
        if line.startswith("id: "):
            number = int(line[4:])
        elif line.startswith("data: "):
            result.append((number, json.loads(line[6:])))
            if len(result) == count:
                break
    return result


@pytest.mark.server
def test_notifications_come_as_events_and_go_on_after_the_last():
    with serving(broker()) as (url, made), httpx.Client(base_url=url, timeout=300) as http:
        made.load(BASE)
        http.put("/channels/students", content=select("?x a :Student")).raise_for_status()
        told = "/channels/students/notifications"
        with http.stream("GET", told) as events:
            http.post("/publish", content=GRAPH, headers=TURTLE)
            http.post("/publish", content=GRAPH, headers=TURTLE)
            http.post("/delete", content=GRAPH, headers=TURTLE)
            first, second = lines(events, 2)
        row = {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "urn:t:s1"}}]}}
        nothing = {"head": {"vars": ["x"]}, "results": {"bindings": []}}
        assert (first[0], first[1]["publications"], first[1]["added"], first[1]["removed"]) == (1, [1], row, nothing)
        assert (second[0], second[1]["publications"], second[1]["added"], second[1]["removed"]) == (
            2,
            [3],
            nothing,
            row,
        )
        assert first[1]["key"] != second[1]["key"]
        with http.stream("GET", told, headers={"Last-Event-ID": "1"}) as events:
            assert lines(events, 1) == [second]
        assert made.channel("students").acknowledged == {}


@pytest.mark.server
def test_a_subscriber_by_name_goes_on_after_what_it_acknowledged():
    with serving(broker()) as (url, made), httpx.Client(base_url=url, timeout=300) as http:
        made.load(BASE)
        made.create_channel("students", select("?x a :Student"))
        told, me = "/channels/students/notifications?subscriber=me", "/channels/students/subscribers/me"
        assert http.put(me).status_code == 204
        http.post("/publish", content=GRAPH, headers=TURTLE)
        http.post("/publish", content=OTHER, headers=TURTLE)
        with http.stream("GET", told) as events:
            assert [number for number, _ in lines(events, 2)] == [1, 2]
        assert http.put(me, params={"acknowledged": 1}).status_code == 204
        with http.stream("GET", told) as events:
            assert [number for number, _ in lines(events, 1)] == [2]
        with http.stream("GET", told, headers={"Last-Event-ID": "2"}):
            assert made.channel("students").acknowledged == {"me": 2}
        assert http.delete(me).status_code == 204
        assert made.channel("students").acknowledged == {}


@pytest.mark.server
def test_the_end_of_a_channel_is_told():
    with serving(broker()) as (url, made), httpx.Client(base_url=url, timeout=300) as http:
        made.create_channel("c", select("?x a :Student"))
        with http.stream("GET", "/channels/c/notifications") as events:
            http.delete("/channels/c")
            assert lines(events, 1) == [(None, {"over": "the channel was deleted"})]


def test_who_falls_behind_is_left_and_resumes():
    made = broker(limits=Limits(lag=2))
    made.load(BASE)
    made.create_channel("c", select("?x a :Student"))
    subscribed = made.listen("c", lambda: None)
    for n in range(4):
        made.publish([(f"<urn:t:s{n}>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<urn:t:Student>")])
    assert subscribed.over is not None
    assert "too slow" in subscribed.over.why
    assert [notification.number for notification in made.listen("c", lambda: None, after=0).take()] == [1, 2, 3, 4]


def test_many_publish_at_once_and_each_is_acknowledged_by_itself():
    made = broker()
    made.load(BASE)
    made.create_channel("c", select("?x a :Grad"))

    async def all_at_once():
        app = application(made)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as http,
        ):
            graphs = [f"<urn:t:s{n}> a <urn:t:Grad>." for n in range(60)]
            return await asyncio.gather(*(http.post("/publish", content=graph, headers=TURTLE) for graph in graphs))

    got = asyncio.run(all_at_once())
    assert sorted(item.json()["publication"] for item in got) == list(range(1, 61))


def test_nothing_is_taken_when_the_journal_fails(ask, monkeypatch):
    def fail(_accepted):
        raise JournalError("disk full")

    monkeypatch.setattr(ask.broker, "_durable", True)
    monkeypatch.setattr(ask.broker._journal, "accept", fail)
    for _ in range(2):
        refused = ask("POST", "/publish", content=GRAPH, headers=TURTLE)
        assert (refused.status_code, "disk full" in refused.json()["error"]) == (503, True)
    assert (ask("GET", "/health").status_code, ask("GET", "/health").json()["status"]) == (503, "failed")
