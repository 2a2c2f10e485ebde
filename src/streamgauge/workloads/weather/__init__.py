"""Weather stations: the stream of YABench (generator SG1), with options that it lacks."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.workloads.parameters import Parameter, ParameterError, choice, duration, resolve, share, switch, whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamgauge.workloads.plan import TablePlan

NAME = "weather"
ABOUT = "Weather stations that report the air temperature, exactly as YABench's generator SG1 by default."
QUERIES = Path(__file__).parent / "queries"
STREAM = "http://ex.org/streams/test"

PARAMETERS = {
    "stations": Parameter(whole, 10, "number of stations"),
    "interval": Parameter(duration, 1000, "time between two observations of a station (ms, or 1s, 5m)"),
    "duration": Parameter(duration, 30_000, "length of the stream (ms, or 30s, 1h), both ends included"),
    "min_temp": Parameter(whole, 0, "lowest temperature (degrees)"),
    "max_temp": Parameter(whole, 100, "temperatures stay below this (degrees)"),
    "arrival": Parameter(choice("regular", "poisson", "bursts", "pareto"), "regular", "when a station observes"),
    "values": Parameter(choice("uniform", "normal", "walk"), "uniform", "how temperatures are distributed"),
    "late_share": Parameter(share, 0.0, "share of the observations that arrive late (0 to 1)"),
    "late_bound": Parameter(duration, 0, "how late they arrive at most (ms, or 2s)"),
    "humidity": Parameter(switch, False, "each observation is followed by one of relative humidity (true, false)"),
    "observes": Parameter(choice("temperature", "all"), "temperature", "what a station reports each time"),
    "stream": Parameter(str, STREAM, "IRI of the stream"),
    "streams": Parameter(whole, 1, "number of streams; several are called after the IRI: -1, -2, ..."),
    "static_triples": Parameter(whole, 0, "triples of static data about stations and places beside the stream"),
}


def plan(seed: int, **given: object) -> "TablePlan":
    """How the stream table (wire.stream.SCHEMA) of PARAMETERS is made, in order of sequence.

    ParameterError names a parameter that is unknown or out of range.
    """
    from streamgauge.workloads.weather.stream import stream_plan

    values: dict[str, Any] = resolve(NAME, PARAMETERS, given)
    _check(values)
    return stream_plan(seed, values)


def static_plan(seed: int, **given: object) -> "TablePlan | None":
    """How the triples are made that say what does not change about the stations and where they are.

    As many rows as ``static_triples`` says, ``None`` without any; ParameterError when these are too few for the
    stations.
    """
    from streamgauge.workloads.weather import stream

    values: dict[str, Any] = resolve(NAME, PARAMETERS, given)
    _check(values)
    wanted = values["static_triples"]
    if not wanted:
        return None
    least = stream.least(values["stations"])
    if wanted < least:
        raise ParameterError(f"{NAME}: static_triples is {wanted}: {values['stations']} stations need {least}, or 0")
    return stream.static_plan(seed, values["stations"], wanted)


def generate(spark: "SparkSession", seed: int, *, partitions: int | None = None, **given: object) -> "DataFrame":
    """The table of ``plan`` on Spark; the same rows for every number of partitions."""
    from streamgauge.workloads.distributed import frame

    return frame(spark, plan(seed, **given), partitions)


def static(spark: "SparkSession", seed: int, *, partitions: int | None = None, **given: object) -> "DataFrame | None":
    """The table of ``static_plan`` on Spark, ``None`` without one; the same rows for every number of partitions."""
    from streamgauge.workloads.distributed import frame

    found = static_plan(seed, **given)
    return None if found is None else frame(spark, found, partitions)


def _check(values: dict[str, Any]) -> None:
    for name in ("stations", "interval", "streams"):
        if not 1 <= values[name] < 1 << 31:
            raise ParameterError(f"{NAME}: {name} is {values[name]}: it must be from 1 to 2147483647")
    if not 0 <= values["static_triples"] < 1 << 31:
        raise ParameterError(f"{NAME}: static_triples is {values['static_triples']}: it must be from 0 to 2147483647")
    most = 1 << 24 if values["values"] == "uniform" else 99_999
    for name in ("min_temp", "max_temp"):
        if abs(values[name]) > most:
            raise ParameterError(f"{NAME}: {name} is {values[name]}: xsd:float is exact from {-most} to {most}")
    if values["max_temp"] <= values["min_temp"]:
        raise ParameterError(f"{NAME}: max_temp is {values['max_temp']}: it must be above min_temp")
    if values["late_share"] and not values["late_bound"]:
        raise ParameterError(f"{NAME}: late_bound is 0: say how late the late_share arrives at most, such as 2s")
