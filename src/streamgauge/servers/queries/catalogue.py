"""The registered queries by name, and by the streams that they read and write.

A query may write its answers to a stream that others read. Each stream has one writer at most, and no query reads a
stream that depends on its own answers.
"""

from collections.abc import Sequence

from streamgauge.servers.http.access import OPEN
from streamgauge.servers.queries.groups import Question
from streamgauge.servers.queries.registered import RegisteredQuery
from streamgauge.servers.queries.worker import QueryWorker


class UnknownQueryError(KeyError):
    """No query of that name is known."""

    def __str__(self) -> str:
        return f"there is no query {self.args[0]}"


class ConflictError(ValueError):
    """A request that conflicts with the current state; the message names both."""


class QueryCatalogue:
    """Queries by name, not thread-safe; ``owners`` has the identities that registered them.

    ``since`` are their starts, monotonic seconds.
    """

    def __init__(self) -> None:
        self.owners: dict[str, str] = {}
        self.since: dict[str, float] = {}
        self._running: dict[str, RegisteredQuery] = {}
        self._writers: dict[str, str] = {}
        # A stream is published on far more often than a query comes or goes.
        self._readers: dict[str, tuple[Sequence[QueryWorker], int]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._running

    def query(self, name: str) -> RegisteredQuery:
        """A query by its name; UnknownQueryError."""
        if name not in self._running:
            raise UnknownQueryError(name)
        return self._running[name]

    @property
    def queries(self) -> list[RegisteredQuery]:
        """All queries, in the order of their registration."""
        return list(self._running.values())

    @property
    def workers(self) -> list[QueryWorker]:
        """The workers of all queries."""
        return workers_of(self.queries)

    def owned_by(self, owner: str) -> int:
        """The number of queries of an identity."""
        return sum(self.owners.get(name, OPEN) == owner for name in self._running)

    def enter(self, running: RegisteredQuery, now: float) -> None:
        """Add a query that starts now (monotonic seconds)."""
        self._running[running.name], self.since[running.name] = running, now
        self._readers.clear()
        if running.question.output is not None:
            self._writers[running.question.output] = running.name

    def remove(self, running: RegisteredQuery) -> None:
        """Remove a query, which then neither reads nor writes streams."""
        del self._running[running.name], self.since[running.name]
        self.owners.pop(running.name, None)
        self._readers.clear()
        if running.question.output is not None:
            del self._writers[running.question.output]

    @property
    def streams(self) -> set[str]:
        """The streams that are read or written."""
        return {stream for running in self._running.values() for stream in running.worker.streams} | set(self._writers)

    def writer(self, stream: str) -> str | None:
        """The name of the query whose answers are a stream; ``None`` if they are those of no query."""
        return self._writers.get(stream)

    def readers(self, stream: str) -> tuple[Sequence[QueryWorker], int]:
        """The workers that read a stream, and the number of their queries that do."""
        if stream not in self._readers:
            running = [running for running in self._running.values() if stream in running.worker.streams]
            self._readers[stream] = workers_of(running), len(running)
        return self._readers[stream]

    def refuse_output(self, question: Question) -> None:
        """ConflictError if a question's output is another query's, or would be an input of the question itself."""
        output = question.output
        if output is None:
            return
        if writer := self.writer(output):
            raise ConflictError(f"<{output}> is the output of {writer}: register under another name")
        seen, open_streams = set[str](), [window.stream for window in question.query.windows]
        while open_streams:
            stream = open_streams.pop()
            if stream == output:
                raise ConflictError(f"its output <{output}> would be its own input: register under another name")
            if stream not in seen and (writer := self.writer(stream)) is not None:
                open_streams += self._running[writer].worker.streams
            seen.add(stream)


def workers_of(queries: Sequence[RegisteredQuery]) -> list[QueryWorker]:
    """The workers of the queries, each once."""
    return list(dict.fromkeys(running.worker for running in queries))
