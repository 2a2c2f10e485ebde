"""Shrinks SVG from vl-convert without visible changes.

Groups without attributes are removed, attributes shared by siblings move to their group, equal shapes become
references, points of a line that lie on the straight line between their neighbours are dropped, and numbers have one
decimal (a tenth of a px).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeAlias
from xml.etree.ElementTree import Element, SubElement

TOLERANCE: Final = 0.3
"""Maximum distance (px) of a simplified line from the original."""
_SVG: Final = "{http://www.w3.org/2000/svg}"
_LINK: Final = "{http://www.w3.org/1999/xlink}href"
_DROPPED: Final = (
    "class", "role", "aria-roledescription", "aria-hidden", "aria-label", "pointer-events", "stroke-miterlimit",
    "font-family", "target", "font-size", "cursor",
)  # fmt: skip
_DEFAULTS: Final = {"opacity": "1", "font-weight": "normal", "stroke-width": "1", "transform": "translate(0,0)"}
_SHARED: Final = ("fill", "stroke", "stroke-width", "text-anchor", "font-weight")
_SIZE: Final = "11.5px"
_NUMBER: Final = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_MOVED: Final = re.compile(r"translate\((-?[\d.]+),(-?[\d.]+)\)")
_STRAIGHT: Final = re.compile(r"[ML\d.,eE-]+Z?")
_STEP: Final = re.compile(r"([ML])(-?[\d.]+(?:e-?\d+)?),(-?[\d.]+(?:e-?\d+)?)")
_FEW: Final = 3
"""Number of equal shapes from which they are references to one definition."""

Place: TypeAlias = tuple[float, float]


def compact(root: Element, prefix: str, *, titles: bool) -> None:
    """Shrink an SVG in place; ids get a prefix, and without ``titles`` only texts keep theirs.

    A mark's description becomes its ``title`` element, which browsers show as a tooltip.
    """
    _cleaned(root, titles)
    for child in root:
        _hoisted(child)
    _merged(root)
    _referred(root, prefix)
    _renamed(root, prefix)


def _cleaned(element: Element, titles: bool) -> None:
    """Remove namespaces, roles, defaults and empty shapes; descriptions become titles."""
    element.tag = element.tag.removeprefix(_SVG)
    mark = element.get("role") == "graphics-symbol" and element.get("aria-roledescription") != "axis"
    described = element.get("aria-label") if mark and (titles or element.tag == "text") else None
    size = element.get("font-size", _SIZE)
    background = [child for child in element if child.get("class") in ("background", "foreground")]
    for child in background:
        element.remove(child)
    for name in _DROPPED:
        element.attrib.pop(name, None)
    if size != _SIZE:
        element.set("font-size", size)
    if (link := element.attrib.pop(_LINK, None)) is not None:
        element.attrib |= {"href": f"#{link.partition('#')[2]}", "aria-label": _link_name(element)}
    _shortened(element)
    for child in list(element):
        _cleaned(child, titles)
    if described:
        SubElement(element, "title").text = described


def _link_name(link: Element) -> str:
    """The accessible name of a link: the title of its mark."""
    return next((label for mark in link.iter() if (label := mark.get("aria-label"))), "")


def _shortened(element: Element) -> None:
    """One decimal for numbers, no defaults, simplified straight lines, texts placed without a transform."""
    if element.tag == "path" and _STRAIGHT.fullmatch(drawn := element.get("d", "")):
        element.set("d", simplified(drawn))
    for name, value in list(element.attrib.items()):
        element.set(
            name,
            _NUMBER.sub(lambda match: _plain(float(match[0])), value)
            if name not in ("fill-opacity", "opacity")
            else value,
        )
        if _DEFAULTS.get(name) == element.attrib[name]:
            del element.attrib[name]
    if "stroke" not in element.attrib and element.tag == "path":
        element.attrib.pop("stroke-width", None)
    # Coordinates take fewer bytes than a transform, and a page has thousands of texts.
    if element.tag == "text" and (moved := _MOVED.fullmatch(element.get("transform", ""))):
        del element.attrib["transform"]
        element.attrib |= {"x": moved[1], "y": moved[2]}


def _plain(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    # 0.5 is .5 in SVG.
    return "0" if text == "-0" else re.sub(r"^(-?)0\.", r"\1.", text)


def simplified(drawn: str) -> str:
    """A path of straight lines with as few points as the tolerance allows, in relative steps."""
    closed = "Z" if drawn.endswith("Z") else ""
    parts: list[list[Place]] = []
    for kind, x, y in _STEP.findall(drawn):
        if kind == "M" or not parts:
            parts.append([])
        parts[-1].append((float(x), float(y)))
    return "".join(_steps(thinned(part)) + closed for part in parts)


def _steps(points: Sequence[Place]) -> str:
    tenths = [(round(x * 10), round(y * 10)) for x, y in points]
    text = f"M{_plain(tenths[0][0] / 10)},{_plain(tenths[0][1] / 10)}"
    steps = []
    for (x0, y0), (x, y) in pairwise(tenths):
        # From tenth to tenth, both rounded: differences of unrounded points would add up to a drift along the line.
        across, down = _plain((x - x0) / 10), _plain((y - y0) / 10)
        # A minus sign separates two numbers as well as a space does.
        steps.append(across + ("" if down.startswith("-") else " ") + down)
    return text + ("l" + " ".join(steps) if steps else "")


def thinned(points: Sequence[Place]) -> list[Place]:
    """The points needed to keep a line within the tolerance (Douglas and Peucker)."""
    kept = {0, len(points) - 1}
    waiting = [(0, len(points) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        # The farthest point is kept if it is too far off, and both halves are looked at in the same way.
        far, place = max((_off(points[at], points[first], points[last]), at) for at in range(first + 1, last))
        if far > TOLERANCE:
            kept.add(place)
            waiting += [(first, place), (place, last)]
    return [points[at] for at in sorted(kept)]


def _off(point: Place, start: Place, end: Place) -> float:
    """The distance of a point from a line between two others."""
    (x, y), (x0, y0), (x1, y1) = point, start, end
    across, down = x1 - x0, y1 - y0
    length = across * across + down * down
    # The nearest point of the segment, not of the endless line: its share of the way, from 0 to 1.
    share = 0.0 if length == 0 else min(1.0, max(0.0, ((x - x0) * across + (y - y0) * down) / length))
    return float(((x - x0 - share * across) ** 2 + (y - y0 - share * down) ** 2) ** 0.5)


def _merged(element: Element) -> None:
    """Inline groups without attributes, and merge equal lines into paths."""
    for child in list(element):
        _merged(child)
    inlined = list(_inlined(element))
    for child in list(element):
        element.remove(child)
    element.extend(inlined)
    _joined(element)


def _inlined(element: Element) -> Iterator[Element]:
    for child in element:
        if child.tag == "g" and not child.attrib:
            yield from child
        elif child.tag != "g" or len(child):
            yield child


def _joined(element: Element) -> None:
    """Merge adjacent lines of the same style into one path."""
    last: Element | None = None
    for child in list(element):
        if child.tag != "line" or len(child):
            last = None
            continue
        step = _line(child)
        # Equal in all attributes but the way itself.
        if last is not None and last.attrib | {"d": ""} == child.attrib | {"d": ""}:
            last.set("d", last.attrib["d"] + step)
            element.remove(child)
            continue
        child.tag, last = "path", child
        child.set("d", step)


def _line(line: Element) -> str:
    moved = _MOVED.fullmatch(line.attrib.pop("transform", "translate(0,0)"))
    start = f"{moved[1]},{moved[2]}" if moved else "0,0"
    across, down = line.attrib.pop("x2", "0"), line.attrib.pop("y2", "0")
    return f"M{start}" + (f"h{across}" if down == "0" else f"v{down}" if across == "0" else f"l{across},{down}")


def _hoisted(group: Element) -> None:
    """Move attributes that all children of a group share to the group; hidden marks get a class."""
    for child in group:
        if child.tag in ("g", "a"):
            _hoisted(child)
    marks = [child for child in group if child.tag != "title"]
    # For a single child nothing is saved.
    if group.tag not in ("g", "a") or len(marks) < 2:
        return
    for name in _SHARED:
        values = {child.get(name) for child in marks}
        if len(values) == 1 and name not in group.attrib and (value := values.pop()) is not None:
            group.set(name, value)
            for child in marks:
                del child.attrib[name]
    if all(child.get("opacity") == "0" for child in marks):
        group.set("class", "hidden")
        for child in marks:
            del child.attrib["opacity"]


def _referred(root: Element, prefix: str) -> None:
    """Draw shapes that occur several times by reference to the first definition."""
    counts = Counter(_shape(child) for child in root.iter("path") if _shape(child))
    names = {shape: f"s{place}" for place, (shape, count) in enumerate(counts.items()) if count >= _FEW}
    for child in root.iter("path"):
        if name := names.get(_shape(child)):
            moved = _MOVED.fullmatch(child.attrib.pop("transform"))
            assert moved is not None
            child.tag = "use"
            del child.attrib["d"]
            child.attrib |= {"href": f"#{prefix}{name}", "x": moved[1], "y": moved[2]}
    if names:
        definitions = Element("defs")
        for shape, name in names.items():
            SubElement(definitions, "path", {"id": name, "d": shape})
        root.insert(0, definitions)


def _shape(path: Element) -> str:
    """The outline of a shape that is only moved; empty for other paths."""
    return path.get("d", "") if _MOVED.fullmatch(path.get("transform", "")) and path.get("d") else ""


def _renamed(root: Element, prefix: str) -> None:
    for element in root.iter():
        if "id" in element.attrib:
            element.set("id", prefix + element.attrib["id"])
        if "clip-path" in element.attrib:
            element.set("clip-path", element.attrib["clip-path"].replace("url(#", f"url(#{prefix}"))
