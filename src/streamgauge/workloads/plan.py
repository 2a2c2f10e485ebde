"""How a table is made of blocks by plain functions, which run in this process or as tasks on Spark.

The rows are the same wherever they are made: a block follows from its ids alone. What needs the whole table is its
order, which is stated.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.workloads.draws import Ints

BLOCK: Final = 8192
"""Drawn rows that are worked on at once, about."""


@dataclass(frozen=True, slots=True)
class Order:
    """The columns that order what is drawn, nulls first; ``number``: a column ``n`` counts the rows from 0."""

    columns: tuple[str, ...]
    number: bool = True


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A table: ``draw`` gives the batches of some ids, ``write`` makes rows of the table of a batch that is in order.

    The ids are 0 to ``ids`` - 1; an id gives at most ``most`` drawn rows. Without an ``order`` the batches stay in that
    of their ids. ``rows``: how many rows the table has, about.
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
        """The drawn rows of ids, so many ids at a time that a block stays small."""
        step = max(1, BLOCK // self.most)
        for first in range(0, len(ids), step):
            for found in self.draw(ids[first : first + step]):
                yield found.cast(self.drawn)

    def part(self, first: int, end: int) -> Iterator[pa.RecordBatch]:
        """The rows of the ids from ``first`` to below ``end``: the table's, or drawn ones that are to be ordered."""
        blocks = (np.arange(at, min(at + BLOCK, end)) for at in range(first, end, BLOCK))
        drawn = (found for ids in blocks for found in self.draw_all(ids))
        return map(self.write, drawn) if self.order is None else drawn

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The table's rows in order, made in this process."""
        made = self.part(0, self.ids)
        return made if self.order is None else map(self.write, _ordered(self.order, self.drawn, made))

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
    """What is drawn is the table already."""
    return rows


def table_plan(table: pa.Table) -> TablePlan:
    """The plan of a table that is there."""
    return TablePlan(len(table), len(table), table.schema, table.schema, Taken(table), unchanged)


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows of a table; an id is the number of a row."""

    table: pa.Table

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """Some rows, in the order of the ids."""
        yield from self.table.take(pa.array(ids)).combine_chunks().to_batches()
