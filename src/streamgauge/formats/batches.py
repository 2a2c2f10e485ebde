"""Elements in columns, with terms dictionary-encoded, and their form on the pipe: Arrow IPC streams (docs/pipe.md).

Terms are numbered in order of first occurrence, and each is sent once per stream. Arrow's delta dictionaries do the
same, but a writer compares each with the previous one and a reader concatenates them: 1.8 and 0.3 us per triple, where
a column of new terms costs 0.2 and 0.04 (measured with 110,000 terms).
"""

import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.formats.lines import Advance, Input, LineError
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import Term, Triple

Numbers: TypeAlias = npt.NDArray[np.int32]
Times: TypeAlias = npt.NDArray[np.int64]

SCHEMA: Final = pa.schema(
    [
        pa.field("time", pa.int64(), nullable=False),
        pa.field("sequence", pa.int64()),
        pa.field("stream", pa.int32()),
        pa.field("until", pa.int64()),
        pa.field("added", pa.list_(pa.int32()), nullable=False),
        pa.field("removed", pa.list_(pa.int32()), nullable=False),
        pa.field("terms", pa.list_(pa.string()), nullable=False),
    ]
)
"""A row is an element, or an advance (no ``sequence``); ``terms`` are new, numbered after the previous ones."""

END: Final = b"\xff\xff\xff\xff\0\0\0\0"
"""The end of an Arrow IPC stream."""

TERMS: Final = 1 << 16
"""Number of terms after which a new stream with an empty dictionary begins, which bounds memory."""

FEW: Final = 16
"""Number of elements below which a loop is faster than columns."""

_BEGIN: Final = bytes(SCHEMA.serialize())


class NumberedTerms(defaultdict[Term, int]):
    """The number of each term, assigned at its first look-up; ``terms`` has them in this order."""

    def __init__(self) -> None:
        super().__init__(count().__next__)
        self._terms: list[Term] = []

    @property
    def terms(self) -> list[Term]:
        """The terms by number, always the same list."""
        if fresh := len(self) - len(self._terms):
            # Dicts keep the order of insertion: the fresh terms are the last keys, read from the end to skip the
            # others.
            self._terms.extend(reversed(list(islice(reversed(self), fresh))))
        return self._terms

    def of(self, terms: Sequence[Term]) -> Numbers:
        """The numbers of terms."""
        return np.fromiter(map(self.__getitem__, terms), np.int32, len(terms))

    def add(self, terms: Sequence[Term]) -> None:
        """Number distinct terms that have no number."""
        begin = len(self)
        self.update(zip(terms, range(begin, begin + len(terms)), strict=True))
        # ``update`` calls no factory, so the counter has to be set behind the new numbers.
        self.default_factory = count(len(self)).__next__


class ColumnTerms:
    """The numbers of the terms in columns, assigned as columns come; ``terms`` has them in this order.

    Columns are dictionaries, which may share terms. With a, b known as 0, 1 and the columns c b c and a a d, the
    distinct terms are c, b, a, d: b and a are known, c and d become 2 and 3, and the columns are 2 1 2 and 0 0 3. Only
    new terms become Python objects.
    """

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self._known = pa.array([], pa.string())

    def of(self, columns: Sequence[pa.DictionaryArray], also: Term) -> list[Numbers]:
        """The numbers in each column; the term ``also``, which may be in none, gets a number too."""
        used = [_used(column) for column in columns]
        texts = [pa.array([also], pa.string()), *(terms for terms, _ in used)]
        # Encoded together, a term that several columns have is looked up once.
        encoded = pa.concat_arrays(texts).dictionary_encode()
        numbers = self._numbers(encoded.dictionary)[encoded.indices.to_numpy()]
        # The sums are the borders between the columns; the first part is ``also``, and nothing follows the last
        # border.
        parts = np.split(numbers, np.cumsum([len(text) for text in texts]))[1:-1]
        return [part[indices] for part, (_, indices) in zip(parts, used, strict=True)]

    def _numbers(self, distinct: pa.StringArray) -> Numbers:
        """The numbers of distinct terms; new ones are numbered."""
        import pyarrow.compute as pc  # late: 0.06 s, which servers of JSON lines do not need

        indices_ = pc.index_in(distinct, value_set=self._known)
        fresh = indices_.is_null().to_numpy(zero_copy_only=False)
        # Arrays of Arrow are read-only.
        numbers: Numbers = indices_.fill_null(0).to_numpy().copy()
        numbers[fresh] = np.arange(len(self.terms), len(self.terms) + int(fresh.sum()), dtype=np.int32)
        new = distinct.filter(pa.array(fresh))
        self._known = pa.concat_arrays([self._known, new])
        self.terms.extend(new.to_pylist())
        return numbers


def _used(column: pa.DictionaryArray) -> tuple[pa.StringArray, Numbers]:
    """The terms of a column's dictionary that occur in it, and each row's index among them."""
    indices: Numbers = column.indices.to_numpy()
    occurs = np.zeros(len(column.dictionary), np.bool_)
    occurs[indices] = True
    # The usual case: a column of its own, without terms of other columns in its dictionary.
    if occurs.all():
        return column.dictionary, indices
    # Worked example: of four terms the first and the last occur, so the sums less 1 are 0 0 0 1: the last term, at 3,
    # is 1 among those that occur.
    places = np.cumsum(occurs, dtype=np.int32) - 1
    return column.dictionary.filter(pa.array(occurs)), places[indices]


@dataclass(frozen=True, slots=True, eq=False)
class ElementBatch:
    """Elements of one stream without removals and ends.

    ``times`` (ms) and ``sequences`` have a value per element; the triples of element n are ``borders[n]`` to
    ``borders[n + 1]``, each as three numbers in ``added``. ``terms`` has the term of each number; later batches may add
    to the same list.
    """

    terms: list[Term]
    stream: str
    times: Times
    sequences: Times
    borders: Times
    added: Numbers

    def __len__(self) -> int:
        return len(self.times)

    @property
    def rising(self) -> bool:
        """Whether times never decrease."""
        return bool((self.times[1:] >= self.times[:-1]).all())

    def part(self, begin: int, end: int) -> "ElementBatch":
        """The elements from index ``begin`` to ``end``."""
        borders = self.borders[begin : end + 1]
        added = self.added[3 * borders[0] : 3 * borders[-1]]
        columns = (self.times[begin:end], self.sequences[begin:end], borders - borders[0], added)
        return ElementBatch(self.terms, self.stream, *columns)

    def numbered(self, first: int) -> "ElementBatch":
        """The same elements with consecutive numbers."""
        return replace(self, sequences=np.arange(first, first + len(self)))

    def elements(self) -> Iterator[StreamElement]:
        """The elements with their terms as texts."""
        triples = triples_of(self.terms, self.added)
        borders, stream = self.borders.tolist(), self.stream
        rows = zip(self.times.tolist(), self.sequences.tolist(), borders, borders[1:], strict=False)
        for time, sequence, begin, end in rows:
            yield StreamElement(stream, time, sequence, tuple(triples[begin:end]))


Taken: TypeAlias = ElementBatch | Input
"""Input of an engine that takes batches."""


def count_of(items: Sequence[Taken]) -> int:
    """How many elements and advances there are."""
    return sum([len(item) if isinstance(item, ElementBatch) else 1 for item in items])


def triples_of(terms: Sequence[Term], numbers: Numbers) -> list[Triple]:
    """The triples of term numbers, three per triple."""
    texts = list(map(terms.__getitem__, numbers.tolist()))
    return list(zip(texts[0::3], texts[1::3], texts[2::3], strict=True))


class BatchWriter:
    """Encodes elements and advances as successive Arrow IPC streams; a stream numbers about ``limit`` terms."""

    def __init__(self, limit: int = TERMS) -> None:
        self._limit, self._numbers = limit, NumberedTerms()
        self._terms: list[Term] | None = None
        self._sent, self._closes = 0, False

    def encode(self, inputs: Sequence[Input]) -> bytes:
        """One batch of elements and advances, in order."""
        return self._written(self.columns(inputs))

    def columns(self, inputs: Sequence[Input]) -> "Columns":
        """The columns of the batch that ``encode`` writes."""
        self._own_numbers()
        elements = [None if isinstance(item, Advance) else item for item in inputs]
        columns = [
            pa.array([item.time for item in inputs], pa.int64()),
            pa.array([element and element.sequence for element in elements], pa.int64()),
            pa.array([element and self._numbers[f"<{element.stream}>"] for element in elements], pa.int32()),
            pa.array([element and element.until for element in elements], pa.int64()),
            self._triples([element.added if element else () for element in elements]),
            self._triples([element.removed if element else () for element in elements]),
        ]
        return self._batch(self._numbers.terms, columns)

    def encode_batch(self, batch: ElementBatch) -> bytes:
        """One batch of elements that are in columns; they keep their numbers."""
        return self._written(self.columns_of(batch))

    def columns_of(self, batch: ElementBatch) -> "Columns":
        """The columns of the batch that ``encode_batch`` writes; elements keep their numbers."""
        nothing = np.zeros(len(batch) + 1, np.int32)
        terms, stream, added = self._with_stream(batch)
        columns = [
            pa.array(batch.times),
            pa.array(batch.sequences),
            pa.array([stream] * len(batch), pa.int32()),
            pa.nulls(len(batch), pa.int64()),
            _listed(3 * batch.borders, added),
            _listed(nothing, np.empty(0, np.int32)),
        ]
        return self._batch(terms, columns)

    def _with_stream(self, batch: ElementBatch) -> tuple[list[Term], int, Numbers]:
        """The terms of a batch with its stream's IRI among them, the IRI's number, and those of the triples."""
        stream = f"<{batch.stream}>"
        with suppress(ValueError):
            # Mostly the first term, as ``ColumnTerms.of`` numbers the stream's IRI before the terms of its columns.
            return batch.terms, batch.terms.index(stream), batch.added
        # A batch of JSON lines, or one that was assigned to another stream; its terms belong to its reader, so the
        # IRI cannot be added to them.
        numbers = self._own_numbers()
        # Each distinct term is looked up once, however many triples have it.
        used, places = np.unique(batch.added, return_inverse=True)
        added = numbers.of([batch.terms[number] for number in used.tolist()])[places]
        number = numbers[stream]
        return numbers.terms, number, added

    def end(self) -> bytes:
        """The end of the stream, empty if none has begun; the next batch begins another one without terms."""
        begun, self._terms = self._terms is not None, None
        self._numbers = NumberedTerms()
        return END if begun else b""

    def _own_numbers(self) -> NumberedTerms:
        """The numbering of the writer's own terms; it begins anew beyond the limit."""
        # A new list of terms, by which ``_batch`` sees that another stream begins.
        if len(self._numbers) > self._limit:
            self._numbers = NumberedTerms()
        return self._numbers

    def _triples(self, element_triples: Sequence[Sequence[Triple]]) -> pa.ListArray:
        terms = [term for triples in element_triples for triple in triples for term in triple]
        borders = np.cumsum([0, *[3 * len(triples) for triples in element_triples]])
        return _listed(borders, self._numbers.of(terms))

    def _batch(self, terms: list[Term], columns: list[pa.Array]) -> "Columns":
        """A batch with the new terms; a different list of terms begins a stream."""
        # By identity: the receiver extends one list per stream, and another list has other numbers.
        begins = terms is not self._terms
        self._closes = begins and self._terms is not None
        if begins:
            self._terms, self._sent = terms, 0
        fresh = terms[self._sent :]
        # Not the list's length: the thread of the batch's source may have added terms since.
        self._sent += len(fresh)
        return columns_with(columns, pa.array(fresh, pa.string()), begins)

    def _written(self, columns: "Columns") -> bytes:
        # The schema is repeated with each stream, so a reader needs no state across them.
        begin = (END if self._closes else b"") + _BEGIN if columns.begins else b""
        return begin + bytes(columns.batch.serialize())


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Elements and advances in Arrow's columns (``SCHEMA``); ``begins``: its terms are numbered from 0 again."""

    batch: pa.RecordBatch
    begins: bool


def columns_with(columns: Sequence[pa.Array], terms: pa.Array, begins: bool) -> Columns:
    """The given columns in the order of ``SCHEMA``, with new terms; at least one row."""
    borders = np.full(len(columns[0]) + 1, len(terms), np.int32)
    borders[0] = 0
    # All new terms are in the first row's list: rows after it would add offsets for nothing.
    listed = pa.ListArray.from_arrays(pa.array(borders), terms)
    return Columns(pa.RecordBatch.from_arrays([*columns, listed], schema=SCHEMA), begins)


def advance_columns(time: int) -> Columns:
    """An advance (ms) in columns, which may follow any terms."""
    nothing = pa.array([[]], pa.list_(pa.int32()))
    absent = [pa.nulls(1, kind) for kind in (pa.int64(), pa.int32(), pa.int64())]
    return columns_with([pa.array([time], pa.int64()), *absent, nothing, nothing], pa.array([], pa.string()), False)


def _listed(borders: npt.NDArray[np.integer], numbers: Numbers) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(borders, pa.int32()), pa.array(numbers, pa.int32()))


class _Unclosed(io.RawIOBase):
    """A file that outlives its reader."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)


def read_batches(file: io.BufferedReader) -> Iterator[list[Taken]]:
    """The batches of one Arrow IPC stream as they come; stops reading at its end. LineError."""
    terms: list[Term] = []
    for columns in read_columns(file):
        yield taken(columns.batch, terms)


def read_columns(file: io.BufferedReader) -> Iterator[Columns]:
    """``read_batches`` in Arrow's columns; numbers of terms are not checked."""
    begins = True
    try:
        reader = pa.ipc.open_stream(pa.PythonFile(_Unclosed(file), "r"))
        if reader.schema != SCHEMA:
            raise LineError(f"an Arrow stream of elements has the columns {', '.join(SCHEMA.names)} (docs/pipe.md)")
        for batch in reader:
            yield Columns(batch, begins)
            begins = False
    except pa.ArrowException as error:
        raise LineError(f"not a readable Arrow stream: {error}") from error


def taken(batch: pa.RecordBatch, terms: list[Term]) -> list[Taken]:
    """The elements and advances of a batch, whose new terms are appended to ``terms``. LineError."""
    terms.extend(batch.column("terms").flatten().to_pylist())
    streams = batch.column("stream")
    if streams.null_count:  # without nulls there is no need of pyarrow.compute, which takes 0.06 s to load
        streams = streams.drop_null()
    columns = (streams, batch.column("added").flatten(), batch.column("removed").flatten())
    # Numpy would read a negative number as an index from the end.
    check_numbers(len(terms), *(column.to_numpy(zero_copy_only=False) for column in columns))
    if len(batch) >= FEW and _is_plain(batch):
        return [_columns(batch, terms)]
    return _one_by_one(batch, terms)


def check_numbers(known: int, *columns: Numbers) -> None:
    """LineError for a number that is not one of the ``known`` terms'."""
    for column in columns:
        if len(column) and not 0 <= column.min() <= column.max() < known:
            raise LineError(f"a batch has the number of a term that was not sent: {known} terms were")


def _is_plain(batch: pa.RecordBatch) -> bool:
    """Whether all rows are elements of one stream, without removals and ends."""
    if batch.column("sequence").null_count or batch.column("until").null_count != len(batch):
        return False
    streams = batch.column("stream").to_numpy(zero_copy_only=False)
    return not len(batch.column("removed").flatten()) and bool((streams == streams[0]).all())


def _columns(batch: pa.RecordBatch, terms: list[Term]) -> ElementBatch:
    added = batch.column("added")
    borders = added.offsets.to_numpy()
    if (borders % 3).any():
        raise LineError("the column added has a list whose length is not a multiple of three, the size of a triple")
    return ElementBatch(
        terms,
        terms[batch.column("stream")[0].as_py()][1:-1],
        batch.column("time").to_numpy(),
        batch.column("sequence").to_numpy(),
        # A slice of a batch keeps the offsets of the whole, so they need not begin at 0.
        (borders - borders[0]).astype(np.int64) // 3,
        added.flatten().to_numpy(),
    )


def _one_by_one(batch: pa.RecordBatch, terms: list[Term]) -> list[Taken]:
    inputs: list[Taken] = []
    columns = [batch.column(at).to_pylist() for at in range(6)]
    for time, sequence, stream, until, added, removed in zip(*columns, strict=True):
        if sequence is None:
            inputs.append(Advance(time))
        elif stream is None or len(added) % 3 or len(removed) % 3:
            raise LineError("an element has a stream, and three numbers for each triple")
        else:
            came, went = (tuple(_triples(terms, numbers)) for numbers in (added, removed))
            inputs.append(StreamElement(terms[stream][1:-1], time, sequence, came, went, until))
    return inputs


def _triples(terms: Sequence[Term], numbers: Sequence[int]) -> Iterator[Triple]:
    # One iterator three times: each triple takes its three terms from it in turn.
    texts = iter([terms[number] for number in numbers])
    return zip(texts, texts, texts, strict=True)
