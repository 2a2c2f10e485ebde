"""What a query reads, compares and computes: by these traits an evaluator is chosen (docs/semantics.md).

A number of the content counts once (``factor``); ``more`` are bits beside: 30 for a sum, 1 for an addition.
"""

import pytest

from streamgauge.query import parse_sparql
from streamgauge.semantics.pyoxigraph_gaps import traits

SIZES = [
    ("SELECT ?s { ?s <urn:p> ?v }", {(1, 0)}),
    ("SELECT ?s { ?s <urn:p> ?v FILTER(?v > 5) }", {(1, 0)}),
    ("SELECT ?s { ?s <urn:p> ?v FILTER(?v + 1 > 5) }", {(1, 0), (1, 1)}),
    ("SELECT ?s { ?s <urn:p> ?v FILTER(?v - 1 > 5) }", {(1, 0), (1, 1)}),
    ("SELECT ?s { ?s <urn:p> ?v FILTER(?v * ?v > 5) }", {(1, 0), (2, 0)}),
    ("SELECT ?s { ?s <urn:p> ?v FILTER(?v * ?v * ?v > 5) }", {(1, 0), (3, 0)}),
    ("SELECT ?s { ?s <urn:p> ?v BIND(?v * ?v AS ?w) FILTER(?w > 5) }", {(1, 0), (2, 0)}),
    ("SELECT ?s { ?s <urn:p> ?v BIND(?v * ?v AS ?w) BIND(?w * ?w AS ?x) }", {(1, 0), (2, 0), (4, 0)}),
    ("SELECT (SUM(?v) AS ?t) { ?s <urn:p> ?v }", {(1, 0), (1, 30)}),
    ("SELECT (AVG(?v) AS ?t) { ?s <urn:p> ?v }", {(1, 0), (1, 30)}),
    ("SELECT (SUM(?v * ?v) AS ?t) { ?s <urn:p> ?v }", {(1, 0), (2, 0), (2, 30)}),
    ("SELECT (MAX(?v * ?v) AS ?t) { ?s <urn:p> ?v }", {(1, 0), (2, 0)}),
    ("SELECT (COUNT(?v) AS ?t) { ?s <urn:p> ?v }", {(1, 0), (0, 30)}),
    ("SELECT (COUNT(*) AS ?t) { ?s <urn:p> ?v }", {(1, 0), (0, 30)}),
]


@pytest.mark.parametrize(("sparql", "sizes"), SIZES)
def test_computed_numbers_are_bounded_by_those_of_the_content(sparql, sizes):
    found = {(each.factor, each.more) for each in traits(parse_sparql(sparql)).sizes}
    assert (max(f for f, _ in found), max(m for _, m in found)) == (max(f for f, _ in sizes), max(m for _, m in sizes))


@pytest.mark.parametrize(
    ("sparql", "plain"),
    [
        ("SELECT ?s ?v { ?s <urn:p> ?v }", (True, True)),
        ("SELECT ?s ?w { ?s <urn:p> ?v BIND(?v + 1 AS ?w) }", (True, False)),
        ("SELECT (SUM(?v) AS ?t) { ?s <urn:p> ?v }", (False,)),
        ("CONSTRUCT { ?s <urn:q> ?v } WHERE { ?s <urn:p> ?v }", (True, True, True)),
        ("CONSTRUCT { ?s <urn:q> ?w } WHERE { ?s <urn:p> ?v BIND(?v + 1 AS ?w) }", (True, True, False)),
        ("ASK { ?s <urn:p> ?v }", (False,)),
    ],
)
def test_columns_whose_terms_are_not_computed(sparql, plain):
    assert traits(parse_sparql(sparql)).plain_columns == plain


HEAD = "PREFIX : <urn:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "


def of(text):
    return traits(parse_sparql(HEAD + text))


FORMS, VALUES, ARITHMETIC, DIVISION = "forms", "values", "arithmetic", "division"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT ?v { ?s :p ?v }", set()),
        ("SELECT DISTINCT ?v { ?s :p ?v . ?v :q 5 }", set()),
        ("SELECT ?s (COUNT(?v) AS ?n) { ?s :p ?v } GROUP BY ?s", set()),
        ("SELECT ?v { ?s :p ?v FILTER(BOUND(?v) ) }", set()),
        ("SELECT ?v { ?s :p ?v FILTER(isIRI(?v)) }", set()),
        ("SELECT ?v { ?s :p ?v FILTER(sameTerm(?v, 1)) }", set()),
        ("SELECT (COALESCE(?v, 1) AS ?x) { ?s :p ?v }", set()),
        *((f"SELECT ?v {{ ?s :p ?v FILTER(?v {each} 1) }}", {VALUES}) for each in ("=", "!=", "<", ">", "<=", ">=")),
        ("SELECT ?v { ?s :p ?v FILTER(?v IN (1)) }", {VALUES}),
        ("SELECT ?v { ?s :p ?v FILTER(?v NOT IN (1)) }", {VALUES}),
        ("SELECT ?v { ?s :p ?v FILTER(!?v) }", {VALUES}),
        ("SELECT ?v { ?s :p ?v FILTER(?v && true) }", {VALUES}),
        ("SELECT ?v { ?s :p ?v FILTER(?v || true) }", {VALUES}),
        ("SELECT (IF(?v, 1, 2) AS ?x) { ?s :p ?v }", {VALUES}),
        ("SELECT ?v { ?s :p ?v FILTER(?v) }", {VALUES}),
        ("SELECT ?v { ?s :p ?v OPTIONAL { ?s :q ?w FILTER(?w) } }", {VALUES}),
        ("SELECT ?v { ?s :p ?v OPTIONAL { ?s :q ?w FILTER(BOUND(?w)) } }", set()),
        ("SELECT ?v { ?s :p ?v FILTER EXISTS { ?s :q ?x FILTER(?x > 1) } }", {VALUES}),
        ("SELECT ?v { ?s :p ?v } ORDER BY ?v", {VALUES}),
        ("SELECT (MIN(?v) AS ?x) { ?s :p ?v }", {VALUES}),
        ("SELECT (MAX(?v) AS ?x) { ?s :p ?v }", {VALUES}),
        ("SELECT (SUM(?v) AS ?x) { ?s :p ?v }", {VALUES, ARITHMETIC}),
        ("SELECT (AVG(?v) AS ?x) { ?s :p ?v }", {VALUES, ARITHMETIC, DIVISION}),
        ("SELECT (?v + 1 AS ?x) { ?s :p ?v }", {VALUES, ARITHMETIC}),
        ("SELECT (?v - 1 AS ?x) { ?s :p ?v }", {VALUES, ARITHMETIC}),
        ("SELECT (?v * 1 AS ?x) { ?s :p ?v }", {VALUES, ARITHMETIC}),
        *((f"SELECT ({each}(?v, 'a') AS ?x) {{ ?s :p ?v }}", {FORMS}) for each in ("STRSTARTS", "STRENDS", "CONTAINS")),
        ("SELECT (STR(?v) AS ?x) { ?s :p ?v }", {FORMS}),
        ("SELECT ?v { ?s :p ?v FILTER(STR(?v) = '1') }", {FORMS, VALUES}),
        # a variable of computed and of other terms, and a test of computed ones
        ("SELECT ?v { { ?s :p ?v } UNION { BIND(STRLEN('a') AS ?v) } }", {FORMS}),
        ("SELECT ?v { { VALUES ?v { 1 } } UNION { BIND(STRLEN('a') AS ?v) } }", {FORMS}),
        ("SELECT ?g { { GRAPH ?g { ?s :p ?v } } UNION { BIND(IRI('a') AS ?g) } }", {FORMS}),
        ("SELECT ?v { { ?s :p ?v } UNION { BIND(5 AS ?v) } }", set()),
        ("SELECT ?v { { ?s :p ?w BIND(?w AS ?v) } UNION { BIND(STRLEN('a') AS ?v) } }", {FORMS}),
        ("SELECT ?v { ?s :p ?v BIND(STRLEN('a') AS ?n) FILTER(sameTerm(?v, ?n)) }", {FORMS}),
        ("SELECT ?v { ?s :p ?v BIND(?v AS ?n) FILTER(sameTerm(?v, ?n)) }", set()),
        ("SELECT ?v { ?s :p ?v FILTER(sameTerm(?v, STRLEN('a'))) }", {FORMS}),
    ],
)
def test_lexical_forms_values_and_arithmetic(text, found):
    has = of(text)
    pairs = ((FORMS, has.reads_forms), (VALUES, has.compares), (ARITHMETIC, has.computes), (DIVISION, has.averages))
    assert {name for name, is_so in pairs if is_so} == found


def numbers(terms):
    return sorted(each[1 : each.rfind('"')] for each in terms)


@pytest.mark.parametrize(
    ("text", "constants", "computed", "inline"),
    [
        ("SELECT ?s { ?s :p 1 ; :q :a ; :r 'b' }", ["1", "b"], [], []),
        ("SELECT ?s { ?s :p ?v FILTER(?v > 1 && ?s != :a) }", ["1"], [], []),
        ("SELECT ?s { ?s :p ?v FILTER(?v + 1 > 2 * (3 - ?v)) }", ["1", "2", "3"], ["1", "2", "3"], []),
        ("SELECT ?s { ?s :p ?v FILTER(IF(?v = 1, 2, 3) + 4 > 5) }", ["1", "2", "3", "4", "5"], ["1", "2", "3", "4"],
            []),
        ("SELECT ?s { ?s :p ?v FILTER EXISTS { ?s :q 1 FILTER(?v - 2 > 3) } }", ["1", "2", "3"], ["2"], []),
        ("SELECT ?s { ?s :p ?v VALUES (?v ?w) { (1 UNDEF) (:a 2) } }", ["1", "2"], [], ["1", "2"]),
        ("SELECT ?s { ?s :p ?v } ORDER BY (?v * 2)", ["2"], ["2"], []),
        ("SELECT (SUM(?v + 2) AS ?t) { ?s :p ?v } GROUP BY (?v - 3 AS ?k) HAVING(COUNT(*) > 4)", ["2", "3", "4"],
            ["2", "3"], []),
        ("CONSTRUCT { ?s :q 1 , ?v } WHERE { ?s :p ?v , 2 }", ["1", "2"], [], []),
        ("ASK { ?s :p :a }", [], [], []),
    ],
)  # fmt: skip
def test_constants(text, constants, computed, inline):
    has = of(text)
    assert [numbers(each) for each in (has.constants, has.computed_constants, has.inline)] == [
        constants,
        computed,
        inline,
    ]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("SELECT ?w { ?s :p ?v BIND(?v AS ?w) }", True),
        ("SELECT ?w { ?s :p ?v BIND(5 AS ?w) }", True),
        ("SELECT ?w { ?s :p ?v BIND(COALESCE(?v, 5) AS ?w) }", True),
        ("SELECT ?w { ?s :p ?v BIND(COALESCE(?v, ?v + 1) AS ?w) }", False),
        ("SELECT ?w { ?s :p ?v BIND(IF(?v + 1 > 2, ?v, 5) AS ?w) }", True),
        ("SELECT ?w { ?s :p ?v BIND(IF(true, ?v, ?v + 1) AS ?w) }", False),
        ("SELECT ?w { ?s :p ?v BIND(IF(true, ?v + 1, ?v) AS ?w) }", False),
        ("SELECT ?w { ?s :p ?v BIND(?v + 1 AS ?u) BIND(?u AS ?w) }", False),
        ("SELECT ?w { { SELECT (?u AS ?w) { BIND(?v AS ?u) BIND(1 + 1 AS ?v) } } }", False),
        ("SELECT (MIN(?v) AS ?w) { ?s :p ?v }", True),
        ("SELECT (MAX(?v) AS ?w) { ?s :p ?v }", True),
        ("SELECT (SAMPLE(?v) AS ?w) { ?s :p ?v }", True),
        ("SELECT (MIN(?v + 1) AS ?w) { ?s :p ?v }", False),
        ("SELECT (COUNT(?v) AS ?w) { ?s :p ?v }", False),
        ("SELECT (COUNT(*) AS ?w) { ?s :p ?v }", False),
        ("SELECT ?w { ?s :p ?v } GROUP BY (?v + 1 AS ?w)", False),
        ("SELECT ?w { ?s :p ?w } GROUP BY ?w", True),
        ("SELECT ?w { { ?s :p ?w } UNION { BIND(1 + 1 AS ?w) } }", False),
        ("SELECT ?w { GRAPH ?w { ?s :p ?v } }", True),
        ("SELECT ?w { ?s :p ?v }", True),
    ],
)
def test_a_column_is_plain_when_no_term_of_it_is_computed(text, plain):
    assert of(text).plain_columns == (plain,)


@pytest.mark.parametrize(
    ("text", "bits", "digits"),
    [
        ("SELECT ?v { ?s :p ?v }", 10, 10),
        ("SELECT (?v + 1 AS ?x) { ?s :p ?v }", 11, 10),
        ("SELECT (?v + 1 - ?v AS ?x) { ?s :p ?v }", 12, 10),
        ("SELECT (?v * ?v + 1 AS ?x) { ?s :p ?v }", 21, 20),
        ("SELECT (1 + ?v * ?v AS ?x) { ?s :p ?v }", 21, 20),
        ("SELECT ((?v + 1) * (?v + 1) AS ?x) { ?s :p ?v }", 22, 20),
        ("SELECT (IF(true, 1, ?v * ?v) AS ?x) { ?s :p ?v }", 20, 20),
        ("SELECT (SUM(?v * ?v + 1) AS ?x) { ?s :p ?v }", 51, 20),
        ("SELECT (AVG(?v) AS ?x) { ?s :p ?v }", 40, 10),
        ("SELECT (MIN(?v * ?v) AS ?x) { ?s :p ?v }", 20, 20),
        ("SELECT ?x { ?s :p ?v BIND(?a * ?a AS ?x) BIND(?b * ?b AS ?a) BIND(?v * ?v AS ?b) }", 80, 80),
        ("SELECT (?n * ?n AS ?x) { { SELECT (COUNT(*) AS ?n) { ?s :p ?v } } }", 60, 10),
        ("SELECT ?x { { SELECT (COUNT(*) AS ?n) { ?s :p ?v } } ?s :q ?n BIND(?n * ?n AS ?x) }", 80, 20),
        ("SELECT (MAX(?v * ?v) * MIN(?v) AS ?x) { ?s :p ?v }", 30, 30),
        ("SELECT (COUNT(?v * ?v) AS ?x) { ?s :p ?v }", 30, 20),
        ("SELECT (COUNT(*) + 1 AS ?x) { ?s :p ?v }", 41, 10),
        ("SELECT (COUNT(*) * COUNT(*) AS ?x) { ?s :p ?v }", 60, 10),
        ("SELECT (SUM(?v) * ?k AS ?x) { ?s :p ?v ; :q ?k } GROUP BY ?k", 50, 20),
        ("SELECT ?x { { SELECT (COUNT(*) AS ?n) { ?s :p ?v } } BIND(?n + 1 AS ?x) }", 41, 10),
        ("SELECT ?x { ?s :p ?v BIND(?v * ?v AS ?w) BIND(?w * ?w AS ?x) }", 40, 40),
        ("SELECT ?x { ?s :p ?v BIND(?w * ?w AS ?x) BIND(?v * ?v AS ?w) }", 40, 40),
        ("SELECT ?v { ?s :p ?v FILTER(?v * ?v * ?v > 1) }", 30, 30),
        ("SELECT ?k { ?s :p ?v } GROUP BY (?v * ?v AS ?k) HAVING(SUM(?v * ?v) > 1)", 50, 20),
        ("SELECT (?v * ?v * 1e0 AS ?x) { ?s :p ?v }", 20, 20),
        ("SELECT (1e0 + 1e0 * (?v * ?v) AS ?x) { ?s :p ?v }", 20, 20),
        ("SELECT (ABS(?v * ?v * 1e0) AS ?x) { ?s :p ?v }", 20, 20),
        ("SELECT (IF(?v * ?v > 1, 1e0, 2e0) + 1e0 AS ?x) { ?s :p ?v }", 20, 20),
        ("SELECT (IF(true, ?v, 2e0) * ?v AS ?x) { ?s :p ?v }", 20, 20),
        ("SELECT (1e0 * ?v * ?v AS ?x) { ?s :p ?v }", 10, 10),
        ("SELECT (ABS(?v * 1e0) * ?v AS ?x) { ?s :p ?v }", 10, 10),
        ("SELECT (-(?v * 1e0) * ?v AS ?x) { ?s :p ?v }", 10, 10),
        ("SELECT (IF(?v > 1, ?v * 1e0, 1e0) * ?v AS ?x) { ?s :p ?v }", 10, 10),
    ],
)
def test_bounds_of_results_over_operands_of_ten(text, bits, digits):
    assert (of(text).bits(10), of(text).digits(10)) == (bits, digits)
