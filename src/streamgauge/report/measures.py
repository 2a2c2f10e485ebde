"""Measures: a name and a function of the value. Tables render such a list, so names and values always match."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from streamgauge.model.semantics import Borders
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.report.cards import fitted
from streamgauge.report.numbers import NOTHING, duration, interval, moment, percent
from streamgauge.report.series import delay_of, median_delay, state

Item = TypeVar("Item")


def count(value: int) -> str:
    """A whole number with thousands separators."""
    return f"{value:,}"


@dataclass(frozen=True)
class Measure(Generic[Item]):
    """A measure of an item: its value, its format, and its meaning as a sentence.

    ``words``: values are words, aligned to the left.
    """

    name: str
    value: Callable[[Item], Any]
    written: Callable[[Any], str] = str
    meaning: str = ""
    words: bool = False

    @property
    def heading(self) -> str:
        """The name with a capital letter."""
        return self.name[:1].upper() + self.name[1:]

    def text(self, item: Item) -> str:
        """The formatted value of an item."""
        return self.written(self.value(item))


def chosen(measures: Iterable[Measure[Item]], names: Sequence[str]) -> tuple[Measure[Item], ...]:
    """The measures of these names, in this order; KeyError for an unknown name."""
    by_name = {measure.name: measure for measure in measures}
    return tuple(by_name[name] for name in names)


def texts(measures: Iterable[Measure[Item]], item: Item) -> tuple[str, ...]:
    """The formatted values of an item."""
    return tuple(measure.text(item) for measure in measures)


def _scored(verdict: Verdict, share: float) -> float | None:
    """A share of rows; ``None`` if no rows were judged."""
    # Otherwise the page would show a share that nobody has measured.
    return share if verdict.windows or verdict.judgement is not Judgement.UNKNOWN else None


OF_RUN: Final[tuple[Measure[Verdict], ...]] = (
    Measure("precision", lambda run: _scored(run, run.precision), percent, "received rows that were expected"),
    Measure("recall", lambda run: _scored(run, run.recall), percent, "expected rows that were received"),
    Measure("reports", lambda run: len(run.windows), count, "reports that were due or came"),
    Measure("missed", lambda run: run.missed, count, "reports that were due and never came"),
    Measure("surplus", lambda run: run.surplus, count, "reports that came and were not due"),
    Measure("late", lambda run: run.late, count, "reports that came later than allowed"),
    Measure("median delay", lambda run: median_delay(run.windows), duration, "from due to received, half are faster"),
    Measure("longest delay", lambda run: run.max_delay, duration, "from due to received, of the slowest report"),
    Measure("last answer after start", lambda run: run.last_answer, duration, "when the run's last answer came"),
)
"""The measures of a run's verdict."""


class BorderedReport(NamedTuple):
    """A judged report and the borders of windows under the run's semantics."""

    window: WindowVerdict
    borders: Borders


def _borders(report: BorderedReport) -> str:
    return interval(report.window.start, report.window.end, report.borders)


def _due(report: BorderedReport) -> str:
    return NOTHING if report.window.instant is None else moment(report.window.instant)


OF_REPORT: Final[tuple[Measure[BorderedReport], ...]] = (
    Measure("state", lambda report: state(report.window), words=True),
    Measure("borders", _borders, meaning="the window's", words=True),
    Measure("due at", _due, meaning="the report's instant"),
    Measure("precision", lambda report: report.window.precision, percent, "received rows that were expected"),
    Measure("recall", lambda report: report.window.recall, percent, "expected rows that were received"),
    Measure("expected", lambda report: report.window.expected, count, "rows"),
    Measure("received", lambda report: report.window.actual, count, "rows"),
    Measure("triples in window", lambda report: report.window.content, count, "of its content"),
    Measure("delay", lambda report: delay_of(report.window), meaning="from due to received"),
    Measure("undecided", lambda report: report.window.undecided, count, "rows that SPARQL leaves open"),
    Measure("fits best", lambda report: fitted(*report), meaning="borders under which the scores are best", words=True),
)
"""The measures of a judged report."""


def in_use(measures: Iterable[Measure[BorderedReport]], windows: Iterable[WindowVerdict]) -> tuple[bool, ...]:
    """Whether to show each measure: few runs have undecided rows or fitted borders."""
    windows = list(windows)
    needed = {
        "undecided": any(window.undecided for window in windows),
        "fits best": any(window.borders is not None for window in windows),
    }
    return tuple(needed.get(measure.name, True) for measure in measures)
