"""The closure by its definition: every rule on everything, again and again, until nothing is new."""

from collections.abc import Iterable, Iterator

from streamgauge.model.terms import Triple
from streamgauge.reasoning.rules import Rule, Rules, bindings, instance, is_unnamed, passes


def closure(rules: Rules, facts: Iterable[Triple]) -> set[Triple]:
    """All that follows from the facts, them included."""
    results = set(facts)
    while new := {triple for rule in rules.rules for triple in _heads(rule, results)} - results:
        results |= new
    return {fact for fact in results if not is_unnamed(fact[2])}


def _heads(rule: Rule, facts: set[Triple]) -> Iterator[Triple]:
    open_: list[dict] = [{}]
    for pattern in rule.body:
        open_ = [result for bound in open_ for fact in facts if (result := bindings(pattern, fact, bound)) is not None]
    return (head for bound in open_ if passes(rule, bound) and (head := instance(rule.head, bound)) is not None)
