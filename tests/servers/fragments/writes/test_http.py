"""Writes by HTTP: every form, all or nothing, once per key, and only with a token."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from streamgauge.model.fact import Fact
from streamgauge.servers.fragments.annotations import method
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.pages.dataset import DataSet, TooManyError
from streamgauge.servers.fragments.pages.http import FragmentsApp, application
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes import MAX_TRIPLES, TripleAllowance, add
from streamgauge.servers.fragments.writes.http import (
    WriteRequest,
    WritesHandler,
    read_request,
)
from streamgauge.servers.http.headers import of_host
from tests.servers.fragments.pages.reached import client, streamed

NOW = 1_449_570_000_000  # 2015-12-08T10:20:00Z
TOKEN = "a token of sixteen"
T = "<http://example.org/train#%s>"
LATE, SOON, PLATFORM = (T % "d1", T % "delay", '"60S"'), (T % "d2", T % "delay", '"0S"'), (T % "d1", T % "pl", '"1"')
TURTLE, JSON, UPDATE = "text/turtle", "application/json", "application/sparql-update"
FORM = "application/x-www-form-urlencoded"
PREFIX = "PREFIX t: <http://example.org/train#> "


def held(label: Label = Label.EXPIRATION, facts: Sequence[Fact] = (), now: int = NOW, **style: object) -> DataSet:
    data = DataSet("trains", MemoryStore(), Style(label=label, **style), lambda: now)
    add(data, facts)
    return data


def served(data: DataSet, tokens: Sequence[str] = (TOKEN,), body: int = 10_000) -> FragmentsApp:
    return application([data], [WritesHandler(tokens, of_host, body)])


def facts(data: DataSet) -> set[Fact]:
    return set(method(data.style.method).facts(data.store.page((None,) * 4, 0, 1000), data.style))


def write(app: FragmentsApp, verb: str, query: str = "", body: str | bytes = "", kind: str = TURTLE, **headers: str):
    given = {"Authorization": f"Bearer {TOKEN}", **({"Content-Type": kind} if body else {}), **headers}

    async def send():
        async with client(app) as web:
            coded = {name: value.encode("latin-1") for name, value in given.items()}
            return await web.request(verb, f"/trains{query}", content=body, headers=coded)

    return asyncio.run(send())


def turtle(*triples: tuple[str, str, str]) -> str:
    return "".join(f"{' '.join(triple)} .\n" for triple in triples)


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("", Fact(LATE)),
        ("?for=10s", Fact(LATE, None, NOW + 10_000)),
        ("?until=2015-12-08T11:20:00%2B01:00", Fact(LATE)),  # is now: it has ended
        ("?until=2015-12-08T10:20:10Z", Fact(LATE, None, NOW + 10_000)),
        (f"?until={NOW + 5}", Fact(LATE, None, NOW + 5)),
        ("?from=2015-12-08T10:00:00Z&for=1h", Fact(LATE, None, NOW + 2_400_000)),
    ],
)
def test_posted_facts_hold_beside_others(query: str, fact: Fact) -> None:
    data = held(facts=[Fact(SOON)])
    reply = write(served(data), "POST", query, turtle(LATE))
    if "%2B" in query:
        assert reply.status_code == 400
        assert "before it begins" in reply.json()["error"]
        return
    assert reply.status_code == 200
    assert facts(data) == {Fact(SOON), fact}
    assert reply.json()["facts"] == {"added": 1, "removed": 0}
    assert reply.json()["version"] == reply.headers["dataset-version"] == data.version.decode()


@pytest.mark.parametrize(
    ("label", "query", "fact"),
    [
        (Label.INTERVAL, "?for=10s", Fact(LATE, NOW, NOW + 10_000)),
        (Label.INTERVAL, "?from=0&until=5", Fact(LATE, 0, 5)),
        (Label.INTERVAL, "?from=now", Fact(LATE, NOW, None)),
        (Label.INSTANT, "?from=7", Fact(LATE, 7, 8)),
        (Label.INSTANT, "?from=now", Fact(LATE, NOW, NOW + 1)),
    ],
)
def test_validities_by_label(label: Label, query: str, fact: Fact) -> None:
    data = held(label)
    assert write(served(data), "POST", query, turtle(LATE)).status_code == 200
    assert facts(data) == {fact}


@pytest.mark.parametrize("source", ["graphs", "singleton", "implicit", "reification", "reifiers"])
@pytest.mark.parametrize("own", ["graphs", "implicit"])
def test_annotated_bodies_of_any_style_are_written_in_the_data_sets_own(source: str, own: str) -> None:
    data = held(Label.INTERVAL, method=own)
    style = Style(source, Label.INTERVAL)
    given = [Fact(LATE, 0, NOW + 1000), Fact(SOON, 5, None), Fact(PLATFORM)]
    quads = [quad for quad, _ in method(source).annotate(given, style, lambda _: "n1" if _[0].final else "n2")]
    body = "".join(f"{' '.join(quad).rstrip()} .\n" for quad in quads)
    reply = write(served(data), "POST", f"?method={source}&label=interval", body, "application/n-quads")
    assert reply.status_code == 200, reply.text
    assert facts(data) == set(given)


def test_putting_replaces_what_matches() -> None:
    data = held(Label.INTERVAL, [Fact(LATE, 0, None), Fact(SOON, 0, None), Fact(PLATFORM, 0, None)])
    reply = write(served(data), "PUT", "?predicate=http://example.org/train%23delay&for=1m", turtle(LATE))
    assert reply.status_code == 200
    assert facts(data) == {Fact(LATE, 0, None), Fact(SOON, 0, NOW), Fact(PLATFORM, 0, None)}


def test_deleting_forgets_and_at_ends() -> None:
    data = held(Label.INTERVAL, [Fact(LATE, 0, None), Fact(SOON, 0, None)])
    assert write(served(data), "DELETE", "?subject=http://example.org/train%23d1").json()["facts"]["removed"] == 1
    assert facts(data) == {Fact(SOON, 0, None)}
    write(served(data), "DELETE", "?object=%220S%22&at=now")
    assert facts(data) == {Fact(SOON, 0, NOW)}


def test_a_list_of_operations_is_one_change() -> None:
    data = held(facts=[Fact(LATE), Fact(PLATFORM)])
    version = data.store.version
    operations = [
        {"remove": {"object": '"60S"'}},
        {"add": turtle(SOON), "until": NOW + 1000},
        {"replace": {"predicate": "http://example.org/train#pl"}, "by": turtle((T % "d1", T % "pl", '"2"'))},
        {"expire": {"subject": "http://example.org/train#d2"}, "at": NOW + 500},
    ]
    assert write(served(data), "PATCH", "", json.dumps(operations), JSON).status_code == 200
    assert facts(data) == {Fact(SOON, None, NOW + 500), Fact((T % "d1", T % "pl", '"2"'))}
    assert data.store.version == version + 1


def test_a_body_has_so_many_triples_and_no_more() -> None:
    """All operations of a list together; 100,000 where nothing else is said."""
    assert MAX_TRIPLES == 100_000
    operations = json.dumps([{"add": turtle(LATE, SOON)}, {"add": turtle(PLATFORM)}])
    for kind, verb, body in ((JSON, "PATCH", operations), (TURTLE, "POST", turtle(LATE, SOON, PLATFORM))):
        request = WriteRequest(verb, {}, kind, body.encode(), Style(), "http://data.test", NOW, "f", TripleAllowance(2))
        with pytest.raises(TooManyError, match="the body has more than 2 triples"):
            read_request(request)
        assert read_request(replace(request, triples=TripleAllowance(3)))


def test_nothing_of_a_list_is_done_when_one_fails() -> None:
    data = held(facts=[Fact(LATE)])
    operations = [{"remove": {"object": '"60S"'}}, {"add": "no turtle"}]
    reply = write(served(data), "PATCH", "", json.dumps(operations), JSON)
    assert reply.status_code == 400
    assert "not text/turtle" in reply.json()["error"]
    assert facts(data) == {Fact(LATE)}


@pytest.mark.parametrize(
    ("update", "after"),
    [
        ('INSERT DATA { t:d2 t:delay "0S" }', {Fact(LATE), Fact(SOON, None, NOW + 1000)}),
        ('DELETE DATA { t:d1 t:delay "60S" }', set()),
        ("DELETE WHERE { ?d t:delay ?s }", set()),
        ("DELETE WHERE { ?d t:delay ?s . ?d t:pl ?p }", {Fact(LATE)}),
        (
            'DELETE { ?d t:delay ?s } INSERT { ?d t:delay "0S" . ?s t:delay ?s } WHERE { ?d t:delay ?s }',
            {Fact((T % "d1", T % "delay", '"0S"'), None, NOW + 1000)},
        ),
        ('INSERT { t:d2 t:delay "0S" } WHERE { t:d1 t:delay "0S" }', {Fact(LATE)}),
        ('DELETE WHERE { ?d t:delay ?s } ; INSERT DATA { t:d2 t:delay "0S" }', {Fact(SOON, None, NOW + 1000)}),
        ("DELETE WHERE { t:d1 t:delay ?s } ; DELETE WHERE { ?d t:delay ?s }", set()),
        ("CLEAR ALL", set()),
        ("DROP DEFAULT", set()),
        ("DELETE { ?d t:delay ?s } WHERE { ?d t:delay ?s FILTER(?s = '0S') }", {Fact(LATE)}),
        ("DELETE { ?d t:delay ?s } WHERE { ?d t:delay ?s FILTER NOT EXISTS { ?d t:pl ?p } }", set()),
        (
            'DELETE { t:d2 t:delay ?s } INSERT { t:d2 t:delay "0S" } WHERE { OPTIONAL { t:d2 t:delay ?s } }',
            {Fact(LATE), Fact(SOON, None, NOW + 1000)},
        ),
        ('INSERT DATA { t:d2 t:delay "0S" } ; DELETE WHERE { t:d2 ?p ?s }', {Fact(LATE)}),
    ],
)
def test_sparql_updates(update: str, after: set[Fact]) -> None:
    data = held(facts=[Fact(LATE)])
    reply = write(served(data), "PATCH", "?for=1s", PREFIX + update, UPDATE)
    assert reply.status_code == 200, reply.text
    assert facts(data) == after


REFUSED = [
    ("PATCH", "", "COPY DEFAULT TO <urn:g>", UPDATE, 400, "COPY is not supported"),
    ("PATCH", "", "CLEAR", UPDATE, 400, "but one of GRAPH, DEFAULT, NAMED, ALL is expected"),
    ("PATCH", "", "SELECT=1", FORM, 400, "not a parameter of an update"),
    ("POST", "", "query=ASK {}", FORM, 400, "not a parameter of an update"),
    ("POST", "?using-graph-uri=urn:g", "update=CLEAR ALL", FORM, 400, "not a parameter of POST"),
    ("POST", "?method=graphs", "update=CLEAR ALL", FORM, 400, "not a parameter of an update, whose facts"),
    ("POST", "", "update=CLEAR ALL&using-graph-uri=urn:g", FORM, 400, "this store has one graph only"),
    ("PATCH", "", "INSERT { ?s <urn:p> ?u } WHERE { ?s <urn:q> ?o BIND(UUID() AS ?u) }", UPDATE, 400, "UUID is not"),
    ("PATCH", "", "LOAD <http://example.org/>", UPDATE, 400, "LOAD is not supported"),
    ("PATCH", "", "DELETE WHERE { GRAPH <urn:g> { ?s ?p ?o } }", UPDATE, 400, "GRAPH is not supported"),
    ("PATCH", "", "DELETE WHERE { ?s <urn:p>|<urn:q> ?o }", UPDATE, 400, "expected"),
    ("PATCH", "", "INSERT DATA { ?s <urn:p> 1 }", UPDATE, 400, "variables are not allowed in data"),
    ("PATCH", "", "SELECT * { ?s ?p ?o }", UPDATE, 400, "unknown operation"),
    ("PATCH", "", "[]" * 2, JSON, 400, "not JSON"),
    ("PATCH", "", "[" * 9000, JSON, 400, "not JSON"),
    ("PATCH", "", '{"add": ""}', JSON, 400, "a list of at most"),
    ("PATCH", "", '[{"add": 1}]', JSON, 400, "operation 1: facts are Turtle"),
    ("PATCH", "", '[{"add": "\\ud800"}]', JSON, 400, "UTF-8 cannot encode it"),
    ("PATCH", "", '[{"remove": {}}]', JSON, 400, "change every fact"),
    ("PATCH", "", '[{"remove": {"graph": ""}}]', JSON, 400, "a pattern is"),
    ("PATCH", "", '[{"grow": {}}]', JSON, 400, "expected one of"),
    ("PATCH", "", "<a:b> <a:c> 1 .", TURTLE, 415, "PATCH takes"),
    ("POST", "", "<a:b> <a:c> 1 .", "text/csv", 415, "text/csv: send facts as one of"),
    ("POST", "", "<r/>", "text/n3", 415, "send facts as one of"),
    ("POST", "", "<a:b> <a:c>", TURTLE, 400, "not text/turtle"),
    ("POST", "", "<a:b> <a:c> 1 .", "application/ld+json", 400, "not application/ld+json"),
    ("POST", "", b"\xff\xfd", TURTLE, 400, "not text/turtle"),
    ("POST", "", "<urn:g> { <a:b> <a:c> 1 }", "application/trig", 400, "facts have no graph"),
    ("POST", "?method=colours", "<a:b> <a:c> 1 .", TURTLE, 400, "no annotation method 'colours'"),
    ("POST", "?label=late", "<a:b> <a:c> 1 .", TURTLE, 400, "there are labels expiration, interval, instant"),
    ("POST", "", "<a:b> <http://example.org/temporal#expiration> 1 .", TURTLE, 400, "predicate of time labels"),
    (
        "POST",
        "?method=reification",
        "<a:b> <http://example.org/temporal#expiration> 1; <http://www.w3.org/1999/02/22-rdf-syntax-ns#subject> 1.",
        TURTLE,
        400,
        "is not a time",
    ),
    ("POST", "?until=tomorrow", "<a:b> <a:c> 1 .", TURTLE, 400, "'tomorrow' is not a time"),
    ("POST", "?until=999999999999999", "<a:b> <a:c> 1 .", TURTLE, 400, "not within the years"),
    ("POST", "?from=99999999999999", "<a:b> <a:c> 1 .", TURTLE, 400, "has no beginning"),
    ("POST", "?for=soon", "<a:b> <a:c> 1 .", TURTLE, 400, "is not a duration"),
    ("POST", "?for=1s&until=now", "<a:b> <a:c> 1 .", TURTLE, 400, "give one"),
    ("POST", "?colour=red", "<a:b> <a:c> 1 .", TURTLE, 400, "not a parameter of POST"),
    ("POST", "?for=1s&for=2s", "<a:b> <a:c> 1 .", TURTLE, 400, "given twice"),
    ("POST", "?for=%FF", "<a:b> <a:c> 1 .", TURTLE, 400, "not UTF-8"),
    ("POST", "", "#" * 10_001, TURTLE, 413, "longer than 10000 bytes"),
    ("POST", "", "<a:b> <a:c> " + "<<(<a:b><a:c>" * 700, TURTLE, 400, "nested more than"),
    ("POST", "", '<a:b> <a:c> "' + "<<(" * 2000, TURTLE, 400, "not text/turtle"),
    ("POST", "", f"@prefix p: <urn:{'p' * 6_000}>. {'p:a p:b p:c . ' * 265}", TURTLE, 400, "characters in all"),
    ("PATCH", "", "INSERT DATA { <a:b> <a:c> " + "(" * 9000, UPDATE, 400, "brackets are nested more than"),
    (
        "PATCH",
        "",
        "INSERT DATA { <a:b> <a:c> " + "(" * 4000 + ")" * 4000 + "}",
        UPDATE,
        400,
        "brackets are nested more than",
    ),
    ("DELETE", f"?object={'<<(<a:b><a:c>' * 500}", "", TURTLE, 400, "not a triple term"),
    ("PUT", "", " ", TURTLE, 400, "change every fact"),
    ("PUT", "?subject=?x", "<a:b> <a:c> 1 .", TURTLE, 400, "change every fact"),
    ("PUT", "?subject=x", "<a:b> <a:c> 1 .", TURTLE, 400, "not an absolute IRI"),
    ("DELETE", "", "", TURTLE, 400, "change every fact"),
    ("DELETE", "?subject=a:b", "<a:b> <a:c> 1 .", TURTLE, 400, "DELETE takes no body"),
]


@pytest.mark.parametrize(
    ("verb", "query", "body", "kind", "status", "message"), REFUSED, ids=[f"{r[0]}-{r[5]}" for r in REFUSED]
)
def test_what_cannot_be_done_is_said_and_nothing_changes(
    verb: str, query: str, body: str, kind: str, status: int, message: str
) -> None:
    data = held(facts=[Fact(LATE)])
    reply = write(served(data), verb, query, body, kind)
    assert reply.status_code == status, reply.text
    assert message in reply.json()["error"]
    assert facts(data) == {Fact(LATE)}


def test_writes_need_a_token() -> None:
    data = held()
    for verb in ("POST", "PUT", "PATCH", "DELETE"):
        for item in ("", "Bearer", "Bearer x", "Basic YTpi", f"Bearer {TOKEN}x", "Bearer \xe9"):
            reply = write(served(data), verb, "?subject=a:b", Authorization=item)
            assert reply.status_code == 401
            assert reply.headers["www-authenticate"] == "Bearer"
        assert write(served(data, ()), verb).status_code == 403
    assert write(served(data), "POST", f"?access_token={TOKEN}", turtle(LATE), Authorization="").status_code == 401
    assert facts(data) == set()


def test_a_key_makes_a_write_happen_once() -> None:
    data = held(Label.INTERVAL)
    app = served(data)
    body = "[] <a:c> 1 ."
    first = write(app, "POST", "", body, **{"Idempotency-Key": "one"})
    again = write(app, "POST", "", body, **{"Idempotency-Key": "one"})
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert len(facts(data)) == 1
    other = write(app, "POST", "", body + " ", **{"Idempotency-Key": "one"})
    assert other.status_code == 422
    assert write(app, "POST", "", body, **{"Idempotency-Key": "x" * 201}).status_code == 400
    write(app, "POST", "", body, **{"Idempotency-Key": "two"})
    assert len(facts(data)) == 2


def test_the_same_request_twice_at_once_happens_once() -> None:
    data = held()
    app = served(data)
    given = {"Authorization": f"Bearer {TOKEN}", "Content-Type": TURTLE, "Idempotency-Key": "k"}

    async def both():
        async with client(app) as web:
            return await asyncio.gather(*(web.post("/trains", content="[] <a:c> 1 .", headers=given) for _ in range(8)))

    assert {reply.text for reply in asyncio.run(both())} == {asyncio.run(both())[0].text}
    assert len(facts(data)) == 1


def test_the_servers_names_of_blank_nodes_name_them() -> None:
    data = held()
    app = served(data)
    write(app, "POST", "", "[] <a:c> 1 .")
    write(app, "POST", "", "[] <a:c> 1 .")
    first, second = sorted(fact.triple[0] for fact in facts(data))
    assert first != second
    name = f"http://localhost/.well-known/genid/{first[2:]}"
    write(app, "POST", "", f"<{name}> <a:d> 2 .")
    write(app, "PATCH", "", f"INSERT DATA {{ <{name}> <a:d> 3 }}", UPDATE)
    assert sum(fact.triple[0] == first for fact in facts(data)) == 3
    write(app, "DELETE", f"?subject={name}")
    assert {fact.triple[0] for fact in facts(data)} == {second}


def test_a_write_is_heard_at_once() -> None:
    data = held()
    app = served(data)

    async def listen() -> None:
        async with streamed(app, "/trains", "subject=a:b", accept="text/event-stream") as response:
            await response.next()
            async with client(app) as web:
                headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": TURTLE}
                await web.post("/trains", content="<a:b> <a:c> 'x' .", headers=headers)
            assert (await response.next())["data"] == 'A <a:b> <a:c> "x" .'

    asyncio.run(listen())


OTHER_TOKEN = "another token of sixteen"


def test_a_key_belongs_to_a_token_a_request_and_a_body() -> None:
    data = held(Label.INTERVAL)
    app = served(data, (TOKEN, OTHER_TOKEN))
    key = {"Idempotency-Key": "one"}
    assert write(app, "POST", "?from=1", turtle(LATE), **key).status_code == 200
    for verb, query, body, kind in (
        ("POST", "?from=1", turtle(SOON), TURTLE),
        ("POST", "?from=2", turtle(LATE), TURTLE),
        ("POST", "?from=1", turtle(LATE), "application/n-triples"),
        ("PUT", "?predicate=http://example.org/train%23delay", turtle(LATE), TURTLE),
        ("DELETE", "?object=%2260S%22", "", TURTLE),
    ):
        refused = write(app, verb, query, body, kind, **key)
        assert (refused.status_code, "another request" in refused.json()["error"]) == (422, True)
    theirs = write(app, "POST", "?from=1", turtle(SOON), Authorization=f"Bearer {OTHER_TOKEN}", **key)
    assert (theirs.status_code, theirs.json()["facts"]["added"]) == (200, 1)
    assert facts(data) == {Fact(LATE, 1, None), Fact(SOON, 1, None)}


def test_a_query_and_a_body_are_not_run_together_in_a_key() -> None:
    data = held(Label.INTERVAL)
    app = served(data)
    assert write(app, "POST", "?from=1", f"2 {turtle(LATE)}", **{"Idempotency-Key": "k"}).status_code == 400
    assert write(app, "POST", "?from=1", turtle(LATE), **{"Idempotency-Key": "k"}).status_code == 200
    assert write(app, "POST", "?from=", f"1{turtle(LATE)}", **{"Idempotency-Key": "k"}).status_code == 422


def read(app: FragmentsApp, query: str = "", **headers: str):
    async def ask():
        async with client(app) as web:
            return await web.get(f"/trains{query}", headers={n.replace("_", "-"): v for n, v in headers.items()})

    return asyncio.run(ask())


WHERE = "?subject=http://example.org/train%23d1"


@pytest.mark.parametrize("accept", ["application/trig", "application/n-quads", "text/turtle", "text/html"])
@pytest.mark.parametrize("coding", ["identity", "gzip", "br"])
def test_a_fragment_is_written_only_as_it_was_read(accept: str, coding: str) -> None:
    data = held(Label.INTERVAL, [Fact(LATE, 0, None), Fact(PLATFORM, 0, None)])
    app = served(data)
    tag = read(app, WHERE, accept=accept, accept_encoding=coding).headers["etag"]
    for unmet in ('"x"', f"W/{tag}", f'{tag[:-1]}x"'):
        refused = write(app, "DELETE", WHERE, **{"If-Match": unmet})
        assert (refused.status_code, "If-Match does not hold" in refused.json()["error"]) == (412, True)
    assert write(app, "DELETE", WHERE, **{"If-None-Match": tag}).status_code == 412
    assert write(app, "DELETE", f"{WHERE}&object=%2260S%22", **{"If-Match": tag}).status_code == 412
    assert write(app, "DELETE", WHERE, **{"If-Match": f'"x", {tag}'}).status_code == 200
    write(app, "POST", "", turtle(LATE))
    assert write(app, "DELETE", WHERE, **{"If-Match": tag}).status_code == 412
    assert facts(data) == {Fact(LATE)}


def test_the_version_of_a_data_set_is_a_tag_of_all_its_fragments() -> None:
    data = held(Label.INTERVAL, [Fact(LATE, 0, None)])
    app = served(data)
    version = f'"{read(app).headers["dataset-version"]}"'
    assert write(app, "DELETE", f"{WHERE}&at=now", **{"If-Match": version}).status_code == 200
    assert write(app, "DELETE", WHERE, **{"If-Match": version}).status_code == 412
    assert facts(data) == {Fact(LATE, 0, NOW)}


@pytest.mark.parametrize(
    ("verb", "query", "body", "kind"),
    [
        ("POST", "", turtle(SOON), TURTLE),
        ("PUT", "?predicate=http://example.org/train%23delay", turtle(SOON), TURTLE),
        ("DELETE", WHERE, "", TURTLE),
        ("PATCH", "", json.dumps([{"remove": {"object": '"60S"'}}]), JSON),
        ("PATCH", "", "DELETE WHERE { ?s ?p ?o }", UPDATE),
    ],
)
def test_every_write_is_held_to_its_conditions(verb: str, query: str, body: str, kind: str) -> None:
    data = held(Label.INTERVAL, [Fact(LATE, 0, None)])
    app = served(data)
    for unmet in (
        {"If-Match": '"x"'},
        {"If-None-Match": "*"},
        {"If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
    ):
        assert write(app, verb, query, body, kind, **unmet).status_code == 412
    assert write(app, verb, query, body, kind, **{"If-Match": "x"}).status_code == 400
    assert facts(data) == {Fact(LATE, 0, None)}
    assert write(app, verb, query, body, kind, **{"If-Match": "*"}).status_code == 200
    assert facts(data) != {Fact(LATE, 0, None)}


def test_a_fact_is_made_only_where_nothing_matches() -> None:
    data = held(Label.INTERVAL)
    app = served(data)
    fresh = {"If-None-Match": "*"}
    assert write(app, "PUT", f"{WHERE}&from=1", turtle(LATE), **{"If-Match": "*"}).status_code == 412
    assert write(app, "PUT", f"{WHERE}&from=1", turtle(LATE), **fresh).status_code == 200
    assert write(app, "PUT", f"{WHERE}&from=1", turtle(PLATFORM), **fresh).status_code == 412
    assert facts(data) == {Fact(LATE, 1, None)}


def test_what_was_done_is_said_again_although_its_condition_holds_no_more() -> None:
    app = served(held(Label.INTERVAL))
    given = {"If-None-Match": "*", "Idempotency-Key": "k"}
    one, two = (write(app, "PUT", f"{WHERE}&from=1", turtle(LATE), **given) for _ in range(2))
    assert (one.status_code, one.json()) == (two.status_code, two.json()) == (200, one.json())


def test_a_whole_data_set_is_replaced() -> None:
    """An hourly dump: what it no longer has is gone, what it still has stays."""
    data = held(facts=[Fact(LATE), Fact(("<a:a>", "<a:p>", '"1"'))])
    reply = write(served(data), "PUT", "", '<a:a> <a:p> "1" , "2" .', TURTLE)
    assert reply.status_code == 200, reply.text
    assert facts(data) == {Fact(("<a:a>", "<a:p>", '"1"')), Fact(("<a:a>", "<a:p>", '"2"'))}
