"""Departures as RDF: what is renewed as elements that end with the next update, the rest as static triples."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamgauge.model.terms import XSD
from streamgauge.workloads.arrival import numbered
from streamgauge.workloads.trains.model import DAY, TD, T


def stream_table(rows: DataFrame, named: Sequence[str], update: int, stream: str) -> DataFrame:
    """The stream table of rows (``boards.renewed``): an element each, of the named properties, for ``update`` ms."""
    found = numbered(rows, "time", ("station", "number"))
    said = F.array(*(_said(name) for name in named)).cast("array<struct<predicate:string,object:string>>")
    found = found.select("n", "time", _departure().alias("subject"), F.posexplode(said).alias("position", "said"))
    return found.select(
        F.lit(stream).alias("stream"),
        "time",
        F.col("n").alias("sequence"),
        "position",
        "subject",
        F.col("said.predicate").alias("predicate"),
        F.col("said.object").alias("object"),
        (F.col("time") + update).alias("until"),
    )


def static(found: DataFrame, held: Sequence[str]) -> DataFrame:
    """Subject, predicate, object of departures (``boards.departures``): their station's link, and these properties."""
    station = F.concat(F.lit(f"<{TD}station-"), F.col("station").cast("string"), F.lit(">"))
    link = F.struct(
        station.alias("subject"), F.lit(f"<{T}hasDeparture>").alias("predicate"), _departure().alias("object")
    )
    said = [F.struct(_departure().alias("subject"), _said(name).predicate, _said(name).object) for name in held]
    exploded = found.select("station", "number", F.posexplode(F.array(link, *said)).alias("at", "fact"))
    return exploded.orderBy("station", "number", "at").select("fact.subject", "fact.predicate", "fact.object")


def _departure() -> Column:
    number = (F.col("station").cast("string"), F.lit("-"), F.col("number").cast("string"))
    return F.concat(F.lit(f"<{TD}departure-"), *number, F.lit(">"))


def _said(name: str) -> Column:
    return F.struct(F.lit(f"<{T}{name}>").alias("predicate"), _OBJECTS[name]().alias("object"))


def _delay() -> Column:
    """The canonical xsd:duration of whole minutes."""
    hours, minutes = F.floor(F.col("late") / 60), F.col("late") % 60
    hours = F.when(hours > 0, F.concat(hours.cast("string"), F.lit("H"))).otherwise("")
    minutes = F.when(minutes > 0, F.concat(minutes.cast("string"), F.lit("M"))).otherwise("")
    text = F.when(F.col("late") == 0, F.lit("PT0S")).otherwise(F.concat(F.lit("PT"), hours, minutes))
    return F.concat(F.lit('"'), text, F.lit(f'"^^<{XSD}duration>'))


def _platform() -> Column:
    return F.concat(F.lit(f"<{TD}platform-"), (F.col("platform") + 1).cast("string"), F.lit(">"))


def _departure_time() -> Column:
    """An xsd:dateTime: pyoxigraph keeps a dateTimeStamp as one, and the paper's FILTER compares with one."""
    at = F.date_format(F.timestamp_seconds(F.col("leaves") + DAY), "yyyy-MM-dd'T'HH:mm:ss'Z'")
    return F.concat(F.lit('"'), at, F.lit(f'"^^<{XSD}dateTime>'))


def _head_sign() -> Column:
    return F.concat(F.lit('"Town '), F.col("sign").cast("string"), F.lit('"'))


def _route_label() -> Column:
    return F.concat(F.lit('"IC '), F.col("route").cast("string"), F.lit('"'))


_OBJECTS = {
    "delay": _delay,
    "platform": _platform,
    "departureTime": _departure_time,
    "headSign": _head_sign,
    "routeLabel": _route_label,
}
