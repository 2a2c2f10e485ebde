"""How long responses may be used: HTTP Caching (RFC 9111), a private cache's side."""

from collections.abc import Mapping
from dataclasses import dataclass

from streamgauge.servers.fragments.fetching.server_clock import ShownTime
from streamgauge.servers.fragments.quads import TIME, VERSION
from streamgauge.servers.http.dates import SECOND, http_date

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
    """What headers say; ``came`` is when the response came, used where the server shows no clock (ms).

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

    What has a version expires max-age after it was made.
    """
    expires, life = http_date(headers.get("expires")), _max_age(directives, 0)
    if VERSION not in headers or expires is None or life is None:
        return shown
    return shown if expires - life == shown // SECOND * SECOND else min(shown, expires - life)


def _max_age(directives: Mapping[str, str], at: int) -> int | None:
    """Its end; an argument that is no number makes it stale (RFC 9111, 4.2.1)."""
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
