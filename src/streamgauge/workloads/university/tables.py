"""Universities as the stream table, each made by one task, all at once; the rows do not depend on the partitions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from streamgauge.model.terms import Triple
from streamgauge.wire.stream import SCHEMA
from streamgauge.workloads.university.departments import descriptions
from streamgauge.workloads.university.extended import extended
from streamgauge.workloads.university.words import words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAM: Final = "http://ex.org/streams/university"
BITS: Final = 20
"""A resource's sequence number is its university's number, then its own in so many bits."""

_ROWS = 50_000
_COLUMNS = (
    "stream string not null, time bigint not null, sequence bigint not null, position int not null, "
    "subject string not null, predicate string not null, object string not null"
)


def stream_table(spark: "SparkSession", seed: int, values: dict[str, Any], partitions: int | None) -> "DataFrame":
    """The stream table of ``values["universities"]`` from the number ``values["first"]`` on."""
    spark.dataSource.register(Universities)
    given = {"seed": seed, "partitions": partitions or 0, **values}
    return spark.read.format(Universities.name()).options(**{name: str(value) for name, value in given.items()}).load()


class Universities(DataSource):  # type: ignore[misc]
    """What Spark reads universities from: a task makes one or several."""

    @classmethod
    def name(cls) -> str:
        """What it is called in Spark."""
        return "streamgauge-university"

    def schema(self) -> str:
        """The stream table's columns."""
        return _COLUMNS

    def reader(self, schema: object) -> "Reader":  # noqa: ARG002
        """What reads it."""
        return Reader(self.options)


class Some(InputPartition):  # type: ignore[misc]
    """The universities of one task."""

    def __init__(self, numbers: range) -> None:
        super().__init__(numbers)
        self.numbers = numbers


class Reader(DataSourceReader):  # type: ignore[misc]
    """Makes universities, each by itself."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._seed, self._names = int(options["seed"]), options["extended"]
        self._first, self._count = int(options["first"]), int(options["universities"])
        self._interval, self._wanted = int(options["interval"]), int(options["partitions"])

    def partitions(self) -> Sequence[Some]:
        """As many tasks as are wanted, one for each university unless that would be very many."""
        tasks = min(self._wanted or 1024, self._count)
        last = self._first + self._count
        return [Some(range(self._first + at, last, tasks)) for at in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task's universities."""
        assert isinstance(partition, Some)
        for number in partition.numbers:
            yield from _batches(number, self._seed, self._names, self._interval, number - self._first)


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
