"""Kinds of sources, a file each, found by listing and recognised by the first response.

A kind is a module with ``RANK``, the order in which kinds are tried, and ``recognise``.
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.contract import LinkedDataSource, SourceError
from streamgauge.servers.fragments.client.http_cache import Response
from streamgauge.servers.fragments.client.transport import AddressRules, resolved_address


@dataclass(frozen=True, slots=True)
class FirstResponse:
    """The start address, what it answered, or why it did not, and what may be asked from there."""

    address: str
    response: Response | None
    refused: SourceError | None
    web: CachingHttpClient
    reach: AddressRules


class SourceKind(Protocol):
    """What a module in this folder has."""

    RANK: int

    def recognise(self, first: FirstResponse) -> Awaitable[LinkedDataSource | None]:
        """The source, when it is of this kind; SourceError when it is, and cannot be read."""
        ...


@cache
def kinds() -> tuple[SourceKind, ...]:
    """The kinds, those first that are tried first."""
    modules = (import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__))
    return tuple(sorted((cast(SourceKind, module) for module in modules), key=lambda kind: kind.RANK))


async def open_source(address: str, web: CachingHttpClient) -> LinkedDataSource:
    """The source at an address; SourceError when it cannot be read, with what it answered."""
    start = resolved_address(address, "")
    within = web.reach(start)
    try:
        response = await web.get(start, within)
        first = FirstResponse(start, response, None, web, within.moved(response.address))
    except SourceError as error:
        first = FirstResponse(start, None, error, web, within)
    for kind in kinds():
        source = await kind.recognise(first)
        if source is not None:
            return source
    raise first.refused or SourceError(
        start,
        f"answers {first.response.kind if first.response else ''!r}, which is no interface that is known:"
        " fragments, a TREE feed, a SPARQL endpoint or an RDF document",
    )
