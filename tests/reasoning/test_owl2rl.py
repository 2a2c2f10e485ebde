"""Worked examples of each rule of OWL 2 RL (owl2rl.toml) and of rules beyond it (beyond_rl.toml), with deletions."""

import tomllib
from pathlib import Path

import pytest

from streamgauge.reasoning import VIOLATES, Closure, read_rules
from tests.reasoning.naive import closure
from tests.reasoning.ontology import triples

TABLE = tomllib.loads(Path(__file__).with_name("owl2rl.toml").read_text(encoding="utf-8"))
BEYOND = tomllib.loads(Path(__file__).with_name("beyond_rl.toml").read_text(encoding="utf-8"))["case"]
TABLES_4_TO_9 = TABLE["rules"].split()


def facts(case, name):
    return set(triples(case.get(name, "")))


@pytest.mark.parametrize("case", TABLE["case"], ids=lambda case: f"{case['rule']} {case.get('about', '')}".strip())
def test_what_follows_is_what_the_rule_says(case):
    rules = read_rules(triples(case["ontology"]), **dict.fromkeys(case.get("with", ()), True))
    kept = Closure(rules)
    stated, given = facts(case, "states"), facts(case, "facts")
    assert set(kept.facts.match(None, None, None)) == stated
    kept.change(given, ())
    match = set(kept.facts.match(None, None, None))
    violations = {fact for fact in match if fact[1] == VIOLATES}
    assert match - violations == stated | given | facts(case, "derived")
    assert {subject for subject, _, _ in violations} == {f"<urn:t:{name[1:]}>" for name in case.get("violates", ())}
    assert match == closure(rules, given)
    for fact in sorted(given):
        given.discard(fact)
        kept.change((), (fact,))
        assert set(kept.facts.match(None, None, None)) == closure(rules, given)
    assert set(kept.facts.match(None, None, None)) == stated


@pytest.mark.parametrize("case", BEYOND, ids=lambda case: case["rule"])
def test_what_follows_beyond_owl_2_rl(case):
    test_what_follows_is_what_the_rule_says(case | {"with": ["beyond"]})


def test_every_rule_of_the_tables_has_an_example_or_a_reason():
    assert len(TABLES_4_TO_9) == len(set(TABLES_4_TO_9)) == 78
    shown = {case["rule"] for case in TABLE["case"]}
    assert set(TABLES_4_TO_9) - shown == set(TABLE["without"])
    assert shown - set(TABLES_4_TO_9) == {"facts"}


def test_a_violation_names_the_rule_and_the_axiom():
    kept = Closure(read_rules(triples(":A owl:disjointWith :B .")))
    kept.change(triples(":u a :A , :B ."), ())
    assert list(kept.facts.match(None, VIOLATES, None)) == [
        ("<urn:t:u>", VIOLATES, '"cax-dw: <urn:t:A> owl:disjointWith <urn:t:B>"')
    ]
