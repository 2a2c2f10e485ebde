"""Where requests may go: what a start address, a redirect or a link leads to (OWASP, server-side request forgery).

Only http and https, no credentials in addresses, no way from https to http. Addresses that are not of the public
Internet only at the origin of a start address that names one itself, or at hosts that are allowed by name. Redirects
may lead to other public origins, links only to the origins of the start and of where it was redirected to.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache

import httpx

from streamgauge.servers.fragments.fetching.contract import SourceError
from streamgauge.servers.http.addresses import names_private
from streamgauge.servers.http.guarded import PORTS, Origin, origin


class RefusedError(SourceError):
    """An address that the rules do not allow."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What one source may lead to: ``origins`` of links, origins that may be ``private``, hosts ``allowed`` by name."""

    origins: frozenset[Origin]
    private: frozenset[Origin]
    allowed: frozenset[str]

    def check(self, address: str) -> httpx.URL:
        """The address, when a request may go there; RefusedError says why it may not."""
        url = parsed(address)
        if names_private(url.host) and not self.takes_private(url):
            raise RefusedError(address, f"{url.host} is no public host: allow it by name to ask it")
        return url

    def takes_private(self, url: httpx.URL) -> bool:
        """Whether the host may have an address that is not public."""
        return url.host in self.allowed or origin(url) in self.private

    def redirect(self, base: str, location: str) -> str:
        """Where a redirect leads; RefusedError when it may not."""
        target = joined(base, location)
        if base.startswith("https:") and target.startswith("http:"):
            raise RefusedError(base, f"redirects from https to {target:.300}")
        self.check(target)
        return target

    def link(self, base: str, target: str) -> str:
        """Where a link in a document leads; RefusedError when it is of another origin that is not allowed."""
        address = joined(base, target)
        url = self.check(address)
        if origin(url) not in self.origins and url.host not in self.allowed:
            raise RefusedError(base, f"links to another origin, {address:.300}: allow {url.host} to follow it")
        return address

    def moved(self, address: str) -> "Reach":
        """The same, links to the origin of an address allowed too: where the start was redirected to."""
        return replace(self, origins=self.origins | {origin(parsed(address))})


def reach(start: str, allowed: Collection[str] = ()) -> Reach:
    """What may be asked of a source that was named by its start address; RefusedError for what is no web address."""
    url = parsed(start)
    own = frozenset((origin(url),))
    return Reach(own, own if names_private(url.host) else frozenset(), frozenset(host.lower() for host in allowed))


@lru_cache(maxsize=2000)
def parsed(address: str) -> httpx.URL:
    """An address as requests are made of it; RefusedError when it is not http or https, or has credentials."""
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise RefusedError(address, f"no web address: {error}") from error
    if url.scheme not in PORTS or not url.host or (url.port or 1) not in range(1, 2**16):
        raise RefusedError(
            address, "no web address: it begins with http:// or https:// and names a host, its port is below 65536"
        )
    if url.userinfo:
        raise RefusedError(f"{url.scheme}://{url.host}", "addresses with credentials are not asked")
    return url


@lru_cache(maxsize=2000)
def joined(base: str, target: str) -> str:
    """A reference resolved against an address, without its fragment; RefusedError when it is none."""
    try:
        return str(httpx.URL(base).join(target).copy_with(fragment=None))
    except (httpx.InvalidURL, ValueError) as error:
        raise RefusedError(base, f"leads to {target!r:.300}, which is no web address: {error}") from error
