"""Sessions of engines for tests, whose input and answers are recorded and can be judged."""

import shlex
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

from streamgauge.engines import evaluator, load
from streamgauge.formats.pipe import PipedSession, Task, TaskRefusedError
from streamgauge.formats.streams import Reading, one_by_one
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.engine import Session
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Semantics
from streamgauge.query import print_query
from streamgauge.semantics.beginning import begun
from streamgauge.semantics.refusal import RefusedError
from streamgauge.semantics.static_data import as_printed
from streamgauge.verification import query_text
from streamgauge.watching.inputs import Query, Static, Stream, Terms, open_feeds, understand
from streamgauge.workloads.parameters import duration


class RecordedSession:
    """A session of an engine, or of a ``program`` on the pipe; as a context manager it closes itself.

    Query and options are those of ``watch``; ``program`` is a command line, as words or text, that reads queries in the
    ``dialect``. ``answers`` are those so far, in order. RefusedError if the engine refuses the query.
    """

    def __init__(
        self,
        query: Query,
        *,
        engine: str = "live",
        program: str | Iterable[str] | None = None,
        dialect: str = "rspql",
        semantics: Semantics | str | None = None,
        static: Static = None,
        lateness: int | str | None = None,
        t0: int | str | None = None,
    ) -> None:
        (understood,) = understand(query, Terms("live" if program else engine, semantics, static, lateness, t0))
        self.query, self.semantics = understood.query, understood.semantics
        self.answers: list[Answer] = []
        self._engine, self._dialect, self._moves = engine, dialect, t0 is None
        self._program = None if program is None else shlex.split(program) if isinstance(program, str) else [*program]
        self._stream: list[StreamElement] = []
        self._time = 0
        self._session: Session | None = None
        self._closed = False
        if self._program is None and (reason := load(engine).refuse(self.query, self.semantics)):
            raise RefusedError(reason)

    def feed(self, *streams: Stream) -> Self:
        """Push the elements of finite streams, one stream after the other."""
        for feed in open_feeds(streams, self.query.streams, Reading(checked=True)):
            for item in _ended(feed.items):
                if isinstance(item, StreamElement):
                    self._push(item)
                else:
                    self.advance(item.time)
        return self

    def push(self, time: int | str, triples: Any) -> Self:
        """Push one element: time (ms, or text such as ``2s``) and triples (N-Triples, or tuples of terms)."""
        return self.feed([(duration(time), triples)])

    def advance(self, time: int | str) -> Self:
        """Promise that no earlier element follows: the engine reports what is due up to ``time``."""
        self._time = max(self._time, to := duration(time))
        self._begun(to).advance(to)
        return self

    def close(self) -> None:
        """End the input and wait for a program's last answers."""
        if self._session is not None and not self._closed:
            self._closed = True
            self._session.close()

    def recorded(self) -> tuple[Run, tuple[StreamElement, ...]]:
        """Close the session and return it as a run with its input stream."""
        self.close()
        own = evaluator(load(self._engine)) if self._program is None else None
        name = self._engine if self._program is None else shlex.join(self._program)
        header = RunHeader(name, self.query, query_text(self.query), "rspql", self.semantics, self._time, 0,
                           evaluator=own, ordered=own != "spark")  # fmt: skip
        return Run(header, tuple(self.answers), ()), tuple(self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _push(self, element: StreamElement) -> None:
        # Several streams are fed one after the other, and their own numbers may repeat.
        numbered = replace(element, sequence=len(self._stream))
        self._stream.append(numbered)
        self._time = max(self._time, element.time)
        self._begun(element.time).push(numbered)

    def _begun(self, first: int) -> Session:
        """The engine's session, started at first use; without a declared t0, the first element decides t0."""
        if self._session is None:
            self.semantics = begun(self.query.windows, self.semantics, first) if self._moves else self.semantics
            self._session = self._piped(self._program) if self._program else self._in_process()
        return self._session

    def _in_process(self) -> Session:
        return load(self._engine).start(self.query, self.semantics, self.answers.append)

    def _piped(self, program: list[str]) -> Session:
        text = print_query(self.query, self._dialect)
        semantics = as_printed(self.query, self.semantics, self._dialect)
        task = Task(text, self._dialect, semantics, self.query.static)
        try:
            return PipedSession(program, task, self.answers.append)
        except TaskRefusedError as error:
            raise RefusedError(str(error)) from error


def _ended(items: Any) -> Iterable[Any]:
    """The items of a stream, batches apart; RefusedError if it is endless."""
    if not isinstance(items, Iterable):
        raise RefusedError("a finite stream is needed here: a file, or an iterable")
    return one_by_one(items)
