"""Workers: input waits in order, a thread feeds the sessions of all queries that share it."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from threading import Condition, Thread, current_thread, get_ident
from time import monotonic, sleep, thread_time
from typing import Final

from streamgauge.formats.batches import Taken, count_of
from streamgauge.formats.lines import Advance, encode_answer
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.answer import Answer
from streamgauge.model.engine import Engine
from streamgauge.semantics.jumps import TimeJumpError
from streamgauge.servers.durable.needs import Need
from streamgauge.servers.http.deadlines import DEADLINES, DeadlineError, Interruption, Watched
from streamgauge.servers.http.events import End
from streamgauge.servers.queries.groups import (
    AnsweredQuery,
    EmittedAnswer,
    EvaluationGroup,
    GroupContext,
    Question,
    Resumption,
    SharedEvaluation,
)
from streamgauge.servers.queries.item_log import ItemLog, NumberedItem, latest_time, times_reached
from streamgauge.servers.queries.limits import QueriesBusyError, QueryLimitError, QueryLimits

RETRY_S = 1.0
"""When a publisher that is refused may come again."""

END_S = 10.0
"""Seconds for an ended query to finish its current work."""

GATHER_S: Final = 0.002
"""Seconds between two batches: elements that come one by one wake a worker less often (``benchmarks.service``)."""


@dataclass(frozen=True, slots=True)
class Durability:
    """The listeners of a worker whose answers are durable.

    ``answered`` takes the number of an item, its answers, and a call that belongs to the same transaction.
    ``begun`` takes a group whose session has begun, ``ended`` queries that ended, and why. ``stated``
    adds the gaps of streams to the line of an answer.
    """

    answered: Callable[[int, Sequence[EmittedAnswer], Callable[[], None]], None]
    begun: Callable[[EvaluationGroup], None]
    ended: Callable[[Sequence[AnsweredQuery], End], None]
    stated: Callable[[Iterable[str], bytes, Answer], bytes] = lambda _streams, line, _answer: line


class QueryWorker:
    """Answers the questions that share its input, once for all queries that ask them, each as it would be alone.

    If ``question`` may share a session, others may join at any time, otherwise only equal ones before the first input.
    A question that costs too much ends alone. Thread-safe after ``start``. Items have numbers, -1 without a journal.
    ``cpu`` is the CPU time (s) of its thread.
    """

    def __init__(
        self, name: str, question: Question, engine: Engine, limits: QueryLimits, durability: Durability | None = None
    ) -> None:
        self.question, self.name, self.cpu = question, name, 0.0
        self._durability, self._limits = durability, limits
        self._shares = question.shares(engine)
        self._emitted: list[EmittedAnswer] = []
        self._streams: dict[str, int | None] = {window.stream: None for window in question.query.windows}
        self._context = GroupContext(engine, limits, self._emit, self._failed)
        self._fresh: EvaluationGroup | None = EvaluationGroup(self._context, question, 0)
        self._groups = [self._fresh]
        self._log, self._put, self._joined_at = ItemLog(), 0, 0
        self._waiting: deque[NumberedItem] = deque()
        self.waiting = 0
        """How many elements and advances wait."""
        self._changed = Condition()
        self._busy, self._ending, self._number = False, False, -1
        self._thread = Thread(target=self._work, name=f"streamgauge-{name}", daemon=True)

    def start(self) -> None:
        """Answer from now on, until the end."""
        self._thread.start()

    @property
    def streams(self) -> tuple[str, ...]:
        """The IRIs of the streams that are read."""
        return tuple(self._streams)

    @property
    def full(self) -> bool:
        """Whether the queue is full."""
        return not self._ending and self.waiting >= self._limits.waiting

    def join(self, member: AnsweredQuery) -> SharedEvaluation | None:
        """Have a query answered here, from the next input on; ``None`` where it cannot be."""
        question = member.question
        with self._changed:
            if self._ending:
                return None
            evaluation = self._added(question)
            if evaluation is not None:
                evaluation.members = (*evaluation.members, member)
            return evaluation

    def _added(self, question: Question) -> SharedEvaluation | None:
        """Add a question from now on; ``None`` if it shares nothing with the others."""
        if not self.takes(question, fresh=self._fresh is not None):
            return None
        if self._fresh is None:
            if self._single:  # what it needs is not in the log before the next item is no longer needed
                self._groups[0].start, self._groups[0].lacking = self._put + 1, True
            self._fresh = EvaluationGroup(self._context, question, self._put)
            self._groups = [*self._groups, self._fresh]
        return self._fresh.add(question)

    def takes(self, question: Question, *, fresh: bool) -> bool:
        """Whether a question can be answered here; ``fresh``: it is to see all items that the first one has seen."""
        if fresh and question == self.question:
            return True
        one_clock = fresh or len(self._streams) == 1
        shares = self._shares and one_clock and question.shares(self._context.engine)
        return shares and question.beside(self.question)

    def resume(
        self,
        queries: Sequence[tuple[AnsweredQuery, Resumption]],
        items: Sequence[NumberedItem],
        due: Sequence[int],
        answered: int,
    ) -> list[SharedEvaluation]:
        """Resume queries that an earlier process answered up to an item; call before ``start``.

        ``items`` were answered, those of the numbers ``due`` are put next. Queries that differ only in items outside of
        all windows share a group. Returns the evaluation of each query.
        """
        self._log.add(items)
        # Busy from the start: until the thread has begun, ``idle`` must not report that all is answered.
        self._put, self._busy = self._log.end, True
        if self._shares:
            self._log.drop(self._log.end, self._floor(items))
        groups, evaluations = dict[object, EvaluationGroup](), list[SharedEvaluation]()
        for query, resumption in queries:
            # One that was registered after items which nobody had answered yet begins behind them.
            start = self._log.place(resumption.start) + bisect_left(due, resumption.start)
            # Queries whose first item is outside of all windows have the same content, however much earlier one of
            # them began.
            key = (start if start > self._log.begin else -1, resumption.begun)
            if key not in groups:
                groups[key] = EvaluationGroup(self._context, query.question, start)
                groups[key].resume(resumption.begun, max(start, self._log.end), answered)
            evaluations.append(groups[key].add(query.question))
            evaluations[-1].resume(query, resumption)
        self._groups = [*groups.values()]
        kept = self._log.part(self._log.begin, self._log.end)
        latest = [*accumulate((latest_time(item) for _, item in reversed(kept)), max)]
        for group in self._groups:
            if seen := min(len(kept), max(0, self._log.end - group.start)):
                group.admit(latest[seen - 1])
        self._fresh = next((group for group in self._groups if group.start == self._log.end), None)
        self._join_groups()
        return evaluations

    def _floor(self, items: Sequence[NumberedItem]) -> float:
        """Elements before this time (ms) are not needed once these items were answered."""
        need = Need(self.question.query, self.question.semantics)
        for _, item in items:
            for time in times_reached(item):
                need.take(time)
        return -inf if need.floor is None else need.floor

    def leave(self, evaluation: SharedEvaluation, member: AnsweredQuery) -> None:
        """Remove a query; the worker stops with the last one."""
        with self._changed:
            evaluation.members = tuple(other for other in evaluation.members if other is not member)
            if not evaluation.members and not evaluation.over:
                evaluation.end()
            if self._evaluations:
                return
        self.stop()

    def stop(self) -> None:
        """End the sessions after their current work and wait for them; queued items are dropped."""
        self.end()
        self.await_end(END_S)

    def end(self) -> None:
        """The same without waiting."""
        with self._changed:
            self._ending = True
            self._waiting.clear()
            self.waiting = 0
            self._changed.notify_all()

    def await_end(self, patience: float) -> None:
        """Wait until the sessions have ended, as long as ``patience`` (s)."""
        # A query may be ended by its own answer, hence by this thread; and one that failed to register never started
        # it.
        if self._thread is not current_thread() and self._thread.ident is not None:
            self._thread.join(patience)

    @property
    def members(self) -> Sequence[AnsweredQuery]:
        """The queries that are answered."""
        return [member for evaluation in self._evaluations for member in evaluation.members]

    @property
    def _single(self) -> bool:
        """Whether there is one question, which needs no log, unless its session is to begin anew."""
        return len(self._groups) == 1 and self._groups[0].size == 1 and not self._groups[0].renewed

    @property
    def _seeing(self) -> list[EvaluationGroup]:
        """The groups that see what is put next; resumed ones may begin behind it."""
        return [group for group in self._groups if group.progress.next <= self._put]

    @property
    def _evaluations(self) -> list[SharedEvaluation]:
        return [evaluation for group in self._groups for evaluation in group.evaluations]

    @property
    def idle(self) -> bool:
        """Whether everything queued has been processed; false after the end."""
        return not (self._waiting or self._busy or self._ending)

    def put(self, items: Sequence[NumberedItem]) -> None:
        """Let elements and advances wait their turn; nothing after its end."""
        with self._changed:
            # From the first item on, a new question sees less than the others and needs a group of its own.
            self._fresh = None
            if not items or self._ending:
                return
            latest = max(latest_time(item) for _, item in items)
            for group in self._seeing:
                group.admit(latest)
            self._put += len(items)
            self._waiting.extend(items)
            self.waiting += count_of([item for _, item in items])
            self._changed.notify_all()

    def refuse_when_full(self) -> None:
        """Raise QueriesBusyError if the queue is full."""
        if self.full:
            raise QueriesBusyError(f"{self.name} cannot keep up: {self.waiting} elements wait for it", RETRY_S)

    def refuse(self, items: Sequence[Taken]) -> None:
        """Raise TimeJumpError for items that would advance time past too many reports; none of them is processed."""
        for group in self._groups:
            if group.evaluations:
                group.refuse(items)

    def pass_time(self, now: int, number: int = -1) -> None:
        """Advance time to ``now`` (ms) by the wall clock; queries end if their elements have another clock."""
        self.advance(self.wall_advance(now), number)

    def advance(self, advance: Advance, number: int) -> None:
        """Advance time by the wall clock, with the number of the advance."""
        for group in self._seeing:
            try:
                group.refuse([advance])
            except TimeJumpError as error:
                for evaluation in group.evaluations:
                    self._over(evaluation, End(str(error)))
        self.put([(number, advance)])

    def wall_advance(self, now: int) -> Advance:
        """The time (ms) that the queries have reached when the wall clock shows ``now`` (ms)."""
        # Elements of this very millisecond may still come, and late ones within the bound.
        return Advance(now - (self.question.semantics.lateness or 0) - 1)

    def hear(self, stream: str, items: Sequence[NumberedItem]) -> None:
        """Process items of one of its streams; an advance takes effect once all streams have reached it."""
        self.put([(number, known) for number, item in items if (known := self.known(stream, item)) is not None])

    def room(self, timeout: float) -> bool:
        """Wait until more may be put."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.full, timeout)

    def settle(self, timeout: float) -> bool:
        """Wait until everything queued has been processed, or all sessions have ended; false after ``timeout`` (s)."""
        end = monotonic() + timeout
        with self._changed:
            if not self._changed.wait_for(lambda: self._ending or self.idle, timeout):
                return False
        if self._ending:  # subscribers hear the reason from the thread, after the end has begun
            self.await_end(end - monotonic())
        return not (self._ending and self._thread.is_alive())

    def known(self, stream: str, item: Taken) -> Taken | None:
        """The item of a stream as queries take it, ``None`` for an advance that not all of their streams reached."""
        if not isinstance(item, Advance):
            return item
        self._streams[stream] = item.time
        # A worked example: the queries read the streams A and B. A advances to 10 s: nothing is known of B, so time
        # does not pass. B advances to 7 s: time passes up to 7 s, since B may still bring elements of 8 s.
        known = [stream for stream in self._streams.values() if stream is not None]
        return Advance(min(known)) if len(known) == len(self._streams) else None

    def _work(self) -> None:
        """Feed the sessions until the end."""
        while True:
            while not self._ending and (behind := [group for group in self._groups if group.behind(self._log)]):
                for group in behind:
                    self._feed(group)
            self._tidy()
            if not self._take():
                break
        self._close()

    def _take(self) -> bool:
        """Wait for items; false at the end."""
        self.cpu = thread_time()
        with self._changed:
            self._busy = False
            self._changed.notify_all()
        sleep(GATHER_S)  # without waiting for the condition: what is put meanwhile wakes nobody
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ending)
            if self._ending:
                return False
            self._busy = True  # before nothing waits: `idle` is read without the lock
            self._log.add(self._waiting)
            self._waiting.clear()
            self.waiting = 0
            self._changed.notify_all()
            return True

    def _feed(self, group: EvaluationGroup) -> None:
        """Process a group's remaining items; if that costs too much, the group is split, or its only question ends.

        Questions without queries may be the cause: the others are first tried without them.
        """
        try:
            with DEADLINES.within(self._limits.seconds, self._limits.growth, group.stage) as group.watched:
                self._answer(group, group.watched)
                return
        except QueryLimitError as error:
            end, ended = End(str(error)), group.heavy() or group.alone()
        except (TooMuchError, Interruption) as error:
            why = error if isinstance(error, TooMuchError) else DeadlineError()
            end, ended = End(f"{why}: ask for less, or of smaller windows", "failed"), group.alone()
        # An engine is a plug-in: whatever it raises ends its query, not the worker and with it all other queries.
        except Exception as error:
            end, ended = End(f"the engine failed: {error}", "failed"), group.alone()
        # Before ``abandon``, which drops the session that knows which one was under way.
        suspects = group.suspects()
        group.abandon()
        for evaluation in ended:
            self._note_last(evaluation)
            self._over(evaluation, end)
        rest = group.evaluations
        # The cause is found, or questions without readers may be it: the rest is tried together once more.
        together = ended or len(rest) < group.size
        # A worked example: of the questions a, b, c, d, c costs too much, and the engine does not say which one was
        # under way. The suspects are a and b: the groups [a, b] and [c, d] begin anew, apart. [c, d] fails again and
        # is split into [c] and [d]. [c] fails alone, so c ends, and the others may be merged again.
        parts = [rest] if together else [suspects, [one for one in rest if one not in suspects]]
        with self._changed:
            parted = [group.anew(part, apart=not together) for part in parts if part]
            self._groups = [*(other for other in self._groups if other is not group), *parted]
            for other in self._groups if ended else ():
                # The question that split groups has ended, so they may be merged again.
                other.apart = False

    def _answer(self, group: EvaluationGroup, watched: Watched) -> None:
        if group.session is None:
            group.begin(self._log, watched)
        durability = self._durability
        for number, item in self._log.part(group.progress.next, self._log.end):
            # A first report may keep what windows hold once more, in joins; a restarted session's windows are full.
            watched.growth = self._limits.growth + group.memory
            watched.steps += 1
            self._number = number
            group.take(item)
            if durability is not None:
                self._keep(durability, group, number, watched)
            if self._ending:
                return

    def _keep(self, durability: Durability, group: EvaluationGroup, number: int, watched: Watched) -> None:
        """Hand on what an item caused."""
        if not group.noted and group.begun is not None:
            group.noted = True
            durability.begun(group)
        emitted = self._emitted and [one for one in self._emitted if one.evaluation.group is group]
        # Most items cause no answer: their number is kept in memory and gets to the disk with the next transaction.
        if not emitted:
            group.answer(number)
            return
        self._emitted = [one for one in self._emitted if one.evaluation.group is not group]
        try:
            with DEADLINES.uninterrupted(watched):
                durability.answered(number, emitted, lambda: group.answer(number))
        except ValueError as error:
            self._end_all(End(str(error)))

    def _note_last(self, evaluation: SharedEvaluation) -> None:
        """Record the answers of an evaluation before the one with which it ends."""
        emitted = [one for one in self._emitted if one.evaluation is evaluation]
        if emitted and self._durability is not None:
            self._durability.answered(self._number, emitted, lambda: None)
        self._emitted = [one for one in self._emitted if one.evaluation is not evaluation]

    def _tidy(self) -> None:
        """Drop items that are no longer needed, and merge groups that have reached the same state.

        A session is restarted from the whole log, at most once per as many new items.
        """
        log, groups = self._log, [group for group in self._groups if group.evaluations]
        for group in groups if self._shares else ():
            group.settle()
        if not self._shares or self._single:
            # Nothing is ever restarted from this log.
            log.drop(log.end, inf)
            return
        whole = [group.start for group in groups if group.need.floor is None]
        floors = [group.need.floor for group in groups if group.need.floor is not None]
        log.drop(min([log.end, *whole]), min(floors, default=inf))
        if len(groups) == len(self._groups) == 1 and not groups[0].sparse:
            return
        with self._changed:
            # The group for new questions stays, though it may be empty: the next query is added to it.
            self._groups = [group for group in self._groups if group.evaluations or group is self._fresh]
            # Joining replays the whole log. Waiting until it holds only newer items bounds that to once per item.
            if log.begin >= self._joined_at:
                self._join_groups()

    def _join_groups(self) -> None:
        alike: dict[object, list[EvaluationGroup]] = {}
        for group in self._groups:
            if (key := group.alike(self._log.begin)) is not None:
                alike.setdefault(key, []).append(group)
        for groups in alike.values():
            if len(groups) > 1 or groups[0].sparse:
                evaluations = [evaluation for group in groups for evaluation in group.evaluations]
                joined = min(groups, key=lambda group: group.start).anew(evaluations)
                self._groups = [*(group for group in self._groups if group not in groups), joined]
                self._joined_at = self._log.end

    def _emit(self, evaluation: SharedEvaluation, answer: Answer) -> None:
        """Hand an answer on; other queries may read it, so that is done whole where the session can be stopped."""
        watched = evaluation.group.watched
        if watched is None or watched.thread != get_ident():
            self._hand_on(evaluation, answer)
            return
        with DEADLINES.uninterrupted(watched):
            self._hand_on(evaluation, answer)

    def _hand_on(self, evaluation: SharedEvaluation, answer: Answer) -> None:
        # A restarted session repeats the last item; what was sent for it is not sent again.
        if self._shares and not evaluation.fresh(evaluation.group.progress.next):
            return
        line = encode_answer(answer).rstrip(b"\n")
        if self._durability is not None:
            line = self._durability.stated(self._streams, line, answer)
            self._emitted.append(EmittedAnswer(evaluation, answer, line))
            return
        try:
            for member in evaluation.members:
                member.take(answer, line)
        except ValueError as error:
            self._over(evaluation, End(str(error)))
        evaluation.group.note(evaluation.kept)

    def _failed(self, why: str) -> None:
        self._end_all(End(f"the engine failed: {why}", "failed"))

    def _end_all(self, end: End) -> None:
        for evaluation in self._evaluations:
            self._over(evaluation, end)

    def _over(self, evaluation: SharedEvaluation, end: End) -> None:
        """End a question for a reason of its own; only the first reason is reported."""
        with self._changed:
            if self._ending or evaluation.over:
                return
            evaluation.end()
            if not self._evaluations:
                self.end()
        if self._durability is not None:
            self._durability.ended(evaluation.members, end)
        for member in evaluation.members:
            member.over(end)

    def _close(self) -> None:
        for group in self._groups:
            try:
                group.close()
            except (ValueError, RuntimeError) as error:
                self._failed(str(error))
