"""Links to the plots of a page as files: drawings and numbers, embedded in the page if they are small."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import quote

from markupsafe import Markup, escape

from streamgauge.model.controls import visible
from streamgauge.report.colours import series_colour
from streamgauge.report.figures import FigureNumbers
from streamgauge.report.plots import Figure

PAGE: Final = 292_000
"""Maximum size of a saved page with embedded files, in characters; larger links are left out."""
_LINES: Final = 2_000
"""Maximum lines of an embedded table, whatever the page's size."""
_TITLE: Final = re.compile(r"<title>.*?</title>", re.DOTALL)
_LINK: Final = re.compile(r'<a href="[^"]*"(?: aria-label="[^"]*")?')
_ROOT: Final = re.compile(r'<svg class="plot \w+" viewBox="0 0 ([\d.]+) ([\d.]+)" role="\w+" aria-label="([^"]*)">')
_SAFE: Final = " !$&()*+,-./:;=>?@[]^_`{|}~'"
"""Characters that need no escape in a data address, besides letters and digits."""
_HEAD: Final = 20
"""Height (px) of a line of the legend."""


class FigureLink(NamedTuple):
    """A link to a plot as a file: its text (``SVG``), address, and file name."""

    word: str
    href: str
    file: str


Links = Mapping[str, Sequence[FigureLink]]
"""Name of a plot -> its links."""


def inside(figures: Sequence[Figure], labels: Sequence[str], budget: int) -> Links:
    """Data links with drawings and numbers, the smallest first, of at most ``budget`` characters in total."""
    if budget <= 0:
        return {}
    linked = [(figure.numbers, link) for figure in figures if figure.numbers for link in _links(figure, labels)]
    links: dict[str, list[FigureLink]] = {}
    for numbers, link in sorted(linked, key=lambda pair: len(pair[1].href)):
        # 60 characters for the element around the address.
        if (budget := budget - len(link.href) - 60) < 0:
            break
        links.setdefault(numbers.name, []).append(link)
    return {name: sorted(link, reverse=True) for name, link in links.items()}


def _links(figure: Figure, labels: Sequence[str]) -> list[FigureLink]:
    assert figure.numbers is not None
    name, links = figure.numbers.name, []
    if figure.drawings and (drawn := alone(figure.drawings[0], figure.legend(labels))):
        links.append(FigureLink("SVG", _data("image/svg+xml", drawn.replace('"', "'")), f"{name}.svg"))
    if (table := _table(figure.numbers)) is not None:
        links.append(FigureLink("CSV", _data("text/csv", table), f"{name}.csv"))
    return links


def _data(kind: str, text: str) -> Markup:
    """The data address of a text; within quotes only ``&`` needs an escape."""
    return Markup(f"data:{kind};charset=utf-8,{quote(text, _SAFE)}".replace("&", "&amp;"))


def _table(numbers: FigureNumbers) -> str | None:
    """All numbers as CSV; ``None`` if there are too many for the page."""
    lines = list(islice(numbers.every(), _LINES + 1))
    return None if len(lines) > _LINES else table([numbers.columns, *lines])


def table(lines: Sequence[Sequence[object]]) -> str:
    """Write lines as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(lines)
    return file.getvalue()


def alone(drawing: str, series: Sequence[tuple[int, str]]) -> str:
    """A drawing of the page as a file, with the page's legend; empty without a drawing."""
    root = _ROOT.match(drawing)
    if root is None:
        return ""
    width, height, message = float(root[1]), float(root[2]), root[3]
    legend = series if len(series) > 1 else ()
    lines = "".join(
        f'<text y="{_HEAD * place - 5}" fill="{series_colour(index)}">■ {escape(label)}</text>'
        # The lines of the legend are above the drawing, at negative heights: the last one ends at 0.
        for place, (index, label) in enumerate(legend, 1 - len(legend))
    )
    above = _HEAD * len(legend)
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-above} {width:g} {height + above:g}" '
        f'width="{width:g}" height="{height + above:g}" font-family="system-ui,sans-serif" font-size="11.5">'
        f"<title>{message}</title><style>.hidden&gt;*{{opacity:0}}</style>"
    )
    # Links lead to places of the page, which a file does not have.
    marks = _LINK.sub("<g", _TITLE.sub("", drawing[root.end() :])).replace("</a>", "</g>")
    return visible(start + lines + marks)
