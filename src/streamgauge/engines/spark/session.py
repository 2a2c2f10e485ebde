"""The spark engine on the pipe: elements pushed become micro-batches of a streaming query, time makes reports due."""

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from streamgauge.engines import Emit
from streamgauge.engines.spark.batches import Batches, Done
from streamgauge.engines.spark.closes import Closes
from streamgauge.engines.spark.panes import streaming
from streamgauge.formats.stream import to_table
from streamgauge.model import algebra as al
from streamgauge.model.answer import Answer, AnswerKind
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Grain, Origin, Semantics
from streamgauge.semantics.refusal import OutOfOrderError, StreamNameError

MOST_ROWS = 350_000
"""Triples that wait at most for the next micro-batch."""

PAUSE_S = 1.0
"""A micro-batch is begun this long after the last one at the earliest, unless time is told or too much waits."""


SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # plans are made at once, not stage by stage
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",  # a batch's files are listed without a job
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",  # partitions are no more than the base of time
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",  # checks plans after every step of the optimizer
}

FEW_ROWS = 5_000
"""Up to so many triples a batch costs less when its plans are interpreted than when they are compiled to bytecode."""

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


class MicroBatches:
    """A session whose elements land as files that one streaming query takes up; ``late`` counts what came too late."""

    def __init__(
        self,
        spark: SparkSession,
        query: ContinuousQuery,
        semantics: Semantics,
        emit: Emit,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._query, self._semantics, self._clock = query, semantics, clock
        self._folder = tempfile.TemporaryDirectory(prefix="streamgauge-spark-")
        root = Path(self._folder.name)
        self._landing = root / "landing"
        self._landing.mkdir()
        self._spark = configured(spark)
        self._batches = Batches(self._spark, query, semantics, root / "checkpoint", Emitted(query, semantics, emit))
        writer = streaming(self._spark, str(self._landing), 1).writeStream.foreachBatch(self._batch)
        self._running = writer.option("checkpointLocation", str(root / "checkpoint" / "spark")).start()
        self._streams = {each.stream for each in query.windows}
        self._foreign: str | None = None
        self._waiting: list[StreamElement] = []
        self._rows, self._files, self._plans = 0, 0, COMPILED
        self._greatest: int | None = None
        self._closes: Closes | None = None
        self._next, self._ended = 0, clock()
        self.late = 0
        if semantics.origin is not Origin.FIRST:
            self._begin(semantics.t0)

    def _begin(self, t0: int) -> None:
        self._closes = Closes(self._query, self._semantics, t0)
        self._next = self._closes.after(None)

    def push(self, element: StreamElement) -> None:
        """An element has come; it is answered with the next micro-batch."""
        if element.stream not in self._streams:
            self._foreign = element.stream
            return
        if self._greatest is not None and element.time < self._greatest and self._semantics.lateness is None:
            raise OutOfOrderError(
                f"element {element.sequence} goes back from {self._greatest} to {element.time} ms: "
                "sort the stream or declare a lateness bound"
            )
        if self._closes is None:
            self._begin(element.time - element.time % self._semantics.time_unit)
        self._greatest = element.time if self._greatest is None else max(self._greatest, element.time)
        if element.added:
            self._waiting.append(element)
            self._rows += len(element.added)
        if self._rows >= MOST_ROWS or (self._next <= self._reached and self._clock() - self._ended >= PAUSE_S):
            self._land()

    def advance(self, time: int) -> None:
        """Nothing earlier than ``time`` will come: report what is due up to here."""
        if self._closes is None:
            return
        self._greatest = time if self._greatest is None else max(self._greatest, time)
        if self._next <= time:
            self._batches.told = time
            self._land()
            self._batches.drain(time)
            self._next = self._closes.after(time)

    def close(self) -> None:
        """No more input; nothing further is due."""
        self._running.stop()
        self.late = self._batches.state.late
        self._folder.cleanup()
        if self._foreign is not None and self._greatest is None:
            raise StreamNameError(self._streams, self._foreign)

    @property
    def _reached(self) -> int:
        """Up to where the watermark makes reports due, ms."""
        assert self._closes is not None
        assert self._greatest is not None
        return self._closes.come_to(self._greatest - (self._semantics.lateness or 0))

    def _land(self) -> None:
        """Give what waits to the streaming query as one file, and wait until it has been answered."""
        assert self._closes is not None
        if self._waiting:
            unfinished, file = self._landing / f".{self._files:06}", self._landing / f"{self._files:06}.parquet"
            pq.write_table(to_table(self._waiting), unfinished)
            unfinished.rename(file)
            self._plans = INTERPRETED if self._rows <= FEW_ROWS else COMPILED
            self._waiting, self._rows, self._files = [], 0, self._files + 1
            self._answered()
        self._next = self._closes.after(self._reached)
        self._ended = self._clock()

    def _batch(self, rows: DataFrame, batch: int) -> None:
        """Do a batch with plans that suit its size."""
        set_all(self._spark, self._plans)
        self._batches(rows, batch)

    def _answered(self) -> None:
        try:
            self._running.processAllAvailable()
        except StreamingQueryException as error:
            raise (self._batches.error or error) from None
        self.late = self._batches.state.late


class Emitted:
    """Answers of batches to a callback, in the grain that the semantics has."""

    def __init__(self, query: ContinuousQuery, semantics: Semantics, emit: Emit) -> None:
        self._emit, self._grain, self._kind = emit, semantics.grain, kind_of(query.form)
        self._names = query.form.variables if isinstance(query.form, al.Select) else ()

    def write(self, done: Done) -> None:
        """Emit every report of a batch."""
        for said in done.said:
            rows = tuple(zip(*(column.to_pylist() for column in said.rows.columns), strict=True))
            if not said.rows.num_columns:
                rows = ((),) * len(said.rows)
            scope = (said.due.start, said.due.end)
            bags = [(row,) for row in rows] if self._grain is Grain.ROW and rows else [rows]
            for bag in bags:
                self._emit(Answer(self._names, bag, (), self._kind, said.due.instant, scope))


def configured(spark: SparkSession) -> SparkSession:
    """A session of its own in the same Spark, set for many small jobs; the given one keeps its settings."""
    own = spark.newSession()
    set_all(own, SETTINGS)
    return own


def set_all(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Set a session's settings."""
    for key, value in settings.items():
        spark.conf.set(key, value)


def kind_of(form: al.QueryForm) -> AnswerKind:
    """What an answer of a query is."""
    if isinstance(form, al.Select):
        return "solutions"
    return "boolean" if isinstance(form, al.Ask) else "triples"
