"""Scores by counts from changes are the scores that comparing rows gives, for right, wrong and doubtful answers."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport, View
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.semantics import R2S, Borders, Report, Semantics, Tick
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import ContentChange, as_sets, definition, received
from streamgauge.oracle.judging.deltas import Beside, by_changes, countable
from streamgauge.oracle.judging.oracle import JudgingRules, RowScores, decide
from streamgauge.oracle.worlds.membership import Overlap
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import expected
from tests.notation import STREAM, stream

CHANGE = Semantics("change", report=frozenset({Report.CONTENT_CHANGE}), tick=Tick.BATCH, partial_head=True)
QUERIES = (
    "SELECT ?s ?o { ?s <urn:p> ?o }",
    "SELECT ?s { ?s <urn:p> ?o }",
    "SELECT ?s (AVG(?v) AS ?a) { ?s <urn:v> ?v } GROUP BY ?s",
    "SELECT (SUM(?v) AS ?t) (COUNT(*) AS ?n) { ?s <urn:v> ?v }",
    "SELECT ?s ?w { ?s <urn:v> ?v BIND(?v + 0.1 AS ?w) FILTER(?w > 3.1) }",
    "SELECT ?s ?w { ?s <urn:v> ?v BIND(?v + 0e0 AS ?w) FILTER(?w >= 3) }",
)


def changes_of(elements):
    """What the definition expects, as changes."""

    def expect(query, semantics, advanced_to, t0):
        result = expected(elements, query, replace(semantics, notify_empty=True), advanced_to, t0)
        nets = received([Answer(report.variables, report.rows) for report in result])
        return tuple(ContentChange(report.due, report.content, net) for report, net in zip(result, nets, strict=True))

    return expect


def right_answers(run_query, semantics, elements, advance, named):
    return [
        Answer(report.variables, report.rows, instant=report.due.instant if named else None, received=index)
        for index, report in enumerate(expected(elements, run_query, semantics, advance, 0))
    ]


@st.composite
def damaged(draw, answers):
    """Answers lost, doubled, with rows lost, added or off by little; now and then sent as changes."""
    results = []
    for answer in answers:
        fault = draw(st.sampled_from(["none"] * 6 + ["lost", "double", "less", "more", "near"]))
        if fault == "less" and answer.added:
            answer = replace(answer, added=answer.added[1:])
        if fault == "more":
            answer = replace(answer, added=(*answer.added, ("<urn:x>",) * len(answer.variables), *answer.added[:1]))
        if fault == "near":
            answer = replace(answer, added=tuple(tuple(map(near, row)) for row in answer.added))
        results += {"lost": [], "double": [answer, answer]}.get(fault, [answer])
    return as_changes(results) if draw(st.booleans()) else results


def near(term):
    return term.replace('"', '"0', 1) if term and term.startswith('"') and "double" in term else term


def as_changes(answers):
    result, before = [], Counter()
    for answer in answers:
        now = Counter(answer.added)
        gone, come = tuple((before - now).elements()), tuple((now - before).elements())
        result.append(replace(answer, added=come, removed=gone))
        before = now
    return result


def fed(elements, advance):
    times = [Fed(one.sequence, one.time, one.time, one.time, len(one.added)) for one in elements]
    return (*times, Fed(-1, advance, advance, advance))


@st.composite
def runs(draw):
    """A run with answers that may be wrong, and its stream."""
    parts = [
        f"{time}: s{draw(st.integers(0, 2))} p o{draw(st.integers(0, 2))}. s{time % 3} v {draw(st.integers(0, 4))}f."
        for time in sorted(draw(st.lists(st.integers(0, 14), max_size=8)))
    ]
    elements = stream(" | ".join(parts))
    semantics = replace(
        CHANGE,
        report=draw(st.sampled_from([CHANGE.report, CHANGE.report | {Report.NON_EMPTY}])),
        notify_empty=draw(st.booleans()),
        borders=draw(st.sampled_from(list(Borders))),
    )
    text = draw(st.sampled_from(QUERIES))
    window = Window(draw(st.integers(1, 8)), draw(st.integers(1, 4)))
    query = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, window),), sparql=text)
    answers = draw(damaged(right_answers(query, semantics, elements, 20, draw(st.booleans()))))
    header = RunHeader("test", query, text, "rspql", semantics, 20, 0)
    return Run(header, tuple(answers), fed(elements, 20)), elements


def told(verdict):
    """A verdict whose witnesses, all of them kept, are bags."""
    windows = tuple(
        replace(window, missing=frozenset(Counter(window.missing).items()),
                surplus=frozenset(Counter(window.surplus).items()),
                doubtful=frozenset(Counter(window.doubtful).items()))
        for window in verdict.windows
    )  # fmt: skip
    return replace(verdict, windows=windows, variables=())


@given(runs())
def test_counts_are_what_comparing_rows_gives(drawn):
    run, elements = drawn
    rules = JudgingRules(witnesses=1000)
    rows = RowScores(run, definition(elements), rules)
    counts = by_changes(run, changes_of(elements), RowScores(run, definition(elements), rules), rules)
    assert countable(run.header.query, run.header.semantics)
    assert told(decide(run, counts, 0, rules)) == told(decide(run, rows, 0, rules))


@given(st.lists(st.dictionaries(st.tuples(st.sampled_from("ab")), st.integers(-1, 2)), max_size=6))
def test_moving_back_undoes_moving_forward(nets):
    due_report = DueReport(0, (View(0, 0, 0, 0, 0),))
    grown = list(as_sets([ContentChange(due_report, 0, {row: abs(n) for row, n in net.items() if n}) for net in nets]))
    beside = Beside([change.net for change in grown], [change.net for change in grown])
    places = range(len(nets))
    wanted = {place: beside.common(place, place) for place in places}
    for place in reversed(places):
        assert beside.common(place, place) == wanted[place]
        assert beside.similarity(place, place) == 1.0


def test_blank_nodes_are_compared_row_by_row():
    elements = stream("0: _:b p o. | 3: s p o.")
    query = ContinuousQuery(parse_sparql(QUERIES[1]), (StreamWindow(STREAM, Window(5, 5)),))
    answers = [Answer(("s",), (("_:other",),)), Answer(("s",), (("_:one",), ("<urn:s>",)))]
    run = Run(RunHeader("test", query, "", "rspql", CHANGE, 4, 0), tuple(answers), fed(elements, 4))
    counts = by_changes(run, changes_of(elements), RowScores(run, definition(elements), JudgingRules()), JudgingRules())
    assert decide(run, counts, 0, JudgingRules()).judgement is Judgement.RIGHT


def test_where_counting_applies():
    query = ContinuousQuery(parse_sparql(QUERIES[0]), (StreamWindow(STREAM, Window(5, 5)),))
    assert countable(query, CHANGE)
    assert not countable(replace(query, r2s=R2S.ISTREAM), CHANGE)
    assert not countable(query, replace(CHANGE, report=frozenset({Report.WINDOW_CLOSE})))
    assert not countable(replace(query, form=parse_sparql("ASK { ?s ?p ?o }")), CHANGE)


def test_both_sides_show_the_rows_that_only_they_have():
    """b in common, a lost, c twice for nothing."""
    beside = Beside([{("a",): 1, ("b",): 1}], [{("b",): 1, ("c",): 2}])
    assert (beside.common(0, 0), beside.similarity(0, 0)) == (1, 1 / 4)
    assert beside.overlap(0, 0, 9) == Overlap(1, (("a",),), (("c",), ("c",)))
    assert beside.overlap(0, 0, 1) == Overlap(1, (("a",),), (("c",),))
    assert beside.rows(0, 0, 9) == (("a",), ("b",))
    assert beside.rows(1, 0, 2) == (("b",), ("c",))


def test_between_places_only_what_changes_is_moved():
    nets = [{("a",): 1}, {("a",): 1, ("b",): 1}, {("a",): -2}]
    beside = Beside(nets, list(reversed(nets)))
    assert beside.sizes == ((1, 3, 1), (-2, 0, 1))
    given = [{("a",): 1}, {("a",): 2, ("b",): 1}, {("b",): 1}]
    for i in (0, 2, 1, 2, 0):
        assert Counter(beside.rows(0, i, 9)) == Counter(given[i])
        assert beside.common(i, 2) == sum((Counter(given[i]) & Counter({("b",): 1})).values())


@pytest.mark.parametrize(
    ("expected_rows", "sent", "scores"),
    [(0, 0, (1.0, 1.0)), (0, 2, (0.0, 0.0)), (2, 0, (0.0, 0.0)), (2, 1, (1.0, 0.5)), (1, 2, (0.5, 1.0))],
)
def test_an_answer_scores_by_counts_as_it_does_by_rows(expected_rows, sent, scores):
    elements = stream("0: s q o. " + " ".join(f"s{n} p o." for n in range(expected_rows)))
    query = ContinuousQuery(parse_sparql(QUERIES[1]), (StreamWindow(STREAM, Window(5, 5)),))
    answers = (Answer(("s",), tuple((f"<urn:s{n}>",) for n in range(sent))),)
    run = Run(RunHeader("test", query, "", "rspql", CHANGE, 4, 0), answers, fed(elements, 4))
    rows = RowScores(run, definition(elements), JudgingRules())
    for score in (by_changes(run, changes_of(elements), rows, JudgingRules()), rows):
        (window,) = decide(run, score, 0, JudgingRules()).windows
        assert (window.precision, window.recall) == scores
        assert (window.expected, window.actual, window.true_positives) == (
            expected_rows,
            sent,
            min(expected_rows, sent),
        )


def test_rows_of_a_missed_report_and_of_a_surplus_answer_are_witnesses():
    elements = stream("0: s0 p o. s1 p o. s2 p o.")
    query = ContinuousQuery(parse_sparql(QUERIES[1]), (StreamWindow(STREAM, Window(5, 5)),))
    surplus = Answer(("s",), (("<urn:x>",), ("<urn:y>",), ("<urn:z>",)), instant=3)
    run = Run(RunHeader("test", query, "", "rspql", CHANGE, 4, 0), (surplus,), fed(elements, 4))
    rules = JudgingRules(witnesses=2)
    missed, more = decide(
        run, by_changes(run, changes_of(elements), RowScores(run, definition(elements), rules), rules), 0, rules
    ).windows
    assert len(set(missed.missing) & {("<urn:s0>",), ("<urn:s1>",), ("<urn:s2>",)}) == 2
    assert (missed.expected, missed.surplus, missed.due) == (3, (), True)
    assert len(set(more.surplus) & set(surplus.added)) == 2
    assert (more.actual, more.missing, more.due) == (3, (), False)


def test_no_more_rows_are_witnesses_than_asked_for():
    elements = stream("0: s0 p o. s1 p o. s2 p o.")
    query = ContinuousQuery(parse_sparql(QUERIES[1]), (StreamWindow(STREAM, Window(5, 5)),))
    answer = Answer(("s",), (("<urn:x>",), ("<urn:y>",), ("<urn:z>",)))
    run = Run(RunHeader("test", query, "", "rspql", CHANGE, 4, 0), (answer,), fed(elements, 4))
    rules = JudgingRules(witnesses=2)
    (window,) = decide(
        run, by_changes(run, changes_of(elements), RowScores(run, definition(elements), rules), rules), 0, rules
    ).windows
    assert (len(window.missing), len(window.surplus)) == (2, 2)


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("open_", [False, True])
def test_rows_are_compared_only_where_an_answer_differs_and_several_are_legal(wrong, open_):
    elements = stream("0: a v 1. | 3: b v 2.")
    query = ContinuousQuery(parse_sparql("SELECT ?s { ?s <urn:v> ?v }"), (StreamWindow(STREAM, Window(5, 5)),))
    answers = right_answers(query, CHANGE, elements, 5, named=True)[wrong:]
    run = Run(RunHeader("e", query, "", "rspql", CHANGE, 5, 0), tuple(answers), (Fed(0, 0, 0, 0, 1),))
    asked: list[int] = []

    class Rows:
        def __call__(self, t0):
            asked.append(t0)
            return "of the rows"

        def is_open(self):
            return open_

    scored = by_changes(run, changes_of(elements), Rows(), JudgingRules())(0)
    assert asked == [0] * (wrong and open_)
    assert (scored == "of the rows") is (wrong and open_)
    assert asked or bool(scored.totals.wrong) is wrong
