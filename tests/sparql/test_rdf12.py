"""Triple terms, reifiers, base direction, names of all scripts (RDF 1.2, SPARQL 1.2): the definition and `live`."""

import pytest

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term, Triple, triple_parts, triple_term
from streamgauge.query import QueryError, parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.sparql.comparison import equal, ordered
from tests.sparql.simple.agreement import EVALUATORS
from tests.sparql.simple.drawn import Case
from tests.sparql.simple.patterns import Dataset
from tests.sparql.simple.written import rows

ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
INNER = '<<( <urn:d> <urn:e> "f" )>>'
REIFIES = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"
DATA: tuple[Triple, ...] = (
    ("<urn:r>", REIFIES, f"<<( <urn:a> <urn:b> {ONE} )>>"),
    ("<urn:r>", "<urn:by>", "<urn:w>"),
    ("<urn:a>", "<urn:b>", ONE),
    ("<urn:x>", "<urn:q>", '"hi"@en--ltr'),
    ("<urn:x>", "<urn:q>", f"<<( <urn:a> <urn:c> {INNER} )>>"),
)
PREFIXES = "PREFIX : <urn:> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> "
CASES = [
    ("SELECT * { ?r rdf:reifies <<( ?x ?y ?z )>> }", "r a b 1"),
    ("SELECT * { :r rdf:reifies <<( :a :b 1 )>> }", "()"),
    ("SELECT * { :r rdf:reifies <<( :a :b 01 )>> }", ""),
    ("SELECT * { ?r rdf:reifies <<( ?r ?y ?z )>> }", ""),
    ("SELECT * { ?s :q <<( :a :c <<( :d ?p ?f )>> )>> }", "x e 'f'"),
    ("SELECT * { << ?x :b ?z >> :by ?w }", "w a 1"),
    ("SELECT * { << ?x :b ?z ~ ?r >> :by ?w . ?x :b ?z }", "r w a 1"),
    ("SELECT * { ?a :b ?c {| :by ?w |} }", "a 1 w"),
    ("SELECT * { ?a :b ?c ~ ?r {| :by ?w |} }", "a 1 r w"),
    ("SELECT * { ?a :b ?c ~ :r }", "a 1"),
    ("SELECT * { ?a :b ?c ~ :other }", ""),
    ("SELECT ?r { ?r rdf:reifies <<( _:a :b _:z )>> . _:a :b 1 }", "r"),
    ("SELECT ?r { ?r :by ?w OPTIONAL { ?r rdf:reifies <<( ?a :none ?c )>> } FILTER(!BOUND(?a)) }", "r"),
    ("SELECT ?r { ?r :by ?w FILTER EXISTS { ?r rdf:reifies <<( :a ?p ?o )>> } }", "r"),
    ("SELECT ?l ?d { ?s :q ?o BIND(LANG(?o) AS ?l) BIND(LANGDIR(?o) AS ?d) FILTER(hasLANG(?o)) }", "'en' 'ltr'"),
    ("SELECT ?h ?d { ?s :q ?o BIND(hasLANGDIR(?o) AS ?h) BIND(DATATYPE(?o) AS ?d) FILTER(!isTRIPLE(?o)) }",
        "true <http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString>"),
    ("SELECT ?a ?f { ?s :q ?t BIND(SUBJECT(?t) AS ?a) BIND(OBJECT(OBJECT(?t)) AS ?f) FILTER(isTRIPLE(?t)) }", "a 'f'"),
    ("SELECT ?p { ?s :q ?t BIND(PREDICATE(TRIPLE(:x, :y, ?t)) AS ?p) FILTER(isTRIPLE(?t)) }", "y"),
    ("SELECT ?e { BIND(TRIPLE('a', :y, 1) AS ?t) BIND(BOUND(?t) AS ?e) }", "false"),
    ("SELECT ?e { BIND(<<( :a :b 1 )>> = <<( :a :b 1.0 )>> AS ?e) }", "true"),
    ("SELECT ?e { BIND(sameTerm(<<( :a :b 1 )>>, <<( :a :b 1.0 )>>) AS ?e) }", "false"),
    ("SELECT ?e { BIND(LANGDIR(STRLANGDIR('x', 'en', 'rtl')) AS ?e) }", "'rtl'"),
    ("SELECT ?e { BIND(BOUND(?x) AS ?e) BIND(STRLANGDIR('x', 'en', 'up') AS ?y) FILTER(!BOUND(?y)) }", "false"),
    ("VERSION '1.2' SELECT ?s { VALUES ?t { <<( :d :e 'f' )>> } ?s :q ?o FILTER(OBJECT(?o) = ?t) }", "x"),
    ("SELECT ?e { BIND(TRUE AS ?e) }", "true"),
    ("SELECT ?नाम { ?नाम :by ?कीमत }", "r"),
    ("SELECT ?o { :r :by ?o MINUS { ?s :re\u0301sume\u0301 ?o } }", "w"),
]  # fmt: skip


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize(("text", "expected"), CASES)
def test_rows(text: str, expected: str, evaluator: str) -> None:
    form = parse_sparql(PREFIXES + text)
    result = EVALUATORS[evaluator](Case(form, Dataset(DATA, {})))
    assert result is not None
    assert sorted(result, key=str) == sorted(rows(expected), key=str)


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_a_printed_query_means_the_same(text: str, expected: str) -> None:
    form = parse_sparql(sparql(parse_sparql(PREFIXES + text)))
    expected_answers = EVALUATORS["definition"](Case(form, Dataset(DATA, {}))) or ()
    assert sorted(expected_answers, key=str) == sorted(rows(expected), key=str)


def test_triple_terms_are_constructed() -> None:
    form = parse_sparql(PREFIXES + "CONSTRUCT { ?s :says <<( ?s :q ?o )>> } { ?s :q ?o FILTER(!isTRIPLE(?o)) }")
    expected_answers = EVALUATORS["definition"](Case(form, Dataset(DATA, {})))
    assert expected_answers == (("<urn:x>", "<urn:says>", '<<( <urn:x> <urn:q> "hi"@en--ltr )>>'),)
    with pytest.raises(QueryError, match="a blank node in a triple term of a template"):
        parse_sparql(PREFIXES + "CONSTRUCT { ?s :says <<( _:b :q ?o )>> } { ?s :q ?o }")


def test_order_puts_triple_terms_behind_literals_and_by_their_parts() -> None:
    form = parse_sparql(PREFIXES + "SELECT ?o { ?s ?p ?o } ORDER BY ?o")
    assert isinstance(form, al.Select)
    expected_answers = EVALUATORS["definition"](Case(form, Dataset(DATA, {}))) or ()
    terms: list[Term | None] = [row[0] for row in expected_answers]
    assert terms == ["<urn:w>", ONE, '"hi"@en--ltr', DATA[0][2], DATA[4][2]]
    assert [ordered(terms[3], other) for other in terms] == [1, 1, 1, 0, -1]


def test_parts_of_a_triple_term() -> None:
    for parts in (
        ("<urn:a>", "<urn:p>", '"a )>> <<( b \\" "@en--rtl'),
        ("_:b1", "<urn:p>", '"x"^^<urn:t>'),
        ("<urn:a>", "<urn:p>", triple_term(("_:b", "<urn:q>", INNER))),
    ):
        assert triple_parts(triple_term(parts)) == parts
    assert equal(INNER, INNER) is True
    assert equal(INNER, "<urn:a>") is False
