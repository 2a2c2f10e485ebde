"""One operator with several readers: each reads every change once."""

from collections.abc import Sequence

from streamgauge.compute.changes.bags import Bag, add_all
from streamgauge.compute.changes.operators import Operator
from streamgauge.model.terms import Row


class Shared:
    """An operator whose changes are handed to all of its taps."""

    def __init__(self, inner: Operator) -> None:
        self.inner = inner
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
        """Hand the change since the last time to every tap."""
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
