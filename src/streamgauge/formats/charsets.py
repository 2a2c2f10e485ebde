"""Transcoding to UTF-8: charsets from byte order marks, options, and XML declarations."""

import codecs
import io
import re
from typing import IO, Final, cast

from streamgauge.formats.bounded_files import ByteReader

_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks with Python's charset names; UTF-32's come first, as they begin with those of UTF-16."""

_BINARY: Final = {
    b"\x1f\x8b": "gzip data: unpack it, or let its name end in .gz",
    b"\x28\xb5\x2f\xfd": "Zstandard data: unpack it, or let its name end in .zst",
    b"\xfd7zXZ\0": "xz data: unpack it, or let its name end in .xz",
    b"PK\x03\x04": "a zip archive or a spreadsheet: let its name end in .zip, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet: save it as CSV",
    # Not the letters alone: a table of sensors may have a column PAR1.
    b"PAR1\x15": "Parquet: let its name end in .parquet",
    b"SQLite format 3\0": "a database of SQLite: export a table as CSV",
    b"%PDF-": "a PDF",
    **{b"BZh%d1AY&SY" % level: "bzip2 data: unpack it, or let its name end in .bz2" for level in range(1, 10)},
}
"""How other files begin that are handed over as text, and what to do."""

_FIRST_BYTES: Final = frozenset({b"<", *(mark[:1] for mark in (*_MARKS, *_BINARY))})
"""First bytes of texts that need a look: a byte order mark, an XML declaration, or no text at all."""

_PLAIN: Final = frozenset({"utf-8", "ascii"})
_DECLARED: Final = re.compile(rb"""^(<\?xml\s[^>]*?)\s+encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']([^>]*\?>)""")
_BLOCK: Final = 2**16


class CharsetError(ValueError):
    """An unknown charset, or bytes that are not text in it."""


def check_charset(name: str) -> str:
    """Python's name of a charset; CharsetError if it is unknown."""
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise CharsetError(f"the charset {name!r:.40} is unknown: write utf-8, iso-8859-1, windows-1252 ...") from None


def is_ascii_based(charset: str) -> bool:
    """Whether ASCII is written as its own bytes, so that a text can be read from any of its lines on."""
    ascii_ = bytes(range(128))
    try:
        return ascii_.decode(charset) == ascii_.decode("ascii")
    except UnicodeError:
        return False


def in_utf8(file: IO[bytes], charset: str | None = None) -> IO[bytes]:
    """An open text as UTF-8 without a byte order mark, converted while it is read; a mark overrides ``charset``.

    A file in UTF-8 is returned itself. CharsetError, also while reading.
    """
    # The head is looked at without being consumed, as a pipe cannot be rewound.
    opened = file if hasattr(file, "peek") else io.BufferedReader(cast(io.RawIOBase, file))
    head = cast(io.BufferedReader, opened).peek(_BLOCK)
    if charset is None and head[:1] not in _FIRST_BYTES:
        return opened
    if other := next((about for begin, about in _BINARY.items() if head.startswith(begin)), None):
        raise CharsetError(f"not text but {other}")
    mark = next((mark for mark in _MARKS if head.startswith(mark)), b"")
    if mark == codecs.BOM_UTF8:
        opened.read(len(mark))
        return opened
    name = charset_of(head, charset)
    # ASCII is UTF-8 already, so both pass without conversion.
    if name in _PLAIN:
        return opened
    return _transcoded(opened, name)


def charset_of(head: bytes, charset: str | None = None) -> str:
    """Python's name of the charset of a text by its first bytes: a byte order mark overrides ``charset``."""
    mark = next((mark for mark in _MARKS if head.startswith(mark)), b"")
    return _MARKS[mark] if mark else _charset(head, charset)


def text_in_utf8(body: bytes, charset: str | None = None) -> bytes:
    """``in_utf8`` for a whole text."""
    if charset is None and not body.startswith((*_MARKS, *_BINARY, b"<?xml")):
        return body
    return in_utf8(cast(IO[bytes], io.BufferedReader(io.BytesIO(body))), charset).read()


def _charset(head: bytes, charset: str | None) -> str:
    """The charset of a text without a mark: the named one, else that of its XML declaration, else UTF-8."""
    if charset is not None:
        return check_charset(charset)
    declared = _DECLARED.match(head) if head.startswith(b"<?xml") else None
    return check_charset(declared[2].decode()) if declared else "utf-8"


def _transcoded(file: IO[bytes], charset: str) -> IO[bytes]:
    """A file of another charset in UTF-8, without the charset of its XML declaration."""
    decoder, begun, rest = codecs.getincrementaldecoder(charset)(), False, b""

    def take(size: int) -> bytes:
        nonlocal begun, rest
        while not rest:
            # What has arrived, as in ``arriving``: a file that grows would otherwise be waited for.
            block = cast(io.BufferedReader, file).read1(_BLOCK)
            try:
                rest = decoder.decode(block, final=not block).encode()
            except UnicodeError as error:
                raise CharsetError(f"not {charset} text: {error}") from error
            if not begun and rest:
                # The parser would decode again by the declaration.
                begun, rest = True, _DECLARED.sub(rb"\1\3", rest)
            if not block:
                break
        part, rest = rest[:size], rest[size:]
        return part

    return io.BufferedReader(ByteReader(take))
