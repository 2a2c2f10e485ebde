"""How much standing facts and answers keep, told without going through it: by the sizes of tables."""

from collections.abc import Iterable
from itertools import islice
from sys import getsizeof
from typing import Final

from streamgauge.incremental.facts.facts import Facts
from streamgauge.incremental.facts.pool import Standing
from streamgauge.incremental.operators import Index

ROW: Final = 96
"""About how many bytes a row takes of which the terms are kept elsewhere: a tuple of a few, and its count."""

SOME: Final = 32
"""Bags of an index that are looked at for its size."""

_PAIRS: Final = getsizeof(("", ""))


def terms(facts: Facts) -> int:
    """How many different terms are subjects and objects of facts; CPython interns each of them.

    Goes through all of them, some milliseconds for 100,000 facts; facts may change meanwhile.
    """
    found: set[str] = set()
    for of in list(facts.properties.values()):
        found.update(of.out)
        if of.into is None:
            found.update(*tuple(of.out.values()))
        else:
            found.update(of.into)
    for each in list(facts.classes.values()):
        found.update(each.members)
    return len(found)


def fact_bytes(facts: Facts) -> int:
    """About how many bytes the tables of facts take, without the terms in them."""
    found = 0
    for of in list(facts.properties.values()):
        tables = (of.out, of.into) if of.into is not None else (of.out,)
        found += sum(getsizeof(each) + _PAIRS * len(each) for each in tables) + getsizeof(of.states)
    return found + sum(getsizeof(each.members) for each in list(facts.classes.values()))


def answer_bytes(asked: Iterable[Standing]) -> int:
    """About how many bytes answers take, and the rows that operators remember for them, without terms."""
    found = 0
    for each in asked:
        tables = (each.kept.solutions(), *each.kept.tables())
        for table in tables:
            found += _index_bytes(table) if isinstance(table, Index) else getsizeof(table) + ROW * len(table)
    return found


def _index_bytes(index: Index) -> int:
    """By some of its bags."""
    some = list(islice(index.bags.values(), SOME))
    each = sum(getsizeof(bag) + ROW * len(bag) for bag in some) // (len(some) or 1)
    return getsizeof(index.bags) + each * len(index.bags)
