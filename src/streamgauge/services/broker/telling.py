"""Notifications as JSON: made once, however many are told."""

import json
from collections import OrderedDict
from threading import Lock
from typing import Any, Final, TypeAlias

from streamgauge.services.broker.channels import Channel
from streamgauge.services.broker.contract import Notification
from streamgauge.wire.results import results

Json: TypeAlias = dict[str, Any]

_KEPT: Final = 512
_LARGEST: Final = 64 * 2**10
"""Bytes of rows above which a notification's text is not kept."""


def told(notification: Notification, variables: tuple[str, ...]) -> Json:
    """What a subscriber gets; ``key`` is the same when it comes twice, and of no other notification."""
    name, number, at = notification.channel, notification.number, notification.at
    return {
        "channel": name,
        "number": number,
        "key": f"{name}/{number}/{at}",
        "publications": list(notification.causes),
        "at": at,
        "added": results(variables, notification.added),
        "removed": results(variables, notification.removed),
    }


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
            text = json.dumps(told(notification, channel.variables), ensure_ascii=False, separators=(",", ":")).encode()
            if notification.size <= _LARGEST:
                self._keep(key, text)
        return text

    def _keep(self, key: tuple[str, int, int], text: bytes) -> None:
        with self._lock:
            self._texts[key] = text
            if len(self._texts) > _KEPT:
                self._texts.popitem(last=False)
