"""The frame of all pages of the workbench, in the report's style: navigation and the page's own part.

A template of a room extends ``frame.html.j2`` and fills its blocks ``content`` and, where it needs more, ``head``.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from streamgauge.model.controls import visible
from streamgauge.model.mistake import MistakeError
from streamgauge.report import charts
from streamgauge.report.directions import directed
from streamgauge.servers.http.limits import BodyError, read_body, text

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""A page runs its own scripts and speaks with this server only; plots and the editor have inline styles."""

HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""With the policy no-referrer a browser would send a form with the origin ``null``, which the guard refuses."""


def page(request: Request, template: str, title: str, status: int = 200, **values: object) -> HTMLResponse:
    """A page made of a template; ``values`` are its variables, ``here`` the path, ``rooms`` the navigation.

    Half a surrogate pair, which JSON may hold and UTF-8 may not, is written as its escape.
    """
    context = {"title": title, "here": request.url.path, "rooms": request.app.state.rooms, **values}
    text = visible(_environment().get_template(template).render(context))
    return HTMLResponse(text, status, HEADERS)


def fragment(template: str, **values: object) -> str:
    """A part of a page made of a template, to be put into a page that is open."""
    return visible(_environment().get_template(template).render(values))


@cache
def _environment() -> Environment:
    """Templates of the workbench, of its rooms and of the report, in this order; text is escaped."""
    own = Path(__file__).parent
    rooms = sorted((own / "rooms").glob("*/templates"))
    loaders = [FileSystemLoader([own / "templates", *rooms]), PackageLoader("streamgauge.report", "templates")]
    # StrictUndefined: a misspelt variable is an error and not an empty place.
    environment = Environment(
        loader=ChoiceLoader(loaders), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["directed"] = directed
    environment.globals.update(
        light=Markup(charts.variables("light")),
        dark=Markup(charts.variables("dark")),
        plot_css=Markup(charts.plot_css()),
    )
    return environment


FIELDS = 40
"""The most fields of a form."""


class FormError(MistakeError, ValueError):
    """A form that cannot be read; the message says why."""


async def read_form(request: Request, limit: int, fields: int = FIELDS) -> Mapping[str, str]:
    """The fields of a form, the last of one name; FormError for more than ``limit`` bytes or ``fields`` fields."""
    try:
        body = text(await read_body(request, limit))
        pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=fields)
    except (BodyError, ValueError) as error:
        raise FormError(str(error)) from error
    return {name: value.replace("\r\n", "\n") for name, value in pairs}
