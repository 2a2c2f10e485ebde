"""RDF Message Logs of the W3C RSP community group (https://w3c-cg.github.io/rsp/spec/messages), an element per message.

Turtle, TriG, N-Triples or N-Quads; ``MESSAGE`` or ``@message .`` ends a message (draft of May 2026), in a log that
announces no version also the comment ``# @message`` (draft of December 2025). Blank nodes are local to their message,
prefixes apply to the rest of the log. A message's graphs are merged; its time is that of ``hasTimestamp`` or the named
property, else its number times the interval; empty messages are numbered too, and only advance time.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import IO

import pyoxigraph as ox

from streamgauge.formats.bounds import BoundError, check_turtle
from streamgauge.formats.documents import FormatError
from streamgauge.formats.line_versions import without_versions
from streamgauge.formats.streams.format import (
    Decode,
    Format,
    Item,
    Numbering,
    Reading,
    Refuse,
    Relabel,
    bounded_lines,
    message_text,
    refused,
)
from streamgauge.formats.streams.observations import time_property
from streamgauge.formats.streams.options import STREAM, TIMES, honoured
from streamgauge.formats.streams.quads import message
from streamgauge.formats.streams.turtle import encode as encode_turtle
from streamgauge.formats.syntaxes import reason
from streamgauge.model.element import StreamElement

_CLOSE = {quote * 3: re.compile(rb"(?:\\.|[^\\])*?" + quote * 3, re.DOTALL) for quote in (b'"', b"'")}
# Literals and IRIs come first among the alternatives, so that what they contain is not taken for a delimiter.
_TOKEN = re.compile(
    rb"""
    (?P<long>\"{3}|'{3})
  | (?P<literal>(?:"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')(?:@[a-zA-Z]+(?:-[a-zA-Z0-9]+)*)?)
  | (?P<iri><[^<>\s]*>)
  | (?P<version>@version\s+["'](?P<at>[^"']*)["']\s*\.|(?<![\w:@.\-\x80-\xff])VERSION\s+["'](?P<word>[^"']*)["'])
  | (?P<noted>\#\s*@message\b[^\r\n]*)
  | (?P<comment>\#[^\r\n]*)
  | (?P<delimiter>@message\s*\.|(?<![\w:@\-\x80-\xff])(?<![\w\-\x80-\xff]\.)MESSAGE(?![\w:.\-\x80-\xff]))
  | (?P<open>(?<![\w:])@message\b)
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """The text of one message and the line on which it begins, from 1."""

    line: int
    text: bytes


class Splitter:
    """Splits a log into messages of at most ``limit`` bytes at delimiters outside literals, IRIs and comments.

    Source: the specification's section 2.1 (May 2026), and its draft of December 2025.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = 0
        self._begun = 1
        self._text: list[bytes] = []
        self._size = 0
        self._literal: bytes | None = None
        self._announced = False
        self._ended = 0

    def take(self, number: int, line: bytes) -> Iterator[Piece]:
        """The messages that end on this line; ValueError for a delimiter without its dot or too long a message."""
        self._line = number
        kept = 0
        for token in self._marks(line):
            # A worked example: ``:a :p 1 . MESSAGE :b :p 2 .`` on one line. What is ahead of the delimiter ends the
            # first message, the rest begins the second one.
            self._keep(line[kept : token.start()])
            kept = token.end()
            if token.lastgroup != "version" and not self._leading(token):
                yield self._piece()
        self._keep(line[kept:])

    def end(self) -> Iterator[Piece]:
        """The text after the last delimiter as a message, unless it is blank; ValueError if it is too long."""
        if b"".join(self._text).strip():
            yield self._piece()

    def _marks(self, line: bytes) -> Iterator[re.Match[bytes]]:
        """The delimiters and announcements on a line."""
        position = self._closed(line, 0)
        while self._literal is None and (token := _TOKEN.search(line, position)):
            position = token.end()
            if token.lastgroup == "long":
                self._literal = token[0]
                position = self._closed(line, position)
            elif token.lastgroup == "open":
                raise ValueError("@message must end with a dot")
            elif token.lastgroup == "version" and (token["at"] or token["word"] or b"").endswith(b"-messages"):
                self._announced = True
                yield token
            # A comment is a delimiter only in logs of the older draft, which announce no version.
            elif token.lastgroup == "delimiter" or (token.lastgroup == "noted" and not self._announced):
                yield token

    def _closed(self, line: bytes, position: int) -> int:
        """The position after the open long literal, or the line's end if the literal goes on."""
        if self._literal is None:
            return position
        close = _CLOSE[self._literal].match(line, position)
        if close is None:
            return len(line)
        self._literal = None
        return close.end()

    def _leading(self, token: re.Match[bytes]) -> bool:
        """Whether this is a comment before any triple, which begins the first message (December 2025)."""
        return token.lastgroup == "noted" and not self._ended and not b"".join(self._text).strip()

    def _keep(self, text: bytes) -> None:
        self._size += len(text)
        # What exceeds the limit is only counted, so that a log without delimiters does not fill memory.
        if self._size <= self._limit:
            self._text.append(text)

    def _piece(self) -> Piece:
        piece, size = Piece(self._begun, b"".join(self._text)), self._size
        self._reset()
        self._ended += 1
        if size > self._limit:
            raise ValueError(f"a message longer than {self._limit} bytes ends here: raise the limit")
        return piece

    def _reset(self) -> None:
        self._text, self._size, self._begun = [], 0, self._line


_VERSION = b'VERSION "1.2-messages"\n'
_DELIMITER = b"MESSAGE\n"


_ANNOUNCED = re.compile(
    rb"""(?:\s|\#[^\r\n]*[\r\n]|(?:@prefix|@base|PREFIX|BASE)\s[^\r\n]*[\r\n])*"""
    rb"""@?version\s+["'][^"']*-messages["']""",
    re.IGNORECASE,
)


def announced(head: bytes) -> bool:
    """Whether a text declares itself a message log, as by ``VERSION "1.2-messages"`` before its triples."""
    return _ANNOUNCED.match(head) is not None


def follow(file: IO[bytes], place: str, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The messages of an open log as they end, numbered in order; a bad one is refused and skipped."""
    log, numbering = _Log(reading), Numbering(reading)
    for piece in _pieces(file, place, reading.limit, refuse):
        try:
            for item in log.items(piece, place, None):
                yield numbering.element(*item)
        except FormatError as error:
            refuse(error)


def decoder(reading: Reading) -> Decode:
    """The reader of transported messages, each a log of its own."""
    log, numbering = _Log(reading), Numbering(reading)

    def decode(payload: bytes, place: str, arrived: int | None) -> Sequence[StreamElement]:
        log.restart()
        pieces = _pieces(BytesIO(message_text(payload, place, reading)), place, reading.limit, refused)
        return [numbering.element(*item) for piece in pieces for item in log.items(piece, place, arrived)]

    return decode


def encode(element: StreamElement) -> bytes:
    """An element with its time as a log of one message in N-Triples; such logs can be concatenated."""
    return _VERSION + _written(element)


def write(stream: Iterable[StreamElement], file: IO[bytes]) -> None:
    """Write elements as one log in N-Triples."""
    file.write(_VERSION)
    for element in stream:
        file.write(_written(element))


def _written(element: StreamElement) -> bytes:
    return encode_turtle(element) + _DELIMITER


def _pieces(file: IO[bytes], place: str, limit: int, refuse: Refuse) -> Iterator[Piece]:
    splitter = Splitter(limit)
    for count, line in bounded_lines(file, place, limit, refuse):
        try:
            yield from splitter.take(count, line)
        except ValueError as error:
            refuse(FormatError(f"{place}, line {count}: {error}"))
    try:
        yield from splitter.end()
    except ValueError as error:
        refuse(FormatError(f"{place}: {error}"))


class _Log:
    """The state of a log: the number of its last message, the prefixes so far, its possible syntaxes."""

    def __init__(self, reading: Reading) -> None:
        self._reading, self._stated = reading, time_property(reading, strict=False)
        self._count = -1
        self.restart()

    def restart(self) -> None:
        """Begin another log: no prefixes, any syntax; message numbers continue."""
        # A line in any case, so that the line numbers of errors are off by the same one.
        self._header = f"BASE <{self._reading.base}>\n".encode() if self._reading.base else b"\n"
        # TriG first: the four syntaxes overlap, and only quads with four terms in a line are not TriG.
        self._syntaxes: tuple[ox.RdfFormat, ...] = (ox.RdfFormat.TRIG, ox.RdfFormat.N_QUADS)

    def items(self, piece: Piece, place: str, arrived: int | None) -> list[Item]:
        """The elements of a message, none if it is empty; FormatError names the line."""
        self._count += 1
        relabel = Relabel(f"m{self._count}")
        where = f"{place}, message {self._count}"
        quads = [(where, relabel.triple(quad), "") for quad in self._quads(piece, place)]
        return message(quads, where, self._stated, arrived, self._count * self._reading.interval)

    def _quads(self, piece: Piece, place: str) -> list[ox.Quad]:
        """The quads of a message as TriG, a superset of all syntaxes but N-Quads, which is tried where TriG fails."""
        try:
            return self._parsed(piece, self._syntaxes[0])
        except BoundError as error:
            raise FormatError(f"{place}, line {piece.line}: {error}") from error
        except SyntaxError as error:
            for other in self._syntaxes[1:]:
                with suppress(SyntaxError):
                    quads = self._parsed(piece, other)
                    # A log has one syntax: later messages are not tried as TriG first.
                    self._syntaxes = (other,)
                    return quads
            # The parser counts from 1 and sees the header of prefixes as a line of its own before the message.
            line = piece.line + max(error.lineno or 0, 2) - 2
            raise FormatError(f"{place}, line {line}: {reason(error)}") from error

    def _parsed(self, piece: Piece, syntax: ox.RdfFormat) -> list[ox.Quad]:
        check_turtle(piece.text)
        parser = ox.parse(self._header + without_versions(piece.text, syntax), format=syntax)
        quads = list(parser)
        # Each message is parsed alone, with the prefixes of all before it in front.
        if parser.prefixes or parser.base_iri:
            base = f"BASE <{parser.base_iri}> " if parser.base_iri else ""
            self._header = f"{base}{''.join(f'PREFIX {k}: <{v}> ' for k, v in parser.prefixes.items())}\n".encode()
        return quads


FORMATS = (
    Format(
        "messages",
        "RDF Message Logs, an element per message",
        (".messages", ".ttl", ".trig", ".nt", ".nq"),
        write=write,
        follow=follow,
        decoder=decoder,
        encode=encode,
        honours={
            "follow": honoured(STREAM, TIMES, "parts", "interval", "base", "charset", "bad"),
            "decoder": honoured(STREAM, TIMES, "parts", "interval", "base", "charset", "bad", "time"),
        },
        recognises=announced,
    ),
)
