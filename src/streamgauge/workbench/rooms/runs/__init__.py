"""Runs: the experiments and judged runs of the folder."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streamgauge.workbench.pages import page
from streamgauge.workbench.rooms import Bench, Room


def open_room(_bench: Bench) -> Room:
    """The room."""
    about = "Experiments and judged runs: filter, compare, start, watch, stop and resume."
    return Room("runs", "Runs", about, 1, [Route("/", _all)])


async def _all(request: Request) -> Response:
    return page(request, "runs.html.j2", "Runs")
