"""JSON lines: one element or advance per line, as engines on a pipe read them (see formats/lines.py)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import IO, TYPE_CHECKING, Final

from streamgauge.formats.documents import FormatError
from streamgauge.formats.lines import Advance, Input, LineError, decode_input, decode_together, encode_element
from streamgauge.formats.streams.format import (
    Decode,
    Format,
    Numbering,
    Reading,
    Refuse,
    TermCheck,
    bounded_lines,
    message_text,
    which,
)
from streamgauge.formats.streams.options import STREAM, honoured
from streamgauge.formats.streams.quads import write_each

if TYPE_CHECKING:
    from streamgauge.formats.batches import ElementBatch


def follow(file: IO[bytes], place: str, reading: Reading, refuse: Refuse) -> Iterator[Input]:
    """The elements and advances of an open file, with their own streams and numbers; empty lines are skipped.

    An element without a stream belongs to the reading's, one without a number gets the next.
    """
    lines_decoder = _LineDecoder(reading)
    for count, lines in bounded_lines(file, place, reading.limit, refuse, together=True):
        together = lines_decoder.together(lines)
        pieces = BytesIO(lines) if together is None else together
        where = LinePlace(place, count - 1)
        for piece in pieces:
            where.line += 1
            try:
                if isinstance(piece, bytes):
                    yield from () if piece.isspace() else lines_decoder.take(piece, str(where))
                elif (item := lines_decoder.own(piece, where)) is not None:
                    yield item
            except FormatError as error:
                refuse(error)


def decoder(reading: Reading) -> Decode:
    """The reader of messages of one or more lines; an element without a time gets that of its arrival."""
    lines_decoder = _LineDecoder(reading)

    def decode(payload: bytes, place: str, arrived: int | None) -> Sequence[Input]:
        lines_decoder.time = arrived
        text = message_text(payload, place, reading)
        if (together := lines_decoder.together(text)) is not None:
            where = LinePlace(place, 0)
            return [item for item in together if lines_decoder.own(item, where.next()) is not None]
        lines = [line for line in text.splitlines() if line and not line.isspace()]
        if len(lines) == 1:
            return lines_decoder.take(lines[0], place)
        places = (f"{place}, line {count}" for count in range(1, len(lines) + 1))
        return [item for line, where in zip(lines, places, strict=True) for item in lines_decoder.take(line, where)]

    return decode


def columns(payload: bytes, reading: Reading, arrived: int | None) -> "ElementBatch | None":
    """The elements of a message of lines in columns, of the reading's stream; ``None`` where lines are not alike."""
    from streamgauge.formats.batches import batch_of_lines

    return batch_of_lines(message_text(payload, "body", reading), reading.stream, arrived)


_OURS = re.compile(
    rb"""\s*\{(?:\s*"(?:stream|n|until|add|remove)"\s*:\s*(?:"(?:[^"\\]|\\.)*"|[0-9]+)\s*,)*\s*"(?:t|advance)"\s*:"""
)
"""The start of a line up to its key ``t`` or ``advance``."""


def recognised(head: bytes) -> bool:
    """Whether JSON lines are in this format; others are plain JSON."""
    return _OURS.match(head) is not None


ONE_BY_ONE: Final = 32
"""Chunks to read line by line after one that could not be decoded as a whole."""


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
        self.stream = None if reading.among else reading.stream
        self.time: int | None = None
        self._apart = 0

    @property
    def sequence(self) -> int:
        """The number for the next element without one."""
        return self._numbering.next

    def together(self, lines: bytes) -> list[Input] | None:
        """The items of several lines decoded in one call; ``None`` if a line is unusual.

        The next ``ONE_BY_ONE`` chunks are then read line by line too, as unusual lines come in runs.
        """
        self._apart = max(0, self._apart - 1)
        if self._apart or lines.find(b"\n") == len(lines) - 1:
            return None
        items = decode_together(lines, known=True)
        self._apart = ONE_BY_ONE if items is None else 0
        return items

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
        parts="lines",
        columns=columns,
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
