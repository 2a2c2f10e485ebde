"""Tables generated in blocks by pure functions, in this process or on Spark; vectorised construction of terms."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.formats.files import made_folder
from streamgauge.formats.manifest import commit
from streamgauge.formats.places import Place, RemotePlace
from streamgauge.formats.tables import writer
from streamgauge.model.terms import XSD, Triple
from streamgauge.workloads import Workload
from streamgauge.workloads.draws import Ints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Part: TypeAlias = "str | Ints | pa.Array"
"""One text for all rows, an integer per row, or a text per row."""

TRIPLE_SCHEMA = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ("subject", "predicate", "object")])
"""Rows of static data."""


class Statement(NamedTuple):
    """A triple for each row, all with the same predicate."""

    subject: pa.Array
    predicate: str
    object: pa.Array


class Exploded(NamedTuple):
    """Ordered triples: the row of each, its position within the row, and the columns subject, predicate, object."""

    row: Ints
    position: Ints
    triples: tuple[pa.Array, pa.Array, pa.Array]


def text(count: int, *parts: Part) -> pa.Array:
    """The concatenated parts, for ``count`` rows."""
    # Arrow joins scalars to a scalar, but a column is expected.
    if all(isinstance(part, str) for part in parts):
        return pa.repeat(pa.scalar("".join(map(str, parts))), count)
    columns = [pa.array(part).cast(pa.string()) if isinstance(part, np.ndarray) else part for part in parts]
    return pc.binary_join_element_wise(*columns, "")


def formatted(numbers: Ints, form: Callable[[int], str]) -> pa.Array:
    """A text for each number, formatted once per distinct number."""
    # A few thousand distinct values against millions of rows: the Python function is called for the former only.
    known, places = np.unique(numbers, return_inverse=True)
    return pa.array([form(number) for number in known.tolist()], pa.string()).take(pa.array(places))


def integers(numbers: Ints) -> pa.Array:
    """Canonical xsd:integer literals of numbers, an array of texts."""
    return text(len(numbers), '"', numbers, f'"^^<{XSD}integer>')


def exploded(groups: Sequence[tuple[Ints, Sequence[Statement]]]) -> Exploded:
    """Triples by row and position; a group consists of row numbers and the statements about each of them, in order."""
    pairs = [(rows, statement) for rows, statements in groups for statement in statements]
    if not pairs:
        return Exploded(np.zeros(0, np.int64), np.zeros(0, np.int64), (_none(), _none(), _none()))
    row = np.concatenate([rows for rows, _ in pairs])
    places = [np.full(len(rows), at) for rows, statements in groups for at in range(len(statements))]
    position = np.concatenate(places)
    # The last key of ``lexsort`` is the primary one.
    order = np.lexsort((position, row))
    columns = (
        pa.concat_arrays([statement.subject for _, statement in pairs]),
        pa.concat_arrays([pa.repeat(pa.scalar(statement.predicate), len(rows)) for rows, statement in pairs]),
        pa.concat_arrays([statement.object for _, statement in pairs]),
    )
    first, second, third = (column.take(pa.array(order)) for column in columns)
    return Exploded(row[order], position[order], (first, second, third))


def _none() -> pa.Array:
    return pa.array([], pa.string())


def batch(**columns: "Ints | pa.Array") -> pa.RecordBatch:
    """Named columns as a batch."""
    return pa.RecordBatch.from_pydict({name: pa.array(column) for name, column in columns.items()})


def numbers_of(rows: pa.RecordBatch, *names: str) -> list[Ints]:
    """Columns of whole numbers."""
    return [rows.column(name).to_numpy() for name in names]


def expanded(counts: Ints) -> tuple[Ints, Ints]:
    """Repeat row i ``counts[i]`` times: the row of each copy, and its number among the row's copies, from 0.

    ``expanded([2, 0, 3])`` gives ``[0, 0, 2, 2, 2]`` and ``[0, 1, 0, 1, 2]``.
    """
    of = np.repeat(np.arange(len(counts)), counts)
    return of, np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)


def running(steps: Ints, first: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Ints:
    """The cumulative sum of the steps, restarted at each row that is ``first`` of its path.

    ``running([1, 2, 3, 4], [True, False, True, False])`` gives ``[1, 3, 3, 7]``.
    """
    total = np.cumsum(steps)
    begin = np.flatnonzero(first)
    before = (total - steps)[begin]
    return total - np.repeat(before, np.diff(np.append(begin, len(steps))))


BLOCK: Final = 8192
"""Approximate number of drawn rows per block."""


@dataclass(frozen=True, slots=True)
class Order:
    """The sort columns of drawn rows, nulls first; ``number``: add a column ``n`` that counts the rows from 0."""

    columns: tuple[str, ...]
    number: bool = True


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A table to generate: ``draw`` returns batches for ids, ``write`` turns an ordered batch into rows of the table.

    The ids are 0 to ``ids`` - 1; an id has at most ``most`` drawn rows. Without an ``order`` batches stay in the order
    of ids. ``rows`` is the approximate number of rows of the table.
    """

    ids: int
    rows: int
    drawn: pa.Schema
    schema: pa.Schema
    draw: Callable[[Ints], Iterator[pa.RecordBatch]]
    write: Callable[[pa.RecordBatch], pa.RecordBatch]
    most: int = 1
    order: Order | None = None

    def draw_all(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The drawn rows of ids, in blocks of about ``BLOCK`` rows."""
        step = max(1, BLOCK // self.most)
        for first in range(0, len(ids), step):
            for column in self.draw(ids[first : first + step]):
                # Batches of all blocks need one schema, and a drawn column of nulls only has the type null.
                yield column.cast(self.drawn)

    def part(self, first: int, end: int) -> Iterator[pa.RecordBatch]:
        """The rows of the ids from ``first`` to ``end`` - 1.

        The table's rows, or drawn rows that still have to be sorted.
        """
        blocks = (np.arange(at, min(at + BLOCK, end)) for at in range(first, end, BLOCK))
        drawn = (batch for ids in blocks for batch in self.draw_all(ids))
        return map(self.write, drawn) if self.order is None else drawn

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The table's rows in order, generated in this process."""
        batches_ = self.part(0, self.ids)
        return batches_ if self.order is None else map(self.write, _ordered(self.order, self.drawn, batches_))

    def table(self) -> pa.Table:
        """The table in memory."""
        return pa.Table.from_batches(self.batches(), self.schema)


def _ordered(order: Order, schema: pa.Schema, drawn: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    table = pa.Table.from_batches(drawn, schema).combine_chunks()
    keys = [(name, "ascending", "at_start") for name in order.columns]
    table = table.take(pc.sort_indices(table, sort_keys=keys))
    if order.number:
        table = table.append_column("n", pa.array(np.arange(len(table))))
    yield from table.combine_chunks().to_batches(max_chunksize=BLOCK)


def unchanged(rows: pa.RecordBatch) -> pa.RecordBatch:
    """A ``write`` for plans that draw the table's rows directly."""
    return rows


def table_plan(table: pa.Table) -> TablePlan:
    """The plan of an existing table."""
    return TablePlan(len(table), len(table), table.schema, table.schema, Taken(table), unchanged)


@dataclass(frozen=True, slots=True)
class Taken:
    """A ``draw`` that takes rows of an existing table; ids are row numbers."""

    table: pa.Table

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """Some rows, in the order of the ids."""
        yield from self.table.take(pa.array(ids)).combine_chunks().to_batches()


class Section(NamedTuple):
    """Things of one kind, numbered from ``first``; ``describe`` returns the ``triples`` triples of each."""

    first: int
    things: int
    triples: int
    describe: Callable[[Ints], list[Statement]]


def background_plan(known: Sequence[Triple], sections: Sequence[Section], total: int) -> TablePlan:
    """The plan of the first ``total`` triples of ``known`` and the sections after it."""
    # The known triples are the thing with id 0.
    ends = list(accumulate((section.things for section in sections), initial=1 if known else 0))
    kept = tuple(section for section in sections if section.things)
    begins = tuple(begin for begin, section in zip(ends, sections, strict=False) if section.things)
    before = accumulate((section.things * section.triples for section in kept), initial=len(known))
    drawing = _Drawing(tuple(known), kept, begins, tuple(before), total)
    widest = max([len(known), *(section.triples for section in kept)])
    return TablePlan(ends[-1], total, TRIPLE_SCHEMA, TRIPLE_SCHEMA, drawing, unchanged, widest)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A ``draw`` of known triples (id 0, if any) and sections.

    ``begins`` has the first id of each section, ``before`` the number of triples before it.
    """

    known: tuple[Triple, ...]
    sections: tuple[Section, ...]
    begins: tuple[int, ...]
    before: tuple[int, ...]
    total: int

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The triples of some ids, in order."""
        if self.known and 0 in ids:
            columns = [pa.array(column, pa.string()) for column in zip(*self.known[: self.total], strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=TRIPLE_SCHEMA)
        for section, begin, before in zip(self.sections, self.begins, self.before, strict=False):
            of = ids[(ids >= begin) & (ids < begin + section.things)] - begin
            if len(of):
                exploded_rows = exploded([(np.arange(len(of)), section.describe(of + section.first))])
                place = before + of[exploded_rows.row] * section.triples + exploded_rows.position
                rows = pa.RecordBatch.from_arrays(list(exploded_rows.triples), schema=TRIPLE_SCHEMA)
                # The last thing may be cut: ``total`` counts triples.
                yield rows.filter(pa.array(place < self.total))


LOCAL_ROWS: Final = 1_000_000
"""Approximate number of rows up to which a table is generated in this process."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Generates tables; ``spark`` returns the session if one is needed, ``always`` uses Spark for all tables.

    ``tell`` receives the current step, and the share (0 to 1) of a local table that is written.
    """

    spark: "Callable[[], SparkSession]"
    always: bool = False
    tell: Callable[[str, float], object] = lambda _what, _share: None

    def local(self, plan: TablePlan) -> bool:
        """Whether a table is generated in this process."""
        return not self.always and plan.rows <= LOCAL_ROWS

    def stream(self, workload: Workload, seed: int, parameters: Mapping[str, object]) -> "TablePlan | DataFrame":
        """The stream table (formats.stream.SCHEMA) of a workload, as a plan or a Spark frame; ParameterError."""
        plan = _planned(workload, "plan", seed, parameters)
        if plan is not None and self.local(plan):
            return plan
        return workload.generate(self.spark(), seed, partitions=None, **parameters)

    def stream_table(self, workload: Workload, seed: int, parameters: Mapping[str, object]) -> pa.Table:
        """The stream table in memory, ordered by sequence and position."""
        stream = self.stream(workload, seed, parameters)
        return stream.table() if isinstance(stream, TablePlan) else stream.orderBy("sequence", "position").toArrow()

    def write_stream(self, workload: Workload, seed: int, parameters: Mapping[str, object], folder: Place) -> None:
        """Write the stream table as Parquet files into a new folder; on other file systems by Spark."""
        # Only Spark writes to other file systems.
        maker = replace(self, always=True) if isinstance(folder, RemotePlace) else self
        stream = maker.stream(workload, seed, parameters)
        if not isinstance(stream, TablePlan):
            from streamgauge.spark.hadoop_tables import write_table

            self.tell(f"generating the stream on Spark, in {folder}", 0.0)
            write_table(stream, folder)
            return
        assert isinstance(folder, Path)
        made_folder(folder)
        rows = 0
        with writer(folder / "part-0.parquet", stream.schema) as parquet:
            for batch in stream.batches():
                parquet.write_batch(batch)
                rows += batch.num_rows
                self.tell(f"{rows:,} of about {stream.rows:,} triples", min(1.0, rows / max(1, stream.rows)))
        commit(folder)

    def static(self, workload: Workload, seed: int, parameters: Mapping[str, object]) -> "Iterable[pa.RecordBatch]":
        """The static triples in batches; empty if the workload has none. ParameterError."""
        plan = _planned(workload, "static_plan", seed, parameters)
        if plan is not None and self.local(plan):
            return plan.batches()
        make: Any = getattr(workload, "static", None)
        has_none = plan is None and hasattr(workload, "static_plan")
        table = None if make is None or has_none else make(self.spark(), seed, partitions=None, **parameters)
        return () if table is None else table.toArrow().to_batches()

    def write_static(self, workload: Workload, seed: int, parameters: Mapping[str, object], file: Path) -> None:
        """Write the static triples as N-Triples into a new file."""
        with file.open("x", encoding="utf-8", newline="\n") as lines:
            for batch in self.static(workload, seed, parameters):
                lines.writelines(f"{line}\n" for line in lines_of(batch).to_pylist())

    def static_triples(self, workload: Workload, seed: int, parameters: Mapping[str, object]) -> list[Triple]:
        """The static triples as a list."""
        batches = self.static(workload, seed, parameters)
        return [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


def lines_of(rows: "pa.RecordBatch | pa.Table") -> "pa.Array | pa.ChunkedArray":
    """The triples of rows as lines of N-Triples without line ends; the terms are already in that form."""
    return pc.binary_join_element_wise(*(rows.column(name) for name in ("subject", "predicate", "object")), ".", " ")


def _planned(workload: Workload, name: str, seed: int, parameters: Mapping[str, object]) -> TablePlan | None:
    make: Callable[..., TablePlan | None] | None = getattr(workload, name, None)
    return None if make is None else make(seed, **parameters)
