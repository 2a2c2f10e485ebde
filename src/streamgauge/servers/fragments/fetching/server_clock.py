"""A server's clock as its responses show it: the offset to the own clock as an interval, kept current under drift.

A response shows a time of the server's clock that was read between the request and the response. So the offset (the
server's time minus the own) lies between that time minus the own time of the response and that time minus the own time
of the request, whatever part of the way took how long. The intervals of several exchanges are intersected (Marzullo,
*Maintaining the Time in a Distributed System*, 1984), each widened by what two clocks may have drifted since. The
estimate is the middle of the interval, so its error is at most half of its width.

An exchange of 40 ms, asked at 1,000 and answered at 1,040, shows 5,030: the offset is in [3,990, 4,030], the estimate
is 4,010 +- 20 ms. A second one shows that the offset is in [4,005, 4,045]: the estimate is 4,017.5 +- 12.5 ms.
"""

from dataclasses import dataclass
from typing import Final

from streamgauge.servers.http.dates import SECOND

DRIFT: Final = 200e-6
"""How fast two clocks may drift apart: each by 100 ppm."""

SET_BACK: Final = 2 * SECOND
"""How far (ms) a server's clock has to be behind all that was expected of it to count as set back."""


@dataclass(frozen=True, slots=True)
class ShownTime:
    """What a response shows of its server's clock: a time (ms since 1970), and how many ms it stands for."""

    time: int
    resolution: int = SECOND


@dataclass(slots=True)
class ServerClock:
    """The clock of one server. All times in ms; the own clock must not be set while this is used.

    ``sets`` counts how often the server's clock was found to have been set back: between two of them ``time`` never
    goes back.
    """

    sets: int = 0
    _low: float = float("-inf")
    _high: float = float("inf")
    _at: int = 0
    _last: int | None = None

    def seen(self, shown: ShownTime, asked: int, came: int) -> None:
        """A response that was asked for and came at these own times, which are rounded down, shows a time.

        An exchange that contradicts those before it means that a clock was set: it counts alone.
        """
        low, high = float(shown.time - came - 1), float(shown.time + shown.resolution - asked)
        wider = self._drift(came)
        before_low, before_high = self._low - wider, self._high + wider
        if high < before_low - SET_BACK:
            self.sets += 1
        if high < before_low - SET_BACK or not self.known:
            self._last = None
        if high < before_low or low > before_high:
            before_low, before_high = low, high
        self._low, self._high, self._at = max(before_low, low), min(before_high, high), came

    @property
    def known(self) -> bool:
        """Whether any exchange was seen."""
        return self._low <= self._high < float("inf")

    @property
    def ahead(self) -> float:
        """The estimate of the offset: by how many ms the server's clock is ahead; 0 when nothing is known."""
        return (self._low + self._high) / 2 if self.known else 0.0

    def uncertainty(self, own: int) -> float:
        """The most by which the estimate may be wrong at an own time (ms); infinite when nothing is known."""
        return (self._high - self._low) / 2 + self._drift(own)

    def time(self, own: int) -> int:
        """The server's time at an own time, by the estimate; never earlier than what was given before."""
        now = int(own + self.ahead)
        self._last = now if self._last is None else max(now, self._last)
        return self._last

    def reached(self, time: int) -> int:
        """The own time at which the server's clock shows a time, by the estimate; rounded up."""
        return -int(-(time - self.ahead) // 1)

    def surely(self, time: int) -> int:
        """The own time from which on the server's clock shows a time or a later one, however it drifts; rounded up."""
        if not self.known:
            return time
        own = time - self._low
        return -int(-(own + self._drift(int(own))) // 1)

    def _drift(self, own: int) -> float:
        return DRIFT * max(0, own - self._at)
