"""Sources that are no fragments: SPARQL endpoints, TREE feeds, documents, what is none."""

import asyncio
from collections.abc import Callable

import httpx
import pyoxigraph as ox
import pytest

from streamgauge.formats.canonical import parse_term
from streamgauge.model.algebra import Var
from streamgauge.servers.fragments import ANYWHERE, DEFAULT, Quad, QuadPattern
from streamgauge.servers.fragments.client import Binding, FetchedQuads, LinkedDataError, UnavailableError
from streamgauge.servers.fragments.client.sources import DocumentSource, kinds, open_source, solve
from streamgauge.servers.fragments.client.sources.sparql import SparqlSource
from streamgauge.servers.fragments.client.sources.tree import TreeSource
from streamgauge.servers.fragments.client.transport import ClientLimits
from tests.servers.fragments.client.fakes import HOST, Clock, FakeServer, quads, reply, trains, web

S, P, Y, G = map(Var, "spyg")
EVERY = QuadPattern(S, P, Y, ANYWHERE)
START = f"{HOST}/sparql"
SD = "http://www.w3.org/ns/sparql-service-description#"
DATA = quads('a p b. a q "x". b p 7. a p b g. b p "x" h')


def opened(handler: Callable, address: str = START, **options):
    """The source at an address and its client."""
    client = web(handler, **options)
    return asyncio.run(open_source(address, client)), client


def fetched(
    handler: Callable, pattern: QuadPattern, seeds: tuple[Binding, ...] = (), address: str = START, **options
) -> FetchedQuads:
    async def run() -> FetchedQuads:
        client = web(handler, **options)
        with client.round():
            return await (await open_source(address, client)).fetch(pattern, seeds)

    return asyncio.run(run())


class Sparql:
    """An endpoint over quads; at its bare address a description, HTML or a refusal."""

    def __init__(
        self, data: list[Quad], bare: Callable[[], httpx.Response], results: str = "json", cut: int = 10**9
    ) -> None:
        self.store, self.bare, self.results, self.cut, self.queries = ox.Store(), bare, results, cut, []
        for s, p, o, g in data:
            self.store.add(ox.Quad(*map(parse_term, (s, p, o)), parse_term(g) if g else ox.DefaultGraph()))

    def __call__(self, request: httpx.Request) -> httpx.Response:
        given = httpx.QueryParams(request.content.decode()) if request.method == "POST" else request.url.params
        if "query" not in given:
            return self.bare()
        self.queries.append((request.method, given["query"]))
        result = self.store.query(given["query"])
        form = ox.QueryResultsFormat.JSON if self.results == "json" else ox.QueryResultsFormat.XML
        body = result.serialize(format=form)
        if self.cut < 10**9 and b'"results"' in body and b'"n"' not in body:
            store = self.store.query(f"{given['query']} LIMIT {self.cut}")
            body = store.serialize(format=form)
        return reply(200, body, kind=f"application/sparql-results+{self.results}; charset=utf-8")


BARE = {
    "describes itself": lambda: reply(200, f"<{START}#s> a <{SD}Service> ; <{SD}endpoint> <{START}> .".encode()),
    "describes itself without an endpoint": lambda: reply(200, f"[] a <{SD}Service> .".encode(), kind="text/turtle"),
    "is a page for people": lambda: reply(200, b"<html></html>", kind="text/html"),
    "refuses": lambda: reply(400, b"no query", kind="text/plain"),
    "is not there": lambda: reply(404, b""),
}


@pytest.mark.parametrize("bare", BARE)
@pytest.mark.parametrize("results", ["json", "xml"])
def test_an_endpoint_is_recognised(bare: str, results: str) -> None:
    server = Sparql(DATA, BARE[bare], results)
    assert isinstance(opened(server)[0], SparqlSource)
    assert set(fetched(server, QuadPattern(S, P, Y)).quads) == set(DATA[:3])


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (EVERY, DATA),
        (QuadPattern(S, P, Y), DATA[:3]),
        (QuadPattern(S, P, Y, G), DATA[3:]),
        (QuadPattern(S, P, Y, "<urn:h>"), DATA[4:]),
        (QuadPattern(S, "<urn:p>", S), []),
        (QuadPattern("<urn:a>", "<urn:p>", "<urn:b>"), DATA[:1]),
        (QuadPattern(Var("_:0"), "<urn:q>", Var("a-b")), DATA[1:2]),
    ],
)
def test_an_endpoint_has_the_quads_that_match(pattern: QuadPattern, expected: list[Quad]) -> None:
    server = Sparql(DATA, BARE["refuses"])
    assert set(fetched(server, pattern).quads) == set(expected)
    source, _ = opened(server)
    assert asyncio.run(source.count(pattern)) >= len(expected)


def test_seeds_are_values_where_that_is_less() -> None:
    server = Sparql(trains(2000), BARE["refuses"])
    seeds = tuple({S: f"<urn:d{number}>"} for number in range(150))
    result = fetched(server, QuadPattern(S, "<urn:routeLabel>", Y), seeds)
    assert len(result.quads) == 150
    assert len(server.queries) == 3
    assert "VALUES" in server.queries[-1][1]
    server.queries.clear()
    assert len(fetched(server, QuadPattern(S, "<urn:routeLabel>", Y), seeds * 1).quads) == 150
    whole = Sparql(trains(150), BARE["refuses"])
    fetched(whole, QuadPattern(S, "<urn:routeLabel>", Y), seeds)
    assert "VALUES" not in whole.queries[-1][1]


def test_long_queries_are_posted() -> None:
    server = Sparql(trains(2000), BARE["refuses"])
    seeds = tuple({S: f"<urn:d{number}>"} for number in range(150))
    fetched(server, QuadPattern(S, "<urn:routeLabel>", Y), seeds, limits=ClientLimits(address=500))
    assert [method for method, _ in server.queries] == ["GET", "GET", "POST"]


def test_an_endpoint_that_cuts_its_answers() -> None:
    with pytest.raises(LinkedDataError, match="returns 10 of 50 solutions, so it truncates answers"):
        fetched(Sparql(trains(50), BARE["refuses"], cut=10), QuadPattern(S, "<urn:delay>", Y))


def test_an_endpoint_that_breaks() -> None:
    good = Sparql(DATA, BARE["refuses"])

    def handler(request: httpx.Request) -> httpx.Response:
        if "COUNT" in request.url.params.get("query", ""):
            return reply(
                200, b'{"head": {"vars": ["n"]}, "results": {"bindings": [', kind="application/sparql-results+json"
            )
        return good(request)

    with pytest.raises(LinkedDataError, match=rf"^{START}\?query=.*: cannot be read as solutions"):
        fetched(handler, EVERY)


def test_a_description_does_not_lead_elsewhere() -> None:
    def bare() -> httpx.Response:
        return reply(200, f"<{START}#s> a <{SD}Service> ; <{SD}endpoint> <http://127.0.0.1/sparql> .".encode())

    with pytest.raises(LinkedDataError, match=r"127\.0\.0\.1 is not a public host"):
        opened(Sparql(DATA, bare))


def test_sources_of_all_kinds_are_joined() -> None:
    """Delays from fragments, signs from an endpoint, platforms from a document."""
    data = trains(20)
    part = {name: [quad for quad in data if quad[1] == f"<urn:{name}>"] for name in ("delay", "headSign", "platform")}
    text = "".join(f"{s} {p} {o} .\n" for s, p, o, _ in part["platform"]).encode()
    fragments, endpoint = FakeServer(part["delay"]), Sparql(part["headSign"], BARE["refuses"])

    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/d":
            return fragments(request)
        return endpoint(request) if request.url.path == "/sparql" else reply(200, text, kind="application/n-triples")

    async def run() -> int:
        client = web(handler)
        sources = [await open_source(f"{HOST}/{path}", client) for path in ("d", "sparql", "f")]
        return len((await solve([QuadPattern(S, f"<urn:{name}>", Var(name)) for name in part], sources, client)).rows)

    assert asyncio.run(run()) == 20


PREFIXES = """@prefix tree: <https://w3id.org/tree#> . @prefix ldes: <https://w3id.org/ldes#> .
@prefix dct: <http://purl.org/dc/terms/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix : <urn:> .
"""


class Tree:
    """Nodes by path."""

    def __init__(self, **nodes: str) -> None:
        self.nodes, self.asked, self.clock = nodes, [], Clock()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        name = request.url.path.strip("/")
        self.asked.append(name)
        body = self.nodes.get(name)
        if body is None:
            return reply(410, b"")
        headers = {"Cache-Control": "public, max-age=604800, immutable"} if "immutable" in body else {}
        return reply(200, (PREFIXES + body).encode(), kind="text/turtle", **headers)


MEMBERS = """<c> tree:member :m1, :m2 . :m1 dct:isVersionOf :e ; dct:created "2026-01-01T12:00:00+02:00"^^xsd:dateTime .
:m1 :v 1 . :m2 dct:isVersionOf :e ; dct:created "2026-01-01T11:00:00Z"^^xsd:dateTime ; :v 2 ; :at [ :lat 3 ] .
:not :a :member ."""


def test_a_feed_has_its_members_only() -> None:
    result = fetched(Tree(d=MEMBERS), EVERY, address=f"{HOST}/d").quads
    assert {quad[0] for quad in result if not quad[0].startswith("_")} == {"<urn:m1>", "<urn:m2>"}
    assert [quad[1:] for quad in result if quad[0].startswith("_")] == [("<urn:lat>", _integer(3), DEFAULT)]


def _integer(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def test_of_versions_the_last_counts() -> None:
    """11:00 UTC is after 12:00 in a zone two hours ahead."""
    stream = "<c> a ldes:EventStream ; ldes:versionOfPath dct:isVersionOf ; ldes:timestampPath dct:created . "
    result = fetched(Tree(d=stream + MEMBERS), QuadPattern(S, "<urn:v>", Y), address=f"{HOST}/d")
    assert [quad[0] for quad in result.quads] == ["<urn:m2>"]


PERSONS = """<c> tree:member :m ; tree:shape {0} . :m :by :ada ; :v 1 ; :place [ :name "here" ] . :bob :knows :ada .
:ada :name "Ada" ; :friend :eve ; :home :town . :eve :name "Eve" . :town :name "Town" . :not :a :member . """
SHAPE = "@prefix sh: <http://www.w3.org/ns/shacl#> . "


@pytest.mark.parametrize(
    ("shape", "more"),
    [
        ("[ sh:property [ sh:path :by ] ]", []),
        ("[ sh:property [ sh:path :by ; sh:node [ sh:property [ sh:path :name ] ] ] ]", ["ada"] * 3),
        ("[ sh:property [ sh:path (:by :home) ] ]", ["ada"]),
        ("[ sh:property [ sh:path (:by [ sh:alternativePath (:friend :home) ]) ; sh:node [] ] ]",
         ["ada", "ada", "eve", "town"]),
        ("[ sh:property [ sh:path (:by [ sh:inversePath :knows ]) ] ]", ["bob"]),
        ("[ sh:property [ sh:path [ sh:oneOrMorePath [ sh:alternativePath (:by :friend) ] ] ] ]", ["ada"]),
        ("<#own> . <#own> sh:and ( [ sh:property [ sh:path :by ; sh:node <#person> ] ] ) . "
         "<#person> sh:property [ sh:path :friend ; sh:node <#person> ]", ["ada"] * 3 + ["eve"]),
        ("<shape#person>", ["ada"] * 3),
        ("<http://elsewhere.example/shape>", []),
        ("<nowhere>", []),
    ],
)  # fmt: skip
def test_what_a_shape_includes_belongs_to_members(shape: str, more: list[str]) -> None:
    remote = SHAPE + "<#person> sh:property [ sh:path :by ; sh:node [] ] ."
    server = Tree(d=SHAPE + PERSONS.format(shape), shape=remote)
    result = fetched(server, EVERY, address=f"{HOST}/d").quads
    others = sorted(quad[0][5:-1] for quad in result if quad[0].startswith("<urn:") and quad[0] != "<urn:m>")
    assert others == more
    assert len([quad for quad in result if quad[0] == "<urn:m>"]) == 3
    assert any(quad[0].startswith("_:") and quad[2] == '"here"' for quad in result)


def test_all_nodes_are_read_once_even_in_circles() -> None:
    def link(*names: str) -> str:
        return " ".join(f"<> tree:relation [ a tree:Relation ; tree:node <{name}> ] ." for name in names)

    server = Tree(
        d="<c> tree:view <r> . <c> tree:member :x . :x :v 0 .",
        r=link("n1", "n2", "r"),
        n1=f"{link('n2', 'n3')} <c> tree:member :a . :a :v 1 .",
        n2=f"{link('r')} <c> tree:member :b . :b :v 2 . # immutable",
        n3=f"{link('gone')} <c> tree:member :c . :c :v 3 .",
    )
    source, _ = opened(server, f"{HOST}/d")
    assert isinstance(source, TreeSource)
    for _ in range(2):
        result = asyncio.run(source.fetch(QuadPattern(S, "<urn:v>", Y)))
        assert {quad[2] for quad in result.quads} == {_integer(n) for n in range(4)}
    assert server.asked.count("n2") == 1
    assert server.asked.count("n1") == 2


@pytest.mark.parametrize(
    ("interval", "ms"),
    [("60", 60_000), ('"PT5M"^^xsd:duration', 300_000), ('"P1DT1.5S"^^xsd:duration', 86_401_500), ('"soon"', None)],
)
def test_the_polling_interval_is_told(interval: str, ms: int | None) -> None:
    result = fetched(Tree(d=f"<c> ldes:pollingInterval {interval} . {MEMBERS}"), EVERY, address=f"{HOST}/d")
    assert result.until == (None if ms is None else result.at + ms)


@pytest.mark.parametrize("target", ["http://127.0.0.1/n", "http://other.example/n", "file:///etc/passwd"])
def test_relations_do_not_lead_elsewhere(target: str) -> None:
    server = Tree(d=f"<> tree:relation [ tree:node <{target}> ] .")
    with pytest.raises(LinkedDataError, match=r"not a public host|another origin|not a web address"):
        fetched(server, EVERY, address=f"{HOST}/d")
    assert server.asked == ["d"]


def test_nodes_without_end() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        number = int(request.url.path.strip("/d") or 0)
        body = f"{PREFIXES} <{request.url}> tree:relation [ tree:node <{HOST}/d{number + 1}> ] ."
        return reply(200, body.encode(), kind="text/turtle")

    with pytest.raises(LinkedDataError, match="more than 20 nodes"):
        fetched(handler, EVERY, address=f"{HOST}/d", limits=ClientLimits(pages=20))


def test_a_document_is_read_once_while_it_is_fresh() -> None:
    body = b'<urn:a> <urn:b> _:x . _:x <urn:c> "1" . <urn:g> { <urn:a> <urn:b> <urn:c> }'
    source, client = opened(lambda request: reply(200, body, Cache_Control="max-age=60"), f"{HOST}/d.trig")
    assert isinstance(source, DocumentSource)
    assert asyncio.run(source.count(EVERY)) == 3
    patterns = [QuadPattern("<urn:a>", "<urn:b>", S), QuadPattern(S, "<urn:c>", Y)]
    assert [row[Y] for row in asyncio.run(solve(patterns, [source], client)).rows] == ['"1"']
    assert client.counters.requests == 1


@pytest.mark.parametrize("kind", ["application/octet-stream", "text/plain", "application/json"])
def test_an_untold_type_is_read_by_the_ending(kind: str) -> None:
    body = b'{"@id": "urn:a", "urn:b": "c"}'
    source, _ = opened(lambda request: reply(200, body, kind=kind), f"{HOST}/d.jsonld")
    assert asyncio.run(source.count(EVERY)) == 1


def test_what_is_no_source_says_what_it_is() -> None:
    with pytest.raises(
        LinkedDataError, match="answers 'text/html', which is not an interface that is known: fragments, a TREE"
    ):
        opened(lambda request: reply(200, b"<html>", kind="text/html"))
    with pytest.raises(LinkedDataError, match="answers 404"):
        opened(lambda request: reply(404, b""))
    with pytest.raises(UnavailableError, match="answers 503, after 4 attempts"):
        opened(lambda request: reply(503, b""))


def test_the_dialect_of_the_prototype_is_refused_by_name() -> None:
    hydra, context = "http://www.w3.org/ns/hydra/core#", "http://www.w3.org/1999/02/22-rdf-syntax-ns#context"
    body = f'<{START}> <{hydra}search> _:f. _:f <{hydra}property> <{context}>. <urn:s> <urn:p> "0" <urn:g>.'
    with pytest.raises(
        LinkedDataError, match=r"dialect of the 2015 prototype .* serve the data as Quad Pattern Fragments"
    ):
        opened(lambda request: reply(200, body.encode(), kind="application/n-quads"))


def test_kinds_are_found_by_listing() -> None:
    names = [kind.__name__.rpartition(".")[2] for kind in kinds()]
    assert names == ["fragments", "tree", "sparql", "collection"]


HYDRA = "@prefix hydra: <http://www.w3.org/ns/hydra/core#> . @prefix ex: <http://ex.org/> .\n"
COLLECTIONS = {
    "the older property": [
        "<> a hydra:PagedCollection ; hydra:nextPage <c2> . <a> ex:value 1 .",
        "<> hydra:nextPage <c3> . <b> ex:value 2 .",
        "<c> ex:value 3 .",
    ],
    "a view": [
        "<c> a hydra:Collection ; hydra:totalItems 2 ; hydra:view <> . <> hydra:next <c2> . <a> ex:value 1 .",
        "<c> hydra:totalItems 2 ; hydra:view <c2> . <b> ex:value 2 .",
    ],
}


@pytest.mark.parametrize("case", COLLECTIONS)
def test_a_collection_is_read_to_its_last_page(case: str) -> None:
    pages = COLLECTIONS[case]

    def handler(request: httpx.Request) -> httpx.Response:
        number = int(request.url.path.removeprefix("/c") or 1)
        return reply(200, (HYDRA + pages[number - 1]).encode(), kind="text/turtle")

    pattern = QuadPattern(S, "<http://ex.org/value>", Y, ANYWHERE)
    result = fetched(handler, pattern, address=f"{HOST}/c")
    assert sorted(quad[2][1] for quad in result.quads) == [str(n + 1) for n in range(len(pages))]


def test_a_collection_that_goes_in_a_circle_is_refused() -> None:
    text = (HYDRA + "<> hydra:next </c> . <a> <http://ex.org/value> 1 .").encode()
    with pytest.raises(LinkedDataError, match="as next page, which was read before it"):
        fetched(lambda _request: reply(200, text, kind="text/turtle"), EVERY, address=f"{HOST}/c")
