"""The timeline of one run, or of two under one another, in the room of runs: reports lead to the playground."""

from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote, urlencode

from markupsafe import Markup

from streamgauge.formats.run import RunError, read_header, stream_path
from streamgauge.model.run import RunHeader
from streamgauge.model.verdict import Verdict, WindowVerdict
from streamgauge.query import parse
from streamgauge.report.lanes import svg
from streamgauge.report.run_lanes import EVERYTHING, LABEL, DrawnRun, TimelineView, run_timeline
from streamgauge.report.series import state
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.workbench.rooms.runs.folder import BenchError, inside, stamp
from streamgauge.workbench.rooms.runs.run_list import read_object
from streamgauge.workbench.rooms.runs.run_page import GROWTH, SECONDS, verdict_of


def has_stream(root: Path, place: str) -> bool:
    """Whether the stream that a run was fed with is in the folder of the workbench, so that its reports open again."""
    try:
        return stream_path(inside(root, place)).resolve().is_relative_to(root.resolve())
    except RunError:
        return False


def reasons(root: Path, place: str) -> Callable[[WindowVerdict], str]:
    """Gives the address of a report's reason: the playground, or without instant or stream its rows in the report."""
    opens = has_stream(root, place)

    def address(window: WindowVerdict) -> str:
        if window.instant is None or not opens:
            return f"/runs/report/{quote(place)}#windows"
        return f"/playground/?{urlencode({'run': place, 'window': window.index})}"

    return address


def lanes_of(label: str, root: Path, place: str, header: RunHeader, verdict: Verdict) -> DrawnRun:
    """A run of the folder as a drawing, in which faults link to their reasons."""
    reason = reasons(root, place)

    def address(window: WindowVerdict) -> str:
        return reason(window) if state(window) in ("wrong", "missed", "surplus") else "#windows-h"

    return DrawnRun(label, header, verdict, address, ": see why")


def picture(runs: Sequence[DrawnRun], wanted: TimelineView = EVERYTHING) -> Markup:
    """Runs as SVG; nothing where no report has an instant."""
    timeline = run_timeline(runs, wanted)
    return Markup("") if timeline is None else svg(timeline, LABEL, titles=False)


def picture_of(root: Path, places: Sequence[str], wanted: TimelineView) -> Markup:
    """The drawing of one or two runs, from their verdicts; MistakeError."""
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
    return lanes_of(label, root, place, read_header(folder, parse), verdict)
