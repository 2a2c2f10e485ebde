"""Addresses: hosts that are not of the public Internet, and the address that a server has for its clients."""

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Protocol

_NAT64 = ip_network("64:ff9b::/96")


def names_private(host: str) -> bool:
    """Whether a host is an address that is not public, or this machine by name."""
    name = host.rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost") or is_private(name)


def is_private(host: str) -> bool:
    """Whether text is an IP address that is not of the public Internet, also one wrapped in another."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return any(not each.is_global or each.is_multicast for each in _unwrapped(address))


def _unwrapped(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """The address, or the IPv4 address in it (mapped, 6to4, Teredo, NAT64)."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address in _NAT64:
        return [IPv4Address(int(address) & 0xFFFFFFFF)]
    return [address, *(each for each in (address.sixtofour, *(address.teredo or ())) if each is not None)]


_HOST = re.compile(r"(?:[A-Za-z0-9._\-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~\-]+)*")

_BASE = re.compile(r"https?://[^\s/?#<>\"{}|\\^`@]+(?:/[^\s?#<>\"{}|\\^`]*)?", re.IGNORECASE)


class HostError(ValueError):
    """A request that does not say what it takes this server for; the sentence says what is wrong."""


class BaseAddress(Protocol):
    """Gives the base of all addresses, without a slash in the end; HostError when the headers make none."""

    def __call__(self, scheme: str, headers: Mapping[bytes, bytes]) -> str:
        """From the request's scheme and headers."""
        ...


def of_host(scheme: str, headers: Mapping[bytes, bytes]) -> str:
    """By the Host header; what Forwarded and X-Forwarded-* say is not listened to."""
    return _told(scheme, headers.get(b"host", b""))


def of_proxy(scheme: str, headers: Mapping[bytes, bytes]) -> str:
    """By Forwarded (RFC 7239), else X-Forwarded-Host, -Proto and -Prefix, else Host: behind a proxy that sets them."""
    forwarded = _forwarded(headers.get(b"forwarded", b""))
    host = forwarded.get(b"host") or _first(headers, b"x-forwarded-host") or headers.get(b"host", b"")
    told = forwarded.get(b"proto") or _first(headers, b"x-forwarded-proto")
    prefix = _first(headers, b"x-forwarded-prefix").rstrip(b"/").decode("latin-1")
    if not _PREFIX.fullmatch(prefix):
        raise HostError(f"X-Forwarded-Prefix: {prefix!r:.80} is not a path")
    return f"{_told(told.decode('latin-1') or scheme, host)}{prefix}"


def fixed(base: str) -> BaseAddress:
    """The address given, whatever a request says; HostError for one that is no web address."""
    if not _BASE.fullmatch(base):
        raise HostError(f"{base!r:.80} is no address of a server: write one like https://data.example.org/ldf")
    return lambda _scheme, _headers: base.rstrip("/")


def _first(headers: Mapping[bytes, bytes], name: bytes) -> bytes:
    return headers.get(name, b"").partition(b",")[0].strip()


def _forwarded(header: bytes) -> dict[bytes, bytes]:
    """The pairs that the first proxy gave."""
    parts = (part.strip().partition(b"=") for part in header.partition(b",")[0].split(b";"))
    return {name.lower(): value.strip(b'"') for name, _, value in parts}


@lru_cache(maxsize=1000)
def _told(scheme: str, given: bytes) -> str:
    host = given.decode("latin-1")
    if scheme.lower() not in ("http", "https"):
        raise HostError(f"the scheme is {scheme!r:.20}: http or https is served")
    if not _HOST.fullmatch(host):
        raise HostError(f"the Host header is {host!r:.80}: a name or address is needed, and a port where it is not 80")
    return f"{scheme.lower()}://{host}"
