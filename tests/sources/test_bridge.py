"""A broker with MQTT on both sides, over a real mosquitto: nothing lost when either side is away, circles refused."""

import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from random import Random
from threading import Thread

import pytest

from streamgauge.broker import BrokerError, Client
from streamgauge.formats.lines import encode_element
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import RDF_TYPE
from streamgauge.servers.broker.bridge import Bridge, BridgeError, Inlet, as_messages, read_outlet, refuse_circles
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.sources import SourceError, open_sink
from streamgauge.sources.contract import parse_address
from streamgauge.sources.mqtt import MqttSource, MqttSourceOptions
from tests.servers.broker.process import free_port, until
from tests.servers.broker.served import serving
from tests.servers.broker.world import broker, select
from tests.sources.test_posts import receiving

STUDENTS = select("?x a :Student")


def student(number):
    return f"<urn:t:s{number}>", RDF_TYPE, "<urn:t:Student>"


def comes(true):
    """Wait until it is true."""
    until(true, 20)


def turtle(*numbers):
    return "".join(f"<urn:t:s{n}> a <urn:t:Student> .\n" for n in numbers).encode()


@contextmanager
def carrying(url, inlets=(), outlets=(), **more):
    """A bridge at work; ``errors`` has why it ended."""
    bridge = Bridge(url, lambda: Client(url), inlets, [read_outlet(outlet) for outlet in outlets], "run", **more)
    bridge.open()
    errors = []

    def run():
        try:
            bridge.run()
        except (BrokerError, SourceError, BridgeError) as error:
            errors.append(error)

    thread = Thread(target=run)
    thread.start()
    try:
        yield errors
    finally:
        bridge.close()
        if not errors:
            bridge._ended.put(BridgeError("the test is over"))
        thread.join(60)
        assert not thread.is_alive()


class Heard:
    """What is published on a topic, as bytes."""

    def __init__(self, url):
        self.messages = []
        messages = type("Raw", (), {"refusals": None, "items": lambda _, payload, *__: [payload]})()
        self._source = MqttSource(parse_address(url), MqttSourceOptions(), messages, Random())
        self._source.open()
        self._thread = Thread(target=lambda: [self.messages.append(item) for item in self._source.items()])
        self._thread.start()

    def close(self):
        self._source.close()
        self._thread.join(60)

    @property
    def told(self):
        return [json.loads(message) for message in self.messages]


def send(url, *messages):
    sink = open_sink(url)
    for message in messages:
        sink.send(message)
    assert sink.close().undelivered == 0


def test_messages_are_published_and_notifications_sent(mosquitto):
    at = f"mqtt://127.0.0.1:{mosquitto.port}"
    inlets = [Inlet(f"{at}/in/%23"), Inlet(f"{at}/gone", deletes=True), Inlet(f"{at}/lines?form=jsonl")]
    heard = Heard(f"{at}/out")
    with serving(broker()) as (url, made):
        made.create_channel("people", STUDENTS)
        with carrying(url, inlets, [f"people={at}/out"]) as errors:
            comes(lambda: made.channel("people").acknowledged)
            send(f"{at}/in/one", turtle(1, 2))
            comes(lambda: len(heard.told) == 1)
            send(f"{at}/gone", turtle(1))
            comes(lambda: len(heard.told) == 2)
            send(f"{at}/lines", encode_element(StreamElement("urn:s", 1, 1, (student(3),), (student(2),))))
            comes(lambda: len(heard.told) == 3)
            comes(lambda: list(made.channel("people").acknowledged.values()) == [3])
            assert errors == []
        rows = [
            [
                sorted(row["x"]["value"][6:] for row in entry[part]["results"]["bindings"])
                for part in ("added", "removed")
            ]
            for entry in heard.told
        ]
        assert rows == [[["s1", "s2"], []], [[], ["s1"]], [["s3"], ["s2"]]]
        assert [(entry["channel"], entry["number"], entry["publications"]) for entry in heard.told] == [
            ("people", n, [n]) for n in (1, 2, 3)
        ]
        assert made.number == 3
    heard.close()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_nothing_is_lost_when_mosquitto_is_away(mosquitto, end):
    at = f"mqtt://127.0.0.1:{mosquitto.port}"
    heard = Heard(f"{at}/out")
    with serving(broker()) as (url, made):
        made.create_channel("people", STUDENTS)
        with carrying(url, [Inlet(f"{at}/in")], [f"people={at}/out"]) as errors:
            comes(lambda: made.channel("people").acknowledged)
            send(f"{at}/in", turtle(1))
            comes(lambda: len(heard.told) == 1)
            getattr(mosquitto, end)()
            with Client(url) as client:
                client.publish(turtle(2))
            mosquitto.start()
            send(f"{at}/in", turtle(3))
            comes(lambda: {entry["number"] for entry in heard.told} == {1, 2, 3})
            assert errors == []
    heard.close()


def test_nothing_is_lost_when_the_broker_is_away(mosquitto, tmp_path):
    at, port = f"mqtt://127.0.0.1:{mosquitto.port}", free_port()
    heard, said = Heard(f"{at}/out"), []
    url = f"http://127.0.0.1:{port}"
    with serving(broker(journal=SqliteJournal(tmp_path / "j")), port=port) as (_, made):
        made.create_channel("people", STUDENTS)
    more = {"tell": lambda why, _: said.append(why)}
    with carrying(url, [Inlet(f"{at}/in?client=bridge")], [f"people={at}/out"], **more) as errors:
        with serving(broker(journal=SqliteJournal(tmp_path / "j")), port=port) as (_, made):
            comes(lambda: made.channel("people").acknowledged)
            send(f"{at}/in", *(turtle(n) for n in range(5)))
            comes(lambda: len(heard.told) == 5)
        send(f"{at}/in", *(turtle(n) for n in range(5, 10)))
        comes(lambda: said)
        with serving(broker(journal=SqliteJournal(tmp_path / "j")), port=port) as (_, made):
            comes(lambda: {entry["number"] for entry in heard.told} == set(range(1, 11)))
            assert (made.number, errors) == (10, [])
    heard.close()


def test_what_the_broker_refuses_stops_the_bridge_or_is_passed_over(mosquitto):
    at, passed = f"mqtt://127.0.0.1:{mosquitto.port}", []
    wrong, right = (
        encode_element(StreamElement("urn:s", n, n, (), ((subject, "<urn:b>", "<urn:c>"),)))
        for n, subject in enumerate(("_:a", "<urn:a>"))
    )
    with serving(broker()) as (url, made):
        inlets = [Inlet(f"{at}/in?form=jsonl")]
        with carrying(url, inlets) as errors:
            send(f"{at}/in", wrong)
            comes(lambda: errors)
        assert f"element 0 of {at}/in?form=jsonl: a blank node" in str(errors[0])
        with carrying(url, inlets, refuse=passed.append) as errors:
            send(f"{at}/in", wrong, right)
            comes(lambda: made.number)
            assert (errors, len(passed)) == ([], 1)


def test_a_notification_that_is_not_delivered_is_not_acknowledged(mosquitto):
    at = f"mqtt://127.0.0.1:{mosquitto.port}"
    with serving(broker()) as (url, made):
        made.create_channel("people", STUDENTS)
        with carrying(url, (), [f"people={at}/out?wait=200"]) as errors:
            comes(lambda: made.channel("people").acknowledged)
            mosquitto.kill()
            made.publish([student(1)])
            comes(lambda: errors)
        assert "notification 1 was not delivered" in str(errors[0])
        assert list(made.channel("people").acknowledged.values()) == [0]


@pytest.mark.server
def test_a_dead_letter_is_acknowledged_and_not_sent_again(tmp_path):
    with serving(broker()) as (url, made), receiving(400) as (port, _):
        made.create_channel("people", STUDENTS)
        outlet = read_outlet(f"people=webhook+http://127.0.0.1:{port}/?dead={tmp_path / 'dead.jsonl'}")
        bridge = Bridge(url, lambda: Client(url), (), [outlet], "run")
        bridge.open()
        thread = Thread(target=bridge.run)
        thread.start()
        comes(lambda: made.channel("people").acknowledged)
        made.publish([student(1)])
        comes(lambda: list(made.channel("people").acknowledged.values()) == [1])
        (sentence,) = bridge.close()
        bridge._ended.put(None)
        thread.join(60)
    assert "1 notification not delivered: status 400" in sentence
    assert len((tmp_path / "dead.jsonl").read_text().splitlines()) == 1


@pytest.mark.server
def test_the_command(mosquitto, tmp_path):
    at = f"mqtt://127.0.0.1:{mosquitto.port}"
    heard = Heard(f"{at}/out")
    with serving(broker()) as (url, made):
        made.create_channel("people", STUDENTS)
        words = [sys.executable, "-m", "streamgauge.cli.main", "broker", "bridge", "--at", url]
        words += ["--from", f"{at}/in", "--to", f"people={at}/out", "--as", "me"]
        carried = subprocess.Popen(words, stderr=subprocess.PIPE, cwd=tmp_path, text=True)
        assert "bridging" in carried.stderr.readline()
        comes(lambda: made.channel("people").acknowledged == {"me": 0})
        send(f"{at}/in", turtle(1))
        comes(lambda: made.channel("people").acknowledged == {"me": 1})
        carried.send_signal(signal.SIGINT)
        _, said = carried.communicate(timeout=60)
    heard.close()
    assert (carried.returncode, said, len(heard.told)) == (130, "", 1)


@pytest.mark.server
def test_a_bridge_whose_sink_does_not_answer_ends_in_time():
    with serving(broker()) as (url, made), socket.create_server(("127.0.0.1", 0)) as silent:
        made.create_channel("people", STUDENTS)
        words = [sys.executable, "-m", "streamgauge.cli.main", "broker", "bridge", "--at", url, "--as", "me"]
        words += ["--to", f"people=webhook+http://127.0.0.1:{silent.getsockname()[1]}/"]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as carried:
            comes(lambda: made.channel("people").acknowledged == {"me": 0})
            made.publish([student(1)])
            silent.settimeout(60)
            with silent.accept()[0]:  # a notification is under way
                carried.send_signal(signal.SIGTERM)
                begin = time.monotonic()
                _, said = carried.communicate(timeout=60)
                assert time.monotonic() - begin < 5
        assert carried.returncode == 143
        assert "1 notification not delivered, the next bridge sends it again: not accepted yet" in said
        assert made.channel("people").acknowledged == {"me": 0}


@pytest.mark.parametrize(
    ("source", "sink", "meets"),
    [
        ("mqtt://h/a", "mqtt://h/a", True),
        ("mqtt://h/%23", "mqtt://h/a/b", True),
        ("mqtt://h/a/+?form=turtle", "mqtt://h/a/b", True),
        ("mqtt://h/a/+", "mqtt://h/b/a", False),
        ("mqtt://h/a", "mqtt://other/a", False),
        ("mqtt://h:1884/a", "mqtt://h/a", False),
        ("kafka://h/a", "kafka://h/a", True),
        ("kafka://h/a", "mqtt://h/a", False),
    ],
)
def test_circles_are_refused(source, sink, meets):
    pytest.importorskip("paho.mqtt.client")
    if not meets:
        refuse_circles([source], [sink])
        return
    with pytest.raises(BridgeError, match="would come back by"):
        refuse_circles([source], [sink])


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("mqtt://h/a", "mqtt://h/a?form=turtle&time=arrival"),
        ("mqtt://h/a?form=jsonl", "mqtt://h/a?form=jsonl&time=arrival"),
        ("mqtt://h/a?time=stated&form=trig", "mqtt://h/a?time=stated&form=trig"),
        ("-", "-"),
    ],
)
def test_messages_are_turtle_without_a_time_unless_said(given, made):
    assert as_messages(given) == made


@pytest.mark.parametrize("text", ["", "c", "c=", "=mqtt://h/a"])
def test_what_is_no_outlet(text):
    with pytest.raises(BridgeError, match="write CHANNEL=URL"):
        read_outlet(text)


@pytest.mark.server
def test_a_source_that_cannot_be_reached_is_said():
    bridge = Bridge("http://x.example", lambda: Client("http://x.example"), [Inlet("mqtt://127.0.0.1:9/a")], [], "run")
    with pytest.raises(SourceError, match=r"mqtt://127\.0\.0\.1:9/a"):
        bridge.open()
