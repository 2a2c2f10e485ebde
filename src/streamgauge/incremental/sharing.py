"""One operator with several readers: each reads every change once.

A reader's pull has the operator pulled first, once in a pull of the whole query: its leaves give nothing new within
one. Each operator of ``p1*/p2*/.../pn*`` has two readers and two more below it, so without that a pull would be 2 ** n.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.incremental.bags import Bag, add_all
from streamgauge.incremental.operators import Operator
from streamgauge.model.terms import Row


@dataclass
class Pull:
    """The pull of a whole query that is under way, by its number."""

    number: int = 0


class Shared:
    """An operator whose changes are handed to all of its taps; ``pull`` is the query's."""

    def __init__(self, inner: Operator, pull: Pull) -> None:
        self.inner, self._pull, self._fetched = inner, pull, -1
        self._taps: list[Tap] = []

    @property
    def held(self) -> int:
        """How many rows wait for a reader."""
        return sum(len(tap.pending) for tap in self._taps)

    def forget(self) -> None:
        """Begin again from nothing."""
        for tap in self._taps:
            tap.pending = {}

    def tap(self) -> "Tap":
        """One more reader; all of them are made before the first change."""
        tap = Tap(self)
        self._taps.append(tap)
        return tap

    def fetch(self) -> None:
        """Hand the change since the last time to every tap, unless this pull of the query has done so."""
        if self._fetched == self._pull.number:
            return
        self._fetched = self._pull.number
        change = self.inner.pull()
        if change:
            for tap in self._taps:
                add_all(tap.pending, change)


class Tap:
    """A reader of a shared operator."""

    def __init__(self, shared: Shared) -> None:
        self.variables, self.certain = shared.inner.variables, shared.inner.certain
        self._shared = shared
        self.pending: Bag = {}

    def pull(self) -> Bag:
        """The change since this reader's last pull."""
        self._shared.fetch()
        change, self.pending = self.pending, {}
        return change


PRESENT = "1"
"""In a key, at the place of a column that is bound in the row."""


class Keyed:
    """One more column that tells rows apart by some of their columns: which are bound, then their values."""

    def __init__(self, inner: Operator, name: str, by: Sequence[str]) -> None:
        self.variables, self.certain = (*inner.variables, name), inner.certain | {name}
        self._inner = inner
        self._at = [inner.variables.index(column) for column in by]

    def pull(self) -> Bag:
        """The rows of the change with their keys."""
        return {(*row, self._key(row)): count for row, count in self._inner.pull().items()}

    def _key(self, row: Row) -> str:
        cells = [row[at] for at in self._at]
        return "".join([PRESENT if cell is not None else "0" for cell in cells]) + repr(cells)
