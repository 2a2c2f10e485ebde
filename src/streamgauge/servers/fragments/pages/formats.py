"""The formats of a page: RDF syntaxes and HTML.

A page in RDF consists of its metadata and its quads. Turtle and TriG write the subject of consecutive triples once, and
abbreviate the terms that the page was requested by, which are in every triple.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

import pyoxigraph as ox
from markupsafe import Markup, escape

from streamgauge.formats.syntaxes import MEDIA_TYPES
from streamgauge.model.algebra import Var
from streamgauge.model.controls import visible
from streamgauge.model.terms import Term, Triple, is_iri, is_literal, is_triple, triple_parts
from streamgauge.servers.fragments import DEFAULT, Quad, form_value
from streamgauge.servers.fragments.labels import Bounds, LabelError
from streamgauge.servers.fragments.pages import PLACES, FragmentRequest, FragmentShape
from streamgauge.servers.fragments.pages.dataset import DataSet, Page, graph_times, located_facts
from streamgauge.servers.fragments.pages.metadata import (
    Layout,
    Syntax,
    dataset_address,
    dataset_triples,
    form_triples,
    metadata_template,
    triples_text,
)
from streamgauge.servers.fragments.pages.selections import RequestedNodes
from streamgauge.servers.fragments.pages.terms import skolemised
from streamgauge.servers.http.replies import style

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(slots=True)
class PageView:
    """A page of a data set, as requested below ``base``; ``then`` is the past instant (ms) that it shows, if any."""

    dataset: DataSet
    base: str
    request: FragmentRequest
    page: Page
    then: int | None = None

    @property
    def size(self) -> int:
        """Maximum number of quads on the page."""
        return self.request.limit or self.dataset.page_size

    @property
    def previous(self) -> int | None:
        """The number of the preceding page that is not empty; ``None`` if there is none."""
        if self.request.number == 1:
            return None
        # A page beyond the last one leads back to the last one, not to another empty page.
        last = -(-self.page.total // self.size)
        before = min(self.request.number - 1, last)
        return before if before >= 1 else None

    @property
    def next(self) -> int | None:
        """The number of the following page; ``None`` if it would be empty."""
        return self.request.number + 1 if self.request.number * self.size < self.page.total else None

    def layout(self, previous: int | None, following: int | None) -> Layout:
        """The layout of the page's metadata; ``previous`` and ``following`` are ``None`` where no page is linked."""
        dataset, request = self.dataset, self.request
        s, p, o, g = request.wanted
        return Layout(
            self.base,
            dataset.name,
            dataset.shape,
            self.size,
            dataset.largest,
            request.page == request.fragment,
            previous is not None,
            following is not None,
            not (type(s) is str or type(p) is str or type(o) is str)
            and not (type(g) is str and dataset.shape is FragmentShape.QUADS),
        )

    def metadata(self, syntax: Syntax) -> tuple[str, bytes]:
        """The metadata of the page in a syntax, and bytes that identify it (``encoded``)."""
        request, total, previous, following = self.request, self.page.total, self.previous, self.next
        template = metadata_template(self.layout(previous, following), syntax)
        fragment = self.base + request.fragment
        holes = {
            "G": f"{fragment}#metadata",
            "F": fragment,
            "P": self.base + request.page,
            "A": f"{fragment}{'&' if '?' in request.fragment else '?'}page=1",
            "B": "" if previous is None else self.address(previous),
            "C": "" if following is None else self.address(following),
            "N": str(total),
        }
        parts = [*template.parts]
        for place, letter in template.holes:
            # A template per layout and syntax: only what differs between pages of one layout is filled in.
            parts[place] = holes[letter]
        identity = f"{fragment}\n{request.page}\n{request.number}\n{total}\n"
        return "".join(parts), template.digest + identity.encode()

    def address(self, number: int | None) -> str:
        """The address of another page; empty for ``None``."""
        return "" if number is None else self.base + self.request.at(number)

    def quads(self) -> list[Quad]:
        """The quads of the page, skolemised."""
        base = self.base
        return [
            (skolemised(s, base), skolemised(p, base), skolemised(o, base), skolemised(g, base))
            # The test spares four calls for the usual quad without blank nodes.
            if s[0] == "_" or o[0] == "_" or g[:1] == "_" or o[:2] == "<<"
            else (s, p, o, g)
            for s, p, o, g in self.page.quads
        ]


MAX_TIMED_ROWS: Final = 200
"""Quads of an HTML page up to which it shows when each holds: that takes lookups per row."""

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'"
"""The Content-Security-Policy of the HTML pages."""


@cache
def _templates() -> "Environment":
    """The HTML templates, loaded when a browser asks first: most servers never need Jinja."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("streamgauge.servers.fragments.pages", ".")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.globals["style"] = Markup(style())
    return environment


def fragment_page(view: PageView) -> str:
    """A page of a fragment as HTML, with its form."""
    places, dataset, page = PLACES[view.dataset.shape], view.dataset, view.page
    first = (view.request.number - 1) * view.size
    return visible(
        _templates()
        .get_template("fragment.html")
        .render(
            base=view.base,
            name=dataset.name,
            address=dataset_address(view.base, dataset.name),
            shape=dataset.shape,
            places=[(place, _place_text(view, number)) for number, place in enumerate(places)],
            total=page.total,
            first=first + 1 if page.quads else 0,
            last=first + len(page.quads),
            until="" if page.until is None else _instant(page.until),
            until_said="" if page.until is None else _spoken(page.until),
            period=(dataset.period or 0) // 1000,
            timed=view.then is None and len(page.quads) <= MAX_TIMED_ROWS,
            rows=Markup("".join(_rows(view, places))),
            previous=view.address(view.previous),
            next=view.address(view.next),
        )
    )


def _rows(view: PageView, places: Sequence[str]) -> Iterator[str]:
    """The HTML row of each quad, with the validity of its fact; cells are cached by term."""
    timed, address = (
        view.then is None and len(view.page.quads) <= MAX_TIMED_ROWS,
        dataset_address(view.base, view.dataset.name),
    )
    known: dict[Term, list[Bounds]] = {}
    now = view.dataset.clock()
    for quad, stored in zip(view.quads(), view.page.quads, strict=True):
        cells = "".join([_cell(address, place, term) for place, term in zip(places, quad, strict=False)])
        yield f"<tr>{cells}{_when(view.dataset, stored, known, now) if timed else ''}</tr>\n"


def _when(dataset: DataSet, quad: Quad, known: dict[Term, list[Bounds]], now: int) -> str:
    """The cell with the validity of a quad's fact by its annotations, else with the quad's end after ``now``."""
    timed = _annotated(dataset, quad, known)
    # A quad may end without an annotation of its own, as the quads of a label do.
    if not timed and (end := dataset.store.nearest(quad, now)) is not None:
        timed = [(None, end)]
    if not timed:
        return f'<td data-label="holds">{_ALWAYS}</td>'
    times = " ".join([f"<span>{escape(_interval(*bounds))}</span>" for bounds in timed])
    return f'<td data-label="holds">{times}</td>'


_ALWAYS: Final = '<span class="note">always</span>'


def _annotated(dataset: DataSet, quad: Quad, known: dict[Term, list[Bounds]]) -> list[Bounds]:
    """The bounds of a quad's facts by their annotations; a graph's label is looked up once for all its quads."""
    if dataset.style.method == "graphs":
        if quad[3] not in known:
            known[quad[3]] = graph_times(dataset.store, quad[3], dataset.style)
        return known[quad[3]]
    try:
        facts = [fact.fact for fact in located_facts(dataset.store, quad[:3], dataset.style) if quad in fact.own]
    except LabelError:
        return []
    return [(fact.initial, fact.final) for fact in facts if not fact.static]


def _interval(initial: int | None, final: int | None) -> str:
    began, ends = ("" if time is None else _spoken(time) for time in (initial, final))
    return f"from {began} until {ends}" if began and ends else f"from {began}" if began else f"until {ends}"


def index_page(base: str, datasets: Sequence[DataSet]) -> str:
    """The list of data sets as HTML."""
    rows: list[Mapping[str, object]] = [
        {"name": dataset.name, "address": f"{base}/{quote(dataset.name)}", "size": dataset.size} for dataset in datasets
    ]
    return visible(_templates().get_template("index.html").render(datasets=rows))


def _place_text(view: PageView, place: int) -> str:
    """The term or variable requested in a place, as text; empty without one."""
    node = view.request.wanted[place]
    return "" if node is None else f"?{node.name}" if isinstance(node, Var) else form_value(node)


@lru_cache(maxsize=20_000)
def _cell(dataset: str, place: str, term: Term) -> str:
    """The HTML cell of a term, a link to its fragment; namespace and datatype are muted.

    Assembled from cached, already encoded parts: pages for people cost a ninth of the CPU that way.
    """
    if term == DEFAULT:
        return f'<td data-label="{place}"><span class="note">default</span></td>'
    text = form_value(term)
    # Without the cached parts: nested terms and base directions need more than a namespace and a name.
    if not text.isascii() or is_triple(term) or "--" in text:
        link = f"{_question(dataset, place)}{quote_plus(text)}"
        return f'<td data-label="{place}"><a href="{link}" title="{escape(text)}">{_named(term)}</a></td>'
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


def _named(term: Term) -> Markup:
    """A term as HTML: namespace and datatype are muted, triple terms are nested, texts keep their base direction."""
    if is_triple(term):
        return Markup("<i>&lt;&lt;(</i> {} {} {} <i>)&gt;&gt;</i>").format(*map(_named, triple_parts(term)))
    text = form_value(term)
    if is_literal(term):
        end = text.rfind('"') + 1
        way = text[end:].partition("--")[2]
        shown = Markup('<bdi dir="{}">{}</bdi>').format(way if way in ("ltr", "rtl") else "auto", text[:end])
        return shown + Markup("<i>{}</i>").format(text[end:])
    start = max(text.rfind("/"), text.rfind("#")) + 1
    return Markup("<i>{}</i>{}").format(text[:start], text[start:])


_UNRESERVED: Final = re.compile(r"[A-Za-z0-9_.~-]*")
_MARKUP: Final = re.compile("[&<>'\"]")


@lru_cache(maxsize=5_000)
def _shared(part: str) -> tuple[str, str]:
    """A namespace or datatype, shared by many terms: escaped as HTML, and encoded for a query string."""
    return str(escape(part)), quote_plus(part)


@lru_cache(maxsize=100)
def _question(dataset: str, place: str) -> str:
    """The beginning of a fragment's address, as HTML, to be followed by the term in a place."""
    return str(escape(f"{dataset}?{place}="))


def _spoken(time: int) -> str:
    return _instant(time).replace("T", " ").replace("Z", " UTC")


def _instant(time: int) -> str:
    return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True, eq=False)
class PageFormat:
    """A format: its letter in validators, its media types, and its syntax, ``None`` for HTML."""

    name: str
    types: tuple[str, ...]
    syntax: Syntax | None

    @property
    def timely(self) -> bool:
        """Whether pages in this format display the times of facts."""
        return self.syntax is None

    def write(self, view: PageView) -> tuple[str, bytes]:
        """A page in this format, and bytes that identify it for its validator (``encoded``)."""
        if self.syntax is None:
            text = fragment_page(view)
        elif self.syntax is Syntax.JSON_LD:
            text = _json_ld(view.metadata(Syntax.QUAD_LINES)[0] + _lines(view.quads(), Syntax.QUAD_LINES))
        else:
            metadata, identity = view.metadata(self.syntax)
            data = _quads_text(view, self.syntax)
            return metadata + data, identity + data.encode()
        return text, text.encode()


def _quads_text(view: PageView, syntax: Syntax) -> str:
    """The quads of a page in a syntax; syntaxes without graphs merge all graphs, without duplicates."""
    quads = view.quads()
    if syntax is Syntax.LINES or syntax is Syntax.QUAD_LINES:
        return _lines(quads, syntax)
    # Many fragments have one quad, for which no grouping is needed.
    if len(quads) == 1:
        s, p, o, g = quads[0]
        return f"{g} {{{s} {p} {o}}}\n" if g and syntax is Syntax.TRIG else f"{s} {p} {o} .\n"
    declared, names = _names(view.request.wanted, quads)
    parts: dict[str, list[Quad]] = {}
    if syntax is Syntax.TRIG:
        for quad in quads:
            parts.setdefault(quad[3], []).append(quad)
    elif quads:
        # Turtle has one graph: quads that differ in theirs only would be one triple several times.
        parts[DEFAULT] = [(s, p, o, "") for s, p, o in dict.fromkeys([quad[:3] for quad in quads])]
    written = [
        f"{graph} {{{_grouped(some, names)}}}\n" if graph else f"{_grouped(some, names)} .\n"
        for graph, some in parts.items()
    ]
    return declared + "".join(written)


def _lines(quads: Iterable[Quad], syntax: Syntax) -> str:
    if syntax is Syntax.QUAD_LINES:
        return "".join([f"{s} {p} {o} {g} .\n" if g else f"{s} {p} {o} .\n" for s, p, o, g in quads])
    return "".join(dict.fromkeys([f"{s} {p} {o} .\n" for s, p, o, _ in quads]))


_FEW: Final = 4
"""Quads of a page below which declaring a prefix costs more than it saves."""

_LOCAL: Final = re.compile(r"(<.*[/#])([A-Za-z][A-Za-z0-9]*)>")


def _names(wanted: RequestedNodes, quads: Sequence[Quad]) -> tuple[str, dict[Term, str]]:
    """Declarations of prefixes, and abbreviations by term.

    Abbreviated are the predicate and object that the page was requested by, which all its quads have; without a
    requested predicate those in the namespace of the first. A requested subject is written only once anyway.
    """
    subject, predicate, item, _ = wanted
    # With a requested subject all triples share it, and each predicate is written once.
    if len(quads) < _FEW or isinstance(subject, str):
        return "", {}
    prefixes = {"p:": predicate, "o:": item}
    # A prefix may stand for a whole IRI: ``o: <http://e/Train>`` makes each object ``o:``, the shortest name there is.
    names = {term: name for name, term in prefixes.items() if isinstance(term, str) and is_iri(term)}
    declared = "".join([f"@prefix {name} {term} .\n" for term, name in names.items()])
    match = _LOCAL.fullmatch(quads[0][1]) if predicate not in names else None
    if match is not None:
        declared += f"@prefix n: {match[1]}> .\n"
        locals_ = [
            (predicate_, _LOCAL.fullmatch(predicate_)) for predicate_ in dict.fromkeys([quad[1] for quad in quads])
        ]
        names |= {
            predicate_: f"n:{local[2]}" for predicate_, local in locals_ if local is not None and local[1] == match[1]
        }
    return declared, names


def _grouped(quads: Iterable[Quad], names: Mapping[Term, str]) -> str:
    """Triples in Turtle, without the final dot; consecutive triples share their subject and predicate."""
    parts: list[str] = []
    subject = predicate = ""
    for s, p, o, _ in quads:
        item = names.get(o, o) if names else o
        if s != subject:
            parts.append(f"{' .' + chr(10) if parts else ''}{s} {names.get(p, p)} {item}")
        elif p != predicate:
            parts.append(f";\n {names.get(p, p)} {item}")
        else:
            parts.append(f", {item}")
        subject, predicate = s, p
    return "".join(parts)


def _json_ld(lines: str) -> str:
    """Lines of N-Quads converted to JSON-LD."""
    quads = ox.parse(lines.encode(), format=ox.RdfFormat.N_QUADS)
    return (ox.serialize(quads, format=ox.RdfFormat.STREAMING_JSON_LD) or b"").decode()


FORMATS: Final = (
    PageFormat("t", MEDIA_TYPES[ox.RdfFormat.TRIG], Syntax.TRIG),
    PageFormat("q", MEDIA_TYPES[ox.RdfFormat.N_QUADS], Syntax.QUAD_LINES),
    PageFormat("l", (*MEDIA_TYPES[ox.RdfFormat.TURTLE], *MEDIA_TYPES[ox.RdfFormat.N3]), Syntax.TURTLE),
    PageFormat("n", MEDIA_TYPES[ox.RdfFormat.N_TRIPLES], Syntax.LINES),
    PageFormat("j", (*MEDIA_TYPES[ox.RdfFormat.JSON_LD], "application/json"), Syntax.JSON_LD),
    PageFormat("h", ("text/html", "application/xhtml+xml"), None),
)
"""All formats, in the server's order of preference."""


def dataset_list(base: str, datasets: Sequence[DataSet], form: PageFormat) -> str:
    """The list of data sets with their forms, in a format."""
    if form.syntax is None:
        return index_page(base, datasets)
    triples = list(dict.fromkeys(triple for dataset in datasets for triple in _dataset_triples(base, dataset)))
    graph = f"<{base}/#metadata>"
    if form.syntax is Syntax.JSON_LD:
        return _json_ld(triples_text(triples, Syntax.QUAD_LINES, graph))
    return triples_text(triples, form.syntax, graph)


def _dataset_triples(base: str, dataset: DataSet) -> list[Triple]:
    sizes = dataset.page_size, dataset.largest
    layout = Layout(base, dataset.name, dataset.shape, *sizes, whole=True, previous=False, next=False, entry=True)
    return dataset_triples(base, dataset.name) + form_triples(layout, f"<{layout.dataset}#form>")
