"""Where a data set's quads are kept: the contract, and its implementations, a file each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from streamgauge.servers.fragments.quads import Lasting, Match, Quad
from streamgauge.servers.fragments.storing.keyed_change import KeyedChange


@dataclass(frozen=True, slots=True)
class Changes:
    """What a change, or several, made of a data set: quads that are there now and were not, and the reverse."""

    version: int
    added: tuple[Quad, ...]
    removed: tuple[Quad, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """What a store keeps of quads that left: how long after they ended (ms), and how many in all; ``None`` any."""

    span: int | None = None
    runs: int | None = None


class Store(Protocol):
    """A set of quads that changes; times are ms. ``version`` grows with each change that changed something."""

    @property
    def version(self) -> int:
        """The number of the last change; kept over restarts."""
        ...

    def change(self, removed: Iterable[Quad], added: Iterable[Lasting], at: int | None = None) -> Changes:
        """Remove, then add, as one: all or nothing, durable when it returns; what really changed.

        Adding a quad that is there changes when it ends. A store that keeps what left needs to know when it is (ms).
        """
        ...

    def prepare(self, removed: Iterable[Quad], added: Iterable[Lasting]) -> KeyedChange:
        """Work out a change while others are made; it is then to be made by ``make``, or abandoned."""
        ...

    def make(self, change: KeyedChange, at: int | None = None) -> Changes | None:
        """Make a prepared change, as ``change`` does; ``None`` when others changed the same quads since."""
        ...

    def abandon(self, change: KeyedChange) -> None:
        """A prepared change is not made."""
        ...

    def tidy(self) -> bool:
        """Drop some of the terms that are in no quad any more; whether there are more to look at."""
        ...

    def load(self, quads: Iterable[Lasting], at: int | None = None) -> int:
        """Fill an empty store fast, all or nothing, as one change that ``changed`` does not tell; how many there are.

        Of a quad that comes twice the latest end counts.
        """
        ...

    def count(self, match: Match) -> int:
        """How many quads match, exactly, without looking at them one by one."""
        ...

    def page(self, match: Match, offset: int, limit: int) -> list[Quad]:
        """Matching quads in an order that is fixed for a version."""
        ...

    def nearest(self, match: Match, now: int) -> int | None:
        """The earliest end after ``now`` among the matching quads, or a time before it when that is costly to find."""
        ...

    def expired(self, now: int, limit: int) -> list[Quad]:
        """Quads that ended at or before ``now``, those that ended first."""
        ...

    def changed(self, match: Match, since: int) -> Changes | None:
        """What changed among the matching quads since a version; ``None`` when that is no longer known."""
        ...

    def at(self, match: Match, instant: int, offset: int, limit: int) -> list[Quad] | None:
        """Matching quads that were there at an instant (ms) and had not ended; ``None`` when that is not known.

        Known is what a store keeps, and that quads which are there now hold until they end.
        """
        ...

    def close(self) -> None:
        """Nothing is read or changed any more."""
        ...
