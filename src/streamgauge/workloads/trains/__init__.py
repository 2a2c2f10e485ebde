"""Train departures as in iRail's stream: delays and platforms are renewed at every update, the rest is static.

Source: Taelman et al., Continuous Client-Side Query Evaluation over Dynamic Linked Data, sections 4 and 7, and its
recorded snapshots of Gent-Sint-Pieters (departures per hour, share of observations that differ).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streamgauge.formats.stream import SCHEMA, UNTIL
from streamgauge.model.terms import XSD
from streamgauge.workloads import draws, on_spark
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.parameters import Parameter, ParameterError, check_range, duration, resolve, share, whole
from streamgauge.workloads.plan import (
    TRIPLE_SCHEMA,
    Order,
    Statement,
    TablePlan,
    batch,
    expanded,
    exploded,
    formatted,
    numbers_of,
    running,
    text,
)

T = "http://example.org/train#"
TD = "http://example.org/traindata#"
STREAM = "http://example.org/streams/departures"

PROPERTIES = ("delay", "platform", "departureTime", "headSign", "routeLabel")
"""Properties of a departure, in the order of the paper's query; a station also has ``hasDeparture``."""

DAY = 1_417_824_000
"""The departure time at stream time 0, s since 1970: 2014-12-06T00:00:00Z, the recorded day."""

NAME = "trains"
ABOUT = "Departures on station boards: delays and platforms that end and are renewed, the rest static."
QUERIES = Path(__file__).parent / "queries"


def _properties(value: object) -> str:
    """Some of PROPERTIES, separated by commas, or ``none``; ValueError otherwise."""
    named = [] if value == "none" else [name.strip() for name in str(value).split(",")]
    if unknown := [name for name in named if name not in PROPERTIES]:
        raise ValueError(
            f"{unknown[0]!r} is not a property of a departure: choose from {', '.join(PROPERTIES)}, or none"
        )
    return ",".join(name for name in PROPERTIES if name in named) or "none"


PARAMETERS = {
    "stations": Parameter(whole, 1, "number of stations"),
    "per_hour": Parameter(whole, 16, "departures per hour and station"),
    "ahead": Parameter(duration, 73 * 60_000, "how long a departure is on the board before its time (ms, or 1h)"),
    "update": Parameter(duration, 10_000, "time between two updates, and lifetime of the renewed triples (ms, or 10s)"),
    "duration": Parameter(duration, 60_000, "length of the stream (ms, or 1h), both ends included"),
    "speedup": Parameter(whole, 1, "factor by which the boards are faster than the stream's time"),
    "delay_changes": Parameter(share, 201 / 24_869, "share of the updates at which a departure's delay changes"),
    "platform_changes": Parameter(share, 4 / 24_869, "share of the updates at which its platform changes"),
    "delayed": Parameter(share, 0.2, "share of departures that are late when they appear"),
    "head_signs": Parameter(whole, 18, "number of head signs"),
    "platforms": Parameter(whole, 14, "number of platforms of a station"),
    "dynamic": Parameter(_properties, "delay,platform", "properties that are renewed; the others are static"),
    "stream": Parameter(str, STREAM, "IRI of the stream"),
}


def plan(seed: int, **parameters: object) -> TablePlan:
    """The plan of the stream table with ``until``: an element for each departure on a board at each update.

    It ends at the next update. Rows are in order of sequence; ParameterError names a value out of range.
    """
    values = _checked(parameters)
    size, named = _size(values), _named(values)
    rows = size.departures * size.updates * len(named)
    drawing = Renewing(seed, size, (values["delay_changes"], values["platform_changes"]))
    writer = RenewalWriter(named, values["update"], values["stream"])
    order = Order(("time", "station", "number"))
    return TablePlan(size.departures, rows, RENEWED, RENEWED_SCHEMA, drawing, writer, size.updates, order)


def static_plan(seed: int, **parameters: object) -> TablePlan:
    """The plan of the static triples: each station's departures with their static properties."""
    values = _checked(parameters)
    size, named = _size(values), _named(values)
    properties = [name for name in PROPERTIES if name not in named]
    rows, order = size.departures * (1 + len(properties)), Order(("station", "number"), number=False)
    drawing, writer = Boards(seed, size), StaticWriter(properties)
    return TablePlan(size.departures, rows, DEPARTURE, TRIPLE_SCHEMA, drawing, writer, order=order)


generate = on_spark(plan)
static = on_spark(static_plan)


def _named(values: dict[str, Any]) -> list[str]:
    return [name for name in PROPERTIES if name in values["dynamic"].split(",")]


def _size(values: dict[str, Any]) -> "BoardsSize":
    names = ("stations", "per_hour", "ahead", "update", "duration", "speedup", "delayed", "head_signs", "platforms")
    return BoardsSize(**{name: values[name] for name in names})


def _checked(parameters: dict[str, object]) -> dict[str, Any]:
    values: dict[str, Any] = resolve(NAME, PARAMETERS, parameters)
    check_range(NAME, values, ("stations", "per_hour", "ahead", "update", "speedup", "head_signs", "platforms"))
    if values["per_hour"] > 3_600:
        raise ParameterError(f"{NAME}: per_hour is {values['per_hour']}: it must be at most 3600, add stations instead")
    return values


RENEWED_SCHEMA = SCHEMA.append(UNTIL)


@dataclass(frozen=True, slots=True)
class RenewalWriter:
    """Writes numbered rows of ``Renewing`` as elements of the named properties."""

    named: Sequence[str]
    update: int
    stream: str

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch; an element ends ``update`` ms after its time."""
        subject = _departure(rows)
        exploded_rows = exploded([(np.arange(len(rows)), [_statement(rows, subject, name) for name in self.named])])
        n, time = (column[exploded_rows.row] for column in numbers_of(rows, "n", "time"))
        columns = [
            text(len(n), self.stream),
            pa.array(time),
            pa.array(n),
            pa.array(exploded_rows.position, pa.int32()),
            *exploded_rows.triples,
            pa.array(time + self.update),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=RENEWED_SCHEMA)


@dataclass(frozen=True, slots=True)
class StaticWriter:
    """Writes departures as triples: the link from the station, and the static properties."""

    properties: Sequence[str]

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The triples of a batch."""
        subject = _departure(rows)
        (station,) = numbers_of(rows, "station")
        link = Statement(text(len(rows), f"<{TD}station-", station, ">"), f"<{T}hasDeparture>", subject)
        statements = [link, *(_statement(rows, subject, name) for name in self.properties)]
        return pa.RecordBatch.from_arrays(
            list(exploded([(np.arange(len(rows)), statements)]).triples), schema=TRIPLE_SCHEMA
        )


def _departure(rows: pa.RecordBatch) -> pa.Array:
    station, number = numbers_of(rows, "station", "number")
    return text(len(rows), f"<{TD}departure-", station, "-", number, ">")


def _statement(rows: pa.RecordBatch, subject: pa.Array, name: str) -> Statement:
    column, form = _OBJECTS[name]
    numbers: Ints = rows.column(column).to_numpy()
    return Statement(subject, f"<{T}{name}>", formatted(numbers, form))


def _delay(minutes: int) -> str:
    """The canonical xsd:duration of whole minutes."""
    # Worked examples: 75 minutes are `PT1H15M`, 60 are `PT1H`, none are `PT0S`.
    hours, rest = divmod(minutes, 60)
    parts = "".join(f"{count}{unit}" for count, unit in ((hours, "H"), (rest, "M")) if count)
    return f'"PT{parts or "0S"}"^^<{XSD}duration>'


def _departure_time(leaves: int) -> str:
    """An xsd:dateTime, because the paper's FILTER compares with one and pyoxigraph has no dateTimeStamp values."""
    return f'"{datetime.fromtimestamp(leaves + DAY, UTC):%Y-%m-%dT%H:%M:%SZ}"^^<{XSD}dateTime>'


_OBJECTS: Mapping[str, tuple[str, Callable[[int], str]]] = {
    "delay": ("late", _delay),
    "platform": ("platform", lambda number: f"<{TD}platform-{number + 1}>"),
    "departureTime": ("leaves", _departure_time),
    "headSign": ("sign", lambda number: f'"Town {number}"'),
    "routeLabel": ("route", lambda number: f'"IC {number}"'),
}
"""For each property the column of a departure, and the object for a value in it."""


_HOUR = 3_600
_LATEST = 15
"""Maximum initial delay of a departure, minutes."""


class BoardsSize(NamedTuple):
    """Sizes and rates of the stations' boards; times in ms."""

    stations: int
    per_hour: int
    ahead: int
    update: int
    duration: int
    speedup: int
    delayed: float
    head_signs: int
    platforms: int

    @property
    def horizon(self) -> int:
        """The latest departure that appears on a board (ms)."""
        return self.duration * self.speedup + self.ahead

    @property
    def departures(self) -> int:
        """The number of drawn departures; those that never appear on a board are left out."""
        # Rounded up, and one more for the slot that the horizon divides.
        return self.stations * (-(-self.horizon * self.per_hour // (_HOUR * 1000)) + 1)

    @property
    def updates(self) -> int:
        """The maximum number of board updates that show the same departure."""
        return 1 + min(self.duration // self.update, self.ahead // (self.update * self.speedup) + 1)


class Departures(NamedTuple):
    """Departures, identified by station and ``number``, which counts from 0 at each station.

    ``leaves`` is in s, ``late`` in minutes; ``platform``, head ``sign`` and ``route`` are numbers.
    """

    station: Ints
    number: Ints
    leaves: Ints
    late: Ints
    platform: Ints
    sign: Ints
    route: Ints

    def take(self, rows: Ints) -> "Departures":
        """The departures of some rows."""
        return Departures(*(column[rows] for column in self))


DEPARTURE = pa.schema([(name, pa.int64()) for name in Departures._fields])
RENEWED = pa.schema([*DEPARTURE, ("time", pa.int64())])


def departures(seed: int, size: BoardsSize, ids: Ints) -> Departures:
    """The departures of some ids that are on a board at some update."""
    of = (ids % size.stations + 1, ids // size.stations)
    # A worked example: with 16 departures an hour each has a slot of 225 s. Number 3 leaves between 676 and 900 s.
    begin = of[1] * _HOUR // size.per_hour
    slot = max(1, _HOUR // size.per_hour)
    late = draws.unit(seed, "delayed", *of) < size.delayed
    departures = Departures(
        *of,
        leaves=begin + draws.below(slot, seed, "leaves", *of) + 1,
        late=np.where(late, draws.below(_LATEST, seed, "delay", *of) + 1, 0),
        platform=draws.below(size.platforms, seed, "platform", *of),
        sign=draws.below(size.head_signs, seed, "head sign", *of) + 1,
        route=draws.below(5_000, seed, "route", *of) + 100,
    )
    first, last = _turns(size, departures.leaves)
    return departures.take(np.flatnonzero((departures.leaves * 1000 <= size.horizon) & (last >= first)))


@dataclass(frozen=True, slots=True)
class Boards:
    """Draws a row for each departure that is on a board at some update."""

    seed: int
    size: BoardsSize

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The departures of some ids."""
        yield batch(**departures(self.seed, self.size, ids)._asdict())


@dataclass(frozen=True, slots=True)
class Renewing:
    """Draws a row, with the ``time`` (ms), for each departure and update at which it is on the board.

    ``late`` and ``platform`` are those at the time; ``changes`` are the rates of change of both per update.
    """

    seed: int
    size: BoardsSize
    changes: tuple[float, float]

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The updates of the departures of some ids."""
        departures_ = departures(self.seed, self.size, ids)
        first, last = _turns(self.size, departures_.leaves)
        of, since = expanded(last - first + 1)
        rows, turn, begins = departures_.take(of), first[of] + since, since == 0
        key = (rows.station, rows.number, turn)
        # Two of three changes make a train later.
        step = np.where(draws.below(3, self.seed, "shorter", *key) == 0, -1, 1)
        grown = np.where(draws.unit(self.seed, "grown", *key) < self.changes[0], step, 0)
        moved = (draws.unit(self.seed, "moved", *key) < self.changes[1]).astype(np.int64)
        # Cut at 0 after summing: a train that has caught up by more stays on time until as much is added again.
        late = np.maximum(0, rows.late + running(grown, begins))
        platform = (rows.platform + running(moved, begins)) % self.size.platforms
        yield batch(**rows._replace(late=late, platform=platform)._asdict(), time=turn * self.size.update)


def _turns(size: BoardsSize, leaves: Ints) -> tuple[Ints, Ints]:
    """The first and last update, within the stream, at which departures are on the board and have not left."""
    # A worked example: updates every 10 s, departures 60 s on the board. One that leaves at 100 s is there at the
    # updates 4 to 9, from 40 s to 90 s.
    turn_length = size.update * size.speedup
    first = -(-np.maximum(0, leaves * 1000 - size.ahead) // turn_length)
    # A departure is on the board before its time only, hence the ``- 1``.
    return first, np.minimum((leaves * 1000 - 1) // turn_length, size.duration // size.update)
