"""Large JSON-LD documents in chunks, each a document of its own: the whole would be in memory as text and as triples.

A document is divided if it is an array, or an object with nothing but ``@graph``, an array, and ``@context`` or
``@id``. A chunk has some items of the array and what is around them, so that their contexts and their graph are the
same, wherever the context stands; labels of blank nodes mean the same in all chunks. The chunks are valid exactly if
the document is, as it is cut only at commas between items. Any other document is one chunk.

Worked example, with two items a chunk: ``{"@graph": [A, B, C], "@context": X}`` becomes ``{"@graph": [A, B],
"@context": X}`` and ``{"@graph": [C], "@context": X}``.
"""

import io
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Final, NamedTuple

from streamgauge.formats.bounds import unique_members

CHUNK: Final = 2**18
"""Bytes of a chunk: the triples of 256 KB of readings take some 10 MB."""

_AROUND: Final = 4
"""Minimum size of a chunk's items as a multiple of what is around them, which is parsed again with each chunk."""

_STRING: Final = rb'"(?:[^"\\]|\\.)*+"'
_PLAIN: Final = rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+"
_TOKEN: Final = re.compile(_PLAIN + rb"(\{" + _PLAIN + rb"\}|[\[\]{}])", re.DOTALL)
"""An object without arrays and objects in it, or a bracket, and what is before it."""
_GRAPH: Final = re.compile(rb'"@graph"\s*:\s*\Z')
_COMMA: Final = re.compile(rb"\s*+,")
_MEMBERS: Final = {"@context", "@id", "@graph"}


def chunks(file: IO[bytes] | io.RawIOBase, size: int = CHUNK) -> Iterator[tuple[int, bytes]]:
    """The chunks of an open document, each with the number of lines before it; OSError.

    ``size`` is the minimum of the items of a chunk, and the maximum of what is around them, in bytes.
    """
    opened = io.BufferedReader(file) if isinstance(file, io.RawIOBase) else file
    head = opened.read(size + 1)
    if len(head) <= size:
        yield 0, head
        return
    with ExitStack() as stack:
        document, start = opened, opened.tell() - len(head) if opened.seekable() else 0
        if not opened.seekable():
            # What cannot be read twice is copied to a temporary file.
            document = stack.enter_context(tempfile.TemporaryFile())
            document.write(head)
            shutil.copyfileobj(opened, document)
        document.seek(start)
        outline = _Outline(size)
        if outline.scan(document):
            yield from outline.chunks(document, start)
        else:
            document.seek(start)
            yield 0, document.read()


class _Cut(NamedTuple):
    """The bracket before the first item, a comma, or the bracket after the last: bytes and line ends before it."""

    offset: int
    line: int


@dataclass(slots=True)
class _Outline:
    """Where the items of a document are, and where it can be cut; offsets count from its beginning."""

    size: int
    cuts: list[_Cut] = field(default_factory=list)
    head: bytes = b""
    """The text up to the first item."""
    tail: bytes = b""
    """The text from the end of the last item on."""
    _depth: int = 0
    _within: int = 0
    """The depth of the items, once they have begun: 1 in an array, 2 in a graph."""
    _text: bytes = b""
    """The text that is scanned, with the numbers of bytes and line ends before it."""
    _before: int = 0
    _line: int = 0

    def scan(self, file: IO[bytes]) -> bool:
        """Find the cuts; whether the document can be divided."""
        # A long string is scanned again until it ends: blocks that grow with it keep that linear.
        while block := file.read(max(self.size, len(self._text))):
            self._text += block
            at = self._scan_text()
            if self.tail:
                self.tail += file.read(self.size)
                return len(self.tail) <= self.size and self._is_divisible()
            # The items begin in the first block, or what is around them is too long.
            if not self._within:
                return False
            self._before, self._line = self._before + at, self._line + self._text.count(b"\n", 0, at)
            self._text = self._text[at:]
        return False

    def chunks(self, file: IO[bytes], start: int) -> Iterator[tuple[int, bytes]]:
        """The chunks of a divisible document that begins at ``start`` in a file."""
        size = max(self.size, _AROUND * (len(self.head) + len(self.tail)))
        head, line, begin = self.head, 0, self.cuts[0]
        for end in self.cuts[1:]:
            if end.offset - begin.offset < size and end is not self.cuts[-1]:
                continue
            file.seek(start + begin.offset + 1)
            yield line, head + file.read(end.offset - begin.offset - 1) + self.tail
            # The lines of later chunks count from their items: what is around them was accepted with the first one.
            head, line, begin = self.head.replace(b"\n", b" "), end.line, end

    def _scan_text(self) -> int:
        """The length of the text that was scanned: to the last bracket, or to the end of the items."""
        at = 0
        while token := _TOKEN.match(self._text, at):
            self._depth += 1 if token[1] in b"[{" else -1 if token[1] in b"]}" else 0
            if not self._within:
                self._begin(token)
            elif self._depth < self._within:
                self._end(token)
                break
            elif self._depth == self._within and self._before + token.end() - self.cuts[-1].offset > self.size:
                self._cut(token.end())
            at = token.end()
        return at

    def _begin(self, token: re.Match[bytes]) -> None:
        """Take note of the first item's place, if this bracket is that of the array."""
        name = self._text[token.start() : token.start(1)]
        is_array = self._depth == 1 and not name.strip()
        if token[1] == b"[" and (is_array or (self._depth == 2 and _GRAPH.search(name))):
            self._within, self.head = self._depth, self._text[: token.end()]
            self._add(token.start(1))

    def _cut(self, at: int) -> None:
        """Cut at the comma after an item that ends here."""
        if comma := _COMMA.match(self._text, at):
            self._add(comma.end() - 1)

    def _end(self, token: re.Match[bytes]) -> None:
        """Take note of the end of the items at the bracket of the array."""
        last = self.cuts[-1].offset - self._before
        # Behind a comma without an item a chunk would have none and be valid, but the document is not.
        if len(self.cuts) > 1 and last >= 0 and not self._text[last : token.start(1)].strip(b", \t\r\n"):
            self.cuts.pop()
        self._add(token.start(1))
        self.tail = self._text[token.start(1) :]

    def _add(self, at: int) -> None:
        self.cuts.append(_Cut(self._before + at, self._line + self._text.count(b"\n", 0, at)))

    def _is_divisible(self) -> bool:
        """Whether what is around the items is valid, and says no more than their contexts and graph."""
        try:
            around = json.loads(self.head + self.tail, object_pairs_hook=unique_members)
        except (ValueError, RecursionError):
            return False  # the parser reports the error
        if isinstance(around, list):
            return not around
        return around.keys() <= _MEMBERS and around["@graph"] == [] and isinstance(around.get("@id", ""), str)
