"""What pyoxigraph takes otherwise than SPARQL 1.1 defines it: restated, so that the definition answers as defined."""

import pyoxigraph as ox
import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Counting
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.semantics.content import Arrival, Contents
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.restated import restated
from streamgauge.wire.canonical import parse_term
from tests.notation import triples


def answer(text: str, content: str) -> list[tuple[str | None, ...]]:
    query = ContinuousQuery(parse_sparql(f"PREFIX : <urn:> {text}"), (StreamWindow("urn:s", Window(1, 1)),))
    held: Contents = ((Arrival("urn:s", 0, None, triples(content)),),)
    return sorted(Snapshot(query).rows(held), key=str)


def by_pyoxigraph(text: str, content: str) -> list[tuple[str | None, ...]]:
    """pyoxigraph's answer to the query as it is restated."""
    store = ox.Store()
    store.extend(ox.Quad(*map(parse_term, triple)) for triple in triples(content))
    found = store.query(sparql(restated(parse_sparql(f"PREFIX : <urn:> {text}"))))
    if isinstance(found, ox.QueryBoolean):
        return [(f'"{str(bool(found)).lower()}"^^<http://www.w3.org/2001/XMLSchema#boolean>',)]
    return sorted((tuple(map(str, row)) for row in found), key=str)


ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'


@pytest.mark.parametrize(
    ("text", "content", "rows"),
    [
        ("SELECT ?o { ?s (:p|:q) ?o }", "a p b. a q b", [("<urn:b>",), ("<urn:b>",)]),
        ("SELECT ?o { ?s (:p|:q)/:r ?o }", "a p b. a q b. b r c", [("<urn:c>",), ("<urn:c>",)]),
        ("SELECT ?o { ?s ^(:p|:q) ?o }", "a p b. a q b", [("<urn:a>",), ("<urn:a>",)]),
        ("SELECT ?o { ?s (:p|:q)+ ?o }", "a p b. a q b", [("<urn:b>",)]),
        ("SELECT ?o { :a !(:r|^:r) ?o }", "a p a", [("<urn:a>",), ("<urn:a>",)]),
        ("SELECT (COUNT(?o + 1) AS ?n) { ?s ?p ?o }", "a p 1. a q b", [(ONE,)]),
        ("SELECT REDUCED ?s { ?s ?p ?o }", "a p b. a q b", [("<urn:a>",), ("<urn:a>",)]),
        ("ASK { ?s ?p ?o FILTER EXISTS { ?s (:p|:q)/:r ?z } }", "a p b. b r c", None),
        (
            "SELECT ?o { ?s :p ?o { ?s :r ?z FILTER EXISTS { ?o :q ?k } } }",
            "a p x. b p y. x q k. a r z. b r z",
            [("<urn:x>",), ("<urn:y>",)],
        ),
        (
            "SELECT ?o { ?s :p ?o { ?s :r ?z FILTER NOT EXISTS { ?o :q ?k } } UNION { ?s :r ?z } }",
            "a p x. b p y. x q k. a r z. b r z",
            [("<urn:x>",), ("<urn:y>",)],
        ),
        (
            "SELECT ?s { ?s :p ?o FILTER EXISTS { ?s :r ?z FILTER NOT EXISTS { ?o :q ?z } } }",
            "a p x. b p y. x q z. a r z. b r z",
            [("<urn:b>",)],
        ),
    ],
)
def test_as_sparql_defines_it(text: str, content: str, rows: list[tuple[str, ...]] | None) -> None:
    found = answer(text, content)
    assert found == rows if rows is not None else found[0][0].startswith('"true"')
    assert by_pyoxigraph(text, content) == found


def test_terms_that_exists_puts_for_variables_are_not_shared_by_the_sides_of_minus() -> None:
    assert answer("SELECT * { ?s ?p ?o FILTER NOT EXISTS { ?x ?y ?z MINUS { ?s ?p ?o } } }", "a p b") == []


def test_a_blank_node_joins_over_a_bag() -> None:
    form = parse_sparql("SELECT ?x { ?x <urn:p> [ <urn:q> ?y ] }")
    query = ContinuousQuery(form, (StreamWindow("urn:s", Window(1, 1)),))
    held: Contents = ((Arrival("urn:s", 0, None, triples("a p b. a p b. b q c")),),)
    assert Snapshot(query, Counting.BAG).rows(held) == (("<urn:a>",), ("<urn:a>",))
