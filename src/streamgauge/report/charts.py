"""Charts as altair specs: data in, one chart out; what they show and say is decided in plots.py."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import altair as alt

from streamgauge.report import theme
from streamgauge.report.thin import Bin, Box, Point


class Size(NamedTuple):
    """The outer width and the height of a plot in px, and how many bins of data it has room for."""

    width: int
    height: int
    bins: int


class Axis(NamedTuple):
    """An axis: its title with the unit, d3's number format, its range when that is fixed, and its scale."""

    title: str
    form: str = ",~r"
    domain: tuple[float, float] | None = None
    scale: Literal["linear", "log", "symlog"] = "linear"


class Line(NamedTuple):
    """One line of a chart: the series that gives its colour, whether it is dashed, and its bins."""

    series: int
    dashed: bool
    bins: Sequence[Bin]


def lines(content: Sequence[Line], x: Axis, y: Axis, size: Size) -> alt.LayerChart:
    """Lines through the medians, with a band from lowest to highest where a bin holds several values."""
    rows = [
        _row(line, bin_) | {"x": bin_.x, "low": bin_.low, "y": bin_.middle, "high": bin_.high, "tip": bin_.tip}
        for line in content
        for bin_ in line.bins
    ]
    few = len(rows) <= size.bins // 2
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=_position(alt.X, "x", x), color=_colour(), detail="line:N", tooltip=alt.value(None)
    )
    across = _position(alt.Y, "y", y)
    layers: list[alt.Chart] = []
    if any(bin_.values > 1 for line in content for bin_ in line.bins):
        layers.append(base.mark_area(opacity=0.18).encode(y=_position(alt.Y, "low", y), y2="high:Q"))
    layers.append(base.mark_line(strokeJoin="round").encode(y=across, strokeDash=_dash(), strokeWidth=_width(content)))
    points = base.mark_point(filled=True, size=46, opacity=1 if few else 0)
    layers.append(points.encode(y=across, shape=_shape(), description="tip:N"))
    return _finished(alt.layer(*layers), size)


def _row(line: Line, bin_: Bin) -> dict[str, Any]:
    name = f"{line.series}{'d' if line.dashed else ''}"
    return {"series": str(line.series), "dashed": line.dashed, "line": name, "count": bin_.values}


def scatter(content: Mapping[int, Sequence[Point]], x: Axis, y: Axis, size: Size) -> alt.LayerChart:
    """Points, coloured and shaped by series."""
    rows = [
        {"series": str(series), "x": point.x, "y": point.y, "tip": point.tip}
        for series, points in content.items()
        for point in points
    ]
    marks = alt.Chart(alt.Data(values=rows)).mark_point(filled=True, size=40, opacity=0.7)
    placed = marks.encode(x=_position(alt.X, "x", x), y=_position(alt.Y, "y", y))
    return _finished(alt.layer(placed.encode(color=_colour(), shape=_shape(), description="tip:N")), size)


class Placed(NamedTuple):
    """One box of a box plot: where it stands, its series, the box and its tooltip."""

    x: str
    series: int
    box: Box
    tip: str


def boxes(content: Sequence[Placed], x: Axis, y: Axis, size: Size) -> alt.LayerChart:
    """Box plots side by side: whiskers to the lowest and highest value, the box over the quartiles."""
    rows = [{"x": one.x, "series": str(one.series), "tip": one.tip, **one.box._asdict()} for one in content]
    order = list(dict.fromkeys(one.x for one in content))
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("x:N", title=x.title, sort=order, axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        xOffset=alt.XOffset("series:N"),
        color=_colour(),
        description="tip:N",
    )
    whiskers = base.mark_rule(strokeWidth=1.5).encode(y=_position(alt.Y, "low", y), y2="high:Q")
    bars = base.mark_bar(opacity=0.55, stroke=None).encode(y=_position(alt.Y, "first", y), y2="third:Q")
    middles = base.mark_tick(thickness=2.5, bandSize=10).encode(y=_position(alt.Y, "middle", y))
    return _finished(alt.layer(whiskers, bars, middles), size)


class Bar(NamedTuple):
    """A window as a bar: its borders (s), its lane, its state and the words of its tooltip."""

    start: float
    end: float
    lane: int
    state: str
    tip: str


SYMBOLS = {"right": "✓", "late": "◷", "wrong": "✗", "missed": "?", "surplus": "+"}


def borders(content: Sequence[Bar], x: Axis, size: Size) -> alt.LayerChart:
    """Windows as bars in lanes, coloured and signed by their state; a missed one is an outline."""
    rows = [bar._asdict() | {"sign": SYMBOLS[bar.state], "middle": (bar.start + bar.end) / 2} for bar in content]
    states = list(SYMBOLS)
    scale = alt.Scale(domain=states, range=[theme.STATE[state].light for state in states])
    colour = alt.Color("state:N", scale=scale, legend=None)
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("lane:O", axis=None, scale=alt.Scale(paddingInner=0.25)), description="tip:N"
    )
    filled = alt.condition("datum.state == 'missed'", alt.value(0.05), alt.value(0.22))
    bars = base.mark_bar(cornerRadius=3, strokeWidth=1.2).encode(
        x=_position(alt.X, "start", x), x2="end:Q", color=colour, fillOpacity=filled, stroke=colour
    )
    signs = base.mark_text(fontSize=11, fontWeight=600).encode(x="middle:Q", text="sign:N", color=colour)
    return _finished(alt.layer(bars, signs), size)


class Fit(NamedTuple):
    """One window's expected borders and those that fit best (s, ``None`` when it was missed), state and tooltip."""

    start: float
    end: float
    found_start: float | None
    found_end: float | None
    state: str
    tip: str


def reconstructed(content: Sequence[Fit], x: Axis, size: Size) -> alt.LayerChart:
    """A row per window: the expected borders as an outline, a bar between those that fit best, signed by its state."""
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
    states = list(SYMBOLS)
    scale = alt.Scale(domain=states, range=[theme.STATE[state].light for state in states])
    colour = alt.Color("state:N", scale=scale, legend=None)
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("row:O", axis=None, scale=alt.Scale(paddingInner=0.25)), description="tip:N"
    )
    stated = base.mark_bar(
        cornerRadius=3, strokeWidth=1.2, filled=True, fillOpacity=0.04, color=theme.MUTED.light
    ).encode(x=_position(alt.X, "start", x), x2="end:Q", stroke=alt.value(theme.MUTED.light))
    found = base.transform_filter("datum.found != null").mark_bar(height=7, cornerRadius=2, fillOpacity=0.75)
    drawn = found.encode(x=_position(alt.X, "found", x), x2="until:Q", color=colour)
    signs = base.mark_text(fontSize=11, fontWeight=600, align="right", dx=-5).encode(
        x="from:Q", text="sign:N", color=colour
    )
    return _finished(alt.layer(stated, drawn, signs), size)


def _position(channel: Any, name: str, axis: Axis) -> Any:
    scale = alt.Scale(nice=False, zero=False) if axis.domain is None else alt.Scale(domain=list(axis.domain))
    if axis.scale != "linear":
        scale = alt.Scale(type=axis.scale, nice=False)
    elif channel is alt.Y and axis.domain is None:
        scale = alt.Scale(nice=True, zero=True)
    return channel(f"{name}:Q", title=axis.title, scale=scale, axis=alt.Axis(format=axis.form))


_INDEXES = range(64)


def _colour() -> alt.Color:
    domain, shades = [str(index) for index in _INDEXES], [theme.series_colour(index) for index in _INDEXES]
    return alt.Color("series:N", scale=alt.Scale(domain=domain, range=shades), legend=None)


def _shape() -> alt.Shape:
    domain, shapes = [str(index) for index in _INDEXES], [theme.series_shape(index) for index in _INDEXES]
    return alt.Shape("series:N", scale=alt.Scale(domain=domain, range=shapes), legend=None)


def _dash() -> alt.StrokeDash:
    scale = alt.Scale(domain=[False, True], range=[[1, 0], [5, 4]])
    return alt.StrokeDash("dashed:N", scale=scale, legend=None)


def _width(content: Sequence[Line]) -> alt.StrokeWidth:
    """Wide below, narrow on top: lines that coincide all stay visible."""
    names = [str(series) for series in dict.fromkeys(line.series for line in content)]
    widths = [
        2 + 2.2 * (len(names) - 1 - place) / max(1, len(names) - 1) if len(names) > 1 else 2
        for place in range(len(names))
    ]
    return alt.StrokeWidth("series:N", scale=alt.Scale(domain=names, range=widths), legend=None)


def _finished(chart: alt.LayerChart, size: Size) -> alt.LayerChart:
    fitted = chart.properties(
        width=size.width, height=size.height, autosize=alt.AutoSizeParams(type="fit-x", contains="padding")
    )
    return (
        fitted.configure(background="transparent", font="system-ui, sans-serif", padding=2)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=theme.MUTED.light,
            titleColor=theme.MUTED.light,
            gridColor=theme.GRID.light,
            domainColor=theme.AXIS.light,
            tickColor=theme.AXIS.light,
            labelFontSize=11.5,
            titleFontSize=11.5,
            titleFontWeight="normal",
            titlePadding=8,
        )
        .configure_axisX(grid=False, labelFlush=True, tickCount=max(4, size.width // 90))
        .configure_axisY(domain=False, ticks=False, tickCount=4, labelPadding=6)
    )
