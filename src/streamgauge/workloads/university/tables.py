"""Universities as the stream table; each is drawn by itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from streamgauge.formats.stream import SCHEMA
from streamgauge.model.terms import Triple
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.plan import TablePlan, unchanged
from streamgauge.workloads.university.departments import descriptions
from streamgauge.workloads.university.extended import extended
from streamgauge.workloads.university.words import words

STREAM: Final = "http://ex.org/streams/university"
BITS: Final = 20
"""A resource's sequence number is its university's number, then its own in so many bits."""

_ROWS = 50_000
_STATEMENTS = 130_000
"""What one university has, about, with its people's statements of the Extended Data Set."""


def stream_plan(seed: int, values: dict[str, Any]) -> TablePlan:
    """The plan of ``values["universities"]`` from the number ``values["first"]`` on; an id is a university."""
    count = values["universities"]
    drawing = Drawing(seed, values["first"], values["extended"], values["interval"])
    return TablePlan(count, count * _STATEMENTS, SCHEMA, SCHEMA, drawing, unchanged, _STATEMENTS)


@dataclass(frozen=True, slots=True)
class Drawing:
    """Universities from the number ``first`` on, their resources ``interval`` ms apart; ``names``: see ``words``."""

    seed: int
    first: int
    names: str
    interval: int

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The rows of some universities."""
        for order in ids.tolist():
            yield from _batches(self.first + order, self.seed, self.names, self.interval, order)


def described(number: int, seed: int, names: str = "no") -> Iterator[list[Triple]]:
    """What is said of each resource of one university, plain or of the Extended Data Set."""
    found = descriptions(number, seed)
    return found if names == "no" else extended(found, seed, words(names))


def _batches(number: int, seed: int, names: str, interval: int, order: int) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[int, int, Triple]] = []
    for at, said in enumerate(described(number, seed, names)):
        rows += [(at, position, triple) for position, triple in enumerate(said)]
        if len(rows) >= _ROWS:
            yield _batch(rows, order, interval)
            rows = []
    if rows:
        yield _batch(rows, order, interval)


def _batch(rows: list[tuple[int, int, Triple]], order: int, interval: int) -> pa.RecordBatch:
    sequences = [(order << BITS) + at for at, _, _ in rows]
    subjects, predicates, objects = zip(*(triple for _, _, triple in rows), strict=True)
    columns = [
        [STREAM] * len(rows),
        [interval * sequence for sequence in sequences],
        sequences,
        [position for _, position, _ in rows],
        subjects,
        predicates,
        objects,
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
