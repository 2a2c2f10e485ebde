"""Several answers collected by one Spark job: a job costs more than a tiny answer, and so does the planning of each."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

MOST = 24
"""Answers of one job; a plan of more takes longer to make than the jobs that it saves."""


def together(result: Sequence[DataFrame]) -> list[list[tuple]]:
    """The rows of each answer (``report`` and terms, as ``answers`` gives them), in as few jobs as can be."""
    rows: list[list[tuple]] = [[] for _ in result]
    for first in range(0, len(result), MOST):
        parts = [_part(first + place, frame) for place, frame in enumerate(result[first : first + MOST])]
        for place, report, cells in reduce(DataFrame.unionAll, parts).collect():
            rows[place].append((report, *cells))
    return rows


def _part(place: int, frame: DataFrame) -> DataFrame:
    report, *names = frame.columns
    plain = frame.toDF("c0", *(f"c{index}" for index in range(1, len(names) + 1)))
    cells = fn.array(*(fn.col(f"c{index}").cast("string") for index in range(1, len(names) + 1))).cast("array<string>")
    return plain.select(fn.lit(place).alias("place"), fn.col("c0").cast("int").alias(report), cells.alias("cells"))
