"""Kafka by partitions and offsets: connection settings, messages between two offsets, messages already sent."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import import_module
from time import monotonic
from types import ModuleType
from typing import Any, Final, Literal, Protocol, TypeAlias
from uuid import uuid4

from streamgauge.model.extras import missing
from streamgauge.sources.contract import Address, SourceError

LOG: Final = logging.getLogger(__name__)
# Else Python's handler of last resort would print the client's warnings to stderr.
LOG.addHandler(logging.NullHandler())
TICK_S: Final = 0.2
"""Polling interval, s."""
_RESPONSE_S: Final = 10.0
"""Timeout of a broker's response, s."""
_BATCH_MESSAGES: Final = 2000
"""Maximum number of messages per call of the library."""

Sasl: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class BrokerOptions(Protocol):
    """Connection options of brokers."""

    @property
    def brokers(self) -> str:
        """Brokers in addition to that of the address, separated by commas."""

    @property
    def sasl(self) -> Sasl:
        """The mechanism of authentication."""

    @property
    def ca(self) -> str | None:
        """The file of the authority that signed the brokers' certificates."""


class KafkaPartitions:
    """The partitions of an address's topic, read by offsets and independently of groups; SourceError.

    ``settings`` are librdkafka's connection settings.
    """

    def __init__(self, address: Address, settings: Mapping[str, Any]) -> None:
        self._address, self._topic, self._library = address, topic_of(address), library(address)
        codes = self._library.KafkaError
        self._absent = (codes.UNKNOWN_TOPIC_OR_PART, codes._UNKNOWN_TOPIC)
        self._consumer = self._library.Consumer(
            {
                **settings,
                "group.id": "streamgauge",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
            },
            logger=LOG,
        )

    def borders(self, *, absent: bool = False) -> Mapping[int, tuple[int, int]]:
        """(first offset, offset after the last message) by partition.

        With ``absent`` a missing topic has no partitions.
        """
        try:
            topic = self._consumer.list_topics(self._topic, timeout=_RESPONSE_S).topics[self._topic]
            if absent and topic.error is not None and topic.error.code() in self._absent:
                return {}
            if topic.error is not None:
                raise SourceError(f"{self._address.text}: topic {self._topic}: {topic.error.str()}")
            places = [self._library.TopicPartition(self._topic, number) for number in sorted(topic.partitions)]
            return {
                place.partition: self._consumer.get_watermark_offsets(place, timeout=_RESPONSE_S) for place in places
            }
        except self._library.KafkaException as error:
            raise SourceError(f"{self._address.text}: {error.args[0].str()}") from error

    def between(self, partition: int, start: int, end: int, patience: int) -> Iterator[Any]:
        """The messages of a partition from ``start`` to ``end``, excluded.

        SourceError if messages have expired, or none arrives for ``patience`` ms.
        """
        self._consumer.assign([self._library.TopicPartition(self._topic, partition, start)])
        # Offsets may have holes (compaction, transactions), so progress is the offset, not the number of messages.
        place, last_message = start, monotonic()
        while place < end:
            messages = self._consumer.consume(_BATCH_MESSAGES, TICK_S)
            last_message = monotonic() if messages else last_message
            if (monotonic() - last_message) * 1000 > patience:
                away = f"no message arrived for {patience} ms at offset {place} of {end}"
                raise SourceError(f"{self._address.text}: partition {partition}: {away}")
            for message in messages:
                if message.error() is not None:
                    place = self._after_event(message, partition, place)
                    continue
                place = message.offset() + 1
                if place <= end:
                    yield message

    def close(self) -> None:
        """Close the connection to the brokers."""
        self._consumer.close()

    def _after_event(self, message: Any, partition: int, place: int) -> int:
        """The offset to continue at after an event or a transient error; SourceError for a permanent one."""
        codes, error = self._library.KafkaError, message.error()
        if error.code() == codes._PARTITION_EOF:
            return max(place, int(message.offset()))
        if error.code() == codes._AUTO_OFFSET_RESET:
            gone = f"partition {partition}: the messages from offset {place} on have expired"
            raise SourceError(f"{self._address.text}: topic {self._topic}, {gone}: {error.str()}")
        if not error.retriable() and error.code() not in (codes._TRANSPORT, codes._ALL_BROKERS_DOWN):
            raise SourceError(f"{self._address.text}: {error.str()}")
        return place


WRITER: Final = "streamgauge-writer"
"""The message header with the writer's name."""


class SentMessages:
    """The messages that processes of one writer have sent to a topic, so that the next process sends no duplicates.

    A mark has the writer's name and the offset of each partition after its last message. The writer's messages beyond
    the mark are those that a process sent before it ended without recording that.
    """

    def __init__(self, address: Address, settings: Mapping[str, Any], patience: int) -> None:
        self._address, self._settings, self._patience = address, settings, patience
        self._writer = uuid4().hex
        self._ends: dict[int, int] = {}
        self._known = False
        self._base: dict[int, int] | None = None
        self._duplicates = Counter[bytes]()

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        """The headers that identify the writer."""
        return [(WRITER, self._writer.encode())]

    def mark(self) -> Any:
        """The offsets after the last message, but before duplicates that are still to be skipped."""
        if not self._known:
            self._look()
        # A process that stops before all duplicates came again must find them in the next one, too.
        ends = self._base if self._duplicates and self._base is not None else self._ends
        return {"writer": self._writer, "ends": [*ends.items()]}

    def restore(self, mark: Any) -> None:
        """Read the messages that were sent since a mark."""
        if mark is not None:
            self._writer, self._base = mark["writer"], dict(mark["ends"])
            self._look()

    def delivered(self, partition: int, offset: int) -> None:
        """Record the offset of a delivered message."""
        self._ends[partition] = max(offset + 1, self._ends.get(partition, 0))

    def has(self, message: bytes) -> bool:
        """Whether an earlier process sent this message; true once for each copy."""
        if not self._duplicates[message]:
            return False
        self._duplicates[message] -= 1
        # Unary plus drops zero counts, so that the counter is false when nothing is left to skip.
        self._duplicates = +self._duplicates
        return True

    def _look(self) -> None:
        """Read the writer's messages from the base on, by default from the current end."""
        partitions, self._known = KafkaPartitions(self._address, self._settings), True
        try:
            borders = partitions.borders(absent=True)
            if self._base is None:
                self._base = {partition: end for partition, (_, end) in borders.items()}
            for partition, (first, end) in borders.items():
                begin = max(first, self._base.get(partition, first))
                for message in partitions.between(partition, begin, end, self._patience):
                    # Other writers' messages in the topic are no duplicates, even with equal bytes.
                    if (WRITER, self._writer.encode()) in (message.headers() or ()):
                        self._duplicates[message.value()] += 1
                self._ends[partition] = max(end, self._ends.get(partition, 0))
        finally:
            partitions.close()


def reached_by(address: Address, options: BrokerOptions) -> Mapping[str, Any]:
    """Connection settings of librdkafka for the brokers of an address."""
    first, safe = f"{address.host}:{address.port or 9092}", address.scheme == "kafkas"
    settings = {"bootstrap.servers": ",".join(filter(None, (first, options.brokers)))}
    if safe and options.ca is not None:
        settings["ssl.ca.location"] = options.ca
    if address.user is None:
        return settings | {"security.protocol": "SSL" if safe else "PLAINTEXT"}
    protocol = {"security.protocol": "SASL_SSL" if safe else "SASL_PLAINTEXT", "sasl.mechanisms": options.sasl}
    return settings | protocol | {"sasl.username": address.user, "sasl.password": address.password or ""}


def topic_of(address: Address) -> str:
    """The topic of an address; SourceError if it is missing."""
    topic = address.path.strip("/")
    if not topic or not address.host:
        raise SourceError(f"{address.text}: expected kafka://host/topic")
    return topic


def library(address: Address) -> ModuleType:
    """The client library; SourceError says how to install it."""
    if lack := missing("kafka"):
        raise SourceError(f"{address.text}: {lack}")
    return import_module("confluent_kafka")
