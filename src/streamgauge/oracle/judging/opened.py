"""One report of a judged run in detail: the content of its windows, the expected rows and the received ones."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from streamgauge.formats.stream import elements
from streamgauge.model.mistake import MistakeError
from streamgauge.model.report import DueReport
from streamgauge.model.run import Run
from streamgauge.model.semantics import Clock, Grain
from streamgauge.model.terms import Row, Triple
from streamgauge.model.verdict import Verdict, WindowVerdict
from streamgauge.oracle.judging.metrics import by_arrival
from streamgauge.semantics.arrivals import triples
from streamgauge.semantics.definition import Held, answered, held


class NoWindowError(MistakeError, ValueError):
    """A report that the verdict does not have; the message says which it has."""


@dataclass(frozen=True, slots=True)
class OpenedWindow:
    """A judged report with its content and rows.

    ``expected`` is ``None`` for a surplus report. ``received`` is ``None`` for a missed one, and if neither the
    recording nor the verdict kept all of its rows.
    """

    window: WindowVerdict
    content: tuple[Triple, ...]
    expected: tuple[Row, ...] | None
    received: tuple[Row, ...] | None
    variables: tuple[str, ...]


def opened(run: Run, stream: Path, verdict: Verdict, index: int) -> OpenedWindow:
    """The report of this index, evaluated by the definition over the run's stream table.

    Raises NoWindowError if the verdict has no such report, RefusedError for a query without a definition.
    """
    window = next((window for window in verdict.windows if window.index == index), None)
    if window is None:
        raise NoWindowError(
            f"--window {index}: the verdict has {len(verdict.windows):,} reports"
            + (f", {verdict.windows[0].index:,} to {verdict.windows[-1].index:,}" if verdict.windows else "")
        )
    if not window.due:
        return OpenedWindow(window, (), None, _received(run, window, ()), verdict.variables)
    assert window.instant is not None
    assert verdict.t0 is not None
    stream_elements = tuple(elements(stream))
    if run.header.semantics.clock is not Clock.APPLICATION:
        run, stream_elements = by_arrival(run, stream_elements)
    header = run.header
    near = _near(held(stream_elements, header.query, header.semantics, window.instant, verdict.t0), window)
    contents = next(content for due, content in near if _is(due, window))
    inside = tuple(triple for _, triple in triples(contents, header.semantics.content).elements())
    # A report that sends nothing is judged where another legal answer sends something.
    sent = answered(near, header.query, header.semantics)
    expected = next((report.rows for report in sent if _is(report.due, window)), ())
    return OpenedWindow(window, inside, expected, _received(run, window, expected), verdict.variables)


def _is(due: DueReport, window: WindowVerdict) -> bool:
    return (due.instant, due.start, due.end) == (window.instant, window.start, window.end)


def _near(contents: Held, window: WindowVerdict) -> Held:
    """The reports of the window's instant, and the one before them: Istream and Dstream are differences to it."""
    first = next(place for place, (due, _) in enumerate(contents) if due.instant == window.instant)
    return [*contents[max(0, first - 1) :]]


def _received(run: Run, window: WindowVerdict, expected: tuple[Row, ...]) -> tuple[Row, ...] | None:
    """The received rows.

    As recorded if an answer is a whole report, else the expected rows with the witnesses applied.
    """
    if window.report is None:
        return None
    grain = run.header.semantics.grain
    if grain is Grain.REPORT and not any(answer.removed for answer in run.answers) and window.report < len(run.answers):
        return run.answers[window.report].added
    missing, surplus = window.expected - window.true_positives, window.actual - window.true_positives
    if len(window.missing) < missing or len(window.surplus) < surplus:
        return None
    return (*(Counter(expected) - Counter(window.missing)).elements(), *window.surplus)
