"""The shapes of queries for which pyoxigraph is not asked, each with its reason, and the nearest that it is asked for.

The graphs of the dataset are :w1 and :w2.
"""

import pytest

from streamgauge.model import algebra as al
from streamgauge.query import parse_sparql
from streamgauge.semantics.pyoxigraph_gaps import shape_gap, undefined, volatile

GRAPHS = ("<urn:w1>", "<urn:w2>")
IN_GRAPH = "more than triple patterns in GRAPH ?variable"
UNKNOWN_GRAPH = "GRAPH with a name that no graph has"
ZERO = "a path that may be of length zero"
CHOICE = "an order of values that IF or COALESCE chooses"
RESOURCE = "an order of IRIs"
OUTSIDE = "an expression over a variable that its group does not bind"
BAG = "COUNT(DISTINCT *) over a content that is a bag"
HIDDEN = "COUNT(DISTINCT *) over blank nodes of the pattern, which are no part of a solution (18.3.1)"

PATTERNS: list[tuple[str, str | None]] = [
    ("?s :p ?o", None),
    ("GRAPH ?g { ?s :p ?o }", None),
    ("GRAPH ?g { ?s ?p ?o . ?o :q ?x }", None),
    ("GRAPH ?g { ?s (:p|:q) ?o }", IN_GRAPH),
    ("GRAPH ?g { ?s :p ?o . ?o :p+ ?x }", IN_GRAPH),
    ("GRAPH ?g { ?s :p ?o OPTIONAL { ?o :q ?x } }", IN_GRAPH),
    ("GRAPH ?g { ?s :p ?o FILTER(?o > 1) }", IN_GRAPH),
    ("GRAPH ?g { VALUES ?g { :w1 } }", IN_GRAPH),
    ("GRAPH :w1 { ?s :p ?o }", None),
    ("GRAPH :w2 { ?s :p ?o OPTIONAL { ?o :q ?x } FILTER(?o > 1) }", None),
    ("GRAPH :w3 { ?s :p ?o }", UNKNOWN_GRAPH),
    ("GRAPH :w1 { ?s :p ?o OPTIONAL { GRAPH :w2 { ?o :q ?x } } }", "GRAPH in GRAPH"),
    ("?s :p* ?o", ZERO),
    ("?s :p? ?o", ZERO),
    ("?s :p+ ?o", None),
    ("?s (:p*)+ ?o", ZERO),
    ("?s ^(:p?) ?o", ZERO),
    ("?s ^:p ?o", None),
    ("?s (:q|^(:p?)) ?o", ZERO),
    ("?s (:q|(:r/:p*)) ?o", ZERO),
    ("?s (:q|^:p)+ ?o", None),
    ("?s (:q|(:r/:p)) ?o", None),
    ("?s :p/:q* ?o", ZERO),
    ("?s :p/:q+ ?o", None),
    ("?s (:p|:q?) ?o", ZERO),
    ("?s (:p|:q)+ ?o", None),
    ("?s !(:p|^:q) ?o", None),
    ("?s :p ?o . ?o :p* ?x", ZERO),
    ("?s :p ?o FILTER(UCASE(?o) = 'A')", "UCASE"),
    ("?s :p ?o FILTER(?o > 1 && UCASE(?o) = 'A')", "UCASE"),
    ("?s :p ?o BIND(REPLACE(?o, 'a', 'b') AS ?x)", "REPLACE"),
    ("?s :p ?o FILTER(?o / 2 > 1)", "/"),
    ("?s :p ?o OPTIONAL { ?o :q ?x FILTER(LCASE(?x) = 'a') }", "LCASE"),
    ("?s :p ?o FILTER(1 = 1 || ?o != 1 && !(?o IN (1, 2)) && ?o - 1 <= 2 * ?o + 1)", None),
    ("?s :p ?o FILTER(BOUND(?o) && isIRI(?o) && isURI(?s) && isBLANK(?s) && isLITERAL(?o))", None),
    ("?s :p ?o FILTER(STRSTARTS(STR(?o), 'a') || STRENDS(?o, 'b') || CONTAINS(?o, 'c'))", None),
    ("?s :p ?o FILTER(sameTerm(?s, ?o) && IF(?o, true, false) && COALESCE(?o, 1))", None),
    ("?s :p ?o FILTER(IF(true, ?o, 1) < 2)", CHOICE),
    ("?s :p ?o FILTER(2 > COALESCE(?o, 1))", CHOICE),
    ("?s :p ?o FILTER(IF(true, ?o, 1) <= 2)", CHOICE),
    ("?s :p ?o FILTER(2 >= COALESCE(?o, 1))", CHOICE),
    ("?s :p ?o FILTER(IF(true, ?o, 1) = 2)", None),
    ("?s :p ?o FILTER(:a < ?o)", RESOURCE),
    ("?s :p ?o FILTER(?o > :a)", RESOURCE),
    ("?s :p ?o FILTER(:a <= ?o)", RESOURCE),
    ("?s :p ?o FILTER(?o >= :a)", RESOURCE),
    ("?s :p ?o FILTER(?o != :a)", None),
    ("?s :p ?o FILTER(?o + 1 < 2)", None),
    ("?s :p ?o FILTER EXISTS { ?o :q ?x . ?x :q ?s }", None),
    ("?s :p ?o FILTER NOT EXISTS { ?o :q ?x }", None),
    ("?s :p ?o FILTER EXISTS { ?o (:q|:r) ?x }", "EXISTS with more than triple patterns"),
    ("?s :p ?o FILTER EXISTS { ?o :q ?x FILTER(?x > 1) }", "EXISTS with more than triple patterns"),
    ("?s :p ?o BIND(EXISTS { ?o :q ?x } AS ?b)", "EXISTS in a value"),
    ("?s :p ?o FILTER(?x > 1)", OUTSIDE),
    ("?s :p ?o OPTIONAL { ?s :q ?x FILTER(?x > ?o) }", None),
    ("?s :p ?o { ?s :q ?x FILTER(?x > ?o) }", OUTSIDE),
    ("?s :p ?o BIND(?x AS ?y)", OUTSIDE),
]


def gap(text: str, occurrences: bool = False) -> str | None:
    return shape_gap(parse_sparql(f"PREFIX : <urn:> {text}"), GRAPHS, occurrences)


@pytest.mark.parametrize(("pattern", "reason"), PATTERNS)
def test_patterns_and_expressions(pattern: str, reason: str | None) -> None:
    assert gap(f"SELECT * {{ {pattern} }}") == reason
    assert gap(f"ASK {{ {{ {pattern} }} UNION {{ ?s :p ?o }} }}") == reason


@pytest.mark.parametrize(
    ("text", "reason", "over_a_bag"),
    [
        ("SELECT ?s { ?s :p ?o } LIMIT 1", "LIMIT or OFFSET", "LIMIT or OFFSET"),
        ("SELECT ?s { ?s :p ?o } OFFSET 1", "LIMIT or OFFSET", "LIMIT or OFFSET"),
        ("SELECT DISTINCT ?s { ?s :p ?o } ORDER BY ?s", None, None),
        ("SELECT (COUNT(*) AS ?n) { ?s :p ?o }", None, None),
        ("SELECT (COUNT(DISTINCT *) AS ?n) { ?s :p ?o }", None, BAG),
        ("SELECT (COUNT(DISTINCT *) AS ?n) { ?s :p [] }", HIDDEN, BAG),
        ("SELECT (COUNT(*) AS ?n) { ?s :p [] }", None, None),
        ("SELECT (COUNT(DISTINCT *) AS ?n) { ?s (:p|:q) ?o }", None, BAG),
        ("SELECT (COUNT(DISTINCT *) AS ?n) { ?s (:p|(:q/:r)) ?o }", HIDDEN, BAG),
        ("SELECT (COUNT(DISTINCT *) AS ?n) { ?s (:p|(:q/:r))+ ?o }", HIDDEN, BAG),
        ("SELECT (COUNT(DISTINCT *) AS ?n) { ?s (:p|^(:q/(:r|:p))) ?o }", HIDDEN, BAG),
        ("SELECT (COUNT(DISTINCT *) AS ?n) { ?s !(:p|^:q) ?o OPTIONAL { ?s ^:p ?x } }", None, BAG),
        ("SELECT (COUNT(*) AS ?n) { ?s (:p|(:q/:r)) ?o }", None, None),
        ("SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s :p [] }", None, None),
        ("SELECT (SUM(?o) AS ?n) (AVG(?o) AS ?a) (MIN(?o) AS ?l) (MAX(?o) AS ?h) { ?s :p ?o }", None, None),
        ("SELECT (SUM(?o) AS ?n) (SAMPLE(?o) AS ?a) { ?s :p ?o }", "SAMPLE", "SAMPLE"),
        ("SELECT (GROUP_CONCAT(?o) AS ?n) { ?s :p ?o }", "GROUP_CONCAT", "GROUP_CONCAT"),
        ("SELECT (SUM(CEIL(?o)) AS ?n) { ?s :p ?o }", "CEIL", "CEIL"),
        ("SELECT (SUM(ABS(?o)) AS ?n) { ?s :p ?o FILTER(DATATYPE(?o) = :float) }", None, None),
        ("SELECT ?s { ?s :p ?o } GROUP BY ?s HAVING(ROUND(SUM(?o)) > 1)", "ROUND", "ROUND"),
        ("SELECT ?s { ?s :p ?o } ORDER BY FLOOR(?o)", "FLOOR", "FLOOR"),
        ("SELECT ?s { ?s :p ?o FILTER EXISTS { ?o :q ?x } }", None, "EXISTS with more than triple patterns"),
        ("SELECT ?s { { SELECT ?s { ?s :p ?o } LIMIT 1 } ?s :q ?x }", "LIMIT or OFFSET", "LIMIT or OFFSET"),
        ("CONSTRUCT { ?s :q ?o } WHERE { ?s :p ?o }", None, None),
    ],
)  # fmt: skip
def test_forms_over_sets_and_bags(text: str, reason: str | None, over_a_bag: str | None) -> None:
    assert (gap(text), gap(text, occurrences=True)) == (reason, over_a_bag)


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("FILTER EXISTS { ?s :q ?x BIND(1 AS ?o) }", "?o"),
        ("FILTER NOT EXISTS { ?s :q ?x BIND(1 AS ?s) }".replace("?s :q", "?z :q"), "?s"),
        ("FILTER EXISTS { ?s :q ?x BIND(1 AS ?y) }", None),
        ("FILTER EXISTS { VALUES ?o { 1 } }", None),
        ("FILTER EXISTS { SELECT (COUNT(*) AS ?o) { ?s :q ?x } }", "?o"),
        ("FILTER EXISTS { SELECT ?o { ?s :q ?x } GROUP BY (?x + 1 AS ?o) }", "?o"),
        ("FILTER EXISTS { SELECT ?o { ?s :q ?o } GROUP BY ?o }", None),
        ("FILTER EXISTS { SELECT ?n { ?s :q ?x BIND(1 AS ?o) BIND(2 AS ?n) } }", None),
        ("FILTER EXISTS { SELECT ?o { ?s :q ?x BIND(1 AS ?o) BIND(2 AS ?n) } }", "?o"),
        ("FILTER EXISTS { ?s :q ?x FILTER EXISTS { ?x :r ?y BIND(1 AS ?o) } }", "?o"),
        ("FILTER EXISTS { ?z :q ?x FILTER EXISTS { ?x :r ?y BIND(1 AS ?z) } }", "?z"),
        ("OPTIONAL { ?s :q ?x FILTER EXISTS { ?x :r ?y BIND(1 AS ?s) } }", "?s"),
        ("{ ?a :q ?b FILTER EXISTS { ?b :r ?y BIND(1 AS ?o) } }", None),
        ("{ ?a :q ?b FILTER EXISTS { ?b :r ?y BIND(1 AS ?a) } }", "?a"),
        ("BIND(EXISTS { ?b :r ?y BIND(1 AS ?o) } AS ?found)", "?o"),
    ],
)
def test_exists_that_computes_what_is_bound_around_it(pattern: str, named: str | None) -> None:
    found = undefined(parse_sparql(f"PREFIX : <urn:> SELECT * {{ ?s :p ?o {pattern} }}"))
    assert found is None if named is None else f"EXISTS computes {named}, which" in str(found)


@pytest.mark.parametrize("function", ["RAND", "NOW", "UUID", "STRUUID"])
def test_functions_of_another_value_each_time_are_named(function: str) -> None:
    for text in (f"SELECT ({function}() AS ?x) {{ ?s ?p ?o }}", f"ASK {{ ?s ?p ?o FILTER(1 = STR({function}())) }}"):
        assert str(volatile(parse_sparql(text))).startswith(f"{function}() gives another value each time")
    small = al.Ask(al.Extend(al.BGP(()), al.Var("x"), al.Call(function.lower(), ())))
    assert str(volatile(small)).startswith(f"{function.lower()}() gives")


def test_functions_of_one_value_are_not_named() -> None:
    assert volatile(parse_sparql("SELECT (STR(?o) AS ?x) { ?s ?p ?o FILTER EXISTS { ?s ?q ?o } }")) is None
