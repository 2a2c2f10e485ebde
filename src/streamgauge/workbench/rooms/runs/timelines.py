"""The timeline of one run, or of two under one another, in the room of runs: reports lead to the playground."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from markupsafe import Markup

from streamgauge.formats.run import read_header
from streamgauge.model.run import RunHeader
from streamgauge.model.verdict import Verdict, WindowVerdict
from streamgauge.query import parse
from streamgauge.report.lanes import svg
from streamgauge.report.run_lanes import EVERYTHING, LABEL, DrawnRun, WantedView, run_timeline
from streamgauge.report.series import state
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.workbench.rooms.runs.folder import BenchError, inside, stamp
from streamgauge.workbench.rooms.runs.run_list import read_object
from streamgauge.workbench.rooms.runs.run_page import GROWTH, SECONDS, verdict_of


def see_why(place: str, window: WindowVerdict) -> str:
    """The address at which the playground opens a report of a run; none for one without an instant."""
    if window.instant is None:
        return ""
    return f"/playground/?{urlencode({'run': place, 'window': window.index})}"


def lanes_of(label: str, place: str, header: RunHeader, verdict: Verdict) -> DrawnRun:
    """A run of the folder to be drawn; what is wrong in it leads to the playground."""

    def address(window: WindowVerdict) -> str:
        wrong = state(window) in ("wrong", "missed", "surplus")
        return see_why(place, window) if wrong else "#windows-h"

    return DrawnRun(label, header, verdict, address, ": see why")


def picture(runs: Sequence[DrawnRun], wanted: WantedView = EVERYTHING) -> Markup:
    """Runs as SVG; nothing where no report has an instant."""
    timeline = run_timeline(runs, wanted)
    return Markup("") if timeline is None else svg(timeline, LABEL, titles=False)


def picture_of(root: Path, places: Sequence[str], wanted: WantedView) -> Markup:
    """The picture of one run or two, of which only verdicts are read; MistakeError."""
    if not 1 <= len(places) <= 2:
        raise BenchError(f"a timeline is of one run or two, not of {len(places)}")
    labels = [""] if len(places) == 1 else ["A", "B"]
    with DEADLINES.within(SECONDS, GROWTH):
        return picture([_read(root, place, label) for place, label in zip(places, labels, strict=True)], wanted)


def _read(root: Path, place: str, label: str) -> DrawnRun:
    folder = inside(root, place)
    stamp(folder)
    read_object(folder / "run.json", "streamgauge run")
    verdict = verdict_of(folder)
    if verdict is None:
        raise BenchError(f"{place or 'this run'} is not judged yet: judge it first")
    return lanes_of(label, place, read_header(folder, parse), verdict)
