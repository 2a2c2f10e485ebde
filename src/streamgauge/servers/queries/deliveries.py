"""Answers of registered queries on their way to sinks, each from where it was when the service ended.

A number is kept once all answers up to it have arrived, with the sink's mark where it has one: a file has each answer
once, a transport may get the last ones twice, with the same key ``QUERY/NUMBER``.
"""

from collections.abc import Callable, Mapping
from logging import getLogger
from random import Random
from threading import Event, Thread
from time import monotonic
from typing import Any, Final, TypeAlias

from streamgauge.formats.lines import decode_answer
from streamgauge.formats.streams import stream_formats
from streamgauge.model.logs import fields
from streamgauge.servers.http.events import AnswerSubscription
from streamgauge.servers.queries.catalogue import UnknownQueryError
from streamgauge.servers.queries.durability import NotDurableError
from streamgauge.servers.queries.registry import DURABLE_S, Queries
from streamgauge.servers.queries.sessions import as_element, makes_triples
from streamgauge.sources import Sink, SourceError, message_form
from streamgauge.sources.backoff import Backoff
from streamgauge.sources.contract import Delivery, Marked, Settling, parse_address

LEAVE_S: Final = 1.0
"""Seconds that sinks may take to end, all together: a service ends within 5."""

BEAT_S: Final = 1.0
"""Seconds between checks of a sink without answers."""

OWNER: Final = "sinks of the service"
"""The identity of subscriptions for sinks."""

_LOG = getLogger(__name__)

OpenSink: TypeAlias = Callable[[str], Sink]


class AnswerDelivery:
    """Delivers the answers of a query to the sink of a URL, in a separate thread.

    ``number`` is that of the last delivered answer, ``undelivered`` counts lost ones, ``fault`` says why the sink is
    unavailable (empty while it accepts answers).
    """

    def __init__(self, queries: Queries, query: str, url: str, open_: OpenSink) -> None:
        self._queries, self.query, self._url, self._open = queries, query, url, open_
        self.sink = parse_address(url).text
        # By the text of the address, which leaves out passwords: records are stored on the disk.
        self._record = f"{query} {self.sink}"
        record = self._kept()
        self.number, self._mark = int(record.get("number", 0)), record.get("mark")
        self.undelivered, self.fault = 0, ""
        self._encode = _quads if message_form(url) == "nquads" else _rows
        self._leaving, self._woken = Event(), Event()
        self._thread = Thread(target=self._run, name="streamgauge-delivery", daemon=True)
        self._thread.start()

    @property
    def behind(self) -> int:
        """How many answers have not arrived yet."""
        try:
            return self._queries.query(self.query).answers.number - self.number
        except UnknownQueryError:
            return 0

    def stop(self) -> None:
        """Hand nothing more over."""
        self._leaving.set()
        self._woken.set()

    def join(self, end: float) -> None:
        """Wait for its end until a time (s) of the monotonic clock."""
        self._thread.join(max(0.0, end - monotonic()))

    def forget(self) -> None:
        """Let the place in the answers go, with the query."""
        if self._queries.journal is not None:
            self._queries.journal.note("sink", self._record, None)

    def _kept(self) -> Mapping[str, Any]:
        journal = self._queries.journal
        records = {} if journal is None else journal.state.records("sink")
        record: Mapping[str, Any] = records.get(self._record, {})
        return record

    def _run(self) -> None:
        """Deliver until it is stopped; a sink that cannot be opened or fails is opened again."""
        backoff = Backoff(Random())
        while not self._leaving.is_set():
            try:
                self._deliver(backoff)
            except (SourceError, UnknownQueryError, NotDurableError) as error:
                # Once for each reason: the sink is tried again every few seconds, perhaps for days.
                if self.fault != str(error):
                    _LOG.error("the sink is away: %s", error, extra=self._about)
                self.fault = str(error)
                self._leaving.wait(backoff.next())

    @property
    def _about(self) -> dict[str, Any]:
        return fields(query=self.query, sink=self.sink)

    def _deliver(self, backoff: Backoff) -> None:
        sink = self._open(self._url)
        try:
            self._place(sink)
            subscription = self._queries.subscribe(self._queries.query(self.query), self.number, self._woken.set, OWNER)
            self.fault = ""
            backoff.reset()
            try:
                self._follow(sink, subscription)
            finally:
                subscription.close()
        finally:
            self._tell(sink.close(LEAVE_S if self._leaving.is_set() else None))

    def _place(self, sink: Sink) -> None:
        """Bring a sink back to its mark; its first one is durable before anything is sent. NotDurableError."""
        if self._queries.journal is not None and isinstance(sink, Settling):
            sink.hold()
        if not isinstance(sink, Marked):
            return
        if self._mark is not None:
            # Cuts off what was written after the mark: those answers are going to be sent again.
            sink.restore(self._mark)
            return
        self._mark = sink.mark()
        if (journal := self._queries.journal) is not None:
            journal.wait(journal.note("sink", self._record, {"number": self.number, "mark": self._mark}), DURABLE_S)

    def _follow(self, sink: Sink, subscription: AnswerSubscription[bytes]) -> None:
        """Hand answers over until the sink is stopped, the query ends, or the sink is too far behind."""
        while not self._leaving.is_set():
            # Cleared before taking: an answer that comes in between sets it again, and is not waited for.
            self._woken.clear()
            # Read before the answers, so that the last ones are taken before the end is acted on.
            over = subscription.over
            if missed := subscription.missed:
                _LOG.warning("%d answers were let go before the sink took them", missed, extra=self._about)
            answers = subscription.take()
            for answer in answers:
                # The key is the same after a restart, by which a receiver recognises an answer that is sent twice.
                if message := self._encode(answer.line):
                    sink.send(message, f"{self.query}/{answer.number}")
            if answers:
                self._settle(sink, answers[-1].number)
            elif over is not None:
                self._leaving.wait(BEAT_S)
                return
            else:
                self._woken.wait(BEAT_S)

    def _settle(self, sink: Sink, number: int) -> None:
        """Record that all answers up to a number were delivered, or reported as undelivered."""
        if isinstance(sink, Settling):
            while (delivery := sink.settle(BEAT_S)).waiting:
                self.fault = delivery.why or ""
                if self._leaving.is_set():
                    return
            self.fault = ""
            self._tell(delivery)
        self.number = number
        self._mark = sink.mark() if isinstance(sink, Marked) else None
        if self._queries.journal is not None:
            self._queries.journal.note("sink", self._record, {"number": number, "mark": self._mark})

    def _tell(self, delivery: Delivery) -> None:
        # With a journal, what still waits is sent again after a restart, so it is not lost.
        again = 0 if self._queries.journal is None else delivery.waiting
        if (lost := delivery.undelivered - again - self.undelivered) > 0:
            _LOG.error("%d answers not delivered: %s", lost, delivery.why, extra=self._about)
            self.undelivered += lost


def _rows(line: bytes) -> bytes:
    """The line of an answer that has rows; nothing of one without, which is no news for a sink."""
    answer = decode_answer(line)
    return line if answer.added or answer.removed else b""


def _quads(line: bytes) -> bytes:
    """The graph of a report, as N-Quads."""
    element = as_element(decode_answer(line), "", 0)
    encode = stream_formats()["nquads"].encode
    assert encode is not None
    return encode(element) if element.added else b""


class Deliveries:
    """The deliveries of a service by query and URL. Not thread-safe: the folder of queries keeps them."""

    def __init__(self, queries: Queries, open_: OpenSink) -> None:
        self._queries, self._open = queries, open_
        self._running: dict[tuple[str, str], AnswerDelivery] = {}

    def run(self, query: str, urls: tuple[str, ...]) -> None:
        """Deliver a query's answers to these sinks, and to no others; SourceError for a URL that is none."""
        for url in urls:
            if message_form(url) == "nquads" and not makes_triples(self._queries.query(query).question.query):
                raise SourceError(f"{parse_address(url).text} takes graphs: ask a CONSTRUCT query")
        for key, delivery in [*self._running.items()]:
            if key[0] == query and key[1] not in urls:
                del self._running[key]
                delivery.stop()
                delivery.forget()
        for url in urls:
            if (query, url) not in self._running:
                self._running[query, url] = AnswerDelivery(self._queries, query, url, self._open)

    def status(self) -> list[AnswerDelivery]:
        """The deliveries that are running."""
        return list(self._running.values())

    def close(self) -> None:
        """End all deliveries to sinks."""
        deliveries = self.status()
        self._running.clear()
        # All are told before any is waited for: together they have `LEAVE_S`.
        for delivery in deliveries:
            delivery.stop()
        end = monotonic() + LEAVE_S
        for delivery in deliveries:
            delivery.join(end)
