"""Every MUST and SHOULD of Triple and Quad Pattern Fragments, on served pages; and what clients trip over."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.servers.fragments.pages import FragmentShape
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.pages.metadata import Layout, page_triples
from tests.servers.fragments.pages.served import (
    BASE,
    FOAF,
    HYDRA,
    RDF,
    SD,
    SYNTAX,
    VOID,
    Server,
    address,
    crawl,
    iri,
    read,
)

WITH_GRAPHS = ["application/trig", "application/n-quads", "application/ld+json"]
COUNT = 25


def server(shape: FragmentShape = FragmentShape.QUADS, page_size: int = 10) -> Server:
    """25 triples in the default graph and as many in three others."""
    server = Server()
    quads = [(iri(f"s{n % 5}"), iri(f"p{n % 3}"), f'"{n}"', "") for n in range(COUNT)]
    quads += [(iri(f"s{n % 5}"), iri(f"p{n % 3}"), iri(f"s{n % 4}"), iri(f"g{n % 3}")) for n in range(COUNT)]
    server.dataset("data", [(quad, None) for quad in quads], shape=shape, page_size=page_size)
    return server


@pytest.mark.parametrize("kind", WITH_GRAPHS)
def test_metadata_is_in_a_graph_of_its_own_that_says_its_topic(kind):
    page = read(server().ask(address("data", predicate="http://example.org/p1"), accept=kind))
    assert page.graph not in ("", iri("g0"), iri("g1"), iri("g2"))
    assert page.values(page.graph, f"{FOAF}primaryTopic") == [page.fragment]
    assert page.fragment == f"<{page.address}>"
    assert {quad[1] for quad in page.data} == {iri("p1")}


@pytest.mark.parametrize("kind", SYNTAX)
def test_the_count_is_of_the_fragment_and_of_the_page(kind):
    page = read(server().ask(address("data") + "?page=2", accept=kind))
    total = [f'"{2 * COUNT}"^^<http://www.w3.org/2001/XMLSchema#integer>']
    for subject in (f"<{BASE}/data>", f"<{BASE}/data?page=2>"):
        assert page.values(subject, f"{VOID}triples") == total
        assert page.values(subject, f"{HYDRA}totalItems") == total


@pytest.mark.parametrize("kind", SYNTAX)
def test_form(kind):
    page = read(server().ask(address("data", subject="?s"), accept=kind))
    (template, mappings), *others = forms(page)
    assert template == f'"{BASE}/data{{?subject,predicate,object,graph}}"'
    assert mappings == {
        '"subject"': f"<{RDF}subject>",
        '"predicate"': f"<{RDF}predicate>",
        '"object"': f"<{RDF}object>",
        '"graph"': f"<{SD}graph>",
    }
    assert [set(m) - set(mappings) for _, m in others] == [{'"values"', '"limit"'}]


def test_form_of_triples():
    page = read(server(FragmentShape.TRIPLES).ask(address("data"), accept="application/trig"))
    assert [set(m) for _, m in forms(page)] == [
        {'"subject"', '"predicate"', '"object"'},
        {'"subject"', '"predicate"', '"object"', '"values"', '"limit"'},
    ]
    assert page.values(f"<{BASE}/data#dataset>", f"{SD}defaultGraph") == []
    assert page.total == COUNT


def forms(page):
    """Each form's template, and its variables with their properties; fewest variables first."""
    dataset = f"<{BASE}/data#dataset>"
    assert page.fragment in page.values(dataset, f"{VOID}subset")
    results = []
    for form in page.values(dataset, f"{HYDRA}search"):
        assert page.values(form, f"{HYDRA}variableRepresentation") == [f"<{HYDRA}ExplicitRepresentation>"]
        (template,) = page.values(form, f"{HYDRA}template")
        mappings = page.values(form, f"{HYDRA}mapping")
        pairs = [
            (page.values(mapping, f"{HYDRA}variable"), page.values(mapping, f"{HYDRA}property")) for mapping in mappings
        ]
        results.append((template, {variable: named for ((variable,), (named,)) in pairs}))
    return sorted(results, key=lambda pair: len(pair[1]))


@pytest.mark.parametrize("kind", WITH_GRAPHS)
@pytest.mark.parametrize("wish", ["", "?page=1", "?page=3", "?predicate=http%3A%2F%2Fexample.org%2Fp1&page=2"])
def test_what_clients_need_the_order_for(kind, wish):
    """The default graph has a name; the last subset that names the page is of the fragment, the topic of its graph."""
    page = read(server().ask(f"{BASE}/data{wish}", accept=kind))
    assert page.values(f"<{BASE}/data#dataset>", f"{SD}defaultGraph") == ["<urn:ldf:defaultGraph>"]
    last = [s for s, p, o, _ in page.metadata if p == f"<{VOID}subset>" and o == f"<{page.address}>"][-1]
    assert last == page.fragment == page.values(page.graph, f"{FOAF}primaryTopic")[0]
    assert f"<{page.address}>" in page.values(page.fragment, f"{HYDRA}view")


@pytest.mark.parametrize("kind", SYNTAX)
def test_links_between_pages(kind):
    pages = crawl(server(), address("data"), kind)
    assert len(pages) == 5
    for number, page in enumerate(pages, 1):
        here = f"<{page.address}>"
        assert page.values(here, f"{HYDRA}first") == [f"<{BASE}/data?page=1>"]
        before = [f"<{BASE}/data?page={number - 1}>"] if number > 1 else []
        assert page.values(here, f"{HYDRA}previous") == before
        assert f"<{HYDRA}PartialCollectionView>" in page.values(here, f"{RDF}type")


@pytest.mark.slow
@pytest.mark.parametrize("kind", SYNTAX)
@pytest.mark.parametrize("limit", [1, 3, 7, 40])
def test_pages_have_as_many_quads_as_asked(kind, limit):
    made = server(page_size=5)
    usual, asked = crawl(made, address("data"), kind), crawl(made, f"{address('data')}?limit={limit}", kind)
    assert len(asked) == -(-usual[0].total // limit)
    assert sorted(quad for page in asked for quad in page.data) == sorted(quad for page in usual for quad in page.data)
    for page in asked:
        assert page.values(f"<{page.address}>", f"{HYDRA}itemsPerPage")[0].startswith(f'"{limit}"')
        assert page.total == usual[0].total
    form = f"<{BASE}/data#bindings>"
    assert [o.split('"')[1] for o in asked[0].values(form, "urn:streamgauge:maximumLimit")] == ["50"]


@pytest.mark.parametrize("kind", SYNTAX)
def test_the_second_form_stands_where_clients_begin_and_not_on_pages_of_a_pattern(kind):
    made = server()
    whole, part = (read(made.ask(address("data", **item), accept=kind)) for item in ({}, {"subject": "urn:x:s"}))
    assert [len(forms(page)) for page in (whole, part)] == [2, 1]
    assert forms(whole)[0] == forms(part)[0]
    changes = [page.values(f"<{BASE}/data#dataset>", "urn:streamgauge:changes") for page in (whole, part)]
    assert (len(changes[0]), changes[1]) == (1, [])


@pytest.mark.parametrize("shape", list(FragmentShape))
def test_a_page_says_each_triple_of_its_metadata_once(shape):
    for options in product((True, False), repeat=4):
        said = page_triples(Layout(BASE, "data", shape, 10, 50, *options))
        assert len(said) == len(set(said))


@pytest.mark.parametrize("total", [0, 1, 9, 10, 11, 20])
def test_no_empty_page_is_linked(total):
    server = Server()
    server.dataset("data", [((iri(f"s{n}"), iri("p"), '"o"', ""), None) for n in range(total)], page_size=10)
    pages = crawl(server, address("data"))
    assert [len(page.data) for page in pages] == [min(10, total - at) for at in range(0, max(total, 1), 10)]
    assert [page.total for page in pages] == [total] * len(pages)


def test_a_page_behind_the_last_leads_back_to_it():
    page = read(server().ask(address("data") + "?page=70", accept="application/trig"))
    assert page.data == []
    assert page.total == 2 * COUNT
    assert page.values(f"<{page.address}>", f"{HYDRA}previous") == [f"<{BASE}/data?page=5>"]


@pytest.mark.parametrize("kind", ["text/turtle", "application/n-triples"])
def test_graphs_are_left_out_where_a_format_has_none(kind):
    page = read(
        server().ask(address("data", graph="http://example.org/g1", subject="http://example.org/s1"), accept=kind)
    )
    assert {quad[3] for quad in page.quads} == {""}
    assert (iri("s1"), iri("p1"), iri("s1"), "") in page.quads


def test_blank_nodes_have_names_that_can_be_asked_for():
    server = Server()
    quads = [("_:b1", iri("p"), "_:b2", "_:g"), (iri("s"), iri("p"), '"_:b1"', "")]
    server.dataset("data", [(quad, None) for quad in quads])
    page = read(server.ask(address("data"), accept="application/n-quads"))
    named = f"{BASE}/.well-known/genid/"
    assert set(page.data) == {(f"<{named}b1>", iri("p"), f"<{named}b2>", f"<{named}g>"), quads[1]}
    again = read(server.ask(address("data", subject=f"{named}b1", graph=f"{named}g"), accept="application/n-quads"))
    assert again.total == 1


TERM = f"<<( {iri('s')} {iri('p')} _:b1 )>>"


@pytest.mark.parametrize("kind", ["application/trig", "application/n-quads", "text/turtle", "application/n-triples"])
def test_triple_terms_where_a_format_has_them(kind):
    server = Server()
    server.dataset("data", [((iri("r"), f"<{RDF}reifies>", TERM, ""), None)])
    response = server.ask(address("data"), accept=kind)
    assert "version=1.2" in response.headers["content-type"]
    named = TERM.replace("_:b1", f"<{BASE}/.well-known/genid/b1>")
    assert (iri("r"), f"<{RDF}reifies>", named, "") in read(response).quads


def test_triple_terms_are_not_had_as_json_ld():
    server = Server()
    server.dataset("data", [((iri("r"), f"<{RDF}reifies>", TERM, ""), None), ((iri("s"), iri("p"), '"o"', ""), None)])
    refused = server.ask(address("data"), accept="application/ld+json")
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (406, "*")
    assert "application/trig" in refused.json()["error"]
    others = server.ask(address("data"), accept="application/ld+json, text/turtle;q=0.1")
    assert others.headers["content-type"].startswith("text/turtle")
    assert server.ask(address("data", subject="http://example.org/s"), accept="application/ld+json").status_code == 200


TERMS = st.sampled_from([iri("a"), iri("b"), iri("c")])
QUADS = st.lists(st.tuples(TERMS, TERMS, st.one_of(TERMS, st.just('"a"'))), max_size=25).flatmap(
    lambda triples: st.tuples(
        *(st.tuples(st.just(triple), st.sampled_from(["", iri("a"), iri("g")])) for triple in triples)
    )
)
NODES = st.sampled_from(["", "?x", "?y", "http://example.org/a", "http://example.org/b"])
ROWS = st.lists(
    st.tuples(st.sampled_from([iri("a"), iri("b"), '"a"', "UNDEF"]), st.sampled_from([iri("a"), iri("c"), "UNDEF"])),
    max_size=5,
)


@given(
    drawn=QUADS, places=st.tuples(NODES, NODES, NODES, NODES), rows=st.one_of(st.none(), ROWS), size=st.integers(1, 7)
)
def test_the_pages_of_a_fragment_hold_what_it_selects_once(drawn, places, rows, size):
    quads = list(dict.fromkeys((*triple, graph) for triple, graph in drawn))
    server = Server()
    server.dataset("data", [(quad, None) for quad in quads], page_size=size)
    given_ = dict(zip(("subject", "predicate", "object", "graph"), places, strict=True))
    if rows is not None:
        given_["values"] = f"(?x ?y) {{ {' '.join(f'({x} {y})' for x, y in rows)} }}"
    expected = [quad for quad in quads if any(fits(quad, places, row) for row in ([None] if rows is None else rows))]
    pages = crawl(server, address("data", **given_))
    results = [quad for page in pages for quad in page.data]
    assert sorted(results) == sorted(expected)
    assert {page.total for page in pages} == {len(expected)}


def fits(quad, places, row):
    """Whether a quad matches a pattern under a row: every variable is one term."""
    bound = {name: value for name, value in zip(("?x", "?y"), row or (), strict=False) if value != "UNDEF"}
    for term, node in zip(quad, places, strict=True):
        wanted = bound.setdefault(node, term) if node.startswith("?") else f"<{node}>" if node else term
        if wanted != term:
            return False
    return True


def test_an_application_needs_a_data_set():
    with pytest.raises(ValueError, match="no data set"):
        application([])
