"""Which elements a query may still need: those from which a restarted session reaches the same state.

A report depends on what its windows hold and, where differences are sent or changes awaited, on the report before. So
elements before ``m`` - (size + slide + lateness) are not needed once a report was due that saw an element of time ``m``
or later: it is the same in a session that begins anew, and so are all after it.

Worked example: size 60, slide 10, m = 1000. An element came at 1003, and time is 1013: the report at 1010 holds what
came since 950, and the report before it what came since 940. Elements before 930 can go.
"""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Report, Semantics
from streamgauge.servers.durable.segments import SegmentExtent

_SILENT: Final = frozenset({Report.NON_EMPTY, Report.CONTENT_CHANGE})
MARKS: Final = 8
"""Steps in which elements are dropped: an eighth of the time for which they are needed."""

SPARE: Final = 2
"""Contents kept of a count-based window: that of the current report and that of the one before."""


def not_durable(query: ContinuousQuery, semantics: Semantics, engine: str = "live") -> str:
    """Why a query cannot be durable, as a sentence with a remedy; empty if it can."""
    kinds = [window.window for window in query.windows]
    silent = bool(semantics.report & _SILENT)
    if engine != "live":
        return f"the engine {engine} keeps no state: durable queries are answered by live"
    if any(window.kind == "landmark" for window in kinds):
        return "a landmark window holds all that ever came, so that no state is enough: use a window with RANGE"
    # Which triples close such a window depends on how many came since t0, which no remainder of the stream tells.
    if any(window.kind == "count" and window.slide != 1 for window in kinds):
        return "a window of triples that slides by several counts from the first triple on: use a slide of one triple"
    # Elements between two windows are in none, so nothing bounds how far back the last report was.
    if silent and any(window.kind == "time" and window.slide > window.size for window in kinds):
        return f"a window that slides by more than its size may be silent for any time under {semantics.name}"
    if Report.NON_EMPTY in semantics.report and len(kinds) > 1 and (query.r2s or semantics.r2s) is not R2S.RSTREAM:
        return f"differences over several windows may be silent for any time under {semantics.name}: use RSTREAM"
    return ""


@dataclass(slots=True)
class _Mark:
    """A time, and that of the first element at or after it."""

    time: int
    first: int | None = None


class Need:
    """The elements that queries need, from the segments written and the progress of the queries (times in ms).

    ``floor``: elements before it are not needed; ``processed`` is the number of the last item answered.
    ``counts`` are the triples per stream that count-based windows need.
    """

    def __init__(self, query: ContinuousQuery, semantics: Semantics, processed: int = -1) -> None:
        timed = [window.window for window in query.windows if window.window.kind == "time"]
        slide = max(chain([semantics.period or semantics.time_unit], (window.slide for window in timed)))
        self._after = slide + (semantics.lateness or 0)
        self._behind = max((window.size for window in timed), default=0) + self._after
        self.counts: dict[str, int] = {}
        for window in query.windows:
            if window.window.kind == "count":
                self.counts[window.stream] = max(SPARE * window.window.size, self.counts.get(window.stream, 0))
        self.streams = frozenset(query.streams)
        self.key: Hashable = (self._after, self._behind, self.streams, frozenset(self.counts.items()))
        """Queries with equal keys need the same elements."""
        self.floor: int | None = None
        self.processed = processed
        self._written = deque[SegmentExtent]()
        self._marks = deque[_Mark]()
        self._latest: int | None = None

    def write(self, segment: SegmentExtent) -> None:
        """Follow a segment that was written."""
        # Late elements count for no report, so they neither need anything nor show that time has passed.
        if segment.timely is not None and self.streams & segment.triples.keys():
            self._written.append(segment)

    def settle(self, processed: int) -> None:
        """Record that all items up to a number were answered."""
        self.processed = max(self.processed, processed)
        while self._written and self._written[0].end <= self.processed + 1:
            self.take(self._written.popleft().timely or 0)

    def take(self, latest: int) -> None:
        """Record that all elements up to a time (ms) were answered."""
        self._latest = latest if self._latest is None else max(self._latest, latest)
        for mark in self._marks:
            # The worked example above: the mark 1000 gets 1003 as its first element; at a time over 1003 + 10 the
            # floor is 1000 - 70.
            if mark.first is None and latest >= mark.time:
                mark.first = self._latest
        # A mark for each element would be as many as the elements; an eighth of the time is kept in vain at most.
        if not self._marks or self._latest >= self._marks[-1].time + self._behind // MARKS:
            self._marks.append(_Mark(self._latest))
        # A report after ``first`` is certain only when an element beyond slide and lateness has been answered.
        while self._marks and (first := self._marks[0].first) is not None and self._latest > first + self._after:
            self.floor = self._marks.popleft().time - self._behind


class StreamNeed:
    """The common need of all queries that read a stream."""

    def __init__(self, stream: str, needs: Iterable[Need]) -> None:
        readers = [need for need in needs if stream in need.streams]
        floors = [need.floor for need in readers]
        self._floor = None if None in floors else min((floor for floor in floors if floor is not None), default=0)
        self._count = max((need.counts.get(stream, 0) for need in readers), default=0)
        self._read = bool(readers)

    def needs(self, segment: SegmentExtent, behind: int) -> bool:
        """Whether elements of the stream in a segment may be needed; ``behind``: its triples in later segments."""
        if not self._read:
            return False
        old = self._floor is not None and segment.latest is not None and segment.latest < self._floor
        return not old or behind < self._count
