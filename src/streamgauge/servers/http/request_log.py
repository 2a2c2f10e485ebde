"""A request's id: that which its client sends, or a new one; in the response, and in every record that is logged."""

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
"""An id of a client that is taken over: it goes into logs as it is."""

_LOG: Final = getLogger(__name__)


def new_id() -> str:
    """An id of 16 hexadecimal digits."""
    return token_hex(8)


class RequestLog:
    """An application whose requests have ids; at the level ``debug`` each is logged, without its query string.

    A response that the application's ``prompt`` makes (``PromptAnswer``) has no id unless the client sends one.
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
        """Hand on; the id stays set for this task, so that the server's own record of a failure has it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
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
    """The id that a client sends, empty where it sends none that can be taken over."""
    text = headers.get(HEADER, b"")
    return text.decode() if _ID.fullmatch(text) else ""
