"""When to poll: at the nearest expiration, spread so that clients do not come all at once, later after failures."""

from dataclasses import dataclass
from random import Random
from typing import Final

from streamgauge.servers.fragments.streaming.plan import Polled

SHORTEST: Final = 250
"""Between two polls, ms."""

SHORTEST_TOLD: Final = 50
"""The same where events tell what changes, so that a poll is no request."""

EMPTY: Final = 1000
"""Until the next poll, ms, when what should have been renewed was not (QueryStreamer.js waits as long)."""

UNSAID: Final = 10_000
"""Between polls of sources that say neither a lifetime nor an expiration, ms."""


@dataclass(frozen=True, slots=True)
class Timing:
    """All in ms: ``at_most_every`` between polls even when facts end sooner, ``period`` at the longest between them.

    A poll comes up to ``share`` of the time since the last one, at most ``spread``, after it is due. Where events have
    ``told`` what changes polls are no requests: then it comes when it is due.
    """

    at_most_every: int | None = None
    period: int | None = None
    share: float = 0.1
    spread: int = 5_000

    def next(self, begun: int, now: int, polled: Polled, random: Random, told: bool = False) -> int:
        """When to poll after a poll that began and ended at these times, by the own clock."""
        due = self._due(begun, now, polled)
        if self.at_most_every is not None:
            due = max(due, begun + self.at_most_every)
        if told:
            return max(due, now)
        due = max(due, now + SHORTEST)
        return due + int(random.uniform(0, min(self.spread, self.share * (due - begun))))

    def soonest(self, begun: int, told: bool = False) -> int:
        """When to poll at the earliest after a poll that began then, whatever is new."""
        return begun + max(SHORTEST_TOLD if told else SHORTEST, self.at_most_every or 0)

    def _due(self, begun: int, now: int, polled: Polled) -> int:
        times = [
            polled.due,
            None if self.period is None else begun + self.period,
            now + EMPTY if polled.lapsed else None,
        ]
        if known := [time for time in times if time is not None]:
            return min(known)
        fresh = polled.until is not None and polled.until > now
        return polled.until if fresh and polled.until is not None else begun + UNSAID
