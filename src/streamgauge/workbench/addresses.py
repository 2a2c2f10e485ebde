"""Hosts that people name in the workbench: which of them it connects to (OWASP, server-side request forgery).

A host may be public, this machine, or an address of a private network that is typed as an address. Link-local addresses
(metadata services of clouds), multicast, reserved and unspecified ones are never connected to.
"""

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias

from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.servers.http.outgoing_requests import is_private

Lookup: TypeAlias = Callable[[str], Sequence[str]]
"""The IP addresses of a host's name; OSError when it has none."""


class HostRefusedError(MistakeError, ValueError):
    """A host that the workbench does not connect to; the sentence says why."""


def lookup(host: str) -> list[str]:
    """The IP addresses of a host, as this machine finds them."""
    return [str(sockaddr[0]) for *_, sockaddr in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def check_host(host: str, find: Lookup = lookup) -> None:
    """HostRefusedError when a host has no address, or one that the workbench does not connect to."""
    try:
        found = find(host)
    except (OSError, UnicodeError) as error:
        raise HostRefusedError(f"{host} is not found: {obstacle(error)}") from error
    check_addresses(host, found)


def check_addresses(host: str, found: Sequence[str]) -> None:
    """HostRefusedError when one of the addresses that were found for a host may not be connected to."""
    for address in found:
        if _never(address):
            raise HostRefusedError(f"{host} is at {address}, which is link-local or reserved: it is never asked")
        if is_private(address) and not _loopback(address) and not _typed(host, address):
            raise HostRefusedError(f"{host} is at {address} in a private network: write the address itself to ask it")


def _never(address: str) -> bool:
    each = _plain(address)
    special = each.is_link_local or each.is_multicast or each.is_unspecified
    return special or (each.is_reserved and not each.is_loopback)


def _loopback(address: str) -> bool:
    return _plain(address).is_loopback


def _typed(host: str, address: str) -> bool:
    """Whether the host is that address itself, not a name for it."""
    try:
        return ip_address(host.strip("[]")) == ip_address(address)
    except ValueError:
        return False


def _plain(address: str) -> IPv4Address | IPv6Address:
    """The address, without its zone; an IPv4 address in an IPv6 one is itself."""
    found = ip_address(address.partition("%")[0])
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found
