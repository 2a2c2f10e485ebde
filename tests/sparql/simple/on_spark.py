"""Cases on Spark: one query over many contents is one job, each content the whole of a report's windows."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from streamgauge.formats.stream import SCHEMA
from streamgauge.model.report import DueReport, View
from streamgauge.model.terms import Row
from streamgauge.spark.answers import SWEPT_REPORTS_MIN, answers, refuse
from streamgauge.spark.compiler import AMBIGUOUS
from streamgauge.spark.failures import JOB_ERRORS
from tests.spark.together import together
from tests.sparql.simple.agreement import windows
from tests.sparql.simple.drawn import Case


def many_by_spark(spark: SparkSession, queries: Sequence[Sequence[Case]]) -> list[list[tuple[Row, ...]] | None]:
    """The rows of each case of several queries; ``None`` where Spark refuses one, or where its cut is ambiguous."""
    frames = {place: frame for place, cases in enumerate(queries) if (frame := _frame(spark, cases)) is not None}
    try:
        results = dict(zip(frames, together(list(frames.values())), strict=True))
    except JOB_ERRORS:
        alone = {place: _alone(frame) for place, frame in frames.items()}
        results = {place: rows for place, rows in alone.items() if rows is not None}
    return [_by_case(results[place], len(cases)) if place in results else None for place, cases in enumerate(queries)]


def _by_case(rows: Sequence[tuple[Any, ...]], count: int) -> list[tuple[Row, ...]]:
    return [tuple(tuple(row[1:]) for row in rows if row[0] == at) for at in range(count)]


def _alone(frame: DataFrame) -> list[tuple[Any, ...]] | None:
    try:
        return together([frame])[0]
    except JOB_ERRORS as error:
        if AMBIGUOUS in str(error):
            return None
        raise


def _frame(spark: SparkSession, cases: Sequence[Case]) -> DataFrame | None:
    """The answers of one query over the contents of its cases, each a report; ``None`` where Spark refuses it."""
    form, over = cases[0].form, windows(cases[0].dataset)
    if refuse(form) is not None:
        return None
    rows = [
        (window.stream, at, at, place, *triple)
        for at, case in enumerate(cases)
        for window, held in zip(over, (case.dataset.default, *case.dataset.named.values()), strict=True)
        for place, triple in enumerate(held)
    ]
    data = {name: [row[index] for row in rows] for index, name in enumerate(SCHEMA.names[:7])}
    table = spark.createDataFrame(pa.table(data, schema=pa.schema(list(SCHEMA)[:7])))
    due = tuple(DueReport(at, tuple(View(at, at + 1, at, at, 1 << 40) for _ in over)) for at in range(len(cases)))
    return answers(spark, table, due, form, (), SWEPT_REPORTS_MIN, over)
