"""JSON lines: an element or an advance a line, as engines on a pipe read them (see wire/lines.py)."""

from collections.abc import Iterator, Sequence
from typing import IO

from streamgauge.wire.formats.format import (
    Decode,
    Format,
    FormatError,
    Numbering,
    Reading,
    Refuse,
    TermCheck,
    bounded_lines,
)
from streamgauge.wire.formats.quads import write_each
from streamgauge.wire.lines import Advance, Input, LineError, decode_input, encode_element


def follow(file: IO[bytes], place: str, reading: Reading, refuse: Refuse) -> Iterator[Input]:
    """The elements and advances of an open file, under their own streams and numbers; empty lines are passed over."""
    numbering, check = Numbering(reading), TermCheck(reading)
    for count, line in bounded_lines(file, place, reading.limit, refuse):
        try:
            if not line.isspace():
                yield from _input(line, f"{place}, line {count}", numbering, check)
        except FormatError as error:
            refuse(error)


def decoder(reading: Reading) -> Decode:
    """The reader of messages of one line or more; their times are their own, never that of arrival."""
    numbering, check = Numbering(reading), TermCheck(reading)

    def decode(payload: bytes, place: str, _arrived: int | None) -> Sequence[Input]:
        lines = [line for line in payload.splitlines() if line and not line.isspace()]
        if len(lines) == 1:
            return _input(lines[0], place, numbering, check)
        places = (f"{place}, line {count}" for count in range(1, len(lines) + 1))
        return [
            item for line, where in zip(lines, places, strict=True) for item in _input(line, where, numbering, check)
        ]

    return decode


def _input(line: bytes, place: str, numbering: Numbering, check: TermCheck) -> Sequence[Input]:
    """What a line holds, nothing when it is a repetition."""
    try:
        item = decode_input(line)
    except LineError as error:
        raise FormatError(f"{place}: {error}") from error
    if isinstance(item, Advance):
        return (item,)
    try:
        check(item.added)
        check(item.removed)
    except ValueError as error:
        raise FormatError(f"{place}: {error}") from error
    element = numbering.own(place, item)
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
    ),
)
