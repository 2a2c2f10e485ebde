"""The parts of expected reports that evaluators share."""

from dataclasses import replace

import pytest

from streamgauge.formats.stream import write
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport, View
from streamgauge.model.semantics import R2S, Counting, EmptyAggregate, Report
from streamgauge.oracle.expected import reports as reporting
from streamgauge.oracle.expected.reports import (
    Header,
    all_candidates,
    cuts,
    definition,
    graph_names,
    in_order,
    inspected,
    refuse_spark,
    reports,
)
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Head
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, rows, stream

BAG = replace(RSPQL, content=Counting.BAG)
A, B = ("a",), ("b",)


WINDOWS = (StreamWindow(STREAM, Window(5, 5)),)


def query(sparql="SELECT ?s { ?s <urn:p> ?o }", windows=WINDOWS):
    return ContinuousQuery(parse_sparql(sparql), windows)


def report(instant, seen, last, after=0):
    return DueReport(instant, (View(0, instant, 0, last, seen, after),))


def test_rows_are_put_in_the_bag_of_their_report():
    assert in_order([(2, A), (0, B), (2, B), (2, A)], 4) == [(B,), (), (A, B, A), ()]


def test_a_window_that_sees_only_part_of_its_times_is_cut():
    times = (1, 3, 3, 7)
    assert not cuts([report(5, 3, 4), report(10, 4, 9)], times)
    assert cuts([report(5, 3, 4), report(3, 2, 3)], times)
    assert cuts([report(10, 4, 9, after=1)], times)


def test_a_header_has_the_first_element_by_system_time_and_the_latest_time():
    header = Header([Head(STREAM, 9, 4, 1), Head(STREAM, 7, 2, 1), Head(STREAM, 3, 8, 1)])
    assert [element.sequence for element in header.elements] == [2, 4, 8]
    assert (header.first, header.last) == (7, 9)
    assert (Header([]).first, Header([]).last) == (None, 0)


def test_a_head_holds_for_ever_unless_it_says():
    assert Head(STREAM, 9, 4, 1).until is None
    assert Head.of(stream("3..8: a p b. c p d.")[0]) == Head(STREAM, 3, 0, 2, 8)


@pytest.mark.parametrize(
    ("r2s", "sent"),
    [
        (R2S.RSTREAM, ["a ; b", "b ; b", ""]),
        (R2S.ISTREAM, ["a ; b", "b", ""]),
        (R2S.DSTREAM, ["", "a", "b ; b"]),
    ],
)
def test_reports_send_what_the_operator_says(r2s, sent):
    due = [report(5, 1, 4), report(10, 2, 9), report(15, 2, 14)]
    bags = [rows("a ; b"), rows("b ; b"), ()]
    result = reports(due, bags, [2, 3, 0], query(), replace(RSPQL, r2s=r2s))
    assert [sorted(entry.rows) for entry in result] == [sorted(rows(text)) for text in sent]
    assert [(entry.due, entry.content, entry.variables) for entry in result] == [
        (due[0], 2, ("s",)),
        (due[1], 3, ("s",)),
        (due[2], 0, ("s",)),
    ]


def test_candidates_come_with_what_arrived_and_what_was_late():
    semantics = replace(RSPQL, lateness=1)
    header = Header(map(Head.of, stream("1: a p b. | 12: a p b. | 3: c p d. c p e. | [other] 4: x p y.")))
    due, arrived, late = all_candidates(header, query(), semantics, 20, 0)
    assert [entry.instant for entry in due] == [5, 10, 15, 20]
    assert (arrived.times, late) == ((1, 12), {2})
    _due, arrived, late = all_candidates(header, query(), replace(RSPQL, lateness=9), 20, 0)
    assert (arrived.times, late) == ((1, 3, 3, 12), set())


def test_contents_are_what_the_windows_hold():
    elements = stream("1: a p b. | 3: c p d. | 7: e p f.")
    look = definition(elements).look(query(), RSPQL, 0)
    due, _, _ = all_candidates(Header(map(Head.of, elements)), query(), RSPQL, 10, 0)
    held = [[arrival.time for arrival in look(entry)[0]] for entry in due]
    assert held == [[1, 3], [7]]
    part = inspected(elements[1:], query(), RSPQL, before=1)
    assert [[arrival.time for arrival in part(entry)[0]] for entry in due] == [[3], [7]]


def test_named_windows_feed_graphs():
    windows = (StreamWindow(STREAM, Window(5, 5), "urn:w"), StreamWindow(STREAM, Window(5, 5)))
    assert graph_names(windows) == ("<urn:w>",)


@pytest.mark.parametrize(
    ("sparql", "reason"),
    [
        ("SELECT ?s { ?s <urn:p> ?o }", None),
        ("SELECT ?s { ?s <urn:p> ?o . ?o <urn:p> ?s }", None),
        (
            "SELECT ?s { ?s <urn:p> ?o . ?s <urn:p> ?o }",
            "a triple pattern that is written twice over a content that is a bag",
        ),
        ("SELECT ?s { ?s <urn:p>* ?o }", "property paths over a content that is a bag"),
        ("SELECT ?s { ?s ?p ?o }", None),
        ("SELECT ?s { GRAPH ?g { ?s <urn:p> ?o } }", "GRAPH, timestamp() or NOW() over a content that is a bag"),
        ("SELECT ?s { ?s <urn:p> ?o FILTER EXISTS { ?o <urn:p> ?s } }", "EXISTS over a content that is a bag"),
        (
            "SELECT ?s { ?s <urn:p> ?o FILTER(?o = 1 || NOT EXISTS { ?o <urn:p> ?s }) }",
            "EXISTS over a content that is a bag",
        ),
    ],
)
def test_what_has_no_meaning_over_a_bag_is_refused_by_name(sparql, reason):
    windows = (StreamWindow(STREAM, Window(5, 5), "urn:w"),) if "GRAPH" in sparql else query().windows
    assert refuse_spark(query(sparql, windows), BAG) == reason
    assert reason is None or "bag" not in (refuse_spark(query(sparql, windows), RSPQL) or "")


def test_another_value_for_an_aggregate_over_nothing_is_of_select_only():
    empty = replace(RSPQL, empty_aggregate=EmptyAggregate.NO_ROW)
    assert refuse_spark(query(), empty) is None
    for sparql in ("ASK { ?s <urn:p> ?o }", "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }"):
        assert "another value than SPARQL's" in (refuse_spark(query(sparql), empty) or "")
        assert refuse_spark(query(sparql), RSPQL) is None


def test_content_change_needs_a_content():
    semantics = replace(RSPQL, report=frozenset({Report.CONTENT_CHANGE}), partial_head=True)
    expected_answers = definition(stream("1: a p b. | 2: a p b. | 3: c p d."))(query(), semantics, 10, 0)
    assert [entry.due.instant for entry in expected_answers] == [1, 3]


STREAMED = "1: a p 1. | 3: b p 2. | 6: a p 3. | 9: a p 4. a q 5. | 12: c p 1."
COUNTED = "SELECT ?s (COUNT(*) AS ?n) { ?s <urn:p> ?o } GROUP BY ?s"
TIMED = "SELECT ?s (timestamp(?s, <urn:p>, ?o) AS ?t) { ?s <urn:p> ?o }"


def test_contents_that_are_remembered_are_those_that_are_asked_for():
    held, other = definition(stream(STREAMED)), (StreamWindow(STREAM, Window(3, 5)),)
    asked = [
        (query(), RSPQL, 15, 0),
        (query(COUNTED), RSPQL, 15, 0),
        (query(), RSPQL, 10, 0),
        (query(), RSPQL, 10, 1),
        (query(windows=other), RSPQL, 10, 1),
        (query(windows=other), replace(RSPQL, report=frozenset({Report.CONTENT_CHANGE})), 10, 1),
    ]
    for entry in asked:
        result = held(*entry)
        assert result == definition(stream(STREAMED))(*entry)
        seen, new = (
            held.look(entry[0], entry[1], entry[3]),
            definition(stream(STREAMED)).look(entry[0], entry[1], entry[3]),
        )
        assert [seen(one.due) for one in result] == [new(one.due) for one in result]
        assert seen(report(5, 1, 4)) == new(report(5, 1, 4))


def test_contents_are_computed_once_for_whatever_is_asked_of_them(monkeypatch):
    asked: list[tuple[object, ...]] = []
    compute = reporting.held
    monkeypatch.setattr(reporting, "held", lambda *given: asked.append(given[1:]) or compute(*given))
    held = definition(stream(STREAMED))
    for semantics in (RSPQL, replace(RSPQL, r2s=R2S.ISTREAM), replace(RSPQL, notify_empty=False, since=7)):
        for text in (query(), query(COUNTED)):
            found = held(text, semantics, 15, 0)
            looked = held.look(text, semantics, 0)
            assert looked(found[-1].due) is looked(found[-1].due)  # what was computed, not a copy
    assert len(asked) == 1
    held(query(), RSPQL, 10, 0)
    held(query(), RSPQL, 10, 1)
    held(query(), BAG, 10, 1)
    held(query(windows=(StreamWindow(STREAM, Window(3, 5)),)), BAG, 10, 1)
    assert len(asked) == 5


def test_a_stream_table_is_read_into_memory(tmp_path):
    write(stream(STREAMED), tmp_path / "stream.parquet")
    told, expected_ = definition(tmp_path / "stream.parquet"), definition(stream(STREAMED))
    assert told(query(), RSPQL, 15, 0) == expected_(query(), RSPQL, 15, 0)
    assert told(query(), RSPQL, 15, 0)
