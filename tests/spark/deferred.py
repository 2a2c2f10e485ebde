"""Verdicts on many small streams by Spark, with few jobs: what is expected of all of them is collected together.

Every task is begun; the first answer that it needs is put off, and so is the task. When all tasks wait, their answers
are collected by ``together``, and the tasks begin anew with what is known, until each comes to its end.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from streamgauge.formats.stream import to_table
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import Term
from streamgauge.oracle.expected import on_spark
from streamgauge.oracle.expected.on_spark import SparkReports
from streamgauge.oracle.expected.reports import Expect, Header, definition
from streamgauge.semantics.arrivals import Head
from streamgauge.semantics.refusal import RefusedError
from streamgauge.spark.failures import JOB_ERRORS
from tests.spark.together import together

T = TypeVar("T")


class WaitsError(Exception):
    """A task waits for an answer."""


class PutOff:
    """What Spark expects of one stream; an answer that is not known yet is put off."""

    def __init__(self, session: SparkSession, elements: Sequence[StreamElement]) -> None:
        self._elements = elements
        table = session.createDataFrame(to_table(elements))
        self._expect = SparkReports(session, table, Header(map(Head.of, elements)))
        self.waiting: dict[object, DataFrame] = {}
        self.known: dict[object, pa.Table | RefusedError] = {}
        self._reports: dict[object, object] = {}
        self._asked: object = None

    def __call__(self, *asked: Any) -> Any:
        if asked not in self._reports:
            self._asked = asked
            self._reports[asked] = self._expect(*asked)
        return self._reports[asked]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._expect, name)

    def objects(self, query: ContinuousQuery, class_of: Callable[[Term], str]) -> Iterable[Term]:
        """Those of the elements, without a job."""
        return definition(self._elements).objects(query, class_of)

    def collected(self, frame: DataFrame) -> pa.Table:
        """In the place of a job: its result, if it is known."""
        if self._asked not in self.known:
            self.waiting[self._asked] = frame
            raise WaitsError
        result = self.known[self._asked]
        if isinstance(result, RefusedError):
            raise result
        return result


def by_spark(
    session: SparkSession, tasks: Mapping[str, tuple[Sequence[StreamElement], Callable[[Expect], T]]]
) -> dict[str, T]:
    """What each task gives that is made of a stream and of what Spark expects of it."""
    streams = {name: PutOff(session, elements) for name, (elements, _) in tasks.items()}
    done: dict[str, T] = {}
    while len(done) < len(tasks):
        for name in [name for name in tasks if name not in done]:
            expect: Any = streams[name]
            try:
                with _instead_of_jobs(expect.collected):
                    done[name] = tasks[name][1](expect)
            except WaitsError:
                continue
        _collect([stream for stream in streams.values() if stream.waiting])
    return done


@contextmanager
def _instead_of_jobs(collected: Callable[[DataFrame], pa.Table]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_spark, "_collected", collected)
        yield


def _collect(streams: Sequence[PutOff]) -> None:
    """Answer what is put off; where one of many jobs fails each is done by itself."""
    places = [(stream, asked, frame) for stream in streams for asked, frame in stream.waiting.items()]
    try:
        result: list[Any] = together([frame for *_, frame in places])
        result = [_table(rows, frame) for rows, (*_, frame) in zip(result, places, strict=True)]
    except JOB_ERRORS:
        result = [_alone(frame) for *_, frame in places]
    for (stream, asked, _), table in zip(places, result, strict=True):
        stream.known[asked] = table
    for stream in streams:
        stream.waiting.clear()


def _alone(frame: DataFrame) -> pa.Table | RefusedError:
    try:
        return on_spark._collected(frame)
    except RefusedError as error:
        return error


def _table(rows: Sequence[tuple[Any, ...]], frame: DataFrame) -> pa.Table:
    """Rows of an answer, or of its changes, as Arrow columns."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in frame.columns]
    if "net" in frame.columns:
        at = frame.columns.index("net")
        columns[at] = [int(entry) for entry in columns[at]]
    return pa.table({f"c{place}": column for place, column in enumerate(columns)})
