"""Dates of HTTP headers (RFC 9110, 5.6.7), and how long Retry-After asks to wait (10.2.3)."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

SECOND = 1000


def http_date(value: str | None) -> int | None:
    """A date of a header, ms since 1970; ``None`` for what is none."""
    if value is None:
        return None
    try:
        return int(parsedate_to_datetime(value).timestamp() * SECOND)
    except (ValueError, TypeError, OverflowError):
        return None


def retry_after(headers: Mapping[str, str], now: int) -> float | None:
    """The seconds that Retry-After asks to wait; ``None`` when it does not.

    A date counts from the Date of the same response; ``now`` (ms) stands for that where there is none.
    """
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    date = http_date(value)
    shown = http_date(headers.get("date"))
    return None if date is None else max(0.0, (date - (now if shown is None else shown)) / SECOND)
