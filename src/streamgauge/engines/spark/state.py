"""The state of the engine after each micro-batch: one JSON file per batch, written atomically.

A batch that is repeated after a crash starts from the record of the previous batch, so it has the same effect.
``Closes`` computes the reports that are due when event time reaches an instant, and the contents of their windows.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from heapq import merge
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from streamgauge.formats.run import read_json, write_json
from streamgauge.incremental.drivers.frames import (
    LandmarkLooks,
    Ticking,
    WindowLook,
    WindowLooks,
    clock_of,
    closes_of,
    closing,
)
from streamgauge.model.query import ContinuousQuery, StreamWindow
from streamgauge.model.report import DueReport, View
from streamgauge.model.semantics import Borders, Semantics
from streamgauge.semantics.refusal import RefusedError

EVERY = 1 << 62
"""A view's ``seen``: all elements within its times."""

MAX_REPORTS_DUE = 100_000
"""Maximum number of reports that one step may make due; more are refused."""


class GapError(RefusedError):
    """Event time jumped so far that too many reports would be due."""


@dataclass(frozen=True)
class Closes:
    """The instants at which a query reports when its first window starts at ``t0`` (ms), and its windows at each."""

    query: ContinuousQuery
    semantics: Semantics
    t0: int

    def between(self, after: int | None, upto: int) -> tuple[DueReport, ...]:
        """The reports due later than ``after`` (ms; ``None``: from the start) and up to ``upto``; GapError."""
        return tuple(
            DueReport(instant, tuple(self._view(window, instant) for window in self.query.windows))
            for instant in self._instants(after, upto)
            if self._reports(instant)
        )

    def after(self, passed: int | None) -> int:
        """The earliest instant (ms) after ``passed`` at which a clock ticks."""
        return min(t.next if passed is None else self._next(t, step, passed) for t, step in self._clocks())

    def come_to(self, time: int) -> int:
        """The latest instant that is due after an element at ``time`` (ms), which others at that time may follow."""
        return time if self.half_open else time - 1

    def steps(self) -> list[tuple[int, int]]:
        """First instant (ms) and step of each clock."""
        return [(ticking.next, step) for ticking, step in self._clocks()]

    @property
    def half_open(self) -> bool:
        """Whether a window that closes at an instant excludes elements at that instant."""
        return self.semantics.borders is Borders.CLOSED_OPEN

    def wanted_from(self, after: int) -> int:
        """The earliest time (ms) within the windows of reports later than ``after``."""
        nexts = [self._next(ticking, step, after) for ticking, step in self._clocks()]
        if not closing(self.semantics):
            return min(self._looks(window).clock(at).first for window in self.query.windows for at in nexts)
        own = zip(self.query.windows, nexts, strict=True)
        latest = (view.first for window in self.query.windows for view in [self._view(window, after)])
        return min([*(self._looks(window).close(at).first for window, at in own), *self._shown(latest)])

    def last_holding(self, time: int) -> int:
        """The last instant at which some window still contains an element at ``time`` (ms)."""
        reach = time if self.half_open else time - (self.semantics.borders is Borders.OPEN_CLOSED)
        instants = [self._last_of(window, ticking, step, reach) for window, (ticking, step) in self._by_window()]
        return max(instants)

    def _shown(self, latest: Iterator[int]) -> list[int]:
        """The starts in ``latest`` if there are several windows, since each is read again when another one closes."""
        return list(latest) if len(self.query.windows) > 1 else []

    def _last_of(self, window: StreamWindow, ticking: Ticking, step: int, reach: int) -> int:
        holding = step if window.window.kind == "landmark" else window.window.size
        # A window that closes at most its size after the element still contains it; the last such close is a tick.
        limit = max(ticking.next, reach + holding)
        return limit - (limit - ticking.next) % step

    def _by_window(self) -> list[tuple[StreamWindow, tuple[Ticking, int]]]:
        clocks = self._clocks()
        return list(zip(self.query.windows, clocks * (len(self.query.windows) // len(clocks)), strict=True))

    def _clocks(self) -> list[tuple[Ticking, int]]:
        """A clock for each window's closes, or the one that drives the reports."""
        if closing(self.semantics):
            return [
                (closes_of(window.window, self.semantics, self.t0), window.window.slide)
                for window in self.query.windows
            ]
        ticking = clock_of(self.semantics, self.t0)
        assert ticking is not None
        return [(ticking, self.semantics.period or self.semantics.time_unit)]

    def _next(self, ticking: Ticking, step: int, after: int) -> int:
        # Worked example: ticks at 10, 15, 20, ...: after 17 comes 17 + 5 - (17 - 10) % 5 = 20, and after 15 also 20.
        return ticking.next if after < ticking.next else after + step - (after - ticking.next) % step

    def _instants(self, after: int | None, upto: int) -> Iterator[int]:
        ranges = []
        for ticking, step in self._clocks():
            first = ticking.next if after is None else self._next(ticking, step, after)
            # A ``range`` knows its length without its items, so that a jump of years is refused before anything is
            # computed.
            ranges.append(range(first, upto + 1, step))
        if (total := sum(map(len, ranges))) > MAX_REPORTS_DUE:
            raise GapError(
                f"time jumps to {upto} ms, which makes {total:,} reports due, more than {MAX_REPORTS_DUE:,}: "
                "start nearer to the stream (another t0) or take a larger slide"
            )
        # Windows that close at the same instant are one report.
        return (instant for instant, _ in groupby(merge(*ranges)))

    def _reports(self, instant: int) -> bool:
        semantics = self.semantics
        if closing(semantics):
            # A period is counted from t0, at which nothing has been seen yet.
            since = instant - self.t0
            return semantics.period is None or (since > 0 and since % semantics.period == 0)
        whole = any(instant >= self._looks(window).whole_from() for window in self.query.windows)
        return instant >= self.t0 and (semantics.partial_head or whole)

    def _view(self, window: StreamWindow, instant: int) -> View:
        looks = self._looks(window)
        if not closing(self.semantics):
            return _seen(looks.clock(instant))
        first = closes_of(window.window, self.semantics, self.t0).next
        if instant < first:
            return View(self.t0, self.t0, self.t0, self.t0 - 1, 0)
        return _seen(looks.close(instant - (instant - first) % window.window.slide))

    def _looks(self, window: StreamWindow) -> WindowLooks:
        kind = LandmarkLooks if window.window.kind == "landmark" else WindowLooks
        return kind(window.window, self.semantics, self.t0)


def _seen(look: WindowLook) -> View:
    return View(look.start, look.end, look.first, look.last, EVERY)


KEPT_BATCHES = 100
"""Number of batches whose records are kept, the same as Spark's own."""


@dataclass(frozen=True, slots=True)
class Pane:
    """Parquet files with rows of one batch, the times (ms) that they span, and statistics of them.

    ``counted`` has the number of triples of each predicate of the query; ``ends``: elements may have an end; ``stream``
    is the only stream of all rows, if so; ``rows`` counts triples, including late ones.
    """

    batch: int
    first: int
    last: int
    files: tuple[str, ...]
    counted: tuple[int, ...] = ()
    ends: bool = False
    stream: str | None = None
    rows: int = 0

    def about(self, first: int, last: int) -> float:
        """Estimated number of its triples between two times (ms, both included)."""
        # An even spread over the pane's time is assumed, as only its bounds and its size are known.
        inside = min(last, self.last) - max(first, self.first) + 1
        return self.rows * max(0, inside) / (self.last - self.first + 1)


@dataclass(frozen=True, slots=True)
class State:
    """The state after a batch; times in ms.

    Reports are sent from ``since`` on and done up to ``passed``; ``greatest`` is the greatest time so far. ``last`` is
    the last report, with which Istream and Dstream compare; ``sent``, ``rows`` and ``late`` count reports, triples and
    elements since the start; ``next`` is the lowest sequence number still to come, ``files`` the number of files read.
    """

    batch: int = -1
    t0: int | None = None
    since: int | None = None
    greatest: int | None = None
    passed: int | None = None
    last: DueReport | None = None
    sent: int = 0
    rows: int = 0
    late: int = 0
    next: int = 0
    files: int = 0
    panes: tuple[Pane, ...] = ()


_FORMAT: Final = "streamgauge batch"


@dataclass(frozen=True)
class StateLog:
    """The state records in a checkpoint folder."""

    folder: Path

    def before(self, batch: int) -> State:
        """The state at the start of batch ``batch``: after the previous batch, or after its drain if there was one."""
        # The drain of a batch comes after it, so its record is the later one.
        for name in (f"{batch - 1:06}-drained.json", f"{batch - 1:06}.json"):
            if (file := self.folder / name).exists():
                return _state(read_json(file, _FORMAT, 1)["state"])
        if batch > 0:
            raise FileNotFoundError(
                2, "the record of the previous batch is missing: the checkpoint is damaged", str(file)
            )
        return State()

    def latest(self) -> State:
        """The state after the last batch in the folder; the initial one if there is none."""
        numbers = [int(file.stem.removesuffix("-drained")) for file in self.folder.glob("[-0-9]*.json")]
        return self.before(max(numbers) + 1) if numbers else State()

    def commit(self, state: State, name: str = "") -> None:
        """Store the state after a batch; RunError if the disk is full."""
        file = self.folder / f"{state.batch:06}{name}.json"
        write_json(file, {"format": _FORMAT, "version": 1, "state": asdict(state)})
        for old in (f"{state.batch - KEPT_BATCHES:06}.json", f"{state.batch - KEPT_BATCHES:06}-drained.json"):
            (self.folder / old).unlink(missing_ok=True)


def forget(state: State, wanted: int) -> State:
    """The state without the panes that end before ``wanted`` (ms)."""
    return replace(state, panes=tuple(pane for pane in state.panes if pane.last >= wanted))


def _state(data: dict[str, Any]) -> State:
    last = data.pop("last")
    panes = tuple(
        Pane(**(pane | {name: tuple(pane[name]) for name in ("files", "counted")})) for pane in data.pop("panes")
    )
    report = last and DueReport(last["instant"], tuple(View(**view) for view in last["views"]))
    return State(**data, last=report, panes=panes)
