"""Colours and shapes of pages and plots, in a light and a dark theme."""

from typing import NamedTuple


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
    # Series 0 and 7 have one colour, but a circle and a square.
    return SHAPES[(index + index // len(SERIES)) % len(SHAPES)]


def shades() -> tuple[Shade, ...]:
    """Every colour that a plot may use."""
    return (*SERIES, INK, MUTED, GRID, AXIS, *STATE.values())
