"""Queries have the algebra that another reader makes of them, from the tree of rdflib's parser."""

from random import Random

import pytest
from hypothesis import given

from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.prologue import read_prologue
from streamgauge.query.reader import QueryReader
from streamgauge.query.text import QueryError, tokens
from tests.examples import examples
from tests.query.rdflib_reader import read_by_rdflib
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
    "SELECT ?t { ?x :p ?y BIND(<http://larkc.eu/csparql/sparql/jena/ext#timestamp>(?x, :p, ?y) AS ?t) }",
    "SELECT ?x { [ :q ?y ; :r 5 ] :p ?z , [ :s _:b ] . _:b :q ?x }",
    "SELECT * { ?x :p (1 [ :q ?y ] (2 3)) ; :r ?z ; . (4) :p 5 . () :q [] }",
    "SELECT * { ?x (^:p/:q*|!(:r|^:s|a))+/a ?y . ?x ^(:p/:q) ?z . ?x !^a ?v . ?x (:p/:q)/:r ?w }",
    "SELECT * { ?x :p? ?y . ?x :p*/:q? ?z . ?x :p+5 . ?x :p+ 5 }",
    "SELECT ?y ?k { ?x :p ?y } GROUP BY (STR(?x)) ?y (?z) (?y+1 AS ?k) STR(?y)",
    "SELECT (1+2*3-4 AS ?a) (-?x AS ?b) (?y -5*2 AS ?c) (!?y && ?x || ?z = 1 AS ?d) (2-3 AS ?e) (- 5 AS ?f) { }",
    "SELECT * { ?x :p +5 , -1.5e3 , true }",
    "SELECT ?x { ?x :p ?y } GROUP BY ?x HAVING (?x > 1) (BOUND(?x)) ORDER BY STR(?x) DESC(?x) LIMIT 3",
    "CONSTRUCT { ?x :p [ :q (1 2) ] . _:a :r _:a } WHERE { ?x :p _:a , [] } ORDER BY ?x LIMIT 2 OFFSET 1",
    "CONSTRUCT WHERE { ?x :p _:a . _:a :q [] }",
    "SELECT * { { SELECT ?x (MAX(?y) AS ?m) { ?x :p ?y } GROUP BY ?x HAVING(MAX(?y) > 3) VALUES ?x { :a } } "
    "OPTIONAL { SELECT * { ?x :q [] } } VALUES (?x ?k) { (:a UNDEF) (UNDEF -5) } }",
    "SELECT * { ?x :p ?y FILTER(NOW() > ?y) FILTER(BNODE() = BNODE('a')) FILTER(RAND() IN ()) FILTER xsd:boolean(?y) }",
    "SELECT * { ?x :p ?y FILTER(COALESCE() = CONCAT()) OPTIONAL {} {} MINUS {} FILTER EXISTS {SELECT ?x { ?x :p 1 }} }",
    "SELECT (GROUP_CONCAT(DISTINCT ?x ; SEPARATOR = 'a\\n') AS ?g) { ?x :p ?y } VALUES () { () }",
    "SELECT * { ?x :p ?y FILTER(IRI('r') = :s) }",
    "SELECT (EXISTS { ?x :p ?z } AS ?b) ?x { ?x :q [] FILTER NOT EXISTS { ?x :r [ :s [] ] } }",
]


BASE = "http://example.org/"


def read(text):
    words = tokens(text)
    return QueryReader(text, words, read_prologue(text, words, default=BASE)).query().form


@pytest.mark.parametrize("text", [*COMMON, *OTHERS])
@pytest.mark.parametrize("base", ["", "BASE <urn:base:> "])
def test_two_readers_agree(text, base):
    text = base + HEAD + text
    assert parse_sparql(text, BASE) == read_by_rdflib(text, BASE)


@pytest.mark.parametrize("text", [*QUERIES, *(FILES[name].read_text(encoding="utf-8") for name in sorted(STANDING))])
def test_a_corner_of_the_grammar(text):
    text = text if text.lstrip().startswith(("PREFIX", "#", "BASE")) else PREFIXES + text
    assert read(text) == read_by_rdflib(text, BASE)


@pytest.mark.slow
@examples(15, prove=2000)
@given(queries(OPERATORS))
def test_a_drawn_query(form):
    text = sparql(form)
    assert read(text) == read_by_rdflib(text, BASE)


def test_blank_nodes_are_numbered_as_the_text_has_them():
    first, second = al.Var("_:0"), al.Var("_:1")
    form = parse_sparql(HEAD + "SELECT (EXISTS { ?x :p [] } AS ?b) { ?x :q [] }")
    inside, outside = (
        al.BGP((al.TriplePattern(al.Var("x"), f"<urn:t:{p}>", n),)) for p, n in (("p", first), ("q", second))
    )
    assert form.pattern.pattern == al.Extend(outside, al.Var("b"), al.Exists(inside))


def test_a_sign_is_part_of_one_number_only():
    expected = al.Call("-", (f'"-5"^^<{XSD}integer>',))
    assert parse_sparql("SELECT (- -5 AS ?a) { }").pattern.pattern.expression == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.prove) for first in range(80, 20_000, 1660))]
)
def test_each_drawn_text(first):
    """20,000 texts of the simple evaluator's cases, every operator within every other."""
    for seed in range(first, first + (80 if first == 0 else 1660)):
        text = sparql(drawn(Random(seed)).form)
        assert read(text) == read_by_rdflib(text, BASE), seed


@pytest.mark.parametrize("text", ["SELECT ?x { ?x << ?y }", "SELECT ?x { ?x :p 'a'@en--up }", "SELECT ?x { !!?y }"])
def test_what_is_no_sparql_1_1_is_refused_as_before(text):
    with pytest.raises(QueryError):
        parse_sparql(HEAD + text)


@pytest.mark.parametrize("digits", ["9" * 20, "9" * 5_000, "0" * 5_000 + "7", "18446744073709551616"])
@pytest.mark.parametrize("word", ["LIMIT", "OFFSET"])
def test_a_number_of_rows_may_have_any_number_of_digits(word, digits):
    sliced = parse_sparql(f"SELECT ?s {{ ?s ?p ?o }} {word} {digits}").pattern
    number = sliced.limit if word == "LIMIT" else sliced.offset
    assert number == (7 if digits.endswith("07") else 10**18)
