"""The definition on the W3C's SPARQL 1.1 evaluation tests: every answer is theirs, and what is refused is listed."""

from functools import cache
from pathlib import Path

import pytest

from streamgauge.formats.canonical import Canonical, parse_term
from streamgauge.model.algebra import Select
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.terms import Row, is_literal
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Arrival
from streamgauge.semantics.evaluate import TRIPLE_COLUMNS, Snapshot
from streamgauge.semantics.refusal import RefusedError, undefined, volatile
from tests.sparql.suite import Case, Result, cases, difference
from tests.sparql.test_suite import FROM_IS_REFUSED

ANY = Window(1, 1)
CANONICAL = Canonical()
REFUSED = {
    "functions/rand01",
    "functions/struuid01",
    "functions/uuid01",
    "functions/uuid02",
}
"""Functions that give another value each time: no recorded answer can be compared."""


form_of = cache(parse_sparql)


def snapshot_of(case: Case) -> tuple[Snapshot, tuple[tuple[Arrival, ...], ...]]:
    """The definition's evaluator for a test, and the test's data as contents of windows."""
    windows = [StreamWindow("urn:s", ANY), *(StreamWindow("urn:s", ANY, name[1:-1]) for name in case.graphs)]
    contents = [(Arrival("urn:s", 0, None, triples),) for triples in (case.data, *case.graphs.values())]
    return Snapshot(ContinuousQuery(form_of(case.query), tuple(windows))), tuple(contents)


def result(case: Case, variables: tuple[str, ...], rows: tuple[Row, ...]) -> Result:
    form = form_of(case.query)
    kind = "solutions" if isinstance(form, Select) else "triples" if variables == TRIPLE_COLUMNS else "boolean"
    return Result(kind, variables, tuple(tuple(map(_canonical, row)) for row in rows), case.expected.ordered)


def _canonical(term: str | None) -> str | None:
    """Literals as the suite writes the results that it expects."""
    return CANONICAL.term(parse_term(term)) if term is not None and is_literal(term) else term


@pytest.fixture(scope="module")
def suite(shared_data: Path) -> list[Case]:
    return [case for case in cases(shared_data / "w3c-sparql11") if case.name not in FROM_IS_REFUSED]


@pytest.mark.slow
def test_every_answer_of_the_definition_is_the_suites(suite: list[Case]):
    wrong = {}
    refused = set()
    for case in suite:
        snapshot, contents = snapshot_of(case)
        try:
            rows = snapshot.at(0).rows(contents)
        except RefusedError:
            refused.add(case.name)
            continue
        told = difference(case.expected, result(case, snapshot.variables, rows))
        if told:
            wrong[case.name] = told
    assert wrong == {}
    assert refused == REFUSED


def test_a_verdict_is_refused_for_values_that_differ_each_time_only(suite: list[Case]):
    forms = {case.name: form_of(case.query) for case in suite}
    assert {name for name, form in forms.items() if undefined(form) or volatile(form)} == REFUSED
