"""The bytes of notifications that are kept for each principal, in memory and in the journal, over all its channels.

A notification is kept for who comes back for it. Subscribers that never acknowledge, on many channels, would have the
broker keep 16 MiB a channel: the budget lets go of the oldest of the channels that keep most, which their subscribers
are told as ``missed``.
"""

from collections.abc import Iterable
from typing import Final

from streamgauge.servers.broker.channels import Log

TRIMMED: Final = 7 / 8
"""The part of a budget that is left when it was reached, so that not each notification lets go of one."""


class KeptBudget:
    """The budget of each principal by its identity; the logs count for who created their first channel."""

    def __init__(self, limit: int) -> None:
        self.limit, self.let_go = limit, 0
        self._bytes: dict[str, int] = {}
        self._reached: set[str] = set()

    def bytes(self, owner: str) -> int:
        """The bytes that are kept for a principal."""
        return self._bytes.get(owner, 0)

    @property
    def reached(self) -> int:
        """How many principals have reached their budget and keep more than half of it since."""
        return len(self._reached)

    def refuses(self, owner: str) -> str:
        """Why no more is kept for a principal, a sentence; empty while it is within its budget."""
        if owner not in self._reached:
            return ""
        return (
            f"what is kept for absent subscribers reached {self.limit} bytes: acknowledge notifications, or unsubscribe"
        )

    def add(self, owner: str, size: int) -> bool:
        """So many bytes more or less; whether the budget is exceeded."""
        total = self._bytes[owner] = self._bytes.get(owner, 0) + size
        if total <= self.limit // 2:
            self._reached.discard(owner)
        if not total:
            del self._bytes[owner]
        return total > self.limit

    def trim(self, owner: str, logs: Iterable[Log]) -> list[Log]:
        """Let go of the oldest of the logs that keep most, until a principal is well within its budget; those logs."""
        self._reached.add(owner)
        allowed, trimmed = int(self.limit * TRIMMED), []
        own = sorted((log for log in logs if log.owner == owner), key=lambda log: log.entries.bytes)
        for place, log in enumerate(own):
            share = max(0, allowed) // (
                len(own) - place
            )  # the logs that keep least first: what they leave is the others'
            before = log.entries.bytes
            if before > share:
                self.let_go += log.entries.shrink(share)
                trimmed.append(log)
                self.add(owner, log.entries.bytes - before)
            allowed -= log.entries.bytes
        return trimmed
