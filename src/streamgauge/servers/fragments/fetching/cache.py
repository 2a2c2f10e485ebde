"""Responses that are kept: a bounded store in memory, those least lately used go first."""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from streamgauge.servers.fragments.fetching.lifetimes import Lifetime

Key: TypeAlias = tuple[str, str]
"""Address and Accept."""

_OVERHEAD = 500
_READ = 4
"""How much more memory what readers make of a body takes than the body, about: quads are tuples of strings."""


@dataclass(frozen=True, slots=True)
class Response:
    """What an address had: ``at`` and ``until`` in ms of the server's clock (see Lifetime).

    ``address`` is where redirects led, ``kind`` the media type, ``validator`` an ETag or else a Last-Modified,
    ``changed`` that time (ms), ``version`` that of its data set. ``made`` is what readers made of the body, by name.
    """

    address: str
    kind: str
    body: bytes
    at: int
    until: int | None
    validator: str | None
    changed: int | None
    version: str | None
    made: dict[object, object] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Kept:
    """A response in the cache; ``fresh`` is until when it may be used unasked, ms of the own clock."""

    response: Response
    condition: dict[str, str]
    """The header field that asks whether it has changed."""
    fresh: float
    number: int
    """Of all that came, in order."""

    @property
    def size(self) -> int:
        """Bytes of memory that it takes, about."""
        return (1 + _READ) * len(self.response.body) + len(self.response.address) + _OVERHEAD

    def again(self, lifetime: Lifetime, version: str | None, fresh: float, number: int) -> "Kept":
        """The same after its server said that it has not changed."""
        response = replace(self.response, at=lifetime.at, until=lifetime.until, version=version)
        return replace(self, response=response, fresh=fresh, number=number)


class Cache:
    """At most ``capacity`` bytes, what was read of bodies included; what takes more than an eighth is not kept."""

    def __init__(self, capacity: int = 64 * 2**20) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[Key, Kept] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Key) -> Kept | None:
        """What is kept of it, which counts as use."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: Key, kept: Kept) -> None:
        """Keep it in place of what was there, and let go what is then too much."""
        self.drop(key)
        if kept.size * 8 > self._capacity:
            return
        self._kept[key] = kept
        self.size += kept.size
        while self.size > self._capacity:
            self.drop(next(iter(self._kept)))

    def drop(self, key: Key) -> None:
        """Let it go."""
        gone = self._kept.pop(key, None)
        if gone is not None:
            self.size -= gone.size

    def clear(self) -> None:
        """Let all go."""
        self._kept.clear()
        self.size = 0
