"""``VERSION "1.1"``: escapes anywhere, conditions that are ill-typed or tagged, what SPARQL 1.1 does not have."""

import pytest

from streamgauge.query import QueryError, announced, parse, parse_sparql
from streamgauge.query.printer import sparql
from tests.sparql.simple.agreement import EVALUATORS
from tests.sparql.simple.drawn import Case
from tests.sparql.simple.patterns import Dataset
from tests.sparql.simple.written import rows

OLD, NEW = 'VERSION "1.1" ', 'VERSION "1.2" '
PREFIXES = "PREFIX : <urn:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
VALUES = "VALUES ?v { 'x'^^xsd:integer 'no'^^xsd:boolean 'a'@en ''@en '' 'b' 1 0 true :iri UNDEF } "
DATA = Dataset((), {})


def answer(text: str, evaluator: str) -> list[tuple[str | None, ...]]:
    return sorted(EVALUATORS[evaluator](Case(parse_sparql(text), DATA)) or (), key=str)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize(
    ("condition", "earlier", "later"),
    [
        ("FILTER(?v)", "'a'@en; 'b'; 1; true", "'b'; 1; true"),
        ("FILTER(!?v)", "'x'^^integer; 'no'^^boolean; ''@en; ''; 0", "''; 0"),
        ("FILTER(?v || false)", "'a'@en; 'b'; 1; true", "'b'; 1; true"),
        ("FILTER(IF(?v, true, true))", "'x'^^integer; 'no'^^boolean; 'a'@en; ''@en; ''; 'b'; 1; 0; true",
            "''; 'b'; 1; 0; true"),
        ("OPTIONAL { FILTER(?v) BIND(1 AS ?x) } FILTER(BOUND(?x) && ?v = 1)", "1", "1"),
    ],
)  # fmt: skip
def test_conditions(condition: str, earlier: str, later: str, evaluator: str) -> None:
    text = f"{PREFIXES}SELECT ?v {{ {VALUES} {condition} }}"
    assert answer(OLD + text, evaluator) == sorted(rows(earlier), key=str)
    assert answer(NEW + text, evaluator) == answer(text, evaluator) == sorted(rows(later), key=str)


def test_escapes_stand_anywhere_in_the_earlier_version_only() -> None:
    text = r"\u0053ELECT ?\u0061 { ?\u0061 <urn:\u0070> '\u0027b' }"
    with pytest.raises(QueryError, match=r"line 1, column 15: .*escapes like"):
        parse_sparql(NEW + text)
    with pytest.raises(QueryError, match="is expected here, not b"):  # the escape ends the string (SPARQL 1.1, 19.2)
        parse_sparql(OLD + text)
    assert parse_sparql(OLD + text.replace(r"\u0027", "")) == parse_sparql("SELECT ?a { ?a <urn:p> 'b' }")


def test_an_error_behind_escapes_is_at_its_place() -> None:
    with pytest.raises(QueryError) as error:
        parse_sparql(OLD + "SELECT ?a {\n ?a <urn:\\u0070> \\U00000031 , ex:q }")
    assert (error.value.line, error.value.column) == (2, 31)
    assert "ex:q" in str(error.value)


@pytest.mark.parametrize(
    "part",
    ["?s ?p <<( ?a ?b ?c )>>", "<< ?s ?p ?o >> ?q ?r", "?s ?p ?o {| ?q ?r |}", "?s ?p ?o ~ ?r", "?s ?p 'x'@en--ltr",
     "?s ?p ?o FILTER(isTRIPLE(?o))", "BIND(LANGDIR('x') AS ?d)"],
)  # fmt: skip
def test_what_the_earlier_version_does_not_have_is_refused(part: str) -> None:
    parse_sparql(f"SELECT * {{ {part} }}")
    with pytest.raises(QueryError, match='but the text declares VERSION "1'):
        parse_sparql(f"{OLD}SELECT * {{ {part} }}")


def test_a_printed_query_keeps_the_meaning_of_its_version() -> None:
    form = parse_sparql(f"{OLD}{PREFIXES}SELECT ?v {{ {VALUES} FILTER(?v) }}")
    assert parse_sparql(sparql(form)) == form


def test_dialects_announce_too() -> None:
    text = "SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 1s] { WINDOW <urn:w> { ?s ?p ?o FILTER(?o) } }"
    assert parse(announced(text, "1.1")).form != parse(text).form == parse(announced(text, "1.2")).form
    assert announced(text, None) == text
