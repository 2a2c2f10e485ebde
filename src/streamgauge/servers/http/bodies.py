"""Request bodies of a bounded size."""

import asyncio
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request

PATIENCE_S = 30.0
"""How long a request may take to arrive."""


class BodyError(ValueError):
    """A body that is too long, too slow or no text; the sentence says so."""


class LateBodyError(BodyError):
    """A body that did not come in time."""


class TextError(BodyError):
    """A body that is no text."""


STATUS: Final[Mapping[type[Exception], int]] = {LateBodyError: 408, TextError: 400, BodyError: 413}
"""What such requests are answered with (RFC 9110, 15.5); the first that fits."""


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body; BodyError when it has more than ``limit`` bytes, before it is all read, or does not come."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await _read(request, limit)
    except TimeoutError:
        raise LateBodyError(f"the request did not come within {PATIENCE_S:g} s: send it faster, or less") from None


async def _read(request: Request, limit: int) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise BodyError(f"the request is longer than {limit} bytes: send less at once")
        parts.append(part)
    return b"".join(parts)


def text(body: bytes) -> str:
    """The body as text; TextError when it is not UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise TextError(f"not UTF-8 text: {error.reason} at byte {error.start}") from error
