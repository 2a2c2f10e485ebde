r"""Texts and line charts in LaTeX; charts by the package pgfplots, in the fonts of the paper.

Source of the syntax: the manual of pgfplots 1.18, sections 4.5 (ranges, ticks) and 4.12 (error bars).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from streamgauge.model.controls import visible
from streamgauge.report.charts import SHARE_FORM, ChartAxis, Spec
from streamgauge.report.colours import series_colour, series_shape
from streamgauge.report.numbers import NOTHING

_TEX: Final = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    NOTHING: "--", "\N{PLUS-MINUS SIGN}": r"$\pm$", "\N{MINUS SIGN}": "$-$",
}  # fmt: skip
_SPECIAL: Final = re.compile("[" + re.escape("".join(_TEX)) + "]")

_MARKS: Final = {
    "circle": "*",
    "square": "square*",
    "triangle-up": "triangle*",
    "diamond": "diamond*",
    "triangle-down": "triangle*, mark options={rotate=180}",
    "cross": "+",
    "triangle-right": "triangle*, mark options={rotate=270}",
}
"""The marks of pgfplots for the shapes of points."""

_FEW: Final = 30
"""Maximum number of points for which marks are drawn."""


def pgfplots_picture(chart: Spec) -> str | None:
    r"""A line chart with a legend, for a figure with ``\input``; ``None`` for other charts.

    Error bars reach from the lowest to the highest value, or over the interval.
    """
    axes: Mapping[str, Sequence[Any]] | None = chart.get("usermeta", {}).get("axes")
    if axes is None:
        return None
    x, y = (ChartAxis(*axes[name]) for name in "xy")
    series: Mapping[str, str] = chart["usermeta"].get("series", {})
    lines = {row["line"]: [one for one in chart["data"]["values"] if one["line"] == row["line"]]
             for row in chart["data"]["values"]}  # fmt: skip
    options = [r"width=\linewidth", r"height=0.5\linewidth", "scaled ticks=false", *_axis("x", x), *_axis("y", y)]
    options += ["legend style={at={(0.5,1.03)}, anchor=south, draw=none}", "legend cell align=left"]
    plots = [text for rows in lines.values() for text in _plot(rows, series)]
    picture = [r"\begin{tikzpicture}", r"\begin{axis}[", *(f"  {option}," for option in options), "]", *plots]
    head = r"% \usepackage{pgfplots} \pgfplotsset{compat=1.18}"
    return "\n".join((head, *picture, r"\end{axis}", r"\end{tikzpicture}")) + "\n"


def _axis(name: str, axis: ChartAxis) -> Iterator[str]:
    """The options of an axis: title, scale, range and ticks."""
    yield f"{name}label={{{tex(axis.title)}}}"
    if axis.scale != "linear":
        yield f"{name}mode={axis.scale}"
    if axis.domain is not None:
        yield f"{name}min={axis.domain[0]:.12g}, {name}max={axis.domain[1]:.12g}"
    if axis.ticks:
        places, labels = zip(*axis.ticks, strict=True)
        yield f"{name}tick={{{', '.join(f'{place:.12g}' for place in places)}}}"
        yield f"{name}ticklabels={{{', '.join(f'{{{tex(label)}}}' for label in labels)}}}"
    elif axis.form == SHARE_FORM:
        yield rf"{name}ticklabel={{\pgfmathparse{{100*\tick}}\pgfmathprintnumber{{\pgfmathresult}}\,\%}}"


def _plot(rows: Sequence[Mapping[str, Any]], series: Mapping[str, str]) -> Iterator[str]:
    """A line with its points; dashed lines have no entry in the legend."""
    first = rows[0]
    index = int(first["series"])
    red, green, blue = bytes.fromhex(series_colour(index).removeprefix("#"))
    style = [f"color={{rgb,255:red,{red};green,{green};blue,{blue}}}", "thick", *(["dashed"] * first["dashed"])]
    style.append(f"mark={_MARKS[series_shape(index)] if len(rows) <= _FEW else 'none'}")
    ranged = any(row["count"] > 1 for row in rows)
    bars = "y error plus=plus, y error minus=minus" if ranged else ""
    if ranged:
        style += ["error bars/y dir=both", "error bars/y explicit"]
    # ``forget plot`` keeps a line out of the legend.
    if first["dashed"] or first["series"] not in series:
        style.append("forget plot")
    yield rf"\addplot[{', '.join(style)}]"
    yield f"  table[x=x, y=y{', ' * bool(bars)}{bars}] {{"
    yield "    x y minus plus" if ranged else "    x y"
    for row in rows:
        reach = (row["y"] - row["low"], row["high"] - row["y"]) if ranged else ()
        yield "    " + " ".join(f"{value:.12g}" for value in (row["x"], row["y"], *reach))
    yield "  };"
    if "forget plot" not in style:
        yield rf"\addlegendentry{{{tex(series[first['series']])}}}"


def tex(text: str) -> str:
    """Escape text for LaTeX, on one line."""
    return _SPECIAL.sub(lambda match: _TEX[match[0]], visible(" ".join(text.split())))
