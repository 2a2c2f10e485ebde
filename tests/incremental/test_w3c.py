"""The W3C SPARQL 1.1 tests: each passes on the incremental evaluator or is refused by name, as a data file lists."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.incremental import UnsupportedError, refuse
from streamgauge.query import QueryError, parse_sparql
from streamgauge.query.instants import NOW_GRAPH, now_fact
from tests.incremental.evaluation import Evaluator
from tests.sparql.suite import Result, cases, difference

REFUSED = Path(__file__).parent / "w3c_refused.txt"


def reason(text):
    """What a refusal names, short."""
    try:
        parsed = refuse(parse_sparql(text))
    except QueryError as error:
        return str(error).partition("column 1: ")[2].partition(" ")[0]
    return None if parsed is None else parsed.partition(" does not do ")[2].partition(":")[0]


def is_kept(text):
    """Whether an evaluator of the query can be made."""
    try:
        Evaluator(parse_sparql(text))
    except (QueryError, UnsupportedError):
        return False
    return True


@pytest.mark.slow
def test_every_w3c_test_passes_or_is_refused_by_name(shared_data):
    listed = dict(line.split("  ", 1) for line in REFUSED.read_text().splitlines() if line[:1] != "#")
    result, wrong = {}, {}
    for case in cases(shared_data / "w3c-sparql11"):
        if named := reason(case.query):
            result[case.name] = named
            if is_kept(case.query):
                wrong[case.name] = f"it is refused ({named}), but kept"
        elif told := evaluated(case):
            wrong[case.name] = told
    assert not wrong
    assert result == listed


def evaluated(case):
    """Half of the data comes, all of it comes, the half goes: what differs then; nothing is left when all has gone."""
    evaluator = Evaluator(parse_sparql(case.query), names=tuple(case.graphs))
    parts = [((evaluator.enter, evaluator.leave), case.data), (evaluator.feeds(NOW_GRAPH), (now_fact(0),))]
    parts += [(evaluator.feeds(name), triples) for name, triples in case.graphs.items()]
    for (enter, _), triples in parts:
        enter(triples[: len(triples) // 2])
    evaluator.settle()
    for (enter, leave), triples in parts:
        enter(triples)
        leave(triples[: len(triples) // 2])
    evaluator.settle()
    rows = tuple(Counter(evaluator.solutions()).elements())
    told = difference(replace(case.expected, ordered=False), Result(case.expected.kind, evaluator.variables, rows))
    for (_, leave), triples in parts:
        leave(triples)
    evaluator.settle()
    assert not any(evaluator.remembered().values()), case.name
    return told
