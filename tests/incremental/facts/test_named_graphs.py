"""GRAPH over named graphs that come and go: after each step what evaluating again over the data set gives."""

from random import Random

import pytest

from streamgauge.incremental.budget import TooMuchError
from streamgauge.incremental.drivers.landmark import Landmark
from streamgauge.incremental.rewrite import UnsupportedError
from streamgauge.model.algebra import Slice
from streamgauge.query import parse_sparql
from streamgauge.sparql.algebra import answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from tests.examples import proving

STEPS = 200 if proving() else 80
GRAPHS = [f"<urn:g{number}>" for number in range(3)]
NODES = [f"<urn:n{number}>" for number in range(3)]
VALUES = [f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>' for number in range(3)]

ANSWERED = [
    "SELECT * { GRAPH <urn:g1> { ?s <urn:p> ?v } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v } }",
    "SELECT ?s { GRAPH ?g { ?s <urn:p> ?v } }",
    "SELECT * { ?s <urn:p> ?v . GRAPH ?g { ?s <urn:q> ?w } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v . ?s <urn:q> ?w } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v . ?t <urn:q> ?w } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v } GRAPH ?h { ?s <urn:q> ?w } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v } GRAPH ?g { ?t <urn:q> ?w } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v OPTIONAL { ?s <urn:q> ?w } } }",
    "SELECT * { GRAPH ?g { { ?s <urn:p> ?v } UNION { ?s <urn:q> ?v } } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v FILTER(?v > 0) } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v } FILTER(?g != <urn:g1>) }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v MINUS { ?s <urn:q> ?w } } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v MINUS { ?t <urn:q> ?w } } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v } MINUS { GRAPH ?g { ?s <urn:q> ?w } } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v FILTER EXISTS { ?s <urn:q> ?w } } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v } FILTER NOT EXISTS { GRAPH ?g { ?s <urn:q> ?w } } }",
    "SELECT * { ?s <urn:p> ?v FILTER NOT EXISTS { GRAPH ?g { ?s <urn:q> ?w } } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v BIND(?v + 1 AS ?w) } }",
    "SELECT * { GRAPH ?g { VALUES ?s { <urn:n0> <urn:n1> } ?s <urn:p> ?v } }",
    "SELECT * { GRAPH ?g { VALUES ?s { <urn:n0> <urn:n1> } } }",
    "SELECT * { GRAPH ?g { } }",
    "SELECT * { GRAPH ?g { ?g <urn:p> ?v } }",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v FILTER(!BOUND(?g)) } }",
    "SELECT * { GRAPH <urn:g1> { } }",
    "SELECT * { GRAPH <urn:g1> { VALUES ?v { 1 2 } } }",
    "SELECT * { GRAPH <urn:g1> { ?s <urn:p>* ?o } }",
    "SELECT * { GRAPH <urn:g1> { <urn:n0> <urn:p>* ?o } }",
    "SELECT * { GRAPH <urn:g1> { SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?v } } }",
    "SELECT * { GRAPH <urn:g1> { ?s <urn:p> ?v OPTIONAL { GRAPH <urn:g2> { ?s <urn:q> ?w } } } }",
    "SELECT * { GRAPH ?g { GRAPH <urn:g2> { ?s <urn:p> ?v } } }",
    "SELECT * { GRAPH ?g { ?s <urn:p>/<urn:q> ?v } }",
    "SELECT * { GRAPH ?g { ?s (<urn:p>|<urn:q>) ?v } }",
    "SELECT * { GRAPH ?g { ?s ?p ?v } }",
    "SELECT * { GRAPH <urn:g0> { ?s a ?c } GRAPH ?g { ?s a <urn:n1> } }",
    "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s <urn:p> ?v } } GROUP BY ?g",
    "SELECT * { GRAPH ?g { SELECT ?s (COUNT(*) AS ?n) { ?s <urn:p> ?v } GROUP BY ?s } }",
    "SELECT * { GRAPH ?g { SELECT DISTINCT ?s { ?s <urn:p> ?v } } }",
    "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?v } }",
    "SELECT ?g ?v { GRAPH ?g { ?s <urn:p> ?v } } ORDER BY DESC(?v) ?g LIMIT 3 OFFSET 1",
    "ASK { GRAPH ?g { ?s <urn:p> 1 } }",
    "CONSTRUCT { ?s <urn:in> ?g } WHERE { GRAPH ?g { ?s <urn:p> ?v } }",
    "SELECT * { ?s <urn:p> ?v }",
]

REFUSED = {
    "SELECT * { GRAPH ?g { ?s <urn:p>* ?v } }": "name the graph",
    "SELECT * { GRAPH ?g { ?s (<urn:p>/<urn:q>+) ?v } }": "name the graph",
    "SELECT * { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?v } } }": "group by it outside",
    "SELECT * { GRAPH ?g { ?s <urn:p> ?v OPTIONAL { ?s <urn:q> ?g } } }": "use another variable",
    "SELECT * { GRAPH ?g { SELECT ?s { ?s <urn:p> ?v } LIMIT 1 } }": "LIMIT",
}


def changes(random):
    """Facts that come to graphs, ``None`` for the default graph, and that go; what is held then."""
    contents = {}
    for _ in range(STEPS):
        drawn = [
            (random.choice([None, *GRAPHS]), (
                random.choice([*NODES, *GRAPHS[:2]]), *random.choice([
                    ("<urn:p>", random.choice([*VALUES, *NODES])), ("<urn:q>", random.choice([*VALUES, *NODES])),
                    ("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", random.choice(NODES)),
                ])))
            for _ in range(random.randint(0, 5))
        ]  # fmt: skip
        known = [(name, triple) for name, triples in contents.items() for triple in sorted(triples)]
        gone = random.sample(known, min(len(known), random.choice((0, 1, 2, 2, 3))))
        if random.random() < 0.05 and known:
            empty = random.choice(known)[0]
            gone = [entry for entry in known if entry[0] == empty]
        gone += drawn[:1]
        for name, triple in gone:
            contents.get(name, set()).discard(triple)
        for name, triple in drawn:
            contents.setdefault(name, set()).add(triple)
        contents = {name: triples for name, triples in contents.items() if triples}
        yield drawn, gone, contents


def dataset(held):
    return Dataset(
        IndexedGraph(held.get(None, ())),
        {name: IndexedGraph(triples) for name, triples in held.items() if name is not None},
    )


def parted(facts):
    plain = [triple for name, triple in facts if name is None]
    return plain, [fact for fact in facts if fact[0] is not None]


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["from the start", "later"])
@pytest.mark.parametrize("part", range(5))
def test_each_answer_is_that_over_the_data_set(part, late):
    queries = ANSWERED[part::5]
    forms = {text: parse_sparql(text) for text in queries}
    landmark, standing, shown = Landmark(), {}, {}
    for number, (came, gone, held) in enumerate(changes(Random(part)), 1):
        (plain, named), (plain_gone, named_gone) = parted(came), parted(gone)
        result = landmark.change(plain, plain_gone, (named, named_gone))
        for item, (added, removed) in result:
            text = next(text for text, one in standing.items() if one is item)
            assert shown[text].issuperset(removed)
            assert shown[text].isdisjoint(added)
            shown[text] = (shown[text] - set(removed)) | set(added)
        for text in queries if number == (STEPS // 2 if late else 1) else ():
            standing[text] = landmark.ask(forms[text])
            shown[text] = {row for row, count in standing[text].kept.solutions().items() if count}
        for text, rows in shown.items():
            assert rows == expected(forms[text], held), (text, held)


def expected(form, held):
    if isinstance(form.pattern, Slice):
        return cut(form, held)
    return set(answer(form, dataset(held)))


def cut(form, held):
    """The only query here with LIMIT: largest value first, then by graph; the others stand by their terms."""
    rows = answer(parse_sparql("SELECT ?g ?v { GRAPH ?g { ?s <urn:p> ?v } }"), dataset(held))
    numbers = sorted((row for row in rows if row[1] in VALUES), key=lambda row: (-int(row[1][1]), row[0]))
    nodes = sorted((row for row in rows if row[1] not in VALUES), key=lambda row: row[0])
    nodes.sort(key=lambda row: row[1], reverse=True)
    return set([*numbers, *nodes][form.pattern.offset :][: form.pattern.limit])


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_answered_is_refused_by_name(text):
    with pytest.raises(UnsupportedError, match=REFUSED[text]):
        Landmark().ask(parse_sparql(text))


def test_nothing_is_told_when_a_query_has_ended():
    landmark = Landmark()
    standing = landmark.ask(parse_sparql("SELECT * { GRAPH ?g { ?s <urn:p> ?v } }"))
    fact = ("<urn:g>", ("<urn:s>", "<urn:p>", '"1"'))
    assert [item for _, item in landmark.change((), (), ([fact], []))] == [((("<urn:g>", "<urn:s>", '"1"'),), ())]
    standing.end()
    assert list(landmark.change((), (), ([], [fact]))) == []
    assert landmark.graphs.explicit == 0
    assert landmark.graphs.names == ()
    assert landmark.graphs._graphs == {}


@pytest.mark.parametrize("graph", ["<urn:g0>", "?g"])
def test_products_in_graphs_are_bounded(graph):
    cross = parse_sparql(f"SELECT * {{ GRAPH {graph} {{ ?a <urn:p> ?x . ?b <urn:q> ?y . ?c <urn:r> ?z }} }}")
    landmark = Landmark()
    landmark.limit(50_000, 1_000)
    standing = landmark.ask(cross)
    facts = [
        ("<urn:g0>", (f"<urn:s{number}>", predicate, f'"{number}"'))
        for number in range(100) for predicate in ("<urn:p>", "<urn:q>", "<urn:r>")
    ]  # fmt: skip
    list(landmark.change((), (), (facts, [])))
    assert list(landmark.failed()) == [standing]
    with pytest.raises(TooMuchError):
        landmark.ask(cross)
    assert landmark.ask(parse_sparql("SELECT * { GRAPH ?g { ?s <urn:p> ?v } }")).kept.solutions()
