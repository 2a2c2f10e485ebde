"""Parts of a pattern that show nothing: under DISTINCT they are asked for as EXISTS, else their solutions are counted.

Neither changes an answer.
"""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental.plan import counted, disconnected, stars, witnessed
from streamgauge.incremental.rewrite import Normaliser
from streamgauge.model import algebra as al
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import every_pattern
from tests.examples import examples
from tests.incremental.evaluation import Evaluator
from tests.incremental.test_bands import typed
from tests.incremental.test_evaluator import play
from tests.incremental.test_loose import defined

PARTED = {
    "?s { ?s :in ?r . ?o :in ?r ; :note ?n }": "?s { ?s :in ?r FILTER EXISTS { ?o :in ?r ; :note ?n } }",
    "?r { ?s :in ?r . ?o :in ?r }": "?r { ?o :in ?r FILTER EXISTS { ?s :in ?r } }",
    "?s { ?s :in ?r . ?o :in ?r ; :value ?w FILTER(?w > 1) }": "?s { ?s :in ?r FILTER EXISTS { ?o :in ?r ; :value ?w "
    "FILTER(?w > 1) } }",
    "?s { ?s :in ?r ; :to ?t . ?o :in ?r . ?p :to ?t }": "?s { { ?s :in ?r ; :to ?t FILTER EXISTS { ?o :in ?r } } "
    "FILTER EXISTS { ?p :to ?t } }",
    "?s ?m { ?s :in ?r . ?o :in ?r ; :note ?n . ?q :note ?m }": "?s ?m { ?s :in ?r . ?q :note ?m FILTER EXISTS "
    "{ ?o :in ?r ; :note ?n } }",
    "?s { ?s :in ?r . ?o :note ?n }": "?s { ?s :in ?r FILTER EXISTS { ?o :note ?n } }",
}
WHOLE = [
    "?s ?o { ?s :in ?r . ?o :in ?r }",
    "?s { ?s :in ?r ; :note ?n }",
    "?s { ?s :in ?r ; :value ?v . ?o :in ?r ; :value ?w FILTER(?v > ?w) }",
    "?s { ?s :to ?o . ?o :in ?r }",
    "?s ?p { ?s :in ?r . ?o :in ?r ; :to ?q . ?p :to ?q }",
    "?s { ?s :in ?r . ?o :in ?r FILTER EXISTS { ?o :note ?n } }",
]


COUNTED = [
    "?r (COUNT(*) AS ?c) { ?s :in ?r . ?o :in ?r } GROUP BY ?r",
    "?r (SUM(?v) AS ?c) (COUNT(DISTINCT ?v) AS ?d) { ?s :in ?r ; :value ?v . ?o :in ?r ; :note ?n } GROUP BY ?r",
    "(COUNT(*) AS ?c) { ?s :in ?r . ?o :note ?n }",
    "?s { ?s :in ?r . ?o :in ?r ; :note ?n }",
    "?r (COUNT(*) AS ?c) { ?s :in ?r . ?o :in ?r ; :value ?w FILTER(?w > 0) } GROUP BY ?r HAVING(COUNT(*) > 1)",
    "?v (COUNT(*) AS ?c) { ?s :value ?v ; :in ?r . ?o :in ?r ; :value ?w FILTER(?v = ?w) } GROUP BY ?v",
    "?s ?e { ?s :in ?r . ?o :in ?r OPTIONAL { ?o :note ?e } }",
    "?r (COUNT(*) AS ?c) { ?s :in ?r . ?o :in ?r { ?o :to ?t } UNION { ?s :note ?t } } GROUP BY ?r",
]


def pattern(text):
    form = parse_sparql(f"PREFIX : <urn:> SELECT DISTINCT {text}")
    normaliser = Normaliser().pattern(form.pattern)
    assert isinstance(normaliser, al.Distinct)
    return normaliser.pattern


@pytest.mark.parametrize("text", PARTED)
def test_parts_that_no_other_part_needs_are_asked_for(text):
    made, wished = (al.Select(item, ()) for item in (witnessed(pattern(text)), pattern(PARTED[text])))
    assert sparql(made) == sparql(wished)


@pytest.mark.parametrize("text", WHOLE)
def test_what_is_shown_compared_or_joined_by_a_subject_stays(text):
    assert witnessed(pattern(text)) == pattern(text)


def test_stars_are_parts_that_share_no_more_than_objects():
    block = parse_sparql(
        "SELECT * { ?s <urn:a> ?r ; <urn:b> ?t . ?o <urn:a> ?r . ?t <urn:c> ?u . ?r ?p ?q . ?x ?p ?y }"
    )
    result = next(item for item in every_pattern(block.pattern) if isinstance(item, al.BGP))
    assert sorted(len(part.patterns) for part in stars(result)) == [6]
    block = parse_sparql("SELECT * { ?s <urn:a> ?r ; <urn:b> ?t . ?o <urn:a> ?r . ?t <urn:c> ?u . ?x <urn:d> ?y }")
    result = next(item for item in every_pattern(block.pattern) if isinstance(item, al.BGP))
    assert sorted(len(part.patterns) for part in stars(result)) == [1, 1, 3]
    assert sorted(len(part.patterns) for part in disconnected(result)) == [1, 4]


@pytest.mark.parametrize(
    ("text", "needed", "wished"),
    [
        ("?s :in ?r . ?o :in ?r", "r", True),
        ("?s :in ?r . ?o :in ?r", "s", True),
        ("?s :in ?r . ?o :in ?r", "so", False),
        ("?s :in ?r . ?o :in ?r ; :value ?w FILTER(?w > 1)", "s", True),
        ("?s :in ?r ; :value ?v . ?o :in ?r ; :value ?w FILTER(?w > ?v)", "r", False),
        ("?s :in ?r ; :to ?t", "r", False),
        ("?s :in ?r . ?o :note ?n", "", True),
    ],
)
def test_parts_that_no_other_part_needs_are_counted(text, needed, wished):
    form = parse_sparql(f"PREFIX : <urn:> SELECT * {{ {text} }}")
    block = next(item for item in every_pattern(form.pattern) if isinstance(item, al.BGP))
    conditions = [item.condition for item in every_pattern(form.pattern) if isinstance(item, al.Filter)]
    assert counted(stars(block), conditions, frozenset(needed)) is wished


def test_pairs_of_a_key_are_counted_not_made():
    """Of n subjects in one room n * n pairs are counted, and what is remembered for them does not grow."""
    form = parse_sparql("SELECT ?r (COUNT(*) AS ?c) { ?s <urn:in> ?r . ?o <urn:in> ?r ; <urn:note> ?n } GROUP BY ?r")

    def kept(subjects: int) -> int:
        evaluator = Evaluator(form)
        facts = [(f"<urn:s{n}>", f"<urn:{name}>", '"x"') for n in range(subjects) for name in ("in", "note")]
        evaluator.change(facts, ())
        assert evaluator.solutions() == {('"x"', typed("integer", subjects**2)[0]): 1}
        return sum(held for name, held in evaluator.remembered().items() if name.startswith("JoinRows"))

    assert kept(20) == kept(5) == 2


FACTS = st.tuples(
    st.sampled_from("abcd"),
    st.sampled_from(["in", "note", "to", "value"]),
    st.sampled_from(["<urn:a>", "<urn:b>", '"1"']),
).map(lambda drawn: (f"<urn:{drawn[0]}>", f"<urn:{drawn[1]}>", drawn[2]))
HISTORIES = st.lists(
    st.tuples(st.lists(FACTS, max_size=8), st.integers(0, 9), st.randoms(use_true_random=False)), min_size=1, max_size=5
)


@pytest.mark.slow
@examples(30, prove=6000)
@given(st.sampled_from([*PARTED, *WHOLE, *COUNTED]), st.sampled_from(["DISTINCT ", ""]), HISTORIES)
def test_changes_are_those_of_the_definition(text, distinct, history):
    form = parse_sparql(f"PREFIX : <urn:> SELECT {distinct}{text}")
    evaluator, total = Evaluator(form), Counter()
    for there, delta in play(evaluator, history):
        total.update(delta)
        assert defined(form, there) == evaluator.solutions(), sparql(form)
        assert {row: count for row, count in total.items() if count} == evaluator.solutions()
    assert not any(evaluator.remembered().values()), evaluator.remembered()
