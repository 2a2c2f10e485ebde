"""Kafka by partitions and offsets: how brokers are reached, the messages between two offsets, what a sink had sent."""

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
LOG.addHandler(logging.NullHandler())
TICK_S: Final = 0.2
"""Seconds between two looks at what has come."""
_LOGGED: Final = 10.0
"""Seconds that an answer of a broker may take."""
_AT_ONCE: Final = 2000
"""Messages that are taken from the library at once."""

Sasl: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class BrokerOptions(Protocol):
    """The options by which brokers are reached."""

    @property
    def brokers(self) -> str:
        """More brokers than that of the address, parted by commas."""

    @property
    def sasl(self) -> Sasl:
        """The mechanism with which a user is known."""

    @property
    def ca(self) -> str | None:
        """The file of the authority that signed the brokers' certificates."""


class KafkaPartitions:
    """The partitions of the topic of an address, read by offsets, whatever the place of any group; SourceError.

    ``settings`` are librdkafka's for reaching the brokers.
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
        """The first offset of each partition, and the one behind its last message.

        With ``absent`` a topic that is not there has none.
        """
        try:
            topic = self._consumer.list_topics(self._topic, timeout=_LOGGED).topics[self._topic]
            if absent and topic.error is not None and topic.error.code() in self._absent:
                return {}
            if topic.error is not None:
                raise SourceError(f"{self._address.text}: topic {self._topic}: {topic.error.str()}")
            places = [self._library.TopicPartition(self._topic, number) for number in sorted(topic.partitions)]
            return {place.partition: self._consumer.get_watermark_offsets(place, timeout=_LOGGED) for place in places}
        except self._library.KafkaException as error:
            raise SourceError(f"{self._address.text}: {error.args[0].str()}") from error

    def between(self, partition: int, start: int, end: int, patience: int) -> Iterator[Any]:
        """The messages of a partition from an offset up to another, excluded; ``patience`` (ms) with the brokers.

        SourceError when messages are gone.
        """
        self._consumer.assign([self._library.TopicPartition(self._topic, partition, start)])
        place, heard = start, monotonic()
        while place < end:
            messages = self._consumer.consume(_AT_ONCE, TICK_S)
            heard = monotonic() if messages else heard
            if (monotonic() - heard) * 1000 > patience:
                away = f"nothing came for {patience} ms at offset {place} of {end}"
                raise SourceError(f"{self._address.text}: partition {partition}: {away}")
            for message in messages:
                if message.error() is not None:
                    place = self._behind(message, partition, place)
                    continue
                place = message.offset() + 1
                if place <= end:
                    yield message

    def close(self) -> None:
        """Close the connection to the brokers."""
        self._consumer.close()

    def _behind(self, message: Any, partition: int, place: int) -> int:
        """The offset to go on at after what is no message: the end, trouble; SourceError if it does not go away."""
        codes, error = self._library.KafkaError, message.error()
        if error.code() == codes._PARTITION_EOF:
            return max(place, int(message.offset()))
        if error.code() == codes._AUTO_OFFSET_RESET:
            gone = f"partition {partition}: the messages from offset {place} on are no longer there"
            raise SourceError(f"{self._address.text}: topic {self._topic}, {gone}: {error.str()}")
        if not error.retriable() and error.code() not in (codes._TRANSPORT, codes._ALL_BROKERS_DOWN):
            raise SourceError(f"{self._address.text}: {error.str()}")
        return place


WRITER: Final = "streamgauge-writer"
"""The header of messages that has the name of who writes them."""


class SentMessages:
    """The messages that the processes of one writer have sent to a topic, so that the next one sends none twice.

    A mark has the writer's name and the offset of each partition behind its last message. From there on its messages
    are looked for: those are the ones that a process sent before it could say so.
    """

    def __init__(self, address: Address, settings: Mapping[str, Any], patience: int) -> None:
        self._address, self._settings, self._patience = address, settings, patience
        self._writer = uuid4().hex
        self._ends: dict[int, int] = {}
        self._known = False
        self._base: dict[int, int] | None = None
        self._there = Counter[bytes]()

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        """The headers of a message."""
        return [(WRITER, self._writer.encode())]

    def mark(self) -> Any:
        """The place behind all that was sent; before what is still to be passed over as sent."""
        if not self._known:
            self._look()
        ends = self._base if self._there and self._base is not None else self._ends
        return {"writer": self._writer, "ends": [*ends.items()]}

    def restore(self, mark: Any) -> None:
        """Look for what was sent since a mark."""
        if mark is not None:
            self._writer, self._base = mark["writer"], dict(mark["ends"])
            self._look()

    def delivered(self, partition: int, offset: int) -> None:
        """A message has its place."""
        self._ends[partition] = max(offset + 1, self._ends.get(partition, 0))

    def has(self, message: bytes) -> bool:
        """Whether a message was sent by a process before; it is asked for once for each time that it was."""
        if not self._there[message]:
            return False
        self._there[message] -= 1
        self._there = +self._there
        return True

    def _look(self) -> None:
        """Look for what was sent from the base on, which is the end where there is none yet."""
        partitions, self._known = KafkaPartitions(self._address, self._settings), True
        try:
            borders = partitions.borders(absent=True)
            if self._base is None:
                self._base = {partition: end for partition, (_, end) in borders.items()}
            for partition, (first, end) in borders.items():
                begin = max(first, self._base.get(partition, first))
                for message in partitions.between(partition, begin, end, self._patience):
                    if (WRITER, self._writer.encode()) in (message.headers() or ()):
                        self._there[message.value()] += 1
                self._ends[partition] = max(end, self._ends.get(partition, 0))
        finally:
            partitions.close()


def reached_by(address: Address, options: BrokerOptions) -> Mapping[str, Any]:
    """Librdkafka's settings for reaching the brokers of an address."""
    first, safe = f"{address.host}:{address.port or 9092}", address.scheme == "kafkas"
    settings = {"bootstrap.servers": ",".join(filter(None, (first, options.brokers)))}
    if safe and options.ca is not None:
        settings["ssl.ca.location"] = options.ca
    if address.user is None:
        return settings | {"security.protocol": "SSL" if safe else "PLAINTEXT"}
    protocol = {"security.protocol": "SASL_SSL" if safe else "SASL_PLAINTEXT", "sasl.mechanisms": options.sasl}
    return settings | protocol | {"sasl.username": address.user, "sasl.password": address.password or ""}


def topic_of(address: Address) -> str:
    """The topic that an address names; SourceError when it names none."""
    topic = address.path.strip("/")
    if not topic or not address.host:
        raise SourceError(f"{address.text}: expected kafka://host/topic")
    return topic


def library(address: Address) -> ModuleType:
    """The client library; SourceError says how to get it."""
    if lack := missing("kafka"):
        raise SourceError(f"{address.text}: {lack}")
    return import_module("confluent_kafka")
