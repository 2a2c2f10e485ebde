"""JSON lines: an element or an advance a line, as engines on a pipe read them (see formats/lines.py)."""

import re
from collections.abc import Iterator, Sequence
from typing import IO

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
    which,
)
from streamgauge.formats.streams.options import STREAM, honoured
from streamgauge.formats.streams.quads import write_each


def follow(file: IO[bytes], place: str, reading: Reading, refuse: Refuse) -> Iterator[Input]:
    """The elements and advances of an open file, under their own streams and numbers; empty lines are passed over.

    An element that names no stream is of the reading's, one without a number gets the next.
    """
    take = _Taking(reading).take
    for count, line in bounded_lines(file, place, reading.limit, refuse):
        try:
            if not line.isspace():
                yield from take(line, f"{place}, line {count}")
        except FormatError as error:
            refuse(error)


def decoder(reading: Reading) -> Decode:
    """The reader of messages of one line or more; their times are their own, that of arrival where one has none."""
    taking = _Taking(reading)

    def decode(payload: bytes, place: str, arrived: int | None) -> Sequence[Input]:
        taking.time = arrived
        lines = [line for line in message_text(payload, place, reading).splitlines() if line and not line.isspace()]
        if len(lines) == 1:
            return taking.take(lines[0], place)
        places = (f"{place}, line {count}" for count in range(1, len(lines) + 1))
        return [item for line, where in zip(lines, places, strict=True) for item in taking.take(line, where)]

    return decode


_OURS = re.compile(
    rb"""\s*\{(?:\s*"(?:stream|n|until|add|remove)"\s*:\s*(?:"(?:[^"\\]|\\.)*"|[0-9]+)\s*,)*\s*"(?:t|advance)"\s*:"""
)
"""The beginning of a line that has the time of an element, or an advance."""


def recognised(head: bytes) -> bool:
    """Whether lines of JSON are those of this format; others are plain JSON."""
    return _OURS.match(head) is not None


class _Taking:
    """Reads one line after another; the ``Unsaid`` of its elements: the reading's stream, the next number, ``time``."""

    def __init__(self, reading: Reading) -> None:
        self._numbering, self._check, self._among = Numbering(reading), TermCheck(reading), reading.among
        self.stream = None if reading.among else reading.stream
        self.time: int | None = None

    @property
    def sequence(self) -> int:
        """The number of the next element that has none."""
        return self._numbering.next

    def take(self, line: bytes, place: str) -> Sequence[Input]:
        """The items of a line, none when it is a repetition."""
        try:
            item = decode_input(line, self)
        except LineError as error:
            hint = f"; {which(self._among)}" if self._among and "field stream" in str(error) else ""
            if "field t is missing" in str(error) or "is unknown" in str(error):
                hint = " (form=json reads plain JSON, form=jsonld JSON-LD: docs/own-data.md)"
            raise FormatError(f"{place}: {error}{hint}") from error
        if isinstance(item, Advance):
            return (item,)
        try:
            self._check(item.added)
            self._check(item.removed)
        except ValueError as error:
            raise FormatError(f"{place}: {error}") from error
        element = self._numbering.own(place, item)
        return () if element is None else (element,)


FORMATS = (
    Format(
        "jsonl",
        "JSON lines, an element or an advance each",
        (".jsonl", ".ndjson"),
        write=write_each(encode_element),
        follow=follow,
        decoder=decoder,
        encode=encode_element,
        recognises=recognised,
        honours={
            "follow": honoured(STREAM, "once", "charset", "bad"),
            "decoder": honoured(STREAM, "once", "charset", "bad", "time"),
        },
    ),
)
