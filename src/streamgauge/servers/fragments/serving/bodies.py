"""Representations that were sent, kept within a number of bytes."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from streamgauge.servers.fragments.serving.dataset import DataSet, Page

_OVERHEAD = 1_500
"""Bytes that one takes beside its body, about."""


@dataclass(slots=True)
class Representation:
    """A page as it is sent: its body, its validator, the headers that do not depend on the time."""

    dataset: DataSet
    page: Page
    body: bytes
    tag: bytes
    headers: list[tuple[bytes, bytes]]
    kept_headers: list[tuple[bytes, bytes]]
    """Those of ``headers`` that are also sent when the client has the body."""
    until: int | None
    """What the body says of when facts end; ``None`` where it says nothing."""

    @property
    def size(self) -> int:
        """The bytes that keeping it takes, about."""
        return len(self.body) + _OVERHEAD


class Bodies:
    """Representations by what was asked, those asked last; ``limit`` in bytes."""

    def __init__(self, limit: int) -> None:
        self._limit, self.bytes = limit, 0
        self._kept: OrderedDict[Hashable, Representation] = OrderedDict()

    def get(self, key: Hashable) -> Representation | None:
        """The one that is kept, which may no longer be current."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def keep(self, key: Hashable, made: Representation) -> None:
        """Keep one, in the place of those not asked for longest."""
        before = self._kept.pop(key, None)
        self.bytes += made.size - (before.size if before is not None else 0)
        self._kept[key] = made
        while self.bytes > self._limit:
            self.bytes -= self._kept.popitem(last=False)[1].size
