"""Replies shared by all servers: errors as sentences in JSON, data with its entity tag, plain ASGI replies."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, TypeAlias

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Send

from streamgauge.servers.http.events import in_time
from streamgauge.servers.http.headers import Conditions, entity_tag

_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"
)
MAX_SENTENCE: Final = 1_000
"""Characters of an error's sentence, which may quote parts of a request of any length."""


def problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """``{"error": sentence}``, the sentence cut after ``MAX_SENTENCE`` characters."""
    return JSONResponse({"error": clipped(sentence)}, status, dict(headers or {}))


def json_tag(data: Mapping[str, object]) -> str:
    """The entity tag of data as ``tagged_json`` sends it."""
    return entity_tag(bytes(JSONResponse(data).body))


def tagged_json(
    data: Mapping[str, object],
    conditions: Conditions | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The data with its tag. With the ``conditions`` of a read: 304 if the client has it, PreconditionError."""
    response = JSONResponse(data, status, dict(headers or {}))
    tag = entity_tag(bytes(response.body))
    response.headers["ETag"] = tag
    if conditions is not None:
        # If-None-Match is left out here: for a read it does not fail but answers 304.
        Conditions(conditions.match).require((tag,), "what is read")
        if conditions.names((tag,)):
            return Response(status_code=304, headers={"ETag": tag})
    return response


@cache
def style() -> str:
    """The style sheet embedded in the pages of all servers: the report's colours, light and dark."""
    return (files("streamgauge.servers.http") / "page.css").read_text(encoding="utf-8")


def page(package: str) -> HTMLResponse:
    """The HTML page of a service, ``page.html`` of its package; its policy lets it connect to this service only."""
    return HTMLResponse(_page(package), headers={"Content-Security-Policy": _POLICY})


@cache
def _page(package: str) -> str:
    """The page of a package, with the style of all pages before its own."""
    text = (files(package) / "page.html").read_text(encoding="utf-8")
    return text.replace("<style>\n", f"<style>\n{style()}", 1)


def clipped(sentence: str) -> str:
    """The sentence, or its beginning and three dots."""
    return sentence if len(sentence) <= MAX_SENTENCE else f"{sentence[:MAX_SENTENCE]}..."


Header: TypeAlias = tuple[bytes, bytes]

ANYONE: Final[tuple[Header, ...]] = (
    (b"access-control-allow-origin", b"*"),
    (
        b"access-control-expose-headers",
        b"Content-Location, Dataset-Version, ETag, Date, Server-Time, Link, Location, Age",
    ),
)
"""CORS headers of open data: pages of any origin may read every response (Triple Pattern Fragments, 4.4)."""

BUFFERED: Final = 60_000
"""Body size up to which a send only fills the connection's write buffer (64 KiB), so it needs no timeout."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply: status, headers, body."""

    status: int
    headers: Sequence[Header]
    body: bytes = b""


def error_reply(status: int, sentence: str, *more: Header) -> Reply:
    """A sentence as JSON, ``{"error": sentence}``, that no cache keeps."""
    body = json.dumps({"error": clipped(sentence)}).encode()
    return Reply(status, [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), *more], body)


def header_lines(headers: Iterable[Header]) -> bytes:
    """Header fields as HTTP/1.1 sends them."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


_LINES: Final = header_lines(ANYONE)
_STATUS_LINES: Final = {200: b"HTTP/1.1 200 OK\r\n", 304: b"HTTP/1.1 304 Not Modified\r\n"}


def whole_response(reply: Reply, *more: Header) -> bytes:
    """The bytes of a response to GET with status 200 or 304, as ``send_reply`` has them sent."""
    return whole_text(header_lines((*reply.headers, *more)), reply.body, reply.status)


def whole_text(lines: bytes, body: bytes, status: int = 200) -> bytes:
    """The bytes of a response with these ``header_lines``."""
    # A 304 has no body, and a length of 0 would be read as that of the 200 it stands for (RFC 9110, 8.6).
    length = b"" if status == 304 else b"content-length: %d\r\n" % len(body)
    return b"".join((_STATUS_LINES[status], lines, length, _LINES, b"\r\n", body))


async def send_reply(reply: Reply, method: str, send: Send, *more: Header) -> None:
    """Send a reply, without its body to HEAD; gives up on a client that takes too long."""
    length = [] if reply.status in (204, 304) else [(b"content-length", b"%d" % len(reply.body))]
    headers = [*reply.headers, *length, *ANYONE, *more]
    body = b"" if method == "HEAD" else reply.body
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    ending = send({"type": "http.response.body", "body": body})
    if len(body) < BUFFERED:
        await ending
        return
    with suppress(TimeoutError):
        await in_time(ending)
