"""Readings as RDF: an ssn:Observation of four triples for each value; a user's place is a node with coordinates."""

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.formats.stream import SCHEMA
from streamgauge.model.terms import RDF_TYPE, XSD
from streamgauge.workloads.city.model import CITY, CT, KINDS, SAO, SEEN, SSN
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.rows import Statement, exploded, formatted, numbers_of, text


def written(readings: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of the stream table of numbered readings (``model``); a sensor's stream is its IRI."""
    kinds = readings.column("kind")
    groups = []
    for kind in KINDS:
        rows = np.flatnonzero(pc.equal(kinds, kind).to_numpy(zero_copy_only=False))
        groups.append((rows, _statements(kind, readings.take(pa.array(rows)))))
    found = exploded(groups)
    n, time, sensor = (column[found.row] for column in numbers_of(readings, "n", "time", "sensor"))
    columns = [
        text(len(n), CITY, kinds.take(pa.array(found.row)), "-", sensor),
        pa.array(time),
        pa.array(n),
        pa.array(found.position, pa.int32()),
        *found.triples,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def degrees(counts: Ints) -> pa.Array:
    """The canonical xsd:double literals of numbers of 1/100000 degrees."""
    return decimal(counts, 5)


def decimal(counts: Ints, places: int) -> pa.Array:
    """The canonical xsd:double literals of numbers of units of that decimal place, 0 or more, below 10^7."""
    return formatted(counts, partial(_decimal, places=places))


def _decimal(count: int, places: int) -> str:
    whole, rest = divmod(count, 10**places)
    number = f"{whole}.{rest:0{places}}".rstrip("0").rstrip(".")
    return f'"{number}"^^<{XSD}double>'


def _statements(kind: str, rows: pa.RecordBatch) -> list[Statement]:
    """The triples of readings of a kind, in order."""
    sensor, time = numbers_of(rows, "sensor", "time")
    count, name = len(sensor), text(len(sensor), CITY, f"{kind}-", sensor)
    place = text(count, "<", name, "/place-", time, ">")
    found: list[Statement] = []
    for observed, seen in zip(KINDS[kind], SEEN, strict=False):
        observation = text(count, "<", name, f"/observation-{observed}-", time, ">")
        value = place if observed == "Location" else rows.column(seen)
        found += [
            Statement(observation, RDF_TYPE, text(count, f"<{SSN}Observation>")),
            Statement(observation, f"<{SSN}observedBy>", text(count, "<", name, ">")),
            Statement(observation, f"<{SSN}observedProperty>", text(count, "<", name, f"/{observed}>")),
            Statement(observation, f"<{SAO}hasValue>", value),
        ]
    if kind == "user":
        found += [Statement(place, f"<{CT}has{end}>", rows.column(end)) for end in ("Latitude", "Longitude")]
    return found
