"""Pages for people: a fragment with its form, the list of data sets."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from streamgauge.model.algebra import Var
from streamgauge.model.terms import Term
from streamgauge.servers.fragments.quads import DEFAULT, DEFAULT_IRI, Quad
from streamgauge.servers.fragments.serving.asked import PLACES
from streamgauge.servers.fragments.serving.dataset import DataSet
from streamgauge.servers.fragments.serving.locating import located
from streamgauge.servers.fragments.serving.view import View

TIMED: Final = 200
"""The most quads on a page that shows when each holds."""

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'"
"""What a browser lets these pages do (Content-Security-Policy)."""

_LITERAL = re.compile(r'("(?:[^"\\]|\\.)*")(.*)', re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_PLAIN: Final = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}
_TEMPLATES = Environment(
    loader=PackageLoader("streamgauge.servers.fragments.serving", "."),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)


@dataclass(frozen=True, slots=True)
class Cell:
    """A term in a table: its text, what of it is muted before and after the rest, the fragment that it leads to."""

    place: str
    text: str
    before: str
    name: str
    after: str
    link: str


def fragment_page(view: View) -> str:
    """A page of a fragment, with its form."""
    places, dataset, page = PLACES[view.dataset.shape], view.dataset, view.page
    first = (view.asked.number - 1) * view.size
    return _TEMPLATES.get_template("fragment.html").render(
        base=view.base,
        name=dataset.name,
        address=view.layout.dataset,
        shape=dataset.shape,
        places=[(place, _given(view, number)) for number, place in enumerate(places)],
        total=page.total,
        first=first + 1 if page.quads else 0,
        last=first + len(page.quads),
        until="" if page.until is None else _instant(page.until),
        until_said="" if page.until is None else _spoken(page.until),
        period=(dataset.period or 0) // 1000,
        timed=view.then is None and len(page.quads) <= TIMED,
        rows=list(_rows(view, places)),
        previous=view.address(view.previous),
        next=view.address(view.next),
    )


def _rows(view: View, places: Sequence[str]) -> Iterator[tuple[list[Cell], list[str]]]:
    """The cells of each quad, and when what it says holds."""
    for quad, stored in zip(view.quads(), view.page.quads, strict=True):
        cells = [_cell(view, place, term) for place, term in zip(places, quad, strict=False)]
        yield cells, _intervals(view, stored) if view.then is None and len(view.page.quads) <= TIMED else []


def _intervals(view: View, quad: Quad) -> list[str]:
    """When a quad's fact holds, as its annotations say; else when the quad ends."""
    dataset = view.dataset
    found = [each.fact for each in located(dataset.store, quad[:3], dataset.style) if quad in each.own]
    timed = [(fact.initial, fact.final) for fact in found if not fact.static]
    end = dataset.store.nearest(quad, dataset.clock())
    return [_interval(*each) for each in timed or ([] if end is None else [(None, end)])]


def _interval(initial: int | None, final: int | None) -> str:
    began, ends = ("" if each is None else _spoken(each) for each in (initial, final))
    return f"from {began} until {ends}" if began and ends else f"from {began}" if began else f"until {ends}"


def index_page(base: str, datasets: Sequence[DataSet]) -> str:
    """The list of data sets."""
    rows: list[Mapping[str, object]] = [
        {"name": each.name, "address": f"{base}/{quote(each.name)}", "size": each.size} for each in datasets
    ]
    return _TEMPLATES.get_template("index.html").render(datasets=rows)


def spoken(term: Term) -> str:
    """A term as a form takes it: an IRI bare, a literal's text without escapes."""
    if term == DEFAULT:
        return DEFAULT_IRI[1:-1]
    if term.startswith("<") and not term.startswith("<<"):
        return term[1:-1]
    found = _LITERAL.fullmatch(term)
    if found is None:
        return term
    text, rest = found.groups()
    return _ESCAPE.sub(_unescaped, text) + rest.replace("<", "").replace(">", "")


def _given(view: View, place: int) -> str:
    """What was asked for in a place, where that is one term."""
    node = view.asked.wanted[place]
    return "" if node is None else f"?{node.name}" if isinstance(node, Var) else spoken(node)


def _cell(view: View, place: str, term: Term) -> Cell:
    text = spoken(term)
    start = max(text.rfind("/"), text.rfind("#")) + 1 if term.startswith("<") else 0
    end = text.rfind('"') + 1 if term.startswith('"') else len(text)
    link = f"{view.layout.dataset}?{urlencode({place: text})}" if term != DEFAULT else ""
    return Cell(place, text, text[:start], text[start:end], text[end:], link)


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    return chr(int(escape[1:], 16)) if escape[0] in "uU" else _PLAIN.get(escape, escape)


def _spoken(time: int) -> str:
    return _instant(time).replace("T", " ").replace("Z", " UTC")


def _instant(time: int) -> str:
    return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
