"""Terms keep their lexical form from a file through the stores, the server and the client."""

import asyncio

import httpx
import pyoxigraph as ox
import pytest

from streamgauge.model.algebra import Var
from streamgauge.model.terms import XSD
from streamgauge.servers.fragments import QuadPattern
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.sources import open_source, solve
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.store.disk import DiskStore
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes.files import load
from tests.lexical import FORMS, N_TRIPLES, TRIPLES, P, S, typed
from tests.servers.fragments.client.fakes import Clock
from tests.servers.fragments.pages.served import BASE, SYNTAX, Server, address, read

QUADS = {(*triple, "") for triple in TRIPLES}


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path):
    made = MemoryStore() if request.param == "memory" else DiskStore(tmp_path / "store")
    yield made
    made.close()


def loaded(store, tmp_path) -> Server:
    (tmp_path / "data.nt").write_text(N_TRIPLES)
    assert load(tmp_path / "data.nt", store, Style()) == len(TRIPLES)
    server = Server()
    server.datasets.append(DataSet("data", store, Style(), lambda: server.now, page_size=100))
    return server


@pytest.mark.parametrize("ending", ["nt", "ttl", "nq", "trig", "rdf", "jsonld"])
def test_a_file_of_every_syntax_is_kept_as_it_is(tmp_path, ending):
    quads = list(ox.parse(N_TRIPLES, format=ox.RdfFormat.N_TRIPLES))
    (tmp_path / f"data.{ending}").write_bytes(ox.serialize(quads, format=ox.RdfFormat.from_extension(ending)))
    store = MemoryStore()
    load(tmp_path / f"data.{ending}", store, Style())
    assert set(store.page((None, None, None, None), 0, 100)) == QUADS


def test_a_disk_store_is_the_same_when_it_is_opened_again(tmp_path):
    store = DiskStore(tmp_path / "store")
    store.change([], [(quad, None) for quad in QUADS])
    store.close()
    again = DiskStore(tmp_path / "store")
    assert set(again.page((S, P, None, None), 0, 100)) == QUADS
    assert again.count((S, P, typed("042", "integer"), None)) == 1
    again.close()


@pytest.mark.parametrize("kind", SYNTAX)
def test_every_syntax_that_is_served(store, tmp_path, kind):
    page = read(loaded(store, tmp_path).ask(address("data", subject=S), accept=kind))
    assert {quad[:3] for quad in page.quads if quad[1] == P} == set(TRIPLES)
    assert page.total == len(TRIPLES)


def test_an_object_asked_for_is_that_term_alone(store, tmp_path):
    server = loaded(store, tmp_path)
    app = application(server.datasets)
    for term in FORMS:
        bare = term.replace("^^<", "^^").removesuffix(">")
        for text in (term, bare):
            page = read(server.ask(address("data", object=text), app=app, accept="application/trig"))
            assert [quad[2] for quad in page.data] == [term], text
            assert page.total == 1


def test_bindings_are_terms(store, tmp_path):
    server = loaded(store, tmp_path)
    asked = address("data", object="?o", values=f"(?o) {{ ({typed('042', 'integer')}) ({typed('1.5', 'decimal')}) }}")
    page = read(server.ask(asked, accept="application/trig"))
    assert {quad[2] for quad in page.data} == {typed("042", "integer"), typed("1.5", "decimal")}


def test_the_client_has_the_terms_that_the_server_has(store, tmp_path):
    server = loaded(store, tmp_path)
    result, one = asyncio.run(_fetched(server, (None, typed("042", "integer"))))
    assert {row[Var("o")] for row in result} == set(FORMS)
    assert len(result) == len(TRIPLES)
    assert one == [{}]


async def _fetched(server, objects):
    clock = Clock()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application(server.datasets)), base_url=BASE) as client:
        web = CachingHttpClient(client, clock, clock.sleep)
        source = await open_source(f"{BASE}/data", web)
        return [list((await solve([QuadPattern(S, P, item or Var("o"))], [source], web)).rows) for item in objects]


def test_writes_are_of_terms():
    server = Server()
    made = server.dataset(
        "data", [((S, P, typed("42", "integer"), ""), None), ((S, P, typed("042", "integer"), ""), None)]
    )
    made.change([(S, P, typed("42", "integer"), "")], [])
    page = read(server.ask(address("data"), accept="application/trig"))
    assert [quad[2] for quad in page.data] == [f'"042"^^<{XSD}integer>']
