"""The W3C SPARQL 1.1 tests: each passes on the incremental evaluator or is refused by name, as a data file lists."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from streamgauge.compute.changes import Evaluator, refuse
from streamgauge.query import QueryError, parse_sparql
from tests.sparql.suite import Result, cases, difference

REFUSED = Path(__file__).parent / "w3c_refused.txt"


def reason(text):
    """What a refusal names, short."""
    try:
        found = refuse(parse_sparql(text))
    except QueryError as error:
        return str(error).partition("column 1: ")[2].partition(" ")[0]
    return None if found is None else found.partition(" does not do ")[2].partition(":")[0]


def test_every_w3c_test_passes_or_is_refused_by_name(shared_data):
    listed = dict(line.split("  ", 1) for line in REFUSED.read_text().splitlines() if line[:1] != "#")
    found, wrong = {}, {}
    for case in cases(shared_data / "w3c-sparql11"):
        if named := reason(case.query):
            found[case.name] = named
        elif told := evaluated(case):
            wrong[case.name] = told
    assert not wrong
    assert found == listed


def evaluated(case):
    """Half of the data comes, all of it comes, the half goes: what differs then; nothing is left when all has gone."""
    evaluator = Evaluator(parse_sparql(case.query))
    half = case.data[: len(case.data) // 2]
    evaluator.change(half, ())
    evaluator.change(case.data, half)
    rows = tuple(Counter(evaluator.solutions()).elements())
    told = difference(replace(case.expected, ordered=False), Result(case.expected.kind, evaluator.variables, rows))
    evaluator.change((), case.data)
    assert not any(evaluator.remembered().values()), case.name
    return told
