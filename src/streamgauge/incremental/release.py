"""Freeing memory in chunks, between which other threads run.

CPython holds the GIL while it frees an object and everything that only this object references: 0.1 s and more for the
rows of an answer. A table that is emptied before it is freed blocks others only for a thread switch.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from traceback import walk_tb
from typing import Any, Final

from streamgauge.incremental.operators import Index

PIECE: Final = 1_000
"""Rows freed at once."""


def let_go(tables: Iterable[object]) -> None:
    """Empty tables that are no longer used: dicts of rows, dicts of dicts of rows, and indexes."""
    for table in tables:
        if isinstance(table, Index):
            let_go((table.single, *table.parts()))
        elif isinstance(table, dict):
            _empty(table)


def _empty(table: dict[Any, Any]) -> None:
    """Move the rows to a list and free it from its end in chunks, which is far cheaper than popping one by one."""
    values: list[Any] = []
    # One value tells the kind of table: bags have numbers, tables of bags have dicts.
    if not all(isinstance(value, int) for value in islice(table.values(), 1)):
        values += table.values()
        let_go([value for value in values if isinstance(value, dict) and len(value) > PIECE])
    # Copying references is fast and frees nothing; ``clear`` then drops only references that the list still holds.
    rows = list(table)
    table.clear()
    while rows:
        del rows[-PIECE:], values[-PIECE:]


def bags_in(error: BaseException) -> Iterator[dict[Any, Any]]:
    """The large dicts among the local variables of the frames that an error ended."""
    for frame, _ in walk_tb(error.__traceback__):
        yield from (local for local in frame.f_locals.values() if type(local) is dict and len(local) > PIECE)
