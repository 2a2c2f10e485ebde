"""Open files whose text is checked against bounds while a parser reads them."""

import io
from collections.abc import Callable
from typing import IO, Final, TypeAlias

import pyoxigraph as ox

from streamgauge.formats.bounds import JSON_LD, TRIPLE_TERMS, TurtleScan, XmlScan, check_rdf

_BLOCK: Final = 2**20
_SCANNED_BLOCK: Final = 2**16

ByteFile: TypeAlias = IO[bytes] | io.RawIOBase


class ByteReader(io.RawIOBase):
    """A raw file of the bytes that ``take`` returns, at most the requested number; no bytes mean the end."""

    def __init__(self, take: Callable[[int], bytes]) -> None:
        self._take = take

    def readable(self) -> bool:
        """True, as ``io.RawIOBase`` requires."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """The next bytes, at least one before the end."""
        data = self._take(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def bounded(file: ByteFile, syntax: ox.RdfFormat) -> ByteFile:
    """The same bytes for a parser; BoundError, now or while reading, for text beyond a bound.

    JSON-LD is read whole. A file of Turtle, or of a syntax like it, with few triple terms is returned unchanged.
    """
    if syntax == ox.RdfFormat.RDF_XML:
        return scanned_xml(file, XmlScan())
    if syntax in JSON_LD:
        body = file.read() or b""
        check_rdf(body, syntax)
        return io.BytesIO(body)
    return _scanned(file, TurtleScan()) if _may_nest(file) else file


def scanned_xml(file: ByteFile, scan: XmlScan) -> ByteFile:
    """The same bytes of XML, scanned before a parser gets them; BoundError while reading."""
    # The parser asks for 2 KB at a time; longer blocks cut fewer tokens.
    return io.BufferedReader(_scanned(file, scan), _SCANNED_BLOCK)


def _may_nest(file: ByteFile) -> bool:
    """Whether a file may have triple terms nested too deeply, or cannot be read twice."""
    # A pipe cannot be read twice, so it is scanned while it is parsed.
    if not isinstance(file, io.BufferedReader) or not file.seekable():
        return True
    start, count, before = file.tell(), 0, b""
    while count <= TRIPLE_TERMS and (block := file.read(_BLOCK)):
        count += (before + block).count(b"<<")
        # Two blocks may divide a ``<<``.
        before = block[-1:]
    file.seek(start)
    return count > TRIPLE_TERMS


def _scanned(file: ByteFile, scan: TurtleScan | XmlScan) -> ByteReader:
    """A file that is scanned before the parser reads it; BoundError."""

    def take(size: int) -> bytes:
        data = file.read(size) or b""
        # Before the parser gets the bytes: it builds the tree of a block recursively.
        # Latin-1 decodes any bytes, one character a byte, so a block that ends within a character of UTF-8 is no error
        # here.
        scan.feed(data.decode("latin-1"), last=not data)
        return data

    return ByteReader(take)
