"""Pages of other origins (Fetch standard, 3.2, CORS): which may use a service, and what a browser is told of that."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamgauge.model.mistake import MistakeError
from streamgauge.servers.http.replies import problem

ALL: Final = "*"
READS: Final = "GET, HEAD"
METHODS: Final = "GET, HEAD, POST, PUT, PATCH, DELETE"
ASKED: Final = (
    "Accept, Authorization, Cache-Control, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID"
)
"""Headers that a page may send."""

SHOWN: Final = (
    "Age, Content-Location, Dataset-Version, Date, ETag, Link, Location, Notification, Retry-After, WWW-Authenticate"
)
"""Headers that a page may read."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_Header: TypeAlias = tuple[str, str]


class OriginError(MistakeError, ValueError):
    """An origin that is none; the sentence says how one is written."""


@dataclass(frozen=True, slots=True)
class Origins:
    """Origins whose pages are let in: those in ``exact``, or ``every`` one.

    Where ``every`` one is and the service has no tokens, pages of other origins may only read (``only_reads``).
    """

    exact: frozenset[str] = frozenset()
    every: bool = False
    only_reads: bool = False

    def __bool__(self) -> bool:
        return self.every or bool(self.exact)

    def admits(self, origin: str, method: str) -> bool:
        """Whether a page of an origin may send a request of this method."""
        if origin in self.exact:
            return True
        return self.every and (not self.only_reads or method in ("GET", "HEAD"))

    def methods(self, origin: str) -> str:
        """The methods that pages of an origin may use."""
        return METHODS if self.admits(origin, "POST") else READS

    def headers(self, origin: str | None) -> list[_Header]:
        """What a browser is told with a response.

        A named origin may send credentials (a proxy's cookies, say), ``*`` may not: browsers refuse the pair.
        """
        varying = [("Vary", "Origin")] if self.exact else []
        if origin in self.exact:
            named = [("Access-Control-Allow-Origin", str(origin)), ("Access-Control-Allow-Credentials", "true")]
        elif self.every:
            named = [("Access-Control-Allow-Origin", ALL)]
        else:
            return varying
        return [*named, ("Access-Control-Expose-Headers", SHOWN), *varying]


def read_origins(texts: Iterable[str], tokens: bool) -> Origins:
    """The origins of ``--allow-origin``: each ``*``, or as a browser sends it, ``https://app.example:8443``.

    ``tokens`` says whether the service asks for tokens. OriginError for any other text.
    """
    given = list(texts)
    return Origins(frozenset(_origin(text) for text in given if text != ALL), ALL in given, ALL in given and not tokens)


def _origin(text: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise OriginError(f"{text!r} is no origin: {error}") from error
    if text == "null":
        raise OriginError("the origin null is that of every file and every sandboxed page: serve the page from a host")
    if not parts.hostname or parts.username is not None or parts.query or parts.fragment or parts.path not in ("", "/"):
        raise OriginError(f"{text!r} is no origin: write * or SCHEME://HOST, with :PORT where it is not the usual one")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = port is None or port == _DEFAULT_PORTS.get(parts.scheme)
    return f"{parts.scheme}://{host}" if usual else f"{parts.scheme}://{host}:{port}"


class CrossOrigin:
    """Answers preflights, and tells browsers with each response whose pages may read it; all else is the app's."""

    def __init__(self, app: ASGIApp, origins: Origins) -> None:
        self._app, self._origins = app, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a preflight, or hand on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin, method = headers.get("origin"), headers.get("access-control-request-method")

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                told_headers = MutableHeaders(raw=list(message.get("headers", ())))
                _tell(told_headers, self._origins.headers(origin))
                message = {**message, "headers": told_headers.raw}
            await send(message)

        if scope["method"] == "OPTIONS" and origin is not None and method is not None:
            await self._preflight(origin, method)(scope, receive, told)
        else:
            await self._app(scope, receive, told)

    def _preflight(self, origin: str, method: str) -> Response:
        if not self._origins.admits(origin, method):
            return problem(403, f"{method[:20]} from pages of {origin[:80]} is refused: --allow-origin names who may")
        allowed = {
            "Access-Control-Allow-Methods": self._origins.methods(origin),
            "Access-Control-Allow-Headers": ASKED,
            "Access-Control-Max-Age": "600",
            "Vary": "Access-Control-Request-Method, Access-Control-Request-Headers",
        }
        return Response(status_code=204, headers=allowed)


def _tell(headers: MutableHeaders, said: Iterable[_Header]) -> None:
    """Put what a browser is told in the place of what the app says of origins by itself."""
    for name in ("Access-Control-Allow-Origin", "Access-Control-Expose-Headers"):
        del headers[name]
    for name, value in said:
        if name == "Vary":
            headers.add_vary_header(value)
        else:
            headers[name] = value
