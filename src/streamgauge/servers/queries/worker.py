"""Registered queries and their workers: input waits in order, a thread feeds one session for all that ask the same."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from logging import ERROR, INFO, getLogger
from threading import Condition, Thread, current_thread, get_ident
from time import thread_time
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from streamgauge.formats.batches import ElementBatch, Taken
from streamgauge.formats.lines import Advance, Input, encode_answer
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.answer import Answer
from streamgauge.model.engine import Engine
from streamgauge.model.logs import fields
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.semantics.jumps import TimeJumpError, refuse_jump
from streamgauge.servers.http.deadlines import DEADLINES, DeadlineError, Interruption, Watched
from streamgauge.servers.http.events import Answers, End
from streamgauge.servers.queries.limits import TRIPLE_BYTES, QueryLimitError, QueryLimits
from streamgauge.servers.queries.sessions import EngineSession, SessionQuery, as_declared, moved, restored, resumed

if TYPE_CHECKING:
    from streamgauge.incremental.evaluator import OperatorTree

_LOG = getLogger(__name__)


class WindowEstimate:
    """An estimate of how many triples the windows of a query hold."""

    def __init__(self, query: ContinuousQuery) -> None:
        kinds = [(window.window.kind, window.window.size) for window in query.windows]
        self._size = max((size for kind, size in kinds if kind == "time"), default=0)
        self._counted = sum(size for kind, size in kinds if kind == "count")
        self._landmark = any(kind == "landmark" for kind, _ in kinds)
        self._recent: deque[tuple[int, int]] = deque()
        self._within = self._all = 0

    @property
    def triples(self) -> int:
        """How many."""
        return self._all if self._landmark else self._within + min(self._counted, self._all)

    def take(self, time: int, triples: int) -> None:
        """So many triples enter, the last at a time (ms), what is out of every window leaves."""
        self._all += triples
        if self._size:
            self._within += triples
            self._recent.append((time, triples))
            while self._recent[0][0] < time - self._size:
                self._within -= self._recent.popleft()[1]


END_S = 10.0
"""How long a query that is ended may go on with what it is doing."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query as it was asked: its text, what it means, and how; ``output`` is the IRI of the stream of its answers.

    ``t0`` in ms where it was asked for; ``wall`` lets time pass by the service's clock. The text is not compared: equal
    questions have the same answers to the same input.
    """

    text: str = field(compare=False)
    query: ContinuousQuery
    semantics: Semantics
    engine: str
    output: str | None = None
    t0: int | None = None
    wall: bool = False


NumberedItem: TypeAlias = tuple[int, Taken]
"""An element or advance with its number in the journal, -1 where there is none; elements in columns with the last."""


class AnsweredQuery(Protocol):
    """A query that is answered."""

    answers: Answers[bytes]

    def take(self, answer: Answer, line: bytes) -> None:
        """An answer, also as a line of JSON; ValueError when it cannot be passed on."""

    def over(self, end: End) -> None:
        """No more answers will come."""


@dataclass(frozen=True, slots=True)
class Durability:
    """The beginning of a worker whose answers are kept, and its listeners.

    ``answered`` takes the number of an item with the answers that it caused; ``begun`` the t0 and ``since`` (ms) of the
    session. Those of a session before are in ``before``; its items up to the number ``processed`` were answered, and
    its reports before ``settled`` (ms) given. ``stated`` adds the gaps of streams to the line of an answer.
    """

    answered: Callable[["QueryWorker", int, Sequence[tuple[Answer, bytes]]], None]
    begun: Callable[["QueryWorker", int, int | None], None]
    before: tuple[int, int | None] | None = None
    processed: int = -1
    settled: int | None = None
    stated: Callable[[Iterable[str], bytes, Answer], bytes] = lambda _streams, line, _answer: line


class QueryWorker:
    """Answers one question for all that joined before its first input: each gets what it would get alone. Thread-safe.

    ``fault`` says why it ended by itself. Items have numbers, -1 where nothing is kept. ``cpu`` is the time (s) that
    its thread has computed.
    """

    def __init__(
        self, name: str, question: Question, engine: Engine, limits: QueryLimits, durability: Durability | None = None
    ) -> None:
        self.question, self.name = question, name
        self._durability = durability
        self._emitted: list[tuple[Answer, bytes]] = []
        self.elements = self.out_of_order = 0
        self.cpu = 0.0
        self.fault = ""
        self._limits, self._members, self._fresh = limits, tuple[AnsweredQuery, ...](), True
        self._streams: dict[str, int | None] = {window.stream: None for window in question.query.windows}
        self._greatest: int | None = None
        self._admitted = question.t0
        self._held = WindowEstimate(question.query)
        moves, semantics = moved if question.t0 is None else as_declared, question.semantics
        if durability is not None and durability.before is not None:
            moves, semantics = resumed, restored(semantics, *durability.before)
        queries = [SessionQuery(question.query, semantics, self._emit)]
        settled = None if durability is None else durability.settled
        self._session = EngineSession(engine, queries, moves, self._failed, settled=settled)
        self._waiting: deque[NumberedItem] = deque()
        self._changed = Condition()
        self._busy = self._ending = self._replays = False
        self._unbegun = durability is not None and durability.before is None
        self._watched: Watched | None = None
        self._thread = Thread(target=self._work, name=f"streamgauge-{name}", daemon=True)
        self._thread.start()

    @property
    def streams(self) -> tuple[str, ...]:
        """The IRIs of the streams that are read."""
        return tuple(self._streams)

    @property
    def processed(self) -> int:
        """The number of the last item that a session before has answered, -1 where none has."""
        return -1 if self._durability is None else self._durability.processed

    @property
    def late(self) -> int:
        """How many elements came too late to count."""
        return self.out_of_order + self._session.late

    @property
    def time(self) -> int | None:
        """The greatest time of an element that came (ms), ``None`` before the first."""
        return self._greatest

    @property
    def operator_trees(self) -> "Sequence[OperatorTree]":
        """The operators of its session; none before the first element, or where the engine does not show them."""
        return self._session.operator_trees

    @property
    def waiting(self) -> int:
        """How many elements and advances wait."""
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether no more should be put for now."""
        return not self.fault and len(self._waiting) >= self._limits.waiting

    @property
    def memory(self) -> int:
        """The estimated size of windows and static data, bytes."""
        return (len(self.question.query.static) + self._held.triples) * TRIPLE_BYTES

    def join(self, member: AnsweredQuery) -> bool:
        """Have a query answered here; false when input has come already that it is not to see."""
        with self._changed:
            if self._fresh:
                self._members = (*self._members, member)
            return self._fresh

    def leave(self, member: AnsweredQuery) -> None:
        """A query is answered no more; with the last one it all stops."""
        with self._changed:
            others = tuple(other for other in self._members if other is not member)
            if others:
                self._members = others
                return
        self.stop()

    def stop(self) -> None:
        """End the session once it has done what it is doing, and wait for that; what waits is dropped."""
        self.end()
        self.await_end(END_S)

    def end(self) -> None:
        """The same without waiting."""
        with self._changed:
            self._ending, self._fresh = True, False
            self._waiting.clear()
            self._changed.notify_all()

    def await_end(self, patience: float) -> None:
        """Wait until the session has ended, as long as ``patience`` (s)."""
        if self._thread is not current_thread():
            self._thread.join(patience)

    @property
    def members(self) -> Sequence[AnsweredQuery]:
        """The queries that are answered."""
        return self._members

    @property
    def idle(self) -> bool:
        """Whether all that was put has been taken in."""
        return not (self._waiting or self._busy)

    def put(self, items: Sequence[NumberedItem]) -> None:
        """Let elements and advances wait their turn; nothing after its end."""
        with self._changed:
            self._fresh = False
            times = [int(item.times.max()) if isinstance(item, ElementBatch) else item.time for _, item in items]
            self._admitted = max(times if self._admitted is None else [self._admitted, *times], default=None)
            if not self._stopped:
                self._waiting.extend(items)
                self._changed.notify_all()

    def refuse(self, items: Sequence[Input]) -> None:
        """Raise TimeJumpError for items with which time would jump past too many reports; none of them was taken."""
        question, now = self.question, self._admitted
        for item in items:
            if now is not None and item.time > now:
                refuse_jump(question.query.windows, question.semantics, now, item.time, self._limits.jump)
            now = item.time if now is None else max(now, item.time)

    def pass_time(self, now: int, number: int = -1) -> None:
        """Time has come to ``now`` (ms) by the wall clock; the query ends if its elements have another one."""
        advance = Advance(now - (self.question.semantics.lateness or 0) - 1)
        try:
            self.refuse([advance])
        except TimeJumpError as error:
            self._over(End(str(error)))
        else:
            self.put([(number, advance)])

    def hear(self, stream: str, items: Sequence[NumberedItem]) -> None:
        """Items of one of its streams: time has come to an advance only when it has on all of them."""
        self.put([(number, known) for number, item in items if (known := self._known(stream, item)) is not None])

    def room(self, timeout: float) -> bool:
        """Wait until more may be put."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.full or self._stopped, timeout)

    def settle(self, timeout: float) -> bool:
        """Wait until everything that was put has been taken in."""
        with self._changed:
            return self._changed.wait_for(lambda: self._stopped or not (self._waiting or self._busy), timeout)

    @property
    def _stopped(self) -> bool:
        return self._ending or bool(self.fault)

    def _known(self, stream: str, item: Taken) -> Taken | None:
        if not isinstance(item, Advance):
            return item
        self._streams[stream] = item.time
        known = [stream for stream in self._streams.values() if stream is not None]
        return Advance(min(known)) if len(known) == len(self._streams) else None

    def _work(self) -> None:
        """Feed the engine until the end, or until something goes wrong."""
        try:
            while items := self._taken():
                with DEADLINES.within(self._limits.seconds, self._limits.growth) as self._watched:
                    watched = self._watched
                    for number, item in items:
                        watched.steps += 1
                        self._replays = self._durability is not None and number <= self.processed
                        self._take(item)
                        if self._durability is not None:
                            self._keep(self._durability, number)
                        if self._stopped:
                            break
        except QueryLimitError as error:
            self._over(End(str(error)))
        except (TooMuchError, Interruption) as error:
            self._session.abandon()
            why = error if isinstance(error, TooMuchError) else DeadlineError()
            self._over(End(f"{why}: ask for less, or of smaller windows", "failed"))
        except Exception as error:
            self._failed(str(error))
        finally:
            self._close()

    def _keep(self, durability: Durability, number: int) -> None:
        """Hand on what an item caused, unless that was before."""
        if self._unbegun and self._session.begun:
            self._unbegun = False
            ((semantics, t0),) = self._session.begun
            durability.begun(self, t0, semantics.since)
        emitted, self._emitted = self._emitted, []
        if not self._replays:
            try:
                durability.answered(self, number, emitted)
            except ValueError as error:
                self._over(End(str(error)))

    def _taken(self) -> list[NumberedItem]:
        self.cpu = thread_time()
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._stopped)
            taken = list(self._waiting) if not self._stopped else []
            self._waiting.clear()
            self._busy = bool(taken)
            self._changed.notify_all()
            return taken

    def _take(self, item: Taken) -> None:
        if isinstance(item, Advance):
            self._session.advance(item.time)
            return
        if isinstance(item, ElementBatch):
            first, last, triples, count = int(item.times[0]), int(item.times[-1]), len(item.added) // 3, len(item)
            if not item.rising or (self._greatest is not None and first < self._greatest):
                for element in item.elements():
                    self._take(element)
                return
        else:
            first, last, triples, count = item.time, item.time, len(item.added), 1
        self.elements += count
        if self._greatest is not None and first < self._greatest and self.question.semantics.lateness is None:
            self.out_of_order += 1
            return
        self._greatest = last if self._greatest is None else max(self._greatest, last)
        self._held.take(last, triples)
        kept = max((member.answers.bytes for member in self._members[:1]), default=0)
        if self.memory + kept > self._limits.memory:
            limit = self._limits.memory // 2**20
            raise QueryLimitError(f"it would hold more than {limit} MiB: make its windows or its answers smaller")
        self._session.take(item)

    def _emit(self, answer: Answer) -> None:
        """Hand an answer on; other queries may read it, so that is done whole where the session can be stopped."""
        watched = self._watched
        if watched is None or watched.thread != get_ident():
            self._hand_on(answer)
            return
        with DEADLINES.uninterrupted(watched):
            self._hand_on(answer)

    def _hand_on(self, answer: Answer) -> None:
        if self._replays:
            return
        line = encode_answer(answer).rstrip(b"\n")
        if self._durability is not None:
            self._emitted.append((answer, self._durability.stated(self._streams, line, answer)))
            return
        try:
            for member in self._members:
                member.take(answer, line)
        except ValueError as error:
            self._over(End(str(error)))

    def _failed(self, why: str) -> None:
        self._over(End(f"the engine failed: {why}", "failed"))

    def _over(self, end: End) -> None:
        """The worker has ended by itself; only the first reason is told."""
        with self._changed:
            if self._stopped:
                return
            self.fault, self._fresh = end.why, False
            self._waiting.clear()
            self._changed.notify_all()
        for member in self._members:
            member.over(end)

    def _close(self) -> None:
        try:
            self._session.close()
        except (ValueError, RuntimeError) as error:
            self._failed(str(error))


Pass: TypeAlias = Callable[[Answer], None]
"""Takes every answer for the stream that the query's output is."""


class RegisteredQuery:
    """A query being answered. Thread-safe; ``fault`` says why it ended, empty while it runs.

    ``work`` answers it, and those that ask the same, from the same element on.
    """

    def __init__(self, name: str, question: Question, limits: QueryLimits, passing: Pass) -> None:
        self.name, self.question, self.answers = name, question, Answers[bytes](limits)
        self.fault = ""
        self.state: Literal["running", "ended", "failed"] = "running"
        self.work: QueryWorker
        self._passing = passing

    @property
    def memory(self) -> int:
        """The estimated size of the query's windows, bytes."""
        return self.work.memory + self.answers.bytes

    def begin(self, work: QueryWorker) -> bool:
        """Be answered by a work; false when that has begun already."""
        self.work = work
        return work.join(self)

    def take(self, answer: Answer, line: bytes) -> None:
        """An answer has come."""
        self.answers.add(line, len(line))
        self.hand_on(answer)

    def hand_on(self, answer: Answer) -> None:
        """An answer goes to those that read the query's output."""
        if self.question.output is not None:
            self._passing(answer)

    def end(self, why: str) -> None:
        """Stop; subscribers are told why."""
        self.work.leave(self)
        self.over(End(why))

    def over(self, end: End) -> None:
        """The worker has ended; the first reason stays."""
        if not self.fault:
            self.fault = end.why
            self.state = "failed" if end.kind == "failed" else "ended"
            level = ERROR if self.state == "failed" else INFO
            _LOG.log(level, "the query has %s: %s", self.state, end.why, extra=fields(query=self.name))
            self.answers.end(end)
