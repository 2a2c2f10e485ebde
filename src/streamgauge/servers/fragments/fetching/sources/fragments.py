"""Triple and Quad Pattern Fragments, with bindings where their form takes some (brTPF)."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from math import ceil
from typing import Final, cast

from streamgauge.servers.fragments.fetching.asking import Asking, asking
from streamgauge.servers.fragments.fetching.contract import (
    Binding,
    Changed,
    Fetched,
    Source,
    SourceError,
    UnavailableError,
)
from streamgauge.servers.fragments.fetching.documents import syntax
from streamgauge.servers.fragments.fetching.gathering import gathered
from streamgauge.servers.fragments.fetching.matching import matching, restrictions
from streamgauge.servers.fragments.fetching.pages import Leaf, Pages
from streamgauge.servers.fragments.fetching.patches import MEDIA_TYPE, changed
from streamgauge.servers.fragments.fetching.sources import First
from streamgauge.servers.fragments.fetching.template import TemplateError, expand
from streamgauge.servers.fragments.fetching.together import together
from streamgauge.servers.fragments.quads import DEFAULT, Quad, QuadPattern
from streamgauge.sources.sse_events import ServerEvent

RANK: Final = 20

_PAGE: Final = 100
"""Quads on a page where it does not say."""

_UNKNOWN: Final = 100
"""Pages that a fragment without a count is taken to have, when it has more than one."""


async def recognise(first: First) -> Source | None:
    """A source whose first response has a form that asks by subject, predicate and object."""
    if first.response is None or syntax(first.response) is None:
        return None
    pages = Pages(first.web, first.reach)
    with first.web.round():
        leaf = await pages.of(first.response, first.address)
    forms = asking(leaf.page.forms, leaf.page.default, first.web.limits.address) if leaf.page.forms else None
    if forms is None:
        return None
    binding = "" if forms.binding is None else forms.binding.template
    try:
        for template in (forms.plain.template, binding, leaf.page.changes or ""):
            expand(template, {})
    except TemplateError as error:
        raise SourceError(first.address, f"has a form that is not understood: {error}") from error
    return Fragments(first.address, pages, forms, leaf.page.changes)


@dataclass(frozen=True, slots=True)
class Fragments:
    """A data set behind a form; requests are the first page of each fragment, further ones only as they are needed."""

    address: str
    pages: Pages
    asking: Asking
    changes: str | None = None
    """The template of addresses of what changed, where there is one."""

    async def count(self, pattern: QuadPattern) -> int:
        """How many quads its fragment states; what the first page shows where it is all, or more than stated."""
        if not self.asking.has(pattern):
            return 0
        leaf = await self._first(pattern)
        shown = len(self._found(pattern, (leaf,)))
        if leaf.page.following is None:
            return shown
        return max(shown, 1, leaf.page.count if leaf.page.count is not None else len(leaf.page.data) * _UNKNOWN)

    async def fetch(self, pattern: QuadPattern, seeds: Sequence[Binding] = ()) -> Fetched:
        """The fragment's quads; with seeds those of narrower fragments where that takes fewer requests."""
        if not self.asking.has(pattern):
            leaf = await self.pages.leaf(self.address)
            return gathered((), (leaf.response,))
        addresses = await self._addresses(pattern, seeds)
        leaves = tuple(leaf for each in await together(map(self.pages.all, addresses)) for leaf in each)
        return gathered(self._found(pattern, leaves), [leaf.response for leaf in leaves])

    async def changed(self, since: str) -> Changed | None:
        """What changed in the whole data set since a version; ``None`` where that is not known."""
        if self.changes is None:
            return None
        address = self._link(expand(self.changes, {"since": since}))
        try:
            response = await self.pages.web.get(address, self.pages.reach, MEDIA_TYPE)
        except UnavailableError:
            raise
        except SourceError:
            return None
        return changed(response, self.pages.web.limits.quads)

    def listen(self, last: str | None) -> AbstractAsyncContextManager[AsyncIterator[ServerEvent]]:
        """What changes in the whole data set, as it does, from now on or since an event; SourceError as Web.events."""
        address = self._link(expand(self.changes or "", {}))
        return self.pages.web.events(address, self.pages.reach, last)

    async def _addresses(self, pattern: QuadPattern, seeds: Sequence[Binding]) -> list[str]:
        """Of the fragments to read, by requests; an old first page of the whole does to plan by, if there is one."""
        whole = self._link(self.asking.whole(pattern))
        narrow = restrictions(pattern, seeds)
        if self.asking.largest is None and (not narrow or not all(narrow)):
            return [whole]
        last = self.pages.web.last(whole)
        leaf = await (self.pages.leaf(whole) if last is None else self.pages.of(last, whole))
        left, large = _left(leaf), _large(leaf, self.asking.largest)
        if not left:
            return [whole]
        addresses = [whole] if large is None or left <= large else [self._link(self.asking.large(pattern))]
        if not narrow or not all(narrow):
            return addresses
        narrowed = [self._link(each) for each in self.asking.narrowed(pattern, narrow)]
        return narrowed if len(narrowed) < min(left, large or left) else addresses

    async def _first(self, pattern: QuadPattern) -> Leaf:
        return await self.pages.leaf(self._link(self.asking.whole(pattern)))

    def _link(self, reference: str) -> str:
        return self.pages.reach.link(self.address, reference)

    def _found(self, pattern: QuadPattern, leaves: Sequence[Leaf]) -> tuple[Quad, ...]:
        """The quads that match; of a single page they are known as long as its body is."""
        if len(leaves) > 1:
            return matching(pattern, self._quads(leaves))
        made, key = leaves[0].response.made, ("matching", pattern, self.asking.default)
        if key not in made:
            made[key] = matching(pattern, self._quads(leaves))
        return cast(tuple[Quad, ...], made[key])

    def _quads(self, leaves: Sequence[Leaf]) -> list[Quad]:
        """Their data, the default graph under its own name; fragments of triples have no other."""
        quads = [quad for leaf in leaves for quad in leaf.page.data]
        default = self.asking.default
        if not self.asking.graphs:
            return [quad for quad in quads if quad[3] == DEFAULT]
        if default is None:
            return quads
        return [(*quad[:3], DEFAULT) if quad[3] == default else quad for quad in quads]


def _large(leaf: Leaf, largest: int | None) -> int | None:
    """Requests to read all of a fragment on the largest pages; ``None`` where that cannot be asked or known."""
    return None if largest is None or leaf.page.count is None else max(1, ceil(leaf.page.count / largest))


def _left(leaf: Leaf) -> int:
    """Requests to read the rest of a fragment, as its first page states."""
    if leaf.page.following is None:
        return 0
    size = leaf.page.size or len(leaf.page.data) or _PAGE
    if leaf.page.count is None:
        return _UNKNOWN
    return max(1, ceil((leaf.page.count - len(leaf.page.data)) / size))
