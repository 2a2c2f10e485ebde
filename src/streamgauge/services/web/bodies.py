"""Request bodies of a bounded size."""

from starlette.requests import Request


class BodyError(ValueError):
    """A body that is too long or no text; the sentence says so."""


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body; BodyError when it has more than ``limit`` bytes, before it is all read."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise BodyError(f"the request is longer than {limit} bytes: send less at once")
        parts.append(part)
    return b"".join(parts)


def text(body: bytes) -> str:
    """The body as text; BodyError when it is not UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise BodyError(f"not UTF-8 text: {error.reason} at byte {error.start}") from error
