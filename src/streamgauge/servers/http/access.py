"""Access to a server: bearer tokens (RFC 6750) and pages of other origins (Fetch standard, 3.2, CORS).

Tokens are needed wherever others than this machine can reach a server.
"""

import asyncio
import hmac
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from ipaddress import ip_address
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamgauge.model.mistake import MistakeError
from streamgauge.servers.http.replies import problem

ALL: Final = "*"
READS: Final = "GET, HEAD"
METHODS: Final = "GET, HEAD, POST, PUT, PATCH, DELETE"
REQUEST_HEADERS: Final = (
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
    """A text that is not an origin; the sentence says how one is written."""


@dataclass(frozen=True, slots=True)
class Origins:
    """Origins whose pages may use a service: those in ``exact``, or ``every`` one.

    With ``only_reads`` pages of ``every`` origin may only read: the service has no tokens, so any page that a user of
    this machine happens to visit could write otherwise.
    """

    exact: frozenset[str] = frozenset()
    every: bool = False
    only_reads: bool = False

    def __bool__(self) -> bool:
        return self.every or bool(self.exact)

    def admits(self, origin: str, method: str) -> bool:
        """Whether a page of an origin may send a request of this method."""
        # Naming an origin is the operator's decision, so it may write even where there are no tokens.
        if origin in self.exact:
            return True
        return self.every and (not self.only_reads or method in ("GET", "HEAD"))

    def methods(self, origin: str) -> str:
        """The HTTP methods allowed to pages of an origin."""
        return METHODS if self.admits(origin, "POST") else READS

    def headers(self, origin: str | None) -> list[_Header]:
        """The CORS headers of a response to a page of ``origin``.

        A named origin may send credentials, such as a proxy's cookies. With ``*`` browsers refuse credentials.
        """
        # Also for origins that are refused: a shared cache would otherwise give the response without CORS headers to an
        # admitted one.
        varying = [("Vary", "Origin")] if self.exact else []
        if origin in self.exact:
            named = [("Access-Control-Allow-Origin", str(origin)), ("Access-Control-Allow-Credentials", "true")]
        elif self.every:
            named = [("Access-Control-Allow-Origin", ALL)]
        else:
            return varying
        return [*named, ("Access-Control-Expose-Headers", SHOWN), *varying]


def read_origins(texts: Iterable[str], tokens: bool) -> Origins:
    """The origins of ``--allow-origin``: ``*``, or an origin as browsers send it, ``https://app.example:8443``.

    ``tokens`` says whether the service requires tokens. OriginError for any other text.
    """
    origins = list(texts)
    return Origins(
        frozenset(_origin(text) for text in origins if text != ALL), ALL in origins, ALL in origins and not tokens
    )


def _origin(text: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise OriginError(f"{text!r} is not an origin: {error}") from error
    if text == "null":
        raise OriginError("the origin null is that of every file and every sandboxed page: serve the page from a host")
    # A final slash is forgiven, since addresses are copied from a browser's bar; a path is not: it would suggest that
    # pages below it alone are admitted, which no browser can tell apart.
    if not parts.hostname or parts.username is not None or parts.query or parts.fragment or parts.path not in ("", "/"):
        raise OriginError(
            f"{text!r} is not an origin: write * or SCHEME://HOST, with :PORT where it is not the usual one"
        )
    # Browsers omit the scheme's usual port from Origin, and origins are compared as text.
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = port is None or port == _DEFAULT_PORTS.get(parts.scheme)
    return f"{parts.scheme}://{host}" if usual else f"{parts.scheme}://{host}:{port}"


class CrossOrigin:
    """Middleware that answers CORS preflights and adds CORS headers to the app's responses."""

    def __init__(self, app: ASGIApp, origins: Origins) -> None:
        self._app, self._origins = app, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a preflight, or hand on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin, method = headers.get("origin"), headers.get("access-control-request-method")

        async def send_with_origins(message: Message) -> None:
            if message["type"] == "http.response.start":
                response_headers = MutableHeaders(raw=list(message.get("headers", ())))
                _replace_origins(response_headers, self._origins.headers(origin))
                message = {**message, "headers": response_headers.raw}
            await send(message)

        # An OPTIONS without these two fields is not a preflight (Fetch, 3.2.2) but a request of the application's own.
        if scope["method"] == "OPTIONS" and origin is not None and method is not None:
            await self._preflight(origin, method)(scope, receive, send_with_origins)
        else:
            await self._app(scope, receive, send_with_origins)

    def _preflight(self, origin: str, method: str) -> Response:
        if not self._origins.admits(origin, method):
            return problem(403, f"{method[:20]} from pages of {origin[:80]} is refused: --allow-origin names who may")
        allowed = {
            "Access-Control-Allow-Methods": self._origins.methods(origin),
            "Access-Control-Allow-Headers": REQUEST_HEADERS,
            # Short enough that a page loses a withdrawn permission while its user still looks at it; it saves a round
            # trip per write.
            "Access-Control-Max-Age": "600",
            "Vary": "Access-Control-Request-Method, Access-Control-Request-Headers",
        }
        return Response(status_code=204, headers=allowed)


def _replace_origins(headers: MutableHeaders, fields: Iterable[_Header]) -> None:
    """Replace the CORS headers that the app sets by itself."""
    # Two values of Allow-Origin are an error for browsers, and the one of open data is the star of `replies.ANYONE`.
    for name in ("Access-Control-Allow-Origin", "Access-Control-Expose-Headers"):
        del headers[name]
    for name, value in fields:
        if name == "Vary":
            headers.add_vary_header(value)
        else:
            headers[name] = value


OPEN: Final = ""
"""The identity of every client of a service without tokens."""

MIN_TOKEN_LENGTH = 16
"""Characters; a shorter token could be guessed."""


class TokenError(MistakeError, ValueError):
    """A service that others could reach without a token, or an invalid token; the sentence says what to do."""


def check_tokens(host: str, tokens: Collection[str]) -> None:
    """TokenError for a short token, and for an address that others can reach without any token."""
    if any(len(token) < MIN_TOKEN_LENGTH for token in tokens):
        raise TokenError(f"a token has at least {MIN_TOKEN_LENGTH} characters: make a longer one")
    if not tokens and not _loopback(host):
        raise TokenError(f"{host} can be reached by others: give a token, or bind to 127.0.0.1")


@lru_cache(maxsize=100)
def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class Tokens:
    """The tokens of a service, which may be replaced while it runs. Thread-safe."""

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        self._listeners: list[Callable[[], None]] = []
        self.replace(tokens)

    @classmethod
    def of(cls, tokens: "Tokens | Iterable[str]") -> "Tokens":
        """``tokens`` itself if it is a ``Tokens``, which others may replace; else a fixed set."""
        return tokens if isinstance(tokens, Tokens) else cls(tokens)

    def replace(self, tokens: Iterable[str]) -> None:
        """Admit only these tokens from now on, and notify the listeners."""
        # One assignment of a new tuple: a request that is being checked in another thread sees the old tokens or the
        # new ones.
        self._tokens = tuple(token.encode() for token in tokens)
        for listener in self._listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each replacement, in the thread that replaces."""
        self._listeners.append(listener)

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def identity(self, token: str | None) -> str:
        """The identity of a request.

        ``OPEN`` if the service has no tokens, else a hash that does not reveal the token.
        """
        return identity(token) if self._tokens and token is not None else OPEN

    def admits(self, bearer: str | None) -> bool:
        """Whether ``bearer`` is one of the tokens; takes the same time for all of them."""
        # A sum, not any(): stopping at the first match would show by its time which of the tokens matched.
        return bearer is not None and sum(hmac.compare_digest(bearer.encode(), token) for token in self._tokens) > 0


def identity(token: str) -> str:
    """The identity of a token's holder.

    32 hexadecimal digits of its hash, which journals store in place of the token.
    """
    # The prefix keeps the identity apart from the plain hash of a token, which its holder may have published elsewhere.
    return sha256(b"streamgauge token\0" + token.encode()).hexdigest()[:32]


def bearer(header: str) -> str | None:
    """The token of an Authorization header; ``None`` when it has none."""
    kind, _, token = header.partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


_SAFE: Final = ("GET", "HEAD", "OPTIONS")
_FOREIGN: Final = ("cross-site", "same-site")
"""Sec-Fetch-Site of requests from pages of another origin; browsers send it even where they omit ``Origin``."""

ADMITTED: Final = "streamgauge.admitted"
"""Key in an ASGI scope: whether the request has a valid token or needs none."""

FREE: Final = ("/", "/health", "/ready", "/openapi.json")
"""Paths without a token; they reveal nothing about a service's data."""


class AccessRules:
    """Decides about requests: a token is required, where the service has tokens, except on ``free`` paths.

    Requests from pages of other origins are refused unless ``origins`` admits them. A service without tokens also
    refuses every Host but this machine: otherwise a page whose own name resolves to 127.0.0.1 (DNS rebinding) would
    be of the same origin as the service.
    """

    def __init__(
        self, tokens: Tokens | Iterable[str] = (), free: Collection[str] = (), origins: Origins | None = None
    ) -> None:
        self.tokens, self._free, self._origins = Tokens.of(tokens), frozenset(free), origins or Origins()

    def refusal(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        """The response to a request that is refused, ``None`` for one that is admitted; sets ``ADMITTED``."""
        host, origin = headers.get("host", ""), headers.get("origin")
        method = scope.get("method", "GET")
        # Scheme aside: a proxy that ends TLS hands on the Host of an https page over http, and that page is the
        # service's own.
        if origin is not None and _authority(origin) != host and not self._origins.admits(origin, method):
            # Here and not by CORS alone: that only keeps a page from reading the response, after the request has had
            # its effect.
            return problem(403, f"requests from pages of {origin} are refused: --allow-origin lets them in")
        if origin is None and method not in _SAFE and headers.get("sec-fetch-site") in _FOREIGN:
            return problem(403, "a form of a page of another origin changes nothing here: send it from a program")
        # Without its port; what ends with a bracket is an IPv6 address that has none.
        if not self.tokens:
            named = host if host.endswith("]") else host.rsplit(":", 1)[0]
            local = scope[ADMITTED] = _loopback(named.strip("[]"))
            return None if local else problem(421, f"this service is of localhost: it does not answer as {host}")
        admitted = scope[ADMITTED] = self.tokens.admits(request_token(headers, scope))
        if admitted or scope["path"] in self._free:
            return None
        return problem(401, "a token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})


class Guard:
    """Middleware that refuses what ``AccessRules`` refuses."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens | Iterable[str] = (),
        free: Collection[str] = (),
        origins: Origins | None = None,
    ) -> None:
        self._app, self._rules = app, AccessRules(tokens, free, origins)
        self._streams = TokenStreams(self._rules.tokens)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refused = self._rules.refusal(scope, Headers(scope=scope))
        if refused is None:
            await self._streams.run(self._app, scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
        else:
            await refused(scope, receive, send)


class TokenStreams:
    """Responses that go on (server-sent events, WebSockets) end once the token of their request is revoked."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._open: dict[asyncio.Task[Any], str] = {}
        self._revoked = set[asyncio.Task[Any]]()
        self._loop: asyncio.AbstractEventLoop | None = None
        tokens.listen(self._replaced)

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app for one request; a streamed response ends once its token is revoked."""
        # Free paths are reached without a valid token; what such a request sends beside is not worth watching.
        token = request_token(Headers(scope=scope), scope) if self._tokens and scope[ADMITTED] else None
        task = asyncio.current_task()
        # Only GETs and WebSockets stream. An admitted write is completed, or its client could not know its effect.
        if token is None or task is None or scope.get("method", "GET") != "GET":
            await app(scope, receive, send)
            return

        async def send_noted(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.accept"):
                self._loop, self._open[task] = task.get_loop(), token
                # Registering comes first, this check second: a replacement in between finds the task and ends it.
                if not self._tokens.admits(token):  # revoked since it was admitted
                    self._replaced()  # later: a task that cancels itself and never waits again ends as cancelled
            await send(message)

        try:
            await app(scope, receive, send_noted)
        except asyncio.CancelledError:
            # A cancellation by the server (shutdown, a client that has gone) looks the same and has to go through.
            if task not in self._revoked:
                raise
            # The task goes on to send the end, so its cancellation must not reach uvicorn.
            task.uncancel()
            await send(_REVOKED[scope["type"]])
        finally:
            self._open.pop(task, None)
            self._revoked.discard(task)

    def _replaced(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        for task, token in self._open.items():
            if task not in self._revoked and not self._tokens.admits(token):
                self._revoked.add(task)
                task.cancel()


_REVOKED: Final[Mapping[str, Message]] = {
    "http": {"type": "http.response.body", "body": b"", "more_body": False},
    "websocket": {"type": "websocket.close", "code": 1008, "reason": "the token was revoked"},
}


def _authority(origin: str) -> str | None:
    """The host and port of an origin; ``None`` for a text that is not a URL."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def request_token(headers: Mapping[str, str], scope: Scope) -> str | None:
    """The token of the Authorization header, else of the query string: EventSource and WebSocket set no headers."""
    token = bearer(headers.get("authorization", ""))
    # The header wins over the query string: what a program states beats what a copied address happens to contain.
    if token is not None:
        return token
    # Not for methods that change something: addresses with tokens end up in logs and histories.
    if scope["type"] == "websocket" or scope["method"] == "GET":
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("access_token")
        return tokens[0] if tokens else None
    return None


def guards(tokens: Tokens | Iterable[str], origins: Origins | None) -> list[Middleware]:
    """The middleware of a service with these tokens, whose pages of ``origins`` may use it."""
    guard = Middleware(Guard, tokens=tokens, free=FREE, origins=origins)
    # CrossOrigin is outside: a preflight carries no token, and a refusal needs CORS headers for the page to read it.
    return [Middleware(CrossOrigin, origins=origins), guard] if origins else [guard]
