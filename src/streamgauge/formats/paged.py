"""Sequences of records that stay on disk: a page of them is decoded when one of its records is read.

``gathered`` keeps records that are computed one by one, ``read_records`` reads those of a table. Up to MAX_RESIDENT
are a tuple, so that only what would fill the memory costs reading again.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, chain, groupby, islice
from operator import eq, itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Final, Generic, NamedTuple, TypeVar, overload

import pyarrow as pa

from streamgauge.formats.manifest import TableError, digest, files, metadata
from streamgauge.formats.tables import file_batches, not_written, writer

T = TypeVar("T")

MAX_RESIDENT: Final = 10_000
"""Records up to which a sequence is a tuple: that many window verdicts without rows take about 6 MB."""

PAGE: Final = 5_000
"""Records that are decoded, or encoded, together."""


class RecordForm(NamedTuple, Generic[T]):
    """How a page of rows becomes records; ``optional`` columns are null in files that lack them."""

    schema: pa.Schema
    decode: Callable[[pa.Table], Sequence[T]]
    optional: Collection[str] = ()


def pages(records: Iterable[T], encode: Callable[[Sequence[T]], pa.Table]) -> Iterator[pa.Table]:
    """The records as tables of a page each."""
    coming = iter(records)
    while page := tuple(islice(coming, PAGE)):
        yield encode(page)


def gathered(records: Iterable[T], form: RecordForm[T], encode: Callable[[Sequence[T]], pa.Table]) -> Sequence[T]:
    """The records as a sequence: beyond MAX_RESIDENT in a temporary file; TableError if the disk is full."""
    coming = iter(records)
    # One more than fits tells whether there are more.
    first = tuple(islice(coming, MAX_RESIDENT + 1))
    if len(first) <= MAX_RESIDENT:
        return first
    scratch = TemporaryDirectory(prefix="streamgauge-")
    file = Path(scratch.name) / "records.parquet"
    with writer(file, form.schema) as parquet:
        for page in pages(chain(first, coming), encode):
            try:
                parquet.write_table(page)
            except OSError as error:
                raise not_written(file, error) from error
    return PagedRecords(file, form, scratch)


def read_records(table: Path, form: RecordForm[T]) -> Sequence[T]:
    """The records of a table; TableError, beyond MAX_RESIDENT also while they are read."""
    records = PagedRecords(table, form)
    return records if len(records) > MAX_RESIDENT else tuple(records)


class PagedRecords(Sequence[T]):
    """The records of a table's files, which may be read by several threads; TableError while they are read.

    Going forward decodes each page once; going back decodes from the start of a row group. ``scratch`` is a folder
    that is removed once the records are no longer referenced.
    """

    def __init__(self, table: Path, form: RecordForm[T], scratch: "TemporaryDirectory[str] | None" = None) -> None:
        footers = [(file, metadata(file)) for file in files(table)]
        sizes: list[tuple[Path, int, int]] = [
            (file, group, footer.row_group(group).num_rows)
            for file, footer in footers
            for group in range(footer.num_row_groups)
        ]
        self._table, self._form, self._scratch, self._lock = table.resolve(), form, scratch, Lock()
        self._digests = {file: digest(file) for file, _ in footers}
        self._groups = [(file, group) for file, group, _ in sizes]
        self._firsts: list[int] = list(accumulate((rows for _, _, rows in sizes), initial=0))
        self._page: tuple[int, Sequence[T]] = (-1, ())
        self._next_pages: Iterator[tuple[int, Sequence[T]]] = iter(())

    def is_of(self, table: Path) -> bool:
        """Whether the records are those of this table."""
        return self._table == table.resolve()

    def __len__(self) -> int:
        return self._firsts[-1]

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(page for _, page in self._pages(0))

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...

    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        """A record, or a tuple of them."""
        places = range(len(self))[place]
        return self._at(places) if isinstance(places, int) else tuple(map(self._at, places))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        """The hash of an equal tuple."""
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process is a tuple: the files belong to this one."""
        return tuple, (list(self),)

    def _at(self, place: int) -> T:
        with self._lock:
            begin, page = self._page
            if not begin <= place < begin + len(page):
                begin, page = self._turned(place)
            return page[place - begin]

    def _turned(self, place: int) -> tuple[int, Sequence[T]]:
        """The page of a place, which becomes the current one."""
        # Going forward within a row group, the iterator at hand continues; else another one begins at the group.
        if not self._firsts[self._group(place)] <= self._page[0] <= place:
            self._next_pages = self._pages(place)
        self._page = next((begin, page) for begin, page in self._next_pages if place < begin + len(page))
        return self._page

    def _group(self, place: int) -> int:
        """The row group of a place, counted over all files."""
        # Worked example: groups of 100, 50 and 80 rows begin at 0, 100 and 150, and the place 149 is in the second
        # one.
        return bisect_right(self._firsts, place) - 1

    def _pages(self, place: int) -> Iterator[tuple[int, Sequence[T]]]:
        """The pages from the row group of a place on, each with the place of its first record."""
        begin = self._firsts[self._group(place)]
        for file, groups in groupby(self._groups[self._group(place) :], key=itemgetter(0)):
            # Pages are read long after the sequence was made, and a table may be written anew meanwhile.
            if digest(file) != self._digests[file]:
                raise TableError(f"{file}: was replaced while it was read: read the table again")
            numbers = [number for _, number in groups]
            for batch in file_batches(file, self._form.schema, self._form.optional, PAGE, numbers):
                yield begin, self._form.decode(pa.Table.from_batches([batch]))
                begin += len(batch)
