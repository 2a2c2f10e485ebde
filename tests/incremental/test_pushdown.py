"""Conditions inside a pattern: where they are tested, and that the answers stay the same by the definition."""

from collections import Counter
from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import given

from streamgauge.incremental.evaluator import KeptAnswer
from streamgauge.incremental.pushdown import MAX_SIZE, decided_by_right, pushed
from streamgauge.model import algebra as al
from streamgauge.query import parse_sparql
from streamgauge.query.printer import expression, sparql
from streamgauge.query.traversal import below_filters, parts
from streamgauge.sparql.algebra import Dataset, answer
from streamgauge.sparql.bgp import IndexedGraph
from tests.examples import examples
from tests.incremental.evaluation import Evaluator
from tests.sparql import draw


def conditions_of_leaves(where):
    """The predicates of the first triple patterns, each with the conditions that are tested in their joins."""
    requests = {}

    def leaf(request):
        predicate = request.bgp.patterns[0].predicate.removeprefix("<urn:").removesuffix(">")
        requests[predicate] = [*map(expression, request.conditions)]
        return dict

    KeptAnswer(parse_sparql(f"PREFIX : <urn:> SELECT * {{ {where} }}"), leaf, names=(), ranked=True)
    return requests


INSIDE = {
    "?o :p ?v BIND(?v * 2 + 1 AS ?f) FILTER(?f > 9)": {"p": ["(((?v * 2) + 1) > 9)"]},
    "?o :p ?v BIND(STR(?v) AS ?f) FILTER(?v > 9)": {"p": ["(?v > 9)"]},
    "?o :p ?v BIND(?v * 2 AS ?f) BIND(?f + 1 AS ?g) FILTER(?g > 9)": {"p": ["(((?v * 2) + 1) > 9)"]},
    "?o :p ?v BIND(?v * 2 AS ?f) FILTER(?f > 9 && ?f < 12)": {"p": ["((?v * 2) > 9)", "((?v * 2) < 12)"]},
    "?o :p ?v OPTIONAL { ?o :q ?w } FILTER(?v > 9)": {"p": ["(?v > 9)"], "q": []},
    "?o :p ?v OPTIONAL { ?o :q ?v ; :r ?w } FILTER(?v > 9)": {"p": ["(?v > 9)"], "q": []},
    "?o :p ?v OPTIONAL { ?o :q ?w FILTER(?w > 9) }": {"p": [], "q": ["(?w > 9)"]},
    "?o :p ?v OPTIONAL { ?o :q ?v ; :r ?w FILTER(?v > 9) }": {"p": [], "q": ["(?v > 9)"]},
    "?o :p ?v MINUS { ?o :q ?w } FILTER(?v > 9)": {"p": ["(?v > 9)"], "q": []},
    "{ ?o :p ?v } UNION { ?o :q ?v ; :r ?w } FILTER(?v > 9)": {"p": ["(?v > 9)"], "q": ["(?v > 9)"]},
    "{ SELECT DISTINCT ?v { ?o :p ?v } } FILTER(?v > 9)": {"p": ["(?v > 9)"]},
    "?o :p ?v FILTER(?v IN (1, 2))": {"p": ["(?v IN (1, 2))"]},
}


@pytest.mark.parametrize("where", INSIDE)
def test_a_condition_is_tested_with_the_triples_that_decide_it(where):
    assert conditions_of_leaves(where) == INSIDE[where]


ABOVE = {
    "?w is unbound where the optional side is": "?o :p ?v OPTIONAL { ?o :q ?w } FILTER(?w > 9)",
    "the left ?w may be unbound": "{ ?o :p ?v } UNION { ?o :p ?w } OPTIONAL { ?o :q ?w } FILTER(?w > 9)",
    "it reads the left side": "?o :p ?v OPTIONAL { ?o :q ?w FILTER(?v > 9) }",
    "an error in BIND would have no variable": "?o :p ?v BIND(?v * 2 AS ?f) FILTER(?v > 9 || BOUND(?f))",
    "the expression would be there twice": "?o :p ?v BIND(?v * 2 AS ?f) FILTER(?f > 9 || ?f < 2)",
    "it would become large": f"?o :p ?v BIND({' + '.join(['?v'] * MAX_SIZE)} AS ?f) FILTER(?f > 9)",
    "a long list is charged row by row": "?o :p ?v FILTER(?v IN (1, 2, 3, 4, 5, 6, 7))",
    "the range is cut before it": "{ SELECT ?v { ?o :p ?v } ORDER BY ?v LIMIT 3 } FILTER(?v > 9)",
}


@pytest.mark.parametrize("reason", ABOVE)
def test_a_condition_that_the_rows_decide_is_tested_with_them(reason):
    assert not any(conditions_of_leaves(ABOVE[reason]).values())


def test_rows_that_cannot_meet_are_not_kept():
    query = "PREFIX : <urn:> SELECT * { ?o :p ?v OPTIONAL { ?o :q ?w FILTER(?w = :hall) } FILTER(?v = :one) }"
    evaluator = Evaluator(parse_sparql(query))
    evaluator.change([(f"<urn:{at}>", "<urn:p>", "<urn:two>") for at in range(9)], ())
    evaluator.change([(f"<urn:{at}>", "<urn:q>", "<urn:room>") for at in range(9)], ())
    assert not any(evaluator.remembered().values())


def pushed_everywhere(pattern):
    """The pattern with all conditions pushed, step by step, as far as they go."""
    if isinstance(pattern, al.Filter):
        pattern, rest = pushed(*reversed(below_filters(pattern)))
        return reduce(lambda inner, condition: al.Filter(condition, inner), rest, _below(pattern))
    return _below(decided_by_right(pattern) if isinstance(pattern, al.LeftJoin) else pattern)


def _below(pattern):
    return parts(pattern, pushed_everywhere, lambda tree: tree)


@examples(120, prove=5000)
@given(draw.queries(draw.OPERATORS), draw.triples())
def test_answers_stay_those_of_the_definition(form, triples):
    dataset = Dataset(IndexedGraph(triples))
    changed = replace(form, pattern=pushed_everywhere(form.pattern))
    assert Counter(answer(changed, dataset)) == Counter(answer(form, dataset)), sparql(form)
