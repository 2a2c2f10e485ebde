"""The workbench as one application: rooms, their files, the front page, errors as pages."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from streamgauge.model.controls import visible
from streamgauge.model.mistake import MistakeError
from streamgauge.servers.http.access import Tokens, guards
from streamgauge.servers.http.health import HealthRoutes
from streamgauge.servers.http.limits import load_parsers
from streamgauge.servers.http.replies import clipped
from streamgauge.workbench.pages import page
from streamgauge.workbench.rooms import Bench, Room, SearchHit, has_all, open_rooms

OWN: Final = Path(__file__).parent
PARAMETER: Final = "access_token"
COOKIE: Final = "streamgauge_token"


def application(bench: Bench, tokens: Tokens | Sequence[str] = ()) -> Starlette:
    """The workbench over a folder; ``tokens`` are needed by every request where there are any."""
    rooms, tokens, healthy = open_rooms(bench), Tokens.of(tokens), HealthRoutes()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(load_parsers)
        try:
            yield
        finally:
            for area in rooms:
                await area.close()

    # Mistakes are the only errors whose sentences are shown. After the page of any other one Starlette raises it again,
    # so that the server logs it with its traceback.
    handlers: dict[Any, Any] = {MistakeError: _mistake, HTTPException: _status, Exception: _status}
    app = Starlette(
        routes=[
            Route("/", _front),
            Route("/help", _help),
            Route("/search", _search),
            Route("/health", healthy.health),
            Route("/ready", healthy.ready),
            Mount("/static", StaticFiles(directory=OWN / "static")),
            *(Mount(f"/{area.name}", routes=_routes(area)) for area in rooms),
        ],
        middleware=[Middleware(SigningIn, tokens=tokens), *guards(tokens, None)],
        exception_handlers=handlers,
        lifespan=lifespan,
    )
    app.state.rooms, app.state.bench = rooms, bench
    return app


def _routes(area: Room) -> list[BaseRoute]:
    files = OWN / "rooms" / area.name / "static"
    own: list[BaseRoute] = [Mount("/static", StaticFiles(directory=files))] if files.is_dir() else []
    return [*own, *area.routes]


async def _front(request: Request) -> Response:
    """The rooms with a sentence each."""
    return page(request, "front.html.j2", "Streamgauge", folder=str(request.app.state.bench.folder))


HELP: Final = {
    "The workbench": "what it serves, to whom, and the rooms",
    "The playground": "queries, streams and semantics side by side",
    "The report: a page, figures, pull requests, CI": "how to read the page about runs",
    "The workbench: live queries and servers": "queries over running sources, brokers, facts over time",
    "Glossary": "the words of all pages",
}
"""The pages of the documentation by title, with their text."""


async def _help(request: Request) -> Response:
    """Pages to read, and the place of each task."""
    return page(request, "help.html.j2", "Help", pages=HELP)


MAX_HITS: Final = 40
"""Pages of a kind that a search lists."""

LONGEST_SEARCH: Final = 200
"""Letters of a search."""


async def _search(request: Request) -> Response:
    """The pages of all rooms that have all words of a search, by kind."""
    text = visible(request.query_params.get("q", ""))[:LONGEST_SEARCH].strip()
    words = text.casefold().split()
    hits: list[SearchHit] = [SearchHit("Help", title, "/help", about) for title, about in HELP.items()]
    hits = [hit for hit in hits if words and has_all(words, hit.title, hit.about)]
    for area in request.app.state.rooms if words else ():
        hits = [*hits, *await run_in_threadpool(area.search, words)]
    groups: dict[str, list[SearchHit]] = {}
    for hit in hits:
        groups.setdefault(hit.kind, []).append(hit)
    ordered = dict(sorted(groups.items(), key=lambda group: group[0] == "Help"))
    return page(request, "search.html.j2", "Search", words=text, groups=ordered, count=len(hits), most=MAX_HITS)


async def _mistake(request: Request, error: Exception) -> Response:
    """A user's mistake as its message: a page, or JSON if a script requested that."""
    return refusal(request, 400, str(error))


async def _status(request: Request, error: Exception) -> Response:
    http_error = error if isinstance(error, HTTPException) else HTTPException(500)
    if http_error.status_code == 405 and request.method == "GET":
        return RedirectResponse(".", 303)  # a form was sent there, and its page is the one above
    return refusal(request, http_error.status_code, http_error.detail)


def refusal(request: Request, status: int, sentence: str) -> Response:
    """A sentence with its status, as the client reads it."""
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"error": clipped(sentence)}, status)
    return page(request, "refusal.html.j2", "Not done", status, sentence=clipped(sentence))


class SigningIn:
    """Exchanges a token in the address for a cookie (RFC 6265), which is passed on as Authorization later.

    A page cannot set the header Authorization. Scripts cannot read the cookie, and other sites cannot send it.
    """

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
            # After a redirect, so that the token is neither in the address line nor in the history.
            response.set_cookie(COOKIE, str(token), httponly=True, samesite="strict", max_age=30 * 24 * 3600)
            await response(scope, receive, send)
            return
        cookie_token = _held(Headers(scope=scope).get("cookie", ""))
        if cookie_token is not None and "authorization" not in Headers(scope=scope):
            headers = MutableHeaders(raw=list(scope["headers"]))
            headers["authorization"] = f"Bearer {cookie_token}"
            scope = {**scope, "headers": headers.raw}
        await self._app(scope, receive, send)


def _held(header: str) -> str | None:
    """The token of the cookie."""
    try:
        cookie = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None else cookie.value
