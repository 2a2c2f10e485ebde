"""Small stream tables for Spark."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from streamgauge.formats.stream import SCHEMA
from streamgauge.model.terms import Triple


def table(spark: SparkSession, elements: Iterable[tuple[int, Sequence[Triple]]]) -> DataFrame:
    """The stream table of (time, triples) elements, with the arrival rank of each triple's element."""
    rows = [
        ("urn:stream", time, sequence, position, *triple)
        for sequence, (time, triples) in enumerate(elements)
        for position, triple in enumerate(triples)
    ]
    columns = {name: [row[index] for row in rows] for index, name in enumerate(SCHEMA.names)}
    arrows = pa.table(columns, schema=SCHEMA).append_column("arrival", pa.array(columns["sequence"], pa.int64()))
    return spark.createDataFrame(arrows)
