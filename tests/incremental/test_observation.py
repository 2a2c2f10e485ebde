"""The plan of a query: operators in words, what they count while they are watched, nothing when they are not."""

import inspect
from collections import Counter
from importlib import import_module
from itertools import count
from pkgutil import walk_packages
from textwrap import dedent

import pytest

from streamgauge import incremental
from streamgauge.incremental.evaluator import OperatorTree
from streamgauge.incremental.observation import NAMES, PlanWatch, plan_steps
from streamgauge.incremental.operators import Operator, Tap
from streamgauge.query.parser import parse_sparql
from tests.incremental.evaluation import Evaluator

PLANS = {
    "SELECT ?s WHERE { ?s <urn:p> ?o FILTER(?o > 2) }": "triple patterns: ?s <urn:p> ?o . FILTER(?o > 2)",
    "SELECT ?s (COUNT(*) AS ?n) WHERE { ?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?v } FILTER(?v > ?o) } GROUP BY ?s": """
        project
         bind
          group
           filter: (?v > ?o)
            optional, minus or exists, per key
             triple patterns: ?s <urn:p> ?o .
             triple patterns: ?s <urn:q> ?v .""",
    "SELECT DISTINCT ?s WHERE { { ?s <urn:p> ?o } UNION { ?s <urn:q>+ ?o } }": """
        distinct
         project
          union
           project
            triple patterns: ?s <urn:p> ?o .
           path
            reachable nodes
             distinct
              triple patterns: _:bpath0 <urn:q> _:bpath1 .
             distinct
              project
               distinct again""",
}


def evaluator(text):
    return Evaluator(parse_sparql(text))


@pytest.mark.parametrize("text", PLANS)
def test_operators_stand_above_what_they_read(text):
    steps = plan_steps(evaluator(text).tree.root)
    shown = [
        " " * step.depth + step.name + (f": {step.detail}" if step.detail else " again" if step.shared else "")
        for step in steps
    ]
    assert "\n".join(shown) == dedent(PLANS[text]).strip()


def test_a_watched_query_counts_and_answers_as_before():
    text = list(PLANS)[1]
    evaluated, plain = evaluator(text), evaluator(text)
    ticks = count(0, 10)
    watch = PlanWatch(evaluated.tree, lambda: next(ticks))
    triples = [(f"<urn:{n}>", f"<urn:{'pq'[n % 2]}>", f'"{n}"') for n in range(6)]
    triples += [("<urn:0>", "<urn:q>", f'"{n}"') for n in range(9)]
    changes = []
    for at, triple in enumerate(triples):
        if at == 3:
            watch.start()
        if at == len(triples) - 3:
            before = [step.counts.pulls for step in watch.steps]
            watch.stop()
        changes.append(evaluated.change([triple], ()))
        assert changes[-1] == plain.change([triple], ())
    assert any(changes)
    assert before == [len(triples) - 6] * len(watch.steps)
    assert [step.counts.pulls for step in watch.steps] == before
    by_name = Counter()
    for step in watch.steps:
        by_name[step.name] += step.counts.rows
        assert "pull" not in vars(step.operator) or step.name == "triple patterns"
        assert step.counts.cpu >= 10 * step.counts.pulls
    assert by_name["triple patterns"] == len(triples) - 6
    assert watch.steps[-1].kept is None
    assert sum(step.kept or 0 for step in watch.steps) > 0


def test_every_operator_has_a_name():
    results = set()
    for module in walk_packages(incremental.__path__, f"{incremental.__name__}."):
        if not module.name.endswith("__main__"):
            for name, kind in inspect.getmembers(import_module(module.name), inspect.isclass):
                if "pull" in dir(kind) and kind not in (Operator, OperatorTree, Tap):
                    results.add(name)
    assert results - {"Matching"} | {"LeafSource"} == set(NAMES)
