"""Writes on the web: who may, how much, once per key, all of a request or nothing of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect
from starlette.requests import Request as Incoming
from starlette.types import Receive, Scope, Send

from streamgauge.query.errors import QueryError
from streamgauge.servers.fragments.annotations import UnknownMethodError
from streamgauge.servers.fragments.labelling import LabelError
from streamgauge.servers.fragments.quads import VERSION
from streamgauge.servers.fragments.serving import demands
from streamgauge.servers.fragments.serving.addresses import Addressing, HostError
from streamgauge.servers.fragments.serving.asked import AskedError
from streamgauge.servers.fragments.serving.dataset import DataSet, TooManyError
from streamgauge.servers.fragments.serving.freshness import clock_headers
from streamgauge.servers.fragments.serving.operations import Operation
from streamgauge.servers.fragments.serving.replying import Reply, reply_with, told
from streamgauge.servers.fragments.serving.requests import MediaTypeError, Request, RequestError, read_request
from streamgauge.servers.fragments.serving.terms import TermError
from streamgauge.servers.fragments.serving.validity import ValidityError
from streamgauge.servers.fragments.serving.writers import SECONDS, BusyError, Writers
from streamgauge.servers.fragments.serving.writing import Written
from streamgauge.servers.fragments.storing.shelf import DamagedStoreError, FullError
from streamgauge.servers.http.bodies import STATUS, read_body
from streamgauge.servers.http.conditions import ConditionError, PreconditionError
from streamgauge.servers.http.deadlines import DEADLINES, DeadlineError
from streamgauge.servers.http.gates import CrowdedError
from streamgauge.servers.http.patterns import load_parsers
from streamgauge.servers.http.retries import BadKeyError, KeyReuseError, RetryKey, RetryMemory, read_key
from streamgauge.servers.http.tokens import Tokens, bearer

METHODS: Final = ("POST", "PUT", "PATCH", "DELETE")
KEYS: Final = 10_000
"""Idempotency keys of a token that are remembered, the last ones, until the server ends."""

_STATUS: Final[dict[type[Exception], int]] = {
    **STATUS,
    MediaTypeError: 415,
    TooManyError: 422,
    FullError: 507,
    DamagedStoreError: 503,
    PreconditionError: 412,
    KeyReuseError: 422,
    DeadlineError: 422,
    CrowdedError: 503,
    BusyError: 503,
    **dict.fromkeys(
        (
            BadKeyError,
            ConditionError,
            AskedError,
            RequestError,
            TermError,
            ValidityError,
            QueryError,
            LabelError,
            HostError,
            UnknownMethodError,
        ),
        400,
    ),
}
_PARALLEL: Final = 4
"""Bodies that are understood at once; others wait."""

Headers: TypeAlias = Mapping[bytes, bytes]


class Accepting:
    """Answers POST, PUT, PATCH and DELETE of those who have a token; without tokens nobody may write."""

    def __init__(self, tokens: Sequence[str], addressing: Addressing, body: int) -> None:
        self._tokens, self._addressing, self._limit = Tokens(tokens), addressing, body
        self._done = RetryMemory[Reply](KEYS)
        self._under_way: dict[RetryKey, asyncio.Event] = {}
        self._writers = Writers()
        self._requests, self._turns = 0, asyncio.Semaphore(_PARALLEL)

    def takes(self, method: str, _query: bytes, _headers: Headers) -> bool:
        """Any write."""
        return method in METHODS

    def leave(self) -> None:
        """Nothing is under way for long."""

    async def __call__(self, dataset: DataSet, scope: Scope, receive: Receive, send: Send) -> None:
        """Change the data set, and say what changed and its version."""
        refused = self._refused(dict(scope["headers"]))
        try:
            reply = refused or await self._reply(dataset, scope, receive)
        except ClientDisconnect:
            return
        except tuple(_STATUS) as error:
            status = next(status for kind, status in _STATUS.items() if isinstance(error, kind))
            again = ((b"retry-after", b"1"),) if status == 503 else ()
            reply = told(status, str(error), *again)
        now = clock_headers(dataset.clock())
        await reply_with(reply, scope["method"], send, *now, (VERSION.lower().encode(), dataset.version))

    def _refused(self, headers: Headers) -> Reply | None:
        if not self._tokens:
            return told(403, "nothing can be written here: start the server with a token (--token-file)")
        if self._tokens.admits(bearer(headers.get(b"authorization", b"").decode("latin-1"))):
            return None
        return told(401, "a token is needed: Authorization: Bearer TOKEN", (b"www-authenticate", b"Bearer"))

    async def _reply(self, dataset: DataSet, scope: Scope, receive: Receive) -> Reply:
        body = await read_body(Incoming(scope, receive), self._limit)
        key = self._key(dataset, scope, body)
        known = self._done.known(key)
        if known is not None:
            return known
        demands.require(dataset, scope, self._addressing(scope["scheme"], dict(scope["headers"])))
        async with self._turns:
            request = self._request(dataset, scope, body)
            operations = await asyncio.to_thread(_understood, request)
        async with self._once(key):
            known = self._done.known(key)  # the same request may have come twice at once
            return known if known is not None else await self._make(dataset, scope, operations, key)

    @asynccontextmanager
    async def _once(self, key: RetryKey | None) -> AsyncIterator[None]:
        """One request with a key at a time."""
        if key is None:
            yield
            return
        while (before := self._under_way.get(key)) is not None:
            await before.wait()
        done = self._under_way[key] = asyncio.Event()
        try:
            yield
        finally:
            del self._under_way[key]
            done.set()

    async def _make(
        self, dataset: DataSet, scope: Scope, operations: Sequence[Operation], key: RetryKey | None
    ) -> Reply:
        """Make the change; what is demanded is asked when nobody else may write any more."""
        base = self._addressing(scope["scheme"], dict(scope["headers"]))
        written = await self._writers.write(dataset, operations, lambda: demands.require(dataset, scope, base))
        reply = _said(written, dataset)
        if key is not None:
            self._done.remember(key, reply)
        return reply

    def _key(self, dataset: DataSet, scope: Scope, body: bytes) -> RetryKey | None:
        """The key of a request, with all that another use of the key would differ in."""
        headers = dict(scope["headers"])
        given = headers.get(b"idempotency-key")
        owner = self._tokens.identity(bearer(headers.get(b"authorization", b"").decode("latin-1")))
        said = dataset.name.encode(), scope["method"].encode(), scope["query_string"]
        kind = headers.get(b"content-type", b"").strip().lower()
        return read_key(None if given is None else given.decode("latin-1"), owner, *said, kind, body)

    def _request(self, dataset: DataSet, scope: Scope, body: bytes) -> Request:
        headers = dict(scope["headers"])
        self._requests += 1
        return Request(
            scope["method"],
            _parameters(scope["query_string"]),
            headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower(),
            body,
            dataset.style,
            self._addressing(scope["scheme"], headers),
            dataset.clock(),
            f"v{dataset.store.version}r{self._requests}",
        )


def _understood(request: Request) -> list[Operation]:
    """What a write asks for; DeadlineError when that takes too long to read."""
    load_parsers()
    with DEADLINES.within(SECONDS):
        return read_request(request)


def _parameters(query: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
    except ValueError:
        raise RequestError("the address is not UTF-8 in percent signs, or has more than 50 parameters") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RequestError("a parameter is given twice: give it once")
    return found


def _said(written: Written, dataset: DataSet) -> Reply:
    """What changed, as JSON: facts, quads, the version."""
    quads = {"added": len(written.quads.added), "removed": len(written.quads.removed)}
    facts = {"added": written.added, "removed": written.removed}
    body = json.dumps({"version": dataset.version.decode(), "facts": facts, "quads": quads}).encode()
    return Reply(200, [(b"content-type", b"application/json"), (b"cache-control", b"no-store")], body)
