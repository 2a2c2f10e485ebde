"""Equality of computed values: rows that an engine made too short or too long are equal to none."""

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.report import DueReport, ExpectedReport, View
from streamgauge.model.terms import XSD, Row
from streamgauge.oracle.judging.units import Alignment
from streamgauge.query import parse
from streamgauge.semantics.profiles import profile

QUERY = """SELECT ?s (AVG(?o) AS ?mean) FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT5S STEP PT5S]
WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } } GROUP BY ?s"""
TEN = f'"10"^^<{XSD}decimal>'


@pytest.mark.parametrize(
    ("row", "equal"),
    [(("<urn:s>", TEN), True), (("<urn:s>",), False), ((), False), (("<urn:s>", TEN, TEN), False)],
)
def test_a_row_of_another_width_is_not_equal(row: Row, equal: bool):
    report = ExpectedReport(DueReport(5, (View(0, 5, 0, 4, 1),)), ("s", "mean"), (("<urn:s>", TEN),), 1)
    answer = Answer(("s", "mean"), (row,), instant=5)
    (unit,) = Alignment([report], [answer], parse(QUERY), profile("rspql")).units()
    assert unit.both.differs is not equal
