"""Parts of a pattern under DISTINCT that decide only whether a solution is there: as EXISTS they change no answer."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental import Evaluator
from streamgauge.incremental.plan import disconnected, stars, witnessed
from streamgauge.incremental.rewrite import Normaliser
from streamgauge.model import algebra as al
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import every_pattern
from tests.examples import examples
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


def pattern(text):
    form = parse_sparql(f"PREFIX : <urn:> SELECT DISTINCT {text}")
    made = Normaliser().pattern(form.pattern)
    assert isinstance(made, al.Distinct)
    return made.pattern


@pytest.mark.parametrize("text", PARTED)
def test_parts_that_no_other_part_needs_are_asked_for(text):
    made, wished = (al.Select(each, ()) for each in (witnessed(pattern(text)), pattern(PARTED[text])))
    assert sparql(made) == sparql(wished)


@pytest.mark.parametrize("text", WHOLE)
def test_what_is_shown_compared_or_joined_by_a_subject_stays(text):
    assert witnessed(pattern(text)) == pattern(text)


def test_stars_are_parts_that_share_no_more_than_objects():
    block = parse_sparql(
        "SELECT * { ?s <urn:a> ?r ; <urn:b> ?t . ?o <urn:a> ?r . ?t <urn:c> ?u . ?r ?p ?q . ?x ?p ?y }"
    )
    found = next(each for each in every_pattern(block.pattern) if isinstance(each, al.BGP))
    assert sorted(len(part.patterns) for part in stars(found)) == [6]
    block = parse_sparql("SELECT * { ?s <urn:a> ?r ; <urn:b> ?t . ?o <urn:a> ?r . ?t <urn:c> ?u . ?x <urn:d> ?y }")
    found = next(each for each in every_pattern(block.pattern) if isinstance(each, al.BGP))
    assert sorted(len(part.patterns) for part in stars(found)) == [1, 1, 3]
    assert sorted(len(part.patterns) for part in disconnected(found)) == [1, 4]


FACTS = st.tuples(
    st.sampled_from("abcd"),
    st.sampled_from(["in", "note", "to", "value"]),
    st.sampled_from(["<urn:a>", "<urn:b>", '"1"']),
).map(lambda drawn: (f"<urn:{drawn[0]}>", f"<urn:{drawn[1]}>", drawn[2]))
HISTORIES = st.lists(
    st.tuples(st.lists(FACTS, max_size=8), st.integers(0, 9), st.randoms(use_true_random=False)), min_size=1, max_size=5
)


@pytest.mark.slow
@examples(60, prove=6000)
@given(st.sampled_from([*PARTED, *WHOLE]), HISTORIES)
def test_changes_are_those_of_the_definition(text, history):
    form = parse_sparql(f"PREFIX : <urn:> SELECT DISTINCT {text}")
    evaluator, total = Evaluator(form), Counter()
    for there, delta in play(evaluator, history):
        total.update(delta)
        assert defined(form, there) == evaluator.solutions(), sparql(form)
        assert {row: count for row, count in total.items() if count} == evaluator.solutions()
    assert not any(evaluator.remembered().values()), evaluator.remembered()
