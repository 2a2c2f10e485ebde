"""The formats of a page: RDF syntaxes for clients, HTML for people; and the list of data sets in each."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlencode

import pyoxigraph as ox
from jinja2 import Environment, PackageLoader, StrictUndefined

from streamgauge.model.algebra import Var
from streamgauge.model.terms import Term, Triple
from streamgauge.servers.fragments import DEFAULT, DEFAULT_IRI, Quad
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.facts import located_facts
from streamgauge.servers.fragments.pages.fragment_request import PLACES
from streamgauge.servers.fragments.pages.metadata import (
    Layout,
    PageView,
    Syntax,
    dataset_triples,
    form_triples,
    triples_text,
)

TIMED: Final = 200
"""The most quads on a page that shows when each holds."""

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'"
"""The Content-Security-Policy of these pages."""

_LITERAL = re.compile(r'("(?:[^"\\]|\\.)*")(.*)', re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_PLAIN: Final = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}
_TEMPLATES = Environment(
    loader=PackageLoader("streamgauge.servers.fragments.pages", "."),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)


@dataclass(frozen=True, slots=True)
class TermCell:
    """A term in a table: its text, what of it is muted before and after the rest, the fragment that it leads to."""

    place: str
    text: str
    before: str
    name: str
    after: str
    link: str


def fragment_page(view: PageView) -> str:
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


def _rows(view: PageView, places: Sequence[str]) -> Iterator[tuple[list[TermCell], list[str]]]:
    """The cells of each quad, and when what it says holds."""
    for quad, stored in zip(view.quads(), view.page.quads, strict=True):
        cells = [_cell(view, place, term) for place, term in zip(places, quad, strict=False)]
        yield cells, _intervals(view, stored) if view.then is None and len(view.page.quads) <= TIMED else []


def _intervals(view: PageView, quad: Quad) -> list[str]:
    """When a quad's fact holds, as its annotations say; else when the quad ends."""
    dataset = view.dataset
    found = [each.fact for each in located_facts(dataset.store, quad[:3], dataset.style) if quad in each.own]
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


def form_value(term: Term) -> str:
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


def _given(view: PageView, place: int) -> str:
    """The term or variable requested in a place, as text; empty without one."""
    node = view.asked.wanted[place]
    return "" if node is None else f"?{node.name}" if isinstance(node, Var) else form_value(node)


def _cell(view: PageView, place: str, term: Term) -> TermCell:
    text = form_value(term)
    start = max(text.rfind("/"), text.rfind("#")) + 1 if term.startswith("<") else 0
    end = text.rfind('"') + 1 if term.startswith('"') else len(text)
    link = f"{view.layout.dataset}?{urlencode({place: text})}" if term != DEFAULT else ""
    return TermCell(place, text, text[:start], text[start:end], text[end:], link)


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    return chr(int(escape[1:], 16)) if escape[0] in "uU" else _PLAIN.get(escape, escape)


def _spoken(time: int) -> str:
    return _instant(time).replace("T", " ").replace("Z", " UTC")


def _instant(time: int) -> str:
    return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class PageFormat:
    """A format: its name in validators, its media types, how a page is written in it; ``triple_terms`` if it has them.

    ``timely``: what is written tells when facts end, and not only what they are.
    """

    name: str
    types: tuple[str, ...]
    write: Callable[[PageView], str]
    triple_terms: bool = True
    timely: bool = False


def _trig(view: PageView) -> str:
    """Data in its graphs, the metadata in one of its own."""
    return view.metadata(Syntax.TRIG) + _graphs(view.quads())


def _graphs(quads: Iterable[Quad]) -> str:
    parts: dict[str, list[str]] = {}
    for s, p, o, g in quads:
        parts.setdefault(g, []).append(f"{s} {p} {o} .\n")
    return "".join(f"{g} {{\n{''.join(lines)}}}\n" if g else "".join(lines) for g, lines in parts.items())


def _nquads(view: PageView) -> str:
    return view.metadata(Syntax.QUAD_LINES) + "".join(
        [f"{s} {p} {o} {g} .\n" if g else f"{s} {p} {o} .\n" for s, p, o, g in view.quads()]
    )


def _turtle(view: PageView) -> str:
    """Data and metadata together, graphs left out."""
    return view.metadata(Syntax.TURTLE) + _distinct_lines(view)


def _ntriples(view: PageView) -> str:
    return view.metadata(Syntax.LINES) + _distinct_lines(view)


def _distinct_lines(view: PageView) -> str:
    return "".join(dict.fromkeys(f"{s} {p} {o} .\n" for s, p, o, _ in view.quads()))


def _json_ld(view: PageView) -> str:
    quads = ox.parse(_nquads(view).encode(), format=ox.RdfFormat.N_QUADS)
    text = ox.serialize(quads, format=ox.RdfFormat.STREAMING_JSON_LD)
    return text.decode() if text is not None else ""


FORMATS: Final = (
    PageFormat("t", ("application/trig", "application/x-trig"), _trig),
    PageFormat("q", ("application/n-quads", "text/x-nquads"), _nquads),
    PageFormat("l", ("text/turtle", "application/x-turtle", "text/n3"), _turtle),
    PageFormat("n", ("application/n-triples",), _ntriples),
    PageFormat("j", ("application/ld+json", "application/json"), _json_ld, triple_terms=False),
    PageFormat("h", ("text/html", "application/xhtml+xml"), fragment_page, timely=True),
)
"""In the order in which the server prefers them."""


_SYNTAX: Final = {"t": Syntax.TRIG, "q": Syntax.QUAD_LINES, "l": Syntax.TURTLE, "n": Syntax.LINES}


def dataset_list(base: str, datasets: Sequence[DataSet], form: PageFormat) -> str:
    """All data sets with their forms, in a format."""
    if form.timely:
        return index_page(base, datasets)
    triples = [triple for dataset in datasets for triple in _dataset_triples(base, dataset)]
    graph = f"<{base}/#metadata>"
    if form.name in _SYNTAX:
        return triples_text(triples, _SYNTAX[form.name], graph)
    quads = ox.parse(triples_text(triples, Syntax.QUAD_LINES, graph).encode(), format=ox.RdfFormat.N_QUADS)
    return (ox.serialize(quads, format=ox.RdfFormat.STREAMING_JSON_LD) or b"").decode()


def _dataset_triples(base: str, dataset: DataSet) -> list[Triple]:
    sizes = dataset.page_size, dataset.largest
    layout = Layout(base, dataset.name, dataset.shape, *sizes, whole=True, previous=False, next=False)
    return dataset_triples(base, dataset.name) + form_triples(layout)
