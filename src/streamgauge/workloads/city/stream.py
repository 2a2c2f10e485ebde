"""The plan of a city's streams: readings that are drawn, or those of CityBench's files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from streamgauge.formats.stream import SCHEMA
from streamgauge.workloads.city import files, readings
from streamgauge.workloads.city.model import KINDS, READING, SEEN
from streamgauge.workloads.city.triples import written
from streamgauge.workloads.plan import Order, TablePlan, Taken

_ORDER: Final = Order(("time", "kind", "sensor", *SEEN, "Latitude", "Longitude"))
_TRIPLES: Final = 4


def stream_plan(seed: int, sensors: Mapping[str, int], interval: int, duration: int) -> TablePlan:
    """The plan of a city that is not there."""
    drawing = readings.Drawing(seed, sensors, interval, duration)
    values = sum(len(KINDS[kind]) * number for kind, number in sensors.items())
    rows = drawing.ids // sum(sensors.values()) * values * _TRIPLES
    return TablePlan(drawing.ids, rows, READING, SCHEMA, drawing, written, order=_ORDER)


def file_plan(paths: Sequence[Path], interval: int, speedup: int) -> TablePlan:
    """The plan of the readings of files; FormatError names the line and field that is wrong."""
    table = files.table(paths, interval, speedup)
    rows = len(table) * _TRIPLES * max(map(len, KINDS.values()))
    return TablePlan(len(table), rows, READING, SCHEMA, Taken(table), written, order=_ORDER)
