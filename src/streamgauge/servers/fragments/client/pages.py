"""Pages of fragments (Triple and Quad Pattern Fragments; Hydra): separating data from controls, reading all pages.

The pages of a fragment have to show one state: if the fragment changed while they were read, they are read again.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from streamgauge.formats.canonical import value_text
from streamgauge.model.terms import RDF_TYPE, Term, is_iri, is_literal, plain
from streamgauge.servers.fragments import CHANGES, DEFAULT, LIMIT, MOST_QUADS, MOST_VALUES, Quad
from streamgauge.servers.fragments.client import LinkedDataError, Response, UnavailableError, body_digest, read_quads
from streamgauge.servers.fragments.client.caching_client import CacheUse, CachingHttpClient
from streamgauge.servers.fragments.client.transport import AddressRules
from streamgauge.servers.http.headers import SECOND

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
"""The places of a pattern, by the property that forms map to them."""

VALUES: Final = "values"
"""The place of a form for solution mappings (brTPF: Hartig and Buil-Aranda, 2016)."""

SIZE: Final = "limit"
"""The place of a form for the number of quads per page."""

_BINDINGS = re.compile(r"<.*[#/:](values|bindings)>")


@dataclass(frozen=True, slots=True)
class SearchForm:
    """A search form: its template, the variable ``names`` by place, and whether terms are ``bare`` text.

    ``max_values`` and ``largest`` are its limits of solution mappings and of quads per page, if stated.
    """

    template: str
    names: Mapping[str, str]
    bare: bool
    max_values: int | None
    largest: int | None = None


@dataclass(frozen=True, slots=True)
class FragmentPage:
    """A page of a fragment, with its stated ``size`` and total ``count``, and the ``following`` page's reference.

    ``default`` is the IRI of the default graph in requests, ``changes`` the template of addresses of changes.
    """

    data: tuple[Quad, ...]
    count: int | None
    size: int | None
    following: str | None
    forms: tuple[SearchForm, ...]
    default: Term | None
    changes: str | None = None


class _Metadata:
    """Metadata indexed by predicate, in document order."""

    def __init__(self, quads: Iterable[Quad]) -> None:
        self._by: dict[Term, list[tuple[Term, Term]]] = {}
        for subject, predicate, object_, _ in quads:
            self._by.setdefault(predicate, []).append((subject, object_))

    def pairs(self, *predicates: Term) -> list[tuple[Term, Term]]:
        return [pair for predicate in predicates for pair in self._by.get(predicate, ())]

    def of(self, subject: Term, predicate: Term) -> list[Term]:
        return [object_ for other, object_ in self._by.get(predicate, ()) if other == subject]

    def about(self, subjects: Iterable[Term], *predicates: Term) -> Term | None:
        """The object for the first of the subjects that has one, else any object of the predicates.

        Some servers state the count or the next page of a subject that cannot be derived from the request.
        """
        pairs = self.pairs(*predicates)
        first = next((object_ for want in subjects for subject, object_ in pairs if subject == want), None)
        return first if first is not None else next((object_ for _, object_ in pairs), None)


def read_page(quads: tuple[Quad, ...], response: Response, requested: str) -> FragmentPage:
    """The page in a body's quads, which was requested at the address ``requested``."""
    # Both: servers describe the page by the address that was asked for, or by the one that they redirect to.
    own = tuple(dict.fromkeys((f"<{requested}>", f"<{response.address}>")))
    graph = _metadata_graph(quads, own)
    statements = [quad for quad in quads if quad[3] == graph] if graph is not None else quads
    metadata = _Metadata(statements)
    topics = (*own, *(topic for _, topic in metadata.pairs(_TOPIC)))
    data = (
        tuple(quad for quad in quads if quad[3] != graph) if graph is not None else _without_controls(quads, metadata)
    )
    following = metadata.about(topics, *_NEXT)
    return FragmentPage(
        data,
        _number(metadata.about((*topics, *_wholes(metadata, own)), *_COUNTS)),
        _number(metadata.about(topics, f"<{_HYDRA}itemsPerPage>")),
        following[1:-1] if following is not None and is_iri(following) else None,
        _forms(metadata),
        next((default for _, default in metadata.pairs(f"<{_SD}defaultGraph>")), None),
        next((plain(template) for _, template in metadata.pairs(CHANGES) if is_literal(template)), None),
    )


def _metadata_graph(quads: tuple[Quad, ...], own: tuple[Term, ...]) -> Term | None:
    """The graph whose primary topic is the page or contains it, else any graph with a topic and controls."""
    topics: dict[Term, list[Term]] = {}
    wholes: dict[Term, list[Term]] = {}
    controlled: set[Term] = set()
    for subject, predicate, object_, graph in quads:
        if predicate == _TOPIC and subject == graph:
            topics.setdefault(graph, []).append(object_)
        # A topic alone is not enough: foaf:primaryTopic occurs in data too.
        if graph != DEFAULT and predicate.startswith((f"<{_HYDRA}", f"<{_VOID}")):
            controlled.add(graph)
            if predicate in (_SUBSET, _VIEW) and (object_ in own or subject in own):
                wholes.setdefault(graph, []).append(subject)
    exact = [graph for graph, topic in topics.items() if set(topic) & {*own, *wholes.get(graph, ())}]
    return next((graph for graph in (*exact, *topics) if graph in controlled), None)


def _wholes(metadata: _Metadata, own: tuple[Term, ...]) -> tuple[Term, ...]:
    """The resources that contain the page, in reverse order of their statements: the fragment, then the data set."""
    parts = (*metadata.pairs(_SUBSET), *metadata.pairs(_VIEW))
    return tuple(whole for whole, part in reversed(parts) if part in own)


def _forms(metadata: _Metadata) -> tuple[SearchForm, ...]:
    forms = (_form(metadata, form) for _, form in metadata.pairs(f"<{_HYDRA}search>"))
    return tuple(form for form in forms if form is not None)


def _form(metadata: _Metadata, form: Term) -> SearchForm | None:
    """A form that searches by subject, predicate and object; ``None`` for any other."""
    names: dict[str, str] = {}
    for mapping in metadata.of(form, f"<{_HYDRA}mapping>"):
        place = next((_place(property_) for property_ in metadata.of(mapping, f"<{_HYDRA}property>")), None)
        for name in metadata.of(mapping, f"<{_HYDRA}variable>"):
            if place is not None:
                names[place] = plain(name)
    templates = [plain(template) for template in metadata.of(form, f"<{_HYDRA}template>")]
    if not templates or not {"subject", "predicate", "object"} <= names.keys():
        return None
    bare = f"<{_HYDRA}BasicRepresentation>" in metadata.of(form, f"<{_HYDRA}variableRepresentation>")
    max_values, largest = (next(map(_number, metadata.of(form, bound)), None) for bound in (MOST_VALUES, MOST_QUADS))
    return SearchForm(templates[0], names, bare, max_values, largest)


def _place(property_: Term) -> str | None:
    if property_ == LIMIT:
        return SIZE
    return PLACES.get(property_) or (VALUES if _BINDINGS.fullmatch(property_) else None)


def _without_controls(quads: tuple[Quad, ...], metadata: _Metadata) -> tuple[Quad, ...]:
    """The data of a document without a metadata graph: everything but the statements about controls.

    Those are recognised by subject and vocabulary together, as the data may be about data sets too.
    """
    forms = {form for _, form in metadata.pairs(f"<{_HYDRA}search>")}
    subjects = {dataset for dataset, _ in metadata.pairs(f"<{_HYDRA}search>")} | forms
    subjects |= {mapping for form in forms for mapping in metadata.of(form, f"<{_HYDRA}mapping>")}
    subjects |= {subject for subject, _ in metadata.pairs(*_COUNTS, *_NEXT, _VIEW)}
    subjects |= {subject for subject, topic in metadata.pairs(_TOPIC) if topic in subjects}
    if not forms:
        return quads
    return tuple(quad for quad in quads if quad[0] not in subjects or not quad[1].startswith(_OF_CONTROLS))


def _number(term: Term | None) -> int | None:
    digits = value_text(term) if term is not None and is_literal(term) else ""
    # `int` takes time quadratic in the digits; a count of 18 digits is wrong anyway.
    return int(digits[:18]) if digits.isascii() and digits.isdigit() else None


_MAX_IDLE_PAGES = 3
"""Consecutive pages without new quads that are accepted: some servers link their pages endlessly."""


@dataclass(frozen=True, slots=True)
class PageResponse:
    """A page with its response."""

    response: Response
    page: FragmentPage


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads the pages of one source, within its address rules."""

    web: CachingHttpClient
    reach: AddressRules

    async def leaf(self, address: str, use: CacheUse = CacheUse.CACHED) -> PageResponse:
        """The page at an address."""
        return await self.of(await self.web.get(address, self.reach, use=use), address)

    async def of(self, response: Response, address: str) -> PageResponse:
        """A response as a page; if it cannot be parsed it is requested once more, since it may have been truncated."""
        try:
            return self._leaf(response, address)
        except LinkedDataError:
            self.web.forget(address)
            return self._leaf(await self.web.get(address, self.reach), address)

    def _leaf(self, response: Response, address: str) -> PageResponse:
        key = "page", address
        page = response.parsed.get(key)
        if not isinstance(page, FragmentPage):
            page = response.parsed[key] = read_page(read_quads(response, self.web.limits.quads), response, address)
        return PageResponse(response, page)

    async def all(self, address: str) -> tuple[PageResponse, ...]:
        """All pages of the fragment whose first page is at an address.

        Pages that straddle a change are read again; UnavailableError if the fragment changes too fast for that.
        """
        leaves = await self._read(address, CacheUse.CACHED)
        # Repeated as a whole: a page that was read before the change may lack quads that moved to the page in front of
        # it.
        for _ in range(self.web.limits.readings):
            if _settled(leaves):
                return leaves
            again = await self._read(address, CacheUse.REVALIDATE)
            # Two equal readings show one state even if the server states neither versions nor times.
            if [body_digest(leaf.response) for leaf in leaves] == [body_digest(leaf.response) for leaf in again]:
                return again
            leaves = again
        raise UnavailableError(address, f"changes faster than its {len(leaves)} pages can be read")

    async def _read(self, address: str, use: CacheUse) -> tuple[PageResponse, ...]:
        leaves: list[PageResponse] = []
        seen: set[str] = set()
        quads: set[Quad] = set()
        idle = 0
        following: str | None = address
        while following is not None:
            leaf = await self.leaf(following, use)
            seen.add(following)
            leaves.append(leaf)
            before = len(quads)
            quads.update(leaf.page.data)
            idle = 0 if len(quads) > before else idle + 1
            self._check(address, len(leaves), len(quads), idle)
            following = self._following(leaf, seen)
        return tuple(leaves)

    def _following(self, leaf: PageResponse, seen: set[str]) -> str | None:
        if leaf.page.following is None:
            return None
        target = self.reach.link(leaf.response.address, leaf.page.following)
        if target in seen:
            # A circle would otherwise be followed up to the limit of pages.
            raise LinkedDataError(leaf.response.address, f"has {target:.300} as next page, which was read before it")
        return target

    def _check(self, address: str, pages: int, quads: int, idle: int) -> None:
        limits = self.web.limits
        if idle > _MAX_IDLE_PAGES:
            raise LinkedDataError(address, f"has {idle} pages in a row, up to number {pages}, without new quads")
        if pages > limits.pages:
            raise LinkedDataError(address, f"has more than {limits.pages} pages: raise the limit `pages`")
        if quads > limits.quads:
            raise LinkedDataError(address, f"has more than {limits.quads} quads: raise the limit `quads`")


def _settled(leaves: tuple[PageResponse, ...]) -> bool:
    """Whether the pages show one state, as far as the server's responses let one decide.

    They do if all have one version, or if the latest change of any page precedes the response of the first. Without
    versions and validators only their counts can be compared.
    """
    if len(leaves) == 1:
        return True
    if len({leaf.page.count for leaf in leaves}) > 1:
        return False
    versions = {leaf.response.version for leaf in leaves}
    if None not in versions:
        return len(versions) == 1
    changed = [leaf.response.changed for leaf in leaves]
    known = [page for page in changed if page is not None]
    if len(known) == len(leaves):
        # Last-Modified has whole seconds: a change may have come up to a second after the time that it states.
        return max(known) + SECOND <= min(leaf.response.at for leaf in leaves)
    return all(leaf.response.validator is None for leaf in leaves)
