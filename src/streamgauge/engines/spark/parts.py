"""The part files of a folder of stream tables, in the order of their sequence numbers.

Spark hands over files by their time of change, and tasks that write them end in any order. So a micro-batch takes as
many files as Spark named for it, but those whose sequence numbers come next.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.formats.stream import StreamError
from streamgauge.formats.tables import opened
from streamgauge.semantics.refusal import OutOfOrderError


class PartFile(NamedTuple):
    """A file of a stream table, and its lowest and highest sequence number."""

    file: str
    lowest: int
    highest: int


class PartFiles:
    """The part files beside those that Spark names; the range of each is read once."""

    def __init__(self) -> None:
        self._known: dict[str, PartFile | None] = {}

    def following(self, named: Sequence[str], first: int, taken: int) -> list[PartFile]:
        """The next parts, as many as are ``named``, from sequence number ``first`` on, after ``taken`` earlier ones.

        OutOfOrderError names a file that lies before ``first`` but has not been taken, or two that overlap;
        StreamError a file that is not a stream table.

        Worked example: tasks finish parts 0-9, 20-29 and 10-19 in this order. Of one file per batch, Spark names
        0-9, 20-29, 10-19; the batches take 0-9, 10-19, 20-29.
        """
        parts = sorted(self._parts(named), key=lambda part: part.lowest)
        for before, after in pairwise(parts):
            if after.lowest <= before.highest:
                raise _out_of_order(after, f"{before.highest} of {before.file}")
        passed = [part for part in parts if part.lowest < first]
        if len(passed) > taken:
            late = next((part for part in reversed(passed) if part.file in named), passed[-1])
            raise _out_of_order(late, f"{first - 1}, which has been answered")
        count = sum(self._known[file] is not None for file in named)
        return parts[len(passed) :][:count]

    def _parts(self, named: Sequence[str]) -> Iterator[PartFile]:
        beside = {
            str(file) for folder in {Path(file).parent for file in named} for file in folder.glob("[!._]*.parquet")
        }
        for file in sorted(beside.union(named)):
            if file not in self._known:
                self._known[file] = part_of(file)
            if part := self._known[file]:
                yield part


def _out_of_order(part: PartFile, before: str) -> OutOfOrderError:
    return OutOfOrderError(
        f"{part.file}: sequence {part.lowest} comes after {before}: each file that is added must go on where those "
        "before it ended"
    )


def part_of(file: str) -> PartFile | None:
    """The part in a file, ``None`` for one without rows; StreamError for a file that is not a stream table."""
    with opened(Path(file)) as parquet:
        names = parquet.schema_arrow.names
        if "sequence" not in names:
            raise StreamError(f"{file}: column sequence is missing")
        if not parquet.metadata.num_rows:
            return None
        ranges = list(_statistics(parquet.metadata, names.index("sequence")))
        if not ranges:
            found = pc.min_max(parquet.read(["sequence"]).column(0))
            ranges = [(found["min"].as_py(), found["max"].as_py())]
    return PartFile(file, min(low for low, _ in ranges), max(high for _, high in ranges))


def _statistics(metadata: pq.FileMetaData, column: int) -> Iterator[tuple[int, int]]:
    """The least and greatest value of a column in each row group; nothing where a row group does not state them."""
    groups = [metadata.row_group(number).column(column) for number in range(metadata.num_row_groups)]
    if all(group.is_stats_set and group.statistics.has_min_max for group in groups):
        yield from ((group.statistics.min, group.statistics.max) for group in groups)
