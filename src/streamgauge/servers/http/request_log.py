"""Request ids, sent by the client or generated: returned in the response and part of every log record."""

import re
from collections.abc import Callable, Mapping
from logging import DEBUG, getLogger
from secrets import token_hex
from time import perf_counter
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamgauge.model.logs import REQUEST, fields

HEADER: Final = b"x-request-id"

_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
"""Ids that are accepted from clients: they go into logs unescaped."""

_LOG: Final = getLogger(__name__)


def new_id() -> str:
    """An id of 16 hexadecimal digits."""
    return token_hex(8)


class RequestLog:
    """Middleware that gives requests ids and, at level ``debug``, logs each request without its query string.

    A response made by the application's ``prompt`` (``PromptAnswer``) has no id: a request that sends one skips it.
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
                self._log(scope, status, self._clock() - begin)

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
        about: dict[str, Any] = {"status": status or None, "ms": round(seconds * 1000, 1)}
        _LOG.debug("%s %s", scope.get("method", "WebSocket"), scope["path"], extra=fields(**about))


def sent_id(headers: Mapping[bytes, bytes]) -> str:
    """The id that a client sends; empty if absent or unacceptable."""
    text = headers.get(HEADER, b"")
    return text.decode() if _ID.fullmatch(text) else ""
