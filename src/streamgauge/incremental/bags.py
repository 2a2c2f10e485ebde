"""Signed bags of rows: row -> multiplicity, negative for what goes; no row has 0."""

from collections.abc import Iterable, Mapping

from streamgauge.model.terms import Row

Bag = dict[Row, int]
Delta = Mapping[Row, int]
"""The exact change of a bag of solutions."""


def add(bag: Bag, row: Row, count: int) -> None:
    """Add ``count`` (of either sign) copies of a row in place."""
    now = bag.get(row, 0) + count
    if now:
        bag[row] = now
    else:
        bag.pop(row, None)


def add_all(bag: Bag, delta: Mapping[Row, int]) -> None:
    """Add a whole change in place."""
    if not bag:
        bag.update(delta)
        return
    get = bag.get
    for row, count in delta.items():
        now = get(row, 0) + count
        if now:
            bag[row] = now
        else:
            del bag[row]


def collect(rows: Iterable[tuple[Row, int]]) -> Bag:
    """The bag of these signed rows."""
    bag: Bag = {}
    for row, count in rows:
        add(bag, row, count)
    return bag


def difference(after: Mapping[Row, int], before: Mapping[Row, int]) -> Bag:
    """What must be added to ``before`` to have ``after``."""
    change = dict(after)
    add_all(change, {row: -count for row, count in before.items()})
    return change
