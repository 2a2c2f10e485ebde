"""The broker, and clients that maintain their answers by its notifications."""

from collections.abc import Callable, Sequence
from typing import Final

from streamgauge.harness.process import ServerProcess
from streamgauge.suites.crowds.scenario import BROKER, Findings, ServerHistory
from streamgauge.suites.crowds.systems import CrowdData, CrowdSystem, Line
from streamgauge.suites.crowds.updates import Publisher, UpdateRequest, replaced, updates

NAMES: Final = (BROKER,)


class BrokerCrowd(CrowdSystem):
    """The broker, and subscribers that maintain their answers by its notifications."""

    program = "followers"

    def start(self, task: CrowdData) -> None:
        """Start the broker with the static data; each update deletes obsolete facts and inserts the current ones."""
        self._data, limit = task, f"{self.scenario.clients + 10}"
        limits = ("--max-channels", limit, "--max-subscribers", limit)
        connections = ("--max-connections", f"{2 * self.scenario.clients + 10}")
        self._serve(ServerProcess("broker", "serve", str(task.static), *limits, *connections))

    def begin(self, receive: Callable[[Line], object]) -> Publisher:
        """Start the clients, all of which are ready before the first update."""
        self.subscribe(self.scenario.query, receive)
        self.settle()
        return Publisher(self.feed, replaced(updates(self._data.elements, self.scenario.slack)), self._begins(0))

    def feed(self, element: UpdateRequest) -> int:
        """Send an update; returns the number of its publication when it is acknowledged."""
        return int(self._post(element).json()["publication"])

    def judged(self, publisher: Publisher, lines: Sequence[Line]) -> Findings:  # noqa: ARG002 (lines judge themselves)
        """Judge by the facts of the broker; lateness of a notification counts from the sending of its publication."""
        sent = {publication.known_as: publication.sent for publication in publisher.taken}
        applied = [(publication.sent, publication.time) for publication in publisher.taken]
        judge = ServerHistory(self.scenario, self._data.elements, self._data.triples, applied, set)

        def late(line: Line) -> int:
            return int(line["received"]) - sent[line["publications"][0]]

        return Findings(list(sent.values()), judge.right, late)


start: Final = BrokerCrowd
