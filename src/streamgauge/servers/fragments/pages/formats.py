"""The formats of a page: RDF syntaxes for clients, HTML for people; the metadata in them (Hydra, VoID).

The metadata of a page are its fragment, its data set and its form (Triple and Quad Pattern Fragments). Its triples are
written once for each layout of a page, with holes for the parts that differ. Their order matters to clients: a data
set's subsets come before the fragment's, as the last that names the page tells the primary topic.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from itertools import groupby
from typing import Final
from urllib.parse import quote, quote_plus

import pyoxigraph as ox
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from streamgauge.model.algebra import Var
from streamgauge.model.terms import RDF_TYPE, XSD, Term, Triple
from streamgauge.servers.fragments import (
    CHANGES,
    DEFAULT,
    DEFAULT_IRI,
    LIMIT,
    MOST_QUADS,
    MOST_VALUES,
    VALUES,
    Quad,
    form_value,
)
from streamgauge.servers.fragments.labels import Bounds, LabelError
from streamgauge.servers.fragments.pages import MOST_BINDINGS, PLACES, FragmentRequest, FragmentShape, skolemised
from streamgauge.servers.fragments.pages.dataset import DataSet, Page, graph_times, located_facts
from streamgauge.servers.http.replies import style

PREFIXES: Final = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "void": "http://rdfs.org/ns/void#",
    "sd": "http://www.w3.org/ns/sparql-service-description#",
    "hydra": "http://www.w3.org/ns/hydra/core#",
    "foaf": "http://xmlns.com/foaf/0.1/",
}
_PROPERTIES: Final = {
    "subject": "rdf:subject",
    "predicate": "rdf:predicate",
    "object": "rdf:object",
    "graph": "sd:graph",
    "values": VALUES,
    "limit": LIMIT,
}
_INTEGER = f"^^<{XSD}integer>"

GRAPH, FRAGMENT, PAGE, FIRST, PREVIOUS, NEXT = (f"<\x00{letter}>" for letter in "GFPABC")
TOTAL: Final = f'"\x00N"{_INTEGER}'
"""Holes: the metadata's graph, the fragment, the page, its neighbours, the count."""


class Syntax(Enum):
    """How triples are written."""

    LINES = "lines"  # N-Triples
    QUAD_LINES = "quad lines"  # N-Quads
    TURTLE = "turtle"
    TRIG = "trig"
    JSON_LD = "json-ld"


@dataclass(frozen=True, slots=True)
class Layout:
    """All that the triples of a page depend on, beside what fills their holes.

    ``whole``: page and fragment are one; ``entry``: no term is asked for, as where clients begin.
    """

    base: str
    name: str
    shape: FragmentShape
    page_size: int
    largest: int
    whole: bool
    previous: bool
    next: bool
    entry: bool

    @property
    def dataset(self) -> str:
        """The data set's address."""
        return f"{self.base}/{quote(self.name)}"


def iri_of(name: str) -> Term:
    """The IRI of a prefixed name; a term as it is."""
    prefix, _, local = name.partition(":")
    return f"<{PREFIXES[prefix]}{local}>" if prefix in PREFIXES else name


def page_triples(layout: Layout) -> list[Triple]:
    """All triples of a page's metadata, with holes, in the order in which they are sent."""
    dataset = f"<{layout.dataset}#dataset>"
    subsets = [PAGE] if layout.whole else [PAGE, FRAGMENT]
    return _terms(
        (GRAPH, "foaf:primaryTopic", FRAGMENT),
        *dataset_triples(layout.base, layout.name),
        *((dataset, "void:subset", subset) for subset in subsets),
        *form_triples(layout),
        *_paging(layout),
    )


def dataset_triples(base: str, name: str) -> list[Triple]:
    """The triples about a data set that are on every page."""
    dataset = f"<{base}/{quote(name)}#dataset>"
    return _terms(
        (f"<{base}/#dataset>", "hydra:member", dataset),
        (dataset, RDF_TYPE, "void:Dataset"),
        (dataset, RDF_TYPE, "hydra:Collection"),
    )


def form_triples(layout: Layout) -> list[Triple]:
    """The forms of a data set: one of its places alone, which clients look for, and one with bindings and a limit.

    The second form and the template of changes stand where clients begin, on the pages of the data set itself.
    """
    dataset, places = f"<{layout.dataset}#dataset>", PLACES[layout.shape]
    more = (*places, "values", "limit")
    default = [(dataset, "sd:defaultGraph", DEFAULT_IRI)] if layout.shape is FragmentShape.QUADS else []
    if not layout.entry:
        search = (dataset, "hydra:search", f"<{layout.dataset}#form>"), *_form(layout, "form", places)
        return _terms(*default, *search, *(triple for name in places for triple in _mapping(layout, name)))
    return _terms(
        *default,
        (dataset, "hydra:search", f"<{layout.dataset}#form>"),
        (dataset, "hydra:search", f"<{layout.dataset}#bindings>"),
        (dataset, CHANGES, f'"{layout.dataset}{{?{",".join((*places, "since"))}}}"'),
        *_form(layout, "form", places),
        *_form(layout, "bindings", more),
        (f"<{layout.dataset}#bindings>", MOST_VALUES, f'"{MOST_BINDINGS}"{_INTEGER}'),
        (f"<{layout.dataset}#bindings>", MOST_QUADS, f'"{layout.largest}"{_INTEGER}'),
        *(triple for name in more for triple in _mapping(layout, name)),
    )


def _form(layout: Layout, form: str, names: tuple[str, ...]) -> list[Triple]:
    here = f"<{layout.dataset}#{form}>"
    return [
        (here, RDF_TYPE, "hydra:IriTemplate"),
        (here, "hydra:template", f'"{layout.dataset}{{?{",".join(names)}}}"'),
        (here, "hydra:variableRepresentation", "hydra:ExplicitRepresentation"),
        *((here, "hydra:mapping", f"<{layout.dataset}#{name}>") for name in names),
    ]


def _mapping(layout: Layout, name: str) -> list[Triple]:
    here = f"<{layout.dataset}#{name}>"
    return [(here, "hydra:variable", f'"{name}"'), (here, "hydra:property", _PROPERTIES[name])]


def _paging(layout: Layout) -> list[Triple]:
    counted = [FRAGMENT] if layout.whole else [FRAGMENT, PAGE]
    links = [("hydra:first", FIRST)]
    links += [("hydra:previous", PREVIOUS)] if layout.previous else []
    links += [("hydra:next", NEXT)] if layout.next else []
    return [
        (FRAGMENT, "void:subset", PAGE),
        (FRAGMENT, "hydra:view", PAGE),
        *((subject, name, TOTAL) for subject in counted for name in ("void:triples", "hydra:totalItems")),
        (PAGE, RDF_TYPE, "hydra:PartialCollectionView"),
        (PAGE, "hydra:itemsPerPage", f'"{layout.page_size}"{_INTEGER}'),
        *((PAGE, name, page) for name, page in links),
    ]


def _terms(*triples: Triple) -> list[Triple]:
    return [(iri_of(s), iri_of(p), iri_of(o)) for s, p, o in triples]


@lru_cache(maxsize=4096)
def metadata_template(layout: Layout, syntax: Syntax) -> str:
    """The metadata of pages of a layout, for ``%`` with what fills the holes by their letters."""
    return holes(triples_text(page_triples(layout), syntax, GRAPH))


def holes(text: str) -> str:
    """Text with holes as a template for ``%``."""
    parts = text.replace("%", "%%").split("\x00")
    return parts[0] + "".join(f"%({part[0]})s{part[1:]}" for part in parts[1:])


def triples_text(triples: list[Triple], syntax: Syntax, graph: Term) -> str:
    """Triples in a syntax, in their order, in a graph where the syntax has any."""
    if syntax is Syntax.LINES:
        return "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
    if syntax is Syntax.QUAD_LINES:
        return "".join(f"{s} {p} {o} {graph} .\n" for s, p, o in triples)
    head = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in PREFIXES.items())
    text = "".join(_subject(subject, list(group)) for subject, group in groupby(triples, key=lambda triple: triple[0]))
    return head + (f"{graph} {{\n{text}}}\n" if syntax is Syntax.TRIG else text)


def _subject(subject: Term, triples: list[Triple]) -> str:
    said = [
        f"{'a' if predicate == RDF_TYPE else _short(predicate)} {', '.join(_short(o) for _, _, o in group)}"
        for predicate, group in groupby(triples, key=lambda triple: triple[1])
    ]
    return f"{_short(subject)} {'; '.join(said)} .\n"


def _short(full: Term) -> str:
    if full.endswith(_INTEGER):
        return full[1 : -len(_INTEGER) - 1]
    for prefix, iri in PREFIXES.items():
        if full.startswith(f"<{iri}"):
            return f"{prefix}:{full[len(iri) + 1 : -1]}"
    return full


@dataclass(frozen=True, slots=True)
class PageView:
    """A page of a data set, as asked for below ``base``; ``then`` is the instant that it shows (ms), if not now."""

    dataset: DataSet
    base: str
    asked: FragmentRequest
    page: Page
    then: int | None = None

    @property
    def size(self) -> int:
        """How many quads it may have."""
        return self.asked.limit or self.dataset.page_size

    @property
    def previous(self) -> int | None:
        """The number of the page before, one that is not empty; ``None`` when there is none."""
        last = -(-self.page.total // self.size)
        before = min(self.asked.number - 1, last)
        return before if before >= 1 else None

    @property
    def next(self) -> int | None:
        """The number of the page after; ``None`` when nothing would be on it."""
        return self.asked.number + 1 if self.asked.number * self.size < self.page.total else None

    @property
    def layout(self) -> Layout:
        """The layout of its metadata."""
        return Layout(
            self.base,
            self.dataset.name,
            self.dataset.shape,
            self.size,
            self.dataset.largest,
            self.asked.page == self.asked.fragment,
            self.previous is not None,
            self.next is not None,
            not any(isinstance(node, str) for node in self.asked.wanted[: len(PLACES[self.dataset.shape])]),
        )

    @property
    def graph(self) -> Term:
        """The graph of its metadata."""
        return f"<{self.base}{self.asked.fragment}#metadata>"

    def metadata(self, syntax: Syntax) -> str:
        """The metadata of the page, in a syntax."""
        layout, fragment = self.layout, self.base + self.asked.fragment
        return metadata_template(layout, syntax) % {
            "G": f"{fragment}#metadata",
            "F": fragment,
            "P": self.base + self.asked.page,
            "A": self.address(1),
            "B": self.address(self.previous) if layout.previous else "",
            "C": self.address(self.next) if layout.next else "",
            "N": self.page.total,
        }

    def address(self, number: int | None) -> str:
        """The address of another page; nothing where there is none."""
        return "" if number is None else self.base + self.asked.at(number)

    def quads(self) -> list[Quad]:
        """The quads of the page, blank nodes as IRIs."""
        base = self.base
        return [
            (skolemised(s, base), skolemised(p, base), skolemised(o, base), skolemised(g, base))
            if s[0] == "_" or o[0] == "_" or g[:1] == "_" or o[:2] == "<<"
            else (s, p, o, g)
            for s, p, o, g in self.page.quads
        ]


TIMED: Final = 200
"""The most quads on a page that shows when each holds."""

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'"
"""The Content-Security-Policy of these pages."""

_TEMPLATES = Environment(
    loader=PackageLoader("streamgauge.servers.fragments.pages", "."),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)
_TEMPLATES.globals["style"] = Markup(style())


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
        rows=Markup("".join(_rows(view, places))),
        previous=view.address(view.previous),
        next=view.address(view.next),
    )


def _rows(view: PageView, places: Sequence[str]) -> Iterator[str]:
    """The row of each quad, as HTML, and when what it says holds; cells are made once for each term."""
    timed, address = view.then is None and len(view.page.quads) <= TIMED, view.layout.dataset
    known: dict[Term, list[Bounds]] = {}
    now = view.dataset.clock()
    for quad, stored in zip(view.quads(), view.page.quads, strict=True):
        cells = "".join([_cell(address, place, term) for place, term in zip(places, quad, strict=False)])
        yield f"<tr>{cells}{_when(view.dataset, stored, known, now) if timed else ''}</tr>\n"


def _when(dataset: DataSet, quad: Quad, known: dict[Term, list[Bounds]], now: int) -> str:
    """The cell that says when a quad's fact holds, as its annotations say; else when the quad ends after ``now``."""
    timed = _annotated(dataset, quad, known)
    if not timed and (end := dataset.store.nearest(quad, now)) is not None:
        timed = [(None, end)]
    if not timed:
        return f'<td data-label="holds">{_ALWAYS}</td>'
    times = " ".join([f"<span>{escape(_interval(*each))}</span>" for each in timed])
    return f'<td data-label="holds">{times}</td>'


_ALWAYS: Final = '<span class="note">always</span>'


def _annotated(dataset: DataSet, quad: Quad, known: dict[Term, list[Bounds]]) -> list[Bounds]:
    """When the annotations say that a quad's fact holds; the label of a graph is looked up once for its quads."""
    if dataset.style.method == "graphs":
        if quad[3] not in known:
            known[quad[3]] = graph_times(dataset.store, quad[3], dataset.style)
        return known[quad[3]]
    try:
        found = [each.fact for each in located_facts(dataset.store, quad[:3], dataset.style) if quad in each.own]
    except LabelError:
        return []
    return [(fact.initial, fact.final) for fact in found if not fact.static]


def _interval(initial: int | None, final: int | None) -> str:
    began, ends = ("" if each is None else _spoken(each) for each in (initial, final))
    return f"from {began} until {ends}" if began and ends else f"from {began}" if began else f"until {ends}"


def index_page(base: str, datasets: Sequence[DataSet]) -> str:
    """The list of data sets."""
    rows: list[Mapping[str, object]] = [
        {"name": each.name, "address": f"{base}/{quote(each.name)}", "size": each.size} for each in datasets
    ]
    return _TEMPLATES.get_template("index.html").render(datasets=rows)


def _given(view: PageView, place: int) -> str:
    """The term or variable requested in a place, as text; empty without one."""
    node = view.asked.wanted[place]
    return "" if node is None else f"?{node.name}" if isinstance(node, Var) else form_value(node)


@lru_cache(maxsize=20_000)
def _cell(dataset: str, place: str, term: Term) -> str:
    """The cell of a term, as HTML: muted before and after its name, a link to its fragment of the data set."""
    if term == DEFAULT:
        return f'<td data-label="{place}"><span class="note">default</span></td>'
    text = form_value(term)
    start = max(text.rfind("/"), text.rfind("#")) + 1 if term[0] == "<" else 0
    end = text.rfind('"') + 1 if term[0] == '"' else len(text)
    (before, coded_before), (after, coded_after) = _shared(text[:start]), _shared(text[end:])
    own = text[start:end]
    coded = own if _UNRESERVED.fullmatch(own) else quote_plus(own)
    name = str(escape(own)) if _MARKUP.search(own) else own
    named = (
        f'<a href="{_question(dataset, place)}{coded_before}{coded}{coded_after}" title="{before}{name}{after}">'
        f"<i>{before}</i>{name}<i>{after}</i></a>"
    )
    return f'<td data-label="{place}">{named}</td>'


_UNRESERVED: Final = re.compile(r"[A-Za-z0-9_.~-]*")
_MARKUP: Final = re.compile("[&<>'\"]")


@lru_cache(maxsize=5_000)
def _shared(part: str) -> tuple[str, str]:
    """A namespace or datatype, which many terms have: as HTML, and coded for a query."""
    return str(escape(part)), quote_plus(part)


@lru_cache(maxsize=100)
def _question(dataset: str, place: str) -> str:
    """The address of a fragment, as HTML, up to the term that is asked for in a place."""
    return str(escape(f"{dataset}?{place}="))


def _spoken(time: int) -> str:
    return _instant(time).replace("T", " ").replace("Z", " UTC")


def _instant(time: int) -> str:
    return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class PageFormat:
    """A format: its name in validators, its media types, its syntax; HTML is none."""

    name: str
    types: tuple[str, ...]
    syntax: Syntax | None

    @property
    def timely(self) -> bool:
        """Whether a page tells when facts end, and not only what they are."""
        return self.syntax is None

    def write(self, view: PageView) -> str:
        """A page in this format."""
        if self.syntax is None:
            return fragment_page(view)
        if self.syntax is Syntax.JSON_LD:
            return _json_ld(view.metadata(Syntax.QUAD_LINES) + _quads_text(view.quads(), Syntax.QUAD_LINES))
        return view.metadata(self.syntax) + _quads_text(view.quads(), self.syntax)


def _quads_text(quads: Iterable[Quad], syntax: Syntax) -> str:
    """Quads in a syntax; those without graphs have the data of all graphs, each triple once."""
    if syntax is Syntax.QUAD_LINES:
        return "".join([f"{s} {p} {o} {g} .\n" if g else f"{s} {p} {o} .\n" for s, p, o, g in quads])
    if syntax is not Syntax.TRIG:
        return "".join(dict.fromkeys(f"{s} {p} {o} .\n" for s, p, o, _ in quads))
    parts: dict[str, list[str]] = {}
    for s, p, o, g in quads:
        parts.setdefault(g, []).append(f"{s} {p} {o} .\n")
    return "".join(f"{g} {{\n{''.join(lines)}}}\n" if g else "".join(lines) for g, lines in parts.items())


def _json_ld(lines: str) -> str:
    """N-Quads as JSON-LD."""
    quads = ox.parse(lines.encode(), format=ox.RdfFormat.N_QUADS)
    return (ox.serialize(quads, format=ox.RdfFormat.STREAMING_JSON_LD) or b"").decode()


FORMATS: Final = (
    PageFormat("t", ("application/trig", "application/x-trig"), Syntax.TRIG),
    PageFormat("q", ("application/n-quads", "text/x-nquads"), Syntax.QUAD_LINES),
    PageFormat("l", ("text/turtle", "application/x-turtle", "text/n3"), Syntax.TURTLE),
    PageFormat("n", ("application/n-triples",), Syntax.LINES),
    PageFormat("j", ("application/ld+json", "application/json"), Syntax.JSON_LD),
    PageFormat("h", ("text/html", "application/xhtml+xml"), None),
)
"""In the order in which the server prefers them."""


def dataset_list(base: str, datasets: Sequence[DataSet], form: PageFormat) -> str:
    """All data sets with their forms, in a format."""
    if form.syntax is None:
        return index_page(base, datasets)
    triples = [triple for dataset in datasets for triple in _dataset_triples(base, dataset)]
    graph = f"<{base}/#metadata>"
    if form.syntax is Syntax.JSON_LD:
        return _json_ld(triples_text(triples, Syntax.QUAD_LINES, graph))
    return triples_text(triples, form.syntax, graph)


def _dataset_triples(base: str, dataset: DataSet) -> list[Triple]:
    sizes = dataset.page_size, dataset.largest
    layout = Layout(base, dataset.name, dataset.shape, *sizes, whole=True, previous=False, next=False, entry=True)
    return dataset_triples(base, dataset.name) + form_triples(layout)
