"""HTTP Caching (RFC 9111), the side of a private cache: the server's clock, lifetimes, and responses in memory.

A response shows a time of the server's clock that was read between the request and the response. So the offset (the
server's time minus the own) lies between that time minus the own time of the response and that time minus the own time
of the request, whatever part of the way took how long. The intervals of several exchanges are intersected (Marzullo,
*Maintaining the Time in a Distributed System*, 1984), each widened by what two clocks may have drifted since. The
estimate is the middle of the interval, so its error is at most half of its width.

An exchange of 40 ms, asked at 1,000 and answered at 1,040, shows 5,030: the offset is in [3,990, 4,030], the estimate
is 4,010 +- 20 ms. A second one shows that the offset is in [4,005, 4,045]: the estimate is 4,017.5 +- 12.5 ms.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from streamgauge.servers.fragments import TIME, VERSION
from streamgauge.servers.http.dates import SECOND, http_date

DRIFT: Final = 200e-6
"""How fast two clocks may drift apart: each by 100 ppm."""

SET_BACK: Final = 2 * SECOND
"""How far (ms) a server's clock has to be behind all that was expected of it to count as set back."""


@dataclass(frozen=True, slots=True)
class ShownTime:
    """The time of a server's clock that a response shows (ms since 1970), and how many ms that time stands for."""

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


_FOREVER = 10 * 365 * 86_400


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Of a response: ``at`` when its origin made it, ``until`` when it is no longer fresh (``None``: not said).

    Both in ms of the server's clock, ``now`` what that showed when the response came; ``kept``: whether it may be.
    """

    at: int
    now: int
    until: int | None
    kept: bool


def lifetime(headers: Mapping[str, str], came: int) -> Lifetime:
    """The lifetime that headers say; ``came`` (ms) is when the response came, used where the server shows no clock.

    The earlier of max-age and Expires: a shared cache that hides its Age still leaves Expires as it was.
    """
    clock = shown_time(headers)
    shown = came if clock is None else clock.time
    directives = cache_control(headers.get("cache-control", ""))
    at = _made(headers, directives, shown)
    ends = [end for end in (_max_age(directives, at), _expires(headers, at)) if end is not None]
    if "no-cache" in directives or headers.get("vary", "").strip() == "*":
        ends = [at // SECOND * SECOND]
    return Lifetime(at, shown + _age(headers) * SECOND, min(ends, default=None), "no-store" not in directives)


def shown_time(headers: Mapping[str, str]) -> ShownTime | None:
    """The server's time in headers: Server-Time where that is of the second of Date, else Date; ``None`` without one.

    A cache that writes Date anew leaves Server-Time as it was: then the two disagree.
    """
    date, exact = http_date(headers.get("date")), headers.get(TIME.lower(), "")
    if date is None:
        return None
    if exact.isascii() and exact.isdigit() and len(exact) < 16 and int(exact) // SECOND * SECOND == date:
        return ShownTime(int(exact), 1)
    return ShownTime(date)


def cache_control(value: str) -> dict[str, str]:
    """Directives in lower case with their arguments; the first of several with one name."""
    directives: dict[str, str] = {}
    for part in value.split(","):
        name, _, argument = part.strip().partition("=")
        directives.setdefault(name.strip().lower(), argument.strip().strip('"'))
    return directives


def _made(headers: Mapping[str, str], directives: Mapping[str, str], shown: int) -> int:
    """When the origin made it: Date, unless a cache wrote that anew, which Expires of a server of fragments tells.

    A response with a version expires max-age after the origin made it.
    """
    expires, life = http_date(headers.get("expires")), _max_age(directives, 0)
    if VERSION not in headers or expires is None or life is None:
        return shown
    return shown if expires - life == shown // SECOND * SECOND else min(shown, expires - life)


def _max_age(directives: Mapping[str, str], at: int) -> int | None:
    """The end by max-age; an argument that is no number makes a response stale (RFC 9111, 4.2.1)."""
    if "max-age" not in directives:
        return None
    return at + min(_seconds(directives["max-age"]), _FOREVER) * SECOND


def _expires(headers: Mapping[str, str], at: int) -> int | None:
    if "expires" not in headers:
        return None
    date = http_date(headers["expires"])
    return at if date is None else date


def _age(headers: Mapping[str, str]) -> int:
    return min(_seconds(headers.get("age", "")), _FOREVER)


def _seconds(value: str) -> int:
    return int(value[:12]) if value.isascii() and value.isdigit() else 0


CacheKey: TypeAlias = tuple[str, str]
"""Address and Accept."""

_OVERHEAD = 500
_READ = 4
"""How much more memory what readers make of a body takes than the body, about: quads are tuples of strings."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response of an address: ``at`` and ``until`` in ms of the server's clock (see Lifetime).

    ``address`` is where redirects led, ``kind`` the media type, ``validator`` an ETag or else a Last-Modified,
    ``changed`` that time (ms), ``version`` that of its data set. ``made`` is what readers made of the body, by name.
    """

    address: str
    kind: str
    body: bytes
    at: int
    until: int | None
    validator: str | None
    changed: int | None
    version: str | None
    made: dict[object, object] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A response in the cache; ``fresh`` is until when it may be used unasked, ms of the own clock."""

    response: Response
    condition: dict[str, str]
    """The header field that asks whether it has changed."""
    fresh: float
    number: int
    """Of all that came, in order."""

    @property
    def size(self) -> int:
        """Bytes of memory that it takes, about."""
        return (1 + _READ) * len(self.response.body) + len(self.response.address) + _OVERHEAD

    def again(self, lifetime: Lifetime, version: str | None, fresh: float, number: int) -> "CacheEntry":
        """The entry after its server said that the response has not changed (304)."""
        response = replace(self.response, at=lifetime.at, until=lifetime.until, version=version)
        return replace(self, response=response, fresh=fresh, number=number)


class ResponseCache:
    """At most ``capacity`` bytes, what was read of bodies included; what takes more than an eighth is not kept."""

    def __init__(self, capacity: int = 64 * 2**20) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[CacheKey, CacheEntry] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: CacheKey) -> CacheEntry | None:
        """The entry of a key, ``None`` without one; looking it up counts as use."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: CacheKey, kept: CacheEntry) -> None:
        """Keep it in place of what was there, and let go what is then too much."""
        self.drop(key)
        if kept.size * 8 > self._capacity:
            return
        self._kept[key] = kept
        self.size += kept.size
        while self.size > self._capacity:
            self.drop(next(iter(self._kept)))

    def drop(self, key: CacheKey) -> None:
        """Let it go."""
        gone = self._kept.pop(key, None)
        if gone is not None:
            self.size -= gone.size

    def clear(self) -> None:
        """Let all go."""
        self._kept.clear()
        self.size = 0
