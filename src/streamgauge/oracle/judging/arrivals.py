"""A run by the wall clock: its elements stamped with when they were handed over."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run
from streamgauge.model.semantics import Borders
from streamgauge.oracle.judging.clock import ADVANCE

_NS = 1_000_000


def by_arrival(run: Run, held: Sequence[StreamElement]) -> tuple[Run, tuple[StreamElement, ...]]:
    """The run and those of its elements that were handed over, all times in ms after the feed's start."""
    times = arrival_times(run)
    arrived = tuple(replace(element, time=times[element.sequence]) for element in held if element.sequence in times)
    last = max((fed.handed for fed in run.fed), default=run.header.started)
    return replace(run, header=replace(run.header, advanced_to=_rounded(run)(last), begin=0, factor=1.0)), arrived


def arrival_times(run: Run) -> dict[int, int]:
    """Sequence number to when the element was handed over, ms after the feed's start."""
    rounded = _rounded(run)
    return {fed.sequence: rounded(fed.handed) for fed in run.fed if fed.sequence != ADVANCE}


def _rounded(run: Run) -> Callable[[int], int]:
    """Whole ms of a clock reading, on the side of every border on which the reading itself is.

    What comes just after a closed border is not within it, nor what comes just before an open one.
    """
    started, borders = run.header.started, run.header.semantics.borders
    if borders is Borders.CLOSED_OPEN:
        return lambda handed: (handed - started) // _NS
    return lambda handed: -((started - handed) // _NS)
