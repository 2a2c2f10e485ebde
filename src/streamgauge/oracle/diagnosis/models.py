"""The nouns of the diagnosis: a faulty engine as a value (``Case``), and what may be wrong with it."""

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
"""The name of the extra window that holds what a faulty engine never evicts."""


@dataclass(frozen=True, slots=True)
class Said:
    """One report of a faulty engine: the instant (ms) it speaks of, its bag of rows, and the report that was due."""

    instant: int
    rows: Rows
    due: DueReport


class Stream:
    """The elements of a run, compared by identity so that what was computed over them can be remembered."""

    def __init__(self, elements: Iterable[StreamElement]) -> None:
        self.elements = tuple(elements)
        self.times = tuple(sorted({element.time for element in self.elements}))
        self.triples = sum(len(element.added) for element in self.elements)

    @property
    def last(self) -> int:
        """The latest time, ms; 0 without elements."""
        return self.times[-1] if self.times else 0


Scoping: TypeAlias = Callable[["Case", DueReport], DueReport]
"""The contents that a fault puts in the place of a due report's windows."""

ContentRule: TypeAlias = Callable[[Sequence[Arrival], Callable[[Arrival], int]], Iterable[Arrival]]
"""The part of a window's arrivals (by rank) that a faulty engine keeps; told each arrival's element by a number."""

Gate: TypeAlias = Callable[[Sequence[Rows]], bool]
"""Whether an instant is evaluated, told the matches of the WHERE part at all instants so far, the last one included."""

Telling: TypeAlias = Callable[[tuple[Said, ...]], tuple[Said, ...]]


@dataclass(frozen=True, eq=False)
class Case:
    """A faulty engine: what it answers, under which semantics, on which stream, from t0 on, up to a time (ms).

    ``scopings`` move the borders of windows, ``content_rules`` leave out some of what lies between them, ``keeps`` adds
    a window KEPT that evicts nothing, ``gate`` skips instants, ``row_rules`` change answers before R2S, ``tellings``
    the sequence of reports after it.
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
    tellings: tuple[Telling, ...] = ()

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
        return replace(self, scopings=(*self.scopings, scoping))

    def holding(self, rule: ContentRule) -> "Case":
        """The case with a rule for what windows hold."""
        return replace(self, content_rules=(*self.content_rules, rule))

    def answering(self, rule: Callable[[Rows], Rows]) -> "Case":
        """The case with a rule for the rows of answers."""
        return replace(self, row_rules=(*self.row_rules, rule))


@dataclass(frozen=True, eq=False)
class Fault:
    """One thing that a whole run may do differently; two of one ``family`` do not combine.

    ``t0`` (ms) is set by a fault that fixes where the windows start, so that no candidate needs to be searched.
    A ``fine`` fault is one of many values of a parameter: it is tried when the others need more free choices.
    ``choice`` is the bits that name its values, where these were found in the answers and not proposed one by one.
    """

    part: Part
    family: str
    change: Callable[[Case], Case]
    t0: int | None = None
    fine: bool = False
    choice: float = 0.0


class Taking(Protocol):
    """The recorded answers, as far as slips need them."""

    @property
    def count(self) -> int:
        """How many answers were recorded."""

    def take(self, saying: Said, at: int) -> int | None:
        """The position after the answers that say exactly this report from a position on, ``None`` if they do not."""

    @property
    def by_row(self) -> bool:
        """Whether a report is one answer per row."""

    def named(self, saying: Said, at: int) -> bool:
        """Whether an answer names the report's instant, or none."""

    def rows(self, at: int) -> Rows:
        """The rows of an answer."""

    def instant(self, at: int) -> int | None:
        """The instant (ms) that an answer names."""


Move: TypeAlias = tuple[int, int]
"""(reports said, answers explained) by one slip."""


@dataclass(frozen=True, slots=True)
class ExplanationPlace:
    """The state of an explanation: report ``i`` of ``told`` is next to be said, answer ``j`` next to be explained.

    ``move`` is the move made from here, once it is known.
    """

    i: int
    j: int
    said: Said
    told: Sequence[Said]
    recorded: Taking
    move: Move = (0, 0)


def scattered(places: Sequence[ExplanationPlace]) -> float:
    """The bits that name the reports at which a slip happened, each by itself."""
    return sum(log2(max(2, len(place.told))) for place in places)


@dataclass(frozen=True, eq=False)
class Slip:
    """Something that goes wrong now and then: ``moves`` from a place, told to people by the positions of its reports.

    It is claimed only while it happens in fewer than half of the reports, where ``half`` says so. ``bits`` is the
    length of a description of the places and of the choices made there.
    """

    family: str
    moves: Callable[[ExplanationPlace], Iterable[Move]]
    tell: Callable[[Sequence[ExplanationPlace]], Part]
    half: bool = True
    bits: Callable[[Sequence[ExplanationPlace]], float] = scattered


Carry: TypeAlias = Hashable

Emissions: TypeAlias = Callable[[int, Carry], Iterable[tuple[int, Carry, Said | None]]]
"""The choices at a due report from a carried state: (cost, next state, report or ``None``)."""


@dataclass(frozen=True, slots=True)
class Swaying:
    """A case whose reports may each come out in several ways: as declared in ``told``, otherwise by ``emissions``.

    ``choices`` counts the ways that are not declared, over all reports.
    """

    told: tuple[Said, ...]
    emissions: Emissions
    start: Carry
    choices: int


class Simulation(Protocol):
    """The reports of cases, as a sway reads them."""

    def candidates(self, case: Case) -> tuple[DueReport, ...]:
        """The reports that may be due, whatever their content."""
        ...

    def seen(self, case: Case, last: int) -> int:
        """How many arrivals there are up to a time (ms)."""
        ...

    def rows_at(self, case: Case) -> Callable[[DueReport], Rows | None]:
        """The answer over what the windows of a due report hold; ``None`` where nothing is there and it had to be."""
        ...


@dataclass(frozen=True, eq=False)
class Sway:
    """Something that moves a little at every report, at a cost when it does; claimed only below half of the reports."""

    family: str
    sway: Callable[[Simulation, Case], Swaying | None]
    tell: Callable[[int, int], Part]


Model: TypeAlias = tuple[Fault | Slip | Sway, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """The evidence that faults are proposed from: the declared case at its first t0, and the recorded answers."""

    case: Case
    recorded: Taking
    variables: tuple[str, ...]

    def all_rows(self) -> Iterable[Row]:
        """Every recorded row."""
        return (row for at in range(self.recorded.count) for row in self.recorded.rows(at))


LISTED = 5


def ordinal(number: int) -> str:
    """A number as a place in a row: ``2nd``, ``11th``, ``23rd``."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 // 10 != 1 else "th"
    return f"{number}{ending}"


def listed(places: Sequence[ExplanationPlace], offset: int = 0) -> str:
    """The reports at some places, by their instants."""
    instants = [place.told[place.i + offset].instant for place in places[:LISTED] if place.i + offset < len(place.told)]
    more = f" and {len(places) - LISTED:,} more" if len(places) > LISTED else ""
    return "the report" + ("s" if len(places) > 1 else "") + f" at {', '.join(f'{at:,}' for at in instants)} ms" + more


def telling(name: str, sentence: str) -> Callable[[Sequence[ExplanationPlace]], Part]:
    """How a slip is told: ``{count}`` of both texts is as in "2 reports", ``{listed}`` as ``listed`` has them."""

    def tell(places: Sequence[ExplanationPlace]) -> Part:
        words = {"count": counted(len(places), "report"), "listed": listed(places)}
        return Part(name.format(**words), sentence.format(**words))

    return tell


def same(place: ExplanationPlace, rows: Rows) -> int | None:
    """The position after the answers that say these rows for the report of a place, ``None`` if they do not."""
    return place.recorded.take(replace(place.said, rows=rows), place.j)
