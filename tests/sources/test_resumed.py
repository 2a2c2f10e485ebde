"""Queries with a state that are killed and begun again: the windows, the places in sources and the numbers go on."""

import gzip
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate, islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.lines import Input, encode_element
from streamgauge.formats.streams import Reading
from streamgauge.model.element import StreamElement
from streamgauge.sources import open_sink, open_source
from streamgauge.sources.contract import Position
from streamgauge.watching import watch
from tests.examples import examples

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
        log.rename(log.with_name(f"{log.name}.1"))
    elif how == "packed":
        log.with_name(f"{log.name}.1.gz").write_bytes(gzip.compress(log.read_bytes()))
        log.unlink()
    elif how == "copied":
        shutil.copy(log, log.with_name(f"{log.name}.1"))
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


def rows(count: int) -> list[str]:
    return ["time,place,text\n", *(f'{n}000,<urn:p{n % 3}>,"row\n{n}, ""said"""\n' for n in range(1, count))]


def graphs(count: int) -> list[str]:
    """Graphs of one to three quads; of some the time is stated ahead, in a graph of its own, of others by the IRI."""
    stamp = "<http://www.streamreasoning.org/schema/benchmark#hasTimestamp>"
    return [
        (f'<urn:g{n}> {stamp} "{n}000" <urn:times> .\n' if n % 2 else "")
        + "".join(f'<urn:{n}> <urn:p> "{quad}" <urn:g{n}{"" if n % 2 else "000"}> .\n' for quad in range(1 + n % 3))
        for n in range(10, 10 + count)
    ]


PARTS = {
    "csv": rows,
    "nquads": graphs,
    "jsonl": lambda count: [reading(second, second).decode() for second in range(count)],
    "json": lambda count: [
        f'{{"time": {n}000,{chr(10) if n % 3 == 0 else " "}"value": {n}}}\n' for n in range(1, 1 + count)
    ],
    "jsonld": lambda count: [
        f'{{"@id": "_:b", "urn:p": {{"@id": "urn:{n}"}}, "urn:t": {n}}}\n' for n in range(1_000_000, 1_000_000 + count)
    ],
}
"""Pieces of text, an element each; of CSV the first is the header."""
OPTIONS = {"jsonld": "&time_property=urn:t&time_in=ms"}


@contextmanager
def opened(path: Path, form: str, after: Position | None = None, notes: Callable[[str], None] = lambda _: None):
    source = open_source(f"{path}?follow=1&form={form}{OPTIONS.get(form, '')}", Reading(note=notes), after=after)
    source.hold(apart=True)
    try:
        yield source, source.items()
    finally:
        source.close()


class Reader:
    """Reads a followed file, from a position on."""

    def __init__(self, path: Path, form: str, position: Position | None = None) -> None:
        url = f"{path}?follow=1&form={form}{OPTIONS.get(form, '')}"
        self._notes = list[str]()
        self._source = open_source(url, Reading(note=self._notes.append), after=position)
        self._source.hold(apart=True)
        self._items = self._source.items()

    def take(self, count: int) -> list[Input]:
        """So many items; fewer fail instead of waiting for ever."""
        closing = Timer(20, self._source.close)
        closing.start()
        items = [*islice(self._items, max(count, 0))]
        closing.cancel()
        return items

    def leave(self) -> Position:
        """The position behind the items."""
        self._source.close()
        assert self._notes == []
        return self._source.position(self._source.place())


@pytest.mark.parametrize("rotated", ["not", "renamed", "packed", "copied"])
@pytest.mark.parametrize("form", PARTS)
@examples(6, 300, deadline=None)
@given(data=st.data())
def test_a_followed_file_goes_on_at_a_byte_as_if_nobody_had_stopped(form, rotated, data):
    """It grows by drawn bytes; after each the complete elements are taken, and another reader goes on in some cases."""
    texts = [part.encode() for part in PARTS[form](12)]
    # The header is no element, and a graph ends where another begins.
    whole, ends, behind = b"".join(texts), [*accumulate(map(len, texts))], form in ("csv", "nquads")
    rotation = data.draw(st.sampled_from(ends[2:-1]))  # when the first element has been read
    cuts = {*data.draw(st.lists(st.integers(1, ends[-1]), max_size=5)), rotation, ends[-1]}
    items = list[Input]()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(whole)
        expected = Reader(path, form).take(len(texts) - behind)
        path.write_bytes(b"")
        reader = Reader(path, form)
        for begin, end in pairwise([0, *sorted(cuts)]):
            with path.open("ab") as file:
                file.write(whole[begin:end])
            items += reader.take(sum(one <= end for one in ends) - behind - len(items))
            position = reader.leave() if items and data.draw(st.booleans()) else None
            if end == rotation:
                rotate(path, rotated)
                path.touch()
            reader = reader if position is None else Reader(path, form, position)
        reader.leave()
    assert items == expected


@pytest.mark.parametrize("form", PARTS)
def test_a_position_is_a_byte_behind_what_was_read_before(tmp_path, form):
    texts, path = [part.encode() for part in PARTS[form](12)], tmp_path / "log"
    path.write_bytes(b"".join(texts[:6]))
    reader = Reader(path, form)
    first = reader.take(6 - (form in ("csv", "nquads")))
    with path.open("ab") as file:
        file.write(b"".join(texts[6:]))
    reader.take(2)
    position = reader.leave()
    assert (len(first), position["items"]) == (6 - (form in ("csv", "nquads")), 2)
    assert position["offset"] == sum(map(len, texts[: 5 if form == "nquads" else 6]))


@pytest.mark.parametrize(("charset", "from_mark"), [("iso-8859-1", True), ("utf-16-le", False)])
def test_text_of_another_charset_arrives_at_once_and_goes_on(tmp_path, charset, from_mark):
    """In UTF-16 the byte of a line feed may be part of another character, so that no line is found again."""
    texts, path = [f'{{"time":{time},"place":"Zürich"}}\n' for time in range(1000, 1006)], tmp_path / "log"
    path.write_text("".join(texts[:3]), charset)
    url, notes = f"{path}?follow=1&form=json&charset={charset}", list[str]()
    source = open_source(url)
    source.hold()
    items = source.items()
    times = [item.time for item in islice(items, 3)]
    with path.open("a", encoding=charset) as file:
        file.write("".join(texts[3:]))
    times += [next(items).time]
    position = source.position(source.place())
    source.close()
    again = open_source(url, Reading(note=notes.append), after=position)
    again.hold()
    times += [item.time for item in islice(again.items(), 2)]
    again.close()
    assert times == [*range(1000, 1006)]
    assert (position["offset"] > 0, notes == []) == (from_mark, from_mark)


@pytest.mark.parametrize(
    ("texts", "options", "ms"),
    [
        (
            [f"2026-10-25T{time}:00" for time in ("02:40", "02:50", "02:10", "02:20")],
            "&time_zone=Europe/Vienna",
            2_400_000,
        ),
        (["1000", "2000", "1772352000", "1772352060"], "", 1_772_351_060),
    ],
    ids=["clocks go back", "ms, by the first number"],
)
def test_times_mean_for_the_next_reader_what_they_mean_for_the_first(tmp_path, texts, options, ms):
    """After 02:50, 02:10 is its later instant, as time would go back; numbers have the unit of the first one."""
    path, url = tmp_path / "log.csv", f"{tmp_path}/log.csv?follow=1{options}"
    rows = [f"{text},1\n" for text in texts]
    path.write_text("".join(["time,value\n", *rows[:2]]))
    read, position = list[int](), None
    # A reader that gets further rows has its mark behind those before.
    for further in (rows[2:3], rows[3:]):
        source = open_source(url, Reading(note=lambda _: None), after=position)
        source.hold()
        items = source.items()
        read += [item.time for item in islice(items, 0 if position else 2)]
        with path.open("a") as file:
            file.write("".join(further))
        read += [item.time for item in islice(items, len(further))]
        position = source.position(source.place())
        source.close()
    assert (read[-1] - read[0], read) == (ms, sorted(read))


def test_a_repetition_is_one_for_the_next_reader_too(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(reading(1, 1) + reading(2, 2))
    position, seconds = None, list[int]()
    for more in (b"", reading(2, 2) + reading(3, 3), reading(3, 3) + reading(4, 4)):
        with path.open("ab") as file:
            file.write(more)
        source = open_source(f"{path}?follow=1&once=1", after=position)
        source.hold()
        items = source.items()
        seconds += [item.time // 1000 for item in islice(items, 2 if not more else 1)]
        position = source.position(source.place())
        source.close()
    assert seconds == [1, 2, 3, 4]


def test_a_format_without_marks_is_read_again_and_says_so(tmp_path):
    path, notes = tmp_path / "log", list[str]()
    path.write_text("".join(f'<urn:g{n}000> {{ <urn:{n}> <urn:p> "{n}" }}\n' for n in range(10, 20)))
    url, how = f"{path}?follow=1&form=trig", Reading(note=notes.append)
    source = open_source(url, how)
    first = list(islice(source.items(), 6))
    position = source.position(source.place())
    source.close()
    rest = list(islice(open_source(url, how, after=position).items(), 3))
    assert [item.time // 1000 for item in [*first, *rest]] == list(range(10, 19))
    assert notes == [f"{path}: trig is read again from its beginning, past 6 elements"]
