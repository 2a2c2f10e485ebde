"""Vega-Lite specifications drawn by vl-convert, which the extra ``plots`` brings: as SVG, PNG and PDF.

The library takes 84 MB on disk and is imported when the first chart is drawn.
"""

from typing import Any, Final

from streamgauge.model.extras import missing, require

VERSION: Final = "6.4"
"""The version of Vega-Lite that the specifications are written for."""


def undrawn() -> str:
    """Why no chart can be drawn here, with the line that changes it; empty where charts can be drawn."""
    return missing("plots")


def load() -> None:
    """Import the library, unless it is not installed."""
    if not undrawn():
        _library()


def svg(chart: dict[str, Any]) -> str:
    """The chart as the text of an SVG file; MissingExtraError where charts cannot be drawn."""
    return str(_library().vegalite_to_svg(chart, vl_version=VERSION))


def png(chart: dict[str, Any], scale: float) -> bytes:
    """The chart as a PNG of ``scale`` pixels for each px; MissingExtraError where charts cannot be drawn."""
    return bytes(_library().vegalite_to_png(chart, vl_version=VERSION, scale=scale))


def pdf(chart: dict[str, Any]) -> bytes:
    """The chart as a PDF of one page; MissingExtraError where charts cannot be drawn."""
    return bytes(_library().vegalite_to_pdf(chart, vl_version=VERSION))


def _library() -> Any:
    require("plots")
    import vl_convert

    return vl_convert
