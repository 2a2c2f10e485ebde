"""Whole fragments, page by page, as they were at one instant."""

from dataclasses import dataclass

from streamgauge.servers.fragments.fetching.cache import Response
from streamgauge.servers.fragments.fetching.contract import SourceError, UnavailableError
from streamgauge.servers.fragments.fetching.controls import Page, page
from streamgauge.servers.fragments.fetching.documents import quads
from streamgauge.servers.fragments.fetching.gathering import state
from streamgauge.servers.fragments.fetching.reach import Reach
from streamgauge.servers.fragments.fetching.web import Use, Web
from streamgauge.servers.fragments.quads import Quad
from streamgauge.servers.http.dates import SECOND

_IDLE = 3
"""Pages in a row that may bring nothing new."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A page as it came."""

    response: Response
    page: Page


@dataclass(frozen=True, slots=True)
class Pages:
    """Reads the pages of one source."""

    web: Web
    reach: Reach

    async def leaf(self, address: str, use: Use = Use.KEPT) -> Leaf:
        """The page at an address."""
        return await self.of(await self.web.get(address, self.reach, use=use), address)

    async def of(self, response: Response, address: str) -> Leaf:
        """A response as a page; one that cannot be read is asked for once more, as it may have been cut."""
        try:
            return self._leaf(response, address)
        except SourceError:
            self.web.forget(address)
            return self._leaf(await self.web.get(address, self.reach), address)

    def _leaf(self, response: Response, address: str) -> Leaf:
        key = "page", address
        found = response.made.get(key)
        if not isinstance(found, Page):
            found = response.made[key] = page(quads(response, self.web.limits.quads), response, address)
        return Leaf(response, found)

    async def all(self, address: str) -> tuple[Leaf, ...]:
        """All pages of the fragment that begins at an address.

        Pages that straddle a change are read again; UnavailableError when it changes faster than it can be read.
        """
        leaves = await self._read(address, Use.KEPT)
        for _ in range(self.web.limits.readings):
            if _settled(leaves):
                return leaves
            again = await self._read(address, Use.ASKED)
            if [state(leaf.response) for leaf in leaves] == [state(leaf.response) for leaf in again]:
                return again
            leaves = again
        raise UnavailableError(address, f"changes faster than its {len(leaves)} pages can be read")

    async def _read(self, address: str, use: Use) -> tuple[Leaf, ...]:
        leaves: list[Leaf] = []
        seen: set[str] = set()
        known: set[Quad] = set()
        idle = 0
        following: str | None = address
        while following is not None:
            leaf = await self.leaf(following, use)
            seen.add(following)
            leaves.append(leaf)
            before = len(known)
            known.update(leaf.page.data)
            idle = 0 if len(known) > before else idle + 1
            self._check(address, len(leaves), len(known), idle)
            following = self._following(leaf, seen)
        return tuple(leaves)

    def _following(self, leaf: Leaf, seen: set[str]) -> str | None:
        if leaf.page.following is None:
            return None
        target = self.reach.link(leaf.response.address, leaf.page.following)
        if target in seen:
            raise SourceError(leaf.response.address, f"has {target:.300} as next page, which was read before it")
        return target

    def _check(self, address: str, pages: int, quads: int, idle: int) -> None:
        limits = self.web.limits
        if idle > _IDLE:
            raise SourceError(address, f"has {idle} pages in a row, to number {pages}, that bring nothing new")
        if pages > limits.pages:
            raise SourceError(address, f"has more than {limits.pages} pages: raise the limit `pages`")
        if quads > limits.quads:
            raise SourceError(address, f"has more than {limits.quads} quads: raise the limit `quads`")


def _settled(leaves: tuple[Leaf, ...]) -> bool:
    """Whether the pages certainly, or as far as their server lets one know, show one state.

    They do when the last that changed did so before the first was served. Without validators only counts tell.
    """
    if len(leaves) == 1:
        return True
    if len({leaf.page.count for leaf in leaves}) > 1:
        return False
    versions = {leaf.response.version for leaf in leaves}
    if None not in versions:
        return len(versions) == 1
    changed = [leaf.response.changed for leaf in leaves]
    known = [each for each in changed if each is not None]
    if len(known) == len(leaves):
        return max(known) + SECOND <= min(leaf.response.at for leaf in leaves)
    return all(leaf.response.validator is None for leaf in leaves)
