"""Charts as Vega-Lite specifications; ``plots`` decides what they show.

A specification is plain data, created once and passed to vl-convert: a page of 22 plots takes half of the CPU time that
it takes with Altair, which validates and copies each specification several times.
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from itertools import count
from math import ceil, floor
from typing import Any, Final, Literal, NamedTuple
from xml.etree import ElementTree

from streamgauge.report.colours import AXIS, GRID, INK, MUTED, SERIES, STATE, series_colour, series_shape, shades
from streamgauge.report.compact import compact
from streamgauge.report.series import Bin, Box, Point
from streamgauge.report.ticks import Unit, magnitudes, ticks
from streamgauge.report.vega import svg, undrawn


def plot_css() -> str:
    """Rules that replace each light colour of a plot by its dark one; plots have light colours as attributes."""
    return "\n".join(
        f'.plot [{attribute}="{shade.light}"]{{{attribute}:{shade.dark}}}'
        for shade in shades()
        for attribute in ("fill", "stroke")
    )


def variables(theme: str) -> str:
    """The custom properties of the page for ``light`` or ``dark``."""
    states = {f"--{name}": getattr(shade, theme) for name, shade in STATE.items()}
    series = {f"--series-{index}": getattr(shade, theme) for index, shade in enumerate(SERIES)}
    text = {"--ink": getattr(INK, theme), "--muted": getattr(MUTED, theme)}
    return ";".join(f"{name}:{colour}" for name, colour in {**states, **series, **text}.items())


SHARE_FORM: Final = ".0%"
"""The number format of shares, whose axis is the same in all plots."""

Spec = dict[str, Any]
"""A Vega-Lite specification or a part of one (https://vega.github.io/vega-lite/docs/spec.html)."""


class ChartSize(NamedTuple):
    """The outer width and height of a plot in px, its maximum number of bins, and whether it has tooltips."""

    width: int
    height: int
    bins: int
    pointer: bool = True


class ChartAxis(NamedTuple):
    """An axis: title, d3's number format, range if it is fixed, and scale.

    The unit is added to the title if the labels do not have it; without ``unit`` the title must include it. ``ticks``
    are (place, label), if the axis does not compute its own.
    """

    title: str
    form: str = ",~r"
    domain: tuple[float, float] | None = None
    scale: Literal["linear", "log", "symlog"] = "linear"
    unit: Unit = ""
    ticks: tuple[tuple[float, str], ...] = ()


class ChartLine(NamedTuple):
    """A line of a chart: its series, which determines the colour, whether it is dashed, its bins, and tooltips.

    ``marks`` are fewer bins of the same values, if the bins are too close for tooltips.
    """

    series: int
    dashed: bool
    bins: Sequence[Bin]
    marks: Sequence[Bin] | None = None


class RuleLine(NamedTuple):
    """A line across a chart at a value of an axis, with a text; muted unless it belongs to a series.

    ``below`` is the place of the text of an upright line, as a share of the chart's height from the top; it is left of
    the line unless ``before``, which is for lines in the left half.
    """

    across: Literal["x", "y"]
    at: float
    text: str
    series: int | None = None
    below: float = 0.0
    before: bool = False


def lines(
    content: Sequence[ChartLine],
    x: ChartAxis,
    y: ChartAxis,
    size: ChartSize,
    rules: Sequence[RuleLine] = (),
    late: Sequence[Point] = (),
) -> Spec:
    """Lines through the medians, with a band from lowest to highest if bins have several values.

    ``late`` are highlighted by rings: reports later than allowed. ``usermeta``, which Vega ignores, has the axes as
    drawn.
    """
    rows = [_row(line, bin_) for line in content for bin_ in line.bins]
    drawn = [bin_ for line in content for bin_ in line.bins]
    marks = [_row(line, bin_) for line in content for bin_ in (line.bins if line.marks is None else line.marks)]
    # Many points would hide the line; they are then invisible and only carry tooltips.
    few = len(rows) <= size.bins // 2
    x = _fitted(x, [bin_.x for bin_ in drawn] + [rule.at for rule in rules if rule.across == "x"], _across(size))
    heights = [end for bin_ in drawn for end in (bin_.low, bin_.high)]
    y = _fitted(y, heights + [rule.at for rule in rules if rule.across == "y"], max(3, size.height // 45), zero=True)
    shared = {"x": _position("x", "x", x), "color": _colour(), "detail": _nominal("line"), "tooltip": {"value": None}}
    across = _position("y", "y", y)
    layers = []
    if any(bin_.values > 1 for line in content for bin_ in line.bins):
        band = {"y": _position("y", "low", y), "y2": {"field": "high"}}
        layers.append(_layer({"type": "area", "opacity": 0.18, "aria": False}, shared, band))
    dash = _nominal("dashed") | {"scale": {"domain": [False, True], "range": [[1, 0], [5, 4]]}, "legend": None}
    stroke = {"y": across, "strokeDash": dash, "strokeWidth": _width(content)}
    layers.append(_layer({"type": "line", "strokeJoin": "round", "aria": False}, shared, stroke))
    point = {"type": "point", "filled": True, "size": 46, "opacity": 1 if few else 0}
    pointed = _layer(point, shared, {"y": across, "shape": _shape(), "description": _nominal("tip")})
    if few:
        layers.append(pointed)
    elif size.pointer:
        layers.append({"data": {"values": marks}, **pointed})
    layers += [_ringed(late, x, y, size)] if late else []
    layers += [layer for rule in rules for layer in _rule(rule, x, y, size)]
    return _finished(rows, layers, size) | {"usermeta": {"axes": {"x": x, "y": y}}}


def _across(size: ChartSize) -> int:
    """The approximate number of ticks that fit on the x axis."""
    return max(5, size.width // 90)


def _ringed(points: Sequence[Point], x: ChartAxis, y: ChartAxis, size: ChartSize) -> Spec:
    """A layer of rings around points."""
    rows = [{"x": point.x, "y": point.y, "tip": point.words if size.pointer else ""} for point in points]
    ring = {"type": "point", "filled": False, "size": 90, "stroke": STATE["late"].light, "strokeWidth": 1.8}
    placed = {"x": _position("x", "x", x), "y": _position("y", "y", y), "description": _nominal("tip")}
    return {"data": {"values": rows}, **_layer(ring, placed, {})}


def _rule(rule: RuleLine, x: ChartAxis, y: ChartAxis, size: ChartSize) -> tuple[Spec, Spec]:
    """The line and its text: beside an upright line, above a horizontal one."""
    colour = MUTED.light if rule.series is None else series_colour(rule.series)
    words: Spec = {"type": "text", "color": colour, "fontSize": 11}
    if rule.across == "x":
        shared = {"x": _position("x", "at", x)}
        align, dx = ("left", 5) if rule.before else ("right", -5)
        words |= {"align": align, "baseline": "top", "dx": dx}
        place: Spec = {"y": {"value": rule.below * size.height}}
    else:
        shared = {"y": _position("y", "at", y)}
        words |= {"align": "left", "baseline": "bottom", "dx": 4, "dy": -3}
        place = {"x": {"value": 0}}
    data = {"data": {"values": [{"at": rule.at, "text": rule.text}]}}
    line = {"type": "rule", "color": colour, "strokeWidth": 1.4, "strokeDash": [4, 3]}
    return data | _layer(line, shared, {}), data | _layer(words, shared, place | {"text": _nominal("text")})


def _row(line: ChartLine, bin_: Bin) -> dict[str, Any]:
    name = f"{line.series}{'d' if line.dashed else ''}"
    record = {"series": str(line.series), "dashed": line.dashed, "line": name, "count": bin_.values}
    return record | {"x": bin_.x, "low": bin_.low, "y": bin_.middle, "high": bin_.high, "tip": bin_.tip}


def _fitted(axis: ChartAxis, values: Sequence[float], limit: int, *, zero: bool = False) -> ChartAxis:
    """The axis with ticks that suit its unit and a range that ends at ticks; its own ticks are thinned."""
    if axis.ticks:
        return axis._replace(ticks=axis.ticks[:: max(1, ceil(len(axis.ticks) / (2 * limit)))])
    if axis.form == SHARE_FORM or not values or axis.scale == "symlog":
        return axis
    if axis.scale == "log":
        # A logarithmic axis has no place for 0.
        positive = [value for value in values if value > 0] or [1.0]
        scale = magnitudes(axis.unit, min(positive), max(positive), limit)
        return axis._replace(ticks=scale.places, domain=scale.ends)
    low, high = axis.domain or ((min(0.0, *values), max(values)) if zero else (min(values), max(values)))
    # A single value has no range.
    if high <= low:
        high = low + 1
    scale = ticks(axis.unit, low, high, limit)
    if zero and len(scale.places) > 1 and axis.domain is None:
        # Extended to whole ticks, so that no point is drawn beyond the last label.
        step = scale.places[1][0] - scale.places[0][0]
        # The small number keeps a limit that is a tick already, but for rounding, from being moved a whole step.
        low, high = (floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step)
        scale = ticks(axis.unit, low, high, round((high - low) / step))
    title = ", ".join(part for part in (axis.title, scale.unit) if part)
    return axis._replace(title=title, ticks=scale.places, domain=(low, high))


def scatter(content: Mapping[int, Sequence[Point]], x: ChartAxis, y: ChartAxis, size: ChartSize) -> Spec:
    """Points, coloured and shaped by series."""
    rows = [
        {"series": str(series), "x": point.x, "y": point.y, "tip": point.words if size.pointer else ""}
        for series, points in content.items()
        for point in points
    ]
    placed_at = [point for points in content.values() for point in points]
    x = _fitted(x, [point.x for point in placed_at], _across(size), zero=x.scale == "linear")
    y = _fitted(y, [point.y for point in placed_at], max(3, size.height // 45), zero=True)
    placed = {"x": _position("x", "x", x), "y": _position("y", "y", y)}
    mark = {"type": "point", "filled": True, "size": 40, "opacity": 0.7}
    shown = {"color": _colour(), "shape": _shape(), "description": _nominal("tip")}
    return _finished(rows, [_layer(mark, placed, shown)], size)


class PlacedBox(NamedTuple):
    """A box of a box plot: place on the x axis, series, quartiles and tooltip."""

    x: str
    series: int
    box: Box
    tip: str


def boxes(content: Sequence[PlacedBox], x: ChartAxis, y: ChartAxis, size: ChartSize) -> Spec:
    """Box plots side by side: whiskers to the lowest and highest value, the box over the quartiles."""
    rows = [{"x": one.x, "series": str(one.series), "tip": one.tip, **one.box._asdict()} for one in content]
    ends = [value for one in content for value in (one.box.low, one.box.high)]
    y = _fitted(y, ends, max(3, size.height // 45), zero=True)
    # Vega-Lite sorts nominal values by text: 10 would come before 2.
    order = list(dict.fromkeys(one.x for one in content))
    shared = {
        "x": _nominal("x") | {"title": x.title, "sort": order, "axis": {"labelAngle": 0, "labelOverlap": True}},
        "xOffset": _nominal("series"),
        "color": _colour(),
        "description": _nominal("tip"),
    }
    whisker = {"y": _position("y", "low", y), "y2": {"field": "high"}}
    bar = {"y": _position("y", "first", y), "y2": {"field": "third"}}
    layers = [
        _layer({"type": "rule", "strokeWidth": 1.5}, shared, whisker),
        _layer({"type": "bar", "opacity": 0.55, "stroke": None}, shared, bar),
        _layer({"type": "tick", "thickness": 2.5, "bandSize": 10}, shared, {"y": _position("y", "middle", y)}),
    ]
    return _finished(rows, layers, size)


class Bar(NamedTuple):
    """A window as a bar: borders (s), lane, state, tooltip, and the anchor of its link."""

    start: float
    end: float
    lane: int
    state: str
    tip: str
    link: str = ""


SYMBOLS = {"right": "✓", "late": "◷", "wrong": "✗", "missed": "?", "surplus": "+"}


def borders(content: Sequence[Bar], x: ChartAxis, size: ChartSize) -> Spec:
    """Windows as bars in lanes, with the colour and sign of their state; a missed one is an outline."""
    rows = [bar._asdict() | {"sign": SYMBOLS[bar.state], "middle": (bar.start + bar.end) / 2} for bar in content]
    x = _fitted(x, [end for bar in content for end in (bar.start, bar.end)], _across(size))
    shared, colour = _lane("lane"), _state_colour()
    span = {"x": _position("x", "start", x), "x2": {"field": "end"}, "color": colour, "stroke": colour}
    if any(bar.link for bar in content):
        span["href"] = _nominal("link")
    opacity = {"condition": {"test": "datum.state == 'missed'", "value": 0.05}, "value": 0.22}
    sign = {"x": _quantity("middle"), "text": _nominal("sign"), "color": colour}
    layers = [
        _layer({"type": "bar", "cornerRadius": 3, "strokeWidth": 1.2}, shared, span | {"fillOpacity": opacity}),
        _layer({"type": "text", "fontSize": 11, "fontWeight": 600, "aria": False}, shared, sign),
    ]
    return _finished(rows, layers, size)


class FittedBorders(NamedTuple):
    """A window's expected and best borders (s, ``None`` if it was missed), state and tooltip."""

    start: float
    end: float
    found_start: float | None
    found_end: float | None
    state: str
    tip: str


def reconstructed(content: Sequence[FittedBorders], x: ChartAxis, size: ChartSize) -> Spec:
    """A row per window: the expected borders as an outline, the best ones as a bar with its state's sign."""
    rows = [
        {"row": place, "start": fit.start, "end": fit.end, "found": fit.found_start, "until": fit.found_end}
        | {
            "state": fit.state,
            "sign": SYMBOLS[fit.state],
            "tip": fit.tip,
            "from": min(fit.start, fit.found_start or fit.start),
        }
        for place, fit in enumerate(content)
    ]
    ends = [end for fit in content for end in (fit.start, fit.end, fit.found_start, fit.found_end) if end is not None]
    x = _fitted(x, ends, _across(size))
    shared, colour, muted = _lane("row"), _state_colour(), MUTED.light
    outline = {
        "type": "bar",
        "cornerRadius": 3,
        "strokeWidth": 1.2,
        "filled": True,
        "fillOpacity": 0.04,
        "color": muted,
    }
    stated = {"x": _position("x", "start", x), "x2": {"field": "end"}, "stroke": {"value": muted}}
    fitted = {"x": _position("x", "found", x), "x2": {"field": "until"}, "color": colour}
    sign = {"x": _quantity("from"), "text": _nominal("sign"), "color": colour}
    layers = [
        _layer(outline, shared, stated),
        _layer({"type": "bar", "height": 7, "cornerRadius": 2, "fillOpacity": 0.75}, shared, fitted)
        | {"transform": [{"filter": "datum.found != null"}]},
        _layer(
            {"type": "text", "fontSize": 11, "fontWeight": 600, "align": "right", "dx": -5, "aria": False}, shared, sign
        ),
    ]
    return _finished(rows, layers, size)


def _layer(mark: Spec, shared: Spec, own: Spec) -> Spec:
    return {"mark": mark, "encoding": shared | own}


def _nominal(name: str) -> Spec:
    return {"field": name, "type": "nominal"}


def _quantity(name: str) -> Spec:
    return {"field": name, "type": "quantitative"}


def _lane(name: str) -> Spec:
    lane = {"field": name, "type": "ordinal", "axis": None, "scale": {"paddingInner": 0.25}}
    return {"y": lane, "description": _nominal("tip")}


def _position(channel: Literal["x", "y"], name: str, axis: ChartAxis) -> Spec:
    scale: Spec = {"nice": False, "zero": False} if axis.domain is None else {"domain": list(axis.domain)}
    if axis.scale != "linear":
        scale |= {"type": axis.scale, "nice": False}
        scale.pop("zero", None)
    elif channel == "y" and axis.domain is None:
        # Values of y are compared by height, which needs 0 on the axis; times on x are not.
        scale = {"nice": True, "zero": True}
    drawn: Spec = {"format": axis.form}
    if axis.ticks:
        labels, places = [label for _, label in axis.ticks], [place for place, _ in axis.ticks]
        drawn = {
            "values": places,
            "tickCount": len(places),
            "labelOverlap": axis.scale == "log",
            "labelExpr": f"{expression(labels)}[indexof({expression(places)},datum.value)]",
        }
    return _quantity(name) | {"title": axis.title, "scale": scale, "axis": drawn}


def expression(value: object) -> str:
    """A constant of Vega's expression language."""
    # JSON's constants are also constants of the expression language, with every quote escaped.
    return json.dumps(value)


_INDEXES: Final = range(64)
_SERIES: Final = [str(index) for index in _INDEXES]


def _colour() -> Spec:
    # A fixed domain, so that a series has the same colour in every plot.
    scale = {"domain": _SERIES, "range": [series_colour(index) for index in _INDEXES]}
    return _nominal("series") | {"scale": scale, "legend": None}


def _shape() -> Spec:
    scale = {"domain": _SERIES, "range": [series_shape(index) for index in _INDEXES]}
    return _nominal("series") | {"scale": scale, "legend": None}


def _state_colour() -> Spec:
    scale = {"domain": list(SYMBOLS), "range": [STATE[state].light for state in SYMBOLS]}
    return _nominal("state") | {"scale": scale, "legend": None}


def _width(content: Sequence[ChartLine]) -> Spec:
    """Wide lines below narrow ones, so that coinciding lines stay visible."""
    names = [str(series) for series in dict.fromkeys(line.series for line in content)]
    widths = [
        2 + 2.2 * (len(names) - 1 - place) / max(1, len(names) - 1) if len(names) > 1 else 2
        for place in range(len(names))
    ]
    return _nominal("series") | {"scale": {"domain": names, "range": widths}, "legend": None}


def _finished(rows: Sequence[Mapping[str, Any]], layers: Sequence[Spec], size: ChartSize) -> Spec:
    return {
        "data": {"values": rows},
        "layer": layers,
        "width": size.width,
        "height": size.height,
        # The width includes labels, so plots align on the page; the height grows with them.
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": _CONFIG | {"axisX": {"grid": False, "labelFlush": True, "tickCount": _across(size)}},
    }


_CONFIG: Final[Spec] = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "padding": 2,
    "view": {"stroke": None},
    "axis": {
        "labelColor": MUTED.light,
        "titleColor": MUTED.light,
        "gridColor": GRID.light,
        "domainColor": AXIS.light,
        "tickColor": AXIS.light,
        "labelFontSize": 11.5,
        "titleFontSize": 11.5,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
    "axisY": {"domain": False, "ticks": False, "tickCount": 4, "labelPadding": 6},
}


_NARROW = "narrow"


class ChartDrawing:
    """Draws charts for one page with unique ids; nothing if figures only go into files."""

    def __init__(self, *, drawn: bool = True) -> None:
        self._numbers = count(1)
        self._drawn = drawn

    def svg(self, chart: Spec, label: str, variant: str) -> str:
        """The chart as an SVG element of class ``plot`` and ``variant``, with ``label`` as accessible name.

        A ``narrow`` chart has no tooltips, as phones have no pointer. If charts cannot be drawn, the wide one is a
        paragraph with the reason.
        """
        if not self._drawn:
            return ""
        if reason := undrawn():
            return "" if variant == _NARROW else f'<p class="note">Not drawn: {escape(reason)}.</p>'
        root = ElementTree.fromstring(svg(chart))
        # Ids are unique in a page, not in an SVG: two plots' clip paths would share one.
        compact(root, f"p{next(self._numbers)}-", titles=variant != _NARROW)
        inner = "".join(_text(child) for child in root)
        box = escape(root.attrib["viewBox"])
        role = "group" if root.find(".//a") is not None else "img"
        return f'<svg class="plot {variant}" viewBox="{box}" role="{role}" aria-label="{escape(label)}">{inner}</svg>'


def _text(element: ElementTree.Element) -> str:
    return ElementTree.tostring(element, encoding="unicode").replace(" />", "/>")
