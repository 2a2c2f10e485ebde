"""JSON lines: one element or advance per line, as engines on a pipe read them (see formats/lines.py)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import IO, TYPE_CHECKING, Final

from streamgauge.formats.documents import FormatError
from streamgauge.formats.lines import Advance, Input, LineError, decode_input, encode_element
from streamgauge.formats.streams.format import (
    Decode,
    Format,
    Numbering,
    Reading,
    Refuse,
    TermCheck,
    bounded_lines,
    message_text,
    refused,
    which,
    write_each,
)
from streamgauge.formats.streams.options import STREAM, honoured

if TYPE_CHECKING:
    from streamgauge.formats.batches import Taken
    from streamgauge.formats.line_columns import LineColumns


def follow(file: IO[bytes], place: str, reading: Reading, refuse: Refuse) -> "Iterator[Taken]":
    """The elements and advances of an open file, with their own streams and numbers; empty lines are skipped.

    An element without a stream belongs to the reading's, one without a number gets the next.
    """
    decoder_ = _LineDecoder(reading)
    for count, lines in bounded_lines(file, place, reading.limit, refuse, together=True, mark=reading.mark):
        # Loading the libraries of columns takes as long as reading a few thousand lines one by one.
        if count > ROWS_FIRST and (items := decoder_.together(lines, place, count, refuse)) is not None:
            yield from items
            continue
        where = LinePlace(place, count - 1)
        for line in BytesIO(lines):
            where.line += 1
            try:
                yield from () if line.isspace() else decoder_.take(line, str(where))
            except FormatError as error:
                refuse(error)


def decoder(reading: Reading) -> Decode:
    """A decoder of messages with one or more lines; elements without a time get the message's arrival time."""
    decoder_ = _LineDecoder(reading)

    def decode(payload: bytes, place: str, arrived: int | None) -> "Sequence[Taken]":
        decoder_.time = arrived
        text = message_text(payload, place, reading)
        if (items := decoder_.together(text, place, 1, refused)) is not None:
            return [*items]
        lines = [line for line in text.splitlines() if line and not line.isspace()]
        # Most messages have one line, whose place needs no number.
        if len(lines) == 1:
            return decoder_.take(lines[0], place)
        places = (f"{place}, line {count}" for count in range(1, len(lines) + 1))
        return [item for line, where in zip(lines, places, strict=True) for item in decoder_.take(line, where)]

    return decode


_OURS = re.compile(
    rb"""\s*\{(?:\s*"(?:stream|n|until|add|remove)"\s*:\s*(?:"(?:[^"\\]|\\.)*"|[0-9]+|null)\s*,)*\s*"(?:t|advance)"\s*:"""
)
"""The start of a line up to its key ``t`` or ``advance``."""


def recognised(head: bytes) -> bool:
    """Whether JSON lines are in this format; others are plain JSON."""
    return _OURS.match(head) is not None


ROWS_FIRST: Final = 4096
"""Lines of a file that are read one by one before others are read in columns."""

FEW_LINES: Final = 16
"""Lines below which one by one is faster."""

ONE_BY_ONE: Final = 32
"""Chunks to read line by line after one that could not be read in columns."""


@dataclass(slots=True)
class LinePlace:
    """The current line of a file, formatted only when an error names it."""

    place: str
    line: int

    def next(self) -> "LinePlace":
        """The place itself, moved on by a line."""
        self.line += 1
        return self

    def __str__(self) -> str:
        return f"{self.place}, line {self.line}"


class _LineDecoder:
    """Decodes lines; as ``Unsaid`` it supplies what elements leave out: stream, next number and ``time``."""

    def __init__(self, reading: Reading) -> None:
        self._numbering, self._check, self._among = Numbering(reading), TermCheck(reading), reading.among
        # With several streams, an element that names none is refused, not guessed.
        self.stream = None if reading.among else reading.stream
        self.time: int | None = None
        self._columns: LineColumns | None = None
        self._apart = 0

    @property
    def sequence(self) -> int:
        """The number for the next element without one."""
        return self._numbering.next

    def together(self, lines: bytes, place: str, first: int, refuse: Refuse) -> "Iterator[Taken] | None":
        """The items of several lines, the ``first`` of that number; ``None`` if they are few or one is unusual.

        The next ``ONE_BY_ONE`` chunks are then read line by line too, as unusual lines come in runs.
        """
        if lines.count(b"\n") < FEW_LINES:
            return None
        self._apart = max(0, self._apart - 1)
        if self._apart:
            return None
        if self._columns is None:
            from streamgauge.formats.line_columns import LineColumns

            self._columns = LineColumns(self._check.terms)
        items = self._columns.read(lines, self)
        self._apart = ONE_BY_ONE if items is None else 0
        return None if items is None else self._owned(items, LinePlace(place, first - 1), refuse)

    def _owned(self, items: "Iterable[Taken]", where: "LinePlace", refuse: Refuse) -> "Iterator[Taken]":
        """Items with their own numbers, without repetitions; a line each, where something is refused."""
        for item in items:
            if isinstance(item, Input):
                apart: Iterable[Input] = (item,)
            elif self._numbering.own_batch(item):
                where.line += len(item)
                yield item
                continue
            else:
                apart = item.elements()
            for element in apart:
                where.line += 1
                try:
                    owned = element if isinstance(element, Advance) else self._numbering.own(where, element)
                except FormatError as error:
                    refuse(error)
                    continue
                if owned is not None:
                    yield owned

    def own(self, item: Input, place: object) -> Input | None:
        """An item with its own stream and number; ``None`` if it is a repetition."""
        if isinstance(item, Advance):
            return item
        try:
            self._check(item.added)
            self._check(item.removed)
        except ValueError as error:
            raise FormatError(f"{place}: {error}") from error
        return self._numbering.own(place, item)

    def take(self, line: bytes, place: str) -> Sequence[Input]:
        """The items of a line; none if it is a repetition."""
        try:
            item = decode_input(line, self)
        except LineError as error:
            hint = f"; {which(self._among)}" if self._among and "field stream" in str(error) else ""
            # Usually another dialect of JSON lines in a file of the same ending.
            if "field t is missing" in str(error) or "is unknown" in str(error):
                hint = " (form=json reads plain JSON, form=jsonld JSON-LD: docs/own-data.md)"
            raise FormatError(f"{place}: {error}{hint}") from error
        element = self.own(item, place)
        return () if element is None else (element,)


FORMATS = (
    Format(
        "jsonl",
        "JSON lines, an element or an advance each",
        (".jsonl", ".ndjson"),
        write=write_each(encode_element),
        follow=follow,
        lines=True,
        resumes=True,
        parts="lines",
        decoder=decoder,
        encode=encode_element,
        recognises=recognised,
        media_types=("application/x-ndjson", "application/jsonl"),
        honours={
            "follow": honoured(STREAM, "once", "charset", "bad"),
            "decoder": honoured(STREAM, "once", "charset", "bad", "time"),
        },
    ),
)
