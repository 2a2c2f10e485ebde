"""The forms in which a stream goes to a program on the pipe: JSON lines, or batches of Arrow IPC streams."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from streamgauge.formats.batches import BatchWriter, ElementBatch
from streamgauge.formats.lines import Advance, Input, decode_input, encode_advance
from streamgauge.formats.pipe import Form
from streamgauge.formats.stream import ROWS, StoredStream, Written, ahead, written
from streamgauge.model.element import StreamElement

CHUNK: Final = 2**15
"""Bytes of lines that are written in one go without a pace, half of what a pipe holds."""

ARROW_FROM: Final = 500
"""Elements of a stream from which Arrow costs less CPU than lines: live takes 5 elements of two triples in 3.5 ms of
CPU as lines and 4.6 ms as Arrow, 400 in 9.5 ms as either, 800 in 13.1 ms as lines and 10.8 ms as Arrow."""

Stream: TypeAlias = Iterable[StreamElement | Written] | StoredStream

Item = TypeVar("Item")
AnyItem = TypeVar("AnyItem")


class Coming(NamedTuple, Generic[Item]):
    """One element that is to be handed over: its sequence number, time (ms), triples added, and itself."""

    sequence: int
    time: int
    size: int
    item: Item


class Portion(NamedTuple):
    """Bytes that are written in one go without a pace: sequence numbers, times (ms) and sizes of its elements."""

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
    """How elements and advances are written; ``most`` items go in one write."""

    most: int

    def one_by_one(self, stream: Stream) -> AbstractContextManager[Iterator[Coming[Item]]]:
        """The elements, each by itself; many of a stored stream are read before the first is given."""
        ...

    def portions(self, stream: Stream) -> Iterator[Portion]:
        """The elements, many at once."""
        ...

    def advance(self, time: int) -> Item:
        """How far time has come, ms."""
        ...

    def encoded(self, items: Sequence[Item]) -> bytes:
        """Elements and advances as they are written."""
        ...

    def end(self) -> bytes:
        """The end of all elements and advances."""
        ...


class LineForm:
    """JSON lines."""

    most = 1

    @contextmanager
    def one_by_one(self, stream: Stream) -> Iterator[Iterator[Coming[bytes]]]:
        """The elements, each by itself; many of a stored stream are read before the first is given."""
        with ahead(written(stream), stored=isinstance(stream, StoredStream)) as lines:
            yield _followed(stream, (Coming(*line) for line in lines))

    def portions(self, stream: Stream) -> Iterator[Portion]:
        """As many elements as are written in one go."""
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
        """How far time has come, ms."""
        return encode_advance(time)

    def encoded(self, items: Sequence[bytes]) -> bytes:
        """Lines as they are."""
        return b"".join(items)

    def end(self) -> bytes:
        """Lines end by themselves."""
        return b""


def _portion(together: Sequence[Written]) -> Portion:
    sequences, times, sizes, lines = zip(*together, strict=True)
    return Portion(sequences, times, sizes, b"".join(lines))


class BatchForm:
    """Batches of Arrow IPC streams; what is due at once goes together."""

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
        """``ROWS`` triples or an element more at once; a stored stream stays in columns."""
        return _followed(stream, self._portions(stream))

    def _portions(self, stream: Stream) -> Iterator[Portion]:
        together: list[StreamElement] = []
        budget = ROWS
        for batch in stream.batches() if isinstance(stream, StoredStream) else _elements(stream):
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
        """How far time has come, ms."""
        return Advance(time)

    def encoded(self, items: Sequence[Input]) -> bytes:
        """One batch."""
        return self._writer.encode(items)

    def end(self) -> bytes:
        """The end of the Arrow stream."""
        return self._writer.end()


def _followed(stream: Stream, handed: Iterator[AnyItem]) -> Iterator[AnyItem]:
    """Elements as they are handed over, noted by a stored stream's follower."""
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
    """A new form by its name on the pipe."""
    return BatchForm() if name == "arrow" else LineForm()


def offered(forms: tuple[Form, ...], stream: Stream) -> tuple[Form, ...]:
    """The forms that a program is offered for a stream: lines only where the stream is known to be short."""
    short = isinstance(stream, Sized) and len(stream) < ARROW_FROM
    return ("lines",) if short else forms
