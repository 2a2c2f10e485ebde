"""Queries beside each other: those that can share their contents have one driver, others are given the same input."""

from collections.abc import Hashable, Sequence
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from streamgauge.incremental.drivers.frames import looks_rarely
from streamgauge.incremental.drivers.window import WindowDriver
from streamgauge.model.element import StreamElement
from streamgauge.model.engine import Emit
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.query.stamps import reads_time
from streamgauge.semantics.growth import sent_at_once

if TYPE_CHECKING:
    from streamgauge.formats.batches import ElementBatch
    from streamgauge.incremental.evaluator import OperatorTree

DriverRequest: TypeAlias = tuple[ContinuousQuery, Semantics, Emit]
"""A query, its semantics, and what takes its answers."""


def drive_all(requests: Sequence[DriverRequest]) -> "WindowDriver | DriverGroup":
    """One driver for queries that can share their contents, else several behind one session; ValueError without any."""
    if not requests:
        raise ValueError("no query is asked: name at least one")
    groups: dict[Hashable, list[int]] = {}
    for at, request in enumerate(requests):
        groups.setdefault(_sharing(request[0], request[1]), []).append(at)
    drivers = [
        WindowDriver([(query, emit) for query, _, emit in (requests[at] for at in places)], requests[places[0]][1])
        for places in groups.values()
    ]
    return drivers[0] if len(drivers) == 1 else DriverGroup(drivers, [*chain(*groups.values())])


def _sharing(query: ContinuousQuery, semantics: Semantics) -> Hashable:
    """The key of queries that share a driver; one that reads times would have others keep them, one that waits wait."""
    return (
        query.windows,
        query.static,
        semantics,
        looks_rarely(query, semantics),
        reads_time(query.form),
        sent_at_once(query, semantics),
    )


class DriverGroup:
    """Drivers that are given the same input; ``late`` counts elements that came too late for any of them.

    ``places`` are those of their queries, driver by driver, in the order in which they were asked.
    """

    def __init__(self, drivers: Sequence[WindowDriver], places: Sequence[int]) -> None:
        self._drivers, self._places = drivers, places
        self.late = 0

    @property
    def operator_trees(self) -> "list[OperatorTree]":
        """The operators of each query, in the order in which they were asked."""
        trees = [tree for driver in self._drivers for tree in driver.operator_trees]
        return [tree for _, tree in sorted(zip(self._places, trees, strict=True), key=itemgetter(0))]

    @property
    def reporting(self) -> Emit | None:
        """The taker of the answer that is being evaluated."""
        return next((driver.reporting for driver in self._drivers if driver.reporting is not None), None)

    def push(self, element: StreamElement) -> None:
        """An element has come."""
        before = self._missed()
        for driver in self._drivers:
            driver.push(element)
        self.late += self._missed() != before

    def push_batch(self, batch: "ElementBatch") -> None:
        """Elements have come, in their order; one by one where they may be late for one and not for another."""
        if any(driver.bounded for driver in self._drivers):
            for element in batch.elements():
                self.push(element)
            return
        for driver in self._drivers:
            driver.push_batch(batch)

    def advance(self, time: int) -> None:
        """Nothing earlier than ``time`` (ms) will come."""
        for driver in self._drivers:
            driver.advance(time)

    def close(self) -> None:
        """No more input; raises what the first driver raises that has a complaint."""
        for driver in self._drivers:
            driver.close()

    def _missed(self) -> int:
        return sum([driver.late for driver in self._drivers])
