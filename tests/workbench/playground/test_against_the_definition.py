"""The playground's reports and differences are those of the definition, for the conformance cases and every field."""

from collections import Counter, defaultdict
from dataclasses import replace
from enum import StrEnum
from itertools import islice

import pytest

from streamgauge.model.semantics import R2S, Report, Semantics
from streamgauge.oracle.judging.judge import first_time
from streamgauge.semantics.arrivals import origins
from streamgauge.semantics.definition import expected
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError
from streamgauge.semantics.static_data import as_printed
from streamgauge.suites.conformance.cases import load
from streamgauge.workbench.rooms.playground.comparison import ReportChange, compared
from streamgauge.workbench.rooms.playground.evaluation import RowMemory, evaluated
from streamgauge.workbench.rooms.playground.examples import FIRST, case_state, example, examples
from streamgauge.workbench.rooms.playground.fields import CONTROLS
from streamgauge.workbench.rooms.playground.result import result
from tests.examples import proving

CASES = load()
PARTS = 6
SHARE = 1 if proving() else 3
"""Of the changes of a case every so manieth is made; the cases take turns, so that each field is changed in many."""
STRATEGIES = [
    {Report.WINDOW_CLOSE},
    {Report.WINDOW_CLOSE, Report.NON_EMPTY},
    {Report.WINDOW_CLOSE, Report.CONTENT_CHANGE},
    {Report.CONTENT_CHANGE},
    {Report.CONTENT_CHANGE, Report.NON_EMPTY},
]


def bags(reports):
    """Instant -> the bags of rows sent at it."""
    counts = defaultdict(Counter)
    for instant, rows in reports:
        counts[instant][frozenset(rows.items())] += 1
    return counts


def said(reports):
    """Reports as (instant, rows); the order of rows is nobody's."""
    return [(report.due.instant, Counter(report.rows)) for report in reports]


def due(case, semantics):
    """The definition's reports, (instant, rows)."""
    streamed = [element for element in case.stream if element.stream in case.query.streams]
    t0 = origins(semantics, case.query.windows, first_time(streamed))[0]
    return said(expected(case.stream, case.query, semantics, case.advance, t0))


def changed(semantics):
    """The semantics with each field at each of its other values."""
    for control in CONTROLS:
        value = getattr(semantics, control.name)
        if control.name == "report":
            others = [frozenset(item) for item in STRATEGIES]
        elif control.name == "r2s_able":
            others = [frozenset(R2S)]
        elif isinstance(value, bool):
            others = [not value]
        elif isinstance(value, StrEnum):
            others = list(type(value))
        else:
            others = {"t0": [2], "time_unit": [2], "lateness": [1], "since": [5]}.get(control.name, [3])
        for other in others:
            if other != value:
                try:
                    yield control.name, replace(semantics, **{control.name: other})
                except ValueError:
                    continue


def holds(number):
    """One-field changes of a case's semantics: differences are what the definition's reports say."""
    case = CASES[number]
    memory = RowMemory(case.query)

    def again(semantics):
        return evaluated(case.query, semantics, case.stream, case.advance, memory)

    a = again(case.semantics)
    mine = due(case, case.semantics)
    assert said(a.reports) == mine
    looked = 0
    for name, semantics in islice(changed(case.semantics), number % SHARE, None, SHARE):
        try:
            theirs = due(case, semantics)
        except (RefusedError, OutOfOrderError) as refusal:
            with pytest.raises(type(refusal)):
                again(semantics)
            continue
        b = again(semantics)
        assert said(b.reports) == theirs
        exactly(compared(a, b, again), bags(mine), bags(theirs), name)
        looked += 1
    return looked


def exactly(pairs, mine, theirs, name):
    """The pairs say all that differs between two lists of reports, and nothing else."""
    sides = {"a": defaultdict(Counter), "b": defaultdict(Counter)}
    for pair in pairs:
        rows = {}
        for side, report in (("a", pair.a), ("b", pair.b)):
            if report is not None:
                rows[side] = frozenset(Counter(report.rows).items())
                sides[side][pair.instant][rows[side]] += 1
        match pair.change:
            case ReportChange.SAME:
                assert rows["a"] == rows["b"]
                continue
            case ReportChange.CHANGES:
                assert rows["a"] != rows["b"]
            case ReportChange.APPEARS:
                assert list(rows) == ["b"]
            case ReportChange.VANISHES:
                assert list(rows) == ["a"]
        assert pair.field == name
        assert pair.why.endswith(".")
    assert sides["a"] == mine
    assert sides["b"] == theirs
    for instant in {*mine, *theirs}:
        same = sum(pair.change is ReportChange.SAME for pair in pairs if pair.instant == instant)
        assert bool(same) == bool(mine[instant] & theirs[instant]), instant


@pytest.mark.slow
@pytest.mark.drawn
@pytest.mark.parametrize("part", range(PARTS))
def test_changing_a_field_changes_the_reports_that_the_definition_says(part):
    cases = range(part, len(CASES), PARTS)
    assert sum(map(holds, cases)) > 20 * len(cases) / SHARE


@pytest.mark.slow
def test_every_case_opens_as_it_is():
    for case in CASES:
        outcome = result(case_state(case))
        assert outcome.troubles == (), case.name
        assert outcome.stream.elements == case.stream
        assert replace(outcome.query, name=None) == case.query
        semantics = as_printed(case.query, case.semantics, case_state(case).dialect)
        assert replace(outcome.a.declared, name="") == replace(semantics, name="")
        assert said(outcome.a.reports) == due(case, case.semantics)


def test_every_case_has_an_address_of_its_own():
    names = [example.name for example in examples()]
    assert len(set(names)) == len(names) == len(CASES) + 9
    assert {case.slug for case in CASES} < set(names)


def test_a_case_opens_beside_a_profile():
    case = CASES[0]
    outcome = result(example(case.slug, "rspql"))
    assert outcome.troubles == ()
    assert outcome.b.declared.name == "rspql"


def test_of_two_fields_that_differ_the_one_behind_each_difference_is_named():
    both = replace(FIRST, b={"profile": "rspql", "borders": "(o, c]", "t0": 5000})
    outcome = result(both)
    assert {pair.field for pair in outcome.pairs if pair.change is not ReportChange.SAME} == {"borders", "t0"}
    vanished = next(pair for pair in outcome.pairs if pair.change is ReportChange.VANISHES)
    assert (vanished.instant, vanished.field) == (10_000, "t0")
    assert "no full window has come by 10,000 ms" in vanished.why
    periodic = result(replace(FIRST, b={"profile": "rspql", "report": ["periodic"], "period": 2500}))
    assert {pair.field for pair in periodic.pairs if pair.change is ReportChange.APPEARS} == {"report and period"}


def test_every_field_of_the_semantics_has_a_control():
    assert {control.name for control in CONTROLS} == set(Semantics.__dataclass_fields__) - {"name", "sources"}
