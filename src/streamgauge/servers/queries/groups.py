"""Queries answered together: a group has one session of its engine, over one log of items.

The questions of a worker read the same streams through the same windows, which the engine stores once. Questions that
have seen the same items form a group. A session can be restarted from the items in the log, because they lead to the
same state (``servers/durable/needs.py``): without a query that costs too much, or together with queries that joined
later, once no window contains an item that these have not seen. Answers that were sent are not sent again. A restarted
service does the same with the items of its journal.
"""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import lcm
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from streamgauge.formats.batches import ElementBatch, Taken
from streamgauge.formats.lines import Advance
from streamgauge.model.answer import Answer
from streamgauge.model.engine import Engine
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.semantics.jumps import refuse_jumps
from streamgauge.servers.durable.needs import Need, not_durable
from streamgauge.servers.http.deadlines import Watched
from streamgauge.servers.http.events import Answers, End
from streamgauge.servers.queries.item_log import ItemLog, times_reached
from streamgauge.servers.queries.limits import TRIPLE_BYTES, QueryLimitError, QueryLimits
from streamgauge.servers.queries.sessions import EngineSession, SessionQuery, as_declared, moved, restored, resumed

if TYPE_CHECKING:
    from streamgauge.incremental.evaluator import OperatorTree


@dataclass(frozen=True, slots=True)
class Question:
    """A question: a query's text and meaning, with its options; ``output`` is the IRI of the stream of its answers.

    ``t0`` in ms if requested; ``wall`` lets time pass by the service's clock. The text is not compared: equal
    questions have the same answers to the same input.
    """

    text: str = field(compare=False)
    query: ContinuousQuery
    semantics: Semantics
    engine: str
    output: str | None = None
    t0: int | None = None
    wall: bool = False

    def shares(self, engine: Engine) -> bool:
        """Whether it may share a session: the engine can, and its state follows from recent elements.

        One whose answers are a stream may, though the session waits for readers of the answers: no reader can be in
        that session, because it would read its own output (``QueryCatalogue.refuse_output``).
        """
        together = getattr(engine, "start_all", None) is not None
        # Only time-based windows forget by time, so that a session restarted from a part of the log reaches the same
        # state.
        timed = all(window.window.kind == "time" for window in self.query.windows)
        return together and timed and not not_durable(self.query, self.semantics, self.engine)

    def beside(self, other: "Question") -> bool:
        """Whether another, which may share its session too, has the same windows and static data, asked alike."""
        return (
            self.query.windows == other.query.windows
            and (self.semantics, self.engine, self.t0, self.wall)
            == (other.semantics, other.engine, other.t0, other.wall)
            and self.query.static == other.query.static
        )


_UNCOUNTED: Final = 1 << 62
"""Bytes of answers beyond every limit: so they are counted before the first limit is checked."""


def _times(item: Taken) -> Sequence[int]:
    """The times of elements, or of an advance (ms)."""
    return item.times.tolist() if isinstance(item, ElementBatch) else (item.time,)


class WindowEstimate:
    """An estimate of the number of triples in the windows of a query."""

    def __init__(self, query: ContinuousQuery) -> None:
        kinds = [(window.window.kind, window.window.size) for window in query.windows]
        self._size = max((size for kind, size in kinds if kind == "time"), default=0)
        self._counted = sum(size for kind, size in kinds if kind == "count")
        self._landmark = any(kind == "landmark" for kind, _ in kinds)
        self._recent: deque[tuple[int, int]] = deque()
        self._within = self._all = 0

    @property
    def triples(self) -> int:
        """The estimated number of triples."""
        return self._all if self._landmark else self._within + min(self._counted, self._all)

    def take(self, time: int, triples: int) -> None:
        """Count triples that enter, the last at a time (ms), and drop those outside of every window."""
        self._all += triples
        if self._size:
            self._within += triples
            self._recent.append((time, triples))
            # Never empty here: the entry just appended is at `time`.
            while self._recent[0][0] < time - self._size:
                self._within -= self._recent.popleft()[1]


class AnsweredQuery(Protocol):
    """A query that is answered."""

    question: Question
    answers: Answers[bytes]
    processed: int
    """The number of the last item that an earlier process has answered, -1 if none has."""

    def take(self, answer: Answer, line: bytes) -> None:
        """Take an answer, also as a line of JSON; ValueError if it cannot be passed on."""

    def over(self, end: End) -> None:
        """Record that no more answers will come."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """The progress of a query in an earlier process: it has seen the items from number ``start`` on.

    ``begun`` has the t0 and ``since`` (ms) of its session, ``latest`` the time (ms) of the latest answered element.
    ``over`` says why it ended there, ``None`` if it continues.
    """

    start: int
    begun: tuple[int, int | None] | None
    latest: int | None
    over: End | None = None


class Progress(NamedTuple):
    """A group's progress: the place of its next item, and counts of the elements before it.

    ``greatest`` is the greatest time of an element (ms).
    """

    next: int
    elements: int = 0
    out_of_order: int = 0
    greatest: int | None = None


class Counts(NamedTuple):
    """Counts of a question: elements, late ones, the greatest time (ms), estimated bytes."""

    elements: int
    late: int
    time: int | None
    memory: int


class EmittedAnswer(NamedTuple):
    """An answer of an evaluation, also as a line of JSON."""

    evaluation: "SharedEvaluation"
    answer: Answer
    line: bytes


class SharedEvaluation:
    """One question, evaluated for all queries that ask it from the same item on."""

    def __init__(self, question: Question, group: "EvaluationGroup") -> None:
        self.question, self.group = question, group
        self.members: tuple[AnsweredQuery, ...] = ()
        self._before = (0, 0)
        self._last: Counts | None = None
        # (place of the item, number of the answer that it caused): how far this session and any session have come.
        self._emitted = self._given = (-1, 0)
        self.latest: int | None = None
        """The time (ms) of the latest element that a process before has answered."""

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._last is not None

    @property
    def counts(self) -> Counts:
        """Its counts so far, or until its end."""
        if self._last is not None:
            return self._last
        group, (elements, late) = self.group, self._before
        return Counts(elements + group.progress.elements, late + group.late, group.progress.greatest, group.memory)

    @property
    def operator_tree(self) -> "OperatorTree | None":
        """Its operators in the session of its group, where the engine shows them."""
        return None if self.over else self.group.operator_tree(self)

    def resume(self, member: AnsweredQuery, resumption: Resumption) -> None:
        """A query that a process before answered is answered here."""
        # The least of all members: an answer is skipped only where each of them has it.
        times = (resumption.latest, self.latest if self.members else resumption.latest)
        self.latest = None if None in times else min(time for time in times if time is not None)
        self.members = (*self.members, member)

    def end(self) -> None:
        """Stop evaluating the query; its counts stay."""
        self._last = self.counts

    def move(self, group: "EvaluationGroup") -> None:
        """Another group answers it from now on, which may do the item again that caused the last answers."""
        counts = self.counts
        self._before, self.group, self._emitted = (counts.elements, counts.late), group, (-1, 0)

    def fresh(self, place: int) -> bool:
        """Whether the next answer that the item of a place causes was not given before."""
        # A worked example: the item at place 7 caused three answers, of which two were given, (7, 2), when the group
        # was split. The new session processes the item again: its answers (7, 1) and (7, 2) are skipped, (7, 3) is
        # given.
        number = self._emitted[1] + 1 if self._emitted[0] == place else 1
        self._emitted = (place, number)
        if self._given[0] == place and number <= self._given[1]:
            return False
        self._given = self._emitted
        return True

    @property
    def kept(self) -> int:
        """The size of its kept answers, bytes."""
        # Members share the same lines, so one of them stands for all.
        return max((member.answers.bytes for member in self.members[:1]), default=0)


@dataclass(frozen=True, slots=True)
class GroupContext:
    """The common ground of the groups of a worker: ``emit`` gets all answers, ``failed`` the end of a program."""

    engine: Engine
    limits: QueryLimits
    emit: Callable[[SharedEvaluation, Answer], None]
    failed: Callable[[str], None]


class EvaluationGroup:
    """Questions with the same windows that have seen the same items: those of a log from position ``start`` on.

    ``apart``: it was split from others and is never merged again. ``lacking``: it needs items that the log does not
    have, until the log begins at ``start``. ``answered`` is the number of the last item whose answers were recorded,
    -1 if none; ``noted``: ``begun`` was recorded too.
    """

    def __init__(self, context: GroupContext, question: Question, start: int) -> None:
        self._context, self._question, self.start = context, question, start
        self._evaluations: list[SharedEvaluation] = []
        self.begun: tuple[int, int | None] | None = None
        """The t0 and ``since`` (ms) of its session."""
        self.answered = -1
        self.progress = Progress(start)
        self.session: EngineSession | None = None
        self.watched: Watched | None = None
        self.replays = self.apart = self.lacking = self.noted = False
        self.need = Need(question.query, question.semantics)
        self._admitted = question.t0
        self._held, self._kept, self._late = WindowEstimate(question.query), 0, 0

    @property
    def evaluations(self) -> list[SharedEvaluation]:
        """The evaluations that have not ended."""
        return [evaluation for evaluation in self._evaluations if not evaluation.over]

    @property
    def members(self) -> list[AnsweredQuery]:
        """The queries that are answered."""
        return [member for evaluation in self.evaluations for member in evaluation.members]

    def add(self, question: Question) -> SharedEvaluation:
        """The evaluation of a question, one more unless it was asked before; before the first item."""
        for evaluation in self.evaluations:
            if evaluation.question == question:
                return evaluation
        self._evaluations.append(SharedEvaluation(question, self))
        return self._evaluations[-1]

    def behind(self, log: ItemLog) -> bool:
        """Whether items of a log are still to be answered or replayed."""
        return self.progress.next < log.end or (self.session is None and self.start < self.progress.next)

    def resume(self, begun: tuple[int, int | None] | None, place: int, answered: int) -> None:
        """Go on with the item of a place, those before it up to a number were answered by a process before."""
        self.begun, self.noted, self.answered, self.progress = begun, begun is not None, answered, Progress(place)

    def answer(self, number: int) -> None:
        """The answers to the item of a number were noted."""
        self.answered = number

    def anew(self, evaluations: Sequence[SharedEvaluation], *, apart: bool = False) -> "EvaluationGroup":
        """A group that continues from here, with its evaluations or others at the same position."""
        group = EvaluationGroup(self._context, self._question, self.start)
        # Counts start at 0: those so far stay with the evaluations (``SharedEvaluation.move``).
        group.progress = Progress(self.progress.next, greatest=self.progress.greatest)
        group.begun, group.need, group._admitted, group.apart = self.begun, self.need, self._admitted, apart
        group.lacking, group.answered, group.noted = self.lacking, self.answered, self.noted
        group._evaluations = list(evaluations)
        for evaluation in evaluations:
            evaluation.move(group)
        return group

    @property
    def late(self) -> int:
        """The number of elements that were too late to count."""
        return self.progress.out_of_order + (0 if self.session is None else self.session.late - self._late)

    @property
    def memory(self) -> int:
        """The estimated size of windows and static data, bytes."""
        return (len(self._question.query.static) + self._held.triples) * TRIPLE_BYTES

    @property
    def size(self) -> int:
        """The number of its questions, including ended ones."""
        return len(self._evaluations)

    @property
    def renewed(self) -> bool:
        """Whether its session is to begin anew over items of the log."""
        return self.session is None and self.progress.next > self.start

    @property
    def sparse(self) -> bool:
        """Whether most of the questions that it evaluates have ended."""
        return 2 * len(self.evaluations) < self.size

    def heavy(self) -> list[SharedEvaluation]:
        """The evaluations beyond the limit of memory."""
        return [one for one in self.evaluations if self.memory + one.kept > self._context.limits.memory]

    def alone(self) -> list[SharedEvaluation]:
        """The evaluation that its session is for, none if that began with several."""
        return self.evaluations if self.size == 1 else []

    def operator_tree(self, evaluation: SharedEvaluation) -> "OperatorTree | None":
        """The operators of an evaluation, where the engine shows them and the session has begun."""
        trees = () if self.session is None else self.session.operator_trees
        # The trees are in the order in which the session got its queries, ended ones included (`begin`).
        return trees[self._evaluations.index(evaluation)] if trees else None

    def stage(self) -> Hashable:
        """The question, or the pattern, that its session evaluates for an item: each has the limits to itself."""
        session = self.session
        return None if session is None else session.stage

    def suspects(self) -> list[SharedEvaluation]:
        """The evaluation that was under way, else half of all."""
        evaluations, at = self.evaluations, None if self.session is None else self.session.reporting
        if at is not None and not self._evaluations[at].over:
            return [self._evaluations[at]]
        # Which question is to blame is found by halving: log2 n restarts instead of n.
        return evaluations[: len(evaluations) // 2]

    def alike(self, begin: int) -> object:
        """The key of groups that may be joined, ``None`` where none may, for a log from the place ``begin`` on."""
        if self.apart or self.begun is None or (self.lacking and self.start > begin):
            return None
        semantics, windows = self._question.semantics, self._question.query.windows
        # Two sessions with t0 on the same grid have the same windows from some element on.
        # A worked example: windows slide by 2 s and by 5 s, so the grid is 10 s. Sessions that began at 0 and at 20 s
        # may be joined, those at 0 and at 4 s may not.
        step = lcm(semantics.period or 1, semantics.time_unit, *(window.window.slide for window in windows))
        start = self.start if self.start > begin else -1
        since = self.begun[1] if start >= 0 else None
        return start, self.begun[0] % step, since, self.progress.next, self.progress.greatest

    def admit(self, time: int) -> None:
        """Items up to a time (ms) are to come."""
        self._admitted = time if self._admitted is None else max(self._admitted, time)

    def refuse(self, items: Sequence[Taken]) -> None:
        """Raise TimeJumpError for items with which time would jump past too many reports."""
        question, limit = self._question, self._context.limits.jump
        times = chain.from_iterable(map(_times, items))
        refuse_jumps(question.query.windows, question.semantics, self._admitted, times, limit)

    def begin(self, log: ItemLog, watched: Watched) -> None:
        """Begin the session, in the state that it has after the items before the next one."""
        question, context, resumes = self._question, self._context, self.progress.greatest is None
        moves, semantics = moved if question.t0 is None else as_declared, question.semantics
        if self.begun is not None:
            moves, semantics = resumed, restored(semantics, *self.begun)
        latest = self._answered_time() if resumes else self.progress.greatest
        settled = None if latest is None else latest - (semantics.lateness or 0)
        emits = [partial(self._emit, evaluation) for evaluation in self._evaluations]
        queries = [
            SessionQuery(evaluation.question.query, semantics, emit)
            for evaluation, emit in zip(self._evaluations, emits, strict=True)
        ]
        session = EngineSession(context.engine, queries, moves, context.failed, settled=settled)
        self._held, self._kept, self._late, self.replays = WindowEstimate(question.query), _UNCOUNTED, 0, True
        progress = Progress(max(self.start, log.begin))
        for _, item in log.part(progress.next, self.progress.next):
            watched.steps += 1
            progress = self._enter(session, item, progress)
            for time in times_reached(item) if resumes else ():
                self.need.take(time)
        if resumes:
            self.progress = progress._replace(next=self.progress.next)
        self.session, self._late, self.replays = session, 0 if resumes else session.late, False

    def take(self, item: Taken) -> None:
        """Process the next item of the log."""
        assert self.session is not None
        progress = self._enter(self.session, item, self.progress)
        if self.begun is None and self.session.begun:
            semantics, t0 = self.session.begun[0]
            self.begun = t0, semantics.since
        self.progress = progress._replace(next=progress.next + 1)

    def _answered_time(self) -> int | None:
        """The time (ms) up to which a process before has answered all of its questions."""
        times = [evaluation.latest for evaluation in self.evaluations]
        return min((time for time in times if time is not None), default=None) if None not in times else None

    def settle(self) -> None:
        """All items have been answered: old ones are no longer needed."""
        if self.progress.greatest is not None:
            self.need.take(self.progress.greatest)

    def close(self) -> None:
        """End the input; the session emits its last answers."""
        if self.session is not None:
            self.session.close()

    def abandon(self) -> None:
        """Let go of the session, which may have been stopped anywhere."""
        if self.session is not None:
            self.session.abandon()

    def _emit(self, evaluation: SharedEvaluation, answer: Answer) -> None:
        if not self.replays and not evaluation.over:
            self._context.emit(evaluation, answer)

    def _enter(self, session: EngineSession, item: Taken, progress: Progress) -> Progress:
        """Give an item to a session; the counts after it."""
        if isinstance(item, Advance):
            session.advance(item.time)
            return progress
        place, elements, out_of_order, greatest = progress
        if isinstance(item, ElementBatch):
            first, last, triples, count = int(item.times[0]), int(item.times[-1]), len(item.added) // 3, len(item)
            # Late elements are counted one by one; batches of a working source rise.
            if not item.rising or (greatest is not None and first < greatest):
                for element in item.elements():
                    progress = self._enter(session, element, progress)
                return progress
        else:
            first, last, triples, count = item.time, item.time, len(item.added), 1
        elements += count
        # Engines raise an error for disorder without a bound; in a service that would end the query for one late
        # sensor.
        if greatest is not None and first < greatest and self._question.semantics.lateness is None:
            return Progress(place, elements, out_of_order + count, greatest)
        self._held.take(last, triples)
        self._bound()
        session.take(item)
        return Progress(place, elements, out_of_order, last if greatest is None else max(greatest, last))

    def _bound(self) -> None:
        """QueryLimitError if a question exceeds its memory, answers included."""
        limit = self._context.limits.memory
        if self.memory + self._kept <= limit or self.replays:
            return
        # Counted only near the limit: ``_kept`` is an upper bound until then, since ``note`` never lowers it.
        self._kept = max((evaluation.kept for evaluation in self.evaluations), default=0)
        if self.memory + self._kept > limit:
            limit //= 2**20
            raise QueryLimitError(f"it would hold more than {limit} MiB: make its windows or its answers smaller")

    def note(self, kept: int) -> None:
        """Count the bytes of the stored answers of a question."""
        self._kept = max(self._kept, kept)
