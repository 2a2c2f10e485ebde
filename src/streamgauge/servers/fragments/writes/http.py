"""Writes over HTTP: with a token, within limits, once per key, under conditions, all of a request or nothing."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect
from starlette.requests import Request as Incoming
from starlette.types import Receive, Scope, Send

from streamgauge.query.text import QueryError
from streamgauge.servers.fragments.annotations import UnknownMethodError
from streamgauge.servers.fragments.labels import LabelError
from streamgauge.servers.fragments.pages.dataset import DataSet, Page, TooManyError
from streamgauge.servers.fragments.pages.facts import ValidityError
from streamgauge.servers.fragments.pages.formats import FORMATS
from streamgauge.servers.fragments.pages.fragment_request import (
    FragmentRequest,
    FragmentRequestError,
    read_fragment_request,
)
from streamgauge.servers.fragments.pages.metadata import PageView
from streamgauge.servers.fragments.pages.representations import clock_headers, tag
from streamgauge.servers.fragments.pages.selection import TermError
from streamgauge.servers.fragments.quads import VERSION
from streamgauge.servers.fragments.store.key_value import DamagedStoreError, FullError
from streamgauge.servers.fragments.writes.draft import Operation, WriteResult
from streamgauge.servers.fragments.writes.queue import SECONDS, WriteBusyError, WriteQueue
from streamgauge.servers.fragments.writes.requests import (
    PLACES,
    WriteMediaTypeError,
    WriteRequest,
    WriteRequestError,
    read_request,
)
from streamgauge.servers.http.access import Tokens, bearer
from streamgauge.servers.http.deadlines import DEADLINES, DeadlineError
from streamgauge.servers.http.headers import (
    ANY,
    CODINGS,
    BaseAddress,
    ConditionError,
    Conditions,
    HostError,
    PreconditionError,
    http_date,
    read_conditions,
)
from streamgauge.servers.http.limits import STATUS, CrowdedError, load_parsers, read_body
from streamgauge.servers.http.replies import Reply, error_reply, send_reply
from streamgauge.servers.http.retries import BadKeyError, KeyReuseError, RetryKey, RetryMemory, read_key

_DIGEST: Final = 18
"""Characters of a tag that are the digest of its content; the name of its format is the next one."""


def require_conditions(dataset: DataSet, scope: Scope, base: str) -> None:
    """PreconditionError when the fragment is not as a write demands.

    The fragment is that of the subject, predicate and object in the address. Any of its representations counts; one
    without quads is taken for none, so that If-None-Match: * writes only where nothing matches. The version of the data
    set, in quotes, is a tag of every fragment: a page of facts in graphs stays as it is when only their times change.
    """
    conditions = read_conditions(scope["headers"])
    since = dict(scope["headers"]).get(b"if-unmodified-since")
    if conditions == Conditions() and since is None:
        return
    names = tuple(place.encode() for place in PLACES)
    query = b"&".join(part for part in scope["query_string"].split(b"&") if part.partition(b"=")[0] in names)
    path = scope.get("raw_path") or str(scope["path"]).encode()
    wish = read_fragment_request(path, query, dataset.shape, base, dataset.largest)
    page = dataset.page(wish.selection, wish.number, wish.limit)
    conditions.require(set(_tags(dataset, base, wish, page, conditions)), f"the fragment {wish.page:.200}")
    known = None if since is None else http_date(since.decode("latin-1"))
    later = known is None or page.changed // 1000 * 1000 > known
    if conditions.match is None and since is not None and later:
        raise PreconditionError(f"If-Unmodified-Since does not hold: {wish.page:.200} has changed, nothing was done")


def _tags(dataset: DataSet, base: str, wish: FragmentRequest, page: Page, conditions: Conditions) -> Iterator[str]:
    """The tags of the page in each format that the conditions name, however it would be coded."""
    named = {each for each in (*(conditions.match or ()), *(conditions.none_match or ())) if each not in ANY}
    formats = {each.removeprefix("W/")[_DIGEST + 1 : _DIGEST + 2] for each in named}
    if page.total:
        yield f'"{dataset.version.decode()}"'
    for form in FORMATS:
        if page.total and form.name in formats:
            body = form.write(PageView(dataset, base, wish, page)).encode()
            for coding in ("", "i", *(name[:1] for name in CODINGS)):
                yield tag(body, form.name + coding).decode()


METHODS: Final = ("POST", "PUT", "PATCH", "DELETE")
KEYS: Final = 10_000
"""Idempotency keys of a token that are remembered, the last ones, until the server ends."""

_STATUS: Final[dict[type[Exception], int]] = {
    **STATUS,
    WriteMediaTypeError: 415,
    TooManyError: 422,
    FullError: 507,
    DamagedStoreError: 503,
    PreconditionError: 412,
    KeyReuseError: 422,
    DeadlineError: 422,
    CrowdedError: 503,
    WriteBusyError: 503,
    **dict.fromkeys(
        (
            BadKeyError,
            ConditionError,
            FragmentRequestError,
            WriteRequestError,
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


class WritesHandler:
    """Answers POST, PUT, PATCH and DELETE of those who have a token; without tokens nobody may write."""

    def __init__(self, tokens: Sequence[str], addressing: BaseAddress, body: int) -> None:
        self._tokens, self._addressing, self._limit = Tokens(tokens), addressing, body
        self._done = RetryMemory[Reply](KEYS)
        self._under_way: dict[RetryKey, asyncio.Event] = {}
        self._writers = WriteQueue()
        self._requests, self._turns = 0, asyncio.Semaphore(_PARALLEL)

    def takes(self, method: str, _query: bytes, _headers: Headers) -> bool:
        """Any write."""
        return method in METHODS

    def leave(self) -> None:
        """Nothing to end: no response takes long."""

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
            reply = error_reply(status, str(error), *again)
        now = clock_headers(dataset.clock())
        await send_reply(reply, scope["method"], send, *now, (VERSION.lower().encode(), dataset.version))

    def _refused(self, headers: Headers) -> Reply | None:
        if not self._tokens:
            return error_reply(403, "nothing can be written here: start the server with a token (--token-file)")
        if self._tokens.admits(bearer(headers.get(b"authorization", b"").decode("latin-1"))):
            return None
        return error_reply(401, "a token is needed: Authorization: Bearer TOKEN", (b"www-authenticate", b"Bearer"))

    async def _reply(self, dataset: DataSet, scope: Scope, receive: Receive) -> Reply:
        body = await read_body(Incoming(scope, receive), self._limit)
        key = self._key(dataset, scope, body)
        known = self._done.known(key)
        if known is not None:
            return known
        require_conditions(dataset, scope, self._addressing(scope["scheme"], dict(scope["headers"])))
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
        written = await self._writers.write(dataset, operations, lambda: require_conditions(dataset, scope, base))
        reply = _written_reply(written, dataset)
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

    def _request(self, dataset: DataSet, scope: Scope, body: bytes) -> WriteRequest:
        headers = dict(scope["headers"])
        self._requests += 1
        return WriteRequest(
            scope["method"],
            _parameters(scope["query_string"]),
            headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower(),
            body,
            dataset.style,
            self._addressing(scope["scheme"], headers),
            dataset.clock(),
            f"v{dataset.store.version}r{self._requests}",
        )


def _understood(request: WriteRequest) -> list[Operation]:
    """The operations of a write; DeadlineError when reading them takes too long."""
    load_parsers()
    with DEADLINES.within(SECONDS):
        return read_request(request)


def _parameters(query: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
    except ValueError:
        raise WriteRequestError("the address is not UTF-8 in percent signs, or has more than 50 parameters") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise WriteRequestError("a parameter is given twice: give it once")
    return found


def _written_reply(written: WriteResult, dataset: DataSet) -> Reply:
    """The reply to a write, as JSON: changed facts, changed quads, the version."""
    quads = {"added": len(written.quads.added), "removed": len(written.quads.removed)}
    facts = {"added": written.added, "removed": written.removed}
    body = json.dumps({"version": dataset.version.decode(), "facts": facts, "quads": quads}).encode()
    return Reply(200, [(b"content-type", b"application/json"), (b"cache-control", b"no-store")], body)
