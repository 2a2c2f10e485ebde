"""A document of RDF, read whole: the last resort."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from streamgauge.servers.fragments import QuadPattern
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.contract import Binding, FetchedQuads, LinkedDataSource
from streamgauge.servers.fragments.client.documents import combined, rdf_syntax, read_quads
from streamgauge.servers.fragments.client.joins import matching_quads
from streamgauge.servers.fragments.client.sources import FirstResponse
from streamgauge.servers.fragments.client.transport import AddressRules

RANK: Final = 50


async def recognise(first: FirstResponse) -> LinkedDataSource | None:
    """A source whose first response is of an RDF media type."""
    if first.response is None or rdf_syntax(first.response) is None:
        return None
    read_quads(first.response, first.web.limits.quads)
    return FileSource(first.address, first.web, first.reach)


@dataclass(frozen=True, slots=True)
class FileSource:
    """A document; every question is answered from its one response, for as long as that may be used."""

    address: str
    web: CachingHttpClient
    reach: AddressRules

    async def count(self, pattern: QuadPattern) -> int:
        """How many quads match."""
        return len((await self.fetch(pattern)).quads)

    async def fetch(self, pattern: QuadPattern, seeds: Sequence[Binding] = ()) -> FetchedQuads:  # noqa: ARG002
        """All quads that match."""
        response = await self.web.get(self.address, self.reach)
        return combined(matching_quads(pattern, read_quads(response, self.web.limits.quads)), (response,))
