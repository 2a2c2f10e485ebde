"""Formats of numbers, times and sizes for tables and sentences."""

from math import floor, log10

from streamgauge.model.phrases import date_text, is_dated
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Borders, Report, Semantics

NOTHING = "–"


def _plain(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "\N{MINUS SIGN}") if text != "-0" else "0"


def number(value: float) -> str:
    """A number with thousands separators and at most two decimals."""
    return _plain(value, 2)


def rate(value: float) -> str:
    """A rate to three figures: 5,504.52 is ``5,500``, 12.345 is ``12.3``."""
    # 5,504.52 has the logarithm 3.7, so it is rounded to 2 - 3 = -1 digits, to tens: 5,500. 12.345 is rounded to one:
    # 12.3.
    digits = 0 if value == 0 else 2 - floor(log10(abs(value)))
    return _plain(round(value, digits), max(0, min(6, digits)))


def percent(share: float | None) -> str:
    """A share (0 to 1) in %; only 1 is 100%, and only 0 is 0%."""
    if share is None:
        return NOTHING
    # With one decimal it would read 100%, although something was wrong.
    if 0.9995 <= share < 1:
        return ">99.9%"
    if 0 < share < 0.0005:
        return "<0.1%"
    return _plain(share * 100, 1) + "%"


def duration(ms: float | None) -> str:
    """A duration given in ms, in ms below a second and in s above."""
    if ms is None:
        return NOTHING
    if abs(ms) < 1000:
        return _plain(ms, 1 if abs(ms) < 100 else 0) + " ms"
    return _plain(ms / 1000, 2) + " s"


def seconds(ms: float) -> str:
    """A point of stream time given in ms, in s, to the millisecond."""
    return _plain(ms / 1000, 3)


def moment(ms: float) -> str:
    """A point of stream time (ms): in s, or as date and time in UTC if it counts from 1970."""
    return date_text(ms) or f"{seconds(ms)} s"


def mebibytes(size: float) -> str:
    """A size given in bytes, in MiB."""
    return _plain(size / 2**20, 1) + " MiB"


def scope_borders(query: ContinuousQuery, semantics: Semantics) -> Borders:
    """The borders with which the scopes of reports are written.

    A report at a content change, or when something ends, has a scope that is still open and includes its end, so
    ``[o, c)`` becomes ``[o, c]``. Example: an element at 2,500 ms makes a report of [0, 2,500].
    """
    clocked = semantics.report & {Report.WINDOW_CLOSE, Report.PERIODIC}
    counted = any(window.window.kind == "count" for window in query.windows)
    is_open = semantics.borders is Borders.CLOSED_OPEN and not clocked and not counted
    return Borders.CLOSED if is_open else semantics.borders


def interval(start: int | None, end: int | None, borders: Borders) -> str:
    """A window's borders (ms) in the semantics' notation, in s."""
    if start is None or end is None:
        return NOTHING
    opening, closing = borders.value[0], borders.value[-1]
    if is_dated(end):
        return f"{opening}{moment(start)}, {moment(end)}{closing}"
    return f"{opening}{seconds(start)}, {seconds(end)}{closing} s"
