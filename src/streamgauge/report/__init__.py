"""Shows runs and their verdicts: one self-contained HTML page, and the same verdict for the terminal."""

from streamgauge.report.page import page, write

__all__ = ["page", "write"]
