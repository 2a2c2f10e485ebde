"""Heads of requests: refused where two servers, or two parts of one, could read them differently; remembered.

(RFC 9112, 3.2 and 6.)
"""

import re
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Final, TypeAlias

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


_BEYOND: Final = re.compile(rb"[\x80-\xff]")


def encoded_target(line: bytes) -> bytes:
    """A request line whose bytes beyond ASCII are percent-encoded, as an IRI becomes a URI (RFC 3987, 3.1)."""
    return _BEYOND.sub(lambda match: b"%%%02X" % match[0][0], line)


HEAD: Final = 64 * 2**10
"""Bytes that a request may have beside its body: its head, trailers, and what frames a chunk."""

_FIELD_SYNTAX: Final = 4
"""Bytes of a field line beside name and value."""


class LongHeadError(Exception):
    """More bytes beside a request's body than ``HEAD``."""


SMALL_HEAD: Final = 4 * 2**10
"""Bytes of a head that are not counted among those of other connections."""

LARGE_HEADS: Final = 24 * 2**20
"""Bytes that larger heads of all connections may have together."""


class LargeHeads:
    """The bytes of large heads that a process holds; LongHeadError for one too many."""

    def __init__(self, limit: int = LARGE_HEADS) -> None:
        self._limit, self._total, self._lock = limit, 0, Lock()

    def hold(self, size: int) -> None:
        """So many bytes more."""
        with self._lock:
            if self._total + size > self._limit:
                raise LongHeadError
            self._total += size

    def release(self, size: int) -> None:
        """So many bytes less."""
        with self._lock:
            self._total -= size


LARGE: Final = LargeHeads()
"""Those of this process."""


class HeadBytes:
    """Bytes of one request beside its body; LongHeadError above ``HEAD``.

    Counted twice: fields as they are parsed, which bounds what one read of the socket may bring, and whole reads
    without progress, which also see a field that does not end.
    """

    def __init__(self, large: LargeHeads = LARGE) -> None:
        self._fields = self._idle_bytes = self._held = 0
        self._progressed, self._large = False, large

    def begin(self) -> None:
        """A request begins, or the connection has ended: the head before is forgotten."""
        self._fields = 0
        if self._held:
            size, self._held = self._held, 0
            self._large.release(size)

    def add_target(self, target: bytes) -> None:
        """A piece of the target was parsed."""
        self._add(len(target))

    def add_field(self, name: bytes, value: bytes) -> None:
        """A field of the head or of the trailers was parsed."""
        self._add(len(name) + len(value) + _FIELD_SYNTAX)

    def progress(self) -> None:
        """The head, the request or a piece of its body is complete."""
        self._progressed = True

    def read(self, size: int) -> None:
        """So many bytes of the socket were parsed."""
        self._idle_bytes = 0 if self._progressed else self._idle_bytes + size
        self._progressed = False
        self._check(self._idle_bytes)

    def _add(self, size: int) -> None:
        self._fields += size
        self._check(self._fields)

    def _check(self, size: int) -> None:
        if size > HEAD:
            raise LongHeadError
        if size > SMALL_HEAD and size > self._held:
            self._large.hold(size - self._held)
            self._held = size


class BadHead:
    """The application of a request that is refused for its head: 400, and the connection ends."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        await problem(400, self._sentence, {"Connection": "close"})(scope, receive, send)


PromptAnswer: TypeAlias = Callable[[str, bytes, Mapping[bytes, bytes]], bytes | None]
"""(scheme, target, headers) of a GET without a body -> the whole response, or ``None`` where that takes the app.

It is ``None`` for a target that has other characters than RFC 3986 gives addresses.
"""

_REST: Final = b" HTTP/1.1\r\n"
"""The end of a request line."""

PLAIN_TARGET: Final = re.compile(rb"GET (/[!-~]*)")
"""The beginning of a request whose target has no byte that the parser could refuse or read otherwise."""


class KnownHeads:
    """Heads of requests that were read, without what is before ``_REST``, and their headers: clients repeat them.

    At most ``most`` of at most ``longest`` bytes.
    """

    def __init__(self, limit: int = 500, longest: int = 2_000) -> None:
        self._headers: dict[bytes, Mapping[bytes, bytes]] = {}
        self._most, self._longest = limit, longest

    def headers(self, rest: bytes) -> Mapping[bytes, bytes] | None:
        """The headers, by lower-case name, of a head that goes on like this; ``None`` when none was read."""
        return self._headers.get(rest)

    def keep(self, data: bytes, headers: Mapping[bytes, bytes]) -> None:
        """Remember the head of a GET that ``data`` are, no byte less or more, and that was answered at once."""
        end = data.find(b" ", len(b"GET "))
        rest = data[end:]
        if not (data.startswith(b"GET /") and rest.startswith(_REST) and rest.find(b"\r\n\r\n") == len(rest) - 4):
            return
        if len(rest) <= self._longest and b"if-none-match" not in headers:
            if len(self._headers) >= self._most:
                self._headers.clear()
            self._headers[rest] = headers


HEADS: Final = KnownHeads()
"""The heads that this process read."""
