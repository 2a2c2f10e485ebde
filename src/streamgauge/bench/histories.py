"""Bags of rows one after the other, kept as what changes from each to the next."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Row

Net = Mapping[Row, int]
"""How many more copies of a row a bag has than the one before (fewer: below 0); equal counts are left out."""


@dataclass(frozen=True, slots=True)
class Change:
    """What changes at one due report; ``content`` counts the triples that its windows hold."""

    due: DueReport
    content: int
    net: Net


@dataclass(frozen=True, slots=True)
class ExpectedChanges:
    """The due reports of an Rstream: the bag of each over ``variables``, as its change from the one before."""

    variables: tuple[str, ...]
    reports: tuple[Change, ...]


def as_sets(changes: Iterable[Change]) -> Iterator[Change]:
    """The changes of the bags' sets: a row comes with its first copy and goes with its last."""
    held: Counter[Row] = Counter()
    for change in changes:
        net = {}
        for row, count in change.net.items():
            before = held[row]
            held[row] += count
            if bool(before) != bool(held[row]):
                net[row] = 1 if held[row] else -1
            if not held[row]:
                del held[row]
        yield replace(change, net=net)


def sent_wholes(changes: Iterable[Change], semantics: Semantics) -> Iterator[Change]:
    """The changes between the reports that are sent: one whose bag is empty only where the semantics notifies of it."""
    size = 0
    passed: Counter[Row] = Counter()
    for change in changes:
        size += sum(change.net.values())
        sent = size or semantics.notify_empty
        if passed or not sent:
            passed.update(change.net)
        if sent:
            yield replace(change, net={row: n for row, n in passed.items() if n}) if passed else change
            passed.clear()


def differences(bags: Iterable[Sequence[Row]]) -> Iterator[Net]:
    """Whole bags as changes."""
    before: Counter[Row] = Counter()
    for bag in bags:
        now = Counter(bag)
        net = {row: count - before.get(row, 0) for row, count in now.items() if count != before.get(row, 0)}
        net.update((row, -count) for row, count in before.items() if row not in now)
        yield net
        before = now
