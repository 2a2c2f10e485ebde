"""What a micro-batch brought: the narrow columns of its files, read by the driver itself, without a job of Spark's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.formats.stream import SCHEMA, UNTIL, StreamError
from streamgauge.model.terms import Term

Numbers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"

_NARROW = ("stream", "time", "sequence")


@dataclass(frozen=True)
class Heads:
    """The elements of a batch without their triples, by ``sequence``; ``time`` in ms."""

    sequence: Numbers
    time: Numbers

    @classmethod
    def of(cls, sequence: Numbers, time: Numbers) -> "Heads":
        """From a row per triple, in any order."""
        once, places = np.unique(sequence, return_index=True)
        return cls(once, time[places])


class _Came(NamedTuple):
    """The rows of one file that are of the query's streams; ``stream`` is that of all its rows if there is one."""

    file: str
    stream: str | None
    ends: bool
    sequence: Numbers
    time: Numbers
    counted: tuple[int, ...]


@dataclass(frozen=True)
class Arrived:
    """What a micro-batch brought of the query's streams, file by file, at least one row in each.

    ``counted`` has how many triples there are at most of each predicate that was asked for.
    """

    came: tuple[_Came, ...]

    @property
    def rows(self) -> int:
        """How many triples."""
        return sum(len(each.time) for each in self.came)

    @property
    def first(self) -> int:
        """The earliest time, ms."""
        return min(int(each.time.min()) for each in self.came)

    @property
    def last(self) -> int:
        """The latest time, ms."""
        return max(int(each.time.max()) for each in self.came)

    @property
    def lowest(self) -> int:
        """The least sequence number."""
        return min(int(each.sequence.min()) for each in self.came)

    @property
    def highest(self) -> int:
        """The greatest sequence number."""
        return max(int(each.sequence.max()) for each in self.came)

    @property
    def begin(self) -> int:
        """The time of the first element, ms."""
        first = min(self.came, key=lambda each: int(each.sequence.min()))
        return int(first.time[first.sequence.argmin()])

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the files."""
        return tuple(each.file for each in self.came)

    @property
    def ends(self) -> bool:
        """Whether some element may end by itself."""
        return any(each.ends for each in self.came)

    @property
    def stream(self) -> str | None:
        """The stream that all rows of the files are of, if there is one."""
        found = {each.stream for each in self.came}
        return found.pop() if len(found) == 1 else None

    @property
    def counted(self) -> tuple[int, ...]:
        """How many triples of each predicate."""
        return tuple(map(sum, zip(*(each.counted for each in self.came), strict=True)))

    def heads(self) -> Heads:
        """Each element once."""
        sequences, times = ([getattr(each, name) for each in self.came] for name in ("sequence", "time"))
        return Heads.of(np.concatenate(sequences), np.concatenate(times))


def arrived(files: Sequence[str], streams: frozenset[str], predicates: Sequence[Term]) -> Arrived | None:
    """What these stream tables hold of some streams; ``None`` for nothing.

    StreamError names a file that is no stream table.
    """
    came = [_came(file, streams, predicates) for file in sorted(files)]
    found = tuple(each for each in came if len(each.time))
    return Arrived(found) if found else None


def _came(file: str, streams: frozenset[str], predicates: Sequence[Term]) -> _Came:
    with pq.ParquetFile(file, read_dictionary=["stream", "predicate"]) as opened:
        names = opened.schema_arrow.names
        _check(file, names)
        table = opened.read([*_NARROW, "predicate"] if predicates else list(_NARROW))
    found = {name for chunk in table.column("stream").chunks for name in chunk.dictionary.to_pylist()}
    own = table if found <= streams else _own(table, streams)
    sequence, time = (own.column(name).to_numpy() for name in ("sequence", "time"))
    counts = _counts(table.column("predicate"), predicates) if predicates else ()
    return _Came(file, found.pop() if len(found) == 1 else None, UNTIL.name in names, sequence, time, counts)


def _check(file: str, names: Sequence[str]) -> None:
    """StreamError names the column that a file lacks."""
    for field in SCHEMA:
        if field.name not in names:
            raise StreamError(f"{file}: column {field.name} is missing: expected are {', '.join(SCHEMA.names)}")


def _own(table: pa.Table, streams: frozenset[str]) -> pa.Table:
    return table.filter(pc.is_in(table.column("stream").cast(pa.string()), pa.array(sorted(streams))))


def _counts(column: pa.ChunkedArray, predicates: Sequence[Term]) -> tuple[int, ...]:
    """How many of the values are each of these predicates."""
    counts = dict.fromkeys(predicates, 0)
    for chunk in column.chunks:
        found = np.bincount(chunk.indices.to_numpy(), minlength=len(chunk.dictionary))
        for name, count in zip(chunk.dictionary.to_pylist(), found, strict=True):
            if name in counts:
                counts[name] += int(count)
    return tuple(counts.values())
