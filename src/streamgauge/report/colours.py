"""Colours and shapes of pages and plots, in a light and a dark theme."""

from typing import NamedTuple

from markupsafe import Markup


class Shade(NamedTuple):
    """A colour in both themes."""

    light: str
    dark: str


SERIES = (
    Shade("#0068b0", "#57abe8"),
    Shade("#c44f00", "#ff9150"),
    Shade("#007a5a", "#35c79b"),
    Shade("#a3478a", "#e394cb"),
    Shade("#8a6d00", "#e3bd3f"),
    Shade("#3d3fb8", "#a5a8ff"),
    Shade("#57606b", "#b3bcc7"),
)
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")

PAPER = Shade("#ffffff", "#181c22")
INK = Shade("#1c2127", "#e8ebef")
MUTED = Shade("#5a636e", "#9ba5b1")
GRID = Shade("#e3e7ec", "#2b323b")
AXIS = Shade("#99a2ad", "#59636f")

STATE = {
    "right": Shade("#0a7d57", "#2fc08f"),
    "late": Shade("#8d6500", "#e0b13a"),
    "wrong": Shade("#c0341d", "#ff7d66"),
    "unknown": Shade("#5b6470", "#a7b0bb"),
    "missed": Shade("#c0341e", "#ff7d67"),
    "surplus": Shade("#b04a01", "#ff9b5a"),
}


def series_colour(index: int) -> str:
    """The light colour of a series, which the style sheet maps to the dark one."""
    return SERIES[index % len(SERIES)].light


def series_shape(index: int) -> str:
    """The point shape of a series: series with the same colour have different shapes."""
    return SHAPES[(index + index // len(SERIES)) % len(SHAPES)]


def shades() -> tuple[Shade, ...]:
    """Every colour that a plot may use."""
    return (*SERIES, INK, MUTED, GRID, AXIS, *STATE.values())


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
