"""One window of a query as it moves over its stream: its content, its scope, its closes.

Queries are evaluated by changes or by snapshots of contents (``evaluators``). The clocks of a query are merged: which
instants precede a time, what moves then, and which of them may report.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from streamgauge.incremental.column_joins import ColumnJoins
from streamgauge.incremental.common_groups import CommonGroups
from streamgauge.incremental.crossovers import WHOLE_LOOKS
from streamgauge.incremental.drivers.content import AnyChange, BufferedContent, Latest, WindowContent, change_detector
from streamgauge.incremental.evaluator import KeptAnswer
from streamgauge.incremental.join_pool import JoinPool
from streamgauge.incremental.operators import Bag, Take
from streamgauge.incremental.plan import BgpRequest, Feed
from streamgauge.incremental.snapshot import SnapshotContents, Snapshots
from streamgauge.incremental.window_joins import WindowJoins
from streamgauge.incremental.window_pieces import WindowBegins
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Borders, Due, EmptyAggregate, Report, Scope, Semantics, Tick
from streamgauge.model.terms import Term, Triple
from streamgauge.query.instants import NOW_GRAPH, now_fact, uses_now
from streamgauge.query.stamps import reads_time, stamped_predicates, stamps_graph, uses_timestamp

if TYPE_CHECKING:
    from streamgauge.incremental.term_ids import Places

NEVER = 2**62
"""A time (ms) after all others."""


class WindowLook(NamedTuple):
    """A look at a window: its named scope (ms), and the first and last time of its content."""

    start: int
    end: int
    first: int
    last: int


class WindowLooks:
    """Where the content of a time-based window begins, given its borders and how its scope moves.

    ``reach``: the maximum age (ms) of arrivals in an open scope that ranges, relative to the latest one.
    """

    def __init__(self, window: Window, semantics: Semantics, t0: int) -> None:
        self._size, self._slide, self._t0 = window.size, window.slide, t0
        self._range = semantics.scope is Scope.RANGE
        self._half_open = semantics.borders is Borders.CLOSED_OPEN
        # Time is whole milliseconds, so an open left border is a content that begins one later.
        self._skip = 1 if semantics.borders is Borders.OPEN_CLOSED else 0
        self.reach = window.size if semantics.borders is Borders.CLOSED else window.size - 1

    def close(self, instant: int) -> WindowLook:
        """The window that closes at an instant, clipped to t0."""
        start = instant - self._size
        last = instant - 1 if self._half_open else instant
        return WindowLook(max(start, self._t0), instant, max(start + self._skip, self._t0), last)

    def clock(self, instant: int) -> WindowLook:
        """The open scope at an instant of the clock; a half-open one excludes arrivals at the instant."""
        return self._open(instant, instant - 1 if self._half_open else instant)

    def tick(self, time: int) -> WindowLook:
        """The open scope after the arrivals at ``time``."""
        return self._open(time, time)

    def horizons(self, times: "Places") -> "Places":
        """The first time (ms) of the content for each look of ``tick`` at these times."""
        if self._range:
            return (times - self.reach).clip(self._t0)
        # The smallest k with t0 + k slide + size > tau (>= if the right border is closed), as docs/semantics.md
        # defines the active window, is the ceiling of this by the slide.
        late = times + self._half_open - self._t0 - self._size
        return (-(-late // self._slide) * self._slide).clip(0) + (self._t0 + self._skip)

    def whole_from(self) -> int:
        """The time (ms) at which the first window is complete."""
        return self._t0 + self._size

    def _open(self, instant: int, last: int) -> WindowLook:
        if self._range:
            first = max(last - self.reach, self._t0)
            return WindowLook(max(first - self._skip, self._t0), instant, first, last)
        reach = last + 1 if self._half_open else last
        late = reach - self._t0 - self._size
        start = self._t0 + (-(-late // self._slide) * self._slide if late > 0 else 0)
        return WindowLook(start, instant, start + self._skip, last)


class LandmarkLooks(WindowLooks):
    """A landmark window: everything from t0 on."""

    def close(self, instant: int) -> WindowLook:
        """The window that closes at an instant."""
        return self.clock(instant)

    def whole_from(self) -> int:
        """t0: a landmark window is always complete."""
        return self._t0

    def _open(self, instant: int, last: int) -> WindowLook:
        return WindowLook(self._t0, instant, self._t0, last)


class Ticking:
    """Equally spaced instants, each returned once."""

    def __init__(self, first: int, step: int) -> None:
        self.next, self._step, self._first = first, step, first

    @property
    def passed(self) -> int | None:
        """The last instant that was returned or skipped; ``None`` before the first."""
        return self.next - self._step if self.next > self._first else None

    def up_to(self, limit: int) -> range:
        """The instants up to ``limit`` (ms) that were not returned before."""
        # A range, not a list: a jump of a year with a slide of 1 ms has thirty billion instants.
        instants = range(self.next, limit + 1, self._step)
        self.next += len(instants) * self._step
        return instants


def clock_of(semantics: Semantics, t0: int) -> Ticking | None:
    """The clock that drives reports without closes: periods or time units; ``None`` for element-driven ticks."""
    if semantics.period is not None:
        return Ticking(t0 + semantics.period, semantics.period)
    return Ticking(t0 + semantics.time_unit, semantics.time_unit) if semantics.tick is Tick.TIME else None


def closes_of(window: Window, semantics: Semantics, t0: int) -> Ticking:
    """The closes of a time-based or landmark window."""
    return Ticking(t0 + (window.slide if semantics.partial_head else window.size), window.slide)


def closing(semantics: Semantics) -> bool:
    """Whether closes drive the reports."""
    return Report.WINDOW_CLOSE in semantics.report


def evaluators(queries: Sequence[ContinuousQuery], semantics: Semantics) -> tuple[JoinPool, Sequence[KeptAnswer]]:
    """Evaluators for queries with the same windows and static data, and the pool that they share.

    Contents are evaluated as snapshots if few looks see a triple. ValueError for what is not supported.
    """
    first, empty = queries[0], semantics.empty_aggregate
    names = [f"<{window.name}>" for window in first.windows if window.name is not None]
    begins = _begins(queries, semantics) if closing(semantics) else None
    # Joining each content anew then costs less than keeping joins up to date with triples that nobody sees twice.
    if all(looks_rarely(query, semantics) for query in queries):
        again = any(window.window.size > window.window.slide for window in first.windows)
        contents = SnapshotContents(again, begins=begins)
        return contents, [Snapshots(query.form, contents, empty, names, ranked=True) for query in queries]
    pool = WindowJoins(first.static, stamped=True)
    if begins is not None or _ticks(queries, semantics):
        pool = ColumnJoins(begins)
    common = CommonGroups(pool.pull) if len(queries) > 1 else None
    kept = [_kept(query, pool, empty, names, common) for query in queries]
    pool.over(_graph(first.windows[0]))
    # Static data enter now, so that the first element does not wait for them.
    pool.feeds(None)
    for window in kept:
        window.begin()
    return pool, kept


def _kept(
    query: ContinuousQuery,
    pool: JoinPool,
    empty: EmptyAggregate,
    names: Sequence[Term],
    common: CommonGroups | None,
) -> KeptAnswer:
    """The answer of a query, with the bags that determine it."""
    bags: list[Bag] = []

    def leaf(request: BgpRequest) -> Take:
        bags.append(pool.ask(request))
        return partial(pool.taken, bags[-1])

    answer = KeptAnswer(query.form, leaf, empty, names, ranked=True, common=common)
    # Aggregations may be shared with another query, which then pulls the change out of the leaves first.
    answer.bags = () if answer.tree.grouped else bags
    return answer


def _ticks(queries: Sequence[ContinuousQuery], semantics: Semantics) -> bool:
    """Whether each look at the only window is an element-driven tick at which only changes matter."""
    driven = closing(semantics) or semantics.period is not None or semantics.tick is Tick.TIME
    any_change = isinstance(change_detector(queries, semantics), AnyChange)
    return not driven and any_change and _begins(queries, semantics) is not None


def _begins(queries: Sequence[ContinuousQuery], semantics: Semantics) -> WindowBegins | None:
    """The beginnings of windows, if there is only one window and answers only depend on its content."""
    if queries[0].static or any(reads_time(query.form) for query in queries):
        return None
    if [window.window.kind for window in queries[0].windows] != ["time"]:
        return None
    right_closed = semantics.borders is Borders.OPEN_CLOSED
    return WindowBegins(queries[0].windows[0].window, right_closed=right_closed, partial_head=semantics.partial_head)


def looks_rarely(query: ContinuousQuery, semantics: Semantics) -> bool:
    """Whether there are only closes (or periods), few of which see the same triple, and no other data to join."""
    # Static data would be joined anew at each look.
    if query.static or reads_time(query.form) or any(window.window.kind != "time" for window in query.windows):
        return False
    if closing(semantics):
        step = min(window.window.slide for window in query.windows)
    elif semantics.period is not None:
        step = semantics.period
    else:
        return False
    return max(window.window.size for window in query.windows) <= WHOLE_LOOKS * step


class TimeFrame:
    """A time-based or landmark window; ``arrive`` receives the arrivals of its stream.

    The scope is that of the latest look, (t0, t0) before the first.
    """

    def __init__(self, content: WindowContent, looks: WindowLooks, semantics: Semantics, t0: int) -> None:
        self.content, self.looks, self._closes = content, looks, closing(semantics)
        self.arrive = content.enter
        self.look = WindowLook(t0, t0, t0, t0 - 1)

    @property
    def scope(self) -> tuple[int, int]:
        """The named borders, ms."""
        return self.look.start, self.look.end

    def tick(self, time: int) -> None:
        """Move to ``time`` (ms), before its arrivals enter."""
        self._move(self.looks.tick(time))

    def clock(self, instant: int) -> None:
        """Move to an instant of a clock."""
        self._move(self.looks.clock(instant))

    def close(self, instant: int) -> None:
        """Close the window at an instant."""
        self._move(self.looks.close(instant))

    def forget_before(self, instant: int) -> None:
        """Remove arrivals that no look from an instant (ms) on can see."""
        look = self.looks.close(instant) if self._closes else self.looks.clock(instant)
        self.content.drop(look.first)

    def takes(self, time: int) -> bool:
        """Whether the latest scope includes ``time`` (ms)."""
        return time >= self.look.first

    def whole(self, instant: int) -> bool:
        """Whether the first window is complete at an instant."""
        return instant >= self.looks.whole_from()

    def _move(self, look: WindowLook) -> None:
        self.look = look
        self.content.show()
        self.content.drop(look.first)
        self.content.end(look.last)


class CountFrame:
    """A count-based window: the last ``size`` triples of its stream; it closes after every ``slide``-th."""

    def __init__(self, content: WindowContent, window: Window, semantics: Semantics, t0: int) -> None:
        self.content, self._size, self._slide, self._t0 = content, window.size, window.slide, t0
        self._first = window.slide if semantics.partial_head else window.size
        self._after = 1 if semantics.borders is Borders.CLOSED_OPEN else 0
        self._count = 0

    @property
    def scope(self) -> tuple[int, int]:
        """The times of its oldest and newest triple, as borders, ms."""
        span = self.content.span
        return (self._t0, self._t0) if span is None else (span[0], span[1] + self._after)

    def arrive(self, time: int, triples: Sequence[Triple], until: int | None) -> None:
        """Add triples of its stream."""
        for triple in triples:
            self._count += 1
            self.content.enter(time, (triple,), until)
        self.content.crop(self._size)

    @property
    def closes(self) -> bool:
        """Whether the last triple closes it."""
        # With a size of 4 and a slide of 2 it closes at the 4th, 6th and 8th triple; with partial heads at the 2nd as
        # well.
        return self._count >= self._first and (self._count - self._first) % self._slide == 0

    def tick(self, time: int) -> None:
        """Move to ``time`` (ms)."""
        self.content.end(time)

    def clock(self, instant: int) -> None:
        """Move to an instant of a clock; a half-open scope excludes arrivals at the instant."""
        self.content.end(instant - self._after)

    def close(self, instant: int) -> None:
        """Close the window with a triple of this time (ms)."""
        self.content.show()
        self.content.crop(self._size)
        self.content.end(instant)

    def forget_before(self, _instant: int) -> None:
        """Do nothing: triples leave by number, not by time."""

    def takes(self, _time: int) -> bool:
        """Always true: triples of any time are accepted."""
        return True

    def whole(self, _instant: int) -> bool:
        """Whether the window is full."""
        return self._count >= self._size


Frame: TypeAlias = TimeFrame | CountFrame
"""One window of a query."""


def frames(queries: Sequence[ContinuousQuery], semantics: Semantics, pool: JoinPool, t0: int) -> tuple[Frame, ...]:
    """The windows of queries that share them, each feeding its graph of the evaluator or read by it as a whole.

    Several windows that close independently are evaluated as of their latest closes, so arrivals wait for these.
    """
    windows = queries[0].windows
    kind = BufferedContent if closing(semantics) and len(windows) > 1 else WindowContent
    timed = any(uses_timestamp(query.form) for query in queries)
    names = dict.fromkeys(window.name for window in windows)
    latest = {name: _latest(queries, pool, stamps_graph(name)) if timed else None for name in names}
    frames_ = []
    for window in windows:
        graph = _graph(window)
        content = kind(*pool.feeds(graph), change_detector(queries, semantics), latest[window.name])
        pool.bind(graph, content)
        frames_.append(_frame(window, content, semantics, t0))
    return tuple(frames_)


class ReportInstant:
    """The instant of a report as a fact, which NOW() reads (``query/instants.py``)."""

    def __init__(self, enter: Feed, leave: Feed) -> None:
        self._enter, self._leave = enter, leave
        self._fact: tuple[Triple, ...] = ()

    def move(self, instant: int) -> None:
        """Set the instant (ms) of the next report."""
        self._leave(self._fact)
        self._fact = (now_fact(instant),)
        self._enter(self._fact)


def report_instant(queries: Sequence[ContinuousQuery], pool: JoinPool) -> ReportInstant | None:
    """The instant of reports as a fact; ``None`` if no query reads it."""
    return ReportInstant(*pool.feeds(NOW_GRAPH)) if any(uses_now(query.form) for query in queries) else None


def _latest(queries: Sequence[ContinuousQuery], pool: JoinPool, graph: Term) -> Latest:
    """The time stamps of a graph that queries read."""
    predicates_seen: set[Term] | None = set()
    for query in queries:
        predicates = stamped_predicates(query.form, graph)
        # ``None`` is all predicates, which no other query can add to.
        predicates_seen = None if predicates_seen is None or predicates is None else predicates_seen | predicates
    return Latest(*pool.feeds(graph), predicates_seen, pool.stamps(graph))


def _graph(seen: StreamWindow) -> Term | None:
    """The graph of a window's content."""
    return None if seen.name is None else f"<{seen.name}>"


def _frame(seen: StreamWindow, content: WindowContent, semantics: Semantics, t0: int) -> Frame:
    window = seen.window
    if window.kind == "count":
        return CountFrame(content, window, semantics, t0)
    looks = LandmarkLooks if window.kind == "landmark" else WindowLooks
    return TimeFrame(content, looks(window, semantics, t0), semantics, t0)


Move: TypeAlias = Callable[[int], None]
"""Moves a window to an instant (ms)."""


@dataclass(frozen=True, slots=True)
class Hand:
    """A clock, and what moves at its instants."""

    ticking: Ticking
    moves: tuple[Move, ...]


class Clocks:
    """Several clocks merged; ``next`` is the earliest instant (ms) not returned yet."""

    def __init__(self, hands: Sequence[Hand], due: Due) -> None:
        self._hands = tuple(hands)
        self._last = due is Due.LAST
        self.next = self._earliest()

    @property
    def passed(self) -> int | None:
        """The latest instant that was returned or skipped; ``None`` before the first."""
        return max((at for hand in self._hands if (at := hand.ticking.passed) is not None), default=None)

    def up_to(self, limit: int, still: Callable[[], bool] = lambda: False) -> Iterator[tuple[int, list[Move], bool]]:
        """The distinct instants up to ``limit`` (ms), with what moves then and whether a report may be due.

        Under ``Due.LAST`` only the last instant of a clock may report. As soon as everything is ``still``, the others
        are skipped, and windows move to the last of them. Instants are generated lazily, because a jump in time may
        span billions of them.
        """
        pending = [(hand, hand.ticking.up_to(limit)) for hand in self._hands]
        self.next = self._earliest()
        # A worked example: windows that close each 2 and each 3 ms. Up to 6 the instants are 2, 3, 4 and 6; at 6 both
        # windows move, and there is one report.
        ordered = merge(*(_marked(hand, instants) for hand, instants in pending), key=itemgetter(0))
        for instant, group in groupby(ordered, key=itemgetter(0)):
            # Nothing can change any more, and empty reports are not sent: a gap of a year in the data must not cost a
            # look for each slide in it.
            if still():
                for move, last in [
                    (move, instants[-1]) for hand, instants in pending if instants for move in hand.moves
                ]:
                    move(last)
                return
            turns = list(group)
            moves = [move for _, hand, _ in turns for move in hand.moves]
            yield instant, moves, not self._last or any(last for _, _, last in turns)

    def _earliest(self) -> int:
        return min((hand.ticking.next for hand in self._hands), default=NEVER)


def _marked(hand: Hand, instants: range) -> Iterator[tuple[int, Hand, bool]]:
    """The instants of a clock, marking the last one."""
    final = instants[-1] if instants else 0
    return ((instant, hand, instant == final) for instant in instants)


def clocks(query: ContinuousQuery, frames: Sequence[Frame], semantics: Semantics, t0: int) -> Clocks | None:
    """The closes of a query's windows, or its clock; ``None`` if only elements drive reports."""
    if closing(semantics):
        pairs = zip(query.windows, frames, strict=True)
        hands = [
            Hand(closes_of(window.window, semantics, t0), (frame.close,))
            for window, frame in pairs
            if isinstance(frame, TimeFrame)
        ]
        return Clocks(hands, semantics.due)
    ticking = clock_of(semantics, t0)
    if ticking is None:
        return None
    # ``due`` is about closes; a clock's instants are all due.
    return Clocks([Hand(ticking, tuple(frame.clock for frame in frames))], Due.ALL)
