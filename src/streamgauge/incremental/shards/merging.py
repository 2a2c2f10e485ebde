"""Answers of shards merged to those of the query: rows for one instant together, in the order of instants."""

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, groupby
from operator import attrgetter
from typing import TypeAlias

from streamgauge.formats.lines import encode_answers
from streamgauge.incremental.query_forms import columns
from streamgauge.incremental.shards.messages import PartAnswer, rows_of
from streamgauge.model.answer import Answer
from streamgauge.model.engine import Emit
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Grain

Deliver: TypeAlias = Callable[[PartAnswer], None]


class AnswerMerger:
    """The answers of all shards to one query; an instant is complete when all shards have ended its tick.

    Every shard has the same ticks, and reports an instant in the same one.
    """

    def __init__(self, shards: int, deliver: Deliver) -> None:
        self._deliver = deliver
        self._ended: list[deque[list[PartAnswer]]] = [deque() for _ in range(shards)]
        self._open: list[list[PartAnswer]] = [[] for _ in range(shards)]
        self._lock = threading.Lock()
        self.ticks = 0

    def add(self, shard: int, answer: PartAnswer) -> None:
        """An answer of a shard in its tick."""
        self._open[shard].append(answer)

    def end_tick(self, shard: int) -> bool:
        """A shard has ended its tick: what is complete is delivered; whether anything was."""
        with self._lock:
            self._ended[shard].append(self._open[shard])
            self._open[shard] = []
            before = self.ticks
            while all(self._ended):
                self._merge([each.popleft() for each in self._ended])
                self.ticks += 1
            return self.ticks > before

    def _merge(self, said: Sequence[list[PartAnswer]]) -> None:
        instant = attrgetter("instant")
        for _, group in groupby(sorted(chain.from_iterable(said), key=instant), key=instant):
            self._deliver(_joined(list(group)))


def _joined(parts: Sequence[PartAnswer]) -> PartAnswer:
    first = parts[0]
    if len(parts) == 1:
        return first
    added = b",".join([each.added for each in parts if each.added])
    return replace(first, added=added, removed=b",".join([each.removed for each in parts if each.removed]))


class AnswerWriter:
    """Hands answers on: as values to what takes those of each query, or as lines of the pipe."""

    def __init__(self, asked: Sequence[tuple[ContinuousQuery, Grain, Emit]]) -> None:
        self._variables = [columns(query.form) for query, _, _ in asked]
        self._grains = [grain for _, grain, _ in asked]
        self._emits = [emit for _, _, emit in asked]
        self._lock = threading.Lock()
        self.lines: Callable[[bytes], None] | None = None

    def deliver(self, part: PartAnswer) -> None:
        """An answer of all shards, by each row where its grain is the row."""
        by_row = self._grains[part.query] is Grain.ROW
        with self._lock:
            if self.lines is not None and not by_row:
                self.lines(self._line(part))
                return
            whole = self._answer(part)
            answers = _by_row(whole) if by_row and (whole.added or whole.removed) else [whole]
            if self.lines is not None:
                self.lines(encode_answers(answers))
                return
            for answer in answers:
                self._emits[part.query](answer)

    def _answer(self, part: PartAnswer) -> Answer:
        added, removed = rows_of(part.added), rows_of(part.removed)
        return Answer(self._variables[part.query], added, removed, part.kind, part.instant, part.scope)

    def _line(self, part: PartAnswer) -> bytes:
        head = b'{"vars":%b,"add":[%b]' % (
            json.dumps(self._variables[part.query], separators=(",", ":")).encode(),
            part.added,
        )
        removed = b',"remove":[%b]' % part.removed if part.removed else b""
        kind = b"" if part.kind == "solutions" else b',"kind":"%b"' % part.kind.encode()
        return b'%b%b%b,"instant":%d,"scope":[%d,%d]}\n' % (head, removed, kind, part.instant, *part.scope)


def _by_row(answer: Answer) -> list[Answer]:
    """One answer for each row that came, and then for each that went."""
    came = [replace(answer, added=(row,), removed=()) for row in answer.added]
    return came + [replace(answer, added=(), removed=(row,)) for row in answer.removed]
