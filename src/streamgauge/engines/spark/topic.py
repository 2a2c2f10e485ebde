"""A Kafka topic as a source of Structured Streaming, with its offsets in the checkpoint, so a batch can be repeated.

Spark's own connector is not part of its Python package. This one reads through librdkafka with a task per partition of
the topic, and stores every batch as a stream table next to the checkpoint.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from streamgauge.engines.spark.panes import ROWS
from streamgauge.formats.stream import to_table
from streamgauge.formats.tables import writer
from streamgauge.sources.kafka import KafkaLog, Logged

_PLACES = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("item", pa.int32()), ("arrived", pa.int64())])
_CHUNK_MESSAGES = 10_000


class Topic(DataSource):  # type: ignore[misc]
    """The data source ``streamgauge_topic``; options: the topic's ``url``, ``most`` messages per batch."""

    @classmethod
    def name(cls) -> str:
        """The data source's name in Spark."""
        return "streamgauge_topic"

    def schema(self) -> str:
        """A stream table with sequence numbers within a chunk, and each row's place in the topic."""
        return f"{ROWS}, partition int, offset long, item int, arrived long"

    def streamReader(self, schema: Any) -> "TopicReader":  # noqa: ARG002, N802 (Spark's)
        """The reader of batches."""
        return TopicReader(self.options["url"], int(self.options["most"]))


@dataclass
class Span(InputPartition):  # type: ignore[misc]
    """The range that one task reads: a partition of the topic from ``start`` to ``end``, excluded."""

    partition: int
    start: int
    end: int


class TopicReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads a topic; an offset maps the name of each partition to a number."""

    def __init__(self, url: str, limit: int) -> None:
        self._url, self._most = url, limit
        self._target: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """The start offsets that the URL asks for."""
        return _named(self._ask(KafkaLog.begins))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The maximum number of messages per batch."""
        return ReadMaxRows(self._most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The end offsets, or those within the limit, shared among partitions in proportion."""
        ends = self._target or _named(self._ask(KafkaLog.ends))
        return ends if isinstance(limit, ReadAllAvailable) else _limited(start, ends, limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the current end offsets as the end of the job."""
        self._target = _named(self._ask(KafkaLog.ends))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """A task for each partition with new messages; a new partition starts at its first message."""
        spans = [Span(int(name), start.get(name, 0), upto) for name, upto in end.items()]
        return [span for span in spans if span.start < span.end]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        assert isinstance(partition, Span)
        log = KafkaLog(self._url)
        try:
            chunk: list[Logged] = []
            for logged in log.between(partition.partition, partition.start, partition.end):
                chunk.append(logged)
                if len(chunk) == _CHUNK_MESSAGES:
                    yield _rows(partition.partition, chunk)
                    chunk = []
            if chunk:
                yield _rows(partition.partition, chunk)
        finally:
            log.close()

    def _ask(self, question: Any) -> dict[int, int]:
        log = KafkaLog(self._url)
        try:
            offsets: dict[int, int] = question(log)
            return offsets
        finally:
            log.close()


def streamed(spark: SparkSession, url: str, limit: int) -> DataFrame:
    """The topic as a streaming frame, ``limit`` messages at a time."""
    spark.dataSource.register(Topic)
    return spark.readStream.format(Topic.name()).options(url=url, most=limit).load()


def keep(rows: DataFrame, file: Path, first: int) -> int:
    """Write a batch's rows as a stream table, numbered from ``first``, and return the number of elements.

    The same rows and number give the same file, which appears atomically after an fsync; no file for no elements.
    """
    table = _ordered(rows.toArrow(), first)
    if not len(table):
        return 0
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.stem}")
    with writer(unfinished, table.schema) as parquet:
        parquet.write_table(table)
    with unfinished.open("rb") as written:
        os.fsync(written.fileno())
    unfinished.rename(file)
    return int(table.column("sequence")[-1].as_py()) + 1 - first


def _ordered(table: pa.Table, first: int) -> pa.Table:
    """The rows in the order of writing: by the brokers' time, within each partition by offset."""
    places = {name: table.column(name).to_numpy() for name in (*_PLACES.names, "position")}
    # The last key sorts first: by partition, then offset, then item and position within the message.
    order = np.lexsort([places[name] for name in ("position", "item", "offset", "partition")])
    arrived = places["arrived"].copy()
    for number in np.unique(places["partition"]):
        own = order[places["partition"][order] == number]
        # A producer's or broker's clock may go back; within a partition the offset decides.
        arrived[own] = np.maximum.accumulate(arrived[own])
    order = np.lexsort([*(places[name] for name in ("position", "item", "offset", "partition")), arrived])
    # Every element has a first triple, and each one raises the number by 1; further triples keep it.
    begins = places["position"][order] == 0
    numbered = pa.array(first - 1 + np.cumsum(begins), pa.int64())
    ordered = table.take(pa.array(order)).drop_columns(_PLACES.names)
    ordered = ordered.set_column(ordered.column_names.index("sequence"), "sequence", numbered)
    ends = ordered.column("until")
    return ordered.drop_columns(["until"]) if ends.null_count == len(ends) else ordered


def _rows(partition: int, chunk: Sequence[Logged]) -> pa.RecordBatch:
    """A row per triple of some elements."""
    table = to_table([row.element for row in chunk])
    if "until" not in table.column_names:
        table = table.append_column("until", pa.nulls(len(table), pa.int64()))
    sizes = [len(row.element.added) for row in chunk]
    columns = [
        np.repeat(np.array(values), sizes)
        for values in (
            [partition] * len(chunk),
            [row.offset for row in chunk],
            [row.item for row in chunk],
            [row.arrived for row in chunk],
        )
    ]
    for place, column in zip(_PLACES, columns, strict=True):
        table = table.append_column(place, pa.array(column, place.type))
    (batch,) = table.combine_chunks().to_batches()
    return pa.RecordBatch.from_arrays(batch.columns, names=batch.schema.names)  # without "not null"


def _named(places: Mapping[int, int]) -> dict[str, int]:
    # Spark stores offsets as JSON, whose keys are strings.
    return {str(number): offset for number, offset in places.items()}


def _limited(start: Mapping[str, int], ends: Mapping[str, int], limit: ReadLimit) -> dict[str, int]:
    """Offsets for ``limit`` messages, taken from each partition in proportion to its backlog."""
    assert isinstance(limit, ReadMaxRows)
    waiting = {name: end - start.get(name, 0) for name, end in ends.items()}
    total = sum(waiting.values())
    if total <= limit.max_rows:
        return dict(ends)
    # Rounded up, so that a partition with a small backlog is read too.
    # Worked example: backlogs of 900 and 100 messages and a limit of 100: 90 from the first and 10 from the second.
    return {name: start.get(name, 0) + -(-count * limit.max_rows // total) for name, count in waiting.items()}
