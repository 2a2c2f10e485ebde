"""The metadata of a page: its fragment, its data set, its form (Triple and Quad Pattern Fragments, Hydra).

The triples are written once for each layout of a page, with holes for the parts that differ. Their order matters to
clients: a data set's subsets come before the fragment's, as the last that names the page tells the primary topic.
"""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import groupby
from typing import Final
from urllib.parse import quote

from streamgauge.model.terms import RDF_TYPE, XSD, Term, Triple
from streamgauge.servers.fragments import CHANGES, DEFAULT_IRI, LIMIT, MOST_QUADS, MOST_VALUES, VALUES, Quad
from streamgauge.servers.fragments.pages.dataset import DataSet, FragmentShape, Page
from streamgauge.servers.fragments.pages.fragment_request import PLACES, FragmentRequest, skolemised
from streamgauge.servers.fragments.pages.selection import MOST_BINDINGS

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


@dataclass(frozen=True, slots=True)
class Layout:
    """All that the triples of a page depend on, beside what fills their holes; ``whole``: page and fragment are one."""

    base: str
    name: str
    shape: FragmentShape
    page_size: int
    largest: int
    whole: bool
    previous: bool
    next: bool

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
    """The forms of a data set: one of its places alone, which clients look for, and one with bindings and a limit."""
    dataset, places = f"<{layout.dataset}#dataset>", PLACES[layout.shape]
    more = (*places, "values", "limit")
    default = [(dataset, "sd:defaultGraph", DEFAULT_IRI)] if layout.shape is FragmentShape.QUADS else []
    return _terms(
        *default,
        (dataset, "hydra:search", f"<{layout.dataset}#form>"),
        (dataset, "hydra:search", f"<{layout.dataset}#bindings>"),
        (dataset, CHANGES, f'"{layout.dataset}{{?{",".join((*places, "since"))}}}"'),
        *_form(layout, "form", places),
        *_form(layout, "bindings", more),
        (f"<{layout.dataset}#bindings>", MOST_VALUES, f'"{MOST_BINDINGS}"{_INTEGER}'),
        (f"<{layout.dataset}#bindings>", MOST_QUADS, f'"{layout.largest}"{_INTEGER}'),
        (dataset, CHANGES, f'"{layout.dataset}{{?{",".join((*places, "since"))}}}"'),
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
