"""Every W3C SPARQL 1.1 evaluation test as a run of one report: right, or refused by name as w3c_refused.txt says.

A named graph is a named window over a stream of its own.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from streamgauge.formats.stream import SCHEMA
from streamgauge.model.algebra import Ask, Construct, QueryForm
from streamgauge.model.query import StreamWindow, Window
from streamgauge.model.report import DueReport, View
from streamgauge.model.terms import Term, Triple
from streamgauge.query.parser import parse_sparql
from streamgauge.query.text import QueryError
from streamgauge.spark.answers import answers, columns, refuse
from tests.spark.together import together
from tests.sparql.suite import Case, Result, cases, difference

DEFAULT = "urn:default"
FOLDERS = ("aggregates", "bind", "bindings", "cast", "construct", "exists", "functions", "grouping", "negation")
FOLDERS += ("project-expression", "property-path", "subquery")


@pytest.fixture(scope="module")
def suite(shared_data: Path) -> dict[str, Case]:
    return {case.name: case for case in cases(shared_data / "w3c-sparql11")}


def refusals() -> dict[str, str]:
    lines = (Path(__file__).parent / "w3c_refused.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("  ", 1) for line in lines if line and not line.startswith("#"))


def refused(case: Case) -> str:
    try:
        reason = refuse(parse_sparql(case.query))
    except QueryError as error:
        return str(error).partition(" is not supported")[0].rpartition(" ")[2]
    return (reason or "").removeprefix("spark does not evaluate ")


@pytest.mark.slow
def test_the_list_of_refusals_is_true(suite: dict[str, Case]) -> None:
    assert {name: reason for name, case in suite.items() if (reason := refused(case))} == refusals()
    assert len(suite) == 225
    assert {case.folder for case in suite.values()} == set(FOLDERS)
    assert len(refusals()) <= 225 * 0.05


def test_a_refusal_is_raised(tiny: SparkSession, suite: dict[str, Case]) -> None:
    for name, reason in refusals().items():
        if reason != "FROM":
            with pytest.raises(ValueError, match="spark does not evaluate"):
                answered(tiny, suite[name])


@pytest.mark.parametrize("folder", FOLDERS)
def test_answers_are_right(tiny: SparkSession, suite: dict[str, Case], folder: str) -> None:
    """Every tenth of a folder, as to plan a query costs more than to answer it."""
    check(tiny, suite, folder, 10)


@pytest.mark.prove
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_other_answer_is_right(tiny: SparkSession, suite: dict[str, Case], folder: str) -> None:
    check(tiny, suite, folder, 1)


def check(tiny: SparkSession, suite: dict[str, Case], folder: str, step: int) -> None:
    names = sorted(name for name in suite.keys() - refusals().keys() if suite[name].folder == folder)[::step]
    results = dict(zip(names, together([answered(tiny, suite[name]) for name in names]), strict=True))
    told = {
        name: difference(replace(suite[name].expected, ordered=False), result(suite[name], results[name]))
        for name in names
    }
    assert {name: said for name, said in told.items() if said} == {}
    assert told


def answered(spark: SparkSession, case: Case) -> DataFrame:
    query = parse_sparql(case.query)
    graphs = {None: case.data, **case.graphs}
    windows = [StreamWindow(iri(name), Window(1, 1), name and name[1:-1]) for name in graphs]
    due = (DueReport(0, tuple(View(0, 1, 0, 0, 1) for _ in windows)),)
    return answers(spark, table(spark, graphs.items()), due, query, windows=windows)


def result(case: Case, rows: list[tuple]) -> Result:
    assert {row[0] for row in rows} <= {0}
    query = parse_sparql(case.query)
    return Result(kind(query), columns(query), tuple(row[1:] for row in rows))


def iri(graph: Term | None) -> str:
    return DEFAULT if graph is None else graph[1:-1]


def kind(query: QueryForm) -> str:
    return {Ask: "boolean", Construct: "triples"}.get(type(query), "solutions")


def table(spark: SparkSession, graphs: Iterable[tuple[Term | None, Iterable[Triple]]]) -> DataFrame:
    rows = [(iri(graph), 0, 0, 0, *triple) for graph, triples in graphs for triple in triples]
    columns = {field.name: [row[i] for row in rows] for i, field in enumerate(SCHEMA) if i < 7}
    return spark.createDataFrame(pa.table(columns, schema=pa.schema(list(SCHEMA)[:7])))
