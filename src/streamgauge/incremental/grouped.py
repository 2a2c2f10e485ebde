"""GROUP BY: the groups of a query's solutions, each with its aggregates."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from streamgauge.incremental.aggregates import Accumulator, accumulator
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.conditions import Batch
from streamgauge.incremental.crossovers import BY_NUMBERS, FEW_ROWS
from streamgauge.incremental.operators import Bag, Operator, Stateful, add, row_picker
from streamgauge.model.algebra import Aggregate, Var
from streamgauge.model.terms import Row


class Grouped(Stateful):
    """GROUP BY with aggregates; without keys there is one group, even without solutions.

    ``inputs`` holds the argument of each aggregate, ``None`` for COUNT(*).
    """

    def __init__(
        self,
        inner: Operator,
        keys: tuple[str, ...],
        aggregates: Sequence[tuple[str, Aggregate]],
        inputs: Sequence[Batch | None],
        effort: EvaluationBudget,
    ) -> None:
        self.variables = (*keys, *(name for name, _ in aggregates))
        bound = {name for name, aggregate in aggregates if _always_bound(aggregate, inner.certain, bool(keys))}
        self.certain = inner.certain & frozenset(keys) | bound
        self._inner, self._inputs = inner, inputs
        # Without a bound, the cost is not even computed.
        self._effort = effort if effort.bounded else None
        self._aggregates = [aggregate for _, aggregate in aggregates]
        self._keys = row_picker(inner.variables, keys)
        self._groups: dict[Row, _Group] = {}
        self._shown: dict[Row, Row] = {}
        self._global = not keys

    @property
    def rows(self) -> Iterable[Row]:
        """The row of each group as last shown."""
        return self._shown.values()

    @property
    def empty(self) -> bool:
        """Whether no solution has reached the aggregation (after a pull)."""
        return not any(group.size for group in self._groups.values())

    def pull(self) -> Bag:
        """Replace the rows of the groups that changed."""
        change = self._inner.pull()
        rows = list(change)
        columns = [batch.values(rows) if batch else rows for batch in self._inputs]
        # Without GROUP BY there is a row over no solutions too, which the first pull shows.
        touched: dict[Row, None] = {(): None} if self._global and not self._shown else {}
        # With COUNT(*) alone there are no columns, and zip() of none would end the loop before the first row.
        touched |= dict.fromkeys(self._add(change, columns))
        out: Bag = {}
        # Each group is shown once per pull, however many of its rows changed: results that scan all values
        # (GROUP_CONCAT) would cost the product otherwise.
        for key in touched:
            self._show(out, key)
        return out

    def _add(self, change: Bag, columns: Sequence[Sequence[Any]]) -> Iterable[Row]:
        """Add rows with the values of each aggregate to their groups; returns the keys of these."""
        if len(change) >= BY_NUMBERS and (keys := self._add_together(change, columns)):
            return keys
        keys = list(self._keys(change))
        values: Iterable[tuple[Any, ...]] = zip(*columns, strict=True) if columns else repeat(())
        for key, copies, cells in zip(keys, change.values(), values, strict=False):
            self._group(key).add(cells, copies)
        return keys

    def _add_together(self, change: Bag, columns: Sequence[Sequence[Any]]) -> list[Row]:
        """Add many rows in columns; if they are of so many groups that this is slower, none is added or returned."""
        from streamgauge.incremental.group_values import GroupedRows

        rows = GroupedRows(self._keys(change), change.values(), len(change))
        if len(change) < FEW_ROWS * len(rows.keys):
            return []
        groups = list(map(self._group, rows.keys))
        for group, size in zip(groups, rows.sizes(), strict=True):
            group.size += size
        for at, column in enumerate(columns):
            for group, values in zip(groups, rows.values(column), strict=True):
                group.accumulators[at].add_all(values)
        return rows.keys

    def _group(self, key: Row) -> "_Group":
        entry = self._groups.get(key)
        if entry is None:
            entry = self._groups[key] = _Group(self._aggregates)
        return entry

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


def _always_bound(aggregate: Aggregate, certain: frozenset[str], keyed: bool) -> bool:
    """Whether an aggregate is bound in every row: COUNT, or MIN, MAX or SAMPLE of a bound variable per key."""
    if aggregate.function == "COUNT":
        return True
    argument = aggregate.argument
    picks = aggregate.function in ("MIN", "MAX", "SAMPLE")
    # Without GROUP BY the group may be empty, and then MIN, MAX and SAMPLE are unbound.
    return keyed and picks and isinstance(argument, Var) and argument.name in certain


class _Group:
    """One group: its number of rows, and its accumulators."""

    def __init__(self, aggregates: Sequence[Aggregate]) -> None:
        self.size = 0
        self.accumulators: list[Accumulator] = [accumulator(aggregate) for aggregate in aggregates]
        self._costly = [accumulator for accumulator in self.accumulators if accumulator.costly]

    @property
    def cost(self) -> int:
        """The number of values that the results scan, plus one."""
        return 1 + sum(accumulator_.cost for accumulator_ in self._costly)

    def add(self, values: Sequence[Any], copies: int) -> None:
        self.size += copies
        for accumulate, value in zip(self.accumulators, values, strict=True):
            accumulate.add(value, copies)

    def results(self) -> Row:
        return tuple([accumulate.result() for accumulate in self.accumulators])
