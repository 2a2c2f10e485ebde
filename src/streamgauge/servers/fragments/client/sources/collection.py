"""Hydra collections without a search form: linked pages, all of which are read.

The next page is named by ``hydra:next`` (of the page or of its view) or by the older ``hydra:nextPage``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from streamgauge.servers.fragments import QuadPattern
from streamgauge.servers.fragments.client import Binding, FetchedQuads, LinkedDataSource, combined
from streamgauge.servers.fragments.client.pages import PageReader
from streamgauge.servers.fragments.client.sources import FirstResponse, WholeSource, matching_quads

RANK: Final = 90


async def recognise(first: FirstResponse) -> LinkedDataSource | None:
    """A source whose first page links to a next one."""
    if first.rdf is None:
        return None
    leaf = await PageReader(first.web, first.reach).of(first.rdf, first.address)
    return None if leaf.page.following is None else CollectionSource(first.address, first.web, first.reach)


@dataclass(frozen=True, slots=True)
class CollectionSource(WholeSource):
    """All pages of a collection; every pattern reads all of them, fresh ones from the cache."""

    async def fetch(self, pattern: QuadPattern, seeds: Sequence[Binding] = ()) -> FetchedQuads:  # noqa: ARG002
        """The matching quads of all pages, without Hydra's controls."""
        leaves = await PageReader(self.web, self.reach).all(self.address)
        quads = tuple(dict.fromkeys(quad for leaf in leaves for quad in leaf.page.data))
        return combined(matching_quads(pattern, quads), [leaf.response for leaf in leaves])
