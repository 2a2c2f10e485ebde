"""The closure over all states at once is in each state the closure of the facts that stand in that state."""

from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.terms import RDF_TYPE
from streamgauge.reasoning import Rules, read_rules
from streamgauge.reasoning.lifetimes import closure_of_states
from tests.reasoning.naive import closure
from tests.reasoning.ontology import AXIOMS, LARGER, triples
from tests.reasoning.test_closure import FACTS, LARGER_FACTS

STATES = 4
masks = st.dictionaries(st.sampled_from(FACTS), st.integers(1, 2**STATES - 1), max_size=10)


@given(st.sets(st.sampled_from(AXIOMS), max_size=7), masks, st.sampled_from(["named", "full"]))
def test_each_state_has_its_own_closure(axioms, facts, extent):
    rules = read_rules(triples("\n".join(sorted(axioms))), extent)
    result = closure_of_states(rules, facts, STATES)
    for state in range(STATES):
        there = {fact for fact, mask in facts.items() if mask >> state & 1}
        assert {fact for fact, mask in result.items() if mask >> state & 1} == closure(rules, there)
    assert all(0 < mask < 2**STATES for mask in result.values())


larger_masks = st.dictionaries(st.sampled_from(LARGER_FACTS), st.integers(1, 2**STATES - 1), max_size=6)


@settings(max_examples=30)
@given(st.sets(st.sampled_from(LARGER), min_size=1, max_size=6), larger_masks, st.booleans(), st.booleans())
def test_with_every_construct_of_owl_2_rl_each_state_has_its_own(axioms, facts, same_as, subsumption):
    rules = read_rules(triples("\n".join(sorted(axioms))), "named", same_as=same_as, subsumption=subsumption)
    result = closure_of_states(rules, facts, STATES)
    for state in range(STATES):
        there = {fact for fact, mask in facts.items() if mask >> state & 1}
        assert {fact for fact, mask in result.items() if mask >> state & 1} == closure(rules, there)


def test_a_derived_fact_stands_while_all_of_a_body_does():
    rules = read_rules(triples(":p a owl:TransitiveProperty ."))
    one, two, both = (tuple(f"<urn:t:{name}>" for name in f"{a}p{b}") for a, b in ("uv", "vw", "uw"))
    assert closure_of_states(rules, {one: 0b0111, two: 0b1110}, STATES) == {one: 0b0111, two: 0b1110, both: 0b0110}
    assert closure_of_states(rules, {one: 0b0001, two: 0b1000}, STATES) == {one: 0b0001, two: 0b1000}


def test_derivations_add_up():
    rules = read_rules(triples(":A rdfs:subClassOf :C . :B rdfs:subClassOf :C ."))
    a, b, c = (("<urn:t:u>", RDF_TYPE, f"<urn:t:{name}>") for name in "ABC")
    assert closure_of_states(rules, {a: 0b001, b: 0b100}, STATES)[c] == 0b101


def test_without_rules_facts_are_as_they_were():
    facts = dict.fromkeys(FACTS[:3], 1)
    assert closure_of_states(Rules(), facts, 1) == facts
