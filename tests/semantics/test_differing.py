"""The definition refuses what pyoxigraph answers otherwise than the W3C's tests, and no other test of theirs."""

from pathlib import Path

from streamgauge.model.algebra import Select
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.query import parse_sparql
from streamgauge.semantics.content import Arrival
from streamgauge.semantics.differing import refuse_form
from streamgauge.semantics.evaluate import TRIPLE_COLUMNS, Snapshot
from streamgauge.semantics.refusal import RefusedError
from tests.sparql.suite import Case, Result, cases, difference
from tests.sparql.test_suite import DIFFERS, FROM_IS_REFUSED

ANY = Window(1, 1)


def answer(case: Case) -> Result | None:
    """What the definition says on a test of the suite; ``None`` when it refuses."""
    form = parse_sparql(case.query)
    if refuse_form(form):
        return None
    windows = [StreamWindow("urn:s", ANY), *(StreamWindow("urn:s", ANY, name[1:-1]) for name in case.graphs)]
    contents = [(Arrival("urn:s", 0, None, triples),) for triples in (case.data, *case.graphs.values())]
    snapshot = Snapshot(ContinuousQuery(form, tuple(windows)))
    try:
        rows = snapshot.rows(tuple(contents))
    except RefusedError:
        return None
    kind = "solutions" if isinstance(form, Select) else "triples" if snapshot.variables == TRIPLE_COLUMNS else "boolean"
    return Result(kind, snapshot.variables, rows, case.expected.ordered)


def test_it_refuses_exactly_where_pyoxigraph_differs(shared_data: Path):
    suite = [case for case in cases(shared_data / "w3c-sparql11") if case.name not in FROM_IS_REFUSED]
    answers = {case.name: answer(case) for case in suite}
    assert {name for name, found in answers.items() if found is None} == DIFFERS
    wrong = {case.name: difference(case.expected, found) for case in suite if (found := answers[case.name]) is not None}
    assert {name: why for name, why in wrong.items() if why} == {}
