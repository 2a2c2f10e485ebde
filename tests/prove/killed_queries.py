"""Durable queries that are killed at drawn moments, over readings of some hours, and the answers due to each."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streamgauge.formats.lines import encode_answer
from streamgauge.model.element import StreamElement
from streamgauge.watching import watch

IN = "urn:readings"
WINDOWS = ((5, 5), (30, 10), (300, 60), (3600, 600))
"""Sizes and slides, s."""

FORMS = (
    "SELECT ?s ?v %s WHERE { WINDOW <urn:w> { ?o <urn:sensor> ?s ; <urn:value> ?v } FILTER(?v > 90) }",
    "SELECT ?s (AVG(?v) AS ?mean) %s WHERE { WINDOW <urn:w> { ?o <urn:sensor> ?s ; <urn:value> ?v } } GROUP BY ?s",
    "SELECT (COUNT(*) AS ?n) (MAX(?v) AS ?top) %s WHERE { WINDOW <urn:w> { ?o <urn:value> ?v } }",
    "REGISTER ISTREAM <urn:i> AS SELECT ?s %s WHERE { WINDOW <urn:w> { ?o <urn:sensor> ?s ; <urn:value> 97 } }",
    "REGISTER DSTREAM <urn:d> AS SELECT ?s %s WHERE { WINDOW <urn:w> { ?o <urn:sensor> ?s ; <urn:value> 97 } }",
)
TEXTS = tuple(
    form % f"FROM NAMED WINDOW <urn:w> ON <{IN}> [RANGE PT{size}S STEP PT{slide}S]"
    for size, slide in WINDOWS
    for form in FORMS
)
"""Twenty queries."""


def readings(draw: random.Random, count: int) -> list[StreamElement]:
    """Readings of ten sensors, some seconds apart, and pauses."""
    now, elements = 1_772_352_000_000, list[StreamElement]()
    for number in range(count):
        now += draw.choice((0, 100, 900, 2_000, 7_000, 400_000 if draw.random() < 0.02 else 10_000))
        value = f'"{draw.randrange(100)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        node = f"<urn:o{number}>"
        triples = ((node, "<urn:sensor>", f"<urn:s{draw.randrange(10)}>"), (node, "<urn:value>", value))
        elements.append(StreamElement(IN, now, number, triples))
    return elements


@dataclass(frozen=True)
class Told:
    """An answer as it is compared."""

    instant: int
    rows: str

    @classmethod
    def of(cls, line: bytes) -> "Told":
        """That of a line of JSON."""
        answer = json.loads(line)
        rows = [sorted(map(json.dumps, answer.get(kind, ()))) for kind in ("add", "remove")]
        return cls(answer["instant"], json.dumps(rows))


def due(text: str, elements: Sequence[StreamElement]) -> list[Told]:
    """The answers of a query that nobody kills."""
    return [Told.of(encode_answer(answer)) for answer in watch(text, elements, end="stream")]


def compare(lines: Sequence[bytes], expected: Sequence[Told]) -> None:
    """Every answer once, in its order, by its number; the one at the end of time is not due while a stream goes on."""
    assert [json.loads(line)["number"] for line in lines] == list(range(1, len(lines) + 1))
    assert list(map(Told.of, lines)) == list(expected[: len(lines)])
    assert len(lines) >= len(expected) - 1


@contextmanager
def running(words: Sequence[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A command of streamgauge, killed in the end."""
    with log.open("ab") as out:
        command = [sys.executable, "-m", "streamgauge.cli.main", *words]
        with subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
            try:
                yield process
            finally:
                process.kill()


def kill_often(
    words: Sequence[str], folder: Path, draw: random.Random, kills: int, meanwhile: Callable[[int], object]
) -> None:
    """Run a command and kill it, so often, each time at a drawn moment; ``meanwhile`` is done in each life.

    A third of the moments are those in which a process begins, the others come after it has changed its state. One
    that works is also asked to end (SIGTERM), in a quarter of the cases, which it does by itself.
    """
    state, log = folder / "state", folder / "log"
    for kill in range(kills):
        before = written(state)
        with running(words, log) as process:
            meanwhile(kill)
            works = draw.random() < 0.67 and came(lambda before=before: written(state) != before, 30)
            time.sleep(draw.uniform(0, 0.7))
            assert process.poll() is None, log.read_text()[-2000:]
            if works and draw.random() < 0.25:
                process.terminate()
                assert process.wait(60) in (0, 143), (process.returncode, log.read_text()[-2000:])


def written(state: Path) -> int:
    """A number that is another one when a state was written."""
    return sum(file.stat().st_mtime_ns for file in state.glob("*-wal"))


def came(met: Callable[[], bool], seconds: float) -> bool:
    """Whether something is so within some time."""
    end = time.monotonic() + seconds
    while not (is_met := met()) and time.monotonic() < end:  # once: a request that was taken may be refused again
        time.sleep(0.05)
    return is_met


def until(met: Callable[[], bool], log: Path, seconds: float = 300.0) -> None:
    """Wait until something is so."""
    assert came(met, seconds), log.read_text()[-2000:] if log.exists() else "it did not come"
