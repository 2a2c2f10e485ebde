"""timestamp(): a call becomes a variable that the stamps bind, and pyoxigraph then knows the times."""

import pyoxigraph as ox
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamgauge.formats.canonical import to_triple
from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD, Row, Triple
from streamgauge.query import QueryError, parse_sparql
from streamgauge.query.graphs import spread
from streamgauge.query.printer import sparql
from streamgauge.query.stamps import (
    FUNCTION,
    retimed,
    stamp,
    stamped,
    stamped_predicates,
    stamps_graph,
    time_fact,
    uses_timestamp,
)
from streamgauge.query.traversal import every_expression, every_pattern, expressions
from tests.examples import examples
from tests.query.drawn import with_timestamp
from tests.sparql.draw import OPERATORS, queries, triples
from tests.sparql.suite import Case, Result, difference, evaluate, from_pyoxigraph

NOTHING = Result("solutions", (), ())

A, B, C, P, Q = (f"<urn:{name}>" for name in "abcpq")
ONE, TWO = (f'"{value}"^^<{XSD}integer>' for value in (1, 2))
ARRIVALS: tuple[tuple[Triple, int], ...] = (
    ((A, P, ONE), 100),
    ((B, P, ONE), 300),
    ((A, Q, TWO), 200),
    ((B, Q, TWO), 50),
)
STATIC: tuple[Triple, ...] = ((C, P, ONE), (C, Q, TWO))
PREDICATE, R = "<urn:streamgauge:predicate>", "<urn:r>"
WINDOW = "urn:w:w?x=1&y"


def facts(arrivals: tuple[tuple[Triple, int], ...]) -> tuple[Triple, ...]:
    return tuple(fact for triple, time in arrivals for fact in (*stamp(triple), time_fact(triple, time)))


def rows(group: str, head: str = "SELECT *") -> list[tuple[str, ...]]:
    """The sorted rows over the arrivals, in the default graph and in the window <urn:w:w..>; only local names."""
    form = parse_sparql(f"{head} {{ {group} }}")
    assert parse_sparql(sparql(form)) == form
    graphs = {
        stamps_graph(): facts(ARRIVALS),
        stamps_graph(WINDOW): facts(((triple, time + 1000) for triple, time in ARRIVALS)),  # type: ignore[arg-type]
        f"<{WINDOW}>": tuple(triple for triple, _ in ARRIVALS),
    }
    data = (*(triple for triple, _ in ARRIVALS), *STATIC)
    there = Case("stamps", "", "", data, graphs, Result("solutions", (), ()))
    for text in (sparql(stamped(form)), sparql(spread(stamped(form), (f"<{WINDOW}>",)))):
        result = sorted(map(short, evaluate(there, text).rows))
    return result


def short(row: Row) -> tuple[str, ...]:
    return tuple("-" if cell is None else cell.split('"')[1] if '"' in cell else cell[5:-1] for cell in row)


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("?s <urn:p> ?v BIND(timestamp(?v) AS ?t)", [("a", "1", "100"), ("b", "1", "300"), ("c", "1", "-")]),
        ("?s <urn:p> ?v BIND(timestamp(?s, <urn:p>, ?v) AS ?t) FILTER(?t > 100)", [("b", "1", "300")]),
        ("?s <urn:p> ?v FILTER(timestamp(?v) <= 100)", [("a", "1")]),
        ("?s <urn:p> ?v FILTER(timestamp(?s) <= 100)", [("a", "1")]),
        ("?s <urn:p> ?v FILTER(timestamp(?v) > 0 && timestamp(?v) < 200)", [("a", "1")]),
        (
            "?s <urn:p> ?v ; <urn:q> ?w FILTER(timestamp(?s, <urn:q>, ?w) < timestamp(?s, <urn:p>, ?v))",
            [("b", "1", "2")],
        ),
        ("?s <urn:p> ?v FILTER(!BOUND(?w) || timestamp(?v) > 1)", [("a", "1"), ("b", "1"), ("c", "1")]),
        ("?s <urn:p> ?v FILTER(COALESCE(timestamp(?v), 0) = 0)", [("c", "1")]),
        (
            "?s <urn:p> ?v OPTIONAL { ?s <urn:q> ?w FILTER(timestamp(?w) < timestamp(?v)) }",
            [("a", "1", "-"), ("b", "1", "2"), ("c", "1", "-")],
        ),
        ("?s <urn:p> ?v FILTER NOT EXISTS { ?s <urn:q> ?w FILTER(timestamp(?w) > timestamp(?v)) }",
         [("b", "1"), ("c", "1")]),
        ("{ ?s <urn:p> 1 } UNION { ?s <urn:q> 2 } FILTER(timestamp(?s) <= 100)", [("a",), ("b",)]),
        ("GRAPH <urn:w:w?x=1&y> { ?s <urn:p> ?v } FILTER(timestamp(?v) > 1100)", [("b", "1")]),
        ("GRAPH <urn:w:w?x=1&y> { ?s <urn:p> ?v FILTER(timestamp(?v) > 1100) }", [("b", "1")]),
        (
            "GRAPH <urn:w:w?x=1&y> { ?s <urn:p> ?v } ?s <urn:q> ?w BIND(timestamp(?v) - timestamp(?w) AS ?d)",
            [("a", "1", "2", "900"), ("b", "1", "2", "1250")],
        ),
        ("?s <urn:p> ?v MINUS { ?s <urn:q> ?w FILTER(timestamp(?w) > 100) }", [("b", "1"), ("c", "1")]),
        ("[] <urn:p> ?v FILTER(timestamp(?v) > 100)", [("1",)]),
        ("?s (<urn:p>|<urn:q>) ?v . ?s <urn:p> ?v FILTER(timestamp(?v) > 100)", [("b", "1")]),
    ],
)  # fmt: skip
def test_times(group: str, expected: list[tuple[str, ...]]) -> None:
    assert rows(group) == expected


def test_times_are_grouped_and_ordered() -> None:
    assert rows("?s <urn:p> ?v FILTER(?s != <urn:c>)", "SELECT (MAX(timestamp(?v)) AS ?t)") == [("300",)]
    form = parse_sparql(
        "SELECT ?s { ?s <urn:p> ?v } GROUP BY ?s HAVING(MIN(timestamp(?v)) > 100) ORDER BY DESC(MAX(timestamp(?v)))"
    )
    assert not uses_timestamp(stamped(form))


def test_no_call_the_same_object() -> None:
    form = parse_sparql("SELECT * { ?s ?p ?o }")
    assert not uses_timestamp(form)
    assert stamped(form) is form


def test_one_triple_is_stamped_once() -> None:
    form = parse_sparql(
        "SELECT ?s (timestamp(?o) AS ?t) { ?s ?p ?o FILTER(timestamp(?s, ?p, ?o) > 5) } ORDER BY timestamp(?o)"
    )
    assert sparql(stamped(form)).count("urn:streamgauge:time") == 1


def test_the_words_and_the_function_are_one() -> None:
    one = parse_sparql(
        "PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#> SELECT * { ?s ?p ?o FILTER(f:timestamp(?o) > 5) }"
    )
    assert one == parse_sparql("SELECT * { ?s ?p ?o FILTER(TimeStamp(?o) > 5) }")
    assert uses_timestamp(one)
    assert al.Call("TIMESTAMP", (al.Var("o"),)) in one.pattern.pattern.condition.arguments  # type: ignore[union-attr]


def test_new_variables_are_new() -> None:
    form = parse_sparql("SELECT * { ?s ?p ?_stamp0 FILTER(timestamp(?_stamp0) > 5) }")
    names = [var.name for var in al.pattern_variables(stamped(form).pattern.pattern)]  # type: ignore[union-attr]
    assert ".stamp1" in names
    assert ".stamp0" not in names


@pytest.mark.parametrize(
    ("group", "says"),
    [
        ("?s ?p ?o FILTER(timestamp(?x) > 1)", "timestamp(?x) matches no triple pattern of its group: write "),
        ("?s ?p ?o FILTER(timestamp(?s, ?p, ?x) > 1)", "matches no triple pattern of its group"),
        ("?s ?p ?o . ?a ?b ?o FILTER(timestamp(?o) > 1)", "timestamp(?o) matches several triple patterns"),
        ("?s <urn:p>+ ?o FILTER(timestamp(?o) > 1)", "matches no triple pattern of its group"),
        ("?s ?p ?o FILTER(timestamp() > 1)", "timestamp() has wrong arguments"),
        ("?s ?p ?o FILTER(timestamp(?s, ?o) > 1)", "timestamp(?s, ?o) has wrong arguments"),
        ("?s ?p ?o FILTER(timestamp(1) > 1)", "has wrong arguments: write a variable"),
        ("GRAPH ?g { ?s ?p ?o } FILTER(timestamp(?o) > 1)", "with GRAPH ?variable is not supported"),
        ("GRAPH <a:a> { ?s ?p ?o } GRAPH <a:b> { ?s ?p ?o } FILTER(timestamp(?o) > 1)", "in two places"),
        ("{ SELECT ?s { ?s ?p ?o } } FILTER(timestamp(?s) > 1)", "matches no triple pattern of its group"),
        ("?s ?p ?o FILTER EXISTS { SELECT ?s { ?s ?p ?x FILTER(timestamp(?o) > 1) } }", "matches no triple pattern"),
    ],
)  # fmt: skip
def test_refused(group: str, says: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse_sparql(f"SELECT * {{\n {group} }}")
    assert says in str(refused.value)
    assert refused.value.line == 2
    assert group[refused.value.column - 2 :].startswith("timestamp(")


@pytest.mark.slow
@examples(12, prove=2000)
@given(queries(OPERATORS).flatmap(with_timestamp), triples(), triples(max_size=4), st.integers(1, 9))
def test_a_stamp_is_what_a_function_would_say(
    form: al.Select, data: tuple[Triple, ...], static: tuple[Triple, ...], step: int
) -> None:
    """Pyoxigraph, given the function itself, is the witness; only calls with three arguments, which it can look up."""
    assume(all(len(call.arguments) == 3 for call in timestamps(form)))
    arrivals = tuple((triple, number * step % 11) for number, triple in enumerate(data))
    times = dict(arrivals)

    def known(*parts: object) -> ox.Literal | None:
        time = times.get(to_triple(ox.Triple(*parts)))  # type: ignore[arg-type]
        return None if time is None else ox.Literal(time)

    there = Case("drawn", "", "", (*data, *static), {stamps_graph(): facts(arrivals)}, NOTHING)
    functions = {ox.NamedNode(FUNCTION[1:-1]): known}
    expected = from_pyoxigraph(there.store().query(sparql(form), custom_functions=functions))
    assert difference(expected, evaluate(there, sparql(stamped(form)))) == ""


def timestamps(form: al.QueryForm) -> list[al.Call]:
    trees = (tree for pattern in every_pattern(form.pattern) for tree in expressions(pattern))
    parts = (part for tree in trees for part in every_expression(tree))
    return [part for part in parts if isinstance(part, al.Call) and part.operator == "TIMESTAMP"]


@pytest.mark.parametrize(
    ("group", "predicates"),
    [
        ("?s <urn:p> ?v FILTER(timestamp(?s, <urn:p>, ?v) > 1)", {P}),
        ("?s <urn:p> ?v . ?s <urn:q> ?w FILTER(timestamp(?v) > timestamp(?w))", {P, Q}),
        ("?s <urn:p> ?v . ?s <urn:q> ?w FILTER EXISTS { ?t <urn:r> ?v FILTER(timestamp(?t, <urn:r>, ?v) > 1) }", {R}),
        ("?s ?p ?v FILTER(timestamp(?s, ?p, ?v) > 1)", None),
        (f"GRAPH <{WINDOW}> {{ ?s <urn:p> ?v FILTER(timestamp(?v) > 1) }}", set()),
        (f"?s <urn:p> ?v FILTER(timestamp(?v) > 1) GRAPH {stamps_graph()} {{ ?f ?is ?x }}", None),
        (f"?s <urn:p> ?v FILTER(timestamp(?v) > 1) GRAPH {stamps_graph()} {{ ?f {PREDICATE} {Q} ; ^{Q}* ?x }}", None),
        (f"?s <urn:p> ?v FILTER(timestamp(?v) > 1) GRAPH {stamps_graph()} {{ ?f {PREDICATE} {Q} . ?g ?is ?x }}", None),
    ],
)
def test_the_predicates_whose_stamps_are_asked_for(group, predicates):
    assert stamped_predicates(parse_sparql(f"SELECT * {{ {group} }}"), stamps_graph()) == predicates


def test_a_time_fact_is_that_of_another_time():
    assert retimed(time_fact((A, P, ONE), 1), 20) == time_fact((A, P, ONE), 20)
