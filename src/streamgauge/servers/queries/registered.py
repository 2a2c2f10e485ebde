"""A registered query: its answers, its state, and the worker that answers it."""

from collections.abc import Callable
from logging import ERROR, INFO, getLogger
from typing import TYPE_CHECKING, Literal, TypeAlias

from streamgauge.model.answer import Answer
from streamgauge.model.logs import fields
from streamgauge.servers.http.events import Answers, End
from streamgauge.servers.queries.groups import Question, SharedEvaluation
from streamgauge.servers.queries.limits import QueryLimits
from streamgauge.servers.queries.worker import QueryWorker

if TYPE_CHECKING:
    from streamgauge.incremental.evaluator import OperatorTree

_LOG = getLogger(__name__)

Pass: TypeAlias = Callable[[Answer], None]
"""Takes every answer for the stream that the query's output is."""


class RegisteredQuery:
    """A running query. Thread-safe; ``fault`` says why it ended, empty while it runs.

    ``worker`` answers it; ``evaluation`` is its part of that, shared with equal queries registered at the same element.
    Items up to the number ``processed`` were answered by an earlier process.
    """

    def __init__(self, name: str, question: Question, limits: QueryLimits, passing: Pass) -> None:
        self.name, self.question, self.answers = name, question, Answers[bytes](limits)
        self.fault, self.processed = "", -1
        self.state: Literal["running", "ended", "failed"] = "running"
        self.worker: QueryWorker
        self.evaluation: SharedEvaluation
        self._passing = passing

    @property
    def done(self) -> bool:
        """Whether it has answered everything so far, or has ended."""
        return self.worker.idle or self.evaluation.over

    @property
    def memory(self) -> int:
        """The estimated size of the query's windows and kept answers, bytes."""
        return self.evaluation.counts.memory + self.answers.bytes

    @property
    def elements(self) -> int:
        """The number of elements received on its streams."""
        return self.evaluation.counts.elements

    @property
    def late(self) -> int:
        """The number of elements that were too late to count."""
        return self.evaluation.counts.late

    @property
    def time(self) -> int | None:
        """The greatest time of a received element (ms), ``None`` before the first."""
        return self.evaluation.counts.time

    @property
    def operator_tree(self) -> "OperatorTree | None":
        """Its operators; ``None`` before the first element, or where the engine does not show them."""
        return self.evaluation.operator_tree

    def begin(self, worker: QueryWorker) -> bool:
        """Be answered by a worker; false when it cannot."""
        evaluation = worker.join(self)
        if evaluation is not None:
            self.worker, self.evaluation = worker, evaluation
        return evaluation is not None

    def take(self, answer: Answer, line: bytes) -> None:
        """Store an answer for subscribers, and pass it on."""
        self.answers.add(line, len(line))
        self.hand_on(answer)

    def hand_on(self, answer: Answer) -> None:
        """Send an answer to the readers of the query's output."""
        if self.question.output is not None:
            self._passing(answer)

    def end(self, end: End) -> None:
        """Stop, and notify subscribers of the reason."""
        self.worker.leave(self.evaluation, self)
        self.over(end)

    def over(self, end: End) -> None:
        """The worker has ended; the first reason stays."""
        if not self.fault:
            self.fault = end.why
            self.state = "failed" if end.kind == "failed" else "ended"
            level = ERROR if self.state == "failed" else INFO
            _LOG.log(level, "the query has %s: %s", self.state, end.why, extra=fields(query=self.name))
            self.answers.end(end)
