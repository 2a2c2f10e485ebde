"""Lexical forms and exact numbers on Spark, report by report and over intervals."""

import pytest

from streamgauge.model.report import DueReport, View
from streamgauge.query import parse_sparql
from streamgauge.spark.answers import MANY, answers
from tests.incremental.exact import CASES, rows, triples
from tests.spark.streams import table

REPORTS = 3
DUE = [DueReport(10 + n, (View(n, 10 + n, 0, 9 + n, 1 << 40),)) for n in range(REPORTS)]
CANCEL = "doubles that cancel"
"""Report by report Spark adds doubles in its own order, which SPARQL leaves open."""


def check(spark, name, many=MANY):
    found = answers(spark, table(spark, [(1, triples(name))]), DUE, parse_sparql(CASES[name][1]), many=many)
    expected = [(report, *row) for report in range(REPORTS) for row in rows(name)]
    assert sorted(map(tuple, found.collect())) == expected


@pytest.mark.parametrize("name", [name for name in CASES if name != CANCEL])
def test_answers_are_exact(tiny, name):
    check(tiny, name)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "SUM" in case[1]])
def test_answers_are_exact_over_intervals(tiny, name):
    """As from 500 reports on."""
    check(tiny, name, many=1)
