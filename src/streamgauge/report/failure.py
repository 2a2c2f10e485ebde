"""A wrong verdict as plain text, for failing tests and agents: the first unexpected windows, and the diagnosis."""

from collections.abc import Iterator, Sequence
from typing import Final

from streamgauge.model.phrases import counted
from streamgauge.model.run import RunHeader
from streamgauge.model.terms import Row
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.report.cards import diagnosed, explanation
from streamgauge.report.numbers import interval, moment, scope_borders
from streamgauge.report.series import state, unit_of

WINDOWS: Final = 5
"""Maximum number of windows."""

ROWS: Final = 5
"""Maximum number of rows on each side of a window."""


def failure_lines(header: RunHeader, verdict: Verdict) -> Iterator[str]:
    """The verdict as a sentence, the first unexpected windows with their rows, and the diagnosis."""
    unit = unit_of(header.semantics)
    yield f"{verdict.judgement.value}: {explanation(unit, verdict)}"
    if header.failure:
        yield f"The engine failed: {header.failure}"
    bad = wrong_windows(verdict)
    for window in bad[:WINDOWS]:
        yield from _window(window, header, verdict.variables, unit)
    if len(bad) > WINDOWS:
        yield f"and {counted(len(bad) - WINDOWS, f'more {unit}')}"
    yield from verdict.cautions
    yield from diagnosed(verdict.diagnosis)


def wrong_windows(verdict: Verdict) -> list[WindowVerdict]:
    """The windows that are not right, or right but late."""
    return [window for window in verdict.windows if state(window) != "right"]


def passes(verdict: Verdict) -> bool:
    """Whether every window was answered as expected, and in time."""
    return verdict.judgement is Judgement.RIGHT


def _window(window: WindowVerdict, header: RunHeader, variables: Sequence[str], unit: str) -> Iterator[str]:
    borders = interval(window.start, window.end, scope_borders(header.query, header.semantics))
    instant = "" if window.instant is None else f", report at {moment(window.instant)}"
    sizes = f"expected {counted(window.expected, 'row')}, received {window.actual:,}"
    yield f"{unit} {window.index:,} {borders}{instant}: {state(window)}, {sizes}"
    yield from _rows("missing", window.missing, window.expected - window.true_positives, variables)
    yield from _rows("surplus", window.surplus, window.actual - window.true_positives, variables)


def _rows(side: str, rows: Sequence[Row], count: int, variables: Sequence[str]) -> Iterator[str]:
    for row in rows[:ROWS]:
        yield f"  {side}: {row_text(row, variables)}"
    if rows and count > len(rows[:ROWS]):
        yield f"  and {counted(count - len(rows[:ROWS]), f'more {side} row')}"


def row_text(row: Row, variables: Sequence[str]) -> str:
    """A row with its variables: ``?s = <urn:a>, ?v = unbound``; only terms if the numbers do not match."""
    terms = ["unbound" if term is None else term for term in row]
    if len(variables) != len(terms):
        return " ".join(terms)
    return ", ".join(f"?{name} = {term}" for name, term in zip(variables, terms, strict=True))
