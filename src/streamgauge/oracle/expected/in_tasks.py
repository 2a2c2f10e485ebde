"""The definition in tasks of Spark: the content of each report is evaluated on its own.

Nothing of the compiled plans is used, so an engine on Spark can be judged: a task gets the elements that a report may
contain, and the code of ``semantics`` decides the contents and the answer. One report's elements fit one task's memory.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark import StorageLevel

from streamgauge.formats.stream import SCHEMA, UNTIL, elements
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Changes, Report, Semantics
from streamgauge.model.terms import Triple
from streamgauge.oracle.expected.reports import inspected
from streamgauge.semantics.arrivals import triples
from streamgauge.semantics.evaluate import snapshot_under

EVERY: Final = 1 << 62
"""A ``View.seen`` beyond every rank: all arrivals within the view's times."""

_ANSWER: Final = "unit int, row array<string>, size long, content long"
"""The rows of a report's answer, then one row with the size and the digest of its content."""

_SCHEMA: Final = pa.schema(
    [("unit", pa.int32()), ("row", pa.list_(pa.string())), ("size", pa.int64()), ("content", pa.int64())]
)


class Answered(NamedTuple):
    """The due reports by unit, each with the size of its content, and the units' rows on Spark.

    ``rows`` has the columns ``unit`` (also of reports that are not due) and ``row``; ``release`` frees their disk
    space.
    """

    due: dict[int, tuple[DueReport, int]]
    rows: DataFrame
    release: Callable[[], object] = lambda: None


def refusal(semantics: Semantics) -> str | None:
    """Why the definition cannot judge in tasks, each of which sees the content of one report; ``None`` if it can."""
    if Report.CONTENT_CHANGE in semantics.report and semantics.changes is not Changes.BOTH:
        return "content change by arrivals only"
    return None


def by_definition(
    session: SparkSession, stream: DataFrame, due: Sequence[DueReport], query: ContinuousQuery, semantics: Semantics
) -> Answered:
    """The answers of the candidate reports ``due``, ascending in time, over a stream table, by the definition.

    A unit is an index into ``due``. The answers stay on disk until they are released.
    """
    every = session.range(len(due)).select(fn.col("id").cast("int").alias("unit"))  # also for empty windows
    copies = seen_by(stream, due, query).unionByName(every, allowMissingColumns=True).asTable()
    evaluate = fn.arrow_udtf(_evaluating(due, query, semantics), returnType=_ANSWER)
    answered = evaluate(copies.partitionBy("unit"))
    kept = answered.persist(StorageLevel.DISK_ONLY)
    heads = kept.filter("size is not null").select("unit", "size", "content").toArrow().to_pylist()
    sizes = _due(sorted((head["unit"], head["size"], head["content"]) for head in heads), semantics)
    rows = kept.filter("size is null").select("unit", "row")
    return Answered({unit: (due[unit], size) for unit, size in sizes.items()}, rows, kept.unpersist)


def seen_by(stream: DataFrame, due: Sequence[DueReport], query: ContinuousQuery) -> DataFrame:
    """The rows of a stream table that each report may contain, with the report's index in ``due`` as ``unit``."""
    names = [*SCHEMA.names, *([UNTIL.name] if UNTIL.name in stream.columns else [])]
    place = fn.arrow_udf(_placing(due, query), "struct<low: int, high: int>")
    placed = stream.select(*names, place("time", "stream").alias("units")).filter("units.low <= units.high")
    return placed.select(fn.explode(fn.sequence("units.low", "units.high")).alias("unit"), *names)


def _due(heads: Sequence[tuple[int, int, int]], semantics: Semantics) -> dict[int, int]:
    """The sizes of the contents that satisfy non-empty content and content change, by unit."""
    sizes: dict[int, int] = {}
    before = 0
    for unit, size, content in heads:
        if (size or Report.NON_EMPTY not in semantics.report) and (
            content != before or Report.CONTENT_CHANGE not in semantics.report
        ):
            sizes[unit] = size
        before = content
    return sizes


Times: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"


def _placing(due: Sequence[DueReport], query: ContinuousQuery) -> Callable[[pa.Array, pa.Array], pa.Array]:
    """The first and the last report that may contain a row, by its time and stream; last < first if none may.

    Worked example: windows of 10 ms that slide by 5 have views that begin at 0, 5, 10 and end at 9, 14, 19. For an
    element at 12 the first view that ends at or after 12 is the second, the last that begins by 12 the third.
    """
    borders = {stream: _borders(due, query, stream) for stream in sorted(query.streams)}

    def place(time: pa.Array, stream: pa.Array) -> pa.Array:
        times = time.to_numpy()
        low, high = np.zeros(len(times), np.int32), np.full(len(times), -1, np.int32)
        for name, (firsts, lasts) in borders.items():
            own = pc.equal(stream, name).to_numpy(zero_copy_only=False)
            low[own] = np.searchsorted(lasts, times[own])
            high[own] = np.searchsorted(firsts, times[own], "right") - 1
        return pa.StructArray.from_arrays([pa.array(low), pa.array(high)], ["low", "high"])

    return place


def _borders(due: Sequence[DueReport], query: ContinuousQuery, stream: str) -> tuple[Times, Times]:
    """The first and the last time (ms) of a stream that each report may contain, over all of its windows."""
    places = [place for place, window in enumerate(query.windows) if window.stream == stream]
    views = [[report.views[place] for place in places] for report in due]
    firsts, lasts = (
        [limit(getattr(view, name) for view in one) for one in views] for limit, name in ((min, "first"), (max, "last"))
    )
    return np.array(firsts, np.int64), np.array(lasts, np.int64)


def _evaluating(due: Sequence[DueReport], query: ContinuousQuery, semantics: Semantics) -> type:
    """A table function of a report's rows: its answer by the definition."""

    def evaluate(unit: int, rows: pa.Table) -> pa.Table:
        return _answer(unit, due[unit], seen_elements(rows), query, semantics)

    return report_by_report(evaluate)


def report_by_report(evaluate: Callable[[int, pa.Table], pa.Table]) -> type:
    """A table function, partitioned by ``unit``, that calls ``evaluate`` with a unit and all of its rows."""

    class UnitRows:
        """Collects the batches of one report; those of other reports stay in Spark's shuffle."""

        def __init__(self) -> None:
            self._batches: list[pa.RecordBatch] = []

        def eval(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
            """Collect the next batch of the report's rows."""
            self._batches.append(batch)
            return iter(())

        def terminate(self) -> Iterator[pa.Table]:
            """The report's result, after its last batch."""
            if self._batches:  # or it is a task without reports
                rows = pa.Table.from_batches(self._batches)
                yield evaluate(rows.column("unit")[0].as_py(), rows)

    return UnitRows


def seen_elements(rows: pa.Table) -> list[StreamElement]:
    """The elements among the rows of a unit, by application time, then by sequence number."""
    own = rows.filter(pc.is_valid(rows.column("time")))
    columns = [name for name in (*SCHEMA.names, UNTIL.name) if name in own.column_names]
    by_sequence = own.select(columns).sort_by([("sequence", "ascending"), ("position", "ascending")])
    return sorted(elements(by_sequence), key=lambda element: (element.time, element.sequence))


def whole(report: DueReport) -> DueReport:
    """The report over all that came in its times."""
    return replace(report, views=tuple(replace(view, seen=EVERY, after=0) for view in report.views))


def _answer(
    unit: int, due_report: DueReport, seen: Sequence[StreamElement], query: ContinuousQuery, semantics: Semantics
) -> pa.Table:
    """The answer of one report in the columns of ``_SCHEMA``."""
    contents = inspected(seen, query, semantics)(whole(due_report))
    answer = snapshot_under(query, semantics).at(due_report.instant).rows(contents)
    counts = triples(contents, semantics.content)
    nulls = [None] * len(answer)
    columns = ([*map(list, answer), None], [*nulls, sum(counts.values())], [*nulls, _digest(counts)])
    return pa.table([[unit] * (len(answer) + 1), *columns], schema=_SCHEMA)


def _digest(bag: Counter[tuple[int, Triple]]) -> int:
    """A 63-bit digest of the set of pairs (window, triple) of a content; 0 for none.

    A sum of hashes does not depend on the order. Content change compares digests, because each task sees one content.
    """
    hashes = (blake2b(repr(pair).encode(), digest_size=8).digest() for pair in bag)
    return sum(int.from_bytes(hash_, "big") for hash_ in hashes) & ((1 << 63) - 1)
