"""A budget for the notifications stored for each identity, in memory and in the journal, over all its channels.

Notifications are stored for absent subscribers. Subscribers that never acknowledge, on many channels, would make the
broker store 16 MiB per channel. The budget discards the oldest notifications of the channels that store most; their
subscribers learn the number as ``missed``.
"""

from collections.abc import Iterable
from typing import Final

from streamgauge.servers.broker.channels import Log

TRIMMED: Final = 7 / 8
"""Fraction of a budget to which it is trimmed when reached, so that trimming is not needed for every notification."""


class KeptBudget:
    """The budgets by identity; a log counts for the identity that created its first channel."""

    def __init__(self, limit: int) -> None:
        self.limit, self.let_go = limit, 0
        self._bytes: dict[str, int] = {}
        self._reached: set[str] = set()

    def bytes(self, owner: str) -> int:
        """The bytes stored for an identity."""
        return self._bytes.get(owner, 0)

    @property
    def reached(self) -> int:
        """The number of identities that have reached their budget and not yet fallen to half of it."""
        return len(self._reached)

    def refuses(self, owner: str) -> str:
        """Why an identity may not add named subscribers, as a sentence; empty while it is within its budget."""
        if owner not in self._reached:
            return ""
        return (
            f"what is kept for absent subscribers reached {self.limit} bytes: acknowledge notifications, or unsubscribe"
        )

    def add(self, owner: str, size: int) -> bool:
        """Add ``size`` bytes, which may be negative; returns whether the budget is exceeded."""
        total = self._bytes[owner] = self._bytes.get(owner, 0) + size
        # Half, not the limit: an identity at its limit would otherwise be refused and admitted with every notification.
        if total <= self.limit // 2:
            self._reached.discard(owner)
        # An identity without stored bytes leaves no entry behind; tokens come and go.
        if not total:
            del self._bytes[owner]
        return total > self.limit

    def trim(self, owner: str, logs: Iterable[Log]) -> list[Log]:
        """Discard the oldest notifications of an identity's largest logs down to ``TRIMMED``; returns these logs.

        Every log gets an equal share, and small logs leave their rest to the larger ones: of 70 bytes, logs of 10, 40
        and 90 bytes keep 10, 30 and 30.
        """
        self._reached.add(owner)
        allowed, trimmed = int(self.limit * TRIMMED), []
        logs_ = sorted((log for log in logs if log.owner == owner), key=lambda log: log.entries.bytes)
        for place, log in enumerate(logs_):
            # Smallest logs first: whatever they leave of their share is divided among the larger ones.
            share = max(0, allowed) // (len(logs_) - place)
            before = log.entries.bytes
            if before > share:
                self.let_go += log.entries.shrink(share)
                trimmed.append(log)
                self.add(owner, log.entries.bytes - before)
            allowed -= log.entries.bytes
        return trimmed
