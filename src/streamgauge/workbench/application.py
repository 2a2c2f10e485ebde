"""The workbench as one application: rooms, their files, the front page, errors as pages."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from streamgauge.model.mistake import MistakeError
from streamgauge.servers.http.access import Tokens, guards
from streamgauge.servers.http.limits import load_parsers
from streamgauge.servers.http.replies import clipped
from streamgauge.workbench.pages import navigation, page
from streamgauge.workbench.rooms import Bench, Room, open_rooms
from streamgauge.workbench.sign_in import SigningIn

OWN: Final = Path(__file__).parent


def application(bench: Bench, tokens: Sequence[str] = ()) -> Starlette:
    """The workbench over a folder; ``tokens`` are needed by every request where there are any."""
    rooms = open_rooms(bench)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(load_parsers)
        try:
            yield
        finally:
            for room in rooms:
                await room.close()

    handlers: dict[Any, Any] = {MistakeError: _mistake, HTTPException: _status}
    app = Starlette(
        routes=[
            Route("/", _front),
            Route("/health", _health),
            Mount("/static", StaticFiles(directory=OWN / "static")),
            *(Mount(f"/{room.name}", routes=_routes(room)) for room in rooms),
        ],
        middleware=[Middleware(SigningIn, tokens=Tokens(tokens)), *guards(tokens, None)],
        exception_handlers=handlers,
        lifespan=lifespan,
    )
    app.state.rooms, app.state.bench = navigation(rooms), bench
    return app


def _routes(room: Room) -> list[BaseRoute]:
    files = OWN / "rooms" / room.name / "static"
    own: list[BaseRoute] = [Mount("/static", StaticFiles(directory=files))] if files.is_dir() else []
    return [*own, *room.routes]


async def _front(request: Request) -> Response:
    """The rooms with a sentence each."""
    return page(request, "front.html.j2", "Streamgauge", folder=str(request.app.state.bench.folder))


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "up"})


async def _mistake(request: Request, error: Exception) -> Response:
    """A mistake of the user as its sentence: a page, or JSON for a script that asked for it."""
    return refusal(request, 400, str(error))


async def _status(request: Request, error: Exception) -> Response:
    found = error if isinstance(error, HTTPException) else HTTPException(500)
    return refusal(request, found.status_code, found.detail)


def refusal(request: Request, status: int, sentence: str) -> Response:
    """A sentence with its status, as the client reads it."""
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"error": clipped(sentence)}, status)
    return page(request, "refusal.html.j2", "Not done", status, sentence=clipped(sentence))
