"""`query` on files and `engine serve` with a state, killed 50 times each: each answer is told once, none is missed."""

import http.client
import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from urllib.parse import quote

import pytest

from streamgauge.formats.lines import encode_element
from streamgauge.formats.streams.quads import encode_nquads
from streamgauge.model.element import StreamElement
from tests.prove.killed_queries import IN, TEXTS, Told, compare, due, kill_often, readings, running, until


def csv_row(element: StreamElement) -> bytes:
    """A reading as a row, whose time and value are the columns of ``CSV_HEADER``."""
    return f"{element.time},{element.added[1][2].split(chr(34))[1]}\n".encode()


CSV_HEADER = b"time,urn:value\n"
ENCODERS = {"jsonl": encode_element, "nquads": encode_nquads, "csv": csv_row}


def killed_on_a_file(folder: Path, text: str, seed: int, kills: int, count: int, form: str = "jsonl") -> int:
    """A query on a file that grows, its answers to another file."""
    draw, encode = random.Random(seed), ENCODERS[form]
    elements, log, out = readings(draw, count), folder / f"readings.{form}", folder / "out.jsonl"
    # A graph ends where the next one begins, which the last does not.
    expected = due(text, elements[: count - (form == "nquads")])
    log.write_bytes(CSV_HEADER if form == "csv" else b"")
    (folder / "q.rq").write_text(text)
    words = ["query", str(folder / "q.rq"), "--stream", f"{IN}={log}?follow=1&form={form}"]
    words += ["--state", str(folder / "state"), "--to", str(out)]
    cuts = [0, *sorted(draw.randrange(count) for _ in range(kills)), count]

    def grow(life: int) -> None:
        with log.open("ab") as file:
            for element in elements[cuts[life] : cuts[life + 1]]:
                file.write(encode(element))

    out.touch()
    kill_often(words, folder, draw, kills, grow)
    with running(words, folder / "log"):
        grow(kills)
        until(lambda: out.read_bytes().count(b"\n") >= len(expected) - 1, folder / "log")
    compare(out.read_bytes().splitlines(), expected)
    return len(expected)


@pytest.mark.parametrize("at", [0, 6, 12, 18, 8])
@pytest.mark.prove
def test_a_query_on_a_file_that_is_killed_ten_times(tmp_path, at):
    assert killed_on_a_file(tmp_path, TEXTS[at], at, 10, 50_000) > 10


@pytest.mark.server
def test_a_query_on_a_file_that_is_killed(tmp_path):
    assert killed_on_a_file(tmp_path, TEXTS[6], 1, 2, 300) > 10


@pytest.mark.parametrize(("at", "form"), [(6, "nquads"), (8, "nquads"), (2, "csv"), (12, "csv")])
@pytest.mark.prove
def test_a_query_on_a_file_of_another_format_that_is_killed_ten_times(tmp_path, at, form):
    assert killed_on_a_file(tmp_path, TEXTS[at], at, 10, 20_000, form) > 10


@pytest.mark.server
@pytest.mark.parametrize(("at", "form"), [(6, "nquads"), (7, "csv")])
def test_a_query_on_a_file_of_another_format_that_is_killed(tmp_path, at, form):
    assert killed_on_a_file(tmp_path, TEXTS[at], 1, 2, 300, form) > 10


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class Client:
    """A client of a service that comes and goes: it asks again until it is answered."""

    def __init__(self, port: int, log: Path) -> None:
        self._port, self._log = port, log

    def post(self, path: str, body: bytes, kind: str, key: str) -> None:
        """One request, made again under the same key until it was taken."""
        headers = {"Content-Type": kind, "Idempotency-Key": key}

        def taken() -> bool:
            with suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
                connection.request("POST", path, body, headers)
                answer = connection.getresponse()
                said = answer.read()
                assert answer.status < 400 or answer.status in (409, 503), said
                return answer.status < 400
            return False

        until(taken, self._log, 1500)  # a machine under load begins few of the lives

    def follow(self, query: str, answers: dict[int, Told], enough: Callable[[], bool]) -> None:
        """Subscribe, and again behind the last number, until there is enough; an answer must be the same again."""
        while not enough():
            with suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=2)
                after = {"Last-Event-ID": str(max(answers, default=0))}
                connection.request("GET", f"/queries/{query}/answers", headers=after)
                event = connection.getresponse()
                number = 0
                while event.status == 200 and not enough() and (line := event.readline()):
                    if line.startswith(b"id:"):
                        number = int(line[3:])
                    elif line.startswith(b"data:") and number:
                        assert number not in answers, f"{query} told {number} twice"
                        answers[number], number = Told.of(line[5:]), 0
            time.sleep(0.1)  # or twenty that try again would leave the service no time to begin


def killed_service(folder: Path, texts: list[str], seed: int, kills: int, count: int) -> int:
    """A service with POST and server-sent events; returns the number of answers."""
    draw, port, log = random.Random(seed), free_port(), folder / "log"
    elements, client = readings(draw, count), Client(port, log)
    expected = [due(text, elements) for text in texts]
    words = ["engine", "serve", "live", "--port", str(port), "--state", str(folder / "state")]
    told: list[dict[int, Told]] = [{} for _ in texts]
    done = False
    cuts = [0, *sorted(draw.randrange(count) for _ in range(4 * kills + 3)), count]
    parts = list(pairwise(cuts))
    due_parts: SimpleQueue[tuple[int, int] | None] = SimpleQueue()

    def publish() -> None:
        while part := due_parts.get():
            body = b"".join(map(encode_element, elements[part[0] : part[1]]))
            client.post(f"/streams/{quote(IN, safe='')}", body, "application/x-ndjson", f"part-{part[0]}-{part[1]}")

    def begin(life: int) -> None:
        """Four parts in each life, published as long as it lasts and in the next."""
        for part in [*parts[4 * life : 4 * life + 4], *([None] if life == kills else [])]:
            due_parts.put(part)

    def follow(at: int) -> None:
        client.follow(f"q{at + 1}", told[at], lambda: done or len(told[at]) >= len(expected[at]) - 1)

    with running(words, log):
        for at, text in enumerate(texts):
            client.post("/queries", text.encode(), "application/sparql-query", f"query-{at}")
    threads = [Thread(target=publish), *(Thread(target=follow, args=(at,)) for at in range(len(texts)))]
    try:
        for thread in threads:
            thread.start()
        kill_often(words, folder, draw, kills, begin)
        with running(words, log):
            begin(kills)
            for thread in threads:
                thread.join(300)
                assert not thread.is_alive(), [(len(a), len(b)) for a, b in zip(told, expected, strict=True)]
    finally:
        done = True
        due_parts.put(None)
    for answers, wanted in zip(told, expected, strict=True):
        assert list(answers) == list(range(1, len(answers) + 1))
        assert [answers[number] for number in answers] == wanted[: len(answers)]
    return sum(map(len, told))


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(5))
def test_a_service_of_twenty_queries_that_is_killed_ten_times(tmp_path, seed):
    assert killed_service(tmp_path, list(TEXTS), seed, 10, 2000) > 200


@pytest.mark.server
def test_a_service_that_is_killed(tmp_path):
    assert killed_service(tmp_path, [TEXTS[1], TEXTS[8]], 1, 2, 200) > 10
