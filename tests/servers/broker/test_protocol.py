"""The SPARQL 1.1 Protocol at the broker: every form of query and update, by hand and by rdflib's client; pages."""

from urllib.parse import urlencode

import pytest
from rdflib import Graph, Literal, URIRef
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore

from streamgauge.model.fact import in_graph
from streamgauge.reasoning.rules import Rules
from streamgauge.servers.broker.access import Access, Grant
from streamgauge.servers.broker.limits import Limits
from streamgauge.servers.http.access import read_origins
from tests.servers.broker.served import Client, serving
from tests.servers.broker.world import broker, fact

FORM = "application/x-www-form-urlencoded"
QUERY, UPDATE = "application/sparql-query", "application/sparql-update"
ALL = "SELECT ?s ?o { ?s <urn:t:name> ?o }"
NAMED = "SELECT ?g ?o { GRAPH ?g { ?s <urn:t:name> ?o } }"


def people(**more):
    made = broker(rules=Rules(), **more)
    made.load([fact("s1", "name", '"one"'), in_graph("<urn:g1>", fact("s2", "name", '"two"'))])
    made.load([in_graph("<urn:g2>", fact("s3", "name", '"three"'))])
    return made


def asked(client, query, *graphs, way="get"):
    """The values that a query gives, sent in one of the three ways."""
    pairs = list(graphs)
    if way == "get":
        reply = client("GET", f"/query?{urlencode([('query', query), *pairs])}")
    elif way == "form":
        body = urlencode([("query", query), *pairs])
        reply = client("POST", "/query", content=body, headers={"Content-Type": FORM})
    else:
        reply = client("POST", f"/query?{urlencode(pairs)}", content=query, headers={"Content-Type": QUERY})
    assert reply.status_code == 200, reply.text
    return sorted(row["o"]["value"] for row in reply.json()["results"]["bindings"])


def updated(client, update, *graphs, way="form", **more):
    if way == "form":
        body, kind = urlencode([("update", update), *graphs]), FORM
    else:
        body, kind = update, UPDATE
    where = f"/update?{urlencode(list(graphs))}" if way == "direct" else "/update"
    return client("POST", where, content=body, headers={"Content-Type": kind, **more})


@pytest.mark.parametrize("way", ["get", "form", "direct"])
def test_every_way_to_ask_and_to_name_graphs(way):
    with Client(people()) as client:
        assert asked(client, ALL, way=way) == ["one"]
        assert asked(client, NAMED, way=way) == ["three", "two"]
        assert asked(client, ALL, ("default-graph-uri", "urn:g1"), way=way) == ["two"]
        both = ("default-graph-uri", "urn:g1"), ("default-graph-uri", "urn:g2")
        assert asked(client, ALL, *both, way=way) == ["three", "two"]
        assert asked(client, NAMED, ("named-graph-uri", "urn:g1"), way=way) == ["two"]
        assert asked(client, ALL, ("named-graph-uri", "urn:g1"), way=way) == []
        assert asked(client, ALL.replace("{", "FROM <urn:g1> FROM NAMED <urn:g2> {", 1), way=way) == ["two"]
        assert asked(client, NAMED.replace("{", "FROM <urn:g1> FROM NAMED <urn:g2> {", 1), way=way) == ["three"]
        overridden = ALL.replace("{", "FROM <urn:g1> {", 1)
        assert asked(client, overridden, ("default-graph-uri", "urn:g2"), way=way) == ["three"]


@pytest.mark.parametrize("way", ["form", "direct"])
def test_every_way_to_update_and_to_name_graphs(way):
    text = "INSERT { ?s <urn:t:copy> ?o } WHERE { ?s <urn:t:name> ?o }"
    for graphs, copies in (
        ((), ["one"]),
        ((("using-graph-uri", "urn:g1"),), ["two"]),
        ((("using-graph-uri", "urn:g1"), ("using-graph-uri", "urn:g2")), ["three", "two"]),
        ((("using-named-graph-uri", "urn:g1"),), []),
    ):
        with Client(people()) as client:
            assert updated(client, text, *graphs, way=way).status_code == 200
            assert asked(client, "SELECT ?o { ?s <urn:t:copy> ?o }") == copies
    with Client(people()) as client:
        both = updated(client, f"WITH <urn:g1> {text}", ("using-graph-uri", "urn:g1"), way=way)
        assert (both.status_code, "name the graphs in one place" in both.json()["error"]) == (400, True)


def test_answers_come_in_the_format_that_a_client_takes():
    with Client(people()) as client:

        def kind(query, accept):
            reply = client("GET", "/query", params={"query": query}, headers={"Accept": accept})
            return reply.status_code, reply.headers["content-type"].partition(";")[0], reply.text

        assert kind(ALL, "application/sparql-results+xml")[1:] == (
            "application/sparql-results+xml",
            '<?xml version="1.0"?><sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="s"/>'
            '<variable name="o"/></head><results><result><binding name="s"><uri>urn:t:s1</uri></binding>'
            '<binding name="o"><literal>one</literal></binding></result></results></sparql>',
        )
        assert kind(ALL, "text/csv;q=0.9, application/pdf")[1:] == ("text/csv", "s,o\r\nurn:t:s1,one\r\n")
        assert kind(ALL, "text/tab-separated-values")[2] == '?s\t?o\n<urn:t:s1>\t"one"\n'
        assert kind(ALL, "application/*")[1] == "application/sparql-results+json"
        assert kind("ASK { ?s ?p 'one' }", "*/*")[2] == '{"head": {}, "boolean": true}'
        assert "<boolean>false</boolean>" in kind("ASK { ?s ?p 'two' }", "application/sparql-results+xml")[2]
        construct = "CONSTRUCT { ?s <urn:t:called> ?o } WHERE { ?s <urn:t:name> ?o }"
        assert kind(construct, "")[1:] == ("text/turtle", '<urn:t:s1> <urn:t:called> "one" .\n')
        assert kind(construct, "application/n-triples")[2] == '<urn:t:s1> <urn:t:called> "one" .\n'
        assert kind(ALL, "application/pdf")[0] == 406


@pytest.mark.parametrize(
    ("method", "path", "kind", "body", "status", "why"),
    [
        ("GET", "/query", "", "", 400, "query= is given 0 times"),
        ("GET", "/query?query=ASK%20%7B%7D&query=ASK%20%7B%7D", "", "", 400, "query= is given 2 times"),
        ("GET", "/query?query=ASK%20%7B%7D&timeout=3", "", "", 400, "timeout: not a parameter"),
        ("GET", "/query?query=ASK%20%7B%7D&default-graph-uri=g", "", "", 400, "absolute IRI"),
        ("GET", "/query?query=%FF", "", "", 400, "not a form in UTF-8"),
        ("GET", "/query?update=CLEAR%20ALL", "", "", 400, "update: not a parameter"),
        ("GET", "/update?update=CLEAR%20ALL", "", "", 405, ""),
        ("POST", "/query", "text/plain", "ASK {}", 415, "text/plain: send application/sparql-query, or"),
        ("POST", "/query?query=ASK%20%7B%7D", QUERY, "ASK {}", 400, "in the address and a body"),
        ("POST", "/query", QUERY, "DESCRIBE <urn:s>", 400, "DESCRIBE"),
        ("POST", "/query", QUERY, "SELECT * { SERVICE <http://e/> { ?s ?p ?o } }", 400, "SERVICE"),
        ("POST", "/query", QUERY, "SELECT * FROM ex:g { ?s ?p ?o }", 400, "FROM is followed by an IRI"),
        ("POST", "/query", QUERY, "SELECT (RAND() AS ?r) {}", 400, "RAND"),
        ("POST", "/query", QUERY, "CLEAR ALL", 400, "CLEAR is an update"),
        ("POST", "/update", FORM, "query=ASK+%7B%7D", 400, "query: not a parameter of an update"),
        ("POST", "/update", FORM, "update=ASK+%7B%7D", 400, "unknown operation"),
        ("POST", "/update", "text/turtle", "<urn:a> <urn:b> 1 .", 415, "send application/sparql-update, or"),
        ("POST", "/update", "", "CLEAR ALL", 415, "no content type"),
        ("POST", "/update", UPDATE, "INSERT { ?s <urn:p> ?u } WHERE { ?s ?p ?o BIND(UUID() AS ?u) }", 400, "UUID"),
    ],
)
def test_what_is_none_of_the_protocol_is_refused_by_name(method, path, kind, body, status, why):
    made = people()
    with Client(made) as client:
        before = set(made.facts())
        reply = client(method, path, content=body, headers={"Content-Type": kind} if kind else {})
        assert (reply.status_code, why in reply.text) == (status, True), reply.text
        assert set(made.facts()) == before
        assert made.fault == ""


def test_now_has_the_time_of_the_request():
    with Client(people()) as client:
        reply = client("GET", "/query", params={"query": "SELECT (NOW() AS ?n) (NOW() AS ?m) {}"})
        (row,) = reply.json()["results"]["bindings"]
        assert row["n"] == row["m"]
        assert row["n"]["datatype"].endswith("dateTime")
        assert updated(client, "INSERT { ?s <urn:t:at> ?n } WHERE { ?s <urn:t:name> ?o BIND(NOW() AS ?n) }").is_success
        assert len(asked(client, "SELECT ?o { ?s <urn:t:at> ?o }")) == 1


def test_a_query_is_bounded_and_holds_up_nobody():
    made = people(limits=Limits(question=50))
    made.load(fact(f"x{n}", "age", f'"{n}"') for n in range(60))
    with Client(made) as client:
        for query in ("SELECT * { ?s <urn:t:age> ?o }", "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"):
            reply = client("GET", "/query", params={"query": query})
            assert (reply.status_code, "more than 50" in reply.json()["error"]) == (422, True)
        assert asked(client, "SELECT ?o { <urn:t:x3> <urn:t:age> ?o }") == ["3"]


def test_an_update_that_takes_too_long_changes_nothing_and_the_broker_goes_on():
    made = people(limits=Limits(where_seconds=0.05))
    made.load(fact(f"x{n}", "age", f'"{n}"') for n in range(150))
    slow = """INSERT { ?a <urn:t:r> ?m } WHERE { ?a <urn:t:age> ?v { SELECT (MAX(?d) AS ?m) { ?c <urn:t:age> ?d
      OPTIONAL { ?e <urn:t:age> ?f FILTER(?d != ?f) } OPTIONAL { ?g <urn:t:age> ?h FILTER(?h != ?d) } } } }"""
    before = set(made.facts())
    with Client(made) as client:
        reply = updated(client, slow)
        assert (reply.status_code, "takes longer than it may" in reply.json()["error"]) == (422, True)
        assert set(made.facts()) == before
        assert updated(client, "INSERT DATA { <urn:t:a> <urn:t:name> 'new' }").is_success
        assert asked(client, ALL) == ["new", "one"]


def test_where_after_another_operation_beside_an_ontology_is_refused_by_name():
    text = "INSERT DATA { <urn:t:x> <urn:t:name> 'x' }; DELETE WHERE { <urn:t:x> ?p ?o }"
    with Client(broker()) as client:
        reply = updated(client, text)
        assert (reply.status_code, "beside an ontology" in reply.json()["error"]) == (400, True)
    with Client(people()) as client:
        assert updated(client, text).is_success
        assert asked(client, ALL) == ["one"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://localhost:8000", "Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_a_page_elsewhere_changes_nothing(headers):
    """A form of any page can send its fields here without asking (CORS): a browser says where the page is from."""
    made = people()
    before = set(made.facts())
    with Client(made) as client:
        assert updated(client, "CLEAR ALL", **headers).status_code == 403
        assert set(made.facts()) == before
        for own in ({}, {"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
            assert updated(client, "INSERT DATA { <urn:t:a> <urn:t:b> 1 }", **own).status_code == 200


@pytest.mark.server
@pytest.mark.parametrize("method", ["GET", "POST", "POST_FORM"])
def test_the_client_of_rdflib_asks_and_updates(method):
    with serving(people()) as (address, _):
        store = SPARQLUpdateStore(
            f"{address}/query", f"{address}/update", method=method, autocommit=False, context_aware=False
        )
        graph = Graph(store)
        name = URIRef("urn:t:name")
        assert set(graph.objects(None, name)) == {Literal("one")}
        for n in range(50):
            graph.add((URIRef(f"urn:t:n{n}"), name, Literal(f"é {n}", lang="fr")))
        graph.remove((URIRef("urn:t:s1"), None, None))
        store.commit()
        assert len(set(graph.objects(None, name))) == 50
        store.update("DELETE { ?s <urn:t:name> ?o } INSERT { ?s <urn:t:name> 'x' } WHERE { ?s <urn:t:name> ?o "
                     "OPTIONAL { ?s <urn:t:none> ?n } FILTER(STRENDS(STR(?s), '7')) }")  # fmt: skip
        store.commit()
        assert len(list(graph.triples((None, name, Literal("x"))))) == 5
        reading = SPARQLStore(f"{address}/query", method=method, returnFormat="xml")
        assert bool(reading.query("ASK { ?s ?p 'x' }"))
        assert len(reading.query("CONSTRUCT { ?s <urn:t:was> ?o } WHERE { ?s <urn:t:name> ?o }").graph) == 50
        named = [row[1] for row in reading.query(NAMED)]
        assert sorted(map(str, named)) == ["three", "two"]


@pytest.mark.server
def test_tokens_and_origins_hold_for_the_protocol():
    token = "0123456789abcdef"
    origins = read_origins(["http://app.example"], tokens=True)
    with serving(people(), Access([Grant(token, frozenset(("query",)))]), origins=origins) as (address, _):
        store = SPARQLUpdateStore(f"{address}/query", f"{address}/update", headers={"Authorization": f"Bearer {token}"})
        assert len(list(store.query(ALL))) == 1
        with pytest.raises(Exception, match="403"):
            store.update("CLEAR ALL")
