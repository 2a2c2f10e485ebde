"""GTFS-Realtime (https://gtfs.org/realtime/reference/): an element for each departure of a trip update, or vehicle.

Every feed repeats the full state, so an element ends ``interval`` ms after its feed's timestamp: set it to the time
between two feeds. The vocabulary is that of the workload trains. Alerts are left out, with a note.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote

import pyoxigraph as ox
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from streamgauge.formats.canonical import Canonical, parse_term, to_term
from streamgauge.formats.documents import FormatError
from streamgauge.formats.streams.format import Format, Numbering, Reading, Refuse, Whole
from streamgauge.formats.streams.options import STREAM, honoured
from streamgauge.model.element import StreamElement
from streamgauge.model.extras import missing
from streamgauge.model.mistake import obstacle
from streamgauge.model.terms import XSD, Term, Triple

_CANONICAL: Final = Canonical()
T: Final = "http://example.org/train#"
TD: Final = "http://example.org/traindata#"
GEO: Final = "http://www.w3.org/2003/01/geo/wgs84_pos#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TRIP_GONE: Final = ("CANCELED", "DELETED")
STOP_GONE: Final = "SKIPPED"


def read(whole: Whole, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of a file with one FeedMessage, or of several, in name order; FormatError names the file."""
    decode = decoder(reading)
    for document in whole.with_endings((".pb", ".gtfsrt")):
        with document.open(binary=True) as opened:
            try:
                # One byte more than allowed shows that there is more, without reading it.
                payload = opened.read(reading.limit + 1)
            except (OSError, EOFError) as error:
                raise FormatError(f"{document.place}: cannot be read: {obstacle(error)}") from error
        try:
            if len(payload) > reading.limit:
                raise FormatError(f"{document.place}: a feed of more than {reading.limit} bytes: raise the limit")
            yield from decode(payload, document.place, None)
        except FormatError as error:
            refuse(error)


def decoder(reading: Reading) -> Callable[[bytes, str, int | None], list[StreamElement]]:
    """The reader of messages that are one FeedMessage each."""
    numbering = Numbering(reading)

    def decode(payload: bytes, place: str, arrived: int | None) -> list[StreamElement]:
        feed = _feed(payload, place)
        # GTFS counts in seconds.
        time = feed.header.timestamp * 1000 if arrived is None else arrived
        if not time:
            raise FormatError(f"{place}: the feed's header has no timestamp: read it with time=arrival")
        updates = [entity.trip_update for entity in feed.entity if entity.HasField("trip_update")]
        parts = [triples for update in updates for triples in _departures(update)]
        parts += [tuple(_position(entity)) for entity in feed.entity if entity.HasField("vehicle")]
        if not parts and len(feed.entity):
            reading.note(f"{place}: none of its {len(feed.entity)} entities is a trip update or a vehicle position")
        elements = (numbering.element(place, time, triples) for triples in parts)
        return [replace(element, until=time + reading.interval) for element in elements]

    return decode


def _feed(payload: bytes, place: str) -> Any:
    if lack := missing("gtfs"):
        raise FormatError(f"{place}: {lack}")
    feed = import_module("google.transit.gtfs_realtime_pb2").FeedMessage()
    try:
        feed.ParseFromString(payload)
    except DecodeError as error:
        raise FormatError(f"{place}: not a FeedMessage of GTFS-Realtime: {error}") from error
    # Protobuf parses bytes of another message without an error; missing required fields show it.
    if not feed.IsInitialized():
        raise FormatError(
            f"{place}: not a FeedMessage of GTFS-Realtime: it lacks {', '.join(feed.FindInitializationErrors())}"
        )
    if feed.header.incrementality != feed.header.FULL_DATASET:
        raise FormatError(
            f"{place}: GTFS does not specify differential feeds yet, so they are refused: request the full data set"
        )
    return feed


def _departures(update: Any) -> Iterator[tuple[Triple, ...]]:
    """The triples of an update for each stop; a delay applies to later stops until another is given."""
    trip = update.trip
    gone = _named(trip, "schedule_relationship") in TRIP_GONE
    delay: int | None = update.delay if update.HasField("delay") else None
    for stop in update.stop_time_update:
        # A stop may have an arrival only, as the last one of a trip.
        event = stop.departure if stop.HasField("departure") else stop.arrival
        if _named(stop, "schedule_relationship") == "NO_DATA":
            delay = None
        elif event.HasField("delay"):
            delay = event.delay
        skipped = gone or _named(stop, "schedule_relationship") == STOP_GONE
        yield tuple(_stop_triples(trip, stop, event, delay, "true" if skipped else "false"))


def _stop_triples(trip: Any, stop: Any, event: Any, delay: int | None, cancelled: str) -> Iterator[Triple]:
    # A trip may visit a stop twice: then GTFS requires the number of the stop.
    number = str(stop.stop_sequence) if stop.HasField("stop_sequence") else None
    departure = _iri("departure", "/".join(filter(None, (trip.trip_id, trip.start_date, stop.stop_id, number))))
    yield departure, f"<{T}cancelled>", _literal(cancelled, "boolean")
    if delay is not None:
        yield departure, f"<{T}delay>", _literal(f"-PT{-delay}S" if delay < 0 else f"PT{delay}S", "duration")
    if event.HasField("time"):
        yield departure, f"<{T}expected>", _literal(str(event.time), "integer")
    if trip.route_id:
        yield departure, f"<{T}routeLabel>", to_term(ox.Literal(trip.route_id))
    if stop.stop_id:
        yield departure, f"<{T}stop>", _iri("stop", stop.stop_id)
    if assigned := stop.stop_time_properties.assigned_stop_id:
        yield departure, f"<{T}platform>", _iri("platform", assigned)


def _position(entity: Any) -> Iterator[Triple]:
    """The triples about a vehicle: its position, its trip, and when they were observed (s since 1970)."""
    vehicle = entity.vehicle
    subject = _iri("vehicle", vehicle.vehicle.id or vehicle.vehicle.label or entity.id)
    yield subject, f"<{RDF}type>", f"<{T}Vehicle>"
    if vehicle.HasField("position"):
        place = vehicle.position
        # Positions are 32-bit floats in the feed: further digits would be those of the conversion.
        yield subject, f"<{GEO}lat>", _literal(f"{place.latitude:.6f}", "decimal")
        yield subject, f"<{GEO}long>", _literal(f"{place.longitude:.6f}", "decimal")
        for name in ("bearing", "speed"):
            if place.HasField(name):
                yield subject, f"<{T}{name}>", _literal(f"{getattr(place, name):.3f}", "decimal")
    if vehicle.trip.trip_id:
        yield subject, f"<{T}trip>", _iri("trip", vehicle.trip.trip_id)
    if vehicle.trip.route_id:
        yield subject, f"<{T}routeLabel>", to_term(ox.Literal(vehicle.trip.route_id))
    if vehicle.stop_id:
        yield subject, f"<{T}stop>", _iri("stop", vehicle.stop_id)
    if vehicle.HasField("timestamp"):
        yield subject, f"<{T}seen>", _literal(str(vehicle.timestamp), "integer")


def _named(message: Any, field: str) -> str:
    """The name of the value of an enumeration field."""
    values = message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number
    return str(values[getattr(message, field)].name)


def _iri(kind: str, name: str) -> Term:
    return f"<{TD}{kind}-{quote(name, safe='/')}>"


def _literal(text: str, datatype: str) -> Term:
    """A literal in the form of its value: ``PT120S`` becomes ``PT2M``."""
    return _CANONICAL.term(parse_term(f'"{text}"^^<{XSD}{datatype}>'))


FORMATS = (
    Format(
        "gtfsrt",
        "GTFS-Realtime, an element per departure of each trip update and per vehicle, ending with the next feed",
        (".pb", ".gtfsrt"),
        read,
        decoder=decoder,
        honours={
            "read": honoured(STREAM, "interval", "bad"),
            "decoder": honoured(STREAM, "interval", "bad", "time"),
        },
        binary=True,
    ),
)
