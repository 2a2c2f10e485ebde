"""MQTT against a real mosquitto that is stopped and killed: nothing lost, nothing doubled, the undelivered counted."""

import shutil
import subprocess
import sys
from itertools import islice
from threading import Thread, Timer
from time import monotonic, sleep

import pytest

from streamgauge.formats.lines import encode_element
from streamgauge.model.element import StreamElement
from streamgauge.sources import Delivery, SourceError, open_sink, open_source

from .conftest import Mosquitto, free_port


def element(number: int) -> StreamElement:
    return StreamElement("urn:s", 10 * number, number, ((f"<urn:a{number}>", "<urn:b>", "<urn:c>"),))


def url(broker: Mosquitto, options: str = "") -> str:
    return f"mqtt://127.0.0.1:{broker.port}/weather/all{options}"


def numbers(items) -> list[int]:
    return [item.sequence for item in items]


def send(sink, elements) -> None:
    for one in elements:
        sink.send(encode_element(one), key="k")


def test_what_is_sent_comes_in_order(mosquitto):
    source, sink = open_source(url(mosquitto)), open_sink(url(mosquitto))
    send(sink, map(element, range(200)))
    assert list(islice(source.items(), 200)) == [element(n) for n in range(200)]
    assert sink.close() == sink.close() == Delivery(200, 0)
    source.close()
    source.close()
    with pytest.raises(SourceError, match="the sink is closed"):
        sink.send(b"late")


@pytest.mark.parametrize(("end", "options"), [("stop", "?buffer=7"), ("kill", "?buffer=7&once=1")])
def test_a_source_goes_on_after_its_broker_was_away(mosquitto, end, options):
    """A killed mosquitto forgets what it had not written, and sends it as new: then the elements' numbers tell."""
    source, sink = open_source(url(mosquitto, options)), open_sink(url(mosquitto))
    send(sink, map(element, range(60)))
    assert sink.close() == Delivery(60, 0)
    items = source.items()
    result = numbers(islice(items, 25))
    getattr(mosquitto, end)()
    back = Timer(0.3, mosquitto.start)  # what had come before is taken meanwhile
    back.start()
    result += numbers(islice(items, 35))
    back.join()
    source.close()
    assert result == list(range(60))


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_sink_delivers_after_its_broker_was_away(mosquitto, end):
    source, sink = open_source(url(mosquitto, "?once=1")), open_sink(url(mosquitto))
    results: list[int] = []
    reader = Thread(target=lambda: [results.append(item.sequence) for item in take_to(source.items(), 299)])
    reader.start()
    send(sink, map(element, range(100)))
    comes(lambda: len(results) == 100)
    getattr(mosquitto, end)()
    send(sink, map(element, range(100, 200)))
    mosquitto.start()
    send(sink, map(element, range(200, 300)))
    assert sink.close() == Delivery(300, 0)
    reader.join(60)
    source.close()
    assert results == list(range(300))


def comes(true, seconds=60):
    """Wait until it is true: what a broker has taken and not passed on dies with it."""
    until = monotonic() + seconds
    while not true():
        assert monotonic() < until
        sleep(0.01)


def take_to(items, last):
    for item in items:
        yield item
        if item.sequence == last:
            return


def test_a_named_session_goes_on_where_it_was_left(mosquitto):
    named = url(mosquitto, "?client=reader&lateness=0")
    source, sink = open_source(named), open_sink(url(mosquitto))
    send(sink, map(element, range(6)))
    items = source.items()
    assert numbers(islice(items, 4)) == [0, 1, 2, 3]
    source.close()
    send(sink, map(element, range(6, 9)))
    assert sink.close() == Delivery(9, 0)
    source = open_source(named)
    assert numbers(islice(source.items(), 6)) == [3, 4, 5, 6, 7, 8]  # 3 was handed over, not yet done with
    source.close()


def test_without_a_name_nothing_is_left_behind(mosquitto):
    source, sink = open_source(url(mosquitto)), open_sink(url(mosquitto))
    send(sink, [element(0)])
    assert numbers(islice(source.items(), 1)) == [0]
    source.close()
    send(sink, [element(1)])
    assert sink.close() == Delivery(2, 0)
    source, sink = open_source(url(mosquitto)), open_sink(url(mosquitto))
    send(sink, [element(2)])
    assert numbers(islice(source.items(), 1)) == [2]
    source.close()
    assert sink.close() == Delivery(1, 0)


def test_a_broker_that_stays_away_is_reported(mosquitto):
    source = open_source(url(mosquitto, "?patience=300"))
    sink = open_sink(url(mosquitto, "?wait=300&buffer=5"))
    send(sink, [element(0)])
    items = source.items()
    assert numbers([next(items)]) == [0]
    mosquitto.stop()
    send(sink, map(element, range(1, 8)))
    delivery = sink.close()
    assert (delivery.sent, delivery.undelivered) == (1, 7)
    assert "in flight for more than" in (delivery.why or "")
    with pytest.raises(SourceError, match="the broker was unavailable for more than 300 ms"):
        next(items)
    source.close()


def test_a_broker_that_forgets_a_session_is_told_of(mosquitto, tmp_path):
    source = open_source(url(mosquitto, "?bad=skip"))
    mosquitto.kill()
    (tmp_path / "mosquitto.db").unlink()
    mosquitto.start()
    items = source.items()
    reader = Thread(target=lambda: next(items, None))
    reader.start()
    while not source.refused:
        reader.join(0.05)
    assert "the broker forgot the session: messages may be missing" in source.reasons[0]
    source.close()
    reader.join(20)
    assert not reader.is_alive()


def test_bad_messages_are_named_by_topic_and_number(mosquitto):
    sink = open_sink(url(mosquitto))
    for options, said in (
        ("", "topic weather/all, message 2: not a line of JSON"),
        ("?limit=300", "message 2: 400 bytes"),
    ):
        source = open_source(url(mosquitto, options))
        send(sink, [element(0)])
        sink.send(b"nonsense" if not options else b" " * 400)
        items = source.items()
        assert numbers([next(items)]) == [0]
        with pytest.raises(SourceError, match=said):
            next(items)
        source.close()
    source = open_source(url(mosquitto, "?bad=skip"))
    sink.send(b"nonsense")
    send(sink, [element(1)])
    assert numbers(islice(source.items(), 1)) == [1]
    assert source.refused == 1
    source.close()
    assert sink.close() == Delivery(6, 0)


def test_graphs_without_a_time_take_that_of_arrival(mosquitto):
    source = open_source(url(mosquitto, "?form=turtle&time=arrival&stream=urn:t"))
    sink = open_sink(url(mosquitto))
    sink.send(b"<urn:a> <urn:b> [] .")
    sink.send(b"<urn:a> <urn:b> [] .")
    first, second = islice(source.items(), 2)
    assert sink.close() == Delivery(2, 0)
    source.close()
    assert 1_700_000_000_000 < first.time <= second.time
    assert (first.stream, first.sequence, second.sequence) == ("urn:t", 0, 1)
    assert first.added[0][2] != second.added[0][2]


def test_a_broker_that_refuses_is_named(mosquitto_program, tmp_path):
    broker = Mosquitto(mosquitto_program, tmp_path, "allow_anonymous false")
    broker.start()
    try:
        for open_one in (open_source, open_sink):
            with pytest.raises(SourceError, match=r"me:\.\.\.@127.*the broker refuses: Not authorized"):
                open_one(f"mqtt://me:secret@127.0.0.1:{broker.port}/x")
    finally:
        broker.kill()


def test_too_large_a_message_is_undelivered_and_holds_up_nothing(mosquitto_program, tmp_path):
    broker = Mosquitto(mosquitto_program, tmp_path, "allow_anonymous true\nmax_packet_size 1000")
    broker.start()
    try:
        sink = open_sink(url(broker))
        sink.send(b"x" * 2000)
        send(sink, map(element, range(3)))
        assert sink.close() == Delivery(3, 1, "2000 bytes exceed the broker's maximum packet size of 1000")
    finally:
        broker.kill()


def test_over_tls(mosquitto_program, tmp_path):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed: it makes the certificate of this check")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout {key} -out {certificate}"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([openssl, *words.split(), *names], check=True, capture_output=True)
    broker = Mosquitto(mosquitto_program, tmp_path, f"allow_anonymous true\nkeyfile {key}\ncertfile {certificate}")
    broker.start()
    try:
        url = f"mqtts://127.0.0.1:{broker.port}/x"
        source, sink = open_source(f"{url}?ca={certificate}"), open_sink(f"{url}?ca={certificate}")
        send(sink, map(element, range(50)))
        assert numbers(islice(source.items(), 50)) == list(range(50))
        assert sink.close() == Delivery(50, 0)
        source.close()
        with pytest.raises(SourceError, match="certificate verify failed"):
            open_sink(url)
    finally:
        broker.kill()


BAD = {
    "no topic": ("mqtt://127.0.0.1:{port}", "expected mqtt://host/topic"),
    "no broker": ("mqtt://127.0.0.1:{port}/x", "no server is listening there"),
    "no form": (
        "mqtt://127.0.0.1:{port}/x?form=parquet",
        "messages cannot be in the format 'parquet': use one of csv, gtfsrt, jelly, json, jsonl",
    ),
    "no option": (
        "mqtt://127.0.0.1:{port}/x?group=a",
        "unknown option group: there are bad, base, buffer, ca, charset, client",
    ),
    "wildcard": ("mqtt://127.0.0.1:{port}/x/#", "write # as %23"),
}


@pytest.mark.server
@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_reached_is_named(monkeypatch, case):
    monkeypatch.setattr("streamgauge.sources.mqtt._FIRST", 0.3)
    text, said = BAD[case]
    with pytest.raises(SourceError, match=said):
        open_source(text.format(port=free_port()))


def test_without_the_library_the_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "paho.mqtt.client", None)
    with pytest.raises(SourceError, match=r"MQTT needs paho-mqtt: pip install 'streamgauge\[mqtt\]'"):
        open_sink("mqtt://127.0.0.1/x")


SENSOR = ("2026-03-01T08:00:00Z", "2026-03-01T08:00:01Z", "2026-03-01T09:00:02+01:00")
DATE = "<http://www.w3.org/2001/XMLSchema#dateTime>"
LD = '{"@context": {"@vocab": "urn:v:", "at": {"@type": "http://www.w3.org/2001/XMLSchema#dateTime"}}, "@id": "urn:o%d"'
MESSAGES = {
    "json": ("form=json&time_property=at", lambda n, at: f'{{"at": "{at}", "value": {n}, "room": {{"name": "é"}}}}'),
    "csv": ("form=csv&time_property=at", lambda n, at: f"at,value,room\n{at},{n},é\n"),
    "jsonld": ("form=jsonld&time_property=<urn:v:at>", lambda n, at: LD % n + f', "at": "{at}", "value": {n}}}'),
    "turtle": ("form=turtle&time_property=<urn:v:at>",
               lambda n, at: f'<urn:o{n}> <urn:v:at> "{at}"^^{DATE} ; <urn:v:value> {n} .'),
}  # fmt: skip


@pytest.mark.parametrize("form", MESSAGES)
def test_sensors_publish_plain_messages(mosquitto, form):
    """What people's devices send through mosquitto, each message an element at the time that it states."""
    import paho.mqtt.client as paho

    options, written = MESSAGES[form]
    source = open_source(f"mqtt://127.0.0.1:{mosquitto.port}/rooms/%2B?{options}")
    device = paho.Client(paho.CallbackAPIVersion.VERSION2)
    device.connect("127.0.0.1", mosquitto.port)
    device.loop_start()
    for number, at in enumerate(SENSOR):
        device.publish(f"rooms/{number}", written(number, at).encode(), qos=1).wait_for_publish(30)
    results = list(islice(source.items(), len(SENSOR)))
    source.close()
    device.loop_stop()
    assert [item.time for item in results] == [1772352000000, 1772352001000, 1772352002000]
    for number, item in enumerate(results):
        assert f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>' in {o for _, _, o in item.added}
