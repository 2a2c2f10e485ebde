"""Writes on the web: who may, how much, once per key, all of a request or nothing of it."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect
from starlette.requests import Request as Incoming
from starlette.types import Receive, Scope, Send

from streamgauge.query.errors import QueryError
from streamgauge.services.fragments.annotations import UnknownMethodError
from streamgauge.services.fragments.labelling import LabelError
from streamgauge.services.fragments.quads import VERSION
from streamgauge.services.fragments.serving.addresses import Addressing, HostError
from streamgauge.services.fragments.serving.dataset import DataSet, TooManyError
from streamgauge.services.fragments.serving.freshness import date
from streamgauge.services.fragments.serving.operations import Operation
from streamgauge.services.fragments.serving.replying import Reply, reply_with, told
from streamgauge.services.fragments.serving.requests import MediaTypeError, Request, RequestError, read_request
from streamgauge.services.fragments.serving.terms import TermError
from streamgauge.services.fragments.serving.validity import ValidityError
from streamgauge.services.fragments.serving.writing import Draft, Written
from streamgauge.services.fragments.storing.shelf import FullError
from streamgauge.services.web.bodies import STATUS, read_body
from streamgauge.services.web.tokens import Tokens, bearer

METHODS: Final = ("POST", "PUT", "PATCH", "DELETE")
KEYS: Final = 10_000
"""Retry keys that are remembered, the last ones."""

LONGEST_KEY: Final = 200

_STATUS: Final[dict[type[Exception], int]] = {
    **STATUS,
    MediaTypeError: 415,
    TooManyError: 422,
    FullError: 507,
    **dict.fromkeys(
        (RequestError, TermError, ValidityError, QueryError, LabelError, HostError, UnknownMethodError), 400
    ),
}
_PARALLEL: Final = 4
"""Bodies that are understood at once; others wait."""

Headers: TypeAlias = Mapping[bytes, bytes]
Key: TypeAlias = tuple[str, str]


class Accepting:
    """Answers POST, PUT, PATCH and DELETE of those who have a token; without tokens nobody may write."""

    def __init__(self, tokens: Sequence[str], addressing: Addressing, body: int) -> None:
        self._tokens, self._addressing, self._limit = Tokens(tokens), addressing, body
        self._done: OrderedDict[Key, tuple[bytes, Reply]] = OrderedDict()
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
            reply = told(status, str(error))
        now = b"date", date(dataset.clock() // 1000)
        await reply_with(reply, scope["method"], send, now, (VERSION.lower().encode(), dataset.version))

    def _refused(self, headers: Headers) -> Reply | None:
        if not self._tokens:
            return told(403, "nothing can be written here: start the server with a token (--token-file)")
        if self._tokens.admits(bearer(headers.get(b"authorization", b"").decode("latin-1"))):
            return None
        return told(401, "a token is needed: Authorization: Bearer TOKEN", (b"www-authenticate", b"Bearer"))

    async def _reply(self, dataset: DataSet, scope: Scope, receive: Receive) -> Reply:
        key, digest = _key(dataset, dict(scope["headers"])), sha256(scope["method"].encode() + scope["query_string"])
        body = await read_body(Incoming(scope, receive), self._limit)
        digest.update(body)
        known = self._known(key, digest.digest())
        if known is not None:
            return known
        async with self._turns:
            request = self._request(dataset, scope, body)
            operations = await asyncio.to_thread(read_request, request)
        known = self._known(key, digest.digest())  # the same request may have come twice at once
        return known if known is not None else self._make(dataset, operations, key, digest.digest())

    def _make(self, dataset: DataSet, operations: Sequence[Operation], key: Key | None, digest: bytes) -> Reply:
        draft = Draft(dataset)
        for operation in operations:
            operation.apply(draft)
        reply = _said(draft.commit(), dataset)
        if key is not None:
            self._done[key] = digest, reply
            if len(self._done) > KEYS:
                self._done.popitem(last=False)
        return reply

    def _known(self, key: Key | None, digest: bytes) -> Reply | None:
        """What was answered to a request with this key; one that differs is told so."""
        if key is None or key not in self._done:
            return None
        before, reply = self._done[key]
        return reply if before == digest else told(422, "this Idempotency-Key was used for another request: take a new")

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


def _key(dataset: DataSet, headers: Headers) -> Key | None:
    given = headers.get(b"idempotency-key")
    if given is None:
        return None
    if not 0 < len(given) <= LONGEST_KEY:
        raise RequestError(f"an Idempotency-Key has 1 to {LONGEST_KEY} characters")
    return dataset.name, given.decode("latin-1")


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
