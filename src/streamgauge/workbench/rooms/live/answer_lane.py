"""The answers of a live query as a lane of the timeline, each with its number of rows; a box leads to its rows."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from streamgauge.model.phrases import counted
from streamgauge.report.lanes import (
    HEAD,
    HEADING,
    REPORT_LEVELS,
    SMALLEST,
    TALL,
    Lane,
    LaneTimeline,
    Shape,
    TimeScale,
    binned,
    box_rows,
    crowded,
    svg,
)
from streamgauge.report.run_lanes import TimelineView
from streamgauge.workbench.rooms.live.rows import NumberedAnswer
from streamgauge.workbench.terms import shown_time

LABEL: Final = "Answers over time"
"""The timeline is read out as this."""


def answer_picture(answers: Sequence[NumberedAnswer], wanted: TimelineView) -> Markup:
    """The timeline of answers as SVG; nothing where none has an instant."""
    timed = sorted(
        ((answer.line.instant, answer) for answer in answers if answer.line.instant is not None),
        key=lambda pair: pair[0],
    )
    if not timed:
        return Markup("")
    # At least 1 ms wide, as a scale divides by the width.
    whole = timed[0][0], max(timed[-1][0], timed[0][0] + 1)
    scale = TimeScale(*(wanted.times or whole), wanted.width, whole)
    shown = [(instant, answer) for instant, answer in timed if scale.shows(instant, instant)]
    lane = _lane(shown, f"{counted(len(answers), 'answer')}, with their rows", scale)
    overview = tuple(instant for instant, _ in timed)
    return svg(LaneTimeline(scale, HEAD + lane.height, (lane,), overview), LABEL, titles=False)


def _lane(answers: Sequence[tuple[int, NumberedAnswer]], heading: str, scale: TimeScale) -> Lane:
    if crowded(len(answers), scale, SMALLEST + 1, REPORT_LEVELS):
        shapes = tuple(binned("bin reports", "answer", [instant for instant, _ in answers], scale, HEAD))
        return Lane("reports", f"{heading}: zoom in to see each", HEAD, HEADING + TALL + 14, shapes)
    places = [scale.x(instant) for instant, _ in answers]
    boxes = box_rows(places, places)
    shapes = tuple(
        _box(answer, x, HEAD + boxes.top(level), boxes.size)
        for (_, answer), x, level in zip(answers, places, boxes.levels, strict=True)
    )
    return Lane("reports", heading, HEAD, boxes.height, shapes)


def _box(answer: NumberedAnswer, x: float, y: float, size: float) -> Shape:
    line = answer.line
    count = len(line.add) + len(line.remove or ())
    gone = f", {len(line.remove):,} of them taken back" if line.remove else ""
    title = f"answer {answer.number:,} at {shown_time(line.instant)}: {counted(count, 'row')}{gone}"
    text = str(count) if size >= 13 and count < 100 else ""
    kind = "report" if count else "report empty"
    return Shape(kind, x, y, size, size, title, text, href=f"#answer-{answer.number}", number=answer.number)
