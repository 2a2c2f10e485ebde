"""Whether a server is alive, and whether it is ready: ``/health`` asks for a restart, ``/ready`` for patience.

Both need no token. With one, or where a service has none, ``/ready`` also says why it is not, and how sources go.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from streamgauge.servers.http.access import ADMITTED

StatusBody: TypeAlias = tuple[int, dict[str, object]]
"""A status and the fields of a body."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """How a server is: ``failed`` until it is started again, in ``trouble`` until something passes; empty: it is well.

    ``about`` are fields for those who may see what it serves.
    """

    failed: str = ""
    trouble: str = ""
    about: Mapping[str, object] = field(default_factory=dict)

    def health(self) -> StatusBody:
        """503 where only a restart helps."""
        return (503, {"status": "failed", "fault": self.failed}) if self.failed else (200, {"status": "up"})

    def ready(self, *, whole: bool) -> StatusBody:
        """503 where nothing is taken now, or a source has failed; ``whole`` with the reason and ``about``."""
        fault = self.failed or self.trouble
        body: dict[str, object] = {"status": "not ready" if fault else "ready"}
        return 503 if fault else 200, body | ({"fault": fault, **self.about} if whole else {})


class HealthRoutes:
    """The handlers of ``/health`` and ``/ready`` for the state of a server."""

    def __init__(self, state: Callable[[], ServerState] = ServerState) -> None:
        self._state = state

    async def health(self, _request: Request) -> Response:
        """Whether it lives."""
        return _reply(self._state().health())

    async def ready(self, request: Request) -> Response:
        """Whether it takes what it serves for."""
        return _reply(self._state().ready(whole=request.scope.get(ADMITTED, False)))


def _reply(status_body: StatusBody) -> Response:
    status, body = status_body
    return JSONResponse(body, status, {"Cache-Control": "no-store"})
