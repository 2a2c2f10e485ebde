"""Charts as inline SVG: no script, no network; tooltips are title elements."""

import re
from html import escape
from itertools import count
from xml.etree import ElementTree

import vl_convert

from streamgauge.report.charts import Spec

_SVG = "{http://www.w3.org/2000/svg}"
_LONG = re.compile(r"-?\d+\.\d{3,}")
_DROPPED = ("role", "aria-roledescription", "aria-hidden", "aria-label", "pointer-events", "stroke-miterlimit")
_VERSION = "6.4"
"""The version of Vega-Lite that the specifications are written for."""


class Drawing:
    """Draws charts for one page, on which no two ids may be the same."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def svg(self, chart: Spec, label: str, variant: str) -> str:
        """The chart as an SVG element of class ``plot`` and ``variant``, read out as ``label``."""
        text = vl_convert.vegalite_to_svg(chart, vl_version=_VERSION)
        root = ElementTree.fromstring(text)
        _clean(root)
        _rename(root, f"p{next(self._numbers)}-")
        inner = "".join(_text(child) for child in root)
        box = escape(root.attrib["viewBox"])
        return f'<svg class="plot {variant}" viewBox="{box}" role="img" aria-label="{escape(label)}">{inner}</svg>'


def _text(element: ElementTree.Element) -> str:
    return ElementTree.tostring(element, encoding="unicode").replace(' xmlns="http://www.w3.org/2000/svg"', "")


def _clean(element: ElementTree.Element) -> None:
    """Strip namespaces, roles and empty shapes in place; a mark's description becomes its title element."""
    element.tag = element.tag.removeprefix(_SVG)
    described = element.get("aria-label") if element.get("role") == "graphics-symbol" else None
    axis = element.get("aria-roledescription") == "axis"
    for name in _DROPPED:
        element.attrib.pop(name, None)
    for name, value in element.attrib.items():
        element.set(name, _LONG.sub(lambda match: f"{float(match[0]):.2f}", value))
    for child in list(element):
        if child.get("class") in ("background", "foreground") and child.tag.endswith("path"):
            element.remove(child)
        else:
            _clean(child)
    if described and not axis:
        title = ElementTree.SubElement(element, "title")
        title.text = described


def _rename(root: ElementTree.Element, prefix: str) -> None:
    for element in root.iter():
        if "id" in element.attrib:
            element.set("id", prefix + element.attrib["id"])
        if "clip-path" in element.attrib:
            element.set("clip-path", element.attrib["clip-path"].replace("url(#", f"url(#{prefix}"))
