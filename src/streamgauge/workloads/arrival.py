"""System time: numbering what arrives, so that no partition needs to see the whole stream."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812


def numbered(rows: DataFrame, arrival: str, ties: Sequence[str]) -> DataFrame:
    """The rows with ``n``, from 0: by the ms of their arrival (a column), then by the columns ``ties``, in order of n.

    The number is how many arrived in earlier ms, plus the place within the ms.
    """
    counts = rows.groupBy(arrival).count()
    before = Window.orderBy(arrival).rowsBetween(Window.unboundedPreceding, -1)
    bases = counts.select(arrival, F.coalesce(F.sum("count").over(before), F.lit(0)).alias("base"))
    within = Window.partitionBy(arrival).orderBy(*ties)
    ranked = rows.withColumn("place", F.row_number().over(within) - 1).join(bases, arrival)
    return ranked.withColumn("n", F.col("base") + F.col("place")).drop("base", "place").orderBy("n")
