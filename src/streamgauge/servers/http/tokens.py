"""Who may use a service: bearer tokens (RFC 6750), needed wherever others than this machine can reach it."""

import hmac
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from ipaddress import ip_address
from typing import Final
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from streamgauge.model.mistake import MistakeError
from streamgauge.servers.http.origins import Origins
from streamgauge.servers.http.replies import problem

OPEN: Final = ""
"""The identity of everybody who comes to a service without tokens."""

SHORTEST = 16
"""Characters that a token needs, so that it cannot be guessed."""


class TokenError(MistakeError, ValueError):
    """A service that would be open to others, or a token that is none; the sentence says what to do."""


def check_tokens(host: str, tokens: Collection[str]) -> None:
    """TokenError for a short token, and for an address that others can reach without any token."""
    if any(len(token) < SHORTEST for token in tokens):
        raise TokenError(f"a token has at least {SHORTEST} characters: make a longer one")
    if not tokens and not _loopback(host):
        raise TokenError(f"{host} can be reached by others: give a token, or bind to 127.0.0.1")


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class Tokens:
    """The tokens of a service."""

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        self._tokens = tuple(token.encode() for token in tokens)

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def identity(self, given: str | None) -> str:
        """Whose a request is: ``OPEN`` where there are no tokens, else a name from which the token cannot be told."""
        return identity(given) if self._tokens and given is not None else OPEN

    def admits(self, given: str | None) -> bool:
        """Whether it is one of the tokens; takes the same time for all."""
        return given is not None and sum(hmac.compare_digest(given.encode(), token) for token in self._tokens) > 0


def identity(token: str) -> str:
    """By which the holder of a token is known, 32 characters: what is kept of a token, as in a journal."""
    return sha256(b"streamgauge token\0" + token.encode()).hexdigest()[:32]


def bearer(header: str) -> str | None:
    """The token of an Authorization header; ``None`` when it has none."""
    kind, _, token = header.partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


class Guard:
    """Lets requests through that have a token where there are any; ``free`` paths need none.

    A browser's requests from pages of other origins are refused unless ``origins`` has them, and without tokens all
    that do not name this machine as their host, so that no page elsewhere can use a service on loopback.
    """

    def __init__(
        self, app: ASGIApp, tokens: Iterable[str] = (), free: Collection[str] = (), origins: Origins | None = None
    ) -> None:
        self._app, self._free, self._origins = app, frozenset(free), origins or Origins()
        self._tokens = Tokens(tokens)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refused = self._refused(scope)
        if refused is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
        else:
            await refused(scope, receive, send)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        method = scope.get("method", "GET")
        if origin is not None and _authority(origin) != host and not self._origins.admits(origin, method):
            return problem(403, f"requests from pages of {origin} are refused: --allow-origin lets them in")
        if not self._tokens:
            named = host if host.endswith("]") else host.rsplit(":", 1)[0]
            local = _loopback(named.strip("[]"))
            return None if local else problem(421, f"this service is of localhost: it does not answer as {host}")
        if scope["path"] in self._free or self._tokens.admits(given(headers, scope)):
            return None
        return problem(401, "a token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})


def _authority(origin: str) -> str | None:
    """The host and port of an origin; ``None`` for what is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def given(headers: Mapping[str, str], scope: Scope) -> str | None:
    """The token of the header, or of the query string, which is all that EventSource and WebSocket can send."""
    token = bearer(headers.get("authorization", ""))
    if token is not None:
        return token
    if scope["type"] == "websocket" or scope["method"] == "GET":
        found = parse_qs(scope["query_string"].decode("latin-1")).get("access_token")
        return found[0] if found else None
    return None
