"""Observations as RDF, seven triples each (six for a truth value), in the vocabulary that YABench and CSRBench use."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamgauge.formats.stream import SCHEMA
from streamgauge.model.terms import RDF_TYPE, XSD
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.rows import Statement, exploded, formatted, numbers_of, text
from streamgauge.workloads.weather.phenomena import Phenomenon

SSW = "http://knoesis.wright.edu/ssw/"
OM_OWL = SSW + "ont/sensor-observation.owl#"
WEATHER = SSW + "ont/weather.owl#"


@dataclass(frozen=True, slots=True)
class Writer:
    """Observations (n, station, time, value in tenths) as rows of the stream table, an element a phenomenon.

    A station's observations enter the stream ``iri``, or with several streams ``iri-1`` to ``iri-streams`` in turn.
    """

    seed: int
    seen: Sequence[Phenomenon]
    iri: str
    streams: int

    def __call__(self, observations: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch of observations."""
        n, station, time, value = numbers_of(observations, "n", "station", "time", "value")
        elements = np.arange(len(n)) * len(self.seen)
        groups = [
            (elements + which, _statements(each, station, time, each.drawn(self.seed, station, time, value)))
            for which, each in enumerate(self.seen)
        ]
        found = exploded(groups)
        of, which = np.divmod(found.row, len(self.seen))
        sequence = n[of] * len(self.seen) + which
        columns = [
            self._stream(station[of]),
            pa.array(time[of]),
            pa.array(sequence),
            pa.array(found.position, pa.int32()),
            *found.triples,
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def _stream(self, station: Ints) -> pa.Array:
        if self.streams == 1:
            return text(len(station), self.iri)
        return formatted(station % self.streams + 1, lambda number: f"{self.iri}-{number}")


def _statements(seen: Phenomenon, station: Ints, time: Ints, value: Ints) -> list[Statement]:
    count = len(station)
    place = text(count, f"{seen.name}_A", station, "_", time)
    observation = text(count, f"<{SSW}Observation_", place, ">")
    measure = text(count, f"<{SSW}MeasureData_", place, ">")
    return [
        Statement(observation, RDF_TYPE, text(count, f"<{WEATHER}{seen.kind}>")),
        Statement(observation, f"<{OM_OWL}observedProperty>", text(count, f"<{WEATHER}_{seen.name}>")),
        Statement(observation, f"<{OM_OWL}procedure>", system(station)),
        Statement(observation, f"<{OM_OWL}result>", measure),
        *(_truth(measure, value) if seen.unit is None else _number(measure, value, seen.unit)),
    ]


def _number(measure: pa.Array, value: Ints, unit: str) -> list[Statement]:
    return [
        Statement(measure, RDF_TYPE, text(len(value), f"<{OM_OWL}MeasureData>")),
        Statement(measure, f"<{OM_OWL}floatValue>", tenths(value)),
        Statement(measure, f"<{OM_OWL}uom>", text(len(value), f"<{WEATHER}{unit}>")),
    ]


def _truth(measure: pa.Array, value: Ints) -> list[Statement]:
    said = {0: f'"false"^^<{XSD}boolean>', 1: f'"true"^^<{XSD}boolean>'}
    return [
        Statement(measure, RDF_TYPE, text(len(value), f"<{OM_OWL}TruthData>")),
        Statement(measure, f"<{OM_OWL}booleanValue>", formatted((value > 0).astype(np.int64), said.__getitem__)),
    ]


def system(station: Ints) -> pa.Array:
    """The IRIs of stations."""
    return text(len(station), f"<{SSW}System_A", station, ">")


def tenths(counts: Ints) -> pa.Array:
    """The canonical xsd:float literals of numbers of tenths."""
    return formatted(counts, lambda count: f'"{_decimal(count)}"^^<{XSD}float>')


def _decimal(count: int) -> str:
    whole, rest = divmod(abs(count), 10)
    return f"{'-' if count < 0 else ''}{whole}{f'.{rest}' if rest else ''}"
