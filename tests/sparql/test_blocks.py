"""Blocks give what triple patterns joined one by one give, in any order; graphs that change are as new ones."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.algebra import BGP, Call, Expression, TriplePattern, Var
from streamgauge.model.terms import Term, Triple
from streamgauge.sparql import blocks
from streamgauge.sparql.bgp import IndexedGraph
from streamgauge.sparql.blocks import Block, Solution
from streamgauge.sparql.expression import condition
from tests.examples import examples

NODES = ["<urn:a>", "<urn:b>", "<urn:c>", '"1"', '"2"']
PREDICATES = ["<urn:p>", "<urn:q>"]
VARIABLES = [Var(name) for name in ("x", "y", "z", "w", "_:b")]
TRIPLES = st.tuples(st.sampled_from(NODES[:3]), st.sampled_from(PREDICATES), st.sampled_from(NODES))
PATTERNS = st.builds(
    TriplePattern,
    st.sampled_from([*VARIABLES, *NODES[:1]]),
    st.sampled_from([*PREDICATES * 2, VARIABLES[0]]),
    st.sampled_from([*VARIABLES, *NODES[3:4]]),
)
CONDITIONS: list[Expression] = [
    Call("=", (VARIABLES[0], VARIABLES[1])),
    Call("!=", (VARIABLES[1], VARIABLES[3])),
    Call("!", (Call("BOUND", (VARIABLES[2],)),)),
    Call("ISLITERAL", (VARIABLES[2],)),
    Call("=", ('"1"', '"1"')),
]


def one_by_one(patterns: list[TriplePattern], graph: list[Triple], start: Solution) -> list[Solution]:
    """The solutions that extend one: each triple tried for each pattern, in the order of the text."""
    results = [start]
    for pattern in patterns:
        nodes = (pattern.subject, pattern.predicate, pattern.object)
        following = []
        for solution in results:
            for triple in graph:
                bound = dict(solution)
                if all(_agrees(node, term, bound) for node, term in zip(nodes, triple, strict=True)):
                    following.append(bound)
        results = following
    return results


def _agrees(node: object, term: Term, bound: Solution) -> bool:
    return bound.setdefault(node.name, term) == term if isinstance(node, Var) else node == term


def bag(solutions: list[Solution]) -> Counter[frozenset[tuple[str, Term]]]:
    visible = ({name: term for name, term in solution.items() if not name.startswith("_:")} for solution in solutions)
    return Counter(frozenset(item.items()) for item in visible)


@examples(suite=60, prove=5000)
@given(
    st.lists(PATTERNS, min_size=1, max_size=5),
    st.lists(TRIPLES, max_size=14),
    st.lists(st.sampled_from(CONDITIONS), max_size=2),
    st.booleans(),
    st.sampled_from([1, 3]),
)
def test_a_block_gives_what_its_patterns_give_one_by_one(patterns, triples, conditions, repeated, first):
    graph = triples if repeated else list(dict.fromkeys(triples))
    expected = [
        solution
        for solution in one_by_one(patterns, graph, {})
        if all(condition(entry)(solution, None) for entry in conditions)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "LAZY_ROWS", first)
        patch.setattr(blocks, "CHUNK_ROWS", 4)
        block = Block(BGP(tuple(patterns)), IndexedGraph(triples, repeated), {}, conditions=conditions)
        assert bag(list(block.solutions({}))) == bag(expected)


@examples(suite=40, prove=5000)
@given(st.lists(PATTERNS, min_size=1, max_size=3), st.lists(TRIPLES, max_size=10), st.sampled_from(NODES))
def test_a_block_extends_a_solution(patterns, triples, term):
    graph = list(dict.fromkeys(triples))
    start = {"y": term, "elsewhere": "<urn:e>"}
    block = Block(BGP(tuple(patterns)), IndexedGraph(triples), {}, bound=start)
    assert bag(list(block.solutions(start))) == bag(one_by_one(patterns, graph, start))


def test_what_is_left_is_evaluated_once_for_solutions_that_agree(monkeypatch):
    """The second half of a join over 3 sensors with 40 values each is evaluated for 3 sensors, not for 120 values."""
    sensor = [(f"<urn:o{n}>", "<urn:by>", f"<urn:s{n % 3}>") for n in range(120)]
    value = [(f"<urn:o{n}>", "<urn:value>", f'"{n}"') for n in range(120)]
    patterns = [
        TriplePattern(Var(one), predicate, Var(other))
        for one, predicate, other in (
            ("a", "<urn:by>", "s"), ("a", "<urn:value>", "v"), ("b", "<urn:by>", "s"), ("b", "<urn:value>", "w")
        )
    ]  # fmt: skip
    looked = 0
    candidates = blocks._candidates

    def counted(*arguments):
        get = candidates(*arguments)

        def look(row):
            nonlocal looked
            looked += 1
            return get(row)

        return look

    monkeypatch.setattr(blocks, "_candidates", counted)
    monkeypatch.setattr(blocks, "LAZY_ROWS", 1)
    solutions = list(Block(BGP(tuple(patterns)), IndexedGraph(sensor + value), {}).solutions({}))
    assert len(solutions) == 3 * 40 * 40
    assert looked < 600


@examples(suite=60, prove=5000)
@given(st.lists(TRIPLES, max_size=12), st.lists(st.lists(TRIPLES, max_size=8), max_size=4), st.booleans(), st.data())
def test_a_graph_that_changes_is_as_a_new_one(triples, changes, repeated, data):
    positions = [(), (0,), (2,), (0, 2), (0, 1, 2)]
    graph, held = IndexedGraph(triples, repeated), list(triples)
    for more in changes:
        if data.draw(st.booleans(), "looked at before"):
            for place in positions:
                graph.index(place)
                graph.of("<urn:p>").index(place)
            assert graph.nodes is not None
        graph.extend(more)
        held += more
        gone = data.draw(st.lists(st.sampled_from(sorted(set(held))), unique=True, max_size=6) if held else st.just([]))
        graph.discard(gone)
        if repeated:
            for triple in gone:
                held.remove(triple)
        else:
            held = [triple for triple in dict.fromkeys(held) if triple not in gone]
        new = IndexedGraph(held, repeated)
        assert Counter(graph.triples) == Counter(new.triples)
        assert graph.nodes == new.nodes
        for one, other in ((graph, new), *((graph.of(name), new.of(name)) for name in PREDICATES)):
            for place in positions:
                assert _counted(one.index(place)) == _counted(other.index(place))


def _counted(index):
    return {key: Counter(triples) for key, triples in index.items() if triples}
