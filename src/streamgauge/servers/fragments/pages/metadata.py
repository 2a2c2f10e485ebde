"""The metadata of a page (Hydra, VoID) about its fragment, its data set and its form, as triples and as text.

The triples are those of Triple and Quad Pattern Fragments. Their text is generated once per layout of a page, with
holes for the parts that differ between pages. The order of triples matters to some clients: ``void:subset`` of the data
set comes before that of the fragment, because the last one that names the page determines the primary topic.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import quote

from streamgauge.model.terms import RDF_TYPE, XSD, Term, Triple
from streamgauge.servers.fragments import CHANGES, DEFAULT_IRI, LIMIT, MOST_QUADS, MOST_VALUES, VALUES
from streamgauge.servers.fragments.pages import PLACES, FragmentShape
from streamgauge.servers.fragments.pages.terms import MAX_BINDINGS

PREFIXES: Final = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "void": "http://rdfs.org/ns/void#",
    "sd": "http://www.w3.org/ns/sparql-service-description#",
    "hydra": "http://www.w3.org/ns/hydra/core#",
    "foaf": "http://xmlns.com/foaf/0.1/",
}
_DECLARED: Final = {prefix: iri for prefix, iri in PREFIXES.items() if prefix != "foaf"}
"""The prefixes declared on a page: those used more than once."""

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
"""Holes: the metadata's graph, the fragment, the page, its neighbours, the count. No IRI contains their NUL."""


class Syntax(Enum):
    """The syntaxes in which pages are written."""

    LINES = "lines"  # N-Triples
    QUAD_LINES = "quad lines"  # N-Quads
    TURTLE = "turtle"
    TRIG = "trig"
    JSON_LD = "json-ld"

    __hash__ = object.__hash__


class Layout(NamedTuple):
    """Everything that the metadata of a page depends on, except what fills the holes.

    ``whole``: page and fragment have the same address; ``entry``: no term is bound, as on the page where clients start.
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
        """The address of the data set."""
        return dataset_address(self.base, self.name)


def dataset_address(base: str, name: str) -> str:
    """The address of a data set by its name."""
    return f"{base}/{quote(name)}"


def iri_of(name: str) -> Term:
    """The IRI of a prefixed name; other terms unchanged."""
    prefix, _, local = name.partition(":")
    return f"<{PREFIXES[prefix]}{local}>" if prefix in PREFIXES else name


def page_triples(layout: Layout) -> list[Triple]:
    """All triples of a page's metadata, with holes, in the order in which they are sent."""
    dataset = f"<{layout.dataset}#dataset>"
    subsets = [PAGE] if layout.whole else [PAGE, FRAGMENT]
    return _terms(
        (GRAPH, "foaf:primaryTopic", FRAGMENT),
        *dataset_triples(layout.base, layout.name),
        # Before the subset in `_paging`, by which the fragment names the page, as said at the top.
        *((dataset, "void:subset", subset) for subset in subsets),
        *form_triples(layout, FORM),
        *_paging(layout),
    )


def dataset_triples(base: str, name: str) -> list[Triple]:
    """The triples about a data set that every page has."""
    dataset = f"<{base}/{quote(name)}#dataset>"
    return _terms(
        (f"<{base}/#dataset>", "hydra:member", dataset),
        (dataset, RDF_TYPE, "void:Dataset"),
        (dataset, RDF_TYPE, "hydra:Collection"),
    )


FORM: Final[Term] = "_:form"
"""The blank node of the first form of a data set."""


def form_triples(layout: Layout, form: Term) -> list[Triple]:
    """The forms of a data set: ``form`` with its places only, and on entry pages one with bindings and a page size.

    Clients of Triple Pattern Fragments look for the first. The second form and the template of changes are only on
    pages of the whole data set, where clients start, which keeps all other pages small.
    """
    dataset, places = f"<{layout.dataset}#dataset>", PLACES[layout.shape]
    bindings, more = f"<{layout.dataset}#bindings>", (*places, "values", "limit")
    default = [(dataset, "sd:defaultGraph", DEFAULT_IRI)] if layout.shape is FragmentShape.QUADS else []
    if not layout.entry:
        search = (dataset, "hydra:search", form), *_form(layout, form, places)
        return _terms(*default, *search, *(triple for name in places for triple in _mapping(name)))
    return _terms(
        *default,
        (dataset, "hydra:search", form),
        (dataset, "hydra:search", bindings),
        (dataset, CHANGES, f'"{layout.dataset}{{?{",".join((*places, "since"))}}}"'),
        *_form(layout, form, places),
        *_form(layout, bindings, more),
        (bindings, MOST_VALUES, f'"{MAX_BINDINGS}"{_INTEGER}'),
        (bindings, MOST_QUADS, f'"{layout.largest}"{_INTEGER}'),
        # Once for both forms: they share the blank nodes of the mappings, such as `_:subject`.
        *(triple for name in more for triple in _mapping(name)),
    )


def _form(layout: Layout, form: Term, names: tuple[str, ...]) -> list[Triple]:
    """A form; its type, hydra:IriTemplate, follows from the range of hydra:search and is left out."""
    return [
        (form, "hydra:template", f'"{layout.dataset}{{?{",".join(names)}}}"'),
        (form, "hydra:variableRepresentation", "hydra:ExplicitRepresentation"),
        *((form, "hydra:mapping", f"_:{name}") for name in names),
    ]


def _mapping(name: str) -> list[Triple]:
    return [(f"_:{name}", "hydra:variable", f'"{name}"'), (f"_:{name}", "hydra:property", _PROPERTIES[name])]


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


class MetadataTemplate(NamedTuple):
    """The text of a layout, split into parts; ``holes`` has the index and letter of each part to fill in."""

    parts: tuple[str, ...]
    holes: tuple[tuple[int, str], ...]
    digest: bytes


@lru_cache(maxsize=4096)
def metadata_template(layout: Layout, syntax: Syntax) -> MetadataTemplate:
    """The template of a layout in a syntax, cached."""
    names = {FRAGMENT: "f:", **({PAGE: "f:"} if layout.whole else {})}
    # The graph's name occurs only in TriG.
    names |= {GRAPH: "m:"} if syntax is Syntax.TRIG else {}
    text = triples_text(page_triples(layout), syntax, GRAPH, {"d": f"{layout.dataset}#"}, names)
    # A worked example: the text `<NUL F> a <NUL P>`, without blanks after NUL, is split into `<`, `F> a <`, `P>`. The
    # parts are `<`, an empty one, `> a <`, an empty one, `>`; the holes are (1, F) and (3, P). A page is the parts
    # with the empty ones replaced, joined.
    first, *rest = text.split("\x00")
    parts = (first, *(piece for part in rest for piece in ("", part[1:])))
    places = tuple((2 * number + 1, part[0]) for number, part in enumerate(rest))
    return MetadataTemplate(parts, places, blake2b(text.encode(), digest_size=16).digest())


def triples_text(
    triples: Iterable[Triple],
    syntax: Syntax,
    graph: Term,
    prefixes: Mapping[str, str] = MappingProxyType({}),
    names: Mapping[Term, str] = MappingProxyType({}),
) -> str:
    """Triples in a syntax, in their order, in ``graph`` if the syntax has graphs.

    Turtle and TriG also declare ``prefixes``, and the prefixes in ``names``, each of which abbreviates a whole IRI
    (``f:`` for the fragment's).
    """
    if syntax is Syntax.LINES:
        return "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
    if syntax is Syntax.QUAD_LINES:
        return "".join(f"{s} {p} {o} {graph} .\n" for s, p, o in triples)
    declared = {**_DECLARED, **prefixes}
    named = {name: full for full, name in names.items()}
    head = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in declared.items())
    head += "".join(f"@prefix {name} {full} .\n" for name, full in named.items())
    # `groupby` joins neighbours only, which keeps the order of triples: a subject that occurs again later is written
    # again.
    text = " .\n".join(
        _subject(subject, list(group), declared, names) for subject, group in groupby(triples, key=itemgetter(0))
    )
    return f"{head}{names.get(graph, graph)} {{\n{text}\n}}\n" if syntax is Syntax.TRIG else f"{head}{text} .\n"


def _subject(subject: Term, triples: list[Triple], prefixes: Mapping[str, str], names: Mapping[Term, str]) -> str:
    def short(term: Term) -> str:
        return names.get(term) or _short(term, prefixes)

    statements = [
        f"{'a' if predicate == RDF_TYPE else short(predicate)} {', '.join([short(o) for _, _, o in group])}"
        for predicate, group in groupby(triples, key=itemgetter(1))
    ]
    return f"{short(subject)} {'; '.join(statements)}"


def _short(full: Term, prefixes: Mapping[str, str]) -> str:
    # Turtle and TriG have plain integers: `"100"^^<…#integer>` is written `100`.
    if full.endswith(_INTEGER):
        return full[1 : -len(_INTEGER) - 1]
    for prefix, iri in prefixes.items():
        if full.startswith(f"<{iri}"):
            return f"{prefix}:{full[len(iri) + 1 : -1]}"
    return full
