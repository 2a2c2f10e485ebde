"""Bags of rows one after the other, kept as what changes from each to the next."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Row

Net = Mapping[Row, int]
"""How many more copies of a row a bag has than the one before (fewer: below 0); the first one's is the empty bag."""


@dataclass(frozen=True, slots=True)
class ContentChange:
    """The change at one evaluated report; ``content`` counts the triples that its windows hold."""

    due: DueReport
    content: int
    net: Net


ExpectChanges = Callable[[ContinuousQuery, Semantics, int, int], tuple[ContentChange, ...]]
"""(query, semantics, advanced_to, t0) to every evaluated report of one stream, sent or not, as changes."""


@dataclass(frozen=True, slots=True)
class Agreed:
    """A report that is due by some version: changes of what all versions hold, and of what only some do (doubtful).

    ``silent`` when by some version it is not due at all.
    """

    due: DueReport
    content: int
    certain: Net
    doubtful: Net
    silent: bool


def as_sets(changes: Iterable[ContentChange]) -> Iterator[ContentChange]:
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


def agreed(versions: Sequence[Sequence[ContentChange]], semantics: Semantics) -> Iterator[Agreed]:
    """The reports of an Rstream, from versions of the same evaluated reports (own bounds, looser, tighter).

    A report whose bag is empty is sent only where the semantics notifies of it.
    """
    held: list[Counter[Row]] = [Counter() for _ in versions]
    sizes = [0] * len(versions)
    told: tuple[Counter[Row], Counter[Row]] = Counter(), Counter()
    touched: dict[Row, None] = {}
    for changes in zip(*versions, strict=True):
        for place, change in enumerate(changes):
            held[place].update(change.net)
            sizes[place] += sum(change.net.values())
            touched.update(dict.fromkeys(change.net))
        sent = [bool(size) or semantics.notify_empty for size in sizes]
        if any(sent):
            certain, doubtful = _moved(touched, held, told)
            yield Agreed(changes[0].due, changes[0].content, certain, doubtful, not all(sent))
            touched = {}


def _moved(
    touched: Iterable[Row], held: Sequence[Counter[Row]], told: tuple[Counter[Row], Counter[Row]]
) -> tuple[Net, Net]:
    """How the certain and the doubtful bag differ from those told last; they are told now."""
    certain, doubtful = dict[Row, int](), dict[Row, int]()
    for row in touched:
        counts = [bag[row] for bag in held]
        for net, bag, now in ((certain, told[0], min(counts)), (doubtful, told[1], max(counts) - min(counts))):
            if now != bag[row]:
                net[row] = now - bag[row]
                bag[row] = now
    return certain, doubtful


def said(answers: Sequence[Answer]) -> Iterator[Net]:
    """The changes from answer to answer: in whole bags, or as they send it when some answer removes rows.

    A row that is removed but does not hold is owed: its next addition adds nothing.
    """
    if any(answer.removed for answer in answers):
        return _sent_changes(answers)
    return _differences(answer.added for answer in answers)


def _differences(bags: Iterable[Sequence[Row]]) -> Iterator[Net]:
    before: Counter[Row] = Counter()
    for bag in bags:
        now = Counter(bag)
        net = {row: count - before[row] for row, count in now.items() if count != before[row]}
        net.update((row, -count) for row, count in before.items() if row not in now)
        yield net
        before = now


def _sent_changes(answers: Iterable[Answer]) -> Iterator[Net]:
    held: Counter[Row] = Counter()
    for answer in answers:
        moved = Counter(answer.added)
        moved.subtract(answer.removed)
        net = {}
        for row, count in moved.items():
            before = max(held[row], 0)
            held[row] += count
            if now := max(held[row], 0) - before:
                net[row] = now
        yield net
