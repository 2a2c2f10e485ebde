"""Several queries in a session: those that can share contents have one driver, the others get the same input."""

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
"""A query, its semantics, and the receiver of its answers."""


def drive_all(requests: Sequence[DriverRequest]) -> "WindowDriver | DriverGroup":
    """One driver for queries that can share contents, else a group of drivers; ValueError without queries."""
    if not requests:
        raise ValueError("no query is asked: name at least one")
    groups: dict[Hashable, list[int]] = {}
    for at, request in enumerate(requests):
        groups.setdefault(_sharing(request[0], request[1]), []).append(at)
    # A worked example: of the requests 0, 1, 2, the first and the last can share. The drivers have the requests [0, 2]
    # and [1], so the places are 0, 2, 1, by which `operator_trees` puts the trees back in order.
    drivers = [
        WindowDriver([(query, emit) for query, _, emit in (requests[at] for at in places)], requests[places[0]][1])
        for places in groups.values()
    ]
    return drivers[0] if len(drivers) == 1 else DriverGroup(drivers, [*chain(*groups.values())])


def _sharing(query: ContinuousQuery, semantics: Semantics) -> Hashable:
    """The key of queries that can share a driver without imposing the cost of times, or delays, on one another."""
    return (
        query.windows,
        query.static,
        semantics,
        looks_rarely(query, semantics),
        reads_time(query.form),
        sent_at_once(query, semantics),
    )


class DriverGroup:
    """Drivers with the same input; ``late`` counts elements that are late for any of them.

    ``places`` are the positions of their queries in the request, driver by driver.
    """

    def __init__(self, drivers: Sequence[WindowDriver], places: Sequence[int]) -> None:
        self._drivers, self._places = drivers, places
        self.late = 0

    @property
    def operator_trees(self) -> "list[OperatorTree]":
        """The operators of each query, in the order of the request."""
        trees = [tree for driver in self._drivers for tree in driver.operator_trees]
        return [tree for _, tree in sorted(zip(self._places, trees, strict=True), key=itemgetter(0))]

    @property
    def reporting(self) -> Emit | None:
        """The receiver of the answer that is being evaluated."""
        return next((driver.reporting for driver in self._drivers if driver.reporting is not None), None)

    @property
    def stage(self) -> Hashable:
        """The query, or the pattern, that is being evaluated."""
        return tuple([driver.stage for driver in self._drivers])

    def push(self, element: StreamElement) -> None:
        """Pass an element to every driver."""
        before = self._missed()
        for driver in self._drivers:
            driver.push(element)
        # An element that is late for several queries counts once.
        self.late += self._missed() != before

    def push_batch(self, batch: "ElementBatch") -> None:
        """Process elements in order; one by one if they may be late for one query and not for another."""
        if any(driver.bounded for driver in self._drivers):
            for element in batch.elements():
                self.push(element)
            return
        for driver in self._drivers:
            driver.push_batch(batch)

    def advance(self, time: int) -> None:
        """Advance time: no element before ``time`` (ms) will follow."""
        for driver in self._drivers:
            driver.advance(time)

    def close(self) -> None:
        """End the input; raises the first driver's error."""
        for driver in self._drivers:
            driver.close()

    def _missed(self) -> int:
        return sum([driver.late for driver in self._drivers])
