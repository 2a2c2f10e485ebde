"""One running query: what comes for it waits in order, a thread of its own feeds the engine, answers are numbered."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Thread
from typing import TypeAlias

from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.engine import Engine
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.services.queries.answers import Answers
from streamgauge.services.queries.asking import Asked, Asking, as_declared, moved
from streamgauge.services.queries.limits import TRIPLE_BYTES, LimitError, Limits
from streamgauge.wire.lines import Advance, Input, encode_answer

END_S = 10.0
"""How long a query that is ended may go on with what it is doing."""

Pass: TypeAlias = Callable[[Answer], None]
"""Takes every answer for the stream that the query's output is."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query as it was asked: its text, what it means, and how; ``output`` is the IRI of the stream of its answers.

    ``t0`` in ms where it was asked for; ``wall`` lets time pass by the service's clock.
    """

    text: str
    query: ContinuousQuery
    semantics: Semantics
    engine: str
    output: str | None = None
    t0: int | None = None
    wall: bool = False


class Running:
    """A query being answered. Thread-safe; ``fault`` says why it ended, empty while it runs."""

    def __init__(self, name: str, question: Question, engine: Engine, limits: Limits, passing: Pass) -> None:
        self.name, self.question, self.answers = name, question, Answers(limits)
        self.elements = self.out_of_order = 0
        self.fault = ""
        self._limits, self._passing = limits, passing
        self._streams: dict[str, int | None] = {each.stream: None for each in question.query.windows}
        self._greatest: int | None = None
        self._held = _Held(question.query)
        moves = moved if question.t0 is None else as_declared
        self._asking = Asking(engine, [Asked(question.query, question.semantics, self._emit)], moves)
        self._waiting: deque[Input] = deque()
        self._changed = Condition()
        self._busy = self._ending = False
        self._thread = Thread(target=self._work, name=f"streamgauge-{name}", daemon=True)
        self._thread.start()

    @property
    def streams(self) -> tuple[str, ...]:
        """The IRIs of the streams that it reads."""
        return tuple(self._streams)

    @property
    def late(self) -> int:
        """How many elements came too late to count."""
        return self.out_of_order + self._asking.late

    @property
    def waiting(self) -> int:
        """How many elements and advances wait for it."""
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether no more should be put for now."""
        return not self.fault and len(self._waiting) >= self._limits.waiting

    @property
    def memory(self) -> int:
        """What it is estimated to hold, bytes."""
        triples = len(self.question.query.static) + self._held.triples
        return triples * TRIPLE_BYTES + self.answers.bytes

    def put(self, items: Sequence[Input]) -> None:
        """Let elements and advances wait their turn; nothing after its end."""
        with self._changed:
            if not self.fault and not self._ending:
                self._waiting.extend(items)
                self._changed.notify_all()

    def room(self, timeout: float) -> bool:
        """Wait until more may be put."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.full or self._ending, timeout)

    def settle(self, timeout: float) -> bool:
        """Wait until everything that was put has been taken in."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self.fault) or not (self._waiting or self._busy), timeout)

    def end(self, why: str) -> None:
        """Stop; what waits is dropped, subscribers are told why."""
        with self._changed:
            self._ending = True
            self._waiting.clear()
            self._changed.notify_all()
        self._thread.join(END_S)
        self._over(why)

    def _work(self) -> None:
        """Feed the engine until the end, or until something goes wrong."""
        try:
            while items := self._taken():
                for item in items:
                    self._take(item)
                    if self._ending:
                        break
        except LimitError as error:
            self._over(str(error))
        except Exception as error:
            self._over(f"the engine failed: {error}")
        finally:
            self._close()

    def _taken(self) -> list[Input]:
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._ending)
            taken = list(self._waiting) if not self._ending else []
            self._waiting.clear()
            self._busy = bool(taken)
            self._changed.notify_all()
            return taken

    def _take(self, item: Input) -> None:
        if isinstance(item, Advance):
            self._asking.advance(item.time)
            return
        self.elements += 1
        if self._greatest is not None and item.time < self._greatest and self.question.semantics.lateness is None:
            self.out_of_order += 1
            return
        self._greatest = item.time if self._greatest is None else max(self._greatest, item.time)
        self._held.take(item)
        if self.memory > self._limits.memory:
            limit = self._limits.memory // 2**20
            raise LimitError(f"it would hold more than {limit} MiB: make its windows or its answers smaller")
        self._asking.push(item)

    def told(self, stream: str, time: int) -> int | None:
        """How far (ms) time has come on all its streams, once it has come to ``time`` on one; ``None``: not on all."""
        self._streams[stream] = time
        known = [each for each in self._streams.values() if each is not None]
        return min(known) if len(known) == len(self._streams) else None

    def _emit(self, answer: Answer) -> None:
        self.answers.add(encode_answer(answer).rstrip(b"\n"))
        if self.question.output is not None:
            try:
                self._passing(answer)
            except ValueError as error:
                self._over(str(error))

    def _over(self, why: str) -> None:
        with self._changed:
            self.fault = self.fault or why
            self._waiting.clear()
            self._changed.notify_all()
        self.answers.end(self.fault)

    def _close(self) -> None:
        try:
            self._asking.close()
        except (ValueError, RuntimeError) as error:
            if not self._ending:
                self._over(f"the engine failed: {error}")


class _Held:
    """An estimate of how many triples the windows of a query hold."""

    def __init__(self, query: ContinuousQuery) -> None:
        kinds = [(each.window.kind, each.window.size) for each in query.windows]
        self._size = max((size for kind, size in kinds if kind == "time"), default=0)
        self._counted = sum(size for kind, size in kinds if kind == "count")
        self._landmark = any(kind == "landmark" for kind, _ in kinds)
        self._recent: deque[tuple[int, int]] = deque()
        self._within = self._all = 0

    @property
    def triples(self) -> int:
        """How many."""
        return self._all if self._landmark else self._within + min(self._counted, self._all)

    def take(self, element: StreamElement) -> None:
        """An element enters, what is out of every window leaves."""
        self._all += len(element.added)
        if self._size:
            self._within += len(element.added)
            self._recent.append((element.time, len(element.added)))
            while self._recent[0][0] < element.time - self._size:
                self._within -= self._recent.popleft()[1]
