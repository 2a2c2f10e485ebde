"""How much one client asks for and takes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what sources may cost; each is refused by a sentence that names it."""

    received: int = 32 * 2**20
    """Bytes of a body on the wire."""
    unpacked: int = 128 * 2**20
    """Bytes of a body after decompression."""
    redirects: int = 5
    seconds: float = 30.0
    """For one attempt at a request, its redirects and body included."""
    attempts: int = 4
    """Of one request, when there is no answer or one that says to come back."""
    patience: float = 60.0
    """The longest wait (s) before a further attempt, whatever Retry-After says."""
    put_off: bool = False
    """Whether there is no further attempt when Retry-After asks for more than ``patience``: the caller waits."""
    at_once: int = 6
    """Requests under way to one origin."""
    address: int = 6_000
    """Characters of an address that is made, as servers bound their request lines."""
    pages: int = 10_000
    """Of one fragment, or nodes of one feed."""
    event: int = 4 * 2**20
    """Bytes of one event; what changed with a larger one is asked for."""
    silence: float = 45.0
    """Seconds without a byte after which a stream of events counts as cut; servers show every 15 s that they live."""
    quads: int = 5_000_000
    """Of one fragment or file."""
    rows: int = 1_000_000
    """Of a join, at every step."""
    readings: int = 4
    """Of a fragment that changes while its pages are read."""
