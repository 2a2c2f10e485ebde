"""The current answer of a channel as SPARQL JSON, streamed from a snapshot that concurrent requests share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final
from weakref import WeakValueDictionary

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse

from streamgauge.formats.results import MEDIA_TYPE, pieces, results
from streamgauge.incremental.row_joins import TRUE
from streamgauge.model.terms import Row
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.channels import Channel

PIECE: Final = 500
"""Rows serialised at a time; for a slow client the next piece is serialised only when it is needed."""


@dataclass(eq=False)
class StandingAnswer:
    """The rows of a channel's answer after the notification ``number``."""

    channel: Channel
    number: int
    rows: Sequence[Row]

    def response(self) -> Response:
        """The response: a boolean for an ASK, else rows (triples for a CONSTRUCT)."""
        headers, variables = {"Notification": str(self.number)}, self.channel.variables
        if self.channel.log.kind == "ASK":
            return JSONResponse({"head": {}, "boolean": list(self.rows) == [(TRUE,)]}, 200, headers, MEDIA_TYPE)
        if len(self.rows) <= PIECE:
            return JSONResponse(results(variables, self.rows), 200, headers, MEDIA_TYPE)
        return StreamingResponse(self._pieces(), 200, headers, MEDIA_TYPE)

    def _pieces(self) -> Iterator[bytes]:
        yield from pieces(self.channel.variables, self.rows, PIECE)


class StandingAnswers:
    """The answers that are currently being sent, for sharing. Thread-safe."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._lock = broker, Lock()
        # Weak: a snapshot lives as long as the slowest response that reads from it.
        self._sent: WeakValueDictionary[str, StandingAnswer] = WeakValueDictionary()

    async def response(self, name: str) -> Response:
        """The response with the answer of a channel; UnknownChannelError, FailedError."""
        answer = await run_in_threadpool(self._of, name)
        # A long answer is serialised piece by piece while it is sent; a short one at once, which takes a thread.
        return answer.response() if len(answer.rows) > PIECE else await run_in_threadpool(answer.response)

    def _of(self, name: str) -> StandingAnswer:
        # Held while rows are copied: of requests that come together, one copies and the others share its snapshot.
        with self._lock:
            channel, answer = self._broker.channel(name), self._sent.get(name)
            # With a fault always anew, so that `rows` can refuse: a snapshot of before may show a change that was never
            # durable.
            if answer is None or answer.channel is not channel or answer.number != channel.number or self._broker.fault:
                answer = self._sent[name] = StandingAnswer(channel, *self._broker.rows(name))
            return answer
