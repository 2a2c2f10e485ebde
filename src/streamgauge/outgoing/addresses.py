"""Classification of IP addresses: which are public, and which must never be requested (OWASP, SSRF).

An IPv6 address that carries an IPv4 one (mapped, compatible, 6to4, Teredo, NAT64, ISATAP) is judged by both.
"""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, TypeAlias

IpAddress: TypeAlias = IPv4Address | IPv6Address

_NAT64: Final = ip_network("64:ff9b::/96")
_ISATAP: Final = (0x00005EFE, 0x02005EFE)
"""The upper half of an interface identifier whose lower half is an IPv4 address (RFC 5214, 6.1)."""

_LOW_32: Final = 0xFFFFFFFF
_LOCAL: Final = tuple(map(ip_network, ("fec0::/10", "64:ff9b:1::/48")))
"""Networks for local use that Python's table of global addresses does not exclude: site-local, local NAT64."""

_METADATA: Final = tuple(map(ip_network, ("fd00:ec2::/32", "fd20:ce::/32", "100.100.100.200/32", "168.63.129.16/32")))
"""Metadata services of clouds, which give credentials to any client, beside those at link-local addresses."""


def names_private(host: str) -> bool:
    """Whether a host is an address that is not public, in any notation, or this machine by name."""
    # A final dot only makes a name absolute; localhost and everything below it is this machine (RFC 6761, 6.3).
    name = host.rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost") or is_private(name)


def is_private(host: str) -> bool:
    """Whether text is an IP address that is not of the public Internet, also one wrapped in another."""
    address = parse_ip(host)
    return address is not None and any(not _public(inner) for inner in unwrapped(address))


def never_requested(address: str) -> bool:
    """Whether an IP address is never requested, whoever names it: link-local, metadata, multicast, reserved."""
    parsed = parse_ip(address)
    # What is not an address at all is never connected to either.
    return parsed is None or any(map(_special, unwrapped(parsed)))


def parse_ip(host: str) -> IpAddress | None:
    """Parse an address as resolvers do (``127.1``, ``0x7f.1``, ``2130706433``, a zone); ``None`` for other text."""
    # Without brackets (URLs) and the zone (RFC 4007, 11), which `ip_address` would keep.
    text = host.strip("[]").partition("%")[0].rstrip(".")
    try:
        return ip_address(text)
    except ValueError:
        pass
    try:
        # inet_aton reads the forms that resolvers also accept; it ignores text after a space, hence the test.
        return IPv4Address(socket.inet_aton(text)) if text.isascii() and not text.isspace() else None
    except OSError:
        return None


def unwrapped(address: IpAddress) -> list[IpAddress]:
    """The address and the IPv4 addresses in it; a mapped or translated one is only its IPv4 address."""
    if isinstance(address, IPv4Address):
        return [address]
    number = int(address)
    low = IPv4Address(number & _LOW_32)
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    # The gateway translates it, so that the packet goes to the IPv4 address only.
    if address in _NAT64:
        return [low]
    inner: list[IpAddress | None] = [address.sixtofour, *(address.teredo or ())]
    # :: and ::1 are within ::/96 too, and are no IPv4 addresses.
    compatible = number >> 32 == 0 and not address.is_unspecified and not address.is_loopback
    if compatible or (number >> 32) & _LOW_32 in _ISATAP:
        inner.append(low)
    return [address, *(candidate for candidate in inner if candidate is not None)]


def _public(address: IpAddress) -> bool:
    local = any(address in network for network in (*_LOCAL, *_METADATA))
    # Python counts most multicast addresses as global.
    return address.is_global and not address.is_multicast and not local


def _special(address: IpAddress) -> bool:
    if address.is_loopback:
        return False
    special = address.is_link_local or address.is_multicast or address.is_unspecified or address.is_reserved
    return special or any(address in network for network in _METADATA)
