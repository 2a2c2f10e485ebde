"""The store of a data set's quads: the contract of a store and of a prepared change; a module per part."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from streamgauge.servers.fragments.quads import ExpiringQuad, Match, Quad
from streamgauge.servers.fragments.store.sorted_index import EditSketch, SortedIndex


@dataclass(frozen=True, slots=True)
class QuadChanges:
    """What a change, or several, made of a data set: quads that are there now and were not, and the reverse."""

    version: int
    added: tuple[Quad, ...]
    removed: tuple[Quad, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """What a store keeps of quads that left: how long after they ended (ms), and how many in all; ``None`` any."""

    span: int | None = None
    runs: int | None = None


@dataclass(eq=False, slots=True, weakref_slot=True)
class KeyedChange:
    """A change whose quads have keys; times are ms.

    ``come`` are the quads to be put in by their keys, with their ends in ``ends``: ``there`` are the keys of those that
    are there already, ``added`` the others. ``removed`` are the quads that are there and go, ``ended`` the ends that
    what is there has now. ``writes`` are to be made with it for new terms, ``numbers`` are those of its terms,
    ``fresh`` those of them that were written ahead of it. ``beside`` is true of a change that is worked out while
    others are made, ``stale`` once one of them was of the same quads.
    """

    come: dict[bytes, Quad] = field(default_factory=dict)
    ends: dict[bytes, int | None] = field(default_factory=dict)
    there: list[bytes] = field(default_factory=list)
    added: dict[bytes, Quad] = field(default_factory=dict)
    removed: dict[bytes, Quad] = field(default_factory=dict)
    ended: dict[bytes, int | None] = field(default_factory=dict)
    writes: Mapping[bytes, bytes | None] = field(default_factory=dict)
    numbers: set[bytes] = field(default_factory=set)
    fresh: list[bytes] = field(default_factory=list)
    edits: list[tuple[SortedIndex, EditSketch]] = field(default_factory=list)
    beside: bool = False
    stale: bool = False

    def touches(self, keys: Iterable[bytes]) -> bool:
        """Whether some of the keys are of its quads."""
        return any(key in self.come or key in self.removed for key in keys)


class Store(Protocol):
    """A set of quads that changes; times are ms. ``version`` grows with each change that changed something."""

    @property
    def version(self) -> int:
        """The number of the last change; kept over restarts."""
        ...

    def change(self, removed: Iterable[Quad], added: Iterable[ExpiringQuad], at: int | None = None) -> QuadChanges:
        """Remove, then add, as one: all or nothing, durable when it returns; what really changed.

        Adding a quad that is there changes when it ends. A store that keeps what left needs to know when it is (ms).
        """
        ...

    def prepare(self, removed: Iterable[Quad], added: Iterable[ExpiringQuad]) -> KeyedChange:
        """Work out a change while others are made; it is then to be made by ``make``, or abandoned."""
        ...

    def make(self, change: KeyedChange, at: int | None = None) -> QuadChanges | None:
        """Make a prepared change, as ``change`` does; ``None`` when others changed the same quads since."""
        ...

    def abandon(self, change: KeyedChange) -> None:
        """A prepared change is not made."""
        ...

    def tidy(self) -> bool:
        """Drop some of the terms that are in no quad any more; whether there are more to look at."""
        ...

    def load(self, quads: Iterable[ExpiringQuad], at: int | None = None) -> int:
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

    def changed(self, match: Match, since: int) -> QuadChanges | None:
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
