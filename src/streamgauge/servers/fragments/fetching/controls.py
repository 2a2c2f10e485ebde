"""Pages of fragments: their data apart from metadata and controls (Triple and Quad Pattern Fragments; Hydra)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from streamgauge.formats.canonical import value_text
from streamgauge.model.terms import RDF_TYPE, Term, is_iri, is_literal
from streamgauge.servers.fragments.fetching.cache import Response
from streamgauge.servers.fragments.quads import CHANGES, DEFAULT, LIMIT, MOST_QUADS, MOST_VALUES, Quad

_HYDRA = "http://www.w3.org/ns/hydra/core#"
_VOID = "http://rdfs.org/ns/void#"
_SD = "http://www.w3.org/ns/sparql-service-description#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_TOPIC = "<http://xmlns.com/foaf/0.1/primaryTopic>"
_COUNTS = (f"<{_VOID}triples>", f"<{_HYDRA}totalItems>")
_SUBSET, _VIEW = f"<{_VOID}subset>", f"<{_HYDRA}view>"
_NEXT = (f"<{_HYDRA}next>", f"<{_HYDRA}nextPage>")
_OF_CONTROLS: Final = (f"<{_HYDRA}", f"<{_VOID}", f"<{_SD}", "<http://purl.org/dc/terms/", _TOPIC, RDF_TYPE)

PLACES: Final = {
    f"<{_RDF}subject>": "subject",
    f"<{_RDF}predicate>": "predicate",
    f"<{_RDF}object>": "object",
    f"<{_SD}graph>": "graph",
}
"""The places of a pattern by the property that a form maps to them."""

VALUES: Final = "values"
"""The further place of a form that takes solution mappings (brTPF: Hartig and Buil-Aranda, 2016)."""

SIZE: Final = "limit"
"""The further place of a form that takes how many quads a page is to have."""

_BINDINGS = re.compile(r"<.*[#/:](values|bindings)>")


@dataclass(frozen=True, slots=True)
class Form:
    """A search form: its template's names of places, whether terms are bare text.

    ``most`` are the solution mappings in a request, ``largest`` the quads that a page may have, where it says so.
    """

    template: str
    names: Mapping[str, str]
    bare: bool
    most: int | None
    largest: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a fragment: ``size`` and ``count`` as it states them, ``following`` the next page's reference.

    ``default`` is the IRI that stands for the default graph in requests, ``changes`` the template of what changed.
    """

    data: tuple[Quad, ...]
    count: int | None
    size: int | None
    following: str | None
    forms: tuple[Form, ...]
    default: Term | None
    changes: str | None = None


class _Said:
    """Metadata by predicate, in document order."""

    def __init__(self, quads: Iterable[Quad]) -> None:
        self._by: dict[Term, list[tuple[Term, Term]]] = {}
        for subject, predicate, object_, _ in quads:
            self._by.setdefault(predicate, []).append((subject, object_))

    def pairs(self, *predicates: Term) -> list[tuple[Term, Term]]:
        return [pair for predicate in predicates for pair in self._by.get(predicate, ())]

    def of(self, subject: Term, predicate: Term) -> list[Term]:
        return [object_ for each, object_ in self._by.get(predicate, ()) if each == subject]

    def about(self, subjects: Iterable[Term], *predicates: Term) -> Term | None:
        """What is said of the first of the subjects that it is said of, else of anything."""
        pairs = self.pairs(*predicates)
        first = next((object_ for want in subjects for subject, object_ in pairs if subject == want), None)
        return first if first is not None else next((object_ for _, object_ in pairs), None)


def page(quads: tuple[Quad, ...], response: Response, asked: str) -> Page:
    """What a body's quads say as a page that was asked for under an address."""
    own = tuple(dict.fromkeys((f"<{asked}>", f"<{response.address}>")))
    graph = _metadata_graph(quads, own)
    told = [quad for quad in quads if quad[3] == graph] if graph is not None else quads
    said = _Said(told)
    topics = (*own, *(topic for _, topic in said.pairs(_TOPIC)))
    data = tuple(quad for quad in quads if quad[3] != graph) if graph is not None else _without_controls(quads, said)
    following = said.about(topics, *_NEXT)
    return Page(
        data,
        _number(said.about((*topics, *_wholes(said, own)), *_COUNTS)),
        _number(said.about(topics, f"<{_HYDRA}itemsPerPage>")),
        following[1:-1] if following is not None and is_iri(following) else None,
        _forms(said),
        next((default for _, default in said.pairs(f"<{_SD}defaultGraph>")), None),
        next((text(template) for _, template in said.pairs(CHANGES) if is_literal(template)), None),
    )


def _metadata_graph(quads: tuple[Quad, ...], own: tuple[Term, ...]) -> Term | None:
    """The graph whose topic is the page, or what that is part of; or else one that has a topic and Hydra's controls."""
    topics: dict[Term, list[Term]] = {}
    wholes: dict[Term, list[Term]] = {}
    controlled: set[Term] = set()
    for subject, predicate, object_, graph in quads:
        if predicate == _TOPIC and subject == graph:
            topics.setdefault(graph, []).append(object_)
        if graph != DEFAULT and predicate.startswith((f"<{_HYDRA}", f"<{_VOID}")):
            controlled.add(graph)
            if predicate in (_SUBSET, _VIEW) and (object_ in own or subject in own):
                wholes.setdefault(graph, []).append(subject)
    exact = [graph for graph, found in topics.items() if set(found) & {*own, *wholes.get(graph, ())}]
    return next((graph for graph in (*exact, *topics) if graph in controlled), None)


def _wholes(said: _Said, own: tuple[Term, ...]) -> tuple[Term, ...]:
    """What the page is said to be part of, last said first: the fragment, then the data set."""
    parts = (*said.pairs(_SUBSET), *said.pairs(_VIEW))
    return tuple(whole for whole, part in reversed(parts) if part in own)


def _forms(said: _Said) -> tuple[Form, ...]:
    found = (_form(said, form) for _, form in said.pairs(f"<{_HYDRA}search>"))
    return tuple(form for form in found if form is not None)


def _form(said: _Said, form: Term) -> Form | None:
    """A form that asks by subject, predicate and object, with a template."""
    names: dict[str, str] = {}
    for mapping in said.of(form, f"<{_HYDRA}mapping>"):
        place = next((_place(each) for each in said.of(mapping, f"<{_HYDRA}property>")), None)
        for name in said.of(mapping, f"<{_HYDRA}variable>"):
            if place is not None:
                names[place] = text(name)
    templates = [text(template) for template in said.of(form, f"<{_HYDRA}template>")]
    if not templates or not {"subject", "predicate", "object"} <= names.keys():
        return None
    bare = f"<{_HYDRA}BasicRepresentation>" in said.of(form, f"<{_HYDRA}variableRepresentation>")
    most, largest = (next(map(_number, said.of(form, bound)), None) for bound in (MOST_VALUES, MOST_QUADS))
    return Form(templates[0], names, bare, most, largest)


def _place(property_: Term) -> str | None:
    if property_ == LIMIT:
        return SIZE
    return PLACES.get(property_) or (VALUES if _BINDINGS.fullmatch(property_) else None)


def _without_controls(quads: tuple[Quad, ...], said: _Said) -> tuple[Quad, ...]:
    """The data of a document that does not keep its metadata apart: all but what is said of controls in their terms."""
    forms = {form for _, form in said.pairs(f"<{_HYDRA}search>")}
    subjects = {dataset for dataset, _ in said.pairs(f"<{_HYDRA}search>")} | forms
    subjects |= {mapping for form in forms for mapping in said.of(form, f"<{_HYDRA}mapping>")}
    subjects |= {subject for subject, _ in said.pairs(*_COUNTS, *_NEXT, _VIEW)}
    subjects |= {subject for subject, topic in said.pairs(_TOPIC) if topic in subjects}
    if not forms:
        return quads
    return tuple(quad for quad in quads if quad[0] not in subjects or not quad[1].startswith(_OF_CONTROLS))


def text(term: Term) -> str:
    """The text of a literal without its quotes, escapes undone; of an IRI what is between the brackets."""
    if not is_literal(term):
        return term[1:-1] if is_iri(term) else term
    body = term[1 : term.rfind('"')]
    return _ESCAPE.sub(_unescaped, body) if "\\" in body else body


_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else _ESCAPED.get(found[3], found[3])


def _number(term: Term | None) -> int | None:
    digits = value_text(term) if term is not None and is_literal(term) else ""
    return int(digits[:18]) if digits.isascii() and digits.isdigit() else None
