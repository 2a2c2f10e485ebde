"""Engines with faults: the parts of a query that they evaluate, the triples that matter, and that they share none."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import CQL, R2S, Borders, Changes, Counting, Due, EmptyAggregate, Report, Scope, Tick
from streamgauge.oracle.diagnosis.faulty import Simulator, aggregates, matches_query, relevant, where
from streamgauge.oracle.diagnosis.models import KEPT, Case, Stream
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, stream, triples

PREFIX = "PREFIX : <urn:> "
PLAIN = "?s :p ?v"
FILTERED = "?s :p ?v FILTER(?v > 1)"
INNER = "{ SELECT ?s (COUNT(*) AS ?n) { ?s :p ?v } GROUP BY ?s } FILTER(?n > 1)"


def body(pattern: str) -> al.Pattern:
    """The pattern of an ASK, which nothing is around."""
    return parse_sparql(f"{PREFIX}ASK {{ {pattern} }}").pattern


def query(text: str, static: str = "") -> ContinuousQuery:
    form = parse_sparql(PREFIX + text)
    return ContinuousQuery(form, (StreamWindow(STREAM, Window(5, 5)),), None, frozenset(triples(static)))


@pytest.mark.parametrize(
    ("text", "pattern", "variables", "grouped"),
    [
        ("SELECT ?s { ?s :p ?v }", PLAIN, ["s", "v"], False),
        ("ASK { ?s :p ?v }", PLAIN, ["s", "v"], False),
        ("SELECT DISTINCT ?s (?v + 1 AS ?w) { ?s :p ?v } ORDER BY ?s LIMIT 1", PLAIN, ["s", "v"], False),
        ("SELECT REDUCED ?s { ?s :p ?v FILTER(?v > 1) }", FILTERED, ["s", "v"], False),
        ("SELECT (COUNT(*) AS ?n) { ?s :p ?v }", PLAIN, ["s", "v"], True),
        ("SELECT ?s { ?s :p ?v } GROUP BY ?s", PLAIN, ["s", "v"], True),
        ("SELECT ?s (AVG(?v) + 1 AS ?m) { ?s :p ?v } GROUP BY ?s HAVING(AVG(?v) > 1)", PLAIN, ["s", "v"], True),
        ("SELECT (SUM(?v) AS ?m) { ?s :p ?v FILTER(?v > 1) } HAVING(SUM(?v) > 1)", FILTERED, ["s", "v"], True),
        (f"SELECT ?s {{ {INNER} }}", INNER, ["s", "n"], True),
        ("SELECT ?s { ?s :p [ :q ?v ] }", "?s :p [ :q ?v ]", ["s", "v"], False),
    ],
)
def test_the_pattern_of_a_query_is_below_all_that_computes_its_answer(text, pattern, variables, grouped):
    asked = query(text)
    matches = matches_query(asked).form
    assert where(asked.form) == matches.pattern.pattern
    if "[" not in pattern:  # whose names are made for each query
        assert where(asked.form) == body(pattern)
    assert sorted(matches.variables) == sorted(variables)
    assert [variable.name for variable in matches.pattern.variables] == list(matches.variables)
    assert (matches_query(asked).windows, aggregates(asked.form)) == (asked.windows, grouped)


@pytest.mark.parametrize(
    ("pattern", "content", "static", "kept"),
    [
        ("?s :p ?v", "a p 1. b q 2", "", "a p 1"),
        ("?s :p ?v", "a p 1. a p 1. a p 2", "c p 3. c q 3", "a p 1. a p 2. c p 3"),
        # b has no q, whatever the window.
        ("?s :p ?v ; :q ?w", "a p 1. b p 2. a q 3. c q 4", "", "a p 1. a q 3"),
        ("?s :p ?v ; :q ?w", "a p 1. b p 2. c q 4", "a q 3", "a p 1. a q 3"),
        ("?s :p ?v . ?t :q ?w", "a p 1. b q 2. c r 3", "", "a p 1. b q 2"),
        ("?s :p ?v OPTIONAL { ?s :q ?w }", "a p 1. b q 2. c r 3", "", "a p 1. b q 2"),
        (":a :p ?v", "a p 1. b p 2", "", "a p 1"),
        ("?s :p 2", "a p 1. b p 2", "", "b p 2"),
        ("?s ?p ?v", "a p 1. b q 2", "c r 3", "a p 1. b q 2. c r 3"),
        ("?s :q ?v", "a p 1", "", ""),
    ],
)
def test_a_triple_may_matter_where_its_subject_has_all_that_is_asked_of_it(pattern, content, static, kept):
    asked = query(f"SELECT * {{ {pattern} }}", static)
    assert relevant(asked, triples(content)) == frozenset(triples(kept))


def test_every_triple_may_matter_to_a_path():
    assert relevant(query("SELECT ?s { ?s :p+ ?v }"), triples("a p 1. b q 2")) is None
    assert relevant(query("SELECT ?s { ?s ?p ?v . ?v :q/:r ?w }"), triples("a p 1")) is not None


TEXT = "0: a p 1. b p 2. | 3: a p 3. | 3: c q 1. | 6: a p 3. c p 1. | 9: b p 4. | 14: a p 1."
ELEMENTS = stream(TEXT)
CHANGE, FILLED = frozenset({Report.CONTENT_CHANGE}), frozenset({Report.WINDOW_CLOSE, Report.NON_EMPTY})


def later(_case: Case, due: DueReport) -> DueReport:
    return replace(due, views=tuple(replace(view, first=view.first + 3) for view in due.views))


def plain_case() -> Case:
    asked = query("SELECT ?s ?v { ?s :p ?v }")
    return Case(asked, replace(RSPQL, r2s_able=frozenset(CQL)), Stream(ELEMENTS), 20, 0)


def asking(text: str) -> Callable[[Case], Case]:
    return lambda case: case.asking(query(text))


def over(*windows: Window) -> Callable[[Case], Case]:
    return lambda case: case.asking(
        replace(case.query, windows=tuple(StreamWindow(STREAM, window) for window in windows))
    )


COUNTED = "SELECT (COUNT(*) AS ?n) { ?s :q ?v }"
VARIED: dict[str, Callable[[Case], Case]] = {
    "as declared": lambda case: case,
    "t0": lambda case: replace(case, t0=2),
    "horizon": lambda case: replace(case, advanced_to=11),
    "stream": lambda case: case.on(Stream(ELEMENTS[1:])),
    "window": over(Window(10, 5)),
    "two windows": over(Window(5, 5), Window(10, 5)),
    "count": over(Window(3, 2, "count")),
    "another query": asking("SELECT ?s ?v { ?s :q ?v }"),
    "counted": asking(COUNTED),
    "counted, no row": lambda case: asking(COUNTED)(case).under(empty_aggregate=EmptyAggregate.NO_ROW),
    "stamped": asking("SELECT ?s (timestamp(?s, :p, ?v) AS ?t) { ?s :p ?v }"),
    "Istream": lambda case: case.under(r2s=R2S.ISTREAM),
    "Dstream": lambda case: case.under(r2s=R2S.DSTREAM),
    "borders": lambda case: case.under(borders=Borders.OPEN_CLOSED),
    "changes": lambda case: case.under(report=CHANGE, tick=Tick.TUPLE),
    "batches": lambda case: case.under(report=CHANGE, tick=Tick.BATCH),
    "arrivals": lambda case: case.under(report=CHANGE, tick=Tick.BATCH, changes=Changes.ARRIVALS, scope=Scope.RANGE),
    "filled": lambda case: replace(case.under(report=FILLED), advanced_to=40),
    "silent": lambda case: replace(case.under(notify_empty=False), advanced_to=40),
    "as sets": lambda case: case.under(answers=Counting.SET),
    "of bags": lambda case: case.under(content=Counting.BAG, report=CHANGE, tick=Tick.ELEMENT),
    "last": lambda case: over(Window(10, 5), Window(5, 5))(case.under(due=Due.LAST)),
    "late ones out": lambda case: case.under(lateness=2),
    "scoped": lambda case: case.scoped(later),
    "scoped twice": lambda case: case.scoped(later).scoped(later),
    "held": lambda case: case.holding(lambda inside, _number: inside[-1:]),
    "held otherwise": lambda case: case.holding(lambda inside, _number: inside[:1]),
    "kept": lambda case: replace(case, keeps=StreamWindow(STREAM, Window(5, 5), KEPT)),
    "gated": lambda case: replace(case, gate=lambda seen: len(seen[-1]) > 2),
    "answered": lambda case: case.answering(lambda rows: rows[:1]),
    "ruled": lambda case: replace(case, report_rules=(lambda reports: reports[::2],)),
}
"""Engines that differ in one thing, whose reports a single simulator computes."""


def told(simulator: Simulator, case: Case) -> list[tuple[int, list[tuple[str | None, ...]]]]:
    assert [report.rows for report in simulator.reports_lazily(case)] == [
        report.rows for report in simulator.reports(case)
    ]
    return [(report.instant, sorted(report.rows, key=repr)) for report in simulator.reports(case)]


@pytest.mark.parametrize("backwards", [False, True])
def test_cases_that_share_a_simulator_share_no_answer(backwards: bool) -> None:
    base = plain_case()
    cases = {name: vary(base) for name, vary in VARIED.items()}
    alone = {name: told(Simulator(base.query, base.stream), case) for name, case in cases.items()}
    shared = Simulator(base.query, base.stream)
    for name, case in reversed(cases.items()) if backwards else cases.items():
        assert told(shared, case) == alone[name], name
    for name, case in cases.items():
        assert told(shared, case) == alone[name], name
    assert len({repr(rows) for rows in alone.values()}) > 15


def test_reports_of_an_engine_by_hand() -> None:
    a1, a3, b2, b4, c1 = (triples(text)[0] for text in ("a p 1", "a p 3", "b p 2", "b p 4", "c p 1"))
    base, simulator = plain_case(), Simulator(plain_case().query, plain_case().stream)

    def rows(*held: tuple[str, str, str]) -> list[tuple[str, str]]:
        return sorted((subject, value) for subject, _, value in held)

    assert told(simulator, base) == [
        *((5, rows(a1, b2, a3)), (10, rows(a3, c1, b4)), (15, rows(a1)), (20, [])),
    ]
    assert told(simulator, VARIED["kept"](base))[:2] == [(5, rows(a1, b2, a3)), (10, rows(a3, c1, b4))]
    assert told(simulator, VARIED["held"](base)) == [(5, []), (10, rows(b4)), (15, rows(a1)), (20, [])]
    assert told(simulator, VARIED["scoped"](base)) == [(5, rows(a3)), (10, rows(b4)), (15, rows(a1)), (20, [])]
    assert told(simulator, VARIED["gated"](base)) == [(5, rows(a1, b2, a3)), (10, rows(a3, c1, b4))]
    assert told(simulator, VARIED["filled"](base)) == [(5, rows(a1, b2, a3)), (10, rows(a3, c1, b4)), (15, rows(a1))]


@pytest.mark.parametrize("vary", ["as declared", "filled"])
def test_the_rows_at_a_report_are_none_where_nothing_is_held_and_something_has_to_be(vary: str) -> None:
    base = plain_case()
    case, simulator = VARIED[vary](base), Simulator(base.query, base.stream)
    at = simulator.rows_at(case)
    found = {due.instant: at(due) for due in simulator.candidates(replace(case, advanced_to=20))}
    assert found[20] == (None if vary == "filled" else ())
    assert [len(found[instant] or ()) for instant in (5, 10, 15)] == [3, 3, 1]
