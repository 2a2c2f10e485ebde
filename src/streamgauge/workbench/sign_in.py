"""Signing in with a browser: a token in the address becomes a cookie, which later requests carry (RFC 6265).

A page cannot send the header Authorization by itself. Scripts cannot read the cookie, other sites cannot send it.
"""

from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from streamgauge.servers.http.access import Tokens

PARAMETER: Final = "access_token"
COOKIE: Final = "streamgauge_token"


class SigningIn:
    """Gives a browser that came with a token in its address a cookie, and hands the cookie on as Authorization."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app, self._tokens = app, tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Redirect to the address without the token, or hand on."""
        if scope["type"] != "http" or not self._tokens:
            await self._app(scope, receive, send)
            return
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = dict(pairs).get(PARAMETER)
        if scope["method"] == "GET" and self._tokens.admits(token):
            rest = urlencode([pair for pair in pairs if pair[0] != PARAMETER])
            response = RedirectResponse(f"{scope['path']}{'?' if rest else ''}{rest}", 303)
            response.set_cookie(COOKIE, str(token), httponly=True, samesite="strict", max_age=30 * 24 * 3600)
            await response(scope, receive, send)
            return
        held = _held(Headers(scope=scope).get("cookie", ""))
        if held is not None and "authorization" not in Headers(scope=scope):
            headers = MutableHeaders(raw=list(scope["headers"]))
            headers["authorization"] = f"Bearer {held}"
            scope = {**scope, "headers": headers.raw}
        await self._app(scope, receive, send)


def _held(header: str) -> str | None:
    """The token of the cookie."""
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value
