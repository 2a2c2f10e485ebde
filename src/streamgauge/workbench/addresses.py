"""Hosts that users enter in the workbench, and which of them it connects to (OWASP, server-side request forgery).

Allowed are public hosts, this machine, and addresses of private networks that are entered as addresses. Link-local
addresses, metadata services of clouds, and multicast, reserved and unspecified addresses are always refused.
"""

import socket
from collections.abc import Callable, Sequence
from typing import TypeAlias

from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.outgoing.addresses import is_private, never_requested, parse_ip, unwrapped

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
        addresses = find(host)
    except (OSError, UnicodeError) as error:
        raise HostRefusedError(f"{host} is not found: {obstacle(error)}") from error
    check_addresses(host, addresses)


def check_addresses(host: str, addresses: Sequence[str]) -> None:
    """HostRefusedError when one of the addresses that were found for a host may not be connected to."""
    for address in addresses:
        if never_requested(address):
            raise HostRefusedError(
                f"{host} is at {address}, which is link-local, reserved or tells a cloud's secrets: it is never asked"
            )
        if is_private(address) and not _loopback(address) and not _typed(host, address):
            raise HostRefusedError(f"{host} is at {address} in a private network: write the address itself to ask it")


def _loopback(address: str) -> bool:
    parsed = parse_ip(address)
    return parsed is not None and all(address.is_loopback for address in unwrapped(parsed))


def _typed(host: str, address: str) -> bool:
    """Whether the host is that address itself, not a name for it."""
    return (typed := parse_ip(host)) is not None and typed == parse_ip(address)
