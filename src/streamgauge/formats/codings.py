"""Content codings (gzip, Zstandard, Brotli, bzip2, xz): bytes unpacked while read, or at once within a bound."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import IO, Final, cast

from streamgauge.model.mistake import obstacle

ENDINGS: Final = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz"}
"""Endings of compressed files, after that of the format, as in ``a.ttl.gz``."""

_HTTP: Final = {"gzip": "gzip", "x-gzip": "gzip", "zstd": "zstd", "br": "brotli", "deflate": "deflate"}
"""Codings by their name in Content-Encoding (RFC 9110, 8.4.1; RFC 8878; RFC 7932)."""

_GZIP: Final = b"\x1f\x8b"


class CodingError(ValueError):
    """An unsupported content coding, or corrupt data; the message names the coding."""


class UnpackedSizeError(CodingError):
    """More unpacked bytes than allowed."""


def _by_arrow(coding: str, file: IO[bytes]) -> IO[bytes]:
    import pyarrow as pa  # late: Arrow, which other files do without

    if not pa.Codec.is_available(coding):
        raise CodingError(f"this pyarrow was built without {coding}: pip install --force-reinstall pyarrow")
    return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(file, "r"), coding))


class _Inflating:
    """The bytes of zlib or gzip data in memory, unpacked on demand; gzip may have several members (RFC 1952, 2.2).

    For a small body it takes an eighth of the time of ``gzip.GzipFile``.
    """

    def __init__(self, data: bytes, form: int) -> None:
        self._data, self._form, self._inner = data, form, zlib.decompressobj(form)

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, none at the end; EOFError if the data end early, OSError if they are damaged."""
        part = b""
        while not part:
            if self._inner.eof:
                if not self._data:
                    break
                self._inner = zlib.decompressobj(self._form)
            try:
                # At most ``size`` bytes come out; the rest stays packed in ``unconsumed_tail``.
                part = self._inner.decompress(self._data, size)
            except zlib.error as error:
                raise OSError(str(error)) from error
            if not part and not self._inner.eof:
                raise EOFError("the packed bytes end early")
            # Zeros may follow a member: tapes and some servers pad to whole blocks.
            self._data = self._inner.unused_data.lstrip(b"\0") if self._inner.eof else self._inner.unconsumed_tail
        return part


_INFLATED: Final = {"deflate": zlib.MAX_WBITS, "gzip": zlib.MAX_WBITS | 16}
"""Codings of bodies that zlib unpacks, with its number for their form."""

_READERS: Final[Mapping[str, Callable[[IO[bytes]], IO[bytes]]]] = {
    "gzip": lambda file: cast(IO[bytes], gzip.GzipFile(fileobj=file)),
    "zstd": partial(_by_arrow, "zstd"),
    "brotli": partial(_by_arrow, "brotli"),
    "bzip2": lambda file: cast(IO[bytes], bz2.BZ2File(file)),
    "xz": lambda file: cast(IO[bytes], lzma.LZMAFile(file)),  # noqa: SIM115  # closed by who reads it
}


def unpacked(file: IO[bytes], coding: str) -> IO[bytes]:
    """The unpacked bytes of an open file, while it is read; OSError or EOFError if they are damaged."""
    return _READERS[coding](file)


def unpack(body: bytes, encoding: str, limit: int, count: Callable[[int], object] = abs) -> bytes:
    """A body unpacked by its Content-Encoding, at most ``limit`` bytes; CodingError, UnpackedSizeError.

    ``count`` is called with the size of each piece before it is kept, and may raise.
    """
    names = [name.strip().lower() for name in encoding.split(",") if name.strip()]
    # Codings are listed in the order in which they were applied (RFC 9110, 8.4).
    for name in reversed([name for name in names if name != "identity"]):
        if name not in _HTTP:
            raise CodingError(f"the content coding {name!r:.40} is not supported: send {', '.join(_HTTP)} or none")
        body = _unpack(body, _HTTP[name], limit, count)
    # A body without a coding has not been measured yet.
    if len(body) > limit:
        raise UnpackedSizeError(f"has more than {limit} bytes: send it in parts")
    return body


def unpack_gzip(payload: bytes, limit: int) -> bytes:
    """A message unpacked if it begins like gzip, which no text does; CodingError, UnpackedSizeError."""
    return _unpack(payload, "gzip", limit) if payload.startswith(_GZIP) else payload


_PIECE: Final = 2**20
"""Bytes that are unpacked in one call, so that a bound is checked before more is allocated."""


def _unpack(body: bytes, coding: str, limit: int, count: Callable[[int], object] = abs) -> bytes:
    data = io.BytesIO()
    try:
        form = _INFLATED.get(coding)
        file = unpacked(io.BytesIO(body), coding) if form is None else _Inflating(body, form)
        while piece := file.read(_PIECE):
            # Checked piece by piece: the unpacked size is unknown before, and a few KB may unpack to GB.
            if data.tell() + len(piece) > limit:
                raise UnpackedSizeError(f"unpacks to more than {limit} bytes: send it in parts")
            count(len(piece))
            data.write(piece)
    except (OSError, EOFError, zlib.error) as error:
        raise CodingError(f"cannot be unpacked as {coding}: {obstacle(error)}") from error
    return data.getvalue()
