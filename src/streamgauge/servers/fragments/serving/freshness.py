"""How long a page is fresh, what version of it was sent, and whether that is still the one (RFC 9110, 9111)."""

from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from streamgauge.servers.fragments.quads import TIME
from streamgauge.servers.fragments.serving.dataset import DataSet, Page

YEAR_S: Final = 31_536_000
"""Longer is what caches need not understand (RFC 9111, 1.2.2)."""


_TIME: Final = TIME.lower().encode()


def clock_headers(now: int) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
    """What a response says of the server's clock (ms): Date in whole seconds, Server-Time in ms."""
    return (b"date", date(now // 1000)), (_TIME, b"%d" % now)


def lifetime(dataset: DataSet, page: Page, now: int) -> list[tuple[bytes, bytes]]:
    """Fresh until the first of its facts ends, in whole seconds; else for the period that its publisher declared.

    Where there is neither, or less than a second, it has to be asked for again each time; at most a year. The end is
    also said as a time (Expires), which stays true behind proxies that write Date anew and say no Age.
    """
    lasting = page.until - now if page.until is not None else dataset.period
    seconds = min((lasting or 0) // 1000, YEAR_S)
    if seconds <= 0:
        return [(b"cache-control", b"no-cache")]
    return [(b"cache-control", b"max-age=%d" % seconds), (b"expires", date(now // 1000 + seconds))]


def tag(body: bytes, suffix: str) -> bytes:
    """The strong validator of a representation: its content, and how it is coded."""
    return b'"%s%s"' % (blake2b(body, digest_size=9).hexdigest().encode(), suffix.encode())


@lru_cache(maxsize=64)
def date(second: int) -> bytes:
    """A time (s since 1970) as HTTP writes it."""
    return formatdate(second, usegmt=True).encode()


def last_modified(page: Page, now: int) -> bytes | None:
    """When a page last changed; ``None`` in that same second, as it may change again within it."""
    return date(page.changed // 1000) if page.changed // 1000 < now // 1000 else None


def unchanged(validator: bytes, modified: bytes | None, none_match: bytes | None, since: bytes | None) -> bool:
    """Whether a client has what would be sent (RFC 9110, 13.1.2 and 13.1.3)."""
    if none_match is not None:
        tags = [each.strip().removeprefix(b"W/") for each in none_match.split(b",")]
        return validator in tags or tags == [b"*"]
    return since is not None and modified is not None and http_time(modified) <= http_time(since)


def http_time(text: bytes) -> float:
    """Seconds; before all time for what is no date."""
    try:
        return parsedate_to_datetime(text.decode("latin-1")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return float("-inf")
