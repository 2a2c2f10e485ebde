"""Proactive negotiation (RFC 9110, 12): the weights of an Accept header, content codings and the best of them."""

import gzip
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
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

CODING_NAMES: Final = tuple(CODINGS)


_WEIGHT = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")
_LONGEST = 4000
"""Characters of an Accept header that are looked at."""


def weights(header: str) -> list[tuple[str, float]]:
    """The names of an Accept header and their weights (RFC 9110, 12.4.2); a weight that cannot be read is 0."""
    found = []
    for part in header[:_LONGEST].split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if name:
            found.append((name, _q(parameters)))
    return found


def _q(parameters: Sequence[str]) -> float:
    given = [value.strip() for name, _, value in (each.partition("=") for each in parameters) if name.strip() == "q"]
    if not given:
        return 1.0
    return float(given[0]) if _WEIGHT.fullmatch(given[0]) else 0.0


@lru_cache(maxsize=2000)
def content_coding(header: str, known: Sequence[str]) -> str:
    """The content coding to send: one of ``known``, in order of preference, or ``identity`` (RFC 9110, 12.5.3)."""
    wanted = dict(weights(header))
    weighed = [(wanted.get(name, wanted.get("*", 0.0)), -number, name) for number, name in enumerate(known)]
    weight, _, name = max(weighed, default=(0.0, 0, "identity"))
    return name if weight > 0 and weight >= wanted.get("identity", 0.0) else "identity"
