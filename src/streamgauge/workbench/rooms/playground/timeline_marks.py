"""The shapes of the timeline as SVG: written here and not by a template, since a timeline may have a thousand.

A page whose script shows the words of a shape has no ``title`` elements beside them, which are half of its SVG.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from markupsafe import Markup, escape

from streamgauge.workbench.rooms.playground.timeline import Lane, Shape


def marks(lane: Lane, *, titles: bool) -> Markup:
    """The shapes of a lane; the first one can be reached by the tab key."""
    return Markup("\n".join(_mark(shape, 0 if at == 0 else -1, titles) for at, shape in enumerate(lane.shapes)))


def ranges(members: Sequence[int]) -> str:
    """Ascending numbers as ranges: ``0-3 7``."""
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in _runs(members))


def _runs(members: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = last = None
    for each in members:
        if last is not None and each != last + 1:
            yield start or 0, last
            start = each
        start, last = each if start is None else start, each
    if last is not None:
        yield start or 0, last


def _mark(shape: Shape, tab: int, titles: bool) -> str:
    words = escape(shape.title)
    said = f'tabindex="{tab}" aria-label="{words}"'
    title = f"<title>{words}</title>" if titles else ""
    if shape.kind in ("element", "late", "silent"):
        number = f' data-number="{shape.number}"' if shape.kind != "silent" else ""
        place = f'cx="{shape.x}" cy="{shape.y}" r="{shape.height}"'
        return f'<circle class="{shape.kind}" {place} role="img" {said}{number}>{title}</circle>'
    if shape.kind.startswith("window"):
        members = f'data-members="{ranges(shape.members)}"'
        return f'<g class="{shape.kind}" role="img" {said} {members}>{title}{_window(shape)}</g>'
    return f'<a class="{shape.kind}" href="{escape(shape.href)}" {said}>{title}{_report(shape)}</a>'


def _window(shape: Shape) -> str:
    x, y, width, height = shape.x, shape.y, shape.width, shape.height
    left, right = round(x + 4, 1), round(x + width - 4, 1)
    begin = f"h-4v{height}h4" if shape.borders[0] == "[" else f"q-6 {height / 2} 0 {height}"
    end = f"h4v{height}h-4" if shape.borders[1] == "]" else f"q6 {height / 2} 0 {height}"
    text = f'<text x="{round(x + width / 2, 1)}" y="{y + height - 2.5}">{escape(shape.text)}</text>'
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}"/>'
        f'<path d="M{left} {y}{begin}M{right} {y}{end}"/>{text if shape.text else ""}'
    )


def _report(shape: Shape) -> str:
    half = shape.height / 2
    draw = next((draw for word, draw in _SIGNS.items() if word in shape.kind), _box)
    text = f'<text x="{shape.x}" y="{shape.y + half + 4}">{escape(shape.text)}</text>' if shape.text else ""
    sign = f'<text class="difference" x="{shape.x}" y="{shape.y - 5}">{escape(shape.sign)}</text>' if shape.sign else ""
    return draw(shape, half) + text + sign


def _diamond(shape: Shape, half: float) -> str:
    across, down = half + 3, half + 2
    return f'<path d="M{shape.x} {shape.y - 2}l{across} {down}l-{across} {down}l-{across} -{down}z"/>'


def _triangle(shape: Shape, half: float) -> str:
    return f'<path d="M{shape.x} {shape.y - 4}l{half + 3} {shape.height + 5}h-{shape.height + 6}z"/>'


def _circle(shape: Shape, half: float) -> str:
    return f'<circle cx="{shape.x}" cy="{shape.y + half}" r="{half + 1}"/>'


def _box(shape: Shape, half: float) -> str:
    size = f'width="{shape.height}" height="{shape.height}"'
    return f'<rect x="{round(shape.x - half, 1)}" y="{shape.y}" {size} rx="2"/>'


_SIGNS: Final[Mapping[str, Callable[[Shape, float], str]]] = {
    "changes": _diamond,
    "appears": _triangle,
    "vanishes": _circle,
}
"""The outline of a report by how it differs."""
