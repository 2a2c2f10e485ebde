"""Queries that are killed 50 times, from Kafka to Kafka and from MQTT to a file: each answer is told once, in order."""

import random
from itertools import pairwise
from pathlib import Path

import pytest

from streamgauge.formats.lines import encode_element
from streamgauge.sources import open_sink, open_source
from streamgauge.sources.contract import parse_address
from streamgauge.sources.kafka import KafkaSinkOptions
from streamgauge.sources.kafka_partitions import KafkaPartitions, reached_by
from tests.prove.killed_queries import IN, TEXTS, compare, due, kill_often, readings, running, until

from .conftest import Kafka, Mosquitto


def sent(url: str) -> list[bytes]:
    """The messages of a topic of one partition."""
    address = parse_address(url)
    log = KafkaPartitions(address, reached_by(address, KafkaSinkOptions()))
    try:
        end = dict(log.borders(absent=True)).get(0, (0, 0))[1]
        return [message.value() for message in log.between(0, 0, end, 20_000)]
    finally:
        log.close()


def killed_between_topics(kafka: Kafka, folder: Path, text: str, seed: int, kills: int, count: int) -> None:
    draw = random.Random(seed)
    elements = readings(draw, count)
    expected = due(text, elements)
    source, sink = (f"kafka://127.0.0.1:{kafka.port}/{kafka.topic()}" for _ in range(2))
    (folder / "q.rq").write_text(text)
    words = ["query", str(folder / "q.rq"), "--stream", f"{IN}={source}?from=earliest"]
    words += ["--state", str(folder / "state"), "--to", sink]
    cuts = list(pairwise([0, *sorted(draw.randrange(count) for _ in range(kills)), count]))
    writer = open_sink(source)

    def write(life: int) -> None:
        for element in elements[slice(*cuts[life])]:
            writer.send(encode_element(element))

    kill_often(words, folder, draw, kills, write)
    with running(words, folder / "log"):
        write(kills)
        until(lambda: len(sent(sink)) >= len(expected) - 1, folder / "log")
    assert writer.close().undelivered == 0
    compare([line.rstrip(b"\n") for line in sent(sink)], expected)


@pytest.mark.parametrize("at", [0, 6, 12, 18, 8])
@pytest.mark.prove
def test_a_query_between_topics_that_is_killed_ten_times(kafka, tmp_path, at):
    killed_between_topics(kafka, tmp_path, TEXTS[at], at, 10, 1500)


def test_a_query_between_topics_that_is_killed(kafka, tmp_path):
    killed_between_topics(kafka, tmp_path, TEXTS[6], 1, 1, 200)


def killed_on_messages(mosquitto: Mosquitto, folder: Path, text: str, seed: int, kills: int, count: int) -> None:
    """Messages of quality 1 to a file: the broker keeps what was not acknowledged, and sends some of it twice."""
    draw = random.Random(seed)
    elements, out = readings(draw, count), folder / "out.jsonl"
    expected = due(text, elements)
    place = f"mqtt://127.0.0.1:{mosquitto.port}/readings"
    open_source(f"{place}?client=killed").close()
    (folder / "q.rq").write_text(text)
    words = ["query", str(folder / "q.rq"), "--stream", f"{IN}={place}?client=killed"]
    words += ["--state", str(folder / "state"), "--to", str(out)]
    cuts = list(pairwise([0, *sorted(draw.randrange(count) for _ in range(kills)), count]))
    writer = open_sink(place)

    def write(life: int) -> None:
        for element in elements[slice(*cuts[life])]:
            writer.send(encode_element(element))

    out.touch()
    kill_often(words, folder, draw, kills, write)
    with running(words, folder / "log"):
        write(kills)
        until(lambda: out.read_bytes().count(b"\n") >= len(expected) - 1, folder / "log")
    assert writer.close().undelivered == 0
    compare(out.read_bytes().splitlines(), expected)


@pytest.mark.parametrize("at", [0, 6, 12, 18, 8])
@pytest.mark.prove
def test_a_query_on_messages_that_is_killed_ten_times(mosquitto, tmp_path, at):
    killed_on_messages(mosquitto, tmp_path, TEXTS[at], at, 10, 800)


@pytest.mark.server
def test_a_query_on_messages_that_is_killed(mosquitto, tmp_path):
    killed_on_messages(mosquitto, tmp_path, TEXTS[6], 1, 1, 200)
