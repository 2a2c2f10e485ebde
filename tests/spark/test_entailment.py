"""Facts over intervals and what rules derive of them: at every instant the closure by its definition, and `Closure`."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from streamgauge.model.terms import RDF_TYPE
from streamgauge.reasoning import VIOLATES, Closure, Rules, read_rules
from streamgauge.spark.entailment import entailed
from tests.examples import examples
from tests.reasoning.naive import closure
from tests.reasoning.ontology import AXIOMS, triples
from tests.reasoning.test_closure import FACTS, THINGS

STEPS = 6
CASES = 25
KINDS = [("case", pa.int32()), *((name, pa.string()) for name in ("subject", "predicate", "object"))]
KINDS += [(name, pa.int32()) for name in ("lo", "hi")]

drawn_facts = st.lists(st.sampled_from(FACTS), max_size=5)
history = st.lists(st.tuples(drawn_facts, drawn_facts), min_size=1, max_size=STEPS)
histories = st.lists(history, min_size=CASES, max_size=CASES)
axioms = st.sets(st.sampled_from(AXIOMS), min_size=2, max_size=7)
few = examples(1, prove=40, phases=[Phase.explicit, Phase.generate])


def table(spark, rows, cased=True):
    kinds = KINDS if cased else KINDS[1:]
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return spark.createDataFrame(
        pa.table({name: pa.array(column, kind) for (name, kind), column in zip(kinds, columns, strict=True)})
    )


def held(changes):
    """The explicit facts after each publish and delete."""
    now: set = set()
    results = []
    for added, removed in changes:
        now = (now - set(removed)) | set(added)
        results.append(now)
    return results


def spans(changes):
    """Rows (fact, lo, hi) of a history, some of them cut where nothing changes, some of them twice."""
    results = []
    after = held(changes)
    for fact in set().union(*after):
        for at, now in enumerate(after):
            if fact in now:
                ends = [to for to in range(at, len(after)) if all(fact in after[k] for k in range(at, to + 1))]
                results.append((*fact, at, ends[-1] if at % 2 else ends[0]))
    return results


def by_instant(rows, instants):
    """The facts of each instant; intervals of a fact must be disjoint and maximal."""
    by: dict = {}
    for *fact, low, high in rows:
        by.setdefault(tuple(fact), []).append((low, high))
    for item in by.values():
        assert all(high + 1 < low for (_, high), (low, _) in pairwise(sorted(item)))
    return [{f for f, item in by.items() if any(lo <= at <= hi for lo, hi in item)} for at in range(instants)]


def agree(spark, texts, extent, drawn):
    rules = read_rules(triples("\n".join(sorted(texts))), extent)
    facts = table(spark, [(case, *row) for case, changes in enumerate(drawn) for row in spans(changes)])
    told: dict = {case: [] for case in range(len(drawn))}
    for row in entailed(spark, facts, rules).select("case", "subject", "predicate", "object", "lo", "hi").collect():
        told[row["case"]].append(tuple(row)[1:])
    for case, changes in enumerate(drawn):
        kept = Closure(rules)
        instants = by_instant(told[case], len(changes))
        for (added, removed), explicit, instant in zip(changes, held(changes), instants, strict=True):
            kept.apply(added, removed)
            assert instant == set(kept.facts.match(None, None, None)) == closure(rules, explicit)


@few
@given(axioms, st.sampled_from(["named", "full"]), histories)
def test_every_instant_of_drawn_histories(tiny, texts, extent, drawn):
    agree(tiny, texts, extent, drawn)


@pytest.mark.prove
def test_all_axioms_at_once(tiny):
    ring = [(THINGS[n], "<urn:t:p>", THINGS[(n + 1) % 4]) for n in range(4)]
    typed = [(THINGS[0], RDF_TYPE, "<urn:t:C>"), (THINGS[1], "<urn:t:p>", '"text"')]
    agree(tiny, AXIOMS, "full", [[(ring, ()), (typed, ring[:1]), ((), ring[1:3]), (ring, typed)], [((), ())]])


def test_a_derived_fact_holds_where_all_of_its_body_does_over_all_derivations(tiny):
    rules = read_rules(triples(":p a owl:TransitiveProperty ."))
    a, b, c, d = THINGS
    p = "<urn:t:p>"
    rows = [(a, p, b, 0, 5), (b, p, c, 3, 9), (a, p, d, 6, 8), (d, p, c, 6, 6), (a, p, d, 9, 9)]
    results = {tuple(row) for row in entailed(tiny, table(tiny, rows, cased=False), rules).collect()}
    assert results == {(a, p, b, 0, 5), (b, p, c, 3, 9), (a, p, d, 6, 9), (d, p, c, 6, 6), (a, p, c, 3, 6)}


def test_without_rules_facts_are_only_joined_up(tiny):
    fact = FACTS[0]
    rows = [(*fact, 0, 1), (*fact, 2, 2), (*fact, 5, 5), (*fact, 5, 5)]
    result = entailed(tiny, table(tiny, rows, cased=False), Rules()).collect()
    assert sorted(map(tuple, result)) == [(*fact, 0, 2), (*fact, 5, 5)]


def test_no_facts(tiny):
    rules = read_rules(triples("\n".join(AXIOMS)))
    assert entailed(tiny, table(tiny, []), rules).collect() == []


@pytest.mark.prove  # a plan of all kinds of rules, which Spark takes long to make
def test_equality_tests_of_literals_hidden_classes_and_stated_facts(tiny):
    axioms = """
        :A rdfs:subClassOf _:r . _:r owl:onProperty :p ; owl:hasValue :u ; rdfs:subClassOf :B .
        :q a owl:FunctionalProperty . :r rdfs:range xsd:integer . :C owl:oneOf ( :v ) . :C owl:disjointWith :B .
    """
    rules = read_rules(triples(axioms), same_as=True)
    u, v, w, x = THINGS
    facts = [(w, RDF_TYPE, "<urn:t:A>"), (w, "<urn:t:q>", u), (w, "<urn:t:q>", v), (x, "<urn:t:r>", '"text"')]
    rows = [(*fact, 0, 0) for fact in facts]
    cases = [(n, *row) for n in range(2) for row in rows[n:]]
    results = [tuple(row)[:4] for row in entailed(tiny, table(tiny, cases), rules).collect()]
    assert set(results) == {(n, *fact) for n in range(2) for fact in closure(rules, facts[n:])}
    assert len(set(results)) == len(results)
    assert {subject for _, subject, predicate, _ in results if predicate == VIOLATES} == {x}


def test_rounds_are_told(tiny):
    rules, told = read_rules(triples(":p a owl:TransitiveProperty .")), []
    chain = [(f"<urn:t:{n}>", "<urn:t:p>", f"<urn:t:{n + 1}>", 0, 0) for n in range(9)]
    result = entailed(tiny, table(tiny, chain, cased=False), rules, lambda *round_: told.append(round_))
    assert result.count() == 45
    assert told == [(1, 8), (2, 13), (3, 14), (4, 1), (5, 0)]
