"""Where solutions exist: spans of ranks, compared with every content from a first rank to a last one."""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from random import Random

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.oracle.judging.lifetimes import (
    ALWAYS,
    NotMonotoneError,
    TimedQuery,
    branches,
    minimal,
    reached,
    signed,
    spans_of,
)
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Arrival
from tests.notation import STREAM, term, triples

Span = tuple[int, int]
CONTENTS = list(combinations_with_replacement(range(8), 2))
"""From a rank to another, both included."""


def inside(span: Span, content: Span) -> bool:
    return content[0] <= span[0] and span[1] <= content[1]


@pytest.mark.parametrize(
    ("arrivals", "spans"),
    [
        ([[4, 9], [7]], ((4, 7), (7, 9))),
        ([[3], [5], [4]], ((3, 5),)),
        ([[2]], ((2, 2),)),
        ([], ((ALWAYS, -1),)),  # in every content
        ([[1, 2], [1, 2]], ((1, 1), (2, 2))),
        ([[1, 6], [3, 4]], ((1, 3), (4, 6))),
    ],
)
def test_a_solution_is_inside_where_one_arrival_of_each_triple_is(arrivals, spans):
    assert spans_of(arrivals) == spans


def test_triples_that_came_in_more_than_256_ways_are_not_tried():
    assert spans_of([range(16), range(16)]) == tuple((at, at) for at in range(16))
    with pytest.raises(NotMonotoneError, match="came 257 ways"):
        spans_of([[3], range(257)])


def drawn(random: Random, count: int) -> list[Span]:
    pairs = (sorted((random.randrange(8), random.randrange(8))) for _ in range(count))
    return [(first, last) for first, last in pairs]


@pytest.mark.parametrize("seed", range(30))
def test_weights_of_spans_count_what_a_content_holds(seed: int) -> None:
    random = Random(seed)
    spans = drawn(random, random.randrange(1, 6))
    least = minimal(iter(spans))
    assert list(least) == sorted(set(least))
    assert not any(one != other and inside(one, other) for one in least for other in least)
    for content in CONTENTS:
        holds = any(inside(span, content) for span in spans)
        assert any(inside(span, content) for span in least) is holds
        assert sum(weight for span, weight in signed(least) if inside(span, content)) == holds


@pytest.mark.parametrize("seed", range(30))
def test_numbers_are_reached_by_the_members_that_a_content_holds(seed: int) -> None:
    random = Random(seed)
    members = [minimal(iter(drawn(random, random.randrange(1, 4)))) for _ in range(random.randrange(5))]
    numbers = sorted(random.sample(range(1, 6), random.randrange(4)))
    weights = list(reached(members, numbers))
    for content in CONTENTS:
        held = sum(any(inside(span, content) for span in spans) for spans in members)
        counted = sum(weight for span, weight in weights if inside(span, content))
        assert counted == sum(number <= held for number in numbers)


def timed(text: str, shown: Sequence[str] = ("s",), static: str = "", name: str | None = None) -> TimedQuery:
    form = parse_sparql(f"PREFIX : <urn:> SELECT * {{ {text} }}")
    windows = (StreamWindow(STREAM, Window(5, 5), name),)
    pattern = form.pattern.pattern
    return TimedQuery(ContinuousQuery(form, windows, None, tuple(triples(static))), pattern, shown)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("?s :p ?o BIND(BNODE() AS ?b)", "times and fresh terms"),
        ("?s :p ?o FILTER(isBlank(BNODE(STR(?o))))", "times and fresh terms"),
        ("?s :p ?o BIND(NOW() AS ?t)", "times and fresh terms"),
        ("?s :p+ ?o", "paths and triple terms with variables"),
        ("?s :p ?o OPTIONAL { ?s :q ?v }", "LeftJoin in the query"),
        ("?s :p ?o MINUS { ?s :q ?v }", "Minus in the query"),
        ("?s :p ?o FILTER EXISTS { ?s :q ?v }", "EXISTS in the query"),
        ("?s :p ?o BIND(EXISTS { ?s :q ?v } AS ?e)", "EXISTS in the query"),
        ("GRAPH ?g { ?s :p ?o }", "Graph in the query"),
        ("GRAPH :other { ?s :p ?o }", "graphs other than the window's"),
        ("{ SELECT ?s { ?s :p ?o } }", "Project in the query"),
    ],
)
def test_queries_whose_solutions_do_not_only_grow_are_told(text, reason):
    with pytest.raises(NotMonotoneError, match=f"^{reason}$"):
        timed(text, name="urn:w")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("?s :p ?o", 1),
        ("{ ?s :p ?o } UNION { ?s :q ?o }", 2),
        ("{ ?s :p ?o } UNION { ?s :q ?o } { ?s :r ?v } UNION { ?s :t ?v } UNION { ?s :u ?v }", 6),
        ("VALUES ?s { :a :b } { ?s :p ?o } UNION { ?s :q ?o } FILTER(?o > 1)", 2),
    ],
)
def test_union_is_spread_over_what_is_around_it(text, count):
    assert len(branches(parse_sparql(f"PREFIX : <urn:> SELECT * {{ {text} }}").pattern.pattern)) == count


def found(query: TimedQuery, *contents: str) -> list[tuple[tuple[str | None, ...], tuple[Span, ...]]]:
    """The solutions over arrivals of these triples, one arrival for each text, with their spans."""
    arrived = tuple(Arrival(STREAM, at, None, tuple(triples(text))) for at, text in enumerate(contents))
    ranks: dict[tuple[str, str, str], list[int]] = {}
    for at, arrival in enumerate(arrived):
        for triple in arrival.triples:
            ranks.setdefault(triple, []).append(at)
    result = query.solutions(arrived, ranks)
    rows = [result.rows[number] for number in result.row.tolist()]
    assert len(set(result.rows)) == len(result.rows)
    return sorted(zip(rows, result.spans, strict=True), key=repr)


def test_solutions_have_the_spans_of_their_triples():
    a, b = term("a"), term("b")
    assert found(timed("?s :p ?o ; :q ?v"), "a p 1", "b p 1. b q 1", "a q 2", "a p 1") == [
        ((a,), ((0, 2), (2, 3))),
        ((b,), ((1, 1),)),
    ]
    assert found(timed("?s :p ?o", ("o", "none")), "a p 1. b p 1") == [((term("1"), None), ((0, 0),))] * 2
    assert found(timed("?s :p [ :q ?v ]", ("v",)), "a p b", "b q 1") == [((term("1"),), ((0, 1),))]


def test_static_data_are_in_every_content_and_in_no_named_window():
    a = term("a")
    assert found(timed("?s :p ?o ; :q ?v", static="a q 9"), "", "a p 1") == [((a,), ((1, 1),))]
    assert found(timed("GRAPH :w { ?s :p ?o } ?s :q ?v", static="a q 9. a p 1", name="urn:w"), "a q 9", "a p 1") == [
        ((a,), ((1, 1),))
    ]
    assert found(timed("?s :q ?v", static="a q 9"), "b p 1") == [((a,), ((ALWAYS, -1),))]
