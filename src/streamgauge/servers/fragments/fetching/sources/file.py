"""A document of RDF, read whole: the last resort."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from streamgauge.servers.fragments.fetching.contract import Binding, Fetched, Source
from streamgauge.servers.fragments.fetching.documents import quads, syntax
from streamgauge.servers.fragments.fetching.gathering import gathered
from streamgauge.servers.fragments.fetching.matching import matching
from streamgauge.servers.fragments.fetching.reach import Reach
from streamgauge.servers.fragments.fetching.sources import First
from streamgauge.servers.fragments.fetching.web import Web
from streamgauge.servers.fragments.quads import QuadPattern

RANK: Final = 50


async def recognise(first: First) -> Source | None:
    """A source whose first response is of an RDF media type."""
    if first.response is None or syntax(first.response) is None:
        return None
    quads(first.response, first.web.limits.quads)
    return File(first.address, first.web, first.reach)


@dataclass(frozen=True, slots=True)
class File:
    """A document; every question is answered from its one response, for as long as that may be used."""

    address: str
    web: Web
    reach: Reach

    async def count(self, pattern: QuadPattern) -> int:
        """How many quads match."""
        return len((await self.fetch(pattern)).quads)

    async def fetch(self, pattern: QuadPattern, seeds: Sequence[Binding] = ()) -> Fetched:  # noqa: ARG002
        """All quads that match."""
        response = await self.web.get(self.address, self.reach)
        return gathered(matching(pattern, quads(response, self.web.limits.quads)), (response,))
