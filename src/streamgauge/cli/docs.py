"""The command ``docs``: serve this documentation to a browser on this machine."""

import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Final

import typer
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import streamgauge
from streamgauge.cli.configuration import long_running
from streamgauge.cli.servers import say
from streamgauge.model.extras import missing
from streamgauge.model.mistake import MistakeError
from streamgauge.servers.http.access import guards
from streamgauge.servers.http.health import HealthRoutes
from streamgauge.servers.http.server import Serving

PACKAGE: Final = Path(streamgauge.__file__).parent
POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""The theme sets light or dark mode by an inline script in each page; nothing is loaded from other hosts."""


def register(app: typer.Typer) -> None:
    """Add the command ``docs``."""
    app.command()(docs)


@long_running
def docs(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 8710,
    path: Annotated[bool, typer.Option("--path", help="Print the folder of the pages instead of serving it.")] = False,
    show: Annotated[bool, typer.Option("--open", help="Open the pages in your browser.")] = False,
) -> None:
    """Read this documentation in a browser, with search; it is served to this machine only."""
    site = built_site()
    if path:
        typer.echo(site)
        return

    def ready(address: str) -> None:
        say(f"the documentation of Streamgauge {streamgauge.__version__} is at {address}")
        if show:
            webbrowser.open(address)

    Serving(application(site), "127.0.0.1", port, lambda: None, ready, alone=True).run()


def application(site: Path) -> Starlette:
    """An application that serves the files of a folder."""
    healthy = HealthRoutes()
    return Starlette(
        routes=[
            Route("/health", healthy.health),
            Route("/ready", healthy.ready),
            Mount("/", StaticFiles(directory=site, html=True)),
        ],
        middleware=[*guards((), None), Middleware(BaseHTTPMiddleware, dispatch=_guarded)],
    )


async def _guarded(request: Request, answer: RequestResponseEndpoint) -> Response:
    response = await answer(request)
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    # Revalidated each time, as pages of another installed version have the same addresses.
    response.headers["Cache-Control"] = "no-cache"
    return response


def built_site(package: Path = PACKAGE) -> Path:
    """The folder of the pages: a wheel's own, or ``dist/site`` of a checkout, rebuilt when pages changed.

    MistakeError if they are missing and cannot be built.
    """
    own, checkout = package / "site", package.parents[1]
    builder, out = checkout / "docs" / "site", checkout / "dist" / "site"
    # A wheel has its pages built in.
    if (own / "index.html").is_file():
        return own
    if not builder.is_dir():
        raise MistakeError(
            "this installation has no documentation pages: build them in a checkout by `python docs/site`"
        )
    if lack := missing("docs"):
        raise MistakeError(f"{lack}; without it, read {checkout / 'docs' / 'index.md'}")
    done = subprocess.run([sys.executable, builder, out], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MistakeError(f"the pages cannot be built: {done.stderr.strip()}")
    return out
