"""The cost of CPython's garbage collector to a server: pauses by generation, told by ``gc.callbacks``."""

import gc
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import Final, TypeAlias

from streamgauge.servers.http.metrics import Metric

Clock: TypeAlias = Callable[[], float]
GENERATIONS: Final = 3


class Pauses:
    """Counts and adds up collections, from ``begin`` until ``end``. While one runs all threads wait for it."""

    def __init__(self, clock: Clock = perf_counter) -> None:
        self._clock, self._began = clock, 0.0
        self._count, self._sum, self._longest = [0] * GENERATIONS, [0.0] * GENERATIONS, [0.0] * GENERATIONS

    def begin(self) -> None:
        """Count from now on; once however often this is called."""
        if self._told not in gc.callbacks:
            gc.callbacks.append(self._told)

    def end(self) -> None:
        """Count no more."""
        if self._told in gc.callbacks:
            gc.callbacks.remove(self._told)

    def _told(self, phase: str, about: Mapping[str, int]) -> None:
        if phase == "start":
            self._began = self._clock()
            return
        generation, took = about["generation"], self._clock() - self._began
        self._count[generation] += 1
        self._sum[generation] += took
        self._longest[generation] = max(self._longest[generation], took)

    def metrics(self) -> Iterator[Metric]:
        """A summary without quantiles, and the longest pause, by generation."""
        labels = [{"generation": str(generation)} for generation in range(GENERATIONS)]
        name, about = "streamgauge_gc_pause_seconds", "Pauses for CPython's collector of garbage."
        parts = (("_sum", self._sum), ("_count", self._count))
        values = tuple(
            ({**label, "": part}, float(each))
            for part, found in parts
            for label, each in zip(labels, found, strict=True)
        )
        yield Metric(name, "summary", about, values)
        longest = tuple(zip(labels, self._longest, strict=True))
        yield Metric(f"{name}_longest", "gauge", "The longest of these pauses.", longest)
        frozen = float(gc.get_freeze_count())
        yield Metric(
            "streamgauge_gc_frozen_objects", "gauge", "Objects that it does not look at again.", (({}, frozen),)
        )


PAUSES: Final = Pauses()
"""Those of this process, counted once a server serves."""
