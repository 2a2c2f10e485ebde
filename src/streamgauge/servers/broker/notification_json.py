"""Notifications as JSON: made once, however many are told."""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import msgspec

from streamgauge.formats.results import results
from streamgauge.incremental.row_joins import TRUE
from streamgauge.model.terms import Row
from streamgauge.servers.broker.channels import Channel, FormKind
from streamgauge.servers.broker.contract import Notification

Json: TypeAlias = dict[str, Any]

_KEPT: Final = 512
_LARGEST: Final = 64 * 2**10
"""Bytes of rows above which a notification's text is not kept."""


def key_of(notification: Notification) -> str:
    """The key of a notification: the same when it comes twice, and of no other."""
    return f"{quote(notification.channel, safe='')}/{notification.number}/{notification.at}"


def told(notification: Notification, variables: tuple[str, ...], kind: FormKind = "SELECT") -> Json:
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
    if channel.kind == "ASK":
        return {"head": {}, "boolean": list(rows) == [(TRUE,)]}
    return results(channel.variables, rows)


class Telling:
    """The text of notifications, those made last. Thread-safe."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[str, int, int], bytes] = OrderedDict()
        self._lock = Lock()

    def text(self, channel: Channel, notification: Notification) -> bytes:
        """One line of JSON."""
        key = channel.name, notification.number, notification.at
        text = self._texts.get(key)
        if text is None:
            text = msgspec.json.encode(told(notification, channel.variables, channel.kind))
            if notification.size <= _LARGEST:
                self._keep(key, text)
        return text

    def _keep(self, key: tuple[str, int, int], text: bytes) -> None:
        with self._lock:
            self._texts[key] = text
            if len(self._texts) > _KEPT:
                self._texts.popitem(last=False)
