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
    """An unsupported content coding, or damaged bytes; the sentence names the coding."""


class UnpackedSizeError(CodingError):
    """More unpacked bytes than allowed."""


def _by_arrow(coding: str, file: IO[bytes]) -> IO[bytes]:
    import pyarrow as pa  # late: Arrow, which other files do without

    if not pa.Codec.is_available(coding):
        raise CodingError(f"this pyarrow was built without {coding}: pip install --force-reinstall pyarrow")
    return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(file, "r"), coding))


def _deflate(file: IO[bytes]) -> IO[bytes]:
    return cast(IO[bytes], _Inflating(file))


class _Inflating:
    """The bytes of a zlib stream, unpacked on demand."""

    def __init__(self, file: IO[bytes]) -> None:
        self._data, self._inner = file.read(), zlib.decompressobj()

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes; EOFError if the stream ends early, OSError if it is damaged."""
        try:
            part = self._inner.decompress(self._data, size)
        except zlib.error as error:
            raise OSError(str(error)) from error
        self._data = self._inner.unconsumed_tail
        if len(part) < size and not self._inner.eof:
            raise EOFError("the packed bytes end early")
        return part


_READERS: Final[Mapping[str, Callable[[IO[bytes]], IO[bytes]]]] = {
    "gzip": lambda file: cast(IO[bytes], gzip.GzipFile(fileobj=file)),
    "zstd": partial(_by_arrow, "zstd"),
    "brotli": partial(_by_arrow, "brotli"),
    "bzip2": lambda file: cast(IO[bytes], bz2.BZ2File(file)),
    "xz": lambda file: cast(IO[bytes], lzma.LZMAFile(file)),  # noqa: SIM115  # closed by who reads it
    "deflate": _deflate,
}


def unpacked(file: IO[bytes], coding: str) -> IO[bytes]:
    """The unpacked bytes of an open file, while it is read; OSError or EOFError if they are damaged."""
    return _READERS[coding](file)


def unpack(body: bytes, encoding: str, limit: int, count: Callable[[int], object] = abs) -> bytes:
    """A body unpacked by its Content-Encoding, at most ``limit`` bytes; CodingError, UnpackedSizeError.

    ``count`` is called with the size of each piece before it is kept, and may raise.
    """
    names = [name.strip().lower() for name in encoding.split(",") if name.strip()]
    for name in reversed([name for name in names if name != "identity"]):
        if name not in _HTTP:
            raise CodingError(f"the content coding {name!r:.40} is not supported: send {', '.join(_HTTP)} or none")
        body = _unpack(body, _HTTP[name], limit, count)
    return body


def unpack_gzip(payload: bytes, limit: int) -> bytes:
    """A message unpacked if it begins like gzip, which no text does; CodingError, UnpackedSizeError."""
    return _unpack(payload, "gzip", limit) if payload.startswith(_GZIP) else payload


_PIECE: Final = 2**20
"""Bytes that are unpacked in one call, so that a bound is checked before more is allocated."""


def _unpack(body: bytes, coding: str, limit: int, count: Callable[[int], object] = abs) -> bytes:
    data = io.BytesIO()
    try:
        file = unpacked(io.BytesIO(body), coding)
        while piece := file.read(_PIECE):
            # Checked piece by piece: the unpacked size is unknown before, and a few KB may unpack to GB.
            if data.tell() + len(piece) > limit:
                raise UnpackedSizeError(f"unpacks to more than {limit} bytes: send it in parts")
            count(len(piece))
            data.write(piece)
    except (OSError, EOFError, zlib.error) as error:
        raise CodingError(f"cannot be unpacked as {coding}: {obstacle(error)}") from error
    return data.getvalue()
