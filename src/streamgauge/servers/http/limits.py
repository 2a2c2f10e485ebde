"""Limits of servers: sizes of bodies, concurrent work, rates, and the cost of regular expressions in queries."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from functools import cache
from io import BytesIO
from threading import Lock
from typing import Final

import pyoxigraph as ox
from starlette.requests import Request

from streamgauge.formats.bounds import JSON_LD
from streamgauge.formats.codings import CodingError, UnpackedSizeError, unpack
from streamgauge.model import algebra as al
from streamgauge.query import parse_sparql
from streamgauge.query.traversal import every_pattern, expressions
from streamgauge.sparql.regular import PatternError, TooLargeError, pattern
from streamgauge.sparql.values import STRING, read

PATIENCE_S = 30.0
"""How long a request may take to arrive."""


class BodyError(ValueError):
    """A body that is too long, too slow or not text; the sentence says which."""


class LateBodyError(BodyError):
    """A body that did not come in time."""


class TextError(BodyError):
    """A body that is not UTF-8 text."""


class CodedBodyError(BodyError):
    """A body in an unsupported content coding."""


class DamagedBodyError(BodyError):
    """A body that cannot be unpacked by the content coding that it declares."""


class CrowdedBodiesError(BodyError):
    """A body for which the budget of all bodies under way has no room."""


STATUS: Final[Mapping[type[Exception], int]] = {
    LateBodyError: 408,
    TextError: 400,
    CodedBodyError: 415,
    DamagedBodyError: 400,
    CrowdedBodiesError: 503,
    BodyError: 413,
}
"""Status by error (RFC 9110, 15.5); the first class that matches, so subclasses come first."""


SMALL_JSON_LD: Final = 64 * 2**10
"""Bytes of JSON-LD that need at most 25 MiB to parse, whatever their content."""

SMALL_DOCUMENT: Final = 2**20
"""Bytes of a document in another syntax; its triples take about ten times as much."""

_DOCUMENT: Final = Lock()
_AT_ONCE: Final = nullcontext()


def document_turn(body: bytes, syntax: ox.RdfFormat | None = None) -> AbstractContextManager[object]:
    """A turn to parse a document: one large document at a time, because each may take 100 MiB."""
    # A lock of threads, since large documents are parsed in threads.
    return _DOCUMENT if len(body) > (SMALL_JSON_LD if syntax in JSON_LD else SMALL_DOCUMENT) else _AT_ONCE


ARRIVING: Final = 16 * 2**20
"""Bytes of the bodies, packed and unpacked, of all requests under way. A single body may exceed it, up to its limit."""


class ArrivingBodies:
    """Counts the bytes of bodies that are being read, unpacked or parsed. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, Lock()
        self._total = 0

    @contextmanager
    def body(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that adds bytes of one body; CrowdedBodiesError where they exceed the budget."""
        own = 0

        def add(size: int) -> None:
            nonlocal own
            with self._lock:
                # A body alone is never refused here: otherwise one larger than the budget could not be sent at all.
                if self._total + size > self._limit and self._total > own:
                    raise CrowdedBodiesError("too many large requests are under way: send this one again later")
                self._total += size
                own += size

        try:
            yield add
        finally:
            with self._lock:
                self._total -= own


BODIES: Final = ArrivingBodies(ARRIVING)
"""The bodies of this process."""


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body, which stops counting as arriving when this returns; BodyError. For small bodies."""
    async with counted_body(request, limit) as body:
        return body


@asynccontextmanager
async def counted_body(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The whole body, unpacked by its Content-Encoding; it counts as arriving until the block ends.

    BodyError if it has more than ``limit`` bytes, packed or unpacked; reading stops as soon as it does.
    """
    with BODIES.body() as add:
        try:
            # For the whole body, not for each part: a client that sends a byte now and then would never exceed a limit
            # per part.
            async with asyncio.timeout(PATIENCE_S):
                body = await _read(request, limit, add)
        except TimeoutError:
            raise LateBodyError(f"the request did not come within {PATIENCE_S:g} s: send it faster, or less") from None
        if encoding := ", ".join(request.headers.getlist("content-encoding")):
            # In a thread: all other requests would wait for the unpacking of a large body.
            body = await asyncio.to_thread(_unpacked, body, encoding, limit, add)
        yield body


def _unpacked(body: bytes, encoding: str, limit: int, add: Callable[[int], None]) -> bytes:
    try:
        return unpack(body, encoding, limit, add)
    except UnpackedSizeError as error:
        raise BodyError(f"the request {error}") from error
    except CodingError as error:
        # A decoder's own error is the cause of a damaged body; a coding that nobody knows has none.
        kind = CodedBodyError if error.__cause__ is None else DamagedBodyError
        raise kind(f"the request: {error}") from error


async def _read(request: Request, limit: int, add: Callable[[int], None]) -> bytes:
    body = BytesIO()  # getvalue() shares its buffer, no copy is made
    async for part in request.stream():
        # Before the part is counted and stored, so that a body never takes more than its limit.
        if body.tell() + len(part) > limit:
            raise BodyError(f"the request is longer than {limit} bytes: send less at once")
        add(len(part))
        body.write(part)
    return body.getvalue()


def text(body: bytes) -> str:
    """The body as text; TextError when it is not UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise TextError(f"not UTF-8 text: {error.reason} at byte {error.start}") from error


class CrowdedError(RuntimeError):
    """Too many requests already wait for the same; the sentence asks to retry."""


class Gate:
    """Admits ``room`` requests at a time to ``through``, in order of arrival; at most ``limit`` wait."""

    def __init__(self, limit: int, what: str, room: int = 1) -> None:
        self._limit, self._what = limit, what
        self._inside, self._waiting = asyncio.Semaphore(room), 0

    @asynccontextmanager
    async def through(self) -> AsyncIterator[None]:
        """Wait for a turn; CrowdedError if ``limit`` requests already wait."""
        if self._waiting >= self._limit:
            raise CrowdedError(f"{self._waiting} wait to {self._what} already: come again")
        # On one event loop nothing runs between the test and this line, so the limit is exact without a lock.
        self._waiting += 1
        try:
            await self._inside.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._inside.release()


class Rate:
    """A token bucket of one second's amount; ``clock`` in seconds. Thread-safe."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._rate, self._clock, self._lock = per_second, clock, Lock()
        self._level, self._at = per_second, clock()

    def take(self, amount: int) -> float:
        """Take ``amount``: 0.0 on success, else the seconds to wait.

        An amount larger than the bucket needs a full one and leaves it in debt.
        """
        with self._lock:
            now = self._clock()
            self._level = min(self._rate, self._level + (now - self._at) * self._rate)
            self._at = now
            # More than a full bucket never comes together; without the bound such an amount would wait for ever.
            wanted = min(float(amount), self._rate)
            if self._level < wanted:
                return (wanted - self._level) / self._rate
            # Below zero for a large amount: those that come next wait until the debt is paid, so the mean rate holds.
            self._level -= amount
            return 0.0


SLOW: Final = 2
"""Patterns of a query that RE2 cannot match, each of which may take 0.05 s."""


@cache
def load_parsers() -> None:
    """Import all that parses queries and patterns, before the CPU time of an evaluation counts.

    An import interrupted by a deadline would leave a half-initialised module.
    """
    form = parse_sparql("SELECT * { ?s ?p ?o FILTER (REGEX(?o, '^(a|b+)+c') || REGEX(?o, '(a)\\\\1')) }")
    refused_patterns(form)


def refused_patterns(form: al.QueryForm) -> str:
    """Why the patterns of REGEX and REPLACE in a query are refused, as a sentence; empty if they are not."""
    slow = 0
    for call in _calls(expression for inner in every_pattern(form.pattern) for expression in expressions(inner)):
        if call.operator.upper() in ("REGEX", "REPLACE") and len(call.arguments) > 1:
            source = call.arguments[1]
            value = read(source) if isinstance(source, str) else None
            # A pattern that is no string is an error of the expression, on each row, and costs nothing.
            if value is None or value.kind != STRING:
                continue
            try:
                # Only constant patterns can be judged here; computed ones are bounded when they are compiled.
                slow += pattern(value.value).slow
            except TooLargeError as error:
                return str(error)
            except PatternError:
                continue  # SPARQL's error, on each row
    if slow > SLOW:
        return f"{slow} patterns that have back-references or repeat more than 1,000 times, {SLOW} at most"
    return ""


def _calls(expressions_: Iterable[al.Expression]) -> Iterator[al.Call]:
    """All calls in expressions, those within calls too."""
    waiting = list(expressions_)
    while waiting:
        expression = waiting.pop()
        if isinstance(expression, al.Call):
            yield expression
            waiting += expression.arguments
