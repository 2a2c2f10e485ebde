"""Lexical forms and exact numbers on Spark, report by report and over intervals."""

import pytest

from streamgauge.model.report import DueReport, View
from streamgauge.query import parse_sparql
from streamgauge.spark.answers import SWEPT_REPORTS_MIN, answers
from tests.incremental.exact import CASES, rows, triples
from tests.spark.streams import table
from tests.spark.together import together

REPORTS = 3
DUE = [DueReport(10 + n, (View(n, 10 + n, 0, 9 + n, 1 << 40),)) for n in range(REPORTS)]
CANCEL = "doubles that cancel"
"""Report by report Spark adds doubles in its own order, which SPARQL leaves open."""


def check(spark, names, many=SWEPT_REPORTS_MIN):
    """One job answers all cases."""
    frames = [
        answers(spark, table(spark, [(1, triples(name))]), DUE, parse_sparql(CASES[name][1]), reports=many)
        for name in names
    ]
    results = {name: sorted(rows_) for name, rows_ in zip(names, together(frames), strict=True)}
    assert results == {name: [(report, *row) for report in range(REPORTS) for row in rows(name)] for name in names}


@pytest.mark.heavy("a plan of fourteen queries")
def test_answers_are_exact(tiny):
    check(tiny, [name for name in CASES if name != CANCEL])


def test_answers_are_exact_over_intervals(tiny):
    """As from 500 reports on."""
    check(tiny, [name for name, case in CASES.items() if "SUM" in case[1]], many=1)
