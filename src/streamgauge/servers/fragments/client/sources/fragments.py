"""Triple and Quad Pattern Fragments as a source, with bindings if the server has a form for them (brTPF)."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Final, cast

from uritemplate import URITemplate

from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import Term, is_blank, is_literal, plain
from streamgauge.servers.fragments import ANYWHERE, DEFAULT, PATCH_TYPE, Quad, QuadPattern, form_value
from streamgauge.servers.fragments.client import (
    Binding,
    FetchedChange,
    FetchedQuads,
    LinkedDataError,
    LinkedDataSource,
    UnavailableError,
    combined,
    read_patch,
)
from streamgauge.servers.fragments.client.pages import SIZE, VALUES, PageReader, PageResponse, SearchForm
from streamgauge.servers.fragments.client.sources import (
    FirstResponse,
    gather_all,
    matching_quads,
    restrictions,
)
from streamgauge.sources.sse.events import ServerEvent

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_SINGLE_VALUES = re.compile(r"[+#./;?&]?[A-Za-z0-9_.%]+(?:,[A-Za-z0-9_.%]+)*")


class FormTemplateError(ValueError):
    """An invalid template, or one that needs more than single values (RFC 6570, level 3)."""


def expand(template: str, values: Mapping[str, str]) -> str:
    """The address for these values, without the variables that have none; FormTemplateError."""
    return _read_template(template).expand(dict(values))


@lru_cache(1_000)
def _read_template(template: str) -> URITemplate:
    for expression in _EXPRESSION.findall(template):
        if not _SINGLE_VALUES.fullmatch(expression):
            raise FormTemplateError(f"{{{expression:.100}}} is not an expression of single values (RFC 6570, level 3)")
    return URITemplate(template)


MAX_MAPPINGS: Final = 30
"""Solution mappings per request if the form states no limit (Hartig and Buil-Aranda, 2016: maxMpR)."""

_PLACES: Final = ("subject", "predicate", "object", "graph")


@dataclass(frozen=True, slots=True)
class FragmentAddresses:
    """The forms of a data set: ``plain``, and ``binding`` for solution mappings, if there is one.

    ``default`` is the IRI that requests the default graph, ``longest`` the limit of an address in characters.
    """

    plain: SearchForm
    binding: SearchForm | None
    default: Term | None
    longest: int

    @property
    def graphs(self) -> bool:
        """Whether the form has a place for the graph."""
        return "graph" in self.plain.names

    def has(self, pattern: QuadPattern) -> bool:
        """Whether a fragment can have matching quads: an interface of triples has none in named graphs."""
        return self.graphs or pattern.graph in (DEFAULT, ANYWHERE)

    def whole(self, pattern: QuadPattern) -> str:
        """The reference of a pattern's fragment."""
        return expand(self.plain.template, self._values(self.plain, pattern))

    @property
    def largest(self) -> int | None:
        """The maximum number of quads per page that can be requested, if the form supports it."""
        return self.binding.largest if self.binding is not None and SIZE in self.binding.names else None

    def large(self, pattern: QuadPattern) -> str:
        """The reference of a pattern's fragment with the largest possible pages."""
        if self.binding is None or self.largest is None:
            return self.whole(pattern)
        return expand(self.binding.template, self._values(self.binding, pattern) | self._size(self.binding))

    def narrowed(self, pattern: QuadPattern, restrictions: Sequence[Binding]) -> list[str]:
        """The references of fragments that together have all quads that join with one of the non-empty restrictions."""
        if self.binding is None:
            return [self.whole(pattern.bound(restriction)) for restriction in restrictions]
        return list(self._batched(self.binding, pattern, restrictions))

    def _batched(self, form: SearchForm, pattern: QuadPattern, restrictions: Sequence[Binding]) -> Iterator[str]:
        # Our own names: those of a query may contain characters that the form's syntax has no place for.
        names = {variable: f"v{number}" for number, variable in enumerate(pattern.variables)}
        places = self._values(form, pattern, names) | self._size(form)
        begun = 0
        while begun < len(restrictions):
            taken = min(form.max_values or MAX_MAPPINGS, len(restrictions) - begun)
            address = self._bound(form, places, names, restrictions[begun : begun + taken])
            # Halved: the length of an address grows about linearly with its bindings.
            while len(address) > self.longest and taken > 1:
                taken = (taken + 1) // 2
                address = self._bound(form, places, names, restrictions[begun : begun + taken])
            yield address
            begun += taken

    def _size(self, form: SearchForm) -> dict[str, str]:
        return {} if self.largest is None else {form.names[SIZE]: str(self.largest)}

    def _bound(
        self, form: SearchForm, places: dict[str, str], names: dict[Var, str], restrictions: Sequence[Binding]
    ) -> str:
        used = {
            variable: name
            for variable, name in names.items()
            if any(variable in restriction for restriction in restrictions)
        }
        rows = " ".join(
            f"({' '.join(restriction.get(variable, 'UNDEF') for variable in used)})" for restriction in restrictions
        )
        values = f"({' '.join(f'?{name}' for name in used.values())}) {{ {rows} }}"
        return expand(form.template, {**places, form.names[VALUES]: values})

    def _values(self, form: SearchForm, pattern: QuadPattern, names: dict[Var, str] | None = None) -> dict[str, str]:
        """The values of a form's variables for a pattern; the pattern's own variables are left out unless named."""
        values = {}
        for place, node in zip(_PLACES, pattern.nodes, strict=True):
            written = self._written(form, node, names or {})
            if written is not None and place in form.names:
                values[form.names[place]] = written
        return values

    def _written(self, form: SearchForm, node: Node, names: dict[Var, str]) -> str | None:
        if isinstance(node, Var):
            return f"?{names[node]}" if node in names else None
        if node == DEFAULT:
            return None if self.default is None else _form_text(self.default, form)
        # A blank node of one document names nothing in another; the place stays open and is compared afterwards.
        return None if is_blank(node) else _form_text(node, form)


def fragment_addresses(forms: Sequence[SearchForm], default: Term | None, longest: int) -> FragmentAddresses:
    """Addresses by the plain form with most places and, if there is one, by the form with bindings."""
    plain = max(
        (form for form in forms if not {VALUES, SIZE} & form.names.keys()),
        key=lambda form: len(form.names),
        default=forms[0],
    )
    binding = next((form for form in forms if VALUES in form.names), None)
    return FragmentAddresses(plain, binding, default, longest)


def _form_text(term: Term, form: SearchForm) -> str:
    """A term in the form's representation (Hydra, 5.2): explicit, or basic, which is bare text."""
    return plain(term) if form.bare and is_literal(term) else form_value(term)


RANK: Final = 20

_CONTEXT: Final = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#context"
_HYDRA: Final = b"http://www.w3.org/ns/hydra/core#"

_PAGE: Final = 100
"""Assumed quads per page if none are stated."""

_UNKNOWN: Final = 100
"""Assumed number of pages of a fragment that states no count and has more than one."""


async def _entry(pages: PageReader, leaf: PageResponse, address: str) -> PageResponse:
    """The entry page of the data set, if the first page has only one form: further forms may be only there."""
    page = leaf.page
    if len(page.forms) > 1 or page.changes is not None:
        return leaf
    # Optional: without the entry page its further forms are unknown, but the first one works.
    with suppress(FormTemplateError, LinkedDataError):
        whole = pages.reach.link(address, expand(page.forms[0].template, {}))
        if whole != address:
            entry = await pages.leaf(whole)
            return entry if entry.page.forms else leaf
    return leaf


async def recognise(first: FirstResponse) -> LinkedDataSource | None:
    """A source whose first response has a form with subject, predicate and object.

    LinkedDataError for the form of the 2015 prototype, which maps ``rdf:context``: its pages are invalid Turtle, with
    four terms per statement.
    """
    if first.response is None:
        return None
    if _CONTEXT in first.response.body and _HYDRA in first.response.body:
        raise LinkedDataError(
            first.address,
            "speaks the dialect of the 2015 prototype (a form with rdf:context, four terms in Turtle), which is not"
            " read: serve the data as Quad Pattern Fragments",
        )
    if first.rdf is None:
        return None
    pages = PageReader(first.web, first.reach)
    with first.web.round():
        leaf = await pages.of(first.rdf, first.address)
        if not leaf.page.forms:
            return None
        leaf = await _entry(pages, leaf, first.address)
    forms = fragment_addresses(leaf.page.forms, leaf.page.default, first.web.limits.address)
    binding = "" if forms.binding is None else forms.binding.template
    try:
        for template in (forms.plain.template, binding, leaf.page.changes or ""):
            expand(template, {})
    except FormTemplateError as error:
        raise LinkedDataError(first.address, f"has a form that is not understood: {error}") from error
    return FragmentsSource(first.address, pages, forms, leaf.page.changes)


@dataclass(frozen=True, slots=True)
class FragmentsSource:
    """A data set behind a form; the first page of each fragment is requested, further ones only when needed."""

    address: str
    pages: PageReader
    addresses: FragmentAddresses
    changes: str | None = None
    """The template of addresses of changes, if there is one."""

    async def count(self, pattern: QuadPattern) -> int:
        """The stated count of the fragment; the number of matching quads if its first page is the only one, or more."""
        if not self.addresses.has(pattern):
            return 0
        leaf = await self.pages.leaf(self._link(self.addresses.whole(pattern)))
        shown = len(self._matching_quads(pattern, (leaf,)))
        if leaf.page.following is None:
            return shown
        return max(shown, 1, leaf.page.count if leaf.page.count is not None else len(leaf.page.data) * _UNKNOWN)

    async def fetch(self, pattern: QuadPattern, seeds: Sequence[Binding] = ()) -> FetchedQuads:
        """The fragment's quads; with seeds, those of restricted fragments if that takes fewer requests."""
        if not self.addresses.has(pattern):
            # An answer without quads still needs a time and a version, which the entry page has.
            leaf = await self.pages.leaf(self.address)
            return combined((), (leaf.response,))
        addresses = await self._addresses(pattern, seeds)
        leaves = tuple(leaf for leaves_ in await gather_all(map(self.pages.all, addresses)) for leaf in leaves_)
        return combined(self._matching_quads(pattern, leaves), [leaf.response for leaf in leaves])

    async def changed(self, since: str) -> FetchedChange | None:
        """The changes of the whole data set since a version; ``None`` if the server does not have them."""
        if self.changes is None:
            return None
        address = self._link(expand(self.changes, {"since": since}))
        try:
            response = await self.pages.web.get(address, self.pages.reach, PATCH_TYPE)
        except UnavailableError:
            raise
        # 410 or an error of its own: the versions that the server still has do not reach back so far.
        except LinkedDataError:
            return None
        return read_patch(response, self.pages.web.limits.quads)

    def listen(self, last: str | None) -> AbstractAsyncContextManager[AsyncIterator[ServerEvent]]:
        """The events of the data set's changes, from now on or since an event.

        Errors as ``CachingHttpClient.events``.
        """
        address = self._link(expand(self.changes or "", {}))
        return self.pages.web.events(address, self.pages.reach, last)

    async def _addresses(self, pattern: QuadPattern, seeds: Sequence[Binding]) -> list[str]:
        """The addresses of the fragments to read: the alternative with the fewest requests.

        The alternatives are the whole fragment on default pages, on the largest pages, or restricted by seeds. The
        estimate uses the last known first page, even a stale one, to save a request.
        """
        whole = self._link(self.addresses.whole(pattern))
        narrow = restrictions(pattern, seeds)
        if self.addresses.largest is None and (not narrow or not all(narrow)):
            return [whole]
        last = self.pages.web.last(whole)
        leaf = await (self.pages.leaf(whole) if last is None else self.pages.of(last, whole))
        left, large, count = _requests_left(leaf), None, leaf.page.count
        if self.addresses.largest is not None and count is not None:
            large = max(1, ceil(count / self.addresses.largest))
        # The first page is all there is, and it is in the cache.
        if not left:
            return [whole]
        addresses = [whole] if large is None or left <= large else [self._link(self.addresses.large(pattern))]
        if not narrow or not all(narrow):
            return addresses
        narrowed = [self._link(address) for address in self.addresses.narrowed(pattern, narrow)]
        return narrowed if len(narrowed) < min(left, large or left) else addresses

    def _link(self, reference: str) -> str:
        return self.pages.reach.link(self.address, reference)

    def _matching_quads(self, pattern: QuadPattern, leaves: Sequence[PageResponse]) -> tuple[Quad, ...]:
        """The matching quads; those of a single page are cached with its response."""
        if len(leaves) > 1:
            return matching_quads(pattern, self._quads(leaves))
        # With the response, so that both leave the cache together.
        cache, key = leaves[0].response.parsed, ("matching", pattern, self.addresses.default)
        if key not in cache:
            cache[key] = matching_quads(pattern, self._quads(leaves))
        return cast(tuple[Quad, ...], cache[key])

    def _quads(self, leaves: Sequence[PageResponse]) -> list[Quad]:
        """The data of pages, with the server's name of the default graph replaced.

        Interfaces of triples have no other.
        """
        quads = [quad for leaf in leaves for quad in leaf.page.data]
        default = self.addresses.default
        if not self.addresses.graphs:
            return [quad for quad in quads if quad[3] == DEFAULT]
        if default is None:
            return quads
        return [(*quad[:3], DEFAULT) if quad[3] == default else quad for quad in quads]


def _requests_left(leaf: PageResponse) -> int:
    """The number of requests for the rest of a fragment, by its first page."""
    if leaf.page.following is None:
        return 0
    size = leaf.page.size or len(leaf.page.data) or _PAGE
    if leaf.page.count is None:
        return _UNKNOWN
    return max(1, ceil((leaf.page.count - len(leaf.page.data)) / size))
