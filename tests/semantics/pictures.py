"""Pictures of the semantics, drawn from conformance cases: ``python -m tests.semantics.pictures`` writes them.

A picture stacks cases. Each case has its stream on an axis of time and, for each report that may be due, a line for
each window: the scope as a bar with its borders, the elements that it holds, a triangle at the instant, and in words
the content and what is sent.
"""

from collections.abc import Sequence
from pathlib import Path

from streamgauge.report import timeline
from streamgauge.report.timeline import WIDTH, TimelinePanel
from streamgauge.suites.conformance.cases import load

__all__ = ["FOLDER", "PICTURES", "WIDTH", "Panel", "picture"]

Panel = TimelinePanel
"""The panel of a conformance case."""

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
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


def main() -> None:
    """Write every picture."""
    for name, cases in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(picture(cases), "utf-8")


if __name__ == "__main__":
    main()
