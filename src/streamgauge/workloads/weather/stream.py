"""The plan of a weather stream: which observations a block of ids stands for, and how they are ordered."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamgauge.formats.stream import SCHEMA
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.plan import Order, TablePlan
from streamgauge.workloads.rows import batch
from streamgauge.workloads.weather import observations, schedule
from streamgauge.workloads.weather.phenomena import SETS
from streamgauge.workloads.weather.schedule import BURST, Regular, Size, Times
from streamgauge.workloads.weather.triples import Writer

_TRIPLES: Final = 7
_NUMBERED: Final = pa.schema([(name, pa.int64()) for name in ("station", "time", "value", "n")])
_ARRIVING: Final = pa.schema([(name, pa.int64()) for name in ("station", "time", "value", "arrival")])
_BY_ARRIVAL: Final = Order(("arrival", "time", "station"))
_BY_NUMBER: Final = Order(("n",), number=False)


def stream_plan(seed: int, values: Mapping[str, Any]) -> TablePlan:
    """The plan of the stream table of checked parameters."""
    size = Size(values["stations"], values["interval"], values["duration"], values["min_temp"], values["max_temp"])
    regular = schedule.regular(seed, size) if values["arrival"] == "regular" else None
    drawing = Drawing(seed, size, values, regular)
    humid = values["humidity"] and values["observes"] == "temperature"
    seen = SETS["humidity" if humid else values["observes"]]
    ids, most = drawing.ids()
    return TablePlan(
        ids=ids,
        rows=size.stations * (size.duration // size.interval + 1) * len(seen) * _TRIPLES,
        drawn=_ARRIVING if drawing.arrives else _NUMBERED,
        schema=SCHEMA,
        draw=drawing,
        write=Writer(seed, seen, values["stream"], values["streams"]),
        most=most,
        order=_BY_ARRIVAL if drawing.arrives else _BY_NUMBER if drawing.walks else None,
    )


@dataclass(frozen=True, slots=True)
class Drawing:
    """Observations by id: a number of SG1's, a cell of a station, or a station where rows follow from those before."""

    seed: int
    size: Size
    values: Mapping[str, Any]
    regular: Regular | None

    @property
    def walks(self) -> bool:
        """Whether a value follows from the one before."""
        return bool(self.values["values"] == "walk")

    @property
    def arrives(self) -> bool:
        """Whether observations are ordered by their arrival; SG1's own are numbered as they are drawn."""
        return self.regular is None or bool(self.values["late_share"])

    def ids(self) -> tuple[int, int]:
        """How many ids there are, and how many observations one has at most, about."""
        stations, arrival = self.size.stations, self.values["arrival"]
        if self.regular is not None:
            return (stations, -(-self.regular.count // stations)) if self.walks else (self.regular.count, 1)
        if arrival == "pareto":
            return stations, schedule.turns(self.size)
        cells, each = schedule.cells(self.size, arrival), BURST if arrival == "bursts" else 2
        return (stations, cells * each) if self.walks else (stations * cells, each)

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The observations of some ids."""
        if self.regular is not None:
            n = self.regular.of_stations(ids) if self.walks else ids
            times = self.regular.times(n)
        else:
            n, times = ids, self._times(ids)
        if self.regular is not None and self.values["values"] == "uniform":
            value = self.regular.values(n)
        else:
            value = observations.valued(self.seed, self.size, self.values["values"], times)
        if self.arrives:
            share, bound = self.values["late_share"], self.values["late_bound"]
            arrival = observations.arrival(self.seed, share, bound, times)
            yield batch(station=times.station, time=times.time, value=value, arrival=arrival)
        else:
            yield batch(station=times.station, time=times.time, value=value, n=n)

    def _times(self, ids: Ints) -> Times:
        stations, arrival = self.size.stations, self.values["arrival"]
        if arrival == "pareto":
            return schedule.heavy_tailed(self.seed, self.size, ids)
        if not self.walks:
            return schedule.irregular(self.seed, self.size, arrival, ids % stations, ids // stations)
        cells = schedule.cells(self.size, arrival)
        station, cell = np.repeat(ids, cells), np.tile(np.arange(cells), len(ids))
        return schedule.irregular(self.seed, self.size, arrival, station, cell)
