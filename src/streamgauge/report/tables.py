"""The tables of the page: one line per run, one per judged report, and the rows that make a report wrong."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from streamgauge.model.counts import counted
from streamgauge.model.run import RunHeader
from streamgauge.model.terms import XSD, Row, Term
from streamgauge.model.verdict import Judgement, WindowVerdict
from streamgauge.report.findings import fitted
from streamgauge.report.numbers import NOTHING, duration, interval, moment, percent
from streamgauge.report.series import Judged, Series, delay_of, median_delay, state

LISTED = 1500  # judged reports in all tables together
WITNESSES = 20  # missing rows, and as many surplus rows, of one report
CELLS = 8000  # of missing and surplus rows, in all tables together
LETTERS = 200  # of one term

_PREFIX = re.compile(r"PREFIX\s+([\w.-]*):\s*<([^>\s]+)>", re.IGNORECASE)


@dataclass(frozen=True)
class Summary:
    """One run in the summary table."""

    label: str
    index: int
    judgement: str
    cells: tuple[str, ...]
    failure: str | None


SUMMARY_HEADINGS = (
    "Precision",
    "Recall",
    "Reports",
    "Missed",
    "Surplus",
    "Late",
    "Median delay",
    "Longest delay",
    "Last answer after start",
)


def summary(series: Sequence[Series]) -> list[Summary]:
    """One line per run, repetitions numbered where there are several."""
    return [_summary(one, judged) for one in series for judged in one.runs]


def named(one: Series, header: RunHeader) -> str:
    """The name of a run: its series, and its repetition when there are several."""
    again = one.repetition(header)
    return f"{one.label}, {again}" if again else one.label


def _summary(one: Series, judged: Judged) -> Summary:
    run, verdict = judged
    judged_at_all = bool(verdict.windows) or verdict.judgement is not Judgement.UNKNOWN
    cells = (
        percent(verdict.precision if judged_at_all else None),
        percent(verdict.recall if judged_at_all else None),
        f"{len(verdict.windows):,}",
        f"{verdict.missed:,}",
        f"{verdict.surplus:,}",
        f"{verdict.late:,}",
        duration(median_delay(verdict.windows)),
        duration(verdict.max_delay),
        duration(verdict.last_answer),
    )
    return Summary(named(one, run.header), one.index, verdict.judgement.value, cells, run.header.failure)


@dataclass(frozen=True)
class Witness:
    """Rows of one side of a wrong report, shortened; ``rest`` counts those not shown."""

    side: str
    rows: tuple[tuple[str, ...], ...]
    rest: int
    total: int


@dataclass(frozen=True)
class Line:
    """One judged report in its table."""

    state: str
    cells: tuple[str, ...]
    heading: str
    witnesses: tuple[Witness, ...]

    @property
    def told(self) -> str:
        """How many rows are missing and surplus, in words."""
        counts = ", ".join(f"{side.total:,} {side.side}" for side in self.witnesses)
        return f"{counts} {'row' if sum(side.total for side in self.witnesses) == 1 else 'rows'}"


@dataclass(frozen=True)
class WindowTable:
    """The judged reports of one run, at most so many; ``note`` says which."""

    name: str
    summary: str
    note: str
    variables: tuple[str, ...]
    lines: tuple[Line, ...]


WINDOW_HEADINGS = (
    "Borders",
    "Due at",
    "Precision",
    "Recall",
    "Expected",
    "Received",
    "Triples in window",
    "Delay",
    "Undecided",
    "Fits best",
)


def window_headings(series: Sequence[Series]) -> tuple[str, ...]:
    """The columns of every window table: the last two only where a run has something in them."""
    return tuple(heading for heading, shown in zip(WINDOW_HEADINGS, _shown(series), strict=True) if shown)


def _shown(series: Sequence[Series]) -> tuple[bool, ...]:
    windows = [window for one in series for _, verdict in one.runs for window in verdict.windows]
    doubts = any(window.undecided for window in windows)
    borders = any(window.borders is not None for window in windows)
    return (*(True,) * (len(WINDOW_HEADINGS) - 2), doubts, borders)


def window_tables(series: Sequence[Series]) -> list[WindowTable]:
    """A table per run that has judged reports; long runs show those that are not right first."""
    runs = [(one, judged) for one in series for judged in one.runs if judged[1].windows]
    limit = max(10, min(200, LISTED // max(1, len(runs))))
    wrong = sum(min(limit, sum(state(window) != "right" for window in judged[1].windows)) for _, judged in runs)
    shown = _shown(series)
    tables = [_table(one, judged, limit, wrong) for one, judged in runs]
    return [replace(table, lines=tuple(_in_columns(line, shown) for line in table.lines)) for table in tables]


def _in_columns(line: Line, shown: Sequence[bool]) -> Line:
    return replace(line, cells=tuple(compress(line.cells, shown)))


def _table(one: Series, judged: Judged, limit: int, wrong: int) -> WindowTable:
    run, verdict = judged
    bad = [window for window in verdict.windows if state(window) != "right"]
    good = [window for window in verdict.windows if state(window) == "right"]
    chosen = sorted([*bad[:limit], *good[: max(0, limit - len(bad))]], key=lambda window: window.index)
    rows = max(1, min(WITNESSES, CELLS // max(1, wrong * len(verdict.variables))))
    short = shortener(run.header.query_text)
    note = ""
    if len(chosen) < len(verdict.windows):
        note = (
            f"{len(chosen):,} of {counted(len(verdict.windows), one.unit)} listed: "
            f"{min(limit, len(bad)):,} of the {len(bad):,} that are not right or late, then the earliest of the others."
        )
    name = named(one, run.header)
    late = sum(state(window) == "late" for window in bad)
    words = [f"{len(bad) - late:,} not right"] * (len(bad) > late) + [f"{late:,} late"] * bool(late)
    text = ", ".join([counted(len(verdict.windows), one.unit), *(words or ["all right"])])
    lines = tuple(_line(window, run.header, one.unit, rows, short) for window in chosen)
    return WindowTable(name, text, note, verdict.variables, lines)


def _line(window: WindowVerdict, header: RunHeader, unit: str, rows: int, short: Callable[[Term], str]) -> Line:
    cells = (
        interval(window.start, window.end, header.semantics.borders),
        NOTHING if window.instant is None else moment(window.instant),
        percent(window.precision),
        percent(window.recall),
        f"{window.expected:,}",
        f"{window.actual:,}",
        f"{window.content:,}",
        delay_of(window),
        f"{window.undecided:,}",
        fitted(window, header.semantics.borders),
    )
    missing = _witness("missing", window.missing, window.expected - window.true_positives, rows, short)
    surplus = _witness("surplus", window.surplus, window.actual - window.true_positives, rows, short)
    doubtful = _witness("undecided", window.doubtful, window.undecided, rows, short)
    sides = tuple(side for side in (missing, surplus, doubtful) if side.total > 0)
    return Line(state(window), cells, f"{unit} {window.index:,}", sides)


def _witness(side: str, found: Sequence[Row], total: int, limit: int, short: Callable[[Term], str]) -> Witness:
    total = max(total, len(found))
    shown = tuple(tuple(NOTHING if term is None else short(term) for term in row) for row in found[:limit])
    return Witness(side, shown, total - len(shown), total)


def shortener(query_text: str) -> Callable[[Term], str]:
    """A function that writes terms with the prefixes that the query declares, cut where they are very long."""
    prefixes = sorted(_PREFIX.findall(query_text), key=lambda found: -len(found[1]))
    known = [(name + ":", iri) for name, iri in prefixes] + [("xsd:", XSD)]

    def short(term: Term) -> str:
        head, tail = ("", term) if term.startswith("<") else _split(term)
        for name, iri in known:
            if tail.startswith("<" + iri) and re.fullmatch(r"[\w.-]*", tail[len(iri) + 1 : -1]):
                tail = name + tail[len(iri) + 1 : -1]
                break
        return cut(head + tail)

    return short


def _split(term: Term) -> tuple[str, str]:
    at = term.rfind("^^<")
    return (term[: at + 2], term[at + 2 :]) if at > 0 and term.endswith(">") else (term, "")


def cut(text: str) -> str:
    """The text, or its beginning with the count of what is left out."""
    return text if len(text) <= LETTERS else f"{text[:LETTERS]}… ({len(text) - LETTERS:,} more characters)"
