"""The forms in which a stream is sent to a program on the pipe: JSON lines, or batches of Arrow IPC streams."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from streamgauge.formats.batches import BatchWriter, ElementBatch
from streamgauge.formats.lines import Advance, Input, decode_input, encode_advance
from streamgauge.formats.pipe import Form
from streamgauge.formats.stream import ROWS, StoredStream, Written, ahead, written
from streamgauge.model.element import StreamElement

CHUNK: Final = 2**15
"""Bytes of lines per write without a pace: half of the default size of a pipe (64 KiB)."""

ARROW_FROM: Final = 500
"""Elements of a stream from which Arrow costs less CPU than lines: the engine live needs 3.5 ms of CPU for 5 elements
of two triples as lines and 4.6 ms as Arrow, 9.5 ms for 400 in either form, 13.1 and 10.8 ms for 800."""

Stream: TypeAlias = Iterable[StreamElement | Written] | StoredStream

Item = TypeVar("Item")
AnyItem = TypeVar("AnyItem")


class Coming(NamedTuple, Generic[Item]):
    """One element to hand over: its sequence number, time (ms), number of added triples, and encoded form."""

    sequence: int
    time: int
    size: int
    item: Item


class Portion(NamedTuple):
    """The bytes of one write without a pace, with the sequence numbers, times (ms) and sizes of its elements."""

    sequences: Sequence[int]
    times: Sequence[int]
    sizes: Sequence[int]
    data: bytes

    @property
    def sequence(self) -> int:
        """The sequence number of the last element."""
        return self.sequences[-1]

    @property
    def time(self) -> int:
        """The time of the last element, ms."""
        return self.times[-1]


class StreamForm(Protocol[Item]):
    """How elements and advances are encoded; ``most`` items may share one write."""

    most: int

    def one_by_one(self, stream: Stream) -> AbstractContextManager[Iterator[Coming[Item]]]:
        """The elements one by one; many of a stored stream are read before the first is yielded."""

    def portions(self, stream: Stream) -> Iterator[Portion]:
        """The elements, many per write."""

    def advance(self, time: int) -> Item:
        """The item that advances time (ms)."""

    def encoded(self, items: Sequence[Item]) -> bytes:
        """Elements and advances as bytes."""

    def end(self) -> bytes:
        """The bytes that end the stream."""


class LineForm:
    """Elements and advances as JSON lines (docs/pipe.md)."""

    most = 1

    @contextmanager
    def one_by_one(self, stream: Stream) -> Iterator[Iterator[Coming[bytes]]]:
        """The elements, each by itself; many of a stored stream are read before the first is given."""
        with ahead(written(stream), stored=isinstance(stream, StoredStream)) as lines:
            yield _followed(stream, (Coming(*line) for line in lines))

    def portions(self, stream: Stream) -> Iterator[Portion]:
        """The elements in writes of ``CHUNK`` bytes."""
        return _followed(stream, self._portions(stream))

    def _portions(self, stream: Stream) -> Iterator[Portion]:
        together: list[Written] = []
        budget = CHUNK
        for item in written(stream):
            together.append(item)
            budget -= len(item.line)
            if budget <= 0:
                yield _portion(together)
                together, budget = [], CHUNK
        if together:
            yield _portion(together)

    def advance(self, time: int) -> bytes:
        """An advance to a time, ms."""
        return encode_advance(time)

    def encoded(self, items: Sequence[bytes]) -> bytes:
        """The bytes of several lines, each of which ends with a line feed."""
        return b"".join(items)

    def end(self) -> bytes:
        """Empty: lines need no end."""
        return b""


def _portion(together: Sequence[Written]) -> Portion:
    sequences, times, sizes, lines = zip(*together, strict=True)
    return Portion(sequences, times, sizes, b"".join(lines))


class BatchForm:
    """Batches of Arrow IPC streams; items planned for the same time share a batch."""

    most = ROWS

    def __init__(self) -> None:
        self._writer = BatchWriter()

    @contextmanager
    def one_by_one(self, stream: Stream) -> Iterator[Iterator[Coming[Input]]]:
        """The elements, each by itself; many of a stored stream are read before the first is given."""
        stored = isinstance(stream, StoredStream)
        with ahead(_elements(stream), stored=stored) as elements:
            yield _followed(
                stream, (Coming(element.sequence, element.time, len(element.added), element) for element in elements)
            )

    def portions(self, stream: Stream) -> Iterator[Portion]:
        """The elements in batches of ``ROWS`` triples or one element more; a stored stream stays in columns."""
        return _followed(stream, self._portions(stream))

    def _portions(self, stream: Stream) -> Iterator[Portion]:
        together: list[StreamElement] = []
        budget = ROWS
        for batch in stream.batches() if isinstance(stream, StoredStream) else _elements(stream):
            # Elements that wait go first: portions keep the order of the stream.
            if isinstance(batch, ElementBatch):
                yield from self._of(together)
                together, budget = [], ROWS
                yield self._columns(batch)
                continue
            together.append(batch)
            budget -= len(batch.added)
            if budget <= 0:
                yield from self._of(together)
                together, budget = [], ROWS
        yield from self._of(together)

    def _of(self, together: Sequence[StreamElement]) -> Iterator[Portion]:
        if together:
            sequences, times = [element.sequence for element in together], [element.time for element in together]
            yield Portion(sequences, times, [len(element.added) for element in together], self._writer.encode(together))

    def _columns(self, batch: ElementBatch) -> Portion:
        sizes = batch.borders[1:] - batch.borders[:-1]
        columns = (batch.sequences.tolist(), batch.times.tolist(), sizes.tolist())
        return Portion(*columns, self._writer.encode_batch(batch))

    def advance(self, time: int) -> Input:
        """An advance to a time, ms."""
        return Advance(time)

    def encoded(self, items: Sequence[Input]) -> bytes:
        """The items as one batch."""
        return self._writer.encode(items)

    def end(self) -> bytes:
        """The end of the Arrow stream."""
        return self._writer.end()


def _followed(stream: Stream, handed: Iterator[AnyItem]) -> Iterator[AnyItem]:
    """The elements; the follower of a stored stream, which reports progress, sees each one."""
    return stream.follow(handed) if isinstance(stream, StoredStream) else handed


def _elements(stream: Stream) -> Iterator[StreamElement]:
    if isinstance(stream, StoredStream):
        yield from stream.elements()
        return
    for item in stream:
        element = decode_input(item.line) if isinstance(item, Written) else item
        assert isinstance(element, StreamElement)
        yield element


def form_of(name: Form) -> LineForm | BatchForm:
    """A new encoder by its name on the pipe."""
    return BatchForm() if name == "arrow" else LineForm()


def offered(forms: tuple[Form, ...], stream: Stream) -> tuple[Form, ...]:
    """The forms to offer a program for a stream: only lines if the stream is known to be short."""
    # A stream of unknown length may be long, so both forms are offered.
    short = isinstance(stream, Sized) and len(stream) < ARROW_FROM
    return ("lines",) if short else forms
