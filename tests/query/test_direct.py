"""Queries that are read straight from tokens have the algebra that rdflib's tree has, and those of most people are."""

from random import Random

import pytest
from hypothesis import given

from streamgauge.query import parse_sparql
from streamgauge.query.direct import read_direct
from streamgauge.query.errors import QueryError
from streamgauge.query.parser import read_tree
from streamgauge.query.printer import sparql
from streamgauge.query.prologue import read_prologue
from streamgauge.query.tokens import tokens
from tests.query.test_roundtrip import FILES, STANDING
from tests.query.texts import PREFIXES, QUERIES
from tests.sparql.draw import OPERATORS, queries
from tests.sparql.simple.drawn import drawn

HEAD = "PREFIX : <urn:t:> PREFIX foaf: <http://xmlns.com/foaf/0.1/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
COMMON = [
    "SELECT ?x { ?x a foaf:Person }",
    "SELECT * WHERE { ?x a :P ; :q ?y , 'z'@en , 5 , 1.5 , 1e3 , true . ?y ?p <urn:o> . }",
    'SELECT ?x { ?x :p "a\\n\\u0041" , """b "c" """ , "5"^^xsd:integer , "d"^^<urn:own> }',
    "SELECT DISTINCT $x { ?x :p ?y FILTER(?y > 5 && ?y <= 7 || !BOUND(?x)) ?x :q ?z }",
    "SELECT REDUCED ?x { ?x :p ?y . FILTER(?y - 1 * 2 / 3 + ?z != 4) . ?x :q ?z . }",
    "SELECT ?x { ?x :p ?y FILTER REGEX(?y, '^a', 'i') FILTER CONTAINS(LCASE(STR(?y)), 'b') }",
    "SELECT ?x { ?x :p ?y FILTER(?y IN (1, 2)) FILTER(?y NOT IN (:a, 'b')) }",
    "SELECT ?x { ?x :p ?y OPTIONAL { ?x :q ?z . FILTER(?z = ?y) OPTIONAL { ?z :r ?u } } }",
    "SELECT ?x { { ?x :p ?y } UNION { ?x :q ?y } UNION { ?y :r ?x FILTER(?x != :a) } ?x :s ?t }",
    "SELECT ?x { ?x :p ?y MINUS { ?x :q ?y } FILTER NOT EXISTS { ?x :r ?z FILTER(?z > ?y) } FILTER EXISTS { ?x :s 1 }}",
    "SELECT ?x { FILTER(!(EXISTS { ?x :r ?z }) || ?y) ?x :p ?y }",
    "SELECT ?x ?n { { ?x :p ?y } BIND(STRLEN(?y) + 1 AS ?n) ?x :q ?n }",
    "SELECT ?x { GRAPH <urn:g> { ?x :p ?y } GRAPH ?g { ?x :q ?y . ?y :r :o } }",
    "SELECT (COUNT(*) AS ?n) { ?x :p ?y }",
    "SELECT (COUNT(DISTINCT *) AS ?n) (COUNT(DISTINCT ?x) AS ?m) { ?x :p ?y }",
    "SELECT ?y (AVG(?x) AS ?a) (MAX(?x) - MIN(?x) AS ?b) (AVG(?x) AS ?c) { ?x :p ?y } GROUP BY ?y ?z "
    "HAVING (COUNT(?x) > 2) (SUM(?x) < 9) ORDER BY DESC(?a) ?y ASC(?b) LIMIT 5 OFFSET 2",
    "SELECT ?x { ?x :p ?y } OFFSET 3 LIMIT 0",
    "SELECT ?x { } GROUP BY ?x",
    "ASK { ?x :p ?y }",
    "ASK WHERE { ?x :p ?y FILTER(COALESCE(?x, ?y, 1) = IF(?x, SUBSTR(?y, 1, 2), REPLACE(?y, 'a', 'b'))) }",
    "SELECT * { { { ?x :p ?y } } }",
    "SELECT * { }",
    "select ?x where { ?x :p ?y filter isIRI(?y) filter sameTerm(?x, ?y) optional { ?x :q ?z } } order by ?x limit 1",
    "SELECT (STRBEFORE(?a, 'x') AS ?b) { ?x :p ?a FILTER LANGMATCHES(LANG(?a), '*') }",
    *(
        f"SELECT ?x {{ ?x :p ?y FILTER({name}(?y) = 1) }}"
        for name in ("ABS", "YEAR", "isBLANK", "isNumeric", "TZ", "MD5")
    ),
    *(f"SELECT ?x {{ ?x :p ?y FILTER({name}(?y, 'x')) }}" for name in ("STRSTARTS", "STRDT", "STRLANG", "STRENDS")),
]
OTHERS = [
    "SELECT ?x { ?x :p/:q ?y }",
    "SELECT ?x { ?x :p+ ?y }",
    "SELECT ?x { ?x ^:p ?y }",
    "SELECT ?x { ?x !:p ?y }",
    "SELECT ?x { ?x (:p|:q) ?y }",
    "SELECT ?x { ?x :p [ :q ?y ] }",
    "SELECT ?x { ?x :p _:b . _:b :q ?y }",
    "SELECT ?x { ?x :p (1 2) }",
    "SELECT ?x { ?x :p -5 }",
    "SELECT ?x { ?x :p ?y FILTER(?y > -5) }",
    "SELECT ?x { ?x :p ?y FILTER(?y -5 > 1) }",
    "SELECT ?x { ?x :p ?y FILTER(-?y > 1) }",
    "SELECT ?x { ?x :p ?y FILTER(?y IN ()) }",
    "SELECT ?x { ?x :p ?y FILTER(xsd:integer(?y) > 1) }",
    "SELECT ?x { ?x :p ?y FILTER(IRI(?y) = :a) }",
    "SELECT ?x { ?x :p ?y VALUES ?y { 1 2 } }",
    "SELECT ?x { ?x :p ?y } VALUES ?y { 1 2 }",
    "SELECT ?x { { SELECT ?x { ?x :p ?y } } }",
    "SELECT (GROUP_CONCAT(?x; SEPARATOR=',') AS ?n) { ?x :p ?y }",
    "SELECT ?z { ?x :p ?y } GROUP BY (STR(?x) AS ?z)",
    "SELECT ?x { ?x :p ?y } ORDER BY STR(?x)",
    "ASK { ?x :p ?y } LIMIT 1",
    "CONSTRUCT { ?x :q ?y } WHERE { ?x :p ?y }",
    "SELECT ?t { ?x :p ?y BIND(timestamp(?x, :p, ?y) AS ?t) }",
]


def both(text):
    """The algebra by either way; ``None`` for what the direct one leaves to the other."""
    found = tokens(text)
    direct = read_direct(found, read_prologue(text, found))
    return direct, read_tree(text, found, read_prologue(text, found))


@pytest.mark.parametrize("text", COMMON)
def test_what_most_people_write_is_read_directly(text):
    direct, tree = both(HEAD + text)
    assert direct == tree
    assert parse_sparql(HEAD + text) == tree


@pytest.mark.parametrize("text", OTHERS)
def test_the_rest_is_left_to_the_tree(text):
    found = tokens(HEAD + text)
    assert read_direct(found, read_prologue(HEAD + text, found)) is None
    assert parse_sparql(HEAD + text)


@pytest.mark.parametrize("text", [*QUERIES, *(FILES[name].read_text(encoding="utf-8") for name in sorted(STANDING))])
def test_a_corner_of_the_grammar(text):
    text = text if text.lstrip().startswith(("PREFIX", "#", "BASE")) else PREFIXES + text
    direct, tree = both(text)
    assert direct in (None, tree)


@given(queries(OPERATORS))
def test_a_drawn_query(form):
    direct, tree = both(sparql(form))
    assert direct in (None, tree)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.prove) for first in range(200, 20_000, 1800))]
)
def test_each_drawn_text(first):
    """20,000 texts of the simple evaluator's cases, every operator within every other."""
    for seed in range(first, first + (200 if first == 0 else 1800)):
        direct, tree = both(sparql(drawn(Random(seed)).form))
        assert direct in (None, tree), seed


@pytest.mark.parametrize("text", ["SELECT ?x { ?x << ?y }", "SELECT ?x { ?x :p 'a'@en--ltr }", "SELECT ?x { !!?y }"])
def test_what_is_no_sparql_1_1_is_refused_as_before(text):
    with pytest.raises(QueryError):
        parse_sparql(HEAD + text)
