"""CityBench's own files as readings: its ``*.stream`` CSVs, identified by their columns, and the users' places.

Time starts at the earliest reading of all files. A file of places has no times: its lines are an interval apart.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TextIO

import pyarrow as pa
import pyoxigraph as ox

from streamgauge.formats.canonical import Canonical
from streamgauge.formats.streams import FormatError
from streamgauge.model.mistake import obstacle
from streamgauge.model.terms import XSD, Term

SEEN = ("seen0", "seen1", "seen2")
"""The columns of a reading's values; trailing ones are null for sensors with fewer properties."""

READING = pa.schema(
    [
        ("kind", pa.string()),
        ("sensor", pa.int64()),
        ("time", pa.int64()),
        *((name, pa.string()) for name in (*SEEN, "Latitude", "Longitude")),
    ]
)
"""The time is in ms."""

_CANONICAL = Canonical()
_GASES = ("ozone", "particullate_matter", "carbon_monoxide", "sulfure_dioxide", "nitrogen_dioxide")


class FileReading(NamedTuple):
    """A line of a file: its time (ms; ``None`` in a file of places), its values, the location of a user."""

    time: int | None
    seen: tuple[Term, ...]
    place: tuple[Term, Term] | None = None


class _Line:
    """The fields of a line; FormatError names the file, the line and the field."""

    def __init__(self, path: Path, number: int, fields: Mapping[str, str | None]) -> None:
        self._where, self._fields = f"{path}:{number}", fields

    def text(self, name: str) -> str:
        value = self._fields.get(name)
        if not value:
            raise FormatError(f"{self._where}: field {name} is missing")
        return value.strip()

    def whole(self, name: str) -> int:
        value = self.text(name)
        try:
            return int(value)
        except ValueError:
            raise self._wrong(name, "a whole number") from None

    def double(self, name: str) -> Term:
        value = self.text(name)
        try:
            return _CANONICAL.term(ox.Literal(float(value)))
        except ValueError:
            raise self._wrong(name, "a number") from None

    def time(self, name: str) -> int:
        value = self.text(name)
        try:
            # The files have local times without a zone; only differences count.
            moment = datetime.fromisoformat(value).replace(tzinfo=UTC)
        except ValueError:
            raise self._wrong(name, "a time such as 2014-08-01T07:50:00") from None
        return round(moment.timestamp() * 1000)

    def _wrong(self, name: str, expected: str) -> FormatError:
        return FormatError(f"{self._where}: field {name} is {self._fields[name]!r}: expected {expected}")


def _integer(number: int) -> Term:
    return f'"{number}"^^<{XSD}integer>'


def _traffic(line: _Line) -> FileReading:
    names = ("vehicleCount", "avgSpeed", "avgMeasuredTime")
    return FileReading(line.time("TIMESTAMP"), tuple(_integer(line.whole(name)) for name in names))


def _parking(line: _Line) -> FileReading:
    vacancies = line.whole("totalspaces") - line.whole("vehiclecount")
    return FileReading(line.time("updatetime"), (_integer(vacancies),))


def _pollution(line: _Line) -> FileReading:
    return FileReading(line.time("timestamp"), (_integer(max(map(line.whole, _GASES))),))


def _weather(line: _Line) -> FileReading:
    seen = (line.double("tempm"), _integer(line.whole("hum")), line.double("wspdm"))
    return FileReading(line.time("TIMESTAMP"), seen)


def _user(line: _Line) -> FileReading:
    return FileReading(None, (), (line.double("latitude"), line.double("longitude")))


_READERS: Mapping[str, tuple[tuple[str, ...], Callable[[_Line], FileReading]]] = {
    "traffic": (("TIMESTAMP", "vehicleCount", "avgSpeed", "avgMeasuredTime"), _traffic),
    "parking": (("updatetime", "vehiclecount", "totalspaces"), _parking),
    "pollution": (("timestamp", *_GASES), _pollution),
    "weather": (("TIMESTAMP", "hum", "tempm", "wspdm"), _weather),
    "user": (("latitude", "longitude"), _user),
}


def sensors(paths: Sequence[Path]) -> dict[str, int]:
    """The number of files of each kind; FormatError names a file of no known kind."""
    return dict(Counter(kind(path) for path in paths))


def table(paths: Sequence[Path], interval: int, speedup: int) -> pa.Table:
    """The readings of the files (``READING``); the first file of a kind is its sensor 1, and so on."""
    numbers: Counter[str] = Counter()
    readings: list[tuple[str, int, FileReading]] = []
    for path in paths:
        of = kind(path)
        numbers[of] += 1
        readings += [(of, numbers[of], reading) for reading in _readings(path, of)]
    # Of all files, so that the streams of different sensors stay aligned.
    begin = min((reading.time for _, _, reading in readings if reading.time is not None), default=0)
    turns: Counter[tuple[str, int]] = Counter()
    rows = []
    for of, number, reading in readings:
        turn, turns[of, number] = turns[of, number], turns[of, number] + 1
        time = turn * interval if reading.time is None else (reading.time - begin) // speedup
        # Padded with nulls, as all kinds of sensors share the columns.
        seen = (*reading.seen, *(None for _ in range(len(SEEN) - len(reading.seen))))
        rows.append((of, number, time, *seen, *(reading.place or (None, None))))
    columns = zip(*rows, strict=True) if rows else [()] * len(READING)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, READING, strict=True)], READING)


def kind(path: Path) -> str:
    """The kind of sensor of a file, by its first line; FormatError for columns that CityBench does not have."""
    with _opened(path) as file:
        first = file.readline().strip()
    # A file of users has no header line.
    if "|" in first:
        return "user"
    columns = set(next(csv.reader([first]), []))
    for name, (needed, _) in _READERS.items():
        if columns.issuperset(needed):
            return name
    known = "; ".join(", ".join(needed) for name, (needed, _) in _READERS.items() if name != "user")
    raise FormatError(
        f"{path}:1: these are not the columns of a CityBench file, which are: {known}; or lines user|lat,long"
    )


def _readings(path: Path, of: str) -> Iterator[FileReading]:
    reader = _READERS[of][1]
    with _opened(path) as file:
        lines = _places(file) if of == "user" else csv.DictReader(file)
        try:
            # Lines are numbered as an editor shows them: behind the header line, data begin in line 2.
            for number, fields in enumerate(lines, 1 if of == "user" else 2):
                yield reader(_Line(path, number, fields))
        except (csv.Error, UnicodeDecodeError) as error:
            raise FormatError(f"{path}: not a CSV file: {error}") from error


def _places(lines: "Iterator[str]") -> Iterator[dict[str, str]]:
    for line in lines:
        latitude, _, longitude = line.partition("|")[2].partition(",")
        yield {"latitude": latitude, "longitude": longitude}


def _opened(path: Path) -> TextIO:
    try:
        return path.open(encoding="utf-8", newline="")
    except OSError as error:
        raise FormatError(f"{path}: {obstacle(error)}") from error
