"""Replay: what was kept goes to the queries of a service that goes on, each from the item on that it began with."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from streamgauge.formats.batches import ElementBatch
from streamgauge.servers.durable.segments import KeptItem, since
from streamgauge.servers.queries.durability import WALL
from streamgauge.servers.queries.worker import QueryWorker

StartedWorker: TypeAlias = tuple[int, QueryWorker]
"""The number of the first item that a worker is to see, and the worker."""


def replay(history: Iterable[tuple[int, KeptItem]], works: Sequence[StartedWorker]) -> None:
    """Each item is read once; elements that follow each other are handed on together, up to those not answered yet."""
    for number, kept in history:
        if isinstance(kept, ElementBatch):
            for start, work in works:
                if kept.stream in work.streams:
                    work.hear(kept.stream, list(since(start, number, kept, work.processed)))
        else:
            _hand_on(number, kept, works)


def _hand_on(number: int, kept: KeptItem, works: Sequence[StartedWorker]) -> None:
    assert not isinstance(kept, ElementBatch)
    stream, item = kept
    for start, work in works:
        if number >= start and stream == WALL and work.question.wall:
            work.pass_time(item.time, number)
        elif number >= start and stream in work.streams:
            work.hear(stream, [(number, item)])
