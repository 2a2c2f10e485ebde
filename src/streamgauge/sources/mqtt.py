"""MQTT 5: ``mqtt://host:1883/topic`` and ``mqtts://`` (TLS), QoS 1, a session that outlives the connection.

A source acknowledges a message when the next one is requested. A message that a broker redelivers after a lost
connection although it was processed is recognised by its packet identifier and skipped. docs/sources.md lists the
guarantees.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from queue import Empty, SimpleQueue
from random import Random
from threading import Event, Lock
from time import time
from typing import Any, NamedTuple

from streamgauge.formats.lines import Input
from streamgauge.formats.streams import FormatError, Reading
from streamgauge.sources.contract import Address, Delivery, Position, Sink, Source, SourceError, read_options
from streamgauge.sources.decoders import (
    DeadLetters,
    Letter,
    MessageOptions,
    Messages,
    Pending,
    PendingSink,
    RefusalReport,
)
from streamgauge.sources.mqtt_link import TICK_S, Link, MqttSession, client_library, properties

SCHEMES = ("mqtt", "mqtts")

_FIRST = 5.0
"""Timeout of the first connection, s."""
_HEAD = 32
"""Maximum size in bytes of a packet without its topic, key and message."""
_FORGOTTEN = "the broker forgot the session: messages may be missing"


@dataclass(frozen=True, slots=True)
class MqttSourceOptions(MessageOptions):
    """``client`` names a session that the broker keeps for ``session`` ms after a disconnect.

    ``buffer`` messages may be queued here; ``patience`` (ms) is how long the broker may be unavailable.
    """

    client: str | None = None
    session: int = 86_400_000
    buffer: int = 1000
    patience: int = 600_000
    ca: str | None = None


@dataclass(frozen=True, slots=True)
class MqttSinkOptions:
    """``buffer`` messages may be in flight; ``wait`` (ms) for capacity, and for the last ones on closing."""

    client: str | None = None
    buffer: int = 10_000
    wait: int = 30_000
    ca: str | None = None
    dead: str | None = None


def open_source(address: Address, reading: Reading | None, form: str | None) -> Source:
    """A source subscribed to a topic (``#`` is written %23); SourceError if the broker cannot be reached."""
    options = read_options(MqttSourceOptions, address)
    source = MqttSource(address, options, Messages(address, options, reading, form), Random())
    source.open()
    return source


def resume_source(address: Address, reading: Reading | None, form: str | None, position: Position) -> Source:
    """A source that resumes a session; redelivered messages that were processed are skipped."""
    options = read_options(MqttSourceOptions, address)
    source = MqttSource(address, options, Messages(address, options, reading, form), Random(), position)
    source.open()
    return source


def open_sink(address: Address) -> Sink:
    """A sink that publishes to a topic; SourceError if the broker cannot be reached."""
    sink = MqttSink(address, read_options(MqttSinkOptions, address), Random())
    sink.open()
    return sink


class KnownMessage(NamedTuple):
    """A delivered message: its number here, packet identifier and digest, by which a redelivery is recognised."""

    ordinal: int
    mid: int
    digest: str


class MqttPlace(NamedTuple):
    """The messages delivered so far, whether the last had QoS 0, and how many items of the next one were delivered."""

    messages: int
    weak: bool
    begun: KnownMessage | None = None
    items: int = 0


REMEMBERED = 1000
"""Delivered messages that a position lists: more than a broker has in flight for a client (mosquitto: 20)."""


@dataclass(slots=True)
class Received:
    """A message, the connection that last delivered it, and whether it was processed (its bytes are then dropped)."""

    mid: int
    qos: int
    topic: str
    payload: bytes
    arrived: int
    connection: int
    digest: bytes
    taken: bool = False


class MqttSource(RefusalReport):
    """A subscription; a message is acknowledged when the next one is requested, or when it is settled."""

    def __init__(
        self,
        address: Address,
        options: MqttSourceOptions,
        messages: Messages,
        random: Random,
        after: Position | None = None,
    ) -> None:
        # ``None`` until ``hold``: then a message is acknowledged as soon as the next one is requested.
        self._unsettled: deque[tuple[int, Received]] | None = None
        self._taken = deque[KnownMessage](maxlen=REMEMBERED)
        self._place = MqttPlace(0, weak=False)
        before = after or {"taken": [], "begun": None, "items": 0, "weak": False}
        self._before: dict[int, str] = dict(before["taken"])
        self._begun = (tuple(before["begun"]), before["items"]) if before["begun"] else None
        # Not redelivered: those published while no process ran are gone.
        self.lost = "messages of QoS 0 are sent once: publish with QoS 1" if before["weak"] else ""
        self._address, self._options, self._messages = address, options, messages
        self._refusals = messages.refusals
        self._topic = _topic(address)
        # Unbounded here: the receive maximum of the session bounds QoS 1, ``_received`` bounds QoS 0.
        self._queue: SimpleQueue[Received | FormatError] = SimpleQueue()
        self._done: deque[Received] = deque()
        self._seen: dict[int, Received] = {}  # the last message under each of the 65,535 packet identifiers
        self._connections = 0
        self._count = 0
        self._closing = Event()
        client = options.client or f"streamgauge-{random.getrandbits(64):x}"
        session = MqttSession(client, options.session // 1000, options.buffer, options.client is not None)
        self._link = Link(address, session, self, random, options.ca)

    def open(self) -> None:
        """Connect and subscribe; SourceError."""
        self._link.open(_FIRST)

    def items(self) -> Iterator[Input]:
        """The elements and advances of the messages in their order."""
        while (received := self._next()) is not None:
            if isinstance(received, FormatError):
                self._messages.refuse(received)
                continue
            self._count += 1
            place = f"{self._address.text}: topic {received.topic}, message {self._count}"
            yield from self._counted(received, self._messages.items(received.payload, place, received.arrived))
            if self._unsettled is None:
                self._done.append(received)
                self._link.wake()
            else:
                self._unsettled.append((self._count, received))

    def _counted(self, received: Received, items: Sequence[Input]) -> Iterator[Input]:
        """The items of a message that an earlier process has not read; updates the place after each."""
        message = KnownMessage(self._count, received.mid, received.digest.hex())
        # The number here starts at 1 in each process; identifier and digest are what both processes know.
        passed = self._begun[1] if self._begun is not None and self._begun[0] == message[1:] else 0
        self._taken.append(message)
        for count, item in enumerate(items[passed:], passed + 1):
            last = count == len(items)
            self._place = (
                MqttPlace(self._count, not received.qos) if last else MqttPlace(self._count - 1, False, message, count)
            )
            yield item
        # Also for a message without items, which the loop above has not passed.
        self._place = MqttPlace(self._count, not received.qos)

    def hold(self, *, apart: bool = True) -> bool:  # noqa: ARG002
        """Acknowledge only settled messages; true, as a broker allows few messages in flight."""
        self._unsettled = deque()
        return True

    def place(self) -> MqttPlace:
        """The number of messages read so far."""
        return self._place

    def position(self, place: MqttPlace) -> Position | None:
        """The messages that the broker may redeliver; ``None`` without a named session."""
        if self._options.client is None:
            return None
        # A copy, as the reading thread may append meanwhile.
        recent = [message[1:] for message in self._taken.copy() if message.ordinal <= place.messages]
        taken = [*self._before.items(), *recent][-REMEMBERED:]
        begun = None if place.begun is None else place.begun[1:]
        return {"taken": taken, "begun": begun, "items": place.items, "weak": place.weak}

    def settle(self, place: MqttPlace) -> None:
        """Acknowledge the messages up to a place."""
        unsettled = self._unsettled or ()
        while unsettled and unsettled[0][0] <= place.messages:
            self._done.append(unsettled.popleft()[1])
        self._link.wake()

    def close(self) -> None:
        """Acknowledge the processed messages and stop; a named session is kept."""
        if not self._closing.is_set():
            self._closing.set()
            self._link.close()

    def prepare(self, client: Any) -> None:
        """Set the callbacks of a new connection."""
        client.on_subscribe = self._subscribed
        client.on_message = self._received

    def connected(self, client: Any, known: bool) -> None:
        """Subscribe on a new connection; a session that the broker has lost is reported as refused."""
        # On the first connection an unknown session is a new one, not a lost one.
        if self._connections and not known:
            self._queue.put(FormatError(f"{self._address.text}: {_FORGOTTEN}"))
        self._connections += 1
        paho = client_library(self._address)
        # A resumed session has processed the retained message already.
        how = paho.SubscribeOptions(qos=1, retainHandling=paho.SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
        client.subscribe(self._topic, options=how)

    def work(self, client: Any) -> None:
        """Acknowledge processed messages, in the link's thread."""
        while self._done:
            received = self._done.popleft()
            received.taken, received.payload = True, b""
            # An acknowledgement is valid only on the connection that delivered the message (MQTT 5, 4.4); on a later
            # one the broker delivers it again.
            if received.connection == self._connections and received.qos:
                client.ack(received.mid, received.qos)

    def _subscribed(self, _client: Any, _data: Any, _mid: int, reasons: Any, _properties: Any) -> None:
        if reasons[0].is_failure:
            self._link.fail(f"the broker refuses the topic {self._topic}: {reasons[0]}")
        else:
            self._link.grant()

    def _received(self, client: Any, _data: Any, message: Any) -> None:
        digest = blake2b(message.topic.encode() + b"\n" + message.payload, digest_size=16).digest()
        # Packet identifiers are reused, so a redelivery is one with the DUP flag and the same content.
        before = self._seen.get(message.mid) if message.qos and message.dup else None
        # Processed by the earlier process, which could not acknowledge it any more.
        if message.qos and message.dup and self._before.get(message.mid) == digest.hex():
            client.ack(message.mid, message.qos)
            return
        self._before.pop(message.mid, None)  # the identifier now belongs to another message
        if before is not None and before.digest == digest:
            before.connection = self._connections  # acknowledge it on this connection later
            if before.taken:
                client.ack(message.mid, message.qos)
            return
        # The receive maximum bounds messages of QoS 1 in flight, but not those of QoS 0.
        if not message.qos and self._queue.qsize() >= self._options.buffer:
            self._queue.put(
                FormatError(
                    f"{self._address.text}: a message of QoS 0 was dropped as the buffer is full: publish with QoS 1"
                )
            )
            return
        arrived = int(time() * 1000)
        connection = self._connections
        received = Received(message.mid, message.qos, message.topic, message.payload, arrived, connection, digest)
        self._queue.put(received)
        if message.qos:
            self._seen[message.mid] = received

    def _next(self) -> Received | FormatError | None:
        """The next message, ``None`` after closing; SourceError if the broker refuses or stays unavailable."""
        while not self._closing.is_set():
            try:
                return self._queue.get(timeout=TICK_S)
            except Empty:
                if self._link.fault is not None:
                    raise SourceError(f"{self._address.text}: {self._link.fault}") from None
                if self._link.away() > self._options.patience / 1000:
                    away = f"the broker was unavailable for more than {self._options.patience} ms: {self._link.trouble}"
                    raise SourceError(f"{self._address.text}: {away}") from None
        return None


class MqttSink(PendingSink):
    """Publishes with QoS 1, in order; unacknowledged messages are published again on the next connection."""

    def __init__(self, address: Address, options: MqttSinkOptions, random: Random) -> None:
        self._address = address
        self._topic = _topic(address)
        dead = DeadLetters(options.dead, address.text)
        self._pending = Pending(options.buffer, options.wait / 1000, dead, self._why)
        self._waiting: deque[Letter] = deque()
        self._published: OrderedDict[int, Letter] = OrderedDict()
        self._largest: int | None = None
        self._lock = Lock()
        self._result: Delivery | None = None
        client = options.client or f"streamgauge-{random.getrandbits(64):x}"
        self._link = Link(address, MqttSession(client, 0), self, random, options.ca)

    def open(self) -> None:
        """Connect to the broker; SourceError."""
        self._link.open(_FIRST)

    def send(self, message: bytes, key: str | None = None) -> None:
        """Hand over a message; the key becomes the user property ``key``."""
        if self._result is not None:
            raise SourceError(f"{self._address.text}: the sink is closed")
        if self._pending.enter(letter := Letter(message, key)):
            self._waiting.append(letter)
            self._link.wake()

    def _why(self) -> str:
        return self._link.fault or f"not acknowledged: {self._link.trouble}"

    def close(self, patience: float | None = None) -> Delivery:
        """Wait for all acknowledgements, at most for ``wait`` or ``patience`` (s), then disconnect."""
        with self._lock:
            if self._result is None:
                self._result = self._pending.end(patience)
                self._link.close()
                self._pending.bury([*self._published.values(), *self._waiting], self._why())
            return self._result

    def prepare(self, client: Any) -> None:
        """Set the callbacks of a new connection."""
        client.on_publish = self._acknowledged

    def connected(self, client: Any, known: bool) -> None:  # noqa: ARG002
        """Queue unacknowledged messages again, ahead of the waiting ones."""
        # In the order in which they were published first (MQTT 5, 4.6). ``extendleft`` reverses its argument.
        self._waiting.extendleft(reversed(self._published.values()))
        self._published.clear()
        self._link.grant()

    def work(self, client: Any) -> None:
        """Publish the waiting messages, in the link's thread."""
        while self._waiting:
            message, key = letter = self._waiting.popleft()
            # The broker checks the whole packet, not the message.
            size, largest = (
                len(message) + len(self._topic.encode()) + len((key or "").encode()) + _HEAD,
                self._link.largest,
            )
            if largest is not None and size > largest:  # otherwise the broker would close every new connection
                self._pending.lost(f"{len(message)} bytes exceed the broker's maximum packet size of {largest}", letter)
                continue
            how = None if key is None else properties("PUBLISH", UserProperty=("key", key))
            info = client.publish(self._topic, message, qos=1, properties=how)
            self._published[info.mid] = letter

    def _acknowledged(self, _client: Any, _data: Any, mid: int, reason: Any, _properties: Any) -> None:
        # None if the message was queued again on a new connection.
        letter = self._published.pop(mid, None)
        if letter is None:
            return
        if reason.is_failure:
            self._pending.lost(f"the broker refuses a message: {reason}", letter)
        else:
            self._pending.delivered()


def overlaps(source: Address, sink: Address) -> bool:
    """Whether a source receives messages to a sink's topic; its own may have wildcards (MQTT 5, 4.7)."""
    return bool(client_library(source).topic_matches_sub(_topic(source), _topic(sink)))


def _topic(address: Address) -> str:
    topic = address.path.removeprefix("/")
    if not topic or not address.host:
        raise SourceError(f"{address.text}: expected mqtt://host/topic")
    return topic
