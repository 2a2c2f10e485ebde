"""Version announcements in N-Triples and N-Quads (RDF 1.2), which pyoxigraph's parsers of these syntaxes reject.

They are hints, so the line ``VERSION "1.2"`` is replaced by an empty one, which preserves line numbers. No literal
spans several lines in these syntaxes, so such a line is always an announcement.
"""

import io
import re
from typing import IO, Final

import pyoxigraph as ox

_LINE: Final = re.compile(
    rb"""^[ \t]*VERSION[ \t]+(?:"[^"\r\n\\]*"|'[^'\r\n\\]*')[ \t]*(?:#[^\r\n]*)?\r?$""", re.MULTILINE
)
LINES: Final = (ox.RdfFormat.N_TRIPLES, ox.RdfFormat.N_QUADS)
"""The syntaxes with one statement per line."""

_WORD: Final = b"VERSION"


def without_versions(body: bytes, syntax: ox.RdfFormat) -> bytes:
    """Text with its announcements blanked out; other syntaxes, whose parsers know them, are unchanged."""
    return _LINE.sub(b"", body) if syntax in LINES and _WORD in body else body


class UnversionedFile(io.RawIOBase):
    """An open file of lines with its announcements blanked out."""

    def __init__(self, file: "IO[bytes] | io.RawIOBase") -> None:
        self._file, self._rest, self._ready = file, b"", b""

    def readable(self) -> bool:
        """True, as ``io.RawIOBase`` requires."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """The next bytes, at least one before the end."""
        while not self._ready:
            block = self._file.read(len(buffer)) or b""
            if not block:
                self._ready, self._rest = self._rest, b""
                self._ready = _LINE.sub(b"", self._ready)
                break
            # Only whole lines: an announcement that two blocks divide would not be recognised.
            whole, newline, self._rest = (self._rest + block).rpartition(b"\n")
            self._ready = _LINE.sub(b"", whole + newline) if _WORD in whole else whole + newline
        part, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)
