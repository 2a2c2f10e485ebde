"""A city's sensors in CityBench's shape: traffic, parking, pollution, weather, users; generated, or from its CSV files.

Source: Ali, Gao and Mileo, CityBench: a configurable benchmark to evaluate RSP engines using smart city datasets
(ISWC 2015), and the layout of its files.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.workloads.parameters import Parameter, ParameterError, duration, resolve, whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamgauge.workloads.plan import TablePlan

NAME = "city"
ABOUT = (
    "A city's traffic, parking, pollution, weather and users as CityBench has them, generated or from its CSV files."
)
QUERIES = Path(__file__).parent / "queries"

PARAMETERS = {
    "roads": Parameter(whole, 3, "number of roads with a traffic sensor"),
    "garages": Parameter(whole, 2, "number of parking garages"),
    "areas": Parameter(whole, 2, "number of areas whose air is measured"),
    "users": Parameter(whole, 1, "number of users who say where they are"),
    "interval": Parameter(duration, 1000, "time between two readings of a sensor (ms, or 1s, 5m)"),
    "duration": Parameter(duration, 30_000, "length of the generated stream (ms, or 30s, 1h), both ends included"),
    "data": Parameter(str, "", "CityBench's files in the place of generated readings, separated by commas"),
    "speedup": Parameter(whole, 1, "how much faster the files' time goes"),
    "static_triples": Parameter(whole, 300, "triples about sensors, roads, garages and events"),
}


def plan(seed: int, **given: object) -> "TablePlan":
    """How the stream table (wire.stream.SCHEMA) is made: a stream for each sensor, an element for each reading of it.

    ParameterError names a parameter that is unknown or out of range, FormatError the line and field of a file.
    """
    from streamgauge.workloads.city.stream import file_plan, stream_plan

    values: dict[str, Any] = resolve(NAME, PARAMETERS, given)
    _check(values)
    if values["data"]:
        return file_plan(_files(values), values["interval"], values["speedup"])
    return stream_plan(seed, _sensors(values), values["interval"], values["duration"])


def static_plan(seed: int, **given: object) -> "TablePlan":
    """How the triples are made that say what does not change: sensors, where they are, events (``static_triples``)."""
    from streamgauge.workloads.city import stream

    values: dict[str, Any] = resolve(NAME, PARAMETERS, given)
    _check(values)
    sensors, wanted = _sensors(values), values["static_triples"]
    least = stream.least(sensors)
    if wanted < least:
        raise ParameterError(f"{NAME}: static_triples is {wanted}: these sensors need {least}")
    return stream.static_plan(seed, sensors, wanted)


def generate(spark: "SparkSession", seed: int, *, partitions: int | None = None, **given: object) -> "DataFrame":
    """The table of ``plan`` on Spark; the same rows for every number of partitions."""
    from streamgauge.workloads.distributed import frame

    return frame(spark, plan(seed, **given), partitions)


def static(spark: "SparkSession", seed: int, *, partitions: int | None = None, **given: object) -> "DataFrame":
    """The table of ``static_plan`` on Spark; the same rows for every number of partitions."""
    from streamgauge.workloads.distributed import frame

    return frame(spark, static_plan(seed, **given), partitions)


def _files(values: dict[str, Any]) -> list[Path]:
    return [Path(name.strip()) for name in values["data"].split(",")]


def _sensors(values: dict[str, Any]) -> dict[str, int]:
    """How many sensors there are of each kind; one of the weather."""
    if values["data"]:
        from streamgauge.workloads.city import files

        return files.sensors(_files(values))
    named = {"traffic": "roads", "parking": "garages", "pollution": "areas", "user": "users"}
    return {**{kind: values[name] for kind, name in named.items()}, "weather": 1}


def _check(values: dict[str, Any]) -> None:
    for name in ("roads", "garages", "areas", "users", "interval", "speedup"):
        if not 1 <= values[name] < 1 << 31:
            raise ParameterError(f"{NAME}: {name} is {values[name]}: it must be from 1 to 2147483647")
    if not 0 <= values["static_triples"] < 1 << 31:
        raise ParameterError(f"{NAME}: static_triples is {values['static_triples']}: it must be from 0 to 2147483647")
