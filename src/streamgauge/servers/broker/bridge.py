"""A bridge between a broker and message streams (MQTT, Kafka, files): messages in, notifications out.

A message becomes a publication of what it adds and removes. It is acknowledged only after the broker has acknowledged
the publication, so that a transport that stores messages (MQTT with a named session) loses none. A notification is
acknowledged when the sink has delivered it. Both directions deliver at least once.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from queue import SimpleQueue
from random import Random
from threading import Event, Thread
from time import monotonic
from typing import Final, TypeVar
from urllib.parse import urlencode

from streamgauge.formats.results import results
from streamgauge.formats.streams import Reading, one_by_one
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import counted
from streamgauge.model.terms import Triple
from streamgauge.servers.broker.client import Client, Told
from streamgauge.servers.broker.reconnection import BUSY, PATIENCE_S, AwayError, BrokerError, Reconnection, Tell, log
from streamgauge.servers.sinks import open_sink
from streamgauge.sources import Sink, Source, SourceError, open_source
from streamgauge.sources.backoff import Backoff
from streamgauge.sources.contract import Address, Settling, parse_address
from streamgauge.sources.mqtt import overlaps

Got = TypeVar("Got")

MESSAGES: Final = ("mqtt", "mqtts", "kafka", "kafkas", "sse+http", "sse+https")
"""Transports of messages; times are not needed here, because a broker's facts have none."""

_LINES: Final = "application/n-triples"
_ANY_LATENESS: Final = 2**53
"""Lateness (ms) that refuses no element: a broker does not depend on the order of times."""


class BridgeError(MistakeError, ValueError):
    """An impossible bridge, or a message that cannot cross it; the sentence says what to do."""


@dataclass(frozen=True, slots=True)
class Inlet:
    """A source whose elements are published, or with ``deletes`` deleted."""

    address: str
    deletes: bool = False


@dataclass(frozen=True, slots=True)
class Outlet:
    """A channel whose notifications go to a sink.

    ``name`` is the subscriber whose acknowledgements record deliveries.
    """

    channel: str
    address: str
    name: str


def read_outlet(text: str, name: str | None = None) -> Outlet:
    """Parse ``CHANNEL=URL``; the default name is derived from the text. BridgeError."""
    channel, equals, address = text.partition("=")
    if not channel or not equals or not address:
        raise BridgeError(f"{text!r}: write CHANNEL=URL, as in people=mqtt://localhost/people")
    # A hash of the text, so that the same outlet has the same name in the next run, and goes on where this one stopped.
    return Outlet(channel, address, name or f"bridge:{sha256(text.encode()).hexdigest()[:32]}")


def as_messages(url: str) -> str:
    """The address of a source with defaults for messages: Turtle, and the time of arrival."""
    address = parse_address(url)
    unless = {"form": "turtle", "time": "arrival"} if address.scheme in MESSAGES else {}
    options = urlencode({name: value for name, value in unless.items() if name not in address.options})
    return f"{url}{'&' if '?' in url else '?'}{options}" if options else url


class Bridge:
    """Runs until all sources and channels have ended, or one of them fails; each has a thread.

    ``connect`` creates a client of the broker at ``url``. ``run`` is a text unique to this run, the prefix of its
    idempotency keys. Refusals of the broker are passed to ``refuse``, which raises to stop the bridge.
    """

    def __init__(
        self,
        url: str,
        connect: Callable[[], Client],
        inlets: Sequence[Inlet],
        outlets: Sequence[Outlet],
        run: str,
        *,
        refuse: Callable[[BrokerError], None] | None = None,
        patience: float = PATIENCE_S,
        tell: Tell = log,
        random: Random | None = None,
    ) -> None:
        refuse_circles([inlet.address for inlet in inlets], [outlet.address for outlet in outlets])
        self._url, self._connect, self._run = url, connect, run
        self._inlets, self._outlets = inlets, outlets
        self._refuse, self._patience, self._tell, self._random = refuse or _stop, patience, tell, random or Random()
        self._ending, self._ended = Event(), SimpleQueue[BaseException | None]()
        self._sources: list[Source] = []
        self._sinks: list[Sink] = []

    def open(self) -> None:
        """Connect to all sources and sinks; SourceError."""
        try:
            for inlet in self._inlets:
                self._sources.append(open_source(as_messages(inlet.address), Reading(lateness=_ANY_LATENESS)))
            for outlet in self._outlets:
                self._sinks.append(sink := open_sink(outlet.address))
                if isinstance(sink, Settling):
                    sink.hold()
        except SourceError:
            self.close()
            raise

    def run(self) -> None:
        """Run until everything has ended; BrokerError, AwayError, SourceError or BridgeError of the first failure."""
        inward = zip(self._inlets, self._sources, strict=True)
        outward = zip(self._outlets, self._sinks, strict=True)
        works = [partial(self._publish, number, *pair) for number, pair in enumerate(inward)]
        works += [partial(self._deliver, *pair) for pair in outward]
        for work in works:
            Thread(target=self._watched, args=(work,), name="streamgauge-bridge", daemon=True).start()
        for _ in works:
            error = self._ended.get()
            if error is not None:
                raise error

    def close(self, patience: float | None = None) -> list[str]:
        """Stop; a sentence per sink that has not taken all; the next bridge sends it again, except for dead letters.

        ``patience`` (s): how long sinks may take to deliver pending messages (default: each sink's own time).
        """
        self._ending.set()
        for source in self._sources:
            source.close()
        # One deadline for all sinks together.
        end = None if patience is None else monotonic() + patience
        sentences: list[str] = []
        # Fewer sinks than outlets if ``open`` failed half-way.
        for outlet, sink in zip(self._outlets, self._sinks, strict=False):
            delivery = sink.close(None if end is None else max(0.0, end - monotonic()))
            if delivery.undelivered:
                lost = counted(delivery.undelivered, "notification")
                place = parse_address(outlet.address).text
                # Dead letters count as delivered: `_deliver` has acknowledged them.
                again = ", the next bridge sends it again" if delivery.missing else ""
                sentences.append(f"{place}: {lost} not delivered{again}: {delivery.why}")
        return sentences

    def _watched(self, work: Callable[[], None]) -> None:
        try:
            work()
        # Also what is not an Exception: ``run`` waits for the end of every thread.
        except BaseException as error:
            self._ended.put(error)
        else:
            self._ended.put(None)

    def _publish(self, number: int, inlet: Inlet, source: Source) -> None:
        with self._connect() as client:
            for count, item in enumerate(one_by_one(source.items())):
                if isinstance(item, StreamElement):
                    # The count is of the source's items in this run, and so the same for every repetition of the
                    # request.
                    self._hand_on(client, inlet, item, f"bridge:{self._run}:{number}:{count}")

    def _hand_on(self, client: Client, inlet: Inlet, element: StreamElement, key: str) -> None:
        """Publish an element, repeating the request with the same key until the broker has acknowledged it."""
        if element.until is not None:
            raise BridgeError(f"element {element.sequence} of {inlet.address} ends at a time: a broker's facts do not")
        added, removed = (element.removed, element.added) if inlet.deletes else (element.added, element.removed)
        try:
            if added and removed:
                # One request for both: with two, subscribers would see the state in between as a change of its own.
                text = f"DELETE DATA {{ {_lines(removed)} }} ; INSERT DATA {{ {_lines(added)} }}"
                self._persist(lambda: client.update(text, key))
            elif added:
                self._persist(lambda: client.publish(_lines(added), _LINES, key))
            elif removed:
                self._persist(lambda: client.delete(_lines(removed), _LINES, key))
        # An AwayError is a BrokerError too, but the broker has refused nothing: the next run sends the element again.
        except AwayError:
            raise
        except BrokerError as error:
            self._refuse(BrokerError(f"element {element.sequence} of {inlet.address}: {error}", error.status))

    def _persist(self, send: Callable[[], Got]) -> Got:
        # New for each request: patience counts from its own first failure.
        again = Reconnection(self._url, Backoff(self._random), self._patience, self._tell)
        while True:
            try:
                return send()
            except BrokerError as error:
                if not isinstance(error, AwayError) and error.status not in BUSY:
                    raise
                wait = again.after(error)
            self._rest(wait)

    def _deliver(self, outlet: Outlet, sink: Sink) -> None:
        """Deliver notifications one by one: asking for the next one acknowledges this one."""
        with self._connect() as client:
            heard = client.subscribe(
                outlet.channel,
                outlet.name,
                sleep=self._rest,
                random=self._random,
                patience=self._patience,
                tell=self._tell,
            )
            for notification in heard:
                sink.send(message(notification), notification.key)
                delivery = sink.settle() if isinstance(sink, Settling) else None
                if delivery is not None and delivery.missing:
                    raise SourceError(
                        f"{outlet.address}: notification {notification.number} was not delivered: {delivery.why}"
                    )

    def _rest(self, seconds: float) -> None:
        """Wait for ``seconds``; BridgeError as soon as the bridge is closed."""
        if self._ending.wait(seconds):
            # An exception, because it has to end both loops of retries and the generator of notifications.
            raise BridgeError("the bridge is closed")


def message(notification: Told) -> bytes:
    """A notification as a message: the same JSON as over HTTP, on one line."""
    document = {
        "channel": notification.channel,
        "number": notification.number,
        "key": notification.key,
        "publications": list(notification.publications),
        "at": notification.at,
        "added": results(notification.columns, notification.added),
        "removed": results(notification.columns, notification.removed),
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def refuse_circles(sources: Sequence[str], sinks: Sequence[str]) -> None:
    """BridgeError if a sink's messages would come back through a source in an endless loop."""
    for sink in map(parse_address, sinks):
        for source in map(parse_address, sources):
            if _place(source) == _place(sink) and _meets(source, sink):
                raise BridgeError(f"what goes to {sink.text} would come back by {source.text}: take another topic")


def _place(address: Address) -> tuple[str, str, int | None]:
    return address.scheme, address.host, address.port


def _meets(source: Address, sink: Address) -> bool:
    return overlaps(source, sink) if source.scheme.startswith("mqtt") else source.path == sink.path


def _lines(triples: Sequence[Triple]) -> str:
    return "".join(f"{' '.join(triple)} .\n" for triple in triples)


def _stop(error: BrokerError) -> None:
    raise error
