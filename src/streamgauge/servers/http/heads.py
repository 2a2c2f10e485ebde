"""Heads of requests: ambiguous ones are refused (RFC 9112, 3.2 and 6), their size is bounded, known ones are reused.

A head is ambiguous if a proxy and this server, or two parts of this server, could read it differently; attackers use
that to smuggle a request past a proxy's checks.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Final, TypeAlias

from starlette.types import Receive, Scope, Send

from streamgauge.servers.http.replies import Reply, problem

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
"""Fields that may occur once (RFC 9110, 5.3) and that this server bases decisions on."""

# reg-name and IP-literal of RFC 3986 (3.2.2); the port may be empty behind its colon (3.2.3).
_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]+)(?::[0-9]*)?")
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")


def head_fault(version: str, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> str:
    """Why a head is refused, as a sentence; empty for an unambiguous one.

    ``version`` is HTTP's (``1.1``), ``target`` is as sent, names of ``headers`` are in lower case.
    """
    seen: set[bytes] = set()
    host: bytes | None = None
    for name, value in headers:
        if name in SINGLE:
            if name in seen:
                # Even with the same value twice: a proxy may forward one of the two, and which one is its choice.
                return f"the header {name.decode().title()} came more than once: send it once"
            seen.add(name)
            if name == b"host":
                host = value
        elif name == b"transfer-encoding" and any(other == b"content-length" for other, _ in headers):
            # RFC 9112 (6.1) lets a server read such a request by its Transfer-Encoding; a proxy that goes by the length
            # would then see another request begin in the middle of the body.
            return "Content-Length and Transfer-Encoding came together: send one of them"
    if host is None:
        return "" if version == "1.0" else "the header Host is missing: HTTP/1.1 needs it"
    if not _HOST.fullmatch(host):
        return f"the header Host is {host[:80].decode('latin-1')!r}: expected a host, with its port where it has one"
    # The absolute form has to be accepted (RFC 9112, 3.2.2) and would win over Host, by which the guard decides.
    named = None if target.startswith(b"/") else _ABSOLUTE.match(target)
    if named is not None and named[1].lower() != host.lower():
        return "the request's target names another host than the header Host: send the same in both"
    return ""


_BEYOND: Final = re.compile(rb"[\x80-\xff]")


def encoded_target(line: bytes) -> bytes:
    """A request line with all bytes outside ASCII percent-encoded, as an IRI becomes a URI (RFC 3987, 3.1)."""
    return _BEYOND.sub(lambda match: b"%%%02X" % match[0][0], line)


HEAD: Final = 64 * 2**10
"""Maximum bytes of a request without its body: head, trailers, and framing of chunks."""

_FIELD_SYNTAX: Final = 4
"""Bytes of a field line besides name and value: ``: `` and CRLF."""


class LongHeadError(Exception):
    """A request with more than ``HEAD`` bytes besides its body, or one too many with a large head."""


SMALL_HEAD: Final = 4 * 2**10
"""Size up to which a head does not count towards ``LARGE_HEADS``."""

LARGE_HEADS: Final = 24 * 2**20
"""Maximum bytes of all larger heads of the process together."""


class LargeHeads:
    """The total size of large heads under way; LongHeadError for one too many. Thread-safe."""

    def __init__(self, limit: int = LARGE_HEADS) -> None:
        self._limit, self._total, self._lock = limit, 0, Lock()

    def hold(self, size: int) -> None:
        """Add ``size`` bytes; LongHeadError if the limit would be exceeded."""
        with self._lock:
            if self._total + size > self._limit:
                raise LongHeadError
            self._total += size

    def release(self, size: int) -> None:
        """Return ``size`` bytes to the budget."""
        with self._lock:
            self._total -= size


LARGE: Final = LargeHeads()
"""The large heads of this process."""


class HeadBytes:
    """Counts the bytes of one request besides its body; LongHeadError above ``HEAD``.

    Two counts: of parsed fields, which bounds many fields in one read of the socket, and of whole reads without
    progress, which bounds a single field that never ends and which the parser therefore does not report.
    """

    def __init__(self, large: LargeHeads = LARGE) -> None:
        self._fields = self._idle_bytes = self._held = 0
        self._progressed, self._large = False, large

    def begin(self) -> None:
        """Start a new request, or end the connection: the previous head no longer counts."""
        self._fields = 0
        if self._held:
            size, self._held = self._held, 0
            self._large.release(size)

    def add_target(self, target: bytes) -> None:
        """Count a parsed piece of the target."""
        self._add(len(target))

    def add_field(self, name: bytes, value: bytes) -> None:
        """Count a parsed field of the head or of the trailers."""
        self._add(len(name) + len(value) + _FIELD_SYNTAX)

    def progress(self) -> None:
        """Record progress: the head, a piece of the body or the request is complete."""
        self._progressed = True

    def read(self, size: int) -> None:
        """Count a read of the socket, ``size`` bytes."""
        self._idle_bytes = 0 if self._progressed else self._idle_bytes + size
        # The parser reports before the whole read is counted: a read during which anything became complete counts as
        # nothing.
        self._progressed = False
        self._check(self._idle_bytes)

    def _add(self, size: int) -> None:
        self._fields += size
        self._check(self._fields)

    def _check(self, size: int) -> None:
        if size > HEAD:
            raise LongHeadError
        # Small heads are left out, so that thousands of ordinary connections never touch the lock.
        if size > SMALL_HEAD and size > self._held:
            self._large.hold(size - self._held)
            self._held = size


class BadHead:
    """The application for a refused head: answers 400 and closes the connection."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with status 400."""
        await problem(400, self._sentence, {"Connection": "close"})(scope, receive, send)


PromptAnswer: TypeAlias = Callable[[str, bytes, Mapping[bytes, bytes]], bytes | None]
"""(scheme, target, headers) of a GET without a body -> the whole response, or ``None`` if the app has to answer.

Must return ``None`` for a target with characters outside RFC 3986: ``KnownHeads`` passes targets that nobody parsed.
"""

PromptPost: TypeAlias = Callable[[bytes, Mapping[bytes, bytes], bytes], Reply | None]
"""(target, headers, body) of a POST -> its reply, or ``None`` if the app has to answer and nothing was changed."""

_REST: Final = b" HTTP/1.1\r\n"
"""The end of a request line."""

PLAIN_PATH: Final = re.compile(rb"/[!-~]*")
PLAIN_TARGET: Final = re.compile(rb"GET (%b)" % PLAIN_PATH.pattern)
"""The beginning of a request line whose target consists of bytes that every parser reads alike."""


class KnownHeads:
    """A cache of parsed headers, keyed by the bytes after the request target, which clients repeat in every request.

    At most ``limit`` heads of at most ``longest`` bytes.
    """

    def __init__(self, limit: int = 500, longest: int = 2_000) -> None:
        self._headers: dict[bytes, Mapping[bytes, bytes]] = {}
        self._limit, self._longest = limit, longest

    def headers(self, rest: bytes) -> Mapping[bytes, bytes] | None:
        """The headers, by lower-case name, of a head with these bytes after its target; ``None`` if unknown."""
        return self._headers.get(rest)

    def keep(self, data: bytes, headers: Mapping[bytes, bytes]) -> None:
        """Remember the head of ``data``, which must be exactly one GET that ``prompt`` has answered."""
        end = data.find(b" ", len(b"GET "))
        rest = data[end:]
        # An empty line anywhere but at the end would make of this read a head with something behind it.
        if not (data.startswith(b"GET /") and rest.startswith(_REST) and rest.find(b"\r\n\r\n") == len(rest) - 4):
            return
        # A conditional head has a tag that is specific to one page, so it would fill the cache without being met again.
        if len(rest) <= self._longest and b"if-none-match" not in headers:
            if len(self._headers) >= self._limit:
                # All at once: clients in use fill it again within a request each, and no order has to be kept on every
                # hit.
                self._headers.clear()
            self._headers[rest] = headers


HEADS: Final = KnownHeads()
"""The known heads of this process."""
