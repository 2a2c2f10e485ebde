"""Vega-Lite specifications drawn by vl-convert (extra ``plots``): SVG, PNG and PDF.

The library takes 84 MB on disk and is imported for the first chart.
"""

from typing import Any, Final

from streamgauge.model.extras import missing, require

VERSION: Final = "6.4"
"""The version of Vega-Lite of the specifications."""


def undrawn() -> str:
    """Why charts cannot be drawn, with the remedy; empty if they can."""
    return missing("plots")


def load() -> None:
    """Import the library, unless it is not installed."""
    if not undrawn():
        _library()


def svg(chart: dict[str, Any]) -> str:
    """The chart as SVG; MissingExtraError."""
    return str(_library().vegalite_to_svg(chart, vl_version=VERSION))


def png(chart: dict[str, Any], scale: float) -> bytes:
    """The chart as a PNG with ``scale`` pixels per px; MissingExtraError."""
    return bytes(_library().vegalite_to_png(chart, vl_version=VERSION, scale=scale))


def pdf(chart: dict[str, Any]) -> bytes:
    """The chart as a PDF of one page; MissingExtraError."""
    return bytes(_library().vegalite_to_pdf(chart, vl_version=VERSION))


def _library() -> Any:
    require("plots")
    import vl_convert

    return vl_convert
