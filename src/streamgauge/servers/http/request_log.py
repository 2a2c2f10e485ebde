"""Request ids, sent by the client or generated: returned in the response and part of every log record."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from logging import DEBUG, getLogger
from random import Random
from time import perf_counter
from typing import Any, Final
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamgauge.model.logs import REQUEST, fields
from streamgauge.servers.http.heads import PromptPost
from streamgauge.servers.http.replies import Reply

HEADER: Final = b"x-request-id"

_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
"""Ids that are accepted from clients: they go into logs unescaped."""

_LOG: Final = getLogger(__name__)

_RANDOM: Final = Random()
"""Not the system's generator, which gives up the interpreter lock: ids have to differ, not to be secret."""


def new_id() -> str:
    """An id of 16 hexadecimal digits."""
    return f"{_RANDOM.getrandbits(64):016x}"


class RequestLog:
    """Middleware that gives requests ids and, at level ``debug``, logs each request without its query string.

    A response made by the application's ``prompt`` (``PromptAnswer``) has no id: a request that sends one skips it.
    ``prompt_post`` (``PromptPost``) has ids and records like the application.
    """

    def __init__(
        self, app: ASGIApp, new: Callable[[], str] = new_id, clock: Callable[[], float] = perf_counter
    ) -> None:
        self.app, self._new, self._clock = app, new, clock
        prompt = getattr(app, "prompt", None)
        if prompt is not None:
            self.prompt = lambda scheme, target, headers: (
                None if HEADER in headers or _LOG.isEnabledFor(DEBUG) else prompt(scheme, target, headers)
            )
        post = getattr(app, "prompt_post", None)
        if post is not None:
            self.prompt_post = partial(self._posted, post)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; the id stays set for this task, so that the server's own record of a failure has it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        # An id that is not acceptable is replaced and not refused: it is no reason to fail a request.
        request = sent_id(dict(scope["headers"])) or self._new()
        REQUEST.set(request)
        begin, status = self._clock(), 0

        async def identified(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), (HEADER, request.encode())]}
            await send(message)

        try:
            await self.app(scope, receive, identified)
        finally:
            if _LOG.isEnabledFor(DEBUG):
                self._log(scope.get("method", "WebSocket"), scope["path"], status, begin)

    def _posted(self, post: PromptPost, target: bytes, headers: Mapping[bytes, bytes], body: bytes) -> Reply | None:
        request = sent_id(headers) or self._new()
        token, begin = REQUEST.set(request), self._clock()
        try:
            reply = post(target, headers, body)
            if reply is None:
                return None
            if _LOG.isEnabledFor(DEBUG):
                self._log("POST", unquote(target.partition(b"?")[0].decode("ascii")), reply.status, begin)
        finally:
            REQUEST.reset(token)
        return Reply(reply.status, (*reply.headers, (HEADER, request.encode())), reply.body)

    def _log(self, method: str, path: str, status: int, begin: float) -> None:
        about: dict[str, Any] = {"status": status or None, "ms": round((self._clock() - begin) * 1000, 1)}
        _LOG.debug("%s %s", method, path, extra=fields(**about))


def sent_id(headers: Mapping[bytes, bytes]) -> str:
    """The id that a client sends; empty if absent or unacceptable."""
    text = headers.get(HEADER, b"")
    return text.decode() if _ID.fullmatch(text) else ""
