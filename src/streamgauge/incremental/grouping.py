"""GROUP BY: one accumulator per group and aggregate; only touched groups are looked at."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from streamgauge.incremental.aggregates import Accumulator, accumulator
from streamgauge.incremental.bags import Bag, add
from streamgauge.incremental.conditions import Batch
from streamgauge.incremental.effort import Effort
from streamgauge.incremental.operators import Operator, picker
from streamgauge.model.algebra import Aggregate
from streamgauge.model.terms import Row


class Grouped:
    """Groups with aggregates; without keys there is one group, also over nothing.

    ``inputs`` hold an argument per aggregate, ``None`` where whole rows are counted.
    """

    def __init__(
        self,
        inner: Operator,
        keys: tuple[str, ...],
        aggregates: Sequence[tuple[str, Aggregate]],
        inputs: Sequence[Batch | None],
        effort: Effort,
    ) -> None:
        self.variables = (*keys, *(name for name, _ in aggregates))
        self.certain = inner.certain & frozenset(keys)
        self._inner, self._inputs = inner, inputs
        self._effort = effort if effort.bounded else None
        self._aggregates = [aggregate for _, aggregate in aggregates]
        self._key = picker(inner.variables, keys)
        self._groups: dict[Row, _Group] = {}
        self._shown: dict[Row, Row] = {}
        self._global = not keys

    @property
    def empty(self) -> bool:
        """Whether no solution reached the aggregation (after a pull)."""
        return not any(group.size for group in self._groups.values())

    @property
    def held(self) -> int:
        """How many groups and rows for them there are."""
        return len(self._groups) + len(self._shown)

    def forget(self) -> None:
        """Begin again from nothing."""
        self._groups.clear()
        self._shown.clear()

    def pull(self) -> Bag:
        """Old rows of touched groups go, new ones come."""
        change = self._inner.pull()
        rows = list(change)
        columns = [batch.values(rows) if batch else rows for batch in self._inputs]
        touched: dict[Row, None] = {(): None} if self._global and not self._shown else {}
        values: Iterable[tuple[Any, ...]] = zip(*columns, strict=True) if columns else repeat(())
        for key, copies, cells in zip(map(self._key, rows), change.values(), values, strict=False):
            touched[key] = None
            self._group(key).add(cells, copies)
        out: Bag = {}
        for key in touched:
            self._show(out, key)
        return out

    def _group(self, key: Row) -> "_Group":
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = _Group(self._aggregates)
        return found

    def _show(self, out: Bag, key: Row) -> None:
        old = self._shown.pop(key, None)
        if old is not None:
            add(out, old, -1)
        group = self._group(key)
        if not group.size and not self._global:
            del self._groups[key]
            return
        if self._effort is not None:
            self._effort.spend(group.cost)
        new = self._shown[key] = key + group.results()
        add(out, new, 1)


class _Group:
    """One group: how many rows it has, and its accumulators."""

    def __init__(self, aggregates: Sequence[Aggregate]) -> None:
        self.size = 0
        self._accumulators: list[Accumulator] = [accumulator(aggregate) for aggregate in aggregates]
        self._costly = [each for each in self._accumulators if each.costly]

    @property
    def cost(self) -> int:
        """How many values are gone through for the results, beside one of each aggregate."""
        return 1 + sum(each.cost for each in self._costly)

    def add(self, values: Sequence[Any], copies: int) -> None:
        self.size += copies
        for accumulate, value in zip(self._accumulators, values, strict=True):
            accumulate.add(value, copies)

    def results(self) -> Row:
        return tuple([accumulate.result() for accumulate in self._accumulators])
