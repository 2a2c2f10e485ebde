"""Lexical forms and exact numbers on Spark, report by report and over intervals."""

import pytest

from streamgauge.compute.spark.answers import MANY, answers
from streamgauge.model.report import DueReport, View
from streamgauge.query import parse_sparql
from tests.compute.exact import CASES, rows, triples
from tests.compute.spark.streams import table

DUE = [DueReport(10, (View(0, 10, 0, 9, 1 << 40),))]


def check(spark, name, many=MANY):
    found = answers(spark, table(spark, [(1, triples(name))]), DUE, parse_sparql(CASES[name][1]), many=many)
    assert sorted(tuple(row)[1:] for row in found.collect()) == rows(name)


@pytest.mark.parametrize("name", CASES)
def test_answers_are_exact(tiny, name):
    check(tiny, name)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "SUM" in case[1]])
def test_answers_are_exact_over_intervals(tiny, name):
    """As from 500 reports on."""
    check(tiny, name, many=1)
