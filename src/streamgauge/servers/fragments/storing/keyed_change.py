"""A change as keys: what a store looked up for it, which may be done while other changes are made."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from streamgauge.servers.fragments.quads import Quad
from streamgauge.servers.fragments.storing.order import EditSketch, Order


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
    edits: list[tuple[Order, EditSketch]] = field(default_factory=list)
    beside: bool = False
    stale: bool = False

    def touches(self, keys: Iterable[bytes]) -> bool:
        """Whether some of the keys are of its quads."""
        return any(key in self.come or key in self.removed for key in keys)
