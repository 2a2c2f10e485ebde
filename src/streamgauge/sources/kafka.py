"""Kafka: ``kafka://host:9092/topic``, and ``kafkas://`` (TLS); an idempotent producer, a consumer with offsets.

librdkafka reconnects by itself, with exponential backoff and jitter. docs/sources.md lists the guarantees.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event, Lock, Thread
from time import monotonic, time
from typing import Any, Literal, NamedTuple

from streamgauge.formats.lines import Input
from streamgauge.formats.streams import FormatError, Reading
from streamgauge.model.element import StreamElement
from streamgauge.sources.contract import (
    Address,
    Delivery,
    Position,
    Sink,
    Source,
    SourceError,
    parse_address,
    read_options,
)
from streamgauge.sources.decoders import (
    DeadLetters,
    Letter,
    MessageOptions,
    Messages,
    Pending,
    PendingSink,
    RefusalReport,
)
from streamgauge.sources.kafka_partitions import (
    LOG,
    TICK_S,
    KafkaPartitions,
    Sasl,
    SentMessages,
    library,
    reached_by,
    topic_of,
)

SCHEMES = ("kafka", "kafkas")

_FIRST = 5.0
"""Timeout (s) of the first response of a broker."""
_JOINING = 30.0
"""Timeout (s) of joining a group, which includes the broker's timeout for a member that vanished."""

_ANY_ORDER = Reading(lateness=1 << 62)
"""Accepts any order, as the consumer of the elements decides about lateness."""


@dataclass(frozen=True, slots=True)
class KafkaSourceOptions(MessageOptions):
    """``group`` stores its offsets at the broker; without offsets, reading begins ``from`` earliest or latest.

    ``until=end`` stops at the topic's end on opening; ``patience`` (ms) is how long the brokers may be unavailable.
    """

    group: str | None = None
    from_: Literal["earliest", "latest"] = "latest"
    until: Literal["close", "end"] = "close"
    patience: int = 600_000
    brokers: str = ""
    sasl: Sasl = "PLAIN"
    ca: str | None = None


@dataclass(frozen=True, slots=True)
class KafkaSinkOptions:
    """``buffer`` messages may be in flight, each for ``patience`` ms; ``wait`` (ms) for capacity, and on closing."""

    buffer: int = 10_000
    wait: int = 30_000
    patience: int = 300_000
    brokers: str = ""
    sasl: Sasl = "PLAIN"
    ca: str | None = None
    dead: str | None = None


def open_source(address: Address, reading: Reading | None, form: str | None) -> Source:
    """A source of all partitions of a topic; SourceError if no broker responds or the topic does not exist."""
    options = read_options(KafkaSourceOptions, address)
    return KafkaSource(address, options, Messages(address, options, reading, form))


def open_sink(address: Address) -> Sink:
    """A sink that produces to a topic; SourceError if no broker responds."""
    return KafkaSink(address, read_options(KafkaSinkOptions, address))


def resume_source(address: Address, reading: Reading | None, form: str | None, position: Position) -> Source:
    """A source of a topic from the offsets of a position on."""
    options = read_options(KafkaSourceOptions, address)
    return KafkaSource(address, options, Messages(address, options, reading, form), position)


class KafkaPlace(NamedTuple):
    """The next offsets by partition, and the number of items already read of the next message of ``partition``."""

    offsets: Mapping[int, int]
    partition: int = 0
    items: int = 0


class KafkaSource(RefusalReport):
    """A topic's messages; requesting the next one marks the previous as processed."""

    def __init__(
        self, address: Address, options: KafkaSourceOptions, messages: Messages, after: Position | None = None
    ) -> None:
        self.lost = ""
        self._place = KafkaPlace({})
        if after is not None:
            offsets = {int(partition): offset for partition, offset in after["offsets"].items()}
            self._place = KafkaPlace(offsets, after["partition"], after["items"])
        # A position needs the offsets of silent partitions as well: without one, the next process would begin at the
        # partition's end and miss what arrived in between.
        self._known = self._place.offsets
        self._address, self._options, self._messages = address, options, messages
        self._refusals = messages.refusals
        self._topic = topic_of(address)
        self._library = library(address)
        self._lost_at: float | None = None
        self._last_trouble = ""
        self._ends: dict[int, int] = {}
        self._early: deque[Any] = deque()
        self._given_any = False
        self._closing = Event()
        self._lock = Lock()
        self._consumer = self._library.Consumer(
            {
                **reached_by(address, options),
                # The client requires a group even for partitions assigned by hand; without commits it has no effect.
                "group.id": options.group or "streamgauge",
                "enable.auto.commit": options.group is not None,
                "auto.commit.interval.ms": 1000,
                # An offset is stored only when its items were consumed, else a crash would lose them.
                "enable.auto.offset.store": False,
                # An expired offset becomes an event (``_event``), so that missing messages are reported.
                "auto.offset.reset": "error",
                "enable.partition.eof": options.until == "end",
                "error_cb": self._trouble,
            },
            logger=LOG,
        )
        try:
            # librdkafka reports the reason only to ``error_cb``, which runs within ``poll``.
            self._begin()
        except self._library.KafkaException as error:
            self._consumer.poll(0)
            self._consumer.close()
            raise SourceError(f"{address.text}: {error.args[0].str()}: {self._last_trouble}") from error
        except SourceError:
            self._consumer.close()
            raise

    def items(self) -> Iterator[Input]:
        """The elements and advances of the messages, in the order of each partition."""
        while (message := self._next()) is not None:
            place = f"{self._address.text}: topic {message.topic()}, partition {message.partition()}"
            kind, stamp = message.timestamp()
            arrived = int(time() * 1000) if kind == self._library.TIMESTAMP_NOT_AVAILABLE else stamp
            where = f"{place}, offset {message.offset()}"
            items = self._messages.items(message.value() or b"", where, arrived)
            before, partition = self._place, message.partition()
            # Only the first message after the position can have been read in part; the place moves beyond it below.
            passed = before.items if before.partition == partition else 0
            for count, item in enumerate(items[passed:], passed + 1):
                self._place = KafkaPlace(before.offsets, partition, count)
                # Set before the last item is yielded: a place taken then is behind the message, which need not be
                # decoded again.
                if count == len(items):
                    self._place = KafkaPlace({**before.offsets, partition: message.offset() + 1})
                yield item
            self._taken(message)

    def hold(self, *, apart: bool = True) -> bool:  # noqa: ARG002
        """Do nothing: a position has its own offsets, independent of the group's."""
        return False

    def place(self) -> KafkaPlace:
        """The next offsets, and the items read of an incomplete message."""
        return self._place

    def position(self, place: KafkaPlace) -> Position | None:
        """The place with the offsets of all assigned partitions."""
        offsets = {str(partition): offset for partition, offset in {**self._known, **place.offsets}.items()}
        return {"offsets": offsets, "partition": place.partition, "items": place.items}

    def settle(self, place: object) -> None:
        """Do nothing: a position has its own offsets, independent of the group's."""

    def close(self) -> None:
        """Commit the group's offsets and stop."""
        self._closing.set()
        with self._lock:
            self._consumer.close()

    def _begin(self) -> None:
        """Assign the partitions with their start offsets, or join the group."""
        topic = self._consumer.list_topics(self._topic, timeout=_FIRST).topics[self._topic]
        if topic.error is not None:
            raise SourceError(f"{self._address.text}: topic {self._topic}: {topic.error.str()}")
        if self._options.group is None:
            partitions = [self._library.TopicPartition(self._topic, number) for number in topic.partitions]
            self._consumer.assign(self._places(partitions))
            return
        self._consumer.subscribe([self._topic], on_assign=self._assigned)
        until = monotonic() + _JOINING
        while not self._given_any:
            if monotonic() > until:
                raise SourceError(
                    f"{self._address.text}: the group {self._options.group} assigns no partition to this member"
                )
            # The ``poll`` that lets the client join the group may already return a message.
            self._early.append(self._consumer.poll(TICK_S))

    def _assigned(self, consumer: Any, partitions: Sequence[Any]) -> None:
        consumer.assign(self._places(partitions))
        self._given_any = True

    def _places(self, partitions: Sequence[Any]) -> list[Any]:
        """The partitions with their start offsets: the group's, else the earliest or the current end."""
        known = self._consumer.committed(list(partitions), timeout=_FIRST) if self._options.group else partitions
        self._ends = {}
        for place in known:
            low, high = self._consumer.get_watermark_offsets(place, timeout=_FIRST)
            # A position takes precedence over the group's offsets, which are committed only every second.
            place.offset = self._place.offsets.get(place.partition, place.offset)
            # Negative offsets are the client's markers, here for "nothing committed".
            if place.offset < 0:
                place.offset = low if self._options.from_ == "earliest" else high
            if self._options.until == "end" and place.offset < high:
                self._ends[place.partition] = high
        self._known = {**self._known, **{place.partition: place.offset for place in known}}
        return list(known)

    def _next(self) -> Any:
        """The next message, ``None`` at the end or after closing; SourceError if reading cannot continue."""
        # Polling is short and under the lock, so that ``close`` from another thread waits for one tick at most.
        while self._options.until == "close" or self._ends:
            with self._lock:
                if self._closing.is_set():
                    return None
                try:
                    message = self._early.popleft() if self._early else self._consumer.poll(TICK_S)
                    self._look()
                    if message is not None and message.error() is not None:
                        self._event(message, message.error())
                        message = None
                except self._library.KafkaException as error:
                    raise SourceError(f"{self._address.text}: {error.args[0].str()}") from error
            if message is not None:
                self._lost_at = None
                return message
        return None

    def _event(self, message: Any, error: Any) -> None:
        """Handle an event instead of a message: the end of a partition, a lost offset, or an error."""
        codes = self._library.KafkaError
        if error.code() == codes._PARTITION_EOF:
            self._reached(message.partition(), message.offset())
        # The messages were deleted by retention before they were read: refused like a bad message, then read on from
        # the first one that is left.
        elif error.code() == codes._AUTO_OFFSET_RESET:
            place = self._library.TopicPartition(self._topic, message.partition())
            place.offset, _ = self._consumer.get_watermark_offsets(place, timeout=_FIRST)
            missing = f"partition {place.partition}: messages are missing before offset {place.offset}"
            self._messages.refuse(FormatError(f"{self._address.text}: topic {self._topic}, {missing}: {error.str()}"))
            self._consumer.seek(place)
        # The client reconnects after these two; how long that may take is decided in ``_look``.
        elif not error.retriable() and error.code() not in (codes._TRANSPORT, codes._ALL_BROKERS_DOWN):
            raise self._library.KafkaException(error)

    def _reached(self, partition: int, offset: int) -> None:
        # Offsets have holes (compaction, transactions), so the last one may be beyond the end that was seen at the
        # start.
        if offset >= self._ends.get(partition, offset + 1):
            del self._ends[partition]

    def _taken(self, message: Any) -> None:
        """Store the offset after a message, unless its partition has been assigned to another member."""
        self._reached(message.partition(), message.offset() + 1)
        with self._lock:
            if self._options.group is not None and not self._closing.is_set():
                # A rebalance may have taken the partition away since; its new owner reads from the last committed
                # offset.
                with suppress(self._library.KafkaException):
                    self._consumer.store_offsets(message=message)

    def _trouble(self, error: Any) -> None:
        """Record an error of the brokers, as librdkafka's callback."""
        # A single broker may be down without loss: librdkafka reads from the others.
        if error.code() == self._library.KafkaError._ALL_BROKERS_DOWN and self._lost_at is None:
            self._lost_at = monotonic()
        self._last_trouble = error.str()

    def _look(self) -> None:
        """Contact the brokers if they were unavailable for too long; SourceError if they do not respond."""
        if self._lost_at is None or (monotonic() - self._lost_at) * 1000 < self._options.patience:
            return
        try:
            self._consumer.list_topics(self._topic, timeout=1.0)
            self._lost_at = None
        except self._library.KafkaException as error:
            away = f"the brokers were unavailable for more than {self._options.patience} ms: {self._last_trouble}"
            raise SourceError(f"{self._address.text}: {away}") from error


class KafkaSink(PendingSink):
    """Produces with full acknowledgement and idempotence: in order and once, for the lifetime of this producer.

    Another one can continue from a mark without duplicates.
    """

    def __init__(self, address: Address, options: KafkaSinkOptions) -> None:
        self._address = address
        self._topic = topic_of(address)
        self._library = library(address)
        dead = DeadLetters(options.dead, address.text)
        self._pending = Pending(options.buffer, options.wait / 1000, dead, self._why)
        self._sent = SentMessages(address, reached_by(address, options), options.wait)
        self._last_trouble = ""
        self._lock = Lock()
        self._result: Delivery | None = None
        self._producer = self._library.Producer(
            {
                **reached_by(address, options),
                "acks": "all",
                "enable.idempotence": True,
                "delivery.timeout.ms": options.patience,
                # Never full before ``Pending``, which bounds the messages in flight.
                "queue.buffering.max.messages": options.buffer + 1,
                "linger.ms": 5,
                "error_cb": self._trouble,
            },
            logger=LOG,
        )
        try:
            self._producer.list_topics(timeout=_FIRST)
        except self._library.KafkaException as error:
            self._producer.poll(0)
            del self._producer
            raise SourceError(f"{address.text}: {error.args[0].str()}: {self._last_trouble}") from error
        self._stopping = Event()
        self._thread = Thread(target=self._serve, name=f"kafka {address.host}", daemon=True)
        self._thread.start()

    def send(self, message: bytes, key: str | None = None) -> None:
        """Hand over a message; messages of one key stay in order in one partition."""
        producer = self._producer
        if self._result is not None or producer is None:
            raise SourceError(f"{self._address.text}: the sink is closed")
        # The client's own queue would refuse with BufferError at once, without waiting for capacity.
        if not self._pending.enter(letter := Letter(message, key)):
            return
        # An earlier process has sent it.
        if self._sent.has(message):
            self._pending.delivered()
            return
        try:
            producer.produce(self._topic, message, key=key, headers=self._sent.headers, on_delivery=self._delivered)
        except (self._library.KafkaException, BufferError) as error:
            self._pending.lost(str(error), letter)

    def _why(self) -> str:
        return self._last_trouble or "not acknowledged in time"

    def mark(self) -> Any:
        """The writer's name and the offsets after its last messages, and the end of the dead letters."""
        return {"sent": self._sent.mark(), "dead": self._pending.mark()}

    def restore(self, mark: Any) -> None:
        """Skip the messages that were sent or became dead letters since a mark when they are sent again."""
        if mark is not None:
            self._sent.restore(mark["sent"])
            self._pending.restore(mark["dead"])

    def close(self, patience: float | None = None) -> Delivery:
        """Wait for all acknowledgements, at most for ``wait`` or ``patience`` (s), then stop the producer."""
        with self._lock:
            if self._result is None:
                self._result = self._pending.end(patience)
                # Messages still in flight are given up by their callbacks within the last ``flush``.
                self._producer.purge()
                self._stopping.set()
                self._thread.join()
                self._producer.flush(1.0)
                # Its callbacks are ours: kept alive by that cycle it would log that it cannot reach its brokers.
                self._producer = None
            return self._result

    def _serve(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(TICK_S)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self._sent.delivered(message.partition(), message.offset())
            self._pending.delivered()
        else:
            key = message.key()
            self._pending.lost(error.str(), Letter(message.value() or b"", None if key is None else key.decode()))

    def _trouble(self, error: Any) -> None:
        self._last_trouble = error.str()


class Logged(NamedTuple):
    """An element, the offset of its message, its position in the message, and its arrival at the broker (ms)."""

    offset: int
    item: int
    arrived: int
    element: StreamElement


class KafkaLog:
    """Kafka by offsets, for readers that store offsets themselves: the same offsets give the same elements.

    The topic is that of a URL (``kafka://host/topic``); SourceError for a wrong URL, topic or broker.
    """

    def __init__(self, url: str) -> None:
        self._address = parse_address(url)
        self._options = replace(read_options(KafkaSourceOptions, self._address), lateness=None)
        self._messages = Messages(self._address, self._options, _ANY_ORDER, None)
        self._topic, self._library = topic_of(self._address), library(self._address)
        self._partitions = KafkaPartitions(self._address, reached_by(self._address, self._options))

    def begins(self) -> dict[int, int]:
        """The first offset to read in each partition: its end, or its first message with ``from=earliest``."""
        earliest = self._options.from_ == "earliest"
        return {number: low if earliest else high for number, (low, high) in self._partitions.borders().items()}

    def ends(self) -> dict[int, int]:
        """The offset after the last message of each partition."""
        return {number: high for number, (_, high) in self._partitions.borders().items()}

    def between(self, partition: int, start: int, end: int) -> Iterator[Logged]:
        """The elements of a partition's messages from offset ``start`` to ``end``, excluded.

        Advances are left out. SourceError if messages have expired.
        """
        for message in self._partitions.between(partition, start, end, self._options.patience):
            yield from self._elements(message)

    def close(self) -> None:
        """Close the connection to the brokers."""
        self._partitions.close()

    def _elements(self, message: Any) -> Iterator[Logged]:
        kind, stamp = message.timestamp()
        arrived = 0 if kind == self._library.TIMESTAMP_NOT_AVAILABLE else stamp
        place = f"{self._address.text}: topic {self._topic}, partition {message.partition()}, offset {message.offset()}"
        for item, element in enumerate(self._messages.items(message.value() or b"", place, arrived)):
            if isinstance(element, StreamElement) and element.added:
                yield Logged(message.offset(), item, arrived, replace(element, removed=()))
