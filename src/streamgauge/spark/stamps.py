"""Stamps on Spark: facts that say when each triple of a content arrived last, over intervals of reports.

Their vocabulary is that of ``query/stamps.py``; a stamp's name is any term that tells triples apart.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from streamgauge.model.terms import XSD
from streamgauge.query.stamps import stamp, time_fact
from streamgauge.spark.intervals import TRIPLE, merged
from streamgauge.spark.sweep import latest, swept

_NOTHING = ("", "", "")
_PARTS = tuple(fact[1] for fact in stamp(_NOTHING))
_TIME = time_fact(_NOTHING, 0)[1]


def stamps(arrivals: DataFrame) -> DataFrame:
    """The stamps (subject, predicate, object, lo, hi) of arrivals that have their triple, time (ms), lo and hi."""
    present = merged(arrivals.select(*TRIPLE, "lo", "hi"))
    constant = [
        present.select(_name(), fn.lit(part).alias("predicate"), fn.col(position).alias("object"), "lo", "hi")
        for part, position in zip(_PARTS, TRIPLE, strict=True)
    ]
    found = swept(
        arrivals.select(*TRIPLE, "lo", "hi", "time"), TRIPLE, latest, {"lo": "int", "hi": "int", "time": "bigint"}
    )
    text = fn.concat(fn.lit('"'), fn.col("time").cast("string"), fn.lit(f'"^^<{XSD}integer>'))
    times = found.select(_name(), fn.lit(_TIME).alias("predicate"), text.alias("object"), "lo", "hi")
    return reduce(DataFrame.unionByName, constant, times)


def _name() -> Column:
    digest = fn.md5(fn.concat_ws("\n", *TRIPLE))
    return fn.concat(fn.lit("<urn:streamgauge:stamp:"), digest, fn.lit(">")).alias("subject")
