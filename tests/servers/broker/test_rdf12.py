"""Terms of RDF 1.2 through the broker: what is published is told, kept in the journal, and taken back; drawn."""

from hypothesis import given

from streamgauge.model.terms import Triple, blank_nodes, is_triple, triple_parts, with_blank_nodes
from streamgauge.servers.broker.limits import Limits, read_graph
from streamgauge.servers.broker.sqlite import SqliteJournal
from tests.examples import examples
from tests.rdf12 import TRIPLES
from tests.servers.broker.world import broker

ALL = "SELECT ?s ?p ?o { ?s ?p ?o }"
PARTS = "SELECT ?s ?a ?b ?c { ?s ?p <<( ?a ?b ?c )>> }"
COPIES = "CONSTRUCT { ?o <urn:of> ?s . ?s <urn:has> ?o . ?s ?o <urn:x> } { ?s ?p ?o }"
ANNOTATED = "CONSTRUCT { ?s <urn:has> ?o ~ ?s {| <urn:of> ?o |} } { ?s ?p ?o }"
REIFIES = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"


def without_blanks(triples: tuple[Triple, ...]) -> tuple[Triple, ...]:
    """Triples that can be deleted by their terms."""

    def name(blank):
        return f"<urn:blank:{blank[2:]}>"

    return tuple(dict.fromkeys((with_blank_nodes(s, name), p, with_blank_nodes(o, name)) for s, p, o in triples))


def copies(triples):
    for s, _, o in triples:
        if o.startswith("<") and not is_triple(o):
            yield o, "<urn:of>", s
            yield s, o, "<urn:x>"
        yield s, "<urn:has>", o


def annotated(triples):
    for s, _, o in triples:
        yield from ((s, "<urn:has>", o), (s, REIFIES, f"<<( {s} <urn:has> {o} )>>"), (s, "<urn:of>", o))


@given(TRIPLES)
@examples(25, 1_000)
def test_what_is_published_is_told_kept_and_taken_back(tmp_path_factory, triples):
    path = tmp_path_factory.mktemp("journal") / "journal"
    graph = without_blanks(triples)
    text = 'VERSION "1.2"\n' + "".join(f"{s} {p} {o} .\n" for s, p, o in graph)
    wanted = {
        ALL: set(graph),
        PARTS: {(s, *triple_parts(o)) for s, _, o in graph if is_triple(o)},
        COPIES: set(copies(graph)),
        ANNOTATED: set(annotated(graph)),
    }
    made = broker(journal=SqliteJournal(path))
    heard = {}
    for number, query in enumerate(wanted):
        made.create_channel(f"c{number}", query)
        heard[query] = made.subscribe(f"c{number}", "me", lambda: None)
    published = read_graph(text.encode(), "text/turtle; version=1.2", Limits())
    assert set(published) == set(graph)
    made.publish(published)
    for query, subscription in heard.items():
        assert {row for notification in subscription.take() for row in notification.added} == wanted[query]
    made.close()
    again = broker(journal=SqliteJournal(path))
    for number, query in enumerate(wanted):
        assert set(again.rows(f"c{number}")[1]) == wanted[query]
    again.delete(published)
    assert [set(again.rows(f"c{number}")[1]) for number in range(len(wanted))] == [set()] * len(wanted)
    again.close()


def test_blank_nodes_of_a_triple_term_are_those_beside_them():
    graph = read_graph(b"_:x <urn:p> <<( _:x <urn:p> [] )>> . _:x <urn:q> _:y .", "text/turtle", Limits())
    (told, *_), (_, _, other) = graph
    inside = blank_nodes(graph[0][2])
    assert inside[0] == told == graph[1][0]
    assert len({*inside, other}) == 3
