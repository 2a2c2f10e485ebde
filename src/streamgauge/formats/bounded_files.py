"""Open RDF files, held to the bounds of their text as they are read."""

import io
from typing import IO, Final, TypeAlias

import pyoxigraph as ox

from streamgauge.formats.bounds import TRIPLE_TERMS, TurtleScan, check_rdf

_WHOLE: Final = (ox.RdfFormat.JSON_LD, ox.RdfFormat.STREAMING_JSON_LD, ox.RdfFormat.RDF_XML)
_BLOCK: Final = 2**20

ByteFile: TypeAlias = IO[bytes] | io.RawIOBase


def bounded(file: ByteFile, syntax: ox.RdfFormat) -> ByteFile:
    """The same bytes for a parser; BoundError, here or while they are read, for what is beyond the bounds.

    JSON-LD and RDF/XML are read whole. A file of another syntax that has few triple terms is read as it is.
    """
    if syntax in _WHOLE:
        body = file.read() or b""
        check_rdf(body, syntax)
        return io.BytesIO(body)
    return BoundedTurtle(file) if _may_nest(file) else file


def _may_nest(file: ByteFile) -> bool:
    """Whether a file may have triple terms too deep in each other, or cannot be read twice."""
    if not isinstance(file, io.BufferedReader) or not file.seekable():
        return True
    start, count, before = file.tell(), 0, b""
    while count <= TRIPLE_TERMS and (block := file.read(_BLOCK)):
        count += (before + block).count(b"<<")
        before = block[-1:]
    file.seek(start)
    return count > TRIPLE_TERMS


class BoundedTurtle(io.RawIOBase):
    """A file of Turtle, or of a syntax beside it, that a scan reads before its reader does; BoundError."""

    def __init__(self, file: ByteFile) -> None:
        self._file, self._scan = file, TurtleScan()

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """The next bytes, at least one before the end."""
        data = self._file.read(len(buffer)) or b""
        self._scan.feed(data.decode("latin-1"), last=not data)
        buffer[: len(data)] = data
        return len(data)
