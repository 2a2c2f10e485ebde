"""Kafka by offsets, for whoever keeps the place itself: where partitions begin and end, and what is between.

Reading the same offsets again gives the same elements, as long as the brokers keep them.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any, NamedTuple

from streamgauge.formats.streams import Reading
from streamgauge.model.element import StreamElement
from streamgauge.sources.address import parse_address, read_options
from streamgauge.sources.contract import SourceError
from streamgauge.sources.decoders import Messages
from streamgauge.sources.kafka import KafkaSourceOptions, library, reached_by, topic_of

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())
_FIRST = 10.0
"""Seconds that an answer of a broker may take."""
_TICK = 0.2
_ANY_ORDER = Reading(lateness=1 << 62)
"""The reader of the whole decides which messages are too late."""
_AT_ONCE = 2000
"""Messages that are taken from the library at once."""


class Logged(NamedTuple):
    """An element: the offset of its message, its place in it, when the broker had it (ms)."""

    offset: int
    item: int
    arrived: int
    element: StreamElement


class KafkaLog:
    """The topic at a URL (``kafka://host/topic``); SourceError names what is wrong with URL, brokers or topic."""

    def __init__(self, url: str) -> None:
        self._address = parse_address(url)
        self._options = replace(read_options(KafkaSourceOptions, self._address), lateness=None)
        self._messages = Messages(self._address, self._options, _ANY_ORDER, None)
        self._topic, self._library = topic_of(self._address), library(self._address)
        self._consumer = self._library.Consumer(
            {
                **reached_by(self._address, self._options),
                "group.id": "streamgauge",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
            },
            logger=_LOG,
        )

    def begins(self) -> dict[int, int]:
        """Where reading begins in each partition: at its first message, or at its end unless ``from=earliest``."""
        earliest = self._options.from_ == "earliest"
        return {number: low if earliest else high for number, (low, high) in self._borders().items()}

    def ends(self) -> dict[int, int]:
        """The offset behind the last message of each partition."""
        return {number: high for number, (_, high) in self._borders().items()}

    def between(self, partition: int, start: int, end: int) -> Iterator[Logged]:
        """The elements of a partition's messages from an offset up to another, excluded.

        Messages that say how far time has come are passed over. SourceError when messages are gone.
        """
        self._consumer.assign([self._library.TopicPartition(self._topic, partition, start)])
        place, heard = start, monotonic()
        while place < end:
            messages = self._consumer.consume(_AT_ONCE, _TICK)
            heard = monotonic() if messages else heard
            if (monotonic() - heard) * 1000 > self._options.patience:
                away = f"nothing came for {self._options.patience} ms at offset {place} of {end}"
                raise SourceError(f"{self._address.text}: partition {partition}: {away}")
            for message in messages:
                if message.error() is not None:
                    place = self._behind(message, partition, place)
                    continue
                place = message.offset() + 1
                if place <= end:
                    yield from self._elements(message)

    def close(self) -> None:
        """Leave the brokers."""
        self._consumer.close()

    def _elements(self, message: Any) -> Iterator[Logged]:
        kind, stamp = message.timestamp()
        arrived = 0 if kind == self._library.TIMESTAMP_NOT_AVAILABLE else stamp
        place = f"{self._address.text}: topic {self._topic}, partition {message.partition()}, offset {message.offset()}"
        for item, found in enumerate(self._messages.items(message.value() or b"", place, arrived)):
            if isinstance(found, StreamElement) and found.added:
                yield Logged(message.offset(), item, arrived, replace(found, removed=()))

    def _borders(self) -> Mapping[int, tuple[int, int]]:
        """The first offset of each partition, and the one behind its last message."""
        try:
            topic = self._consumer.list_topics(self._topic, timeout=_FIRST).topics[self._topic]
            if topic.error is not None:
                raise SourceError(f"{self._address.text}: topic {self._topic}: {topic.error.str()}")
            places = [self._library.TopicPartition(self._topic, number) for number in sorted(topic.partitions)]
            return {each.partition: self._consumer.get_watermark_offsets(each, timeout=_FIRST) for each in places}
        except self._library.KafkaException as error:
            raise SourceError(f"{self._address.text}: {error.args[0].str()}") from error

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
