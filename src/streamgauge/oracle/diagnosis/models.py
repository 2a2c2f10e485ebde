"""The nouns of the diagnosis: a faulty engine as a value (``Case``), and its possible faults.

A ``Fault`` changes the whole run, a ``Slip`` happens at a few reports, a ``Sway`` is a small choice at every report.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import Protocol, TypeAlias

from streamgauge.model.element import StreamElement
from streamgauge.model.phrases import counted
from streamgauge.model.query import ContinuousQuery, StreamWindow
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Row
from streamgauge.model.verdict import Part
from streamgauge.semantics.arrivals import Arrival

Rows: TypeAlias = tuple[Row, ...]

KEPT = "urn:streamgauge:kept"
"""The name of the extra window of a case whose engine never evicts."""


@dataclass(frozen=True, slots=True)
class ModelReport:
    """One report of a faulty engine: the instant (ms) that it names, its bag of rows, and the report that was due."""

    instant: int
    rows: Rows
    due: DueReport


class Stream:
    """The elements of a run; compared by identity, as keys of caches."""

    def __init__(self, elements: Iterable[StreamElement]) -> None:
        self.elements = tuple(elements)
        self.times = tuple(sorted({element.time for element in self.elements}))
        self.triples = sum(len(element.added) for element in self.elements)

    @property
    def last(self) -> int:
        """The latest time, ms; 0 without elements."""
        return self.times[-1] if self.times else 0


Scoping: TypeAlias = Callable[["Case", DueReport], DueReport]
"""Replaces the views of a due report by those that a faulty engine evaluates."""

ContentRule: TypeAlias = Callable[[Sequence[Arrival], Callable[[Arrival], int]], Iterable[Arrival]]
"""Selects the arrivals (ascending by rank) that a faulty engine keeps; the function numbers each arrival's element."""

Gate: TypeAlias = Callable[[Sequence[Rows]], bool]
"""Whether an instant is evaluated, from the matches of the WHERE pattern at all instants up to and including it."""

ReportRule: TypeAlias = Callable[[tuple[ModelReport, ...]], tuple[ModelReport, ...]]
"""Changes the sequence of reports after R2S."""


@dataclass(frozen=True, eq=False)
class Case:
    """A faulty engine: its query, semantics, stream, horizon (ms) and t0 (ms), and its deviations from the definition.

    ``scopings`` move the borders of windows, ``content_rules`` omit part of the content, ``keeps`` adds a window KEPT
    that never evicts, ``gate`` skips instants, ``row_rules`` change answers before R2S, ``report_rules`` the reports
    after it.
    """

    query: ContinuousQuery
    semantics: Semantics
    stream: Stream
    advanced_to: int
    t0: int
    scopings: tuple[Scoping, ...] = ()
    content_rules: tuple[ContentRule, ...] = ()
    keeps: StreamWindow | None = None
    gate: Gate | None = None
    row_rules: tuple[Callable[[Rows], Rows], ...] = ()
    report_rules: tuple[ReportRule, ...] = ()

    def under(self, **fields: object) -> "Case":
        """The same case with other fields of its semantics."""
        return replace(self, semantics=replace(self.semantics, **fields))  # type: ignore[arg-type]

    def asking(self, query: ContinuousQuery) -> "Case":
        """The same case with another query."""
        return replace(self, query=query)

    def on(self, stream: Stream) -> "Case":
        """The same case on another stream."""
        return replace(self, stream=stream)

    def scoped(self, scoping: Scoping) -> "Case":
        """The case with borders moved."""
        # Appended, as rules are applied in the order in which faults were combined.
        return replace(self, scopings=(*self.scopings, scoping))

    def holding(self, rule: ContentRule) -> "Case":
        """The case with a rule for what windows hold."""
        return replace(self, content_rules=(*self.content_rules, rule))

    def answering(self, rule: Callable[[Rows], Rows]) -> "Case":
        """The case with a rule for the rows of answers."""
        return replace(self, row_rules=(*self.row_rules, rule))


@dataclass(frozen=True, eq=False)
class Fault:
    """A deviation of the whole run; two of the same ``family``, by default their kind, are never combined.

    ``t0`` (ms) is set by a fault that fixes where the windows start, so that no candidates are searched. A ``fine``
    fault is one of many values of a parameter, tried only if it could be the shorter description. ``choice`` is the
    length in bits of values that were read from the answers rather than proposed one by one.
    """

    part: Part
    change: Callable[[Case], Case]
    t0: int | None = None
    fine: bool = False
    choice: float = 0.0
    family: str = ""


class Taking(Protocol):
    """The recorded answers, as far as slips need them."""

    @property
    def count(self) -> int:
        """How many answers were recorded."""

    def take(self, report: ModelReport, at: int) -> int | None:
        """The position after the answers that say exactly this report from a position on, ``None`` if they do not."""

    @property
    def by_row(self) -> bool:
        """Whether a report is one answer per row."""

    def named(self, report: ModelReport, at: int) -> bool:
        """Whether an answer names the report's instant, or none."""

    def rows(self, at: int) -> Rows:
        """The rows of an answer."""

    def instant(self, at: int) -> int | None:
        """The instant (ms) that an answer names."""


Move: TypeAlias = tuple[int, int]
"""(reports used, answers explained) by one slip."""


@dataclass(frozen=True, slots=True)
class ExplanationPlace:
    """A state of an explanation: report ``i`` of ``reports`` is next to be used, answer ``j`` next to be explained.

    ``report`` is report ``i`` as the model emits it; ``move`` is the move made from here, once chosen.
    """

    i: int
    j: int
    report: ModelReport
    reports: Sequence[ModelReport]
    recorded: Taking
    move: Move = (0, 0)


def scattered(places: Sequence[ExplanationPlace]) -> float:
    """The bits that name the reports at which a slip happened, independently of each other."""
    # A place costs a bit at least, even in a run of a single report.
    return sum(log2(max(2, len(place.reports))) for place in places)


@dataclass(frozen=True, eq=False)
class Slip:
    """A deviation at some reports: its possible ``moves`` from a place, and a description of where it happened.

    With ``half`` it is claimed only if it happens in fewer than half of the reports. ``bits`` is the length of a
    description of the places and of the choices made there.
    """

    moves: Callable[[ExplanationPlace], Iterable[Move]]
    describe: Callable[[Sequence[ExplanationPlace]], Part]
    half: bool = True
    bits: Callable[[Sequence[ExplanationPlace]], float] = scattered


Carry: TypeAlias = Hashable
"""State that a sway carries from one report to the next."""

Emissions: TypeAlias = Callable[[int, Carry], Iterable[tuple[int, Carry, ModelReport | None]]]
"""The choices at a due report from a carried state: (cost, next state, report or ``None``)."""


@dataclass(frozen=True, slots=True)
class Swaying:
    """A case with several possible values of each report: the declared ones, and all of them as ``emissions``.

    ``choices`` counts the values that are not declared, over all reports.
    """

    reports: tuple[ModelReport, ...]
    emissions: Emissions
    start: Carry
    choices: int


class Simulation(Protocol):
    """The reports of cases, as a sway reads them."""

    def candidates(self, case: Case) -> tuple[DueReport, ...]:
        """The reports that may be due, whatever their content."""

    def seen(self, case: Case, last: int) -> int:
        """The number of arrivals up to a time (ms)."""

    def rows_at(self, case: Case) -> Callable[[DueReport], Rows | None]:
        """The answer over what the windows of a due report hold; ``None`` where nothing is there and it had to be."""


@dataclass(frozen=True, eq=False)
class Sway:
    """A small choice at every report, which costs when it is not the declared one.

    Claimed below half of the reports.
    """

    sway: Callable[[Simulation, Case], Swaying | None]
    describe: Callable[[int, int], Part]


Model: TypeAlias = tuple[Fault | Slip | Sway, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """The evidence from which faults are proposed: the declared case at its first t0, and the recorded answers."""

    case: Case
    recorded: Taking
    variables: tuple[str, ...]

    def all_rows(self) -> Iterable[Row]:
        """All recorded rows, of all reports."""
        return (row for at in range(self.recorded.count) for row in self.recorded.rows(at))


MAX_LISTED = 5
"""Reports whose instants a sentence lists."""


def ordinal(number: int) -> str:
    """An ordinal in figures: ``2nd``, ``11th``, ``23rd``."""
    # 11, 12 and 13, also 111, have "th": the tens digit 1 overrides the last one.
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 // 10 != 1 else "th"
    return f"{number}{ending}"


def listed(places: Sequence[ExplanationPlace], offset: int = 0) -> str:
    """The reports at these places as a noun phrase with their instants."""
    instants = [
        place.reports[place.i + offset].instant
        for place in places[:MAX_LISTED]
        if place.i + offset < len(place.reports)
    ]
    more = f" and {len(places) - MAX_LISTED:,} more" if len(places) > MAX_LISTED else ""
    return "the report" + ("s" if len(places) > 1 else "") + f" at {', '.join(f'{at:,}' for at in instants)} ms" + more


def description(name: str, sentence: str) -> Callable[[Sequence[ExplanationPlace]], Part]:
    """A slip's ``describe``: fills ``{count}`` ("2 reports") and ``{listed}`` (``listed``) into both texts."""

    def describe(places: Sequence[ExplanationPlace]) -> Part:
        words = {"count": counted(len(places), "report"), "listed": listed(places)}
        return Part(name.format(**words), sentence.format(**words))

    return describe


def same(place: ExplanationPlace, rows: Rows) -> int | None:
    """The position after the answers that give these rows for the report of a place; ``None`` if they do not."""
    return place.recorded.take(replace(place.report, rows=rows), place.j)
