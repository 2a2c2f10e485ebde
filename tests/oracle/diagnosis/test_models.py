"""Words and bits of slips: the reports that a sentence lists, ordinals, and what a place costs."""

from dataclasses import replace
from math import log2

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport
from streamgauge.oracle.diagnosis.models import (
    Case,
    ExplanationPlace,
    ModelReport,
    Slip,
    Stream,
    description,
    listed,
    ordinal,
    same,
    scattered,
)
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, stream

REPORTS = tuple(ModelReport(1_000 * at, (("<urn:a>",),), DueReport(1_000 * at, ())) for at in range(1, 9))


class Answers:
    """Takes the second of these rows only, from a place on."""

    def take(self, report, at):
        return at + 1 if report.rows == (("<urn:b>",),) else None


def place(i, reports=REPORTS):
    return ExplanationPlace(i, i + 10, reports[min(i, len(reports) - 1)], reports, Answers())


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *((1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (10, "10th"), (11, "11th"), (12, "12th"), (13, "13th")),
        *((21, "21st"), (22, "22nd"), (23, "23rd"), (100, "100th"), (101, "101st"), (111, "111th"), (112, "112th")),
        *((121, "121st"), (213, "213th"), (1_011, "1011th"), (1_001, "1001st"), (0, "0th")),
    ],
)
def test_ordinals(number, text):
    assert ordinal(number) == text


@pytest.mark.parametrize(
    ("places", "offset", "text"),
    [
        ([0], 0, "the report at 1,000 ms"),
        ([0, 2], 0, "the reports at 1,000, 3,000 ms"),
        ([0, 1, 2, 3, 4], 0, "the reports at 1,000, 2,000, 3,000, 4,000, 5,000 ms"),
        ([0, 1, 2, 3, 4, 5, 6], 0, "the reports at 1,000, 2,000, 3,000, 4,000, 5,000 ms and 2 more"),
        ([1], -1, "the report at 1,000 ms"),
        ([6, 7], 1, "the reports at 8,000 ms"),  # nothing is after the last one
    ],
)
def test_reports_are_listed_by_their_instants(places, offset, text):
    assert listed([place(i) for i in places], offset) == text


def test_a_place_is_one_of_the_reports_and_costs_a_bit_at_least():
    assert scattered([]) == 0
    assert scattered([place(0)]) == 3
    assert scattered([place(0), place(5)]) == 6
    assert scattered([place(0, REPORTS[:1])]) == 1
    assert scattered([place(0, REPORTS[:3])]) == log2(3)
    assert Slip(lambda _place: (), lambda _places: None).bits([place(1)]) == 3
    assert Slip(lambda _place: (), lambda _places: None).half


def test_a_slip_is_described_by_how_many_reports_and_which():
    part = description("{count} lost", "Lost: {listed}.")([place(1), place(2)])
    assert (part.name, part.sentence) == ("2 reports lost", "Lost: the reports at 2,000, 3,000 ms.")
    assert description("{count} lost", "")([place(1)]).name == "1 report lost"


def test_other_rows_are_taken_in_the_place_of_a_report():
    assert same(place(3), (("<urn:b>",),)) == 14
    assert same(place(3), (("<urn:a>",),)) is None


def test_a_stream_has_its_times_once():
    held = Stream(stream("5: a p 1. b p 2. | 5: c p 3. | 9: d p 4."))
    assert (held.times, held.triples, held.last) == ((5, 9), 4, 9)
    assert (Stream(()).times, Stream(()).triples, Stream(()).last) == ((), 0, 0)


def test_faults_are_applied_in_the_order_in_which_they_were_combined():
    query = ContinuousQuery(parse_sparql("SELECT ?s { ?s ?p ?o }"), (StreamWindow(STREAM, Window(5, 5)),))
    plain = Case(query, RSPQL, Stream(()), 10, 0)
    one, two = (lambda *given: given[-1]), (lambda *given: given[0])
    assert plain.scoped(one).scoped(two).scopings == (one, two)
    assert plain.holding(one).holding(two).content_rules == (one, two)
    assert plain.answering(one).answering(two).row_rules == (one, two)
    other = replace(query, windows=())
    assert plain.asking(other).query is other
    assert plain.under(notify_empty=False).semantics == replace(RSPQL, notify_empty=False)
    assert plain.on(held := Stream(())).stream is held
    assert (plain.scopings, plain.content_rules, plain.row_rules, plain.report_rules) == ((), (), (), ())
    assert (plain.keeps, plain.gate) == (None, None)
