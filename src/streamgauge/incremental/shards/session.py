"""A session of queries over several processes: elements go to the shards that need them, answers are merged."""

import json
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from streamgauge.formats.batches import BatchWriter, Columns, advance_columns
from streamgauge.formats.lines import encode_answers
from streamgauge.formats.pipe import PipeError
from streamgauge.formats.stream import ROWS
from streamgauge.incremental.query_forms import columns
from streamgauge.incremental.shards.messages import (
    PartAnswer,
    Pieces,
    ShardTask,
    Word,
    answer_of,
    batch_message,
    late_of,
    message,
    rows_of,
    task_message,
)
from streamgauge.incremental.shards.plan import ShardingPlan
from streamgauge.incremental.shards.processes import ShardProcess, await_ready
from streamgauge.incremental.shards.routes import ShardRouter, part_static
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.engine import Emit
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Grain, Semantics
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError, StreamNameError

if TYPE_CHECKING:
    from streamgauge.formats.batches import ElementBatch


Deliver: TypeAlias = Callable[[PartAnswer], None]


class AnswerMerger:
    """Merges the answers of all shards to one query; a tick is complete once all shards have ended it.

    All shards have the same ticks, and report an instant in the same tick.
    """

    def __init__(self, shards: int, deliver: Deliver) -> None:
        self._deliver = deliver
        self._ended: list[deque[list[PartAnswer]]] = [deque() for _ in range(shards)]
        self._open: list[list[PartAnswer]] = [[] for _ in range(shards)]
        self._lock = threading.Lock()
        self.ticks = 0

    def add(self, shard: int, answer: PartAnswer) -> None:
        """Add an answer of a shard in its current tick."""
        self._open[shard].append(answer)

    def end_tick(self, shard: int) -> bool:
        """End the current tick of a shard, and deliver complete ticks; whether there were any."""
        with self._lock:
            self._ended[shard].append(self._open[shard])
            self._open[shard] = []
            before = self.ticks
            # A tick is merged when the slowest shard has ended it.
            while all(self._ended):
                self._merge([queue.popleft() for queue in self._ended])
                self.ticks += 1
            return self.ticks > before

    def _merge(self, answers: Sequence[list[PartAnswer]]) -> None:
        # The sort is stable: answers of one instant stay in the order of shards.
        instant = attrgetter("instant")
        for _, group in groupby(sorted(chain.from_iterable(answers), key=instant), key=instant):
            self._deliver(_joined(list(group)))


def _joined(parts: Sequence[PartAnswer]) -> PartAnswer:
    first = parts[0]
    if len(parts) == 1:
        return first
    # Rows arrive as JSON texts, and are joined without being parsed: ``["a"]`` and ``["b"]`` become ``["a"],["b"]``.
    added = b",".join([part.added for part in parts if part.added])
    return replace(first, added=added, removed=b",".join([part.removed for part in parts if part.removed]))


class AnswerWriter:
    """Delivers answers: as values to the receiver of each query, or as lines of the pipe."""

    def __init__(self, queries: Sequence[tuple[ContinuousQuery, Grain, Emit]]) -> None:
        self._variables = [columns(query.form) for query, _, _ in queries]
        self._grains = [grain for _, grain, _ in queries]
        self._emits = [emit for _, _, emit in queries]
        self._lock = threading.Lock()
        self.lines: Callable[[bytes], None] | None = None

    def deliver(self, part: PartAnswer) -> None:
        """Deliver a merged answer, row by row if that is the query's grain."""
        by_row = self._grains[part.query] is Grain.ROW
        with self._lock:
            # The fast path: an answer of a whole report is passed on as the bytes that the shard has written.
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
    """One answer per added row, then one per removed row."""
    came = [replace(answer, added=(row,), removed=()) for row in answer.added]
    return came + [replace(answer, added=(), removed=(row,)) for row in answer.removed]


FLUSH_S = 0.05
"""Seconds that a thread reading answers waits for the lock to send elements."""

_ERRORS = {error.__name__: error for error in (OutOfOrderError, RefusedError, StreamNameError)}


class ShardGroup:
    """The processes of a plan, with their answers and failure; ``moved`` is called when a tick is complete."""

    def __init__(self, tasks: Sequence[ShardTask], merger: AnswerMerger | None, writer: AnswerWriter) -> None:
        self._merger, self._writer = merger, writer
        shards = len(tasks)
        self.late, self._lates = 0, [0] * shards
        self.failure: Exception | None = None
        self.moved: Callable[[], object] = lambda: None
        self.tell: Callable[[str], None] | None = None
        self._closed = [False] * shards
        self._ready = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._ticks = [0] * shards
        self.processes: list[ShardProcess] = []
        try:
            for task in tasks:
                self.processes.append(ShardProcess(task.number, self._receive, self._ended))
                self.processes[-1].send(task_message(task))
            late = await_ready(self._ready, shards)
            if late and self.failure is None:
                self.failure = PipeError(late)
            if self.failure is not None:
                raise self.failure
        except BaseException:
            self.kill()
            raise

    @property
    def ticks(self) -> int:
        """The number of complete ticks."""
        return min(self._ticks)

    def kill(self) -> None:
        """Kill all worker processes, and wait for their exit."""
        # An output that ends now is no failure: see ``_ended``.
        self._closed = [True] * len(self._closed)
        for process in self.processes:
            process.process.kill()
        for process in self.processes:
            process.end(kill=True)

    def close(self) -> None:
        """Close the input, then wait for the last answers and for all processes to exit."""
        for process in self.processes:
            process.send(message(Word.CLOSE))
        for process in self.processes:
            process.end(kill=isinstance(self.failure, PipeError))

    def _receive(self, shard: int, word: Word, body: bytes) -> None:
        match word:
            case Word.ANSWER:
                self._answer(shard, body)
            case Word.TICKED:
                self._lates[shard] = late_of(body)
                self.late = max(self._lates)
                if self._merger is not None:
                    self._merger.end_tick(shard)
                self._ticks[shard] += 1
                self.moved()
            case Word.READY:
                self._ready.release()
            case Word.CLOSED:
                self._closed[shard] = True
            case Word.FAILED:
                self._closed[shard] = True
                name, _, sentence = body.decode().partition("\n")
                self._fail(_error(name, sentence, self._named(shard)))

    def _answer(self, shard: int, body: bytes) -> None:
        answer = answer_of(body)
        if self._merger is None:
            # This undoes ``_dealt``: of 5 queries on 2 shards, shard 1 has the queries 1 and 3, which it calls 0 and
            # 1: query 1 of shard 1 is 1 * 2 + 1 = 3.
            self._writer.deliver(replace(answer, query=answer.query * len(self._closed) + shard))
        else:
            self._merger.add(shard, answer)

    def _named(self, shard: int) -> str:
        return f"process {shard + 1} of {len(self._closed)}"

    def _ended(self, shard: int, how: str) -> None:
        if not self._closed[shard]:
            self._fail(PipeError(f"{self._named(shard)} of the query {how} before its input did"))

    def _fail(self, error: Exception) -> None:
        """Keep the first error; if a process is gone, no answer can be complete, so the others are killed too."""
        with self._lock:
            # Processes that die with the first one fail too: their errors would only hide its sentence.
            first, self.failure = self.failure is None, self.failure or error
        # Whoever still waits for shards to be ready finds the failure rather than wait until the time limit.
        self._ready.release(len(self._closed))
        for process in self.processes if isinstance(error, PipeError) else ():
            process.process.kill()
        if first and self.tell is not None:
            self.tell(str(error))


def _error(name: str, sentence: str, shard: str) -> Exception:
    kind = _ERRORS.get(name)
    if kind is None:
        return PipeError(f"{shard} of the query failed: {name}: {sentence}")
    # Not by the constructor: that of StreamNameError takes names, but here the sentence is complete.
    error = kind.__new__(kind)
    error.args = (sentence,)
    return error


class ShardedSession:
    """Queries answered by several processes; answers are emitted in order, by separate threads.

    ``sharding`` describes the plan, ``late`` counts late elements. Single elements are sent at once while no shard is
    busy, else in batches. If a process has ended, the next call raises PipeError.
    """

    def __init__(self, queries: Sequence[tuple[ContinuousQuery, Semantics, Emit]], plan: ShardingPlan) -> None:
        self.sharding = plan.sentence
        merged = plan.kind != "queries"
        self._writer = AnswerWriter([(query, _grain(semantics, merged), emit) for query, semantics, emit in queries])
        self._router = None
        if plan.kind == "variable":
            self._router = ShardRouter(plan, queries[0][0].streams, queries[0][1])
        merger = AnswerMerger(plan.shards, self._writer.deliver) if merged else None
        tasks = _parted(queries[0], plan) if merged else _dealt(queries, plan)
        self._sending = threading.RLock()
        self._waiting: list[StreamElement] = []
        self._size = self._sent = 0
        self._elements = BatchWriter()
        self._over = False
        self._group = ShardGroup(tasks, merger, self._writer)
        # The threads live as long as the session's processes. If they held the session, it would never be collected,
        # and the finalizer below would never end the processes.
        self._group.moved = _weakly(self)
        self._finalizer = weakref.finalize(self, self._group.kill)

    @property
    def late(self) -> int:
        """The number of elements that arrived too late to be processed."""
        return self._group.late

    @property
    def processes(self) -> tuple[int, ...]:
        """The process ids of the workers."""
        return tuple(process.process.pid for process in self._group.processes)

    def give_lines(self, write: Callable[[bytes], None]) -> None:
        """Write answers as lines of the pipe (docs/pipe.md) instead of emitting them, from separate threads."""
        self._writer.lines = write

    def on_failure(self, tell: Callable[[str], None]) -> None:
        """Call ``tell`` with a sentence, from a separate thread, as soon as a process ends before the input."""
        self._group.tell = tell

    def push(self, element: StreamElement) -> None:
        """Queue an element; send the queue if it is full or the workers are idle."""
        with self._guarded():
            self._waiting.append(element)
            self._size += len(element.added) + 1
            # An idle worker gets the element at once, for the least delay. While workers are busy elements wait, and
            # go out together as a batch, which costs less for each.
            if self._size >= ROWS or self._idle:
                self._flush()

    def push_batch(self, batch: "ElementBatch") -> None:
        """Process a batch of elements in columns."""
        with self._guarded():
            self._flush()
            self._send(self._elements.columns_of(batch))

    def push_columns(self, columns: Columns) -> None:
        """Process elements and advances as Arrow columns; a session gets either all elements this way or none."""
        with self._guarded():
            self._send(columns)

    def advance(self, time: int) -> None:
        """Advance time: no element before ``time`` (ms) will follow."""
        with self._guarded():
            self._flush()
            self._send(advance_columns(time))

    def close(self) -> None:
        """End the input, wait for the last answers, and end all processes."""
        with self._sending:
            if self._over:
                return
            if self._group.failure is None:
                self._flush()
            self._end()
        if self._router is not None:
            self._router.admission.close()

    def _end(self) -> None:
        """End all processes; raises the session's failure."""
        self._over = True
        self._group.close()
        self._finalizer.detach()
        if self._group.failure is not None:
            raise self._group.failure

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Serialise callers; a failure, before or during the call, ends the session."""
        with self._sending:
            if self._over:
                raise PipeError("the session is closed")
            if self._group.failure is None:
                yield
            if self._group.failure is not None:
                self._end()

    @property
    def _idle(self) -> bool:
        return self._group.ticks >= self._sent

    def _flush(self) -> None:
        """Send the queued elements as columns."""
        if self._waiting:
            inputs, self._waiting, self._size = self._waiting, [], 0
            self._send(self._elements.columns(inputs))

    def _flush_when_idle(self) -> None:
        """Send waiting elements if all shards are idle."""
        # The caller of ``push`` may hold the lock and wait for room in a queue, which this very thread makes by
        # reading answers. An unbounded wait would be a deadlock.
        if self._waiting and self._idle and self._sending.acquire(timeout=FLUSH_S):
            try:
                if self._idle and self._group.failure is None and not self._over:
                    self._flush()
            finally:
                self._sending.release()

    def _send(self, columns: Columns) -> None:
        """Send a batch, whole or partitioned; an error in its elements becomes the session's failure."""
        router, processes = self._router, self._group.processes
        if router is None:
            whole = batch_message(columns)
            messages: Sequence[Pieces] = [whole] * len(processes)
        else:
            messages = [batch_message(part) for part in router.route(columns) or ()]
        if messages:
            self._sent += 1
            for process, pieces in zip(processes, messages, strict=True):
                process.send(pieces)
        if router is not None and router.error is not None:
            self._group.failure = router.error


def _grain(semantics: Semantics, merged: bool) -> Grain:
    """The grain in which answers of shards are handed on: where they are merged, shards give whole reports."""
    return semantics.grain if merged else Grain.REPORT


def _parted(request: tuple[ContinuousQuery, Semantics, Emit], plan: ShardingPlan) -> list[ShardTask]:
    """The query of each shard, with its own static data; reports are whole until they are merged."""
    query, semantics = request[0], replace(request[1], grain=Grain.REPORT)
    if plan.kind == "windows":
        return [ShardTask(shard, ((query, semantics),), plan) for shard in range(plan.shards)]
    parts = part_static(query.static, plan)
    return [ShardTask(shard, ((query.with_static(tuple(part)), semantics),)) for shard, part in enumerate(parts)]


def _dealt(queries: Sequence[tuple[ContinuousQuery, Semantics, Emit]], plan: ShardingPlan) -> list[ShardTask]:
    """The queries of each shard, one after the other."""
    pairs = [(query, semantics) for query, semantics, _ in queries]
    return [ShardTask(shard, tuple(pairs[shard :: plan.shards])) for shard in range(plan.shards)]


def _weakly(session: ShardedSession) -> Callable[[], object]:
    """A call of the session by threads that do not keep it alive."""
    known = weakref.ref(session)

    def moved() -> None:
        if (session := known()) is not None:
            session._flush_when_idle()

    return moved
