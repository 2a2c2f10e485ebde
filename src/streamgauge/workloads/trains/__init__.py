"""Trains that leave: delays and platforms renewed every update, the rest static, in the shape of iRail's stream.

Source: Taelman et al., Continuous Client-Side Query Evaluation over Dynamic Linked Data, sections 4 and 7, and what its
recorded snapshots of Gent-Sint-Pieters hold (departures an hour, share of observations that differ).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.workloads.parameters import Parameter, ParameterError, duration, resolve, share, whole
from streamgauge.workloads.trains.stream import PROPERTIES, STREAM

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamgauge.workloads.plan import TablePlan
    from streamgauge.workloads.trains.stream import BoardsSize

NAME = "trains"
ABOUT = "Departures on the boards of stations: delays and platforms that end and are renewed, the rest static."
QUERIES = Path(__file__).parent / "queries"


def _properties(value: object) -> str:
    """Some of PROPERTIES, separated by commas, or ``none``; ValueError otherwise."""
    named = [] if value == "none" else [name.strip() for name in str(value).split(",")]
    if unknown := [name for name in named if name not in PROPERTIES]:
        raise ValueError(f"{unknown[0]!r} is no property of a departure: choose from {', '.join(PROPERTIES)}, or none")
    return ",".join(name for name in PROPERTIES if name in named) or "none"


PARAMETERS = {
    "stations": Parameter(whole, 1, "number of stations"),
    "per_hour": Parameter(whole, 16, "departures per hour and station"),
    "ahead": Parameter(duration, 73 * 60_000, "how long a departure is on the board before its time (ms, or 1h)"),
    "update": Parameter(duration, 10_000, "time between two updates, after which what was said ends (ms, or 10s)"),
    "duration": Parameter(duration, 60_000, "length of the stream (ms, or 1h), both ends included"),
    "speedup": Parameter(whole, 1, "how much faster than the stream's time the boards move on"),
    "delay_changes": Parameter(share, 201 / 24_869, "share of the updates at which a departure's delay changes"),
    "platform_changes": Parameter(share, 4 / 24_869, "share of the updates at which its platform changes"),
    "delayed": Parameter(share, 0.2, "share of the departures that are late from the beginning"),
    "head_signs": Parameter(whole, 18, "number of head signs"),
    "platforms": Parameter(whole, 14, "number of platforms of a station"),
    "dynamic": Parameter(_properties, "delay,platform", "properties that are renewed; the others are static"),
    "stream": Parameter(str, STREAM, "IRI of the stream"),
}


def plan(seed: int, **given: object) -> "TablePlan":
    """How the stream table with ``until`` is made: an element for each departure on a board at each update.

    It ends with the next update. In order of sequence; ParameterError names what is out of range.
    """
    from streamgauge.workloads.plan import Order, TablePlan
    from streamgauge.workloads.trains import stream

    values = _checked(given)
    size, named = _size(values), _named(values)
    rows = size.departures * size.updates * len(named)
    drawing = stream.Renewing(seed, size, (values["delay_changes"], values["platform_changes"]))
    writer = stream.RenewalWriter(named, values["update"], values["stream"])
    order = Order(("time", "station", "number"))
    return TablePlan(size.departures, rows, stream.RENEWED, stream.RENEWED_SCHEMA, drawing, writer, size.updates, order)


def static_plan(seed: int, **given: object) -> "TablePlan":
    """How what does not change is made: each station's departures, and those of their properties that stay."""
    from streamgauge.workloads.plan import TRIPLE_SCHEMA, Order, TablePlan
    from streamgauge.workloads.trains import stream

    values = _checked(given)
    size, named = _size(values), _named(values)
    held = [name for name in PROPERTIES if name not in named]
    rows, order = size.departures * (1 + len(held)), Order(("station", "number"), number=False)
    drawing, writer = stream.Boards(seed, size), stream.StaticWriter(held)
    return TablePlan(size.departures, rows, stream.DEPARTURE, TRIPLE_SCHEMA, drawing, writer, order=order)


def generate(spark: "SparkSession", seed: int, *, partitions: int | None = None, **given: object) -> "DataFrame":
    """The table of ``plan`` on Spark; the same rows for every number of partitions."""
    from streamgauge.workloads.distributed import frame

    return frame(spark, plan(seed, **given), partitions)


def static(spark: "SparkSession", seed: int, *, partitions: int | None = None, **given: object) -> "DataFrame":
    """The table of ``static_plan`` on Spark; the same rows for every number of partitions."""
    from streamgauge.workloads.distributed import frame

    return frame(spark, static_plan(seed, **given), partitions)


def _named(values: dict[str, Any]) -> list[str]:
    return [name for name in PROPERTIES if name in values["dynamic"].split(",")]


def _size(values: dict[str, Any]) -> "BoardsSize":
    from streamgauge.workloads.trains.stream import BoardsSize

    names = ("stations", "per_hour", "ahead", "update", "duration", "speedup", "delayed", "head_signs", "platforms")
    return BoardsSize(**{name: values[name] for name in names})


def _checked(given: dict[str, object]) -> dict[str, Any]:
    values: dict[str, Any] = resolve(NAME, PARAMETERS, given)
    for name in ("stations", "per_hour", "ahead", "update", "speedup", "head_signs", "platforms"):
        if not 1 <= values[name] < 1 << 31:
            raise ParameterError(f"{NAME}: {name} is {values[name]}: it must be from 1 to 2147483647")
    if values["per_hour"] > 3_600:
        raise ParameterError(f"{NAME}: per_hour is {values['per_hour']}: it must be at most 3600, add stations instead")
    return values
