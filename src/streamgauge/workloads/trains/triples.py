"""Departures as RDF: what is renewed as elements that end with the next update, the rest as static triples."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from streamgauge.formats.stream import SCHEMA, UNTIL
from streamgauge.model.terms import XSD
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.rows import TRIPLE_SCHEMA, Statement, exploded, formatted, numbers_of, text
from streamgauge.workloads.trains.model import DAY, TD, T

RENEWED_SCHEMA = SCHEMA.append(UNTIL)


@dataclass(frozen=True, slots=True)
class Writer:
    """Numbered rows of ``boards.Renewing`` as the stream table: an element each, of the named properties."""

    named: Sequence[str]
    update: int
    stream: str

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch; an element ends ``update`` ms after its time."""
        subject = _departure(rows)
        found = exploded([(np.arange(len(rows)), [_said(rows, subject, name) for name in self.named])])
        n, time = (column[found.row] for column in numbers_of(rows, "n", "time"))
        columns = [
            text(len(n), self.stream),
            pa.array(time),
            pa.array(n),
            pa.array(found.position, pa.int32()),
            *found.triples,
            pa.array(time + self.update),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=RENEWED_SCHEMA)


@dataclass(frozen=True, slots=True)
class StaticWriter:
    """Departures as triples: the link of their station, and the properties that are not renewed."""

    held: Sequence[str]

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The triples of a batch."""
        subject = _departure(rows)
        (station,) = numbers_of(rows, "station")
        link = Statement(text(len(rows), f"<{TD}station-", station, ">"), f"<{T}hasDeparture>", subject)
        said = [link, *(_said(rows, subject, name) for name in self.held)]
        return pa.RecordBatch.from_arrays(list(exploded([(np.arange(len(rows)), said)]).triples), schema=TRIPLE_SCHEMA)


def _departure(rows: pa.RecordBatch) -> pa.Array:
    station, number = numbers_of(rows, "station", "number")
    return text(len(rows), f"<{TD}departure-", station, "-", number, ">")


def _said(rows: pa.RecordBatch, subject: pa.Array, name: str) -> Statement:
    column, form = _OBJECTS[name]
    numbers: Ints = rows.column(column).to_numpy()
    return Statement(subject, f"<{T}{name}>", formatted(numbers, form))


def _delay(minutes: int) -> str:
    """The canonical xsd:duration of whole minutes."""
    hours, rest = divmod(minutes, 60)
    parts = "".join(f"{count}{unit}" for count, unit in ((hours, "H"), (rest, "M")) if count)
    return f'"PT{parts or "0S"}"^^<{XSD}duration>'


def _departure_time(leaves: int) -> str:
    """An xsd:dateTime: pyoxigraph keeps a dateTimeStamp as one, and the paper's FILTER compares with one."""
    return f'"{datetime.fromtimestamp(leaves + DAY, UTC):%Y-%m-%dT%H:%M:%SZ}"^^<{XSD}dateTime>'


_OBJECTS: Mapping[str, tuple[str, Callable[[int], str]]] = {
    "delay": ("late", _delay),
    "platform": ("platform", lambda number: f"<{TD}platform-{number + 1}>"),
    "departureTime": ("leaves", _departure_time),
    "headSign": ("sign", lambda number: f'"Town {number}"'),
    "routeLabel": ("route", lambda number: f'"IC {number}"'),
}
"""The column of a departure and the object that a property has for its value."""
