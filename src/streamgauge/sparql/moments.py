"""Dates, times and durations on the proleptic Gregorian calendar (XML Schema 1.1 Datatypes, appendices D and E).

A moment is a number of seconds of local time, and its zone. Years are unbounded, seconds exact.
"""

import re
from calendar import isleap
from dataclasses import dataclass
from datetime import date
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Final

DATE_TIME_KINDS: Final = (
    "dateTime",
    "date",
    "time",
    "gYearMonth",
    "gYear",
    "gMonthDay",
    "gDay",
    "gMonth",
    "dateTimeStamp",
)
DAY: Final = 86_400
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_UNZONED: Final = 14 * 3600
"""Seconds by which the implicit zone of a moment without one may differ from UTC (XML Schema 1.1, 3.3.7)."""

# These patterns are the lexical spaces of XML Schema 1.1, 3.3.7 to 3.3.14, which have a year 0000: -0001 is the year
# before it, and comes two years before 0001.
_ZONE = r"(?P<zone>Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"
_YEAR = r"(?P<year>-?(?:[1-9][0-9]{3,}|0[0-9]{3}))"
_MONTH, _DAY = r"(?P<month>0[1-9]|1[0-2])", r"(?P<day>0[1-9]|[12][0-9]|3[01])"
_TIME = r"(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9](?:\.[0-9]+)?)"
_CLOCK = rf"(?:{_TIME}|(?P<midnight>24:00:00(?:\.0+)?))"
_FORMS: Final = {
    name: re.compile(form + _ZONE)
    for name, form in {
        "dateTime": f"{_YEAR}-{_MONTH}-{_DAY}T{_CLOCK}",
        "dateTimeStamp": f"{_YEAR}-{_MONTH}-{_DAY}T{_CLOCK}",
        "date": f"{_YEAR}-{_MONTH}-{_DAY}",
        "time": _CLOCK,
        "gYearMonth": f"{_YEAR}-{_MONTH}",
        "gYear": _YEAR,
        "gMonthDay": f"--{_MONTH}-{_DAY}",
        "gDay": f"---{_DAY}",
        "gMonth": f"--{_MONTH}",
    }.items()
}
_DURATION: Final = re.compile(
    r"(?P<sign>-)?P(?=[0-9T])(?:(?P<years>[0-9]+)Y)?(?:(?P<months>[0-9]+)M)?(?:(?P<days>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+(?:\.[0-9]+)?)S)?)?"
)
_MAX_CHARACTERS: Final = 900
"""Maximum characters of a date or duration; a longer one has no value here."""


@dataclass(frozen=True, slots=True)
class Moment:
    """``local``: seconds since 0000-12-31T00:00:00 of local time; ``zone``: minutes east of UTC, or ``None``."""

    local: Decimal
    zone: int | None


@dataclass(frozen=True, slots=True)
class Duration:
    """Months and seconds, of the same sign."""

    months: int
    seconds: Decimal


@dataclass(frozen=True, slots=True)
class LocalFields:
    """The fields of a moment in its own zone."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: Decimal


def day_number(year: int, month: int, day: int) -> int:
    """The proleptic Gregorian ordinal: 0001-01-01 is 1. Every 400 years have 146,097 days."""
    # ``date`` has the years 1 to 9999 only, but the calendar repeats every 400 years.
    era, rest = divmod(year - 1, 400)
    return era * 146_097 + date(rest + 1, month, day).toordinal()


def civil(number: int) -> tuple[int, int, int]:
    """Year, month and day of an ordinal: the inverse of ``day_number``."""
    era, rest = divmod(number - 1, 146_097)
    day = date.fromordinal(rest + 1)
    return era * 400 + day.year, day.month, day.day


def days_in(year: int, month: int) -> int:
    """The number of days of a month."""
    if month == 2:
        return 29 if isleap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def moment(year: int, month: int, day: int, seconds: Decimal | int = 0, zone: int | None = None) -> Moment:
    """The moment ``seconds`` after the start of a day."""
    return Moment(_EXACT.add(Decimal(day_number(year, month, day) * DAY), Decimal(seconds)), zone)


def date_time(text: str, kind: str) -> Moment | None:
    """The moment of a lexical form; missing fields are those of F&O's reference dates (1972-12-31 or -01-01)."""
    match = _FORMS[kind].fullmatch(text)
    if match is None or len(text) > _MAX_CHARACTERS:
        return None
    parts = match.groupdict()
    # A time is on 1972-12-31, --05 on 1972-05-01, ---07 on 1972-12-07. In 1972, a leap year, --02-29 is a day as well.
    clock, monthly = kind == "time", kind in ("gMonth", "gYearMonth", "gYear")
    year = int(parts.get("year") or 1972)
    month = int(parts.get("month") or (1 if monthly else 12))
    day = int(parts.get("day") or (31 if clock else 1))
    if day > days_in(year, month) or (kind == "dateTimeStamp" and parts["zone"] is None):
        return None
    return moment(year, month, day, _seconds(parts, clock), _zone(parts["zone"]))


def _seconds(parts: dict[str, str | None], clock: bool) -> Decimal:
    if parts.get("midnight"):
        # 24:00:00 is the first instant of the next day; a time of day has no next day, and wraps around to 00:00:00.
        return Decimal(0 if clock else DAY)
    if parts.get("hour") is None:
        return Decimal(0)
    return _EXACT.add(
        Decimal(int(parts["hour"] or 0) * 3600 + int(parts["minute"] or 0) * 60), Decimal(parts["second"] or 0)
    )


def _zone(text: str | None) -> int | None:
    if text is None or text == "Z":
        return None if text is None else 0
    # -05:30 is 5 hours and 30 minutes west: the sign belongs to the minutes, too.
    minutes = int(text[1:3]) * 60 + int(text[4:])
    return -minutes if text[0] == "-" else minutes


def fields(at: Moment) -> LocalFields:
    """The fields of a moment in its own zone."""
    day, seconds = _days(at)
    hour, rest = divmod(int(seconds), 3600)
    fraction = _EXACT.subtract(seconds, Decimal(int(seconds)))
    return LocalFields(*civil(int(day)), hour, rest // 60, _EXACT.add(Decimal(rest % 60), fraction))


def _days(at: Moment) -> tuple[Decimal, Decimal]:
    """The whole days of local time, and the seconds of the last one."""
    day, seconds = _EXACT.divmod(at.local, Decimal(DAY))
    # Unlike that of integers, the division of Decimals truncates towards zero.
    return (_EXACT.subtract(day, Decimal(1)), _EXACT.add(seconds, Decimal(DAY))) if seconds < 0 else (day, seconds)


def utc(at: Moment) -> Decimal:
    """The seconds of a moment in UTC; without a zone it is taken as UTC."""
    return _EXACT.subtract(at.local, Decimal((at.zone or 0) * 60))


def compare(left: Moment, right: Moment) -> int | None:
    """-1, 0 or 1; ``None`` if only one has a zone and they are within 14 hours (XML Schema 1.1, 3.3.7.2).

    Worked example: noon without a zone may be noon anywhere, so its order to noon in UTC is unknown. The next day's
    noon in UTC is 24 hours away, and later in any zone.
    """
    apart = _EXACT.subtract(utc(left), utc(right))
    # Two moments without zones are in the same unknown one, which cancels out.
    if (left.zone is None) is (right.zone is None):
        return _sign(apart)
    return _sign(apart) if abs(apart) > _UNZONED else None


def _sign(number: Decimal) -> int:
    return (number > 0) - (number < 0)


def later(at: Moment, by: Duration) -> Moment:
    """A moment plus a duration.

    First the months, with the day clamped to the month's last one, then the seconds (E.3.3).
    """
    local = at.local
    if by.months:
        now = fields(at)
        # The months are counted from 0, and so is the result of divmod: 2024-01-31 and one month is (2024, 1), whose
        # 31st day is clamped to 2024-02-29.
        year, month = divmod(now.year * 12 + now.month - 1 + by.months, 12)
        day = min(now.day, days_in(year, month + 1))
        # Only the days between the two dates are added, so that the time of day keeps all its digits.
        moved = (day_number(year, month + 1, day) - day_number(now.year, now.month, now.day)) * DAY
        local = _EXACT.add(local, Decimal(moved))
    return Moment(_EXACT.add(local, by.seconds), at.zone)


def between(left: Moment, right: Moment) -> Duration | None:
    """The duration from right to left; ``None`` if only one of them has a zone."""
    if (left.zone is None) is not (right.zone is None):
        return None
    return Duration(0, _EXACT.subtract(utc(left), utc(right)))


def start_of_day(at: Moment) -> Moment:
    """The start of a moment's day in its own zone."""
    return Moment(_EXACT.subtract(at.local, _days(at)[1]), at.zone)


def on_the_clock(at: Moment) -> Moment:
    """The time of day of a moment as an xsd:time, which is on 1972-12-31."""
    return moment(1972, 12, 31, _days(at)[1], at.zone)


_MARKS: Final = (moment(1696, 9, 1), moment(1697, 2, 1), moment(1903, 3, 1), moment(1903, 7, 1))


def compare_durations(left: Duration, right: Duration) -> int | None:
    """-1, 0 or 1 if the order is the same from all four reference dates, else ``None`` (XML Schema 1.1, 3.3.6.2).

    Worked example: one month and 30 days are not ordered. From 1903-03-01 the month is longer, from 1697-02-01 shorter.
    """
    if left == right:
        return 0
    if left.months == right.months:
        return _sign(_EXACT.subtract(left.seconds, right.seconds))
    # The standard names these four dates, which are followed by months of different lengths: 1697-02-01 by one of 28
    # days, 1903-07-01 by two of 31.
    signs = {compare(later(mark, left), later(mark, right)) for mark in _MARKS}
    return signs.pop() if len(signs) == 1 else None


def read_duration(text: str, kind: str) -> Duration | None:
    """The duration of a lexical form; yearMonthDuration has no days, dayTimeDuration no months."""
    match = _DURATION.fullmatch(text)
    if match is None or len(text) > _MAX_CHARACTERS:
        return None
    parts = match.groupdict()
    wrong = ("days", "hours", "minutes", "seconds") if kind == "yearMonthDuration" else ("years", "months")
    if kind != "duration" and any(parts[name] is not None for name in wrong):
        return None
    months = int(parts["years"] or 0) * 12 + int(parts["months"] or 0)
    whole = int(parts["days"] or 0) * DAY + int(parts["hours"] or 0) * 3600 + int(parts["minutes"] or 0) * 60
    seconds = _EXACT.add(Decimal(whole), Decimal(parts["seconds"] or 0))
    return Duration(-months, _EXACT.minus(seconds)) if parts["sign"] else Duration(months, seconds)


def write_duration(duration: Duration, kind: str) -> str:
    """The canonical form: years, months below 12, days, hours, minutes and seconds (XML Schema 1.1, E.2)."""
    # Each type has its own zero: P0M has no days, PT0S no months. A duration of no kind in particular gets PT0S.
    if not duration.months and not duration.seconds:
        return "P0M" if kind == "yearMonthDuration" else "PT0S"
    sign = "-" if duration.months < 0 or duration.seconds < 0 else ""
    years, months = divmod(abs(duration.months), 12)
    seconds = abs(duration.seconds)
    days, rest = divmod(int(seconds), DAY)
    second = _EXACT.add(Decimal(rest % 60), _EXACT.subtract(seconds, Decimal(int(seconds))))
    whole = _named((years, "Y"), (months, "M"), (days, "D"))
    part = _named((rest // 3600, "H"), (rest // 60 % 60, "M"), (second, "S"))
    return f"{sign}P{whole}{'T' if part else ''}{part}"


def _named(*parts: tuple[int | Decimal, str]) -> str:
    return "".join(f"{plain(Decimal(number))}{letter}" for number, letter in parts if number)


def plain(number: Decimal) -> str:
    """A decimal without exponent and without trailing zeros."""
    text = f"{number:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def write_date_time(at: Moment, kind: str) -> str:
    """The canonical form of a moment, in its own zone."""
    now = fields(at)
    # The width of a format counts the sign as well.
    sign, year = ("-" if now.year < 0 else ""), f"{abs(now.year):04d}"
    second = plain(now.second)
    clock = f"{now.hour:02d}:{now.minute:02d}:{second if now.second >= 10 else f'0{second}'}"
    day = f"{sign}{year}-{now.month:02d}-{now.day:02d}"
    text = {
        "dateTime": f"{day}T{clock}",
        "dateTimeStamp": f"{day}T{clock}",
        "date": day,
        "time": clock,
        "gYearMonth": f"{sign}{year}-{now.month:02d}",
        "gYear": f"{sign}{year}",
        "gMonthDay": f"--{now.month:02d}-{now.day:02d}",
        "gDay": f"---{now.day:02d}",
        "gMonth": f"--{now.month:02d}",
    }[kind]
    return text + write_zone(at.zone)


def write_zone(zone: int | None) -> str:
    """``Z``, ``+01:00``, or an empty string without a zone."""
    # The canonical form of +00:00 is Z.
    if not zone:
        return "" if zone is None else "Z"
    return f"{'-' if zone < 0 else '+'}{abs(zone) // 60:02d}:{abs(zone) % 60:02d}"
