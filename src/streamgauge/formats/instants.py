"""Conversion of times in user data to ms since 1970: dates, dates with times, numbers, with or without zones."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, Overflow
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from streamgauge.model.terms import XSD, Term, datatype, is_literal, lexical

UNITS: Final = {"ns": Decimal("0.000001"), "us": Decimal("0.001"), "ms": Decimal(1), "s": Decimal(1000)}
"""Units of numeric times, in ms."""

NUMBERS: Final = frozenset(
    XSD + name
    for name in (
        *("integer", "decimal", "double", "float", "long", "int", "short", "byte", "nonNegativeInteger"),
        *("positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
DATES: Final = frozenset(XSD + name for name in ("dateTime", "dateTimeStamp", "date"))
_LIKE_DATES: Final = DATES | {
    f"{space}{name}"
    for space in ("http://schema.org/", "https://schema.org/", "https://uri.etsi.org/ngsi-ld/")
    for name in ("Date", "DateTime")
}
"""Including the datatypes that the contexts of schema.org and NGSI-LD assign to ISO 8601 dates."""

_DATE: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?"
    r"\s?(Z|z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII,
)
"""Dates as programs write them: also the offset in hours of PostgreSQL and DuckDB, and UTC of BigQuery."""
_PLAIN: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{3}|\.[0-9]{6})?(?:Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9])?"
)
"""The common form of times, which ``datetime.fromisoformat`` parses five times as fast as ``_DATE``."""
_FAR: Final = re.compile(r"(?:-[0-9]{4,}|[0-9]{5,})-[0-9]{2}-[0-9]{2}")
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_COMPACT: Final = re.compile(
    r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d(?:\d{3})?)?)?(?:\.0*)?",
    re.ASCII,
)
"""Numbers that are read as dates by people: 20260301, 202603010800 and so on."""
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_LARGEST: Final = 2**63 - 1
_NO_TIME: Final = timedelta()

_MAGNITUDES: Final = {
    "s": (Decimal("1e9"), Decimal("1e11")),
    "us": (Decimal("1e15"), Decimal("1e17")),
    "ns": (Decimal("1e18"), Decimal("1e19")),
}
"""Ranges of numbers that are plausible times in that unit, and implausible ones in ms."""

_RELATIVE: Final = Decimal("1e9")
"""Numbers below it count from some beginning, as a logger's seconds do."""

_CENTURIES: Final = (10**11, 10**13)
"""Ms of 1973 to 2286, as which a time in the right unit comes out."""

_UNIT_NAMES: Final = {"s": "seconds", "us": "microseconds", "ns": "nanoseconds"}


_DATED: Final = re.compile(
    r"(?:.*[^0-9])?(?:19|20)[0-9]{2}([-_./]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12][0-9]|3[01])"
    r"(?:[Tt_ -]?[0-9]{2}[-:_.hH]?[0-9]{2}(?:[-:_.mM]?[0-9]{2}(?:[.,][0-9]+)?)?)?",
    re.DOTALL,
)


class InstantError(ValueError):
    """Text that is not a time, or a time in an unknown zone; the sentence says what to do."""


class TimeFormError(InstantError):
    """A text in none of the date formats that are read without a pattern."""


FOLDS: Final = ("earlier", "later")
"""The choices for local times that occur twice or not at all when clocks change."""


@dataclass
class Instants:
    """Parser of the times of one source, consistent in the unit and the kind of zone of its first times.

    ``unit`` is that of numbers (default: guessed by the magnitude of the first), ``zone`` that of times without one
    (``Z``, ``+01:00``, ``Europe/Vienna``; default UTC). ``note`` is called once per assumption. With ``strict`` a
    source that mixes times with and without zone is refused unless ``zone`` is set, and so are local times that occur
    twice or not at all when clocks change, unless ``fold`` chooses an instant.
    """

    unit: str | None = None
    zone: str | None = None
    note: Callable[[str], None] = lambda _sentence: None
    strict: bool = True
    fold: str | None = None
    _seen: dict[bool, str] = field(default_factory=dict)
    _last: int | None = None
    _folded: bool = False
    _assumed: str | None = None
    """The unit that the first number suggested, if none is stated."""
    _doubted: bool = False

    def __post_init__(self) -> None:
        """Refuse an unknown unit, zone or fold."""
        if self.unit is not None and self.unit not in UNITS:
            raise InstantError(f"time_in is {self.unit!r}: expected {', '.join(UNITS)}")
        if self.fold is not None and self.fold not in FOLDS:
            raise InstantError(f"fold is {self.fold!r}: expected {' or '.join(FOLDS)}")
        self._zone = None if self.zone is None else read_zone(self.zone)
        self._scale = None if self.unit is None else UNITS[self.unit]

    def learned(self) -> list[Any]:
        """The state after the times so far (a copy, as JSON), for ``learn`` of the source's next reader."""
        return [[*self._seen.items()], self._last, self._folded, self._assumed, self._doubted]

    def learn(self, learned: Sequence[Any]) -> None:
        """Take over the state of the reader before."""
        seen, self._last, self._folded, self._assumed, self._doubted = learned
        self._seen = dict(seen)
        if self._assumed is not None:
            self._scale = UNITS[self._assumed]

    def of_term(self, term: Term, place: object) -> int:
        """The ms of a literal: xsd:dateTime, xsd:dateTimeStamp, xsd:date, a number, or a string of that form.

        ``place`` is the prefix of errors; it is converted to text only then, as in the other methods.
        """
        if not is_literal(term):
            raise InstantError(
                f"{term[:120]} is not a time: name the path to the time, as in "
                "sosa:phenomenonTime/time:inXSDDateTimeStamp"
            )
        kind, text = datatype(term), lexical(term).strip()
        if kind in NUMBERS:
            return self.of_number(text, place)
        if kind in _LIKE_DATES or kind == XSD + "string":
            return self.of_text(text, place, numbers=kind not in _LIKE_DATES)
        raise InstantError(
            f"{term[:120]} is not a time: xsd:dateTime, xsd:dateTimeStamp, xsd:date or a number is expected"
        )

    def of_text(self, text: str, place: object, *, numbers: bool = True) -> int:
        """The ms of a date, a date with a time (ISO 8601), or a number."""
        if numbers and _NUMBER.fullmatch(text):
            return self.of_number(text, place)
        return self.of_moment(read_moment(text), text, place)

    def of_moment(self, moment: datetime, text: str, place: object) -> int:
        """The ms of a moment; without a zone it is in ``zone``, else in UTC."""
        if self._zone is None:
            self._look(moment.tzinfo is not None, text, place)
        if moment.tzinfo is not None:
            return _milliseconds(moment - _EPOCH_UTC)
        # Fixed offsets have no changes of the clock.
        if not isinstance(self._zone, ZoneInfo):
            return _milliseconds(moment.replace(tzinfo=self._zone or UTC) - _EPOCH_UTC)
        # The offsets under both folds differ just where a change of the clock repeats or skips the local time.
        first, second = (moment.replace(tzinfo=self._zone, fold=fold).utcoffset() for fold in (0, 1))
        instants = sorted(_milliseconds(moment - (offset or _NO_TIME) - _EPOCH) for offset in {first, second})
        if first == second:
            self._last = instants[0]
            return self._last
        # Worked example, Vienna: on 25 October 2026 02:30 occurs at +02:00 and at +01:00, and the first offset is the
        # greater; on 29 March 2026 02:30 does not exist, and fold 0 gives the offset before the change, +01:00, the
        # smaller one.
        self._last = self._choice(instants, text, place, repeated=(first or _NO_TIME) > (second or _NO_TIME))
        return self._last

    def _choice(self, instants: Sequence[int], text: str, place: object, *, repeated: bool) -> int:
        """One of the two instants of a local time at a change of the clock.

        Worked example, a live feed in Vienna when clocks go back: after 02:50 comes 02:10, whose earlier instant would
        precede the last one, so its later instant is chosen.
        """
        what = "occurs twice" if repeated else "does not exist"
        if self.fold is None and self.strict:
            raise InstantError(
                f"{text} {what} in {self.zone}, where the clocks change: give the times with their offset, or choose "
                "--fold earlier or --fold later"
            )
        if not self._folded and self.fold is None:
            self._folded = True
            chosen = "its earlier instant, unless time would go back," if repeated else "its later instant"
            self.note(f"{place}: {text} {what} in {self.zone}, where the clocks change: {chosen} is used (--fold)")
        if self.fold is not None:
            return instants[FOLDS.index(self.fold)]
        late = not repeated or (self._last is not None and instants[0] < self._last)
        return instants[1] if late else instants[0]

    def of_number(self, text: str, place: object) -> int:
        """The ms of a number in the unit; InstantError beyond 64 bits."""
        try:
            number = Decimal(text)
            value = number * (self._guessed(number, text, place) if self._scale is None else self._scale)
        except Overflow:  # an exponent of more than 999,999, which is beyond the context of Decimal
            value = Decimal("Infinity")
        except InvalidOperation:
            raise InstantError(f"{text[:80]} is not a time: a number is expected") from None
        if not value.is_finite() or abs(value) > _LARGEST:
            unit = self._assumed or self.unit or "ms"
            raise InstantError(f"{text[:80]} is not a time: it is beyond 64 bits of ms (time_in is {unit})")
        # In Decimal: a double has no exact nanoseconds of today, which need 61 bits.
        whole = int(value.to_integral_value(ROUND_HALF_EVEN))
        if self._assumed is not None and not _CENTURIES[0] <= whole < _CENTURIES[1]:
            self._doubt(number, whole, text, place)
        return whole

    def _guessed(self, number: Decimal, text: str, place: object) -> Decimal:
        """The unit of a source without a stated one, by its first number, which is of 2001 to 5138 in that unit.

        Worked example: 1772352000 would be in January 1970 as ms, and is 1 March 2026 as seconds.
        """
        if _COMPACT.fullmatch(text):
            raise TimeFormError(
                f"{text} is a number or a date without signs: name the unit of numbers, as by --time-in ms, or write "
                f"the date as {text[:4]}-{text[4:6]}-{text[6:8]}"
            )
        self._assumed = _likely_unit(number) or "ms"
        self._scale = UNITS[self._assumed]
        if self._assumed != "ms":
            self.note(f"{place}: {text} is read as {_UNIT_NAMES[self._assumed]} since 1970 (--time-in ms changes that)")
        return self._scale

    def _doubt(self, number: Decimal, whole: int, text: str, place: object) -> None:
        """Note once a number that the assumed unit does not suit; InstantError for one that is centuries ahead in it.

        Worked example: 1772352000 after 0 was meant as seconds, and so was 0.25, which would be rounded to 0 ms.
        """
        if self._assumed != "ms":
            unit = str(self._assumed)
            if abs(number) >= _MAGNITUDES[unit][1]:
                raise InstantError(
                    f"{text[:80]} is not a time in {_UNIT_NAMES[unit]}, which the first number suggested: name the "
                    "unit, as by --time-in ms"
                )
        elif not self._doubted:
            likely = _likely_unit(number)
            self._doubted = likely is not None or (whole != number and abs(number) < _RELATIVE)
            if self._doubted:
                rounded = "" if likely else ", rounded"
                self.note(f"{place}: {text} is read as ms since 1970{rounded} (--time-in {likely or 's'} changes that)")

    def _look(self, zoned: bool, text: str, place: object) -> None:
        """Note once that times without a zone are read as UTC; refuse them beside times with one."""
        mixed = len(self._seen) == 2 and not zoned
        if zoned in self._seen and not mixed:
            return
        self._seen[zoned] = f"{text} ({place})"
        if len(self._seen) == 2 and self.strict:
            raise InstantError(
                f"{self._seen[False]} has no zone and {self._seen[True]} has one: name the zone of times without one, "
                "as in --time-zone Europe/Vienna or time_zone=Z"
            )
        if not zoned:
            self.note(f"{place}: {text} has no zone: such times are read as UTC (--time-zone changes that)")


def _likely_unit(number: Decimal) -> str | None:
    """The unit other than ms in which a number is a time of 2001 to 5138, if any."""
    size = abs(number)
    return next((unit for unit, (least, upper) in _MAGNITUDES.items() if least <= size < upper), None)


def _milliseconds(since: timedelta) -> int:
    """The ms of the time since 1970, rounded half to even."""
    whole, rest = divmod(since, _MS)
    return whole + (rest * 2 > _MS or (rest * 2 == _MS and whole % 2)) if rest else whole


def read_moment(text: str) -> datetime:
    """A date or a date with a time, with its zone if it has one; InstantError, TimeFormError."""
    if _PLAIN.fullmatch(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass  # the parts below tell which is invalid, and 24:00:00 is 00:00:00 of the next day
    match = _DATE.fullmatch(text)
    if match is None and _FAR.match(text):
        raise InstantError(f"{text[:80]!r} is not a time: only years from 0001 to 9999 are read")
    if match is None:
        raise TimeFormError(
            f"{text[:80]!r} is not a time: a date with a time as 2026-03-01T08:00:00Z, a date or a number is expected"
        )
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    late = hour == "24" and int(minute) == int(second or 0) == int(fraction or 0) == 0
    try:
        # ``datetime`` has no hour 24, which ISO 8601 allows for midnight.
        moment = datetime(
            int(year),
            int(month),
            int(day),
            0 if late else int(hour or 0),
            int(minute or 0),
            int(second or 0),
            # Cut and not rounded: 0.9999999 s must not become the next second.
            int((fraction or "0").ljust(6, "0")[:6]),
            None if zone is None else _offset(zone),
        )
        return moment + timedelta(days=1) if late else moment
    except (ValueError, OverflowError) as error:
        raise InstantError(f"{text[:80]!r} is not a time: {error}") from error


def ends_in_date(name: str) -> bool:
    """Whether the digits that end a name are those of a date: of ``g/2026-03-01``, ``log_20260301T0800``."""
    return _DATED.fullmatch(name) is not None


def read_zone(text: str) -> tzinfo:
    """``Z``, ``UTC``, an offset as ``+01:00``, or a name as ``Europe/Vienna``; InstantError."""
    if text.upper() in ("Z", "UTC"):
        return UTC
    if re.fullmatch(r"[+-][0-9]{2}:?[0-9]{2}", text):
        return _offset(text)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InstantError(f"{text!r} is not a zone: write Z, an offset as +01:00 or a name as Europe/Vienna") from None


def from_pattern(text: str, pattern: str) -> datetime:
    """A moment written in a date pattern of Unicode (UTS 35), as ``dd.MM.yyyy HH:mm``; InstantError."""
    try:
        return datetime.strptime(text, strptime_pattern(pattern))
    except ValueError:
        raise InstantError(f"{text[:80]!r} is not written as {pattern}") from None


_FIELDS: Final = {
    **{"yyyy": "%Y", "yy": "%y", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d", "HH": "%H", "H": "%H"},
    **{"MMM": "%b", "MMMM": "%B", "hh": "%I", "h": "%I", "a": "%p"},  # in English
    **{"mm": "%M", "m": "%M", "ss": "%S", "s": "%S", "X": "%z", "XX": "%z", "XXX": "%z"},
}


def strptime_pattern(pattern: str) -> str:
    """The pattern in Python's notation; InstantError for an unsupported field.

    ``dd.MM.yyyy HH:mm:ss.SSS`` is ``%d.%m.%Y %H:%M:%S.%f``; text between ' ' is literal.
    """

    def one(substitute: re.Match[str]) -> str:
        text = substitute[0]
        if text.startswith("'"):
            return (text[1:-1] or "'").replace("%", "%%")
        if set(text) == {"S"}:
            return "%f"
        if text not in _FIELDS:
            raise InstantError(f"date pattern {pattern!r}: {text} is not supported: use {', '.join(_FIELDS)}, SSS")
        return _FIELDS[text]

    # A run of one letter is one field (UTS 35), so ``yyyy`` is not four times ``y``.
    return re.sub(r"'[^']*'|([A-Za-z])\1*", one, pattern.replace("%", "%%"))


def iso(moment: datetime | date) -> str:
    """The lexical form of a moment as xsd:dateTime."""
    text = moment.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def date_time(at: int) -> Term:
    """A time (ms since 1970) as an xsd:dateTime in UTC."""
    import numpy as np  # years beyond 9999 too

    return f'"{np.datetime64(at, "ms")}Z"^^<{XSD}dateTime>'


def _offset(text: str) -> tzinfo:
    """The zone of Z, UTC, GMT or an offset: +0530, +05:30 or +05; InstantError beyond 14 hours, as in XML Schema."""
    if not text.startswith(("+", "-")):
        return UTC
    hours, minutes = int(text[1:3]), int(text[3:].lstrip(":") or 0)
    if minutes > 59 or hours * 60 + minutes > 14 * 60:
        raise InstantError(f"the offset {text} is out of range: 14:00 is the largest, 59 the most minutes")
    return timezone(timedelta(hours=hours, minutes=minutes) * (-1 if text[0] == "-" else 1))
