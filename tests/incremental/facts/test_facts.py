"""Standing facts against a plain set of triples, with indexes that are made in the middle."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental.facts.facts import Facts
from streamgauge.model.terms import RDF_TYPE

TERMS = [f"<urn:{n}>" for n in range(7)]
PROPERTIES = ["<urn:p>", "<urn:q>"]
drawn = st.lists(
    st.tuples(st.sampled_from(TERMS[:3]), st.sampled_from(PROPERTIES), st.sampled_from(TERMS)), max_size=60
)


@given(drawn, st.integers(0, 60))
def test_pairs_come_and_go_in_every_index(triples, when):
    facts, model = Facts(), set()
    for number, (subject, name, end) in enumerate(triples):
        of = facts.property_of(name)
        if number == when:
            of.backward()
        if (subject, name, end) in model:
            of.remove(subject, end)
            model.remove((subject, name, end))
        else:
            of.add(subject, end)
            model.add((subject, name, end))
        assert of.has(subject, end) == ((subject, name, end) in model)
    for name in PROPERTIES:
        of = facts.property_of(name)
        assert sorted(of.pairs()) == sorted((s, o) for s, p, o in model if p == name)
        forward = {(one, two) for one, ends in of.out.items() for two in ends}
        assert {(one, two) for two, ones in of.backward().items() for one in ones} == forward
        assert all(of.out.values())
        assert all(of.backward().values())


@given(drawn, st.sets(st.tuples(st.sampled_from(TERMS), st.sampled_from(TERMS[:3])), max_size=9))
def test_matching_gives_what_a_scan_does(triples, members):
    facts = Facts()
    for subject, name, end in set(triples):
        facts.property_of(name).add(subject, end)
    for member, kind in members:
        facts.class_of(kind).members[member] = 0
    model = set(triples) | {(member, RDF_TYPE, kind) for member, kind in members}
    assert len(facts) == len(model)
    for item in product((None, TERMS[0], TERMS[5]), (None, RDF_TYPE, "<urn:p>", "<urn:none>"), (None, *TERMS[:2])):
        match = list(facts.match(*item))
        wanted = [t for t in model if all(one is None or one == two for one, two in zip(item, t, strict=True))]
        assert sorted(match) == sorted(wanted)
    assert all((triple in facts) == (triple in model) for triple in product(TERMS, [RDF_TYPE, *PROPERTIES], TERMS))
