"""Cases on Spark: one query over many contents is one job, each content the whole of a report's windows."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamgauge.compute.spark.answers import MANY, answers, refuse
from streamgauge.compute.spark.slices import AMBIGUOUS
from streamgauge.model.report import DueReport, View
from streamgauge.model.terms import Row
from streamgauge.wire.stream import SCHEMA
from tests.sparql.simple.agreement import windows
from tests.sparql.simple.drawn import Case


def by_spark(spark: SparkSession, cases: Sequence[Case]) -> list[tuple[Row, ...]] | None:
    """The rows of each case, all of one query; ``None`` where Spark refuses it, or where its cut is ambiguous."""
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
    try:
        found = answers(spark, table, due, form, (), MANY, over).collect()
    except PySparkException as error:
        if AMBIGUOUS in str(error):
            return None
        raise
    return [tuple(tuple(row[1:]) for row in found if row[0] == at) for at in range(len(cases))]
