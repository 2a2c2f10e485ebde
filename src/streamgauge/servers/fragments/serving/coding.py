"""Content codings: bodies made smaller for clients that take them so."""

import gzip
from collections.abc import Callable, Mapping
from typing import Final

import brotli

SMALLEST: Final = 400
"""Bytes below which coding saves nothing."""


def _brotli(body: bytes) -> bytes:
    return bytes(brotli.compress(body, quality=5))


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=6, mtime=0)


CODINGS: Final[Mapping[str, Callable[[bytes], bytes]]] = {"br": _brotli, "gzip": _gzip}
"""In order of preference."""

NAMES: Final = tuple(CODINGS)
