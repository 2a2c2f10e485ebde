"""Elements that clients post to streams: taken on the event loop where there is room, else in threads."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from logging import getLogger
from typing import Final
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from streamgauge.formats.batches import Taken, count_of
from streamgauge.semantics.jumps import TimeJumpError
from streamgauge.servers.http.access import AccessRules, Origins, Tokens, request_token
from streamgauge.servers.http.connections import PROMPT_BODY
from streamgauge.servers.http.headers import read_conditions
from streamgauge.servers.http.limits import counted_body
from streamgauge.servers.http.replies import Reply
from streamgauge.servers.http.retries import Once, RetryKey
from streamgauge.servers.queries.catalogue import ConflictError
from streamgauge.servers.queries.limits import QueriesBusyError, QueryLimitError
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import form_of, read_items

PATIENCE_S: Final = 5.0
"""Seconds that a publisher waits for capacity before it is asked to retry."""

TRY_S: Final = 0.1
"""Seconds between its attempts."""

PATH: Final = "/streams/"
_JSON: Final = "application/json"

_OTHERWISE: Final = frozenset((b"content-encoding", b"idempotency-key", b"if-match", b"if-none-match", b"origin"))
"""Fields of requests that ``Publications.publish`` answers, because they need more than the elements."""

_NO_PARAMETERS: Final = QueryParams()
_LOG: Final = getLogger(__name__)


class Publications:
    """The route ``POST /streams/NAME``, and the direct way of small bodies of lines to it (``PromptPost``)."""

    def __init__(
        self,
        queries: Queries,
        tokens: Tokens,
        origins: Origins | None,
        key: Callable[[Request, bytes], RetryKey | None],
        once: Once[Response],
    ) -> None:
        self._queries, self._tokens, self._key, self._once = queries, tokens, key, once
        self._rules = AccessRules(tokens, (), origins)
        shared = (Origins() if origins is None else origins).headers(None)
        self._headers = [
            (b"content-type", _JSON.encode()),
            *((name.lower().encode(), value.encode()) for name, value in shared),
        ]

    async def publish(self, request: Request) -> Response:
        """Elements for a stream; the publisher waits while queries cannot keep up."""
        read_conditions(request.headers.raw).refuse("a stream")
        async with counted_body(request, self._queries.limits.body) as body:
            key = self._key(request, body)
            return await self._once(key, partial(self._publish, request, body, key))

    async def _publish(self, request: Request, body: bytes, key: RetryKey | None) -> Response:
        kind, query = request.headers.get("content-type", ""), request.query_params
        prompt = len(body) <= PROMPT_BODY and form_of(kind, query.get("form")).lines
        read = partial(self._read, request.path_params["name"], kind, query, body)
        items, waited = read() if prompt else await run_in_threadpool(read), 0.0
        owner = self._tokens.identity(request_token(request.headers, request.scope))
        publish = partial(self._queries.publish, request.path_params["name"], items, owner)
        size = count_of(items)
        noted = partial(self._note_key, key, size)
        while True:
            try:
                with self._queries.at_once() as free:
                    if prompt and free:
                        return published(size, publish(noted))
                return published(size, await run_in_threadpool(publish, noted))
            except QueriesBusyError:
                if waited >= PATIENCE_S:
                    raise
            await asyncio.sleep(TRY_S)
            waited += TRY_S

    def posted(self, target: bytes, headers: Mapping[bytes, bytes], body: bytes) -> Reply | None:
        """Publish the lines of a body; ``None``, with nothing changed, where that would wait or is refused."""
        path, _, query = target.decode("ascii").partition("?")
        path = unquote(path)
        if (
            not path.startswith(PATH)
            or "\n" in path
            or not _OTHERWISE.isdisjoint(headers)
            or len(body) > self._queries.limits.body
        ):
            return None
        fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
        scope = {"type": "http", "method": "POST", "path": path, "query_string": query.encode()}
        if self._rules.refusal(scope, fields) is not None:
            return None
        stream, owner = path.removeprefix(PATH), self._tokens.identity(request_token(fields, scope))
        kind, parameters = fields.get("content-type", ""), QueryParams(query) if query else _NO_PARAMETERS
        try:
            if not form_of(kind, parameters.get("form")).lines:
                return None
            items = self._read(stream, kind, parameters, body)
        except Exception:
            return None  # `publish` reads it again, and answers
        try:
            with self._queries.at_once() as free:
                readers = self._queries.publish(stream, items, owner) if free else None
        except (QueriesBusyError, QueryLimitError, ConflictError, TimeJumpError):
            return None
        except Exception:
            # Not left to `publish`: some queries may have the elements already.
            _LOG.exception("POST %s", path)
            return Reply(500, [(b"content-type", b"text/plain; charset=utf-8")], b"Internal Server Error")
        return None if readers is None else Reply(202, self._headers, _published(count_of(items), readers))

    def _read(self, stream: str, kind: str, query: QueryParams, body: bytes) -> Sequence[Taken]:
        return read_items(body, kind, query.get("form"), stream, query.get("t"), self._queries.now)

    def _note_key(self, key: RetryKey | None, items: int, readers: int) -> None:
        """The key of a publication becomes durable with it."""
        if key is not None and self._queries.journal is not None:
            self._queries.journal.keep_key(key, items, readers)


def published(items: int, readers: int) -> Response:
    """The reply to a publication: the numbers of its items, and of the queries that read them."""
    return Response(_published(items, readers), 202, media_type=_JSON)


def _published(items: int, readers: int) -> bytes:
    return b'{"items":%d,"queries":%d}' % (items, readers)
