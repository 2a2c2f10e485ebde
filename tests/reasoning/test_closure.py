"""The closure after any changes is the one that its definition gives of the explicit facts."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.formats.streams import read_triples
from streamgauge.incremental.budget import BOUNDLESS, TooMuchError
from streamgauge.model.terms import RDF_TYPE
from streamgauge.reasoning import Closure, Rules, read_rules
from tests.examples import examples
from tests.reasoning.naive import closure
from tests.reasoning.ontology import AXIOMS, LARGER, triples

THINGS = [f"<urn:t:{name}>" for name in "uvwx"]
FACTS = [
    *((one, f"<urn:t:{of}>", two) for one in THINGS for of in "pqr" for two in THINGS),
    *((one, RDF_TYPE, f"<urn:t:{of}>") for one in THINGS for of in "ABCD"),
    *((one, "<urn:t:p>", '"text"') for one in THINGS),
]
drawn_facts = st.lists(st.sampled_from(FACTS), max_size=8)
changes = st.lists(st.tuples(drawn_facts, drawn_facts), min_size=1, max_size=8)


@given(st.sets(st.sampled_from(AXIOMS), max_size=7), changes, st.sampled_from(["named", "full"]))
def test_it_equals_its_definition_after_every_change(axioms, changes, extent):
    rules = read_rules(triples("\n".join(sorted(axioms))), extent)
    kept = Closure(rules)
    explicit: set = set()
    shown: set = set()
    for added, removed in changes:
        came, went = kept.change(added, removed)
        explicit = (explicit - set(removed)) | set(added)
        expected = closure(rules, explicit)
        assert set(kept.facts.match(None, None, None)) == expected
        assert (len(came), len(went)) == (len(set(came)), len(set(went)))
        assert set(came) == expected - shown
        assert set(went) == shown - expected
        assert kept.explicit == len(explicit)
        assert all(kept.is_explicit(fact) == (fact in explicit) for fact in FACTS)
        shown = expected


SAME, DIFFERENT = ("<http://www.w3.org/2002/07/owl#sameAs>", "<http://www.w3.org/2002/07/owl#differentFrom>")
LARGER_FACTS = [
    *FACTS,
    *((one, of, two) for one in THINGS for of in (SAME, DIFFERENT) for two in THINGS if one <= two),
    *(
        (one, "<urn:t:p>", value)
        for one in THINGS
        for value in ('"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '"x"')
    ),
    ("<urn:t:p>", SAME, "<urn:t:s>"),
    ("<urn:t:A>", SAME, "<urn:t:E>"),
]
drawn_larger = st.lists(st.sampled_from(LARGER_FACTS), max_size=5)


@settings(max_examples=40)
@given(
    st.sets(st.sampled_from(LARGER), min_size=1, max_size=6),
    st.lists(st.tuples(drawn_larger, drawn_larger), min_size=1, max_size=5),
    st.sampled_from(["named", "full"]),
    st.booleans(),
    st.booleans(),
)
def test_with_every_construct_of_owl_2_rl_it_equals_its_definition(axioms, changes, extent, same_as, subsumption):
    rules = read_rules(triples("\n".join(sorted(axioms))), extent, same_as=same_as, subsumption=subsumption)
    kept = Closure(rules)
    explicit: set = set()
    shown = set(kept.facts.match(None, None, None))
    assert shown == closure(rules, ())
    for added, removed in changes:
        came, went = kept.change(added, removed)
        explicit = (explicit - set(removed)) | set(added)
        expected = closure(rules, explicit)
        assert set(kept.facts.match(None, None, None)) == expected
        assert set(came) == expected - shown
        assert set(went) == shown - expected
        assert kept.explicit == len(explicit)
        shown = expected


@settings(max_examples=20)
@given(st.sets(st.sampled_from(AXIOMS), max_size=7), drawn_facts)
def test_nothing_is_left_when_all_is_removed(axioms, facts):
    kept = Closure(read_rules(triples("\n".join(sorted(axioms)))))
    came, _ = kept.change(facts, ())
    _, went = kept.change((), facts)
    assert set(came) == set(went)
    assert len(kept.facts) == 0


def test_adding_what_is_there_and_removing_what_is_not_changes_nothing():
    kept = Closure(read_rules(triples(":A rdfs:subClassOf :B .")))
    fact = ("<urn:t:u>", RDF_TYPE, "<urn:t:A>")
    derived = ("<urn:t:u>", RDF_TYPE, "<urn:t:B>")
    assert kept.change([fact, fact], ()) == ([fact, derived], [])
    assert kept.change([fact], ()) == ([], [])
    assert kept.change((), [derived]) == ([], [])
    assert kept.change([fact], [fact]) == ([], [])
    assert kept.change([derived], ()) == ([], [])
    assert kept.change((), [fact]) == ([], [fact])


def test_a_circle_does_not_hold_itself_up():
    kept = Closure(read_rules(triples(":p a owl:TransitiveProperty, owl:SymmetricProperty .")))
    ring = [(f"<urn:t:{n}>", "<urn:t:p>", f"<urn:t:{(n + 1) % 5}>") for n in range(5)]
    assert len(kept.change(ring, ())[0]) == 25
    assert kept.change((), ring[:1]) == ([], [])
    assert len(kept.change((), ring[1:2])[1]) == 25 - 16


def test_a_closure_without_rules_is_the_facts():
    kept = Closure(Rules())
    assert kept.change(FACTS[:3], ()) == (FACTS[:3], [])
    assert set(kept.facts.match(None, None, None)) == set(FACTS[:3])


@pytest.mark.prove
def test_the_closure_of_lubm_1_has_the_published_size(shared_data: Path):
    lubm = shared_data / "lubm"
    kept = Closure(read_rules(read_triples(lubm / "univ-bench.owl")))
    kept.load(read_triples(lubm / "lubm-1-0.nt.gz"))
    assert len(kept.facts) == json.loads((lubm / "counts.json").read_text())["LUBM(1,0)"]["closure"] == 137_931


CHAINED = [(f"<urn:t:{a}>", f"<urn:t:{p}>", f"<urn:t:{b}>") for a in "uvwxyz" for b in "uvwxyz" for p in "pq"]
TRANSITIVE = (
    ":p a owl:TransitiveProperty .",
    ":q a owl:TransitiveProperty .",
    ":p a owl:SymmetricProperty .",
    ":p rdfs:subPropertyOf :q .",
    ":q rdfs:subPropertyOf :p .",
    ":p owl:inverseOf :q .",
    ":p rdfs:domain :A .",
    ":p owl:propertyChainAxiom ( :q :p ) .",
)
drawn_chained = st.lists(st.sampled_from(CHAINED), max_size=8)


@pytest.mark.slow
@examples(12, prove=1000)
@given(st.sets(st.sampled_from(TRANSITIVE), min_size=1), st.lists(st.tuples(drawn_chained, drawn_chained), max_size=5))
def test_transitive_properties_edge_by_edge_equal_their_definition(axioms, changes):
    rules = read_rules(triples("\n".join(sorted(axioms))))
    kept = Closure(rules)
    explicit: set = set()
    for added, removed in changes:
        kept.change(added, removed)
        explicit = (explicit - set(removed)) | set(added)
        assert set(kept.facts.match(None, None, None)) == closure(rules, explicit)
        assert len(kept.facts) == len(closure(rules, explicit))


def state(kept: Closure) -> object:
    """All that a closure keeps of facts and of what derived them."""
    properties = [*kept.facts.properties.values(), *kept.facts.hidden_properties.values()]
    classes = [*kept.facts.classes.values(), *kept.facts.hidden.values()]
    return (
        {(of.name, pair): kept._state(of, *pair) for of in properties for pair in of.pairs()},
        {of.name: dict(of.members) for of in classes if of.members},
        {(base[0].name, *base[1:]): count for base, count in kept._derived.items()},
        kept.explicit,
        (kept._events, kept._off, kept._doubtful),
    )


@settings(max_examples=60)
@given(
    st.sets(st.sampled_from((*TRANSITIVE, *LARGER)), min_size=1, max_size=6),
    st.lists(st.sampled_from((*CHAINED, *LARGER_FACTS)), min_size=3, max_size=14),
    st.lists(st.sampled_from((*CHAINED, *LARGER_FACTS)), max_size=5),
    st.integers(0, 30),
    st.booleans(),
)
def test_a_change_that_derives_or_loses_too_much_changes_nothing(axioms, facts, more, most, same_as):
    """Whatever the bound is within a change, it is refused whole: counts, states and what is explicit are as before."""
    kept = Closure(read_rules(triples("\n".join(sorted(axioms))), same_as=same_as))
    kept.load(facts)
    for added, removed in ((more, facts[::2]), ((), facts), (more, ())):
        kept.most = most
        before = state(kept)
        try:
            kept.change(added, removed)
        except TooMuchError:
            assert state(kept) == before
        kept.most = BOUNDLESS
    kept.change((), [fact for fact in {*facts, *more} if kept.is_explicit(fact)])
    assert kept.explicit == 0


def test_a_long_chain_is_derived_once_for_each_pair():
    kept = Closure(read_rules(triples(":p a owl:TransitiveProperty .")))
    links = [(f"<urn:t:{n}>", "<urn:t:p>", f"<urn:t:{n + 1}>") for n in range(100)]
    kept.most = 100 * 99 // 2
    kept.change(links, ())
    assert len(kept.facts) == 100 * 101 // 2
    kept.most = 51 * 50
    kept.change((), links[50:51])
    assert len(kept.facts) == 50 * 51 // 2 + 49 * 50 // 2


def test_a_deletion_that_loses_too_much_is_refused_with_a_sentence():
    kept = Closure(read_rules(triples(":p a owl:TransitiveProperty .")))
    links = [(f"<urn:t:{n}>", "<urn:t:p>", f"<urn:t:{n + 1}>") for n in range(100)]
    kept.load(links)
    kept.most = 1000
    with pytest.raises(TooMuchError, match="undo more than 1000 derivations of rules: delete in smaller parts"):
        kept.change((), links[50:51])
    assert kept.change((), links[99:])[0] == []
    assert len(kept.facts) == 99 * 100 // 2
