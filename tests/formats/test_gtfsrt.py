"""GTFS-Realtime: feeds built here, read as departures that end with the next feed; what is not a feed is refused."""

import pytest

from streamgauge.formats.streams import FormatError, Reading, read_stream, stream_formats
from streamgauge.sources import open_source

pb = pytest.importorskip("google.transit.gtfs_realtime_pb2", reason="gtfs-realtime-bindings is not installed")

T = "<http://example.org/train#{}>"
MS = 1_700_000_000_000


def feed(time, *trips):
    message = pb.FeedMessage()
    message.header.gtfs_realtime_version = "2.0"
    message.header.timestamp = time
    for number, trip in enumerate(trips):
        entity = message.entity.add(id=str(number))
        entity.trip_update.CopyFrom(trip)
    return message


def trip(name, *stops, route="IC 7", **more):
    update = pb.TripUpdate(**more)
    update.trip.trip_id, update.trip.start_date, update.trip.route_id = name, "20231114", route
    for stop in stops:
        update.stop_time_update.add(**stop)
    return update


def read(tmp_path, *feeds, **how):
    for number, message in enumerate(feeds):
        (tmp_path / f"{number}.pb").write_bytes(message.SerializeToString())
    return list(read_stream(tmp_path, "gtfsrt", **how))


def said(element, name):
    return [triple[2] for triple in element.added if triple[1] == T.format(name)]


def test_each_departure_is_an_element_that_ends_with_the_next_feed(tmp_path):
    late = {"stop_id": "Gent SP", "departure": {"delay": 120, "time": MS // 1000 + 300}}
    moved = {"stop_id": "B", "stop_time_properties": {"assigned_stop_id": "B:3"}}
    first = feed(MS // 1000, trip("T1", late, moved), trip("T2", {"stop_id": "C", "departure": {"delay": -30}}))
    result = read(tmp_path, first, feed(MS // 1000 + 30, trip("T1", late)), interval=30_000)
    assert [(element.time, element.until, element.sequence) for element in result] == [
        *((MS, MS + 30_000, number) for number in range(3)),
        (MS + 30_000, MS + 60_000, 3),
    ]
    assert result[0].added[0][0] == "<http://example.org/traindata#departure-T1/20231114/Gent%20SP>"
    duration = '"{}"^^<http://www.w3.org/2001/XMLSchema#duration>'
    assert [said(element, "delay") for element in result[:3]] == [
        [duration.format("PT2M")],
        [duration.format("PT2M")],  # a delay holds for the stops that follow
        [duration.format("-PT30S")],
    ]
    assert said(result[1], "platform") == ["<http://example.org/traindata#platform-B%3A3>"]
    assert said(result[0], "routeLabel") == ['"IC 7"']
    assert said(result[0], "expected") == [f'"{MS // 1000 + 300}"^^<http://www.w3.org/2001/XMLSchema#integer>']


def test_a_trip_that_visits_a_stop_twice_departs_there_twice(tmp_path):
    visits = [{"stop_id": "A", "stop_sequence": number, "departure": {"delay": 60}} for number in (1, 7)]
    departures = [item.added[0][0] for item in read(tmp_path, feed(MS // 1000, trip("T5", *visits)))]
    names = [f"<http://example.org/traindata#departure-T5/20231114/A/{number}>" for number in (1, 7)]
    assert departures == names


def test_what_does_not_run_says_so(tmp_path):
    gone = trip("T3", {"stop_id": "A"})
    gone.trip.schedule_relationship = pb.TripDescriptor.CANCELED
    skipping = trip(
        "T4",
        {"stop_id": "A", "departure": {"delay": 60}},
        {"stop_id": "B", "schedule_relationship": pb.TripUpdate.StopTimeUpdate.SKIPPED},
        {"stop_id": "C", "schedule_relationship": pb.TripUpdate.StopTimeUpdate.NO_DATA},
    )
    result = read(tmp_path, feed(MS // 1000, gone, skipping))
    truth = [said(item, "cancelled")[0].split('"')[1] for item in result]
    assert truth == ["true", "false", "true", "false"]
    assert [len(said(item, "delay")) for item in result] == [0, 1, 1, 0]


def test_a_folder_of_feeds_is_a_source(tmp_path):
    for number in range(3):
        message = feed(MS // 1000 + number, trip("T1", {"stop_id": "A", "departure": {"delay": number}}))
        (tmp_path / f"{number}.pb").write_bytes(message.SerializeToString())
    results = list(open_source(f"{tmp_path}?form=gtfsrt&interval=1000&stream=urn:trains").items())
    assert [(item.stream, item.time - MS) for item in results] == [
        ("urn:trains", 0),
        ("urn:trains", 1000),
        ("urn:trains", 2000),
    ]


def test_messages_may_carry_feeds():
    decode = stream_formats()["gtfsrt"].decoder(Reading(interval=10))
    message = feed(0, trip("T1", {"stop_id": "A"})).SerializeToString()
    with pytest.raises(FormatError, match="topic: the feed's header has no timestamp"):
        decode(message, "topic", None)
    (element,) = decode(message, "topic", 77)
    assert (element.time, element.until) == (77, 87)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"\xff\xff\xff", "not a FeedMessage of GTFS-Realtime"),
        (b"", "not a FeedMessage of GTFS-Realtime: it lacks header"),
        (
            pb.FeedMessage(
                header={"gtfs_realtime_version": "2.0", "incrementality": pb.FeedHeader.DIFFERENTIAL}
            ).SerializeToString(),
            "GTFS does not specify differential feeds",
        ),
    ],
)
def test_an_invalid_feed_is_refused_with_its_place(tmp_path, payload, words):
    (tmp_path / "x.pb").write_bytes(payload)
    with pytest.raises(FormatError, match=f"x.pb: ({words})"):
        list(read_stream(tmp_path / "x.pb"))


def test_vehicle_positions_are_elements_and_alerts_are_noted():
    notes: list[str] = []
    decode = stream_formats()["gtfsrt"].decoder(Reading(interval=10, note=notes.append))
    message = feed(5)
    message.entity.add(id="e").alert.header_text.translation.add(text="snow")
    assert decode(message.SerializeToString(), "here", None) == []
    assert notes == ["here: none of its 1 entities is a trip update or a vehicle position"]
    vehicle = message.entity.add(id="v").vehicle
    vehicle.trip.trip_id, vehicle.trip.route_id, vehicle.timestamp = "t 1", "S1", 4
    vehicle.position.latitude, vehicle.position.longitude, vehicle.position.speed = 48.25, 16.5, 12.5
    (element,) = decode(message.SerializeToString(), "here", None)
    geo, xsd = "http://www.w3.org/2003/01/geo/wgs84_pos#", "http://www.w3.org/2001/XMLSchema#"
    assert (element.time, element.until) == (5000, 5010)
    assert {p: o for _, p, o in element.added[1:]} == {
        f"<{geo}lat>": f'"48.25"^^<{xsd}decimal>',
        f"<{geo}long>": f'"16.5"^^<{xsd}decimal>',
        T.format("speed"): f'"12.5"^^<{xsd}decimal>',
        T.format("trip"): "<http://example.org/traindata#trip-t%201>",
        T.format("routeLabel"): '"S1"',
        T.format("seen"): f'"4"^^<{xsd}integer>',
    }
