"""The resources of a broker as text: notifications and answers as JSON, entity tags, counts as metrics."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import msgspec

from streamgauge.formats.results import results
from streamgauge.incremental.row_joins import TRUE
from streamgauge.model.terms import Row
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.channels import Channel, FormKind
from streamgauge.servers.broker.contract import Notification
from streamgauge.servers.http.deadlines import resident
from streamgauge.servers.http.metrics import PAUSES, Metric

Json: TypeAlias = dict[str, Any]

_KEPT: Final = 512
_LARGEST: Final = 64 * 2**10
"""Bytes of rows above which a notification's text is not kept."""


def key_of(notification: Notification) -> str:
    """The key of a notification: the same when it comes twice, and of no other."""
    return f"{quote(notification.channel, safe='')}/{notification.number}/{notification.at}"


def notification_json(notification: Notification, variables: tuple[str, ...], kind: FormKind = "SELECT") -> Json:
    """The JSON of a notification; of an ASK also whether it is true now."""
    truth = {"boolean": notification.added == ((TRUE,),)} if kind == "ASK" else {}
    return truth | {
        "channel": notification.channel,
        "number": notification.number,
        "key": key_of(notification),
        "publications": list(notification.causes),
        "at": notification.at,
        "added": results(variables, notification.added),
        "removed": results(variables, notification.removed),
    }


def standing(channel: Channel, rows: Sequence[Row]) -> Json:
    """The answer of a channel as it is: SPARQL JSON (of an ASK its boolean; of a CONSTRUCT a row a triple)."""
    if channel.log.kind == "ASK":
        return {"head": {}, "boolean": list(rows) == [(TRUE,)]}
    return results(channel.variables, rows)


class NotificationTexts:
    """Notifications as lines of JSON, of which those made last are kept, however many are told. Thread-safe."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[str, int, int], bytes] = OrderedDict()
        self._lock = Lock()

    def text(self, channel: Channel, notification: Notification) -> bytes:
        """One line of JSON."""
        key = channel.name, notification.number, notification.at
        text = self._texts.get(key)
        if text is None:
            text = msgspec.json.encode(notification_json(notification, channel.variables, channel.log.kind))
            if notification.size <= _LARGEST:
                self._keep(key, text)
        return text

    def _keep(self, key: tuple[str, int, int], text: bytes) -> None:
        with self._lock:
            self._texts[key] = text
            if len(self._texts) > _KEPT:
                self._texts.popitem(last=False)


def status(channel: Channel) -> dict[str, object]:
    """One channel: its query, and the number of its last notification."""
    return {
        "channel": channel.name,
        "query": channel.query,
        "form": channel.log.kind,
        "variables": list(channel.variables),
        "notification": channel.number,
        "subscribers": len(channel.acknowledged),
        "connections": len(channel.connected),
    }


def subscriber_status(channel: Channel, name: str) -> dict[str, object]:
    """A subscriber by name: the number of the last notification that was acknowledged."""
    return {"channel": channel.name, "subscriber": name, "acknowledged": channel.acknowledged[name]}


def metrics(broker: Broker, webhook_failures: int) -> Iterator[Metric]:
    """Counts of the whole broker; channels are too many to be counted by name."""
    channels = broker.channels()
    told = sum(each.number for each in channels)
    kept = sum(log.entries.bytes for log in {each.log for each in channels})
    for name, about, value in (
        ("channels", "Channels.", len(channels)),
        ("subscribers", "Subscribers by name.", sum(len(each.acknowledged) for each in channels)),
        ("connections", "Who is connected.", sum(len(each.connected) for each in channels)),
        ("notifications", "Notifications of the channels that are there.", told),
        ("kept_bytes", "What is kept of notifications.", kept),
        ("waiting", "Publications that wait.", broker.waiting),
        ("failed", "1 when nothing is taken any more.", int(bool(broker.fault))),
        ("refusing", "1 when the disk did not take the last change.", int(bool(broker.trouble))),
    ):
        yield Metric(f"streamgauge_broker_{name}", "gauge", about, (({}, float(value)),))
    held = broker.held()
    terms, about = float(held.terms), "Different terms of facts, all interned."
    yield Metric("streamgauge_broker_interned_terms", "gauge", about, (({}, terms),))
    parts = (("facts", held.facts), ("answers", held.answers), ("notifications", kept), ("process", resident()))
    memory = tuple(({"of": name}, float(value)) for name, value in parts)
    yield Metric(
        "streamgauge_broker_memory_bytes", "gauge", "About what is kept; the process as the system has it.", memory
    )
    yield from PAUSES.metrics()
    for name, about, value in (
        ("publications", "Publications taken in.", broker.number),
        ("webhook_failures", "Tries that a webhook did not take.", webhook_failures),
    ):
        yield Metric(f"streamgauge_broker_{name}_total", "counter", about, (({}, float(value)),))
