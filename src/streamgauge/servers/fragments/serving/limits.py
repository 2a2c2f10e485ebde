"""What a server of fragments takes on at most."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes of an address and of a written body, bytes of bodies that are kept, requests answered at once.

    ``subscribers`` may listen to fragments at once.
    """

    address: int = 16_384
    body: int = 16 * 2**20
    kept: int = 128 * 2**20
    connections: int = 2_000
    subscribers: int = 1_000
