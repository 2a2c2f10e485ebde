"""The timeline inside a report: zoomed and panned by the browser alone, without server or script."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from streamgauge.model.phrases import counted
from streamgauge.model.verdict import Verdict, WindowVerdict
from streamgauge.report.lanes import MOST_WINDOWS, names, svg
from streamgauge.report.run_lanes import LABEL, DrawnRun, TimelineView, run_timeline
from streamgauge.report.series import Series, state
from streamgauge.report.windows import anchors, named

WIDTH: Final = 1_150
"""Minimum width of the drawing, pixels; ``timeline.css`` has the same number."""
ZOOMS: Final = (1, 4, 16, 64)
"""Factors by which the drawing can be widened; ``timeline.css`` has a rule for each."""
RUNS: Final = 6
"""Maximum number of runs in one timeline."""
MAX_DRAWING: Final = 100_000
"""Maximum size of a drawing in characters; a run of 20 reports has 16,000."""


@dataclass(frozen=True, slots=True)
class ZoomableTimeline:
    """A timeline of runs, with a ``note`` on those that it omits."""

    picture: Markup
    note: str
    zooms: tuple[int, ...] = ZOOMS


def zoomable(series: Sequence[Series]) -> ZoomableTimeline | None:
    """The first runs of a page as one timeline; ``None`` if none can be drawn."""
    judged = [(one, number) for one in series for number, (_, verdict) in enumerate(one.runs) if _timed(verdict)]
    runs = [_drawn(series, one, number) for one, number in judged if len(one.runs[number][1].windows) <= MOST_WINDOWS][
        :RUNS
    ]
    while runs and (timeline := run_timeline(runs, TimelineView(width=WIDTH))) is not None:
        picture = names(timeline) + svg(timeline, LABEL, titles=True, stretches=True)
        if len(picture) <= MAX_DRAWING:
            return ZoomableTimeline(picture, _note(len(runs), len(judged)))
        runs.pop()
    return None


def _timed(verdict: Verdict) -> bool:
    return any(window.instant is not None for window in verdict.windows)


def _note(drawn: int, count: int) -> str:
    if drawn == count:
        return ""
    return (
        f"{drawn} of {counted(count, 'run')} are drawn; the workbench (streamgauge ui) shows the timeline of any run."
    )


def _drawn(series: Sequence[Series], one: Series, number: int) -> DrawnRun:
    run, verdict = one.runs[number]
    label = named(one, run.header) if sum(len(other.runs) for other in series) > 1 else ""
    return DrawnRun(label, run.header, verdict, _address(verdict, anchors(series, one, number)), ": see its rows")


def _address(verdict: Verdict, listed: Mapping[int, str]) -> Callable[[WindowVerdict], str]:
    """The links of reports that are not right to their lines in the page's tables."""
    places = {window.index: place for place, window in enumerate(verdict.windows)}

    def address(window: WindowVerdict) -> str:
        anchor = listed.get(places[window.index], "")
        return f"#{anchor}" if anchor and state(window) != "right" else ""

    return address
