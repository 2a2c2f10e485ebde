"""A data set served in this process, and what its pages say, read by pyoxigraph."""

import asyncio
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

import httpx
import pyoxigraph as ox

from streamgauge.servers.fragments import ExpiringQuad, Quad
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.store.indexed import MemoryStore

BASE = "http://data.test"
E = "http://example.org/"
HYDRA = "http://www.w3.org/ns/hydra/core#"
VOID = "http://rdfs.org/ns/void#"
FOAF = "http://xmlns.com/foaf/0.1/"
SD = "http://www.w3.org/ns/sparql-service-description#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
SYNTAX = {
    "application/trig": ox.RdfFormat.TRIG,
    "application/n-quads": ox.RdfFormat.N_QUADS,
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/ld+json": ox.RdfFormat.JSON_LD,
}


@dataclass
class Server:
    """Data sets behind an application, with a clock that stands."""

    now: int = 1_000_000
    datasets: list[DataSet] = field(default_factory=list)

    def dataset(self, name: str, quads: list[ExpiringQuad], **more: object) -> DataSet:
        store = MemoryStore()
        data_set = DataSet(name, store, Style(), lambda: self.now, **more)  # type: ignore[arg-type]
        data_set.change((), quads)
        self.datasets.append(data_set)
        return data_set

    def ask(self, address: str, method: str = "GET", app=None, **headers: str) -> httpx.Response:
        return asyncio.run(self._ask(address, method, app or application(self.datasets), headers))

    async def _ask(self, address, method, app, headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            client.headers.pop("accept")
            client.headers.pop("accept-encoding")
            return await client.request(method, address, headers=named)


@dataclass
class Page:
    """What a response says: its quads in their order, data apart from metadata."""

    address: str
    quads: list[Quad]

    @property
    def fragment(self) -> str:
        (topic,) = [q for q in self.quads if q[1] == f"<{FOAF}primaryTopic>"]
        return topic[2]

    @property
    def metadata(self) -> list[Quad]:
        return [q for q in self.quads if q[3] == self.graph]

    @property
    def graph(self) -> str:
        (topic,) = [q for q in self.quads if q[1] == f"<{FOAF}primaryTopic>"]
        return topic[3]

    @property
    def data(self) -> list[Quad]:
        return [q for q in self.quads if q[3] != self.graph]

    def values(self, subject: str, predicate: str) -> list[str]:
        return [o for s, p, o, _ in self.metadata if s == subject and p == f"<{predicate}>"]

    @property
    def total(self) -> int:
        (total,) = self.values(self.fragment, f"{VOID}triples")
        return int(total.split('"')[1])

    @property
    def next(self) -> str | None:
        links = self.values(f"<{self.address}>", f"{HYDRA}next")
        return links[0][1:-1] if links else None


def read(response: httpx.Response) -> Page:
    assert response.status_code == 200, response.text
    syntax = SYNTAX[response.headers["content-type"].partition(";")[0]]
    return Page(str(response.url), [quad_of(item) for item in ox.parse(response.content, format=syntax)])


def quad_of(quad: ox.Quad) -> Quad:
    graph = "" if isinstance(quad.graph_name, ox.DefaultGraph) else str(quad.graph_name)
    spoken = f"<<( {quad.object} )>>" if isinstance(quad.object, ox.Triple) else str(quad.object)
    return str(quad.subject), str(quad.predicate), spoken, graph


def address(name: str, **places: str) -> str:
    given = "&".join(f"{place}={quote(text, safe='')}" for place, text in places.items())
    return f"{BASE}/{name}?{given}" if given else f"{BASE}/{name}"


def crawl(server: Server, start: str, kind: str = "application/trig") -> list[Page]:
    """A fragment's pages by their links."""
    app, pages, here = application(server.datasets), [], start
    while here is not None:
        pages.append(read(server.ask(here, app=app, accept=kind)))
        assert len(pages) < 200
        here = pages[-1].next
    return pages


def iri(name: str) -> str:
    return f"<{E}{name}>"


def path_of(whole: str) -> str:
    parts = urlsplit(whole)
    return parts.path + (f"?{parts.query}" if parts.query else "")
