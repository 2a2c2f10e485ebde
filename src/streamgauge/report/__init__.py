"""Presentation of runs and verdicts: a self-contained HTML page, and the same for the terminal."""

from collections.abc import Sequence
from pathlib import Path

from streamgauge.model.run import Run
from streamgauge.model.verdict import Verdict


def page(runs: Sequence[tuple[Run, Verdict]], title: str) -> str:
    """A self-contained HTML file about runs; ValueError without a run."""
    from streamgauge.report.document import document  # the plotting libraries take a second to load

    return document(runs, title)


def write(runs: Sequence[tuple[Run, Verdict]], path: Path, title: str) -> None:
    """Write the page of ``runs`` to ``path`` (UTF-8), replacing an existing file; OSError."""
    path.write_text(page(runs, title), encoding="utf-8")


def write_figures(runs: Sequence[tuple[Run, Verdict]], folder: Path) -> list[Path]:
    """Write every plot of the page of ``runs`` into ``folder``: SVG, PNG, PDF, and its numbers as CSV.

    Returns the files; OSError.
    """
    from streamgauge.report.document import write_figures as written

    return written(runs, folder)
