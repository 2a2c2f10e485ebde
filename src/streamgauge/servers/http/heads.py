"""Heads of requests that two servers, or two parts of one, could understand differently (RFC 9112, 3.2 and 6)."""

import re
from collections.abc import Sequence
from typing import Final

from starlette.types import Receive, Scope, Send

from streamgauge.servers.http.replies import problem

SINGLE: Final = frozenset(
    (
        b"host",
        b"content-length",
        b"content-type",
        b"authorization",
        b"idempotency-key",
        b"origin",
        b"last-event-id",
        b"if-modified-since",
        b"if-unmodified-since",
        b"access-control-request-method",
    )
)
"""Fields of which a request has one (RFC 9110, 5.3), and on whose value something is decided here."""

_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]+)(?::[0-9]*)?")
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")


def head_fault(version: str, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> str:
    """Why a request is refused before anything looks at it, a sentence; empty for one that is clear.

    ``version`` is HTTP's (``1.1``), ``target`` the request's as sent, names of ``headers`` are in lower case.
    """
    seen: set[bytes] = set()
    host: bytes | None = None
    for name, value in headers:
        if name in SINGLE:
            if name in seen:
                return f"the header {name.decode().title()} came more than once: send it once"
            seen.add(name)
            if name == b"host":
                host = value
        elif name == b"transfer-encoding" and any(other == b"content-length" for other, _ in headers):
            return "Content-Length and Transfer-Encoding came together: send one of them"
    if host is None:
        return "" if version == "1.0" else "the header Host is missing: HTTP/1.1 needs it"
    if not _HOST.fullmatch(host):
        return f"the header Host is {host[:80].decode('latin-1')!r}: expected a host, with its port where it has one"
    named = None if target.startswith(b"/") else _ABSOLUTE.match(target)
    if named is not None and named[1].lower() != host.lower():
        return "the request's target names another host than the header Host: send the same in both"
    return ""


class BadHead:
    """The application of a request that is refused for its head: 400, and the connection ends."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        await problem(400, self._sentence, {"Connection": "close"})(scope, receive, send)
