"""What is read while servers and crowds of clients run: both sides' CPU by whole trees, and every answer judged."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from streamgauge.suites.crowds import judging
from streamgauge.suites.crowds.meter import Meter
from streamgauge.suites.crowds.programs import Program
from streamgauge.suites.crowds.scenario import Outcome, Scenario, Served

PROGRAMS: Final = "streamgauge.suites.crowds"
READY_S: Final = 600.0
LEAD_S: Final = 1.0
EACH: Final = 100
"""Clients of one process: asyncio tasks with connections and a cache of their own."""


def parts(all_of_them: Sequence[Any]) -> Iterator[tuple[int, Sequence[Any]]]:
    """So many for each process, and the number of the first."""
    for first in range(0, len(all_of_them), EACH):
        yield first, all_of_them[first : first + EACH]


@dataclass
class Measured:
    """What a meter read; ``began`` is ms since 1970, ``lasted`` s."""

    meter: Meter
    began: int
    lasted: float = 0.0

    def outcome(
        self,
        scenario: Scenario,
        updates: Sequence[int],
        lines: Sequence[dict[str, Any]],
        right: judging.Right,
        late: Callable[[Mapping[str, Any]], int | None] = lambda _line: None,
    ) -> Outcome:
        """With what the clients said while it was read, and how ``late`` (ms) each answer was where it can be told."""
        over = self.began + round(self.lasted * 1000)
        answers = [
            Served(
                line["client"], line["instant"], line["received"], line["size"], line.get("took", 0),
                line.get("requests", 0), line["bytes"], right(line), late(line),
            )
            for line in lines if "rows" in line and line["received"] <= over
        ]  # fmt: skip
        failed: dict[str, int] = defaultdict(int)
        for line in lines:
            if "failed" in line:
                failed[str(line["failed"])] += 1
        return Outcome(
            scenario=scenario,
            server=tuple((each.at, each.percent) for each in self.meter.seconds["server"]),
            clients=tuple((each.at, each.percent) for each in self.meter.seconds["clients"]),
            server_cpu=self.meter.total["server"],
            clients_cpu=self.meter.total["clients"],
            lasted=self.lasted,
            began=self.began,
            updates=tuple(updates),
            answers=tuple(answers),
            failures=tuple(f"{count} times: {why}" for why, count in failed.items()),
            load=0.0,
        )


@contextmanager
def metered(server: int, crowd: Sequence[Program]) -> Iterator[Measured]:
    """Both sides' CPU while something is done."""
    meter = Meter({"server": (server,), "clients": tuple(program.pid for program in crowd)})
    measured = Measured(meter, time.time_ns() // 1_000_000)
    began = time.monotonic()
    with meter:
        yield measured
        measured.lasted = time.monotonic() - began
