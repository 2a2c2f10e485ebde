"""One window of a query as it moves over its stream: what it holds, which scope it names, when it closes."""

from collections.abc import Sequence
from typing import TypeAlias

from streamgauge.incremental.drivers.answering import Leaves
from streamgauge.incremental.drivers.content import Content, Waiting
from streamgauge.incremental.drivers.instants import LandmarkLooks, Look, Looks, closing
from streamgauge.incremental.drivers.latest import Latest
from streamgauge.incremental.drivers.noticing import noticing
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Borders, Semantics
from streamgauge.model.terms import Term, Triple
from streamgauge.query.stamps import stamps_graph, uses_timestamp


class TimeFrame:
    """A time-based or landmark window; ``arrive`` takes what has come on its stream.

    The scope is that of its latest look, (t0, t0) before the first.
    """

    def __init__(self, content: Content, looks: Looks, semantics: Semantics, t0: int) -> None:
        self.content, self.looks, self._closes = content, looks, closing(semantics)
        self.arrive = content.enter
        self.look = Look(t0, t0, t0, t0 - 1)

    @property
    def scope(self) -> tuple[int, int]:
        """The borders that are named, ms."""
        return self.look.start, self.look.end

    def tick(self, time: int) -> None:
        """Look at ``time`` (ms), whose own arrivals are still to enter."""
        self._move(self.looks.tick(time))

    def clock(self, instant: int) -> None:
        """Look at an instant of a clock."""
        self._move(self.looks.clock(instant))

    def close(self, instant: int) -> None:
        """The window closes at an instant."""
        self._move(self.looks.close(instant))

    def forget_before(self, instant: int) -> None:
        """What no look from an instant of its clock (ms) on can see leaves."""
        look = self.looks.close(instant) if self._closes else self.looks.clock(instant)
        self.content.drop(look.first)

    def takes(self, time: int) -> bool:
        """Whether the scope that was looked at last holds ``time`` (ms)."""
        return time >= self.look.first

    def whole(self, instant: int) -> bool:
        """Whether the first full window has come at an instant."""
        return instant >= self.looks.whole_from()

    def _move(self, look: Look) -> None:
        self.look = look
        self.content.show()
        self.content.drop(look.first)
        self.content.end(look.last)


class CountFrame:
    """A count-based window: the last ``size`` triples of its stream; it closes after every ``slide``-th."""

    def __init__(self, content: Content, window: Window, semantics: Semantics, t0: int) -> None:
        self.content, self._size, self._slide, self._t0 = content, window.size, window.slide, t0
        self._first = window.slide if semantics.partial_head else window.size
        self._after = 1 if semantics.borders is Borders.CLOSED_OPEN else 0
        self._count = 0

    @property
    def scope(self) -> tuple[int, int]:
        """The times of its oldest and newest triple, as borders, ms."""
        span = self.content.span
        return (self._t0, self._t0) if span is None else (span[0], span[1] + self._after)

    def arrive(self, time: int, triples: tuple[Triple, ...], until: int | None) -> None:
        """Triples of its stream have come."""
        for triple in triples:
            self._count += 1
            self.content.enter(time, (triple,), until)
        self.content.crop(self._size)

    @property
    def closes(self) -> bool:
        """Whether the triple that came last closes it."""
        return self._count >= self._first and (self._count - self._first) % self._slide == 0

    def tick(self, time: int) -> None:
        """Look at ``time`` (ms)."""
        self.content.end(time)

    def clock(self, instant: int) -> None:
        """Look at an instant of a clock: a half-open scope speaks of what came before."""
        self.content.end(instant - self._after)

    def close(self, instant: int) -> None:
        """The window closes with a triple of this time (ms)."""
        self.content.show()
        self.content.crop(self._size)
        self.content.end(instant)

    def forget_before(self, _instant: int) -> None:
        """Triples leave by their number, not by their time."""

    def takes(self, _time: int) -> bool:
        """A triple of any time is taken."""
        return True

    def whole(self, _instant: int) -> bool:
        """Whether as many triples as it may hold have come."""
        return self._count >= self._size


Frame: TypeAlias = TimeFrame | CountFrame
"""One window of a query."""


def frames(queries: Sequence[ContinuousQuery], semantics: Semantics, leaves: Leaves, t0: int) -> tuple[Frame, ...]:
    """The windows of queries that have the same, each feeding its graph of the evaluator or seen by it whole.

    Several that close each for itself are shown as of their latest closes, so what arrives waits for them.
    """
    windows = queries[0].windows
    held = Waiting if closing(semantics) and len(windows) > 1 else Content
    timed = any(uses_timestamp(query.form) for query in queries)
    names = dict.fromkeys(each.name for each in windows)
    latest = {name: Latest(*leaves.feeds(stamps_graph(name))) if timed else None for name in names}
    made = []
    for each in windows:
        graph = _graph(each)
        content = held(*leaves.feeds(graph), noticing(queries, semantics), latest[each.name], leaves.follow(graph))
        leaves.see(graph, content.graphs)
        made.append(_frame(each, content, semantics, t0))
    return tuple(made)


def _graph(seen: StreamWindow) -> Term | None:
    """The graph that a window's content is."""
    return None if seen.name is None else f"<{seen.name}>"


def _frame(seen: StreamWindow, content: Content, semantics: Semantics, t0: int) -> Frame:
    window = seen.window
    if window.kind == "count":
        return CountFrame(content, window, semantics, t0)
    looks = LandmarkLooks if window.kind == "landmark" else Looks
    return TimeFrame(content, looks(window, semantics, t0), semantics, t0)
