"""Shows runs and their verdicts: one self-contained HTML page, and the same verdict for the terminal."""

from collections.abc import Sequence
from pathlib import Path

from streamgauge.model.run import Run
from streamgauge.model.verdict import Verdict


def page(runs: Sequence[tuple[Run, Verdict]], title: str) -> str:
    """One HTML file about runs as text, with everything in it; ValueError when there is no run to show."""
    from streamgauge.report.document import document  # the plotting libraries take a second to load

    return document(runs, title)


def write(runs: Sequence[tuple[Run, Verdict]], path: Path, title: str) -> None:
    """Write the page of ``runs`` to ``path`` (UTF-8), replacing what is there; OSError when that fails."""
    path.write_text(page(runs, title), encoding="utf-8")


def write_figures(runs: Sequence[tuple[Run, Verdict]], folder: Path) -> list[Path]:
    """Write every plot of the page of ``runs`` into ``folder``, as SVG, PNG, PDF, and its numbers as CSV.

    Returns the files; OSError when one cannot be written.
    """
    from streamgauge.report.document import write_figures as written

    return written(runs, folder)
