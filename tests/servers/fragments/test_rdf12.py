"""Terms of RDF 1.2 from a file through the stores, the server and the client; drawn."""

import asyncio

import httpx
import pytest
from hypothesis import given

from streamgauge.model.algebra import Var
from streamgauge.model.terms import Term, Triple, is_triple, lexical, with_blank_nodes
from streamgauge.servers.fragments import QuadPattern
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.sources import open_source, solve
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.pages.terms import read_bindings
from streamgauge.servers.fragments.store.disk import DiskStore
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes.files import load
from tests.examples import examples
from tests.rdf12 import OBJECTS, TRIPLES
from tests.servers.fragments.client.fakes import Clock
from tests.servers.fragments.pages.served import BASE, SYNTAX, Server, address, read

TRIPLE_LESS = "application/ld+json"


def named(term: Term) -> Term:
    """A term with IRIs for its blank nodes, which pages have too."""
    return with_blank_nodes(term, lambda blank: f"<{BASE}/.well-known/genid/{blank[2:]}>")


def form_text(term: Term) -> str:
    """A term as the specification of Triple Pattern Fragments writes it: the text of a literal has no escapes."""
    return f'"{lexical(term)}"{term[term.rindex(chr(34)) + 1 :]}' if term.startswith('"') else term


def without_blanks(triples: tuple[Triple, ...]) -> set[Triple]:
    return {(named(s), p, named(o)) for s, p, o in triples}


def served(store, triples) -> Server:
    store.change([], [((*triple, ""), None) for triple in triples])
    server = Server()
    server.datasets.append(DataSet("data", store, Style(), lambda: server.now, page_size=100))
    return server


@given(TRIPLES)
@examples(25, 1_000)
def test_a_file_is_kept_in_every_store_as_it_is(tmp_path_factory, triples):
    folder = tmp_path_factory.mktemp("store")
    (folder / "data.nt").write_text("".join(f"{s} {p} {o} .\n" for s, p, o in sorted(without_blanks(triples))))
    store = MemoryStore()
    load(folder / "data.nt", store, Style())
    disk = DiskStore(folder / "store")
    disk.change([], [(quad, None) for quad in store.page((None,) * 4, 0, 100)])
    disk.close()
    again = DiskStore(folder / "store")
    for kept in (store, again):
        assert {quad[:3] for quad in kept.page((None,) * 4, 0, 100)} == without_blanks(triples)
        for s, p, o in without_blanks(triples):
            assert kept.count((s, p, o, None)) == 1
    again.close()


@pytest.mark.parametrize("kind", SYNTAX)
@given(TRIPLES)
@examples(25, 1_000)
def test_every_syntax_that_is_served(kind, triples):
    response = served(MemoryStore(), triples).ask(address("data"), accept=kind)
    if kind == TRIPLE_LESS and any(is_triple(item) for _, _, item in triples):
        assert (response.status_code, "triple terms" in response.text) == (406, True)
        return
    page = read(response)
    assert without_blanks(triples) <= {quad[:3] for quad in page.quads}
    assert page.total == len(triples)


@given(OBJECTS)
@examples(50, 2_000)
def test_an_object_that_is_asked_for_is_found_by_form_bindings_and_client(item):
    server = served(MemoryStore(), [("<urn:s>", "<urn:p>", item), ("<urn:s>", "<urn:p>", '"other"')])
    app = application(server.datasets)
    page = read(server.ask(address("data", object=form_text(named(item))), app=app, accept="application/trig"))
    assert {quad[2] for quad in page.data} == {named(item)}
    assert read_bindings(f"(?o) {{ ({named(item)}) }}") == [{Var("o"): named(item)}]
    asked = address("data", object="?o", values=f"(?o) {{ (<urn:none>) ({named(item)}) }}")
    assert {quad[2] for quad in read(server.ask(asked, app=app, accept="application/trig")).data} == {named(item)}
    assert asyncio.run(_joined(server, named(item))) == [named(item)]


async def _joined(server: Server, item: Term) -> list[Term]:
    """The object as a client finds it by its form, and then by all objects of the subject."""
    clock = Clock()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application(server.datasets)), base_url=BASE) as client:
        web = CachingHttpClient(client, clock, clock.sleep)
        source = await open_source(f"{BASE}/data", web)
        patterns = [QuadPattern(Var("s"), "<urn:p>", item), QuadPattern(Var("s"), "<urn:p>", Var("o"))]
        rows = [row for row in (await solve(patterns, [source], web)).rows if row[Var("o")] == item]
        return [row[Var("o")] for row in rows]
