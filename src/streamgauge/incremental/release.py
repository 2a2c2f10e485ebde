"""Memory that is let go of in pieces, between which other threads run.

CPython holds its lock while it frees one object with all that only this object held: 0.1 s and more for the rows of
an answer. A table that is emptied row by row before it is freed holds others up for no longer than a switch of threads.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from traceback import walk_tb
from typing import Any, Final

from streamgauge.incremental.operators import Index

PIECE: Final = 1_000
"""Rows that are freed at once."""


def let_go(tables: Iterable[object]) -> None:
    """Empty tables, which nobody reads any more: dicts of rows, or of dicts of rows, and indexes."""
    for table in tables:
        if isinstance(table, Index):
            let_go((table.single, *table.parts()))
        elif isinstance(table, dict):
            _empty(table)


def _empty(table: dict[Any, Any]) -> None:
    """Take the rows into a list, from whose end pieces are freed: far less work than to take them one by one."""
    values: list[Any] = []
    if not all(isinstance(value, int) for value in islice(table.values(), 1)):
        values += table.values()
        let_go([value for value in values if isinstance(value, dict) and len(value) > PIECE])
    rows = list(table)
    table.clear()
    while rows:
        del rows[-PIECE:], values[-PIECE:]


def bags_in(error: BaseException) -> Iterator[dict[Any, Any]]:
    """The large tables that calls were making which an error ended: local variables of theirs, from the caller on."""
    for frame, _ in walk_tb(error.__traceback__):
        yield from (local for local in frame.f_locals.values() if type(local) is dict and len(local) > PIECE)
