"""What the transports share: delays, messages under way, addresses; and that the documentation names every option."""

import json
from dataclasses import fields
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from streamgauge.servers.event_sink import SseOptions
from streamgauge.sources import Delivery, SourceError, schemes
from streamgauge.sources.backoff import Backoff
from streamgauge.sources.contract import parse_address, read_options
from streamgauge.sources.decoders import DeadLetters, Letter, Pending
from streamgauge.sources.files import FileOptions, WritingOptions
from streamgauge.sources.graph_store import UpdateOptions
from streamgauge.sources.kafka import KafkaSinkOptions, KafkaSourceOptions
from streamgauge.sources.mqtt import MqttSinkOptions, MqttSourceOptions
from streamgauge.sources.sse.client import SseSourceOptions
from streamgauge.sources.webhook import WebhookOptions

OPTIONS = [
    *(FileOptions, WritingOptions, MqttSourceOptions, MqttSinkOptions),
    *(KafkaSourceOptions, KafkaSinkOptions, SseSourceOptions, SseOptions),
    *(WebhookOptions, UpdateOptions),
]


LETTER = Letter(b"one")


def test_delays_double_and_vary():
    backoff = Backoff(Random(7), 0.1, 1.0)
    delays = [backoff.next() for _ in range(9)]
    bounds = [0.1, 0.2, 0.4, 0.8, *[1.0] * 5]
    assert all(bound / 2 <= delay <= bound for delay, bound in zip(delays, bounds, strict=True))
    assert len(set(delays[4:])) == 5
    backoff.reset()
    assert backoff.next() <= 0.1
    assert [Backoff(Random(7), 0.1, 1.0).next()] == delays[:1]


def test_messages_under_way_are_bounded_and_counted():
    pending = Pending(2, 0.05)
    assert [pending.enter(LETTER) for _ in range(3)] == [True, True, False]
    pending.delivered()
    assert pending.enter(LETTER)
    pending.lost("refused", LETTER)
    delivery = Delivery(1, 3, "2 messages were in flight for more than 0.05 s", waiting=1)
    assert pending.drain() == delivery


def test_who_waits_for_room_goes_on_when_there_is_some():
    pending = Pending(1, 30)
    assert pending.enter(LETTER)
    entered: list[bool] = []
    waiting = Thread(target=lambda: entered.append(pending.enter(LETTER)))
    waiting.start()
    pending.delivered()
    waiting.join(20)
    pending.delivered()
    assert entered == [True]
    assert pending.drain() == Delivery(2, 0)


def test_what_is_still_under_way_is_undelivered():
    pending = Pending(5, 0.01, still=lambda: "silent")
    assert pending.enter(LETTER)
    assert pending.drain() == Delivery(0, 1, "silent", waiting=1)


def test_dead_letters_that_cannot_be_written_are_told(tmp_path):
    file = tmp_path / "letters" / "dead.jsonl"
    file.parent.mkdir()
    pending = Pending(5, 0.01, DeadLetters(str(file), "mqtt://host/a", lambda: 1.5))
    assert pending.enter(LETTER)
    pending.lost("refused", LETTER)
    assert json.loads(file.read_text()) == {
        "time": 1500, "sink": "mqtt://host/a", "why": "refused", "key": None, "message": "one",
    }  # fmt: skip
    assert pending.enter(LETTER)
    file.unlink()
    file.parent.rmdir()
    pending.lost("refused", LETTER)
    outcome = pending.drain()
    assert outcome.undelivered == 2
    assert "dead.jsonl cannot be written" in outcome.why


ADDRESSES = {
    "a/b.nq": ("file", "a/b.nq", {}),
    "-?form=trig": ("-", "-", {"form": "trig"}),
    "file:/a%20b?bad=skip": ("file", "/a b", {"bad": "skip"}),
    "mqtt://h:1/a/%23?client=x%26y": ("mqtt", "/a/#", {"client": "x&y"}),
    "MQTT://h/a": ("mqtt", "/a", {}),
}


@pytest.mark.parametrize("url", ADDRESSES)
def test_addresses(url):
    address = parse_address(url)
    assert (address.scheme, address.path, dict(address.options)) == ADDRESSES[url]


def test_secrets_are_not_shown():
    address = parse_address("sse+http://me:s%21cret@h/x?token=hidden&bad=stop")
    assert (address.user, address.password, address.options["token"]) == ("me", "s!cret", "hidden")
    assert address.text == "sse+http://me:...@h/x?token=...&bad=stop"
    with pytest.raises(SourceError) as refused:
        read_options(FileOptions, address)
    assert "hidden" not in str(refused.value)


def test_the_documentation_names_every_transport_and_option():
    text = (Path(__file__).resolve().parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
    names = {field.name.rstrip("_") for kind in OPTIONS for field in fields(kind)}
    assert sorted(name for name in names if f"`{name}`" not in text) == []
    assert [scheme for scheme in schemes() if f"`{scheme}" not in text] == []
