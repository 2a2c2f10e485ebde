"""A small board of departures as a stream and static data, without Spark."""

from pathlib import Path

from streamgauge.formats.stream import write
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import XSD
from streamgauge.suites.crowds.systems import CrowdData
from streamgauge.workloads.trains import STREAM, TD, T

DEPARTURES = 4
NOW = f'"PT0S"^^<{XSD}duration>'
LATE = f'"PT5M"^^<{XSD}duration>'


def element(turn, number, update):
    """A departure at an update: the second one is late from the third update on."""
    subject = f"<{TD}departure-1-{number}>"
    delay = LATE if number == 1 and turn > 1 else NOW
    added = ((subject, f"<{T}delay>", delay), (subject, f"<{T}platform>", f"<{TD}platform-{number % 2 + 1}>"))
    at = turn * update
    return StreamElement(STREAM, at, turn * DEPARTURES + number, added, (), at + update)


def elements(turns, update):
    return [element(turn, number, update) for turn in range(turns) for number in range(DEPARTURES)]


def static():
    for number in range(DEPARTURES):
        subject = f"<{TD}departure-1-{number}>"
        yield subject, f"<{T}departureTime>", f'"2014-12-06T00:0{number}:00Z"^^<{XSD}dateTime>'
        yield subject, f"<{T}headSign>", f'"Town {number % 2 + 1}"'
        yield subject, f"<{T}routeLabel>", f'"IC {number}"'


def data(folder: Path, turns: int, update: int) -> CrowdData:
    write(elements(turns, update), folder / "stream.parquet")
    (folder / "static.nt").write_text("".join(f"{' '.join(triple)} .\n" for triple in static()))
    return CrowdData(folder / "stream.parquet", folder / "static.nt")


def whole(turns, update):
    """Elements that say all of a departure, as engines with windows are fed."""
    still = list(static())
    for entry in elements(turns, update):
        more = tuple(triple for triple in still if triple[0] == entry.added[0][0])
        yield StreamElement(entry.stream, entry.time, entry.sequence, (*entry.added, *more), (), entry.until)
