"""Pictures of the documentation: ``python -m tests.semantics.pictures`` writes them.

Those of the semantics are drawn from conformance cases, those of the first pages from the example data.

A picture stacks cases. Each case has its stream on an axis of time and, for each report that may be due, a line for
each window: the scope as a bar with its borders, the elements that it holds, a triangle at the instant, and in words
the content and what is sent.
"""

from collections.abc import Sequence
from pathlib import Path

import streamgauge
from streamgauge.report import timeline
from streamgauge.report.timeline import WIDTH, TimelinePanel
from streamgauge.suites.conformance.cases import load

__all__ = ["FOLDER", "PICTURES", "WIDTH", "Panel", "picture"]

Panel = TimelinePanel
"""The panel of a conformance case."""

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
EXAMPLES = FOLDER.parents[1] / "examples"
PICTURES = {
    "scope": (
        "sliding windows overlap",
        "sliding windows with (o, c]",
        "sliding windows with [o, c]",
        "a pure RANGE slides with every instant",
    ),
    "content": (
        "an element that has ended is not held",
        "a repeated triple stays as long as its last copy",
        "a content that is a bag",
        "a landmark window holds everything from t0 on",
        "a sliding count-based window",
    ),
    "report": (
        "window close and content change",
        "window close, content change and non-empty content",
        "periodic",
        "content change and non-empty content, answer empty",
    ),
    "tick": (
        "content change, tuple by tuple within an element",
        "content change, element by element",
        "content change reports on arrivals and on evictions, once per time",
        "time-driven: an eviction is noticed at the next tick",
    ),
    "r2s": ("tumbling windows are half-open", "Istream over sliding windows", "Dstream over sliding windows"),
}


def picture(names: Sequence[str]) -> str:
    """The SVG of some cases, by their names."""
    cases = {case.name: case for case in load()}
    return timeline.picture("; ".join(names), [cases[name] for name in names])


def answered() -> str:
    """The first answers of the average over readings."""
    return streamgauge.timeline(EXAMPLES / "average.rq", EXAMPLES / "readings.nq", reports=6).svg


def judged() -> str:
    """Answers of an engine that reads ``>=`` as ``>``, beside those that are right."""
    query, readings = (EXAMPLES / "q5.rq").read_text("utf-8"), EXAMPLES / "readings.nq"
    recorded = streamgauge.expect(query.replace(">=", ">"), readings, semantics="csparql", advance_to="20s")
    answers = [(report.due.instant, report.rows) for report in recorded]
    return streamgauge.timeline(query, readings, semantics="csparql", answers=answers, advance_to="20s", reports=4).svg


def changed() -> str:
    """What changes in the average over readings when its window slides; the build of the site has no engine."""
    from streamgauge.formats.streams import read_stream
    from streamgauge.query import parse
    from tests.incremental.changes_picture import changes_picture

    return changes_picture(parse((EXAMPLES / "average.rq").read_text("utf-8")), read_stream(EXAMPLES / "readings.nq"))


DRAWN = {"answer": answered, "changes": changed, "judged": judged}
"""Pictures of example data, by name."""


def main() -> None:
    """Write every picture."""
    for name, cases in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(picture(cases), "utf-8")
    for name, draw in DRAWN.items():
        (FOLDER / f"{name}.svg").write_text(draw(), "utf-8")


if __name__ == "__main__":
    main()
