"""CPU time of named process trees, second by second."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType

from streamgauge.harness.sample import spent

EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Second:
    """A stretch of about a second: its end, s since the meter began, and the CPU that a tree used, % of one core."""

    at: float
    percent: float


class Meter:
    """While it is entered, reads how much CPU each tree of processes (all of it, children too) has used.

    ``trees`` names the pids whose trees count together.
    """

    def __init__(self, trees: Mapping[str, tuple[int, ...]], clock: Callable[[], float] = time.monotonic) -> None:
        self._trees, self._clock = dict(trees), clock
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamgauge-meter", daemon=True)
        self.seconds: dict[str, list[Second]] = {name: [] for name in trees}
        self.total: dict[str, float] = dict.fromkeys(trees, 0.0)

    def __enter__(self) -> "Meter":
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Read a last time, and end."""
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        began = at = self._clock()
        used = {name: self._used(name) for name in self._trees}
        while not self._done.wait(max(0.0, at + EVERY_S - self._clock())):
            now = self._clock()
            used, at = self._read(used, now - at, now - began), now
        self._read(used, max(1e-3, self._clock() - at), self._clock() - began)

    def _read(self, before: Mapping[str, float], lasted: float, at: float) -> dict[str, float]:
        now = {name: max(before[name], self._used(name)) for name in self._trees}
        for name, used in now.items():
            self.total[name] += used - before[name]
            self.seconds[name].append(Second(at, 100 * (used - before[name]) / lasted))
        return now

    def _used(self, name: str) -> float:
        return sum(map(spent, self._trees[name]))
