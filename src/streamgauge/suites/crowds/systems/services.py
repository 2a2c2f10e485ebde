"""Engines behind the query service, and subscribers of their answers."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from streamgauge.harness.process import ProgramError, ServerProcess
from streamgauge.suites.crowds.scenario import (
    SERVICES,
    Findings,
    registration,
    service_findings,
    witnesses,
)
from streamgauge.suites.crowds.systems import LOOK_S, READY_S, CrowdData, CrowdSystem, Line
from streamgauge.suites.crowds.updates import Publisher, UpdateRequest, streamed

NAMES: Final = tuple(SERVICES)


class EngineService(CrowdSystem):
    """An engine behind ``engine serve``, and subscribers of its answers."""

    program = "subscribers"

    def start(self, task: CrowdData) -> None:
        """Start the query service."""
        # Without ends of validity: here windows decide how long facts count.
        self._stream = [replace(element, until=None) for element in task.elements]
        limit = f"{self.scenario.clients + 10}"
        engine = SERVICES[self.scenario.system].engine
        self._serve(ServerProcess("engine", "serve", engine, "--max-queries", limit, "--max-subscribers", limit))

    def query(self, client: int) -> dict[str, Any]:
        """The registration of the query of a client."""
        return registration(self.scenario, client)

    def task(self) -> dict[str, Any]:
        """The address, and the clients that are judged row by row."""
        return {**super().task(), "witnesses": witnesses(self.scenario)}

    def begin(self, receive: Callable[[Line], object]) -> Publisher:
        """Send the first update, which starts the engines, before the measurement."""
        first, *others = streamed(self._stream)
        self.subscribe(self.scenario.query, receive)
        self.settle()
        self.feed(first)
        # The last line is the advance, which is no element.
        self._await_taken(first.content.count(b"\n") - 1)
        return Publisher(self.feed, others, self._begins(others[0].time))

    def feed(self, element: UpdateRequest) -> None:
        """Publish the elements of an update; returns when they are acknowledged."""
        self._post(element)

    def _await_taken(self, count: int) -> None:
        """Wait until every engine has read ``count`` elements: some are programs that start slowly."""
        for _ in range(round(READY_S / LOOK_S)):
            queries = self._http.get("/queries").json()["queries"]
            if failed := next((query["fault"] for query in queries if query["fault"]), None):
                raise ProgramError(f"an engine failed: {failed}")
            if all(query["elements"] >= count for query in queries):
                return
            time.sleep(LOOK_S)
        raise ProgramError(f"engines have not read the first update within {READY_S:.0f} s")

    def judged(self, publisher: Publisher, lines: Sequence[Line]) -> Findings:
        """Judge the answers of witnesses by the common oracle."""
        updates = [publication.acknowledged for publication in publisher.taken]
        return service_findings(self.scenario, self._stream, lines, publisher.begins, updates)


start: Final = EngineService
