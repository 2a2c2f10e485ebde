"""The line and point of a series, as legends of pages show them."""

from markupsafe import Markup

from streamgauge.report.colours import SERIES, series_shape

_SWATCHES = {
    "circle": "M12 4a4 4 0 1 0 .01 0z",
    "square": "M8.5 4.5h7v7h-7z",
    "triangle-up": "M12 3.5l4.5 8h-9z",
    "diamond": "M12 3l5 5-5 5-5-5z",
    "triangle-down": "M12 12.5l4.5-8h-9z",
    "cross": "M10.5 3.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "triangle-right": "M8 3.5v9l8-4.5z",
}


def swatch(index: int) -> Markup:
    """A series in the legend: its line and point."""
    colour, shape = index % len(SERIES), _SWATCHES[series_shape(index)]
    return Markup(
        '<svg class="swatch" viewBox="0 0 24 16" aria-hidden="true" style="color:var(--series-{})">'
        '<path d="M0 8h24" stroke="currentColor" stroke-width="2"/><path d="{}" fill="currentColor"/></svg>'
    ).format(colour, shape)
