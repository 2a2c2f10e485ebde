"""Queries killed 50 times, from Kafka to Kafka and from MQTT to a webhook: each answer is told once, in order."""

import random
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread

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


def killed_between_topics(kafka: Kafka, folder: Path, text: str, seed: int, kills: int, count: int) -> int:
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
    return len(expected)


@pytest.mark.parametrize("at", [0, 6, 12, 18, 8])
@pytest.mark.prove
def test_a_query_between_topics_that_is_killed_ten_times(kafka, tmp_path, at):
    assert killed_between_topics(kafka, tmp_path, TEXTS[at], at, 10, 1500) > 10


def test_a_query_between_topics_that_is_killed(kafka, tmp_path):
    assert killed_between_topics(kafka, tmp_path, TEXTS[6], 1, 1, 200) > 5


class Receiver(ThreadingHTTPServer):
    """Takes what is posted, by its id; one request in five is answered as by a server in trouble."""

    def __init__(self, draw: random.Random) -> None:
        self.taken: dict[str, bytes] = {}
        self.twice, self.draw = 0, draw
        super().__init__(("127.0.0.1", 0), Receiving)
        Thread(target=self.serve_forever, daemon=True).start()

    @property
    def lines(self) -> list[bytes]:
        """The bodies, each id once, as they came first."""
        return list(self.taken.values())


class Receiving(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = 503 if self.server.draw.random() < 0.2 else 204
        if status == 204:
            name = self.headers["webhook-id"]
            self.server.twice += name in self.server.taken
            assert self.server.taken.setdefault(name, body) == body
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


def killed_on_messages(mosquitto: Mosquitto, folder: Path, text: str, seed: int, kills: int, count: int) -> int:
    """Messages of quality 1 to a webhook: what is sent twice has the same id."""
    draw = random.Random(seed)
    elements, receiver = readings(draw, count), Receiver(random.Random(seed))
    expected = due(text, elements)
    place = f"mqtt://127.0.0.1:{mosquitto.port}/readings"
    open_source(f"{place}?client=killed").close()
    (folder / "q.rq").write_text(text)
    words = ["query", str(folder / "q.rq"), "--stream", f"{IN}={place}?client=killed"]
    words += ["--state", str(folder / "state"), "--to", f"webhook+http://127.0.0.1:{receiver.server_port}/"]
    cuts = list(pairwise([0, *sorted(draw.randrange(count) for _ in range(kills)), count]))
    writer = open_sink(place)

    def write(life: int) -> None:
        for element in elements[slice(*cuts[life])]:
            writer.send(encode_element(element))

    try:
        kill_often(words, folder, draw, kills, write)
        with running(words, folder / "log"):
            write(kills)
            until(lambda: len(receiver.taken) >= len(expected) - 1, folder / "log")
    finally:
        receiver.shutdown()
        receiver.server_close()
    assert writer.close().undelivered == 0
    assert list(receiver.taken) == [str(number) for number in range(1, len(receiver.taken) + 1)]
    compare(receiver.lines, expected)
    return len(expected)


@pytest.mark.parametrize("at", [0, 6, 12, 18, 8])
@pytest.mark.prove
def test_a_query_from_messages_to_a_webhook_that_is_killed_ten_times(mosquitto, tmp_path, at):
    assert killed_on_messages(mosquitto, tmp_path, TEXTS[at], at, 10, 800) > 5


@pytest.mark.server
def test_a_query_from_messages_to_a_webhook_that_is_killed(mosquitto, tmp_path):
    assert killed_on_messages(mosquitto, tmp_path, TEXTS[6], 1, 1, 100) > 5
