"""JSON lines: an element or an advance a line, as engines on a pipe read them (see formats/lines.py)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Final

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


def follow(file: IO[bytes], place: str, reading: Reading, refuse: Refuse) -> Iterator[Input]:
    """The elements and advances of an open file, under their own streams and numbers; empty lines are passed over.

    An element that names no stream is of the reading's, one without a number gets the next.
    """
    taking = _Taking(reading)
    for count, lines in bounded_lines(file, place, reading.limit, refuse, together=True):
        together = taking.together(lines)
        pieces = BytesIO(lines) if together is None else together
        where = LinePlace(place, count - 1)
        for piece in pieces:
            where.line += 1
            try:
                if isinstance(piece, bytes):
                    yield from () if piece.isspace() else taking.take(piece, str(where))
                elif (item := taking.own(piece, where)) is not None:
                    yield item
            except FormatError as error:
                refuse(error)


def decoder(reading: Reading) -> Decode:
    """The reader of messages of one line or more; their times are their own, that of arrival where one has none."""
    taking = _Taking(reading)

    def decode(payload: bytes, place: str, arrived: int | None) -> Sequence[Input]:
        taking.time = arrived
        text = message_text(payload, place, reading)
        if (together := taking.together(text)) is not None:
            where = LinePlace(place, 0)
            return [item for item in together if taking.own(item, where.next()) is not None]
        lines = [line for line in text.splitlines() if line and not line.isspace()]
        if len(lines) == 1:
            return taking.take(lines[0], place)
        places = (f"{place}, line {count}" for count in range(1, len(lines) + 1))
        return [item for line, where in zip(lines, places, strict=True) for item in taking.take(line, where)]

    return decode


_OURS = re.compile(
    rb"""\s*\{(?:\s*"(?:stream|n|until|add|remove)"\s*:\s*(?:"(?:[^"\\]|\\.)*"|[0-9]+)\s*,)*\s*"(?:t|advance)"\s*:"""
)
"""The beginning of a line with the time of an element, or of an advance."""


def recognised(head: bytes) -> bool:
    """Whether lines of JSON are those of this format; others are plain JSON."""
    return _OURS.match(head) is not None


ONE_BY_ONE: Final = 32
"""Number of pieces that are read line by line after a piece for which reading together failed."""


@dataclass(slots=True)
class LinePlace:
    """The line of a file that is being read, named only where something is wrong with it."""

    place: str
    line: int

    def next(self) -> "LinePlace":
        """The place itself, moved on by a line."""
        self.line += 1
        return self

    def __str__(self) -> str:
        return f"{self.place}, line {self.line}"


class _Taking:
    """Reads one line after another; the ``Unsaid`` of its elements: the reading's stream, the next number, ``time``."""

    def __init__(self, reading: Reading) -> None:
        self._numbering, self._check, self._among = Numbering(reading), TermCheck(reading), reading.among
        self.stream = None if reading.among else reading.stream
        self.time: int | None = None
        self._apart = 0

    @property
    def sequence(self) -> int:
        """The number of the next element that has none."""
        return self._numbering.next

    def together(self, lines: bytes) -> list[Input] | None:
        """The items of several lines, read at once; ``None`` where one of them is not as most are.

        After such lines the next few are read one by one, too.
        """
        self._apart = max(0, self._apart - 1)
        if self._apart or lines.find(b"\n") == len(lines) - 1:
            return None
        items = decode_together(lines, known=True)
        self._apart = ONE_BY_ONE if items is None else 0
        return items

    def own(self, item: Input, place: object) -> Input | None:
        """An item under its own stream and number, none when it is a repetition."""
        if isinstance(item, Advance):
            return item
        try:
            self._check(item.added)
            self._check(item.removed)
        except ValueError as error:
            raise FormatError(f"{place}: {error}") from error
        return self._numbering.own(place, item)

    def take(self, line: bytes, place: str) -> Sequence[Input]:
        """The items of a line, none when it is a repetition."""
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
