"""Addresses of hosts that are not of the public Internet (OWASP, server-side request forgery)."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

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
