"""The part files of a folder of stream tables, in the order of their sequence numbers.

Spark passes files by modification time, and the tasks that write them end in any order. So a micro-batch takes as many
files as Spark names for it, but those with the next sequence numbers.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pyspark.sql import SparkSession

from streamgauge.formats.manifest import TablePart, made
from streamgauge.formats.places import RemotePlace, place
from streamgauge.formats.stream import StreamError
from streamgauge.formats.tables import check
from streamgauge.semantics.refusal import OutOfOrderError
from streamgauge.spark.hadoop import HadoopFiles
from streamgauge.spark.hadoop_tables import measured, part_files


class PartFile(NamedTuple):
    """A file of a stream table, and its lowest and highest sequence number."""

    file: str
    lowest: int
    highest: int


class PartFiles:
    """The part files next to those that Spark names; each one's range is read once, with ``session`` if remote."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._known: dict[str, PartFile | None] = {}

    def following(self, named: Sequence[str], first: int, taken: int) -> list[PartFile]:
        """The next parts, as many as are ``named``, from sequence number ``first`` on, after ``taken`` earlier ones.

        OutOfOrderError names a new file with earlier numbers than ``first``, or two that overlap;
        StreamError a file that is not a stream table.

        Worked example: tasks finish parts 0-9, 20-29 and 10-19 in this order. Of one file per batch, Spark names
        0-9, 20-29, 10-19; the batches take 0-9, 10-19, 20-29.
        """
        parts = sorted(self._parts(named), key=lambda part: part.lowest)
        for before, after in pairwise(parts):
            if after.lowest <= before.highest:
                raise _out_of_order(after, f"{before.highest} of {before.file}")
        # As many as were taken before; any further one lies behind what has been answered.
        passed = [part for part in parts if part.lowest < first]
        if len(passed) > taken:
            late = next((part for part in reversed(passed) if part.file in named), passed[-1])
            raise _out_of_order(late, f"{first - 1}, which has been answered")
        # Files without rows are not parts.
        count = sum(self._known[file] is not None for file in named)
        return parts[len(passed) :][:count]

    def _parts(self, named: Sequence[str]) -> Iterator[PartFile]:
        files = sorted({*named, *self._beside(named)})
        unknown = [file for file in files if file not in self._known]
        self._known.update({file: part_of(file, part) for file, part in self._measured(unknown)})
        yield from filter(None, map(self._known.get, files))

    def _beside(self, named: Sequence[str]) -> Iterator[str]:
        """All part files in the folders of these files."""
        for folder in {place(file).parent for file in named}:
            if isinstance(folder, RemotePlace):
                yield from (str(file.place) for file in part_files(HadoopFiles(self._session), folder))
            else:
                # Names that begin with a dot or an underscore are unfinished for Spark.
                yield from map(str, folder.glob("[!._]*.parquet"))

    def _measured(self, files: Sequence[str]) -> Iterator[tuple[str, TablePart]]:
        places = [(file, place(file)) for file in files]
        far = [one for _, one in places if isinstance(one, RemotePlace)]
        entries = measured(self._session, far)
        for file, one in places:
            if isinstance(one, RemotePlace):
                yield file, entries.get(one, TablePart(one.name, 0))
            else:
                check(one)
                yield file, made(one)


def _out_of_order(part: PartFile, before: str) -> OutOfOrderError:
    return OutOfOrderError(
        f"{part.file}: sequence {part.lowest} comes after {before}: a new file must continue where the "
        "files before it end"
    )


def part_of(file: str, part: TablePart) -> PartFile | None:
    """The part in a file, ``None`` for one without rows; StreamError for a file that is not a stream table."""
    if not part.rows:
        return None
    if part.sequence is None:
        raise StreamError(f"{file}: column sequence is missing")
    return PartFile(file, *part.sequence)
