"""Where the messages of an RDF Message Log end: delimiters outside literals, IRIs and comments.

https://w3c-cg.github.io/rsp/spec/messages, section 2.1 (May 2026), and its draft of December 2025.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_CLOSE = {quote * 3: re.compile(rb"(?:\\.|[^\\])*?" + quote * 3, re.DOTALL) for quote in (b'"', b"'")}
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
    """Splits a log into messages line by line; a message may have ``limit`` bytes."""

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
            self._keep(line[kept : token.start()])
            kept = token.end()
            if token.lastgroup != "version" and not self._leading(token):
                yield self._piece()
        self._keep(line[kept:])

    def end(self) -> Iterator[Piece]:
        """The last message, if anything came after the last delimiter; ValueError when it is too long."""
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
                raise ValueError("@message without its dot")
            elif token.lastgroup == "version" and (token["at"] or token["word"] or b"").endswith(b"-messages"):
                self._announced = True
                yield token
            elif token.lastgroup == "delimiter" or (token.lastgroup == "noted" and not self._announced):
                yield token

    def _closed(self, line: bytes, position: int) -> int:
        """Where the long literal that is open ends, when it does on this line."""
        if self._literal is None:
            return position
        close = _CLOSE[self._literal].match(line, position)
        if close is None:
            return len(line)
        self._literal = None
        return close.end()

    def _leading(self, token: re.Match[bytes]) -> bool:
        """A comment before anything else begins the first message and ends none (December 2025)."""
        return token.lastgroup == "noted" and not self._ended and not b"".join(self._text).strip()

    def _keep(self, text: bytes) -> None:
        self._size += len(text)
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
