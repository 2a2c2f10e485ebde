"""Probes for a supervisor: ``/health`` fails when a restart is needed, ``/ready`` while requests cannot be served.

Neither needs a token. With one, or if the service has none, ``/ready`` adds the reason and the state of sources.
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
    """The state of a server; both sentences are empty if it is well.

    ``failed`` needs a restart, ``trouble`` may pass. ``about`` are fields for clients with access to the data.
    """

    failed: str = ""
    trouble: str = ""
    about: Mapping[str, object] = field(default_factory=dict)

    def health(self) -> StatusBody:
        """503 if only a restart helps."""
        return (503, {"status": "failed", "fault": self.failed}) if self.failed else (200, {"status": "up"})

    def ready(self, *, whole: bool) -> StatusBody:
        """503 if requests cannot be served now, or a source has failed; ``whole`` adds the reason and ``about``."""
        # What needs a restart comes first: it does not pass.
        fault = self.failed or self.trouble
        body: dict[str, object] = {"status": "not ready" if fault else "ready"}
        return 503 if fault else 200, body | ({"fault": fault, **self.about} if whole else {})


class HealthRoutes:
    """The handlers of ``/health`` and ``/ready`` for the state of a server."""

    def __init__(self, state: Callable[[], ServerState] = ServerState) -> None:
        self._state = state

    async def health(self, _request: Request) -> Response:
        """The reply to ``/health``."""
        return _reply(self._state().health())

    async def ready(self, request: Request) -> Response:
        """The reply to ``/ready``; whole only for a request with access."""
        return _reply(self._state().ready(whole=request.scope.get(ADMITTED, False)))


def _reply(status_body: StatusBody) -> Response:
    status, body = status_body
    return JSONResponse(body, status, {"Cache-Control": "no-store"})
