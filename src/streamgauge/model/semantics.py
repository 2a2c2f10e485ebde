"""Semantics: everything that an engine may choose, as data (SECRET's scope, content, report, tick; CQL's R2S)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Report(StrEnum):
    """A report strategy (SECRET; CSRBench, section 3); a Semantics value holds a conjunction of them."""

    WINDOW_CLOSE = "window close"
    CONTENT_CHANGE = "content change"
    NON_EMPTY = "non-empty content"
    PERIODIC = "periodic"
    EXPIRATION = "expiration"  # when the first fact of the last report's content ends (Taelman et al., ESWC 2016)


class Tick(StrEnum):
    """The moments at which arrived triples become visible to the window."""

    TUPLE = "tuple"  # triple by triple, in order, within an element
    ELEMENT = "element"  # element by element, in sequence order
    BATCH = "batch"  # once per distinct application time
    TIME = "time"  # every time unit


class R2S(StrEnum):
    """The relation-to-stream operator (CQL), or both differences in one answer (semantic publish/subscribe)."""

    RSTREAM = "Rstream"
    ISTREAM = "Istream"
    DSTREAM = "Dstream"
    CHANGES = "Istream and Dstream"


CQL: Final = (R2S.RSTREAM, R2S.ISTREAM, R2S.DSTREAM)
"""The operators that have a keyword, each of which streams one bag."""


class Borders(StrEnum):
    """Which ends belong to a window."""

    CLOSED_OPEN = "[o, c)"
    OPEN_CLOSED = "(o, c]"
    CLOSED = "[o, c]"


class Scope(StrEnum):
    """How the scope of a content report moves: in slides, or as a pure RANGE back from the instant."""

    SLIDES = "slides"
    RANGE = "range"


class Origin(StrEnum):
    """The origin of t0, the start of the first window."""

    FIXED = "fixed"  # the value of Semantics.t0
    FIRST = "first element"  # its time, floored to the time unit
    SEARCH = "search"  # from Semantics.t0 to t0 + size, both ends, stepping by the time unit


class Clock(StrEnum):
    """Which time stamps an element for the window."""

    APPLICATION = "application"
    ARRIVAL = "arrival"  # when the engine reads it
    PUT = "put"  # when it is handed to the engine; the harness knows both as the end of the hand-over


class Counting(StrEnum):
    """Whether repeated rows count: bag or set semantics."""

    SET = "set"
    BAG = "bag"
    UPDATES = "updates"  # each element is matched alone, and the answer has the rows of the newest one


class Grain(StrEnum):
    """The content of one answer."""

    REPORT = "report"
    ROW = "row"


class EmptyAggregate(StrEnum):
    """The value of an aggregate without GROUP BY when no solution matched."""

    SPARQL = "as SPARQL"  # COUNT, SUM, AVG 0; the others unbound
    UNBOUND = "unbound"
    EMPTY_STRING = "empty string"
    NO_ROW = "no row"


class StaticData(StrEnum):
    """Where static data are matched by a query whose one window clause holds all of its patterns."""

    OUTSIDE = "outside windows"  # RSP-QL: a window clause matches the stream only, patterns outside it static data
    BESIDE = "beside the stream"  # C-SPARQL, CQELS: then stream and static data are one graph


class Changes(StrEnum):
    """Which changes of the content count for the content-change strategy."""

    BOTH = "arrivals and evictions"
    ARRIVALS = "arrivals only"


class Due(StrEnum):
    """Which of several windows that are due at one instant are reported."""

    ALL = "all"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Semantics:
    """One engine's operational semantics; times in ms. ``sources`` cites the source of each field's value.

    Reports at instants before ``since`` are evaluated but not sent: a subscriber only gets later ones.
    """

    name: str
    report: frozenset[Report] = frozenset({Report.WINDOW_CLOSE})
    tick: Tick = Tick.TUPLE
    r2s: R2S = R2S.RSTREAM
    r2s_able: frozenset[R2S] = frozenset(CQL)
    notify_empty: bool = True
    origin: Origin = Origin.FIXED
    t0: int = 0
    borders: Borders = Borders.CLOSED_OPEN
    scope: Scope = Scope.SLIDES
    partial_head: bool = False
    due: Due = Due.ALL
    changes: Changes = Changes.BOTH
    period: int | None = None
    time_unit: int = 1
    lateness: int | None = None
    clock: Clock = Clock.APPLICATION
    content: Counting = Counting.SET
    answers: Counting = Counting.BAG
    grain: Grain = Grain.REPORT
    empty_aggregate: EmptyAggregate = EmptyAggregate.SPARQL
    since: int | None = None
    static_data: StaticData = StaticData.OUTSIDE
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, hash=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse values that no window can follow."""
        # Non-empty content only restricts other strategies: by itself it says nothing of when reports are due.
        if self.report <= {Report.NON_EMPTY}:
            raise ValueError(f"semantics {self.name}: report needs window close, a change, a period or an expiration")
        # Under expiration the period is the wait when no fact ends.
        if bool(self.report & {Report.PERIODIC, Report.EXPIRATION}) != (self.period is not None):
            raise ValueError(f"semantics {self.name}: period belongs to the strategies periodic and expiration")
        if Report.EXPIRATION in self.report and self.report & {Report.PERIODIC, Report.WINDOW_CLOSE}:
            raise ValueError(f"semantics {self.name}: expiration excludes window close and periodic: use one of them")
        if self.time_unit < 1 or (self.period is not None and self.period < 1):
            raise ValueError(f"semantics {self.name}: time_unit and period are at least 1 ms")
        if self.answers is Counting.UPDATES:
            raise ValueError(f"semantics {self.name}: answers are compared as a set or a bag, content may be updates")
        if self.content is Counting.UPDATES and not self._updated():
            raise ValueError(
                f"semantics {self.name}: updates (content) are reported per element: report is content change, "
                "tick is element, changes is arrivals only, partial_head is true, and there is no lateness"
            )

    def _updated(self) -> bool:
        change = self.report == {Report.CONTENT_CHANGE} and self.changes is Changes.ARRIVALS
        return change and self.tick is Tick.ELEMENT and self.partial_head and self.lateness is None
