"""One running query: what was asked, its answers, numbered, and how it goes."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from streamgauge.model.answer import Answer
from streamgauge.servers.http.numbered_answers import Answers, End
from streamgauge.servers.queries.limits import QueryLimits
from streamgauge.servers.queries.session_worker import Question, Work

Pass: TypeAlias = Callable[[Answer], None]
"""Takes every answer for the stream that the query's output is."""


class Running:
    """A query being answered. Thread-safe; ``fault`` says why it ended, empty while it runs.

    ``work`` answers it, and those that ask the same, from the same element on.
    """

    def __init__(self, name: str, question: Question, limits: QueryLimits, passing: Pass) -> None:
        self.name, self.question, self.answers = name, question, Answers[bytes](limits)
        self.fault = ""
        self.state: Literal["running", "ended", "failed"] = "running"
        self.work: Work
        self._passing = passing

    @property
    def memory(self) -> int:
        """The estimated size of the query's windows, bytes."""
        return self.work.memory + self.answers.bytes

    def begin(self, work: Work) -> bool:
        """Be answered by a work; false when that has begun already."""
        self.work = work
        return work.join(self)

    def take(self, answer: Answer, line: bytes) -> None:
        """An answer has come."""
        self.answers.add(line, len(line))
        if self.question.output is not None:
            self._passing(answer)

    def end(self, why: str) -> None:
        """Stop; subscribers are told why."""
        self.work.leave(self)
        self.over(End(why))

    def over(self, end: End) -> None:
        """It has ended; the first reason stays."""
        if not self.fault:
            self.fault = end.why
            self.state = "failed" if end.kind == "error" else "ended"
            self.answers.end(end)
