"""Queries with a state that are killed and begun again: the windows, the places in sources and the numbers go on."""

import gzip
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from streamgauge.formats.lines import encode_element
from streamgauge.formats.streams import Reading
from streamgauge.model.element import StreamElement
from streamgauge.sources import open_sink, open_source
from streamgauge.watching import watch

QUERY = """SELECT (AVG(?v) AS ?mean) FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT4S STEP PT1S]
WHERE { WINDOW <urn:w> { ?s <urn:p> ?v } }
"""
PROGRAM = (sys.executable, "-m", "streamgauge.cli.main", "query")


def reading(second: int, value: int) -> bytes:
    literal = f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return encode_element(StreamElement("urn:in", second * 1000, second, ((f"<urn:{second}>", "<urn:p>", literal),)))


@contextmanager
def asked(folder: Path, source: str, *more: str) -> Iterator["subprocess.Popen[str]"]:
    """The query of the folder with its state there; killed in the end."""
    (folder / "q.rq").write_text(QUERY)
    words = [*PROGRAM, str(folder / "q.rq"), "--stream", source, "--state", str(folder / "state"), "--json", *more]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as query:
        try:
            yield query
        finally:
            query.kill()


def means(query: "subprocess.Popen[str]", until: int) -> dict[int, tuple[int, float]]:
    """The means that a query prints by their numbers, with their instants (s), up to an instant."""
    answers: dict[int, tuple[int, float]] = {}
    while not answers or max(answers.values())[0] < until:
        line = query.stdout.readline()
        assert line, query.stderr.read()
        answer = json.loads(line)
        answers[answer["number"]] = answer["instant"] // 1000, float(answer["add"][0][0].split('"')[1])
    return answers


MEANS = [(5, 10.0), (6, 15.0), (7, 20.0), (8, 25.0)]


@pytest.mark.server
def test_the_mean_of_a_killed_query_has_the_readings_from_before(mosquitto, tmp_path):
    """Readings of 10, 20 and 30, kill -9, then one of 40: the mean is 25."""
    place = f"mqtt://127.0.0.1:{mosquitto.port}/readings"
    source = f"<urn:in>={place}?client=mean"
    open_source(f"{place}?client=mean").close()  # the broker keeps what comes for it from here on
    sink = open_sink(place)
    for second, value in ((4, 10), (5, 20), (6, 30)):
        sink.send(reading(second, value))
    with asked(tmp_path, source) as query:
        before = means(query, 6)
    sink.send(reading(7, 40))
    sink.send(reading(8, 0))
    sink.close()
    with asked(tmp_path, source) as query:
        after = means(query, 8)
        query.send_signal(signal.SIGTERM)
        _, err = query.communicate(timeout=300)
    assert (query.returncode, "5 elements" in err) == (143, True), err
    assert before | after == after | before == dict(enumerate(MEANS, 1))


@pytest.mark.parametrize("rotated", ["not", "renamed", "packed", "copied"])
def test_a_followed_file_is_read_on_whatever_its_name_is_then(tmp_path, rotated):
    log, source = tmp_path / "log.jsonl", str(tmp_path / "log.jsonl?follow=1")
    log.write_bytes(b"".join(reading(second, value) for second, value in ((4, 10), (5, 20), (6, 30))))
    answers: dict[int, tuple[int, float]] = {}

    def take(state: Path, count: int, then: Callable[[], object] = lambda: None) -> None:
        with watch(QUERY, source, state=state) as watched:
            for answer in watched:
                (value,) = answer.values()
                assert answers.setdefault(watched.number, (answer.instant // 1000, float(value["mean"])))[1] >= 0
                if len(answers) == count:
                    then()
                    break
            assert watched.gaps == []

    take(tmp_path / "state", 2, lambda: shutil.copytree(tmp_path / "state", tmp_path / "after"))
    with log.open("ab") as file:
        file.write(reading(7, 40))
    rotate(log, rotated)
    with log.open("ab") as file:
        file.write(reading(8, 0))
    take(tmp_path / "after", 4)
    assert answers == dict(enumerate(MEANS, 1))


def rotate(log: Path, how: str) -> None:
    """A file goes to another name, or its bytes do."""
    if how == "renamed":
        log.rename(log.with_name("log.jsonl.1"))
    elif how == "packed":
        log.with_name("log.jsonl.1.gz").write_bytes(gzip.compress(log.read_bytes()))
        log.unlink()
    elif how == "copied":
        shutil.copy(log, log.with_name("log.jsonl.1"))
        log.write_bytes(b"")


def test_a_source_that_cannot_be_read_again_leaves_a_gap_with_times(tmp_path):
    elements = [(second * 1000, f'<urn:{second}> <urn:p> "{second}" .') for second in range(20)]
    with watch(QUERY, elements[:8], state=tmp_path) as watched:
        first = list(watched)
    with watch(QUERY, elements[12:], state=tmp_path) as watched:
        assert [answer.instant for answer in first] + [next(watched).instant] == sorted(
            {answer.instant for answer in first} | {12_000}
        )
        assert [(gap.begin, gap.end) for gap in watched.gaps] == [(7000, 12_000)]


FOLLOWED = {
    "csv": "time,value\n" + "".join(f"{second}000,{second}\n" for second in range(10, 20)),
    "nquads": "".join(f'<urn:{n}> <urn:p> "{n}" <urn:g{n}000> .\n' for n in range(10, 20)),
    "jsonl": "".join(reading(second, second).decode() for second in range(10, 20)),
}


@pytest.mark.parametrize("form", FOLLOWED)
def test_a_followed_file_that_cannot_go_on_at_its_byte_is_read_again_and_says_so(tmp_path, form):
    """JSON lines go on at a byte; of others what was read is passed over."""
    path, notes = tmp_path / "log", list[str]()
    url, how = f"{path}?follow=1&form={form}", Reading(note=notes.append)
    path.write_text(FOLLOWED[form])
    source = open_source(url, how)
    first = list(islice(source.items(), 6))
    position = source.position(source.place())
    source.close()
    rest = list(islice(open_source(url, how, after=position).items(), 3))
    assert [item.time // 1000 for item in [*first, *rest]] == list(range(10, 19))
    again = f"{path}: {form} is read again from its beginning, past 6 elements"
    assert notes == ([] if form == "jsonl" else [again])
