"""OPTIONAL, MINUS and EXISTS over variables that may be unbound, and over keys with many rows: changes one by one.

Few terms, so that a key has many rows on both sides; the definition is the algebra over what is there.
"""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.evaluator import KeptAnswer
from streamgauge.incremental.operators import Index, LooseIndex
from streamgauge.incremental.rewrite import Normaliser
from streamgauge.incremental.window_joins import WindowJoins
from streamgauge.model import algebra as al
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import every_pattern
from streamgauge.sparql.algebra import answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from tests.examples import examples
from tests.incremental.evaluation import Evaluator
from tests.incremental.test_evaluator import play

TERMS = [f"<urn:{name}>" for name in "abc"]
LINKS = [f"<urn:{name}>" for name in "pqr"]
TRIPLES = st.tuples(st.sampled_from(TERMS), st.sampled_from(LINKS), st.sampled_from(TERMS))
HISTORIES = st.lists(
    st.tuples(st.lists(TRIPLES, max_size=9), st.integers(0, 9), st.randoms(use_true_random=False)),
    min_size=1,
    max_size=5,
)
BLOCKS = st.builds(
    lambda subject, link, end: f"{subject} {link} {end} .",
    st.sampled_from(["?x", "?y", "?z", "?w"]),
    st.sampled_from(LINKS),
    st.sampled_from(["?x", "?y", "?z", "?w", "<urn:a>"]),
)
CONDITIONS = st.sampled_from(["", "", "FILTER(?x != ?z)", "FILTER(?y = <urn:a> || !BOUND(?w))", "FILTER(BOUND(?z))"])


def _part(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        inner,
        st.builds("OPTIONAL {{ {} {} }}".format, inner, CONDITIONS),
        st.builds("OPTIONAL {{ {} {} }}".format, inner, CONDITIONS),
        st.builds("MINUS {{ {} }}".format, inner),
        st.builds("FILTER EXISTS {{ {} {} }}".format, inner, CONDITIONS),
        st.builds("FILTER NOT EXISTS {{ {} }}".format, inner),
        st.builds("{{ {} }} UNION {{ {} }}".format, inner, inner),
        st.builds("{{ {} OPTIONAL {{ {} }} }}".format, inner, inner),
    )


GROUPS = st.lists(_part(st.one_of(BLOCKS, BLOCKS, _part(BLOCKS))), min_size=2, max_size=4).map(" ".join)


def defined(form: al.Select, triples: set[tuple[str, str, str]]) -> Counter[tuple[str | None, ...]]:
    return Counter(answer(form, Dataset(IndexedGraph(triples))))


@pytest.mark.slow
@examples(15, prove=4000)
@given(GROUPS, HISTORIES)
def test_changes_are_those_of_the_definition(group, history):
    form = parse_sparql(f"SELECT * {{ ?x <urn:p> ?y . {group} }}")
    evaluator, total = Evaluator(form), Counter()
    for there, delta in play(evaluator, history):
        total.update(delta)
        assert all(delta.values())
        assert defined(form, there) == evaluator.solutions(), sparql(form)
        assert {row: count for row, count in total.items() if count} == evaluator.solutions()
    assert not any(evaluator.remembered().values()), evaluator.remembered()


UNIONS = st.builds(
    "{{ {} }} UNION {{ {} }} {} {}".format,
    BLOCKS,
    st.one_of(
        BLOCKS, st.builds("{{ {} }} UNION {{ {} }}".format, BLOCKS, BLOCKS), st.builds("{} {}".format, BLOCKS, BLOCKS)
    ),
    st.one_of(st.just(""), BLOCKS),
    st.one_of(CONDITIONS, st.builds("FILTER EXISTS {{ {} }}".format, BLOCKS)),
)


@pytest.mark.slow
@examples(60, prove=4000)
@given(UNIONS, HISTORIES)
def test_unions_that_leave_variables_unbound_are_those_of_the_definition(unions, history):
    """Triple patterns are joined with each branch; each solution is there as often as a branch has it."""
    form = parse_sparql(f"SELECT * {{ ?x <urn:p> ?y . {unions} }}")
    evaluator = Evaluator(form)
    for there, _ in play(evaluator, history):
        assert defined(form, there) == evaluator.solutions(), sparql(form)


GROUPED = [
    "?x <urn:p> ?y OPTIONAL {{ ?x <urn:q> ?z }} FILTER {} {{ ?w <urn:r> ?z . ?v <urn:p> ?z }}",
    "?x <urn:p> ?y OPTIONAL {{ ?x <urn:q> ?z }} FILTER {} {{ ?w <urn:r> ?z ; <urn:p> ?y }}",
    "?x <urn:p> ?y OPTIONAL {{ ?x <urn:q> ?z }} FILTER {} {{ ?w <urn:r> ?y OPTIONAL {{ ?y <urn:q> ?z }} }}",
    "?x <urn:p> ?y OPTIONAL {{ ?x <urn:q> ?z }} FILTER(?y = <urn:a> || {} {{ ?w <urn:r> ?z }})",
    "?x <urn:p> ?y OPTIONAL {{ ?x <urn:q> ?z }} MINUS {{ ?w <urn:r> ?v OPTIONAL {{ ?w <urn:q> ?z }} }}",
    "?x <urn:p> ?y OPTIONAL {{ ?x <urn:q> ?z }} MINUS {{ ?x <urn:r> ?v OPTIONAL {{ ?v <urn:q> ?z }} }}",
]


@pytest.mark.slow
@examples(120, prove=4000)
@given(st.sampled_from(GROUPED), st.sampled_from(["EXISTS", "NOT EXISTS"]), HISTORIES)
def test_what_groups_of_rows_meet_is_what_each_of_them_meets(pattern, kind, history):
    """Rows of the right side are there several times: what is looked for in it is projected away."""
    form = parse_sparql(f"SELECT * {{ {pattern.format(kind)} }}")
    evaluator = Evaluator(form)
    for there, _ in play(evaluator, history):
        assert defined(form, there) == evaluator.solutions(), sparql(form)
    assert not any(evaluator.remembered().values()), evaluator.remembered()


@pytest.mark.parametrize(
    ("group", "apart"),
    [
        ("?s <urn:in> ?r { ?r <urn:floor> ?f } UNION { ?s <urn:extra> ?f }", True),
        (
            "{ ?r <urn:floor> ?f } UNION { ?s <urn:extra> ?f } UNION { ?t <urn:p> ?s } ?s <urn:in> ?r FILTER(?f > 1)",
            True,
        ),
        ("?s <urn:in> ?r { ?s <urn:floor> ?f } UNION { ?s <urn:extra> ?f }", False),
        ("?s <urn:in> ?r { ?s <urn:p>* ?f } UNION { ?r <urn:extra> ?f }", False),
        (
            "?s <urn:in> ?r { ?r <urn:floor> ?f } UNION { ?s <urn:extra> ?f } OPTIONAL { ?f <urn:p> ?s } ?s <urn:q> ?t",
            False,
        ),
    ],
)
def test_triple_patterns_are_joined_with_each_branch_of_a_union(group, apart):
    pattern = Normaliser().pattern(parse_sparql(f"SELECT * {{ {group} }}").pattern)
    assert (not any(isinstance(each, al.Join) for each in every_pattern(pattern))) is apart


HUB = ("OPTIONAL", "FILTER EXISTS", "FILTER NOT EXISTS", "MINUS")
SHAPES = [
    *(f"?x <urn:p> ?k {each} {{ ?o <urn:q> ?k }}" for each in HUB),
    *(f"?x <urn:p> ?k {each} {{ ?o <urn:q> ?k FILTER(?o != ?x) }}" for each in HUB[:3]),
    "?x <urn:p> ?k OPTIONAL { ?x <urn:q> ?o } OPTIONAL { ?o <urn:q> ?u } OPTIONAL { ?o <urn:p> ?v }",
    "?x <urn:p> ?k OPTIONAL { ?x <urn:q> ?o } MINUS { ?o <urn:q> ?k }",
    "?x <urn:p> ?k OPTIONAL { ?x <urn:r> ?o } FILTER EXISTS { ?u <urn:q> ?o }",
    "?x <urn:p> ?k OPTIONAL { ?x <urn:r> ?o } MINUS { ?u <urn:q> ?t OPTIONAL { ?u <urn:r> ?o } }",
    "?x <urn:p> ?k OPTIONAL { ?x <urn:q> ?o } { ?o <urn:q> ?u } UNION { ?u <urn:q> ?k }",
]


def played(pattern: str, rows: int) -> int:
    """The rows and pairs that 60 changes of a hub of so many rows look at; the last answer is right."""
    form, random = parse_sparql(f"SELECT * {{ {pattern} }}"), Random(7)
    pool, effort = WindowJoins(()), EvaluationBudget()
    kept = KeptAnswer(form, pool.leaf, effort=effort)
    enter, leave = pool.feeds(None)
    there = [_at_hub(f"s{n}") for n in range(rows)]
    others = [(f"<urn:o{n}>", "<urn:q>", "<urn:hub>") for n in range(2)]
    enter([*others, *(triple for pair in there for triple in pair)])
    kept.settle()
    before = effort.left
    for n in range(60):
        leave(there.pop(random.randrange(rows)))
        there.append(_at_hub(f"n{n}"))
        enter(there[-1])
        kept.settle()
    assert defined(form, {*others, *(triple for pair in there for triple in pair)}) == kept.solutions()
    return before - effort.left


def _at_hub(name: str) -> tuple[tuple[str, str, str], ...]:
    return (f"<urn:{name}>", "<urn:p>", "<urn:hub>"), (f"<urn:{name}>", "<urn:q>", f"<urn:t{name}>")


@pytest.mark.parametrize("pattern", SHAPES)
def test_a_change_of_one_row_of_a_hub_costs_the_same_however_many_rows_there_are(pattern):
    assert played(pattern, 240) <= 2 * played(pattern, 40) + 100


def test_an_index_of_loose_columns_says_all_that_it_holds():
    """Rows (k, a, b) by k; a and b may be unbound on either side."""
    index = LooseIndex(lambda row: row[:1], (1, 2), (1, 2))
    index.add({("k", "1", "2"): 1, ("k", "1", None): 2, ("k", None, None): 3, ("l", "1", "2"): 4})

    def met(*row):
        return sorted(count for bag in index.meeting(row[:1], row) for count in bag.values())

    assert met("k", "1", "2") == [1, 2, 3]
    assert met("k", "9", "2") == [3]
    assert met("k", None, "2") == met("k", None, None) == [1, 2, 3]
    assert met("k", "1", "9") == [2, 3]
    assert sum(len(bag) for part in index.parts() for bag in part.values()) > 2 * len(index)
    index.add({("k", "1", "2"): -1, ("k", None, None): -3, ("k", "1", None): 1})
    assert met("k", None, "2") == [3]
    assert (index.count(("k", "1", None)), index.count(("k", "1", "2")), len(index)) == (3, 0, 2)
    index.add({("k", "1", None): -3, ("l", "1", "2"): -4})
    assert (met("k", None, None), len(index), list(index.parts())) == ([], 0, [{}])


@pytest.mark.parametrize("seed", range(5))
def test_an_index_has_the_rows_of_each_key(seed):
    random, index, there = Random(seed), Index(lambda row: row[:1]), Counter()
    for _ in range(60):
        change = Counter()
        for _ in range(random.choice((1, 2, 30))):
            row = (random.choice("abcdef"), random.choice("xy"))
            change[row] += 1 if not there[row] + change[row] or random.random() < 0.4 else -1
        change = {row: count for row, count in change.items() if count}
        index.add(change)
        there.update(change)
        rows = {row: count for row, count in there.items() if count}
        assert len(index) == len(rows)
        assert bool(index) is bool(rows)
        for key in "abcdef":
            own = {row: count for row, count in rows.items() if row[0] == key}
            assert index.get((key,)) == own
            assert ((key,) in index) is bool(own)
        assert all(index.count(row) == rows.get(row, 0) for row in there)
        assert not any(len(bag) < 2 for bag in index.bags.values())
