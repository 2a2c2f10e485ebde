"""Files, folders, growing files and standard input and output: what comes in, what is refused, what is written."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

import streamgauge.workloads.weather as weather
from streamgauge.formats.lines import Advance, encode_advance, encode_element
from streamgauge.formats.streams import Reading, one_by_one, read_stream, stream_formats, write_stream
from streamgauge.model.element import StreamElement
from streamgauge.sources import Delivery, SourceError, open_sink, open_source, schemes

VALLEY = Path(weather.__file__).parent / "recorded" / "valley.trig"
STREAMED = sorted(name for name, form in stream_formats().items() if form.follow and form.write)


def element(number: int, time: int | None = None) -> StreamElement:
    time = 10 * number if time is None else time
    return StreamElement("urn:s", time, number, ((f"<urn:a{number}>", "<urn:b>", "<urn:c>"),))


def test_every_transport_is_found():
    assert {"-", "file"} <= set(schemes())


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_file_is_read_with_its_advances(tmp_path, packed):
    data = encode_element(element(0)) + b"\n" + encode_advance(5) + encode_element(element(1))
    path = tmp_path / f"s.jsonl{packed}"
    path.write_bytes(gzip.compress(data) if packed else data)
    assert list(open_source(str(path)).items()) == [element(0), Advance(5), element(1)]
    assert list(read_stream(path)) == [element(0), element(1)]


def test_options_are_put_over_the_given_reading(tmp_path):
    (tmp_path / "odd?name").mkdir()
    (tmp_path / "odd?name" / "x_3.ttl").write_text("<urn:a> <urn:b> <urn:c> .")
    folder = tmp_path / "odd?name"
    assert [(e.stream, e.time) for e in open_source(str(folder)).items()] == [("http://ex.org/streams/test", 3000)]
    url = f"file:{str(folder).replace('?', '%3F')}?stream=urn:t&interval=5"
    reading = Reading(stream="urn:other", interval=7)
    assert [(e.stream, e.time) for e in open_source(url, reading).items()] == [("urn:t", 15)]
    assert [(e.stream, e.time) for e in open_source(str(folder), reading).items()] == [("urn:other", 21)]


@pytest.mark.parametrize("form", STREAMED)
def test_a_growing_file_is_followed(tmp_path, form):
    elements = [element(n) for n in range(4)]
    path = tmp_path / "growing"
    write_stream(elements[:2], path, form)
    source = open_source(f"{path}?follow=1&stream=urn:s&form={form}")
    items = source.items()
    results = [next(items)]
    write_more(path, elements[2:], form)
    results += [next(items) for _ in range(2)]
    source.close()
    assert list(items) == []
    assert results == elements[:3]


def write_more(path, elements, form):
    """What a writer adds to a file of the format; Jelly's frames go on from the options at its head."""
    if form == "jelly":
        head = path.read_bytes()
        write_stream([element(n) for n in range(2)] + elements, path.with_suffix(".all"), form)
        whole = path.with_suffix(".all").read_bytes()
        assert whole.startswith(head)
        data = whole[len(head) :]
    else:
        data = b"".join(map(stream_formats()[form].encode, elements))
    with path.open("ab") as file:
        file.write(data)


JSONLD = b'{"@context": {"@vocab": "urn:"},\n "@id": "urn:a", "t": "2026-03-01T08:00:00Z", "v": "}"}\n'
FIRST = {
    "lines of its own": ("s.jsonl", b'{"stream":"urn:s","t":10,"n":0,"add":"<urn:a> <urn:b> <urn:c> ."}\n', "", 10),
    "plain objects": ("s.jsonl", b'{"time": 10, "v": 1}\n', "", 10),
    "an object over lines": ("s.json", b'{"time": 10,\n "v": 1}\n', "", 10),
    "an array that goes on": ("s.json", b'[\n{"time": 10, "v": 1},\n', "", 10),
    "JSON-LD over lines": ("s.json", JSONLD, "&time_property=urn:t", 1772352000000),
    "a log of messages": (
        "s.ttl",
        b'VERSION "1.2-messages"\n<urn:a> <urn:t> "2026-03-01T08:00:00Z" .\nMESSAGE\n',
        "&time_property=urn:t",
        1772352000000,
    ),
}


@pytest.mark.parametrize("case", FIRST)
def test_the_first_bytes_of_a_followed_file_tell_its_format(tmp_path, case):
    name, data, options, time = FIRST[case]
    path = tmp_path / name
    path.write_bytes(b"")
    source = open_source(f"{path}?follow=1{options}")
    results = []
    reader = Thread(target=lambda: results.append(next(source.items())))
    reader.start()
    for begin in range(0, len(data), 7):
        with path.open("ab") as file:
            file.write(data[begin : begin + 7])
    reader.join(60)
    source.close()
    assert [item.time for item in results] == [time]


WRONG = {
    "not of the first object's format": (
        "s.json?time_property=t",
        b'{"v": 1}\n',
        r"no time by t: .*\(its first bytes look like json; if it is jsonld, name that with form=\)",
    ),
    "a syntax that is not followed": ("s.ttl", b"<urn:a> <urn:b> <urn:c> .\n", "s.ttl: turtle cannot be followed"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_guess_of_the_format_is_said(tmp_path, case):
    url, data, said = WRONG[case]
    name, _, options = url.partition("?")
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SourceError, match=said):
        list(open_source(f"{tmp_path / name}?follow=1&{options}").items())


def lines(*numbers: int) -> bytes:
    return b"".join(encode_element(element(number)) for number in numbers)


def renamed(log: Path) -> None:
    log.rename(log.with_name("s.jsonl.1"))
    log.write_bytes(lines(4, 5, 6))


def renamed_while_written(log: Path) -> None:
    """Its writer goes on in the file that was renamed, until it opens the new one."""
    with log.open("ab") as writer:
        log.rename(log.with_name("s-20260301.jsonl"))
        log.write_bytes(b"")
        writer.write(lines(4))
    log.write_bytes(lines(5, 6))


def renamed_twice(log: Path) -> None:
    log.rename(log.with_name("s.jsonl.2"))
    log.with_name("s.jsonl.1").write_bytes(lines(4, 5))
    log.write_bytes(lines(6))


def copied_and_cut(log: Path) -> None:
    with log.open("ab") as writer:
        writer.write(lines(4))
    log.with_name("s.jsonl.1").write_bytes(log.read_bytes())
    log.write_bytes(lines(5, 6))


def copied_packed_and_cut(log: Path) -> None:
    """What is written after the cut is longer than what was read."""
    log.with_name("s.jsonl.1.gz").write_bytes(gzip.compress(log.read_bytes() + lines(4)))
    older = log.with_name("s.jsonl.2.gz")
    older.write_bytes(gzip.compress(lines(-3, -2, -1)))
    os.utime(older, (1, 1))
    log.write_bytes(lines(5, 6, *range(7, 40)))


@pytest.mark.parametrize(
    "rotate", [renamed, renamed_while_written, renamed_twice, copied_and_cut, copied_packed_and_cut]
)
def test_a_followed_file_is_read_across_its_rotation(tmp_path, rotate):
    log, notes = tmp_path / "s.jsonl", list[str]()
    log.write_bytes(lines(1, 2, 3))
    items = one_by_one(open_source(f"{log}?follow=1", Reading(note=notes.append)).items())
    results = [next(items) for _ in range(3)]
    rotate(log)
    results += [next(items) for _ in range(3)]
    assert results == [element(number) for number in range(1, 7)]
    assert notes == []


@pytest.mark.parametrize("more", [lines(4), lines(*range(4, 40))])
def test_a_followed_file_that_is_cut_goes_on_with_a_note_of_what_is_lost(tmp_path, more):
    log, notes = tmp_path / "s.jsonl", list[str]()
    log.write_bytes(lines(1, 2, 3))
    items = one_by_one(open_source(f"{log}?follow=1", Reading(note=notes.append)).items())
    results = [next(items) for _ in range(3)]
    log.write_bytes(more)
    results.append(next(items))
    assert results == [element(number) for number in range(1, 5)]
    assert notes == [f"{log} was truncated: bytes written to it after byte {len(lines(1, 2, 3))} before that are lost"]


def test_a_table_that_is_rotated_begins_with_its_header_again(tmp_path):
    log = tmp_path / "s.csv"
    log.write_text("time,v\n1000,1\n")
    items = one_by_one(open_source(f"{log}?follow=1").items())
    results = [next(items)]
    log.rename(tmp_path / "s.csv.1")
    log.write_text("time,v\n2000,2\n")
    assert [item.time for item in (*results, next(items))] == [1000, 2000]


def test_a_binary_file_that_is_rotated_is_named(tmp_path):
    log = tmp_path / "s.jelly"
    write_stream([element(1)], log)
    items = one_by_one(open_source(f"{log}?follow=1").items())
    next(items)
    log.rename(tmp_path / "s.jelly.1")
    write_stream([element(2)], log)
    with pytest.raises(SourceError, match=r"s\.jelly.*: it was renamed or truncated during reading: start"):
        next(items)


def test_a_waiting_source_ends_when_it_is_closed(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"")
    source = open_source(f"{path}?follow=true")
    seen = []
    reader = Thread(target=lambda: seen.extend(source.items()))
    reader.start()
    source.close()
    source.close()
    reader.join(300)
    assert not reader.is_alive()
    assert seen == []


def test_repeated_elements_are_left_out_when_their_numbers_rise(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(encode_element(element(n)) for n in (0, 1, 0, 1, 2)) + encode_advance(99))
    assert list(open_source(f"{path}?once=1").items()) == [element(0), element(1), element(2), Advance(99)]


BAD = {
    "no file": ("nowhere.nq", "nowhere.nq: there is no such file or folder"),
    "no transport": ("gopher://x/y", "streams cannot be read from 'gopher': there are -, file"),
    "unknown option": (
        "s.jsonl?folow=1",
        "unknown option folow: there are bad, base, charset, context, csv_mapping, fold, follow, form, ",
    ),
    "no number": ("s.jsonl?lateness=soon", "option lateness is 'soon': expected a whole number"),
    "no truth": ("s.jsonl?follow=maybe", "option follow is 'maybe': expected 1 or 0"),
    "no policy": ("s.jsonl?bad=ignore", "option bad is 'ignore': expected one of 'stop', 'skip'"),
    "twice": ("s.jsonl?bad=stop&bad=skip", "option bad is repeated"),
    "format": ("s.jsonl?form=xml", "unknown stream format 'xml'"),
    "ending": ("odd.doc", r"no stream format has the ending \.doc"),
    "not followed": ("s.parquet?follow=1", "parquet cannot be followed"),
    "port": ("mqtt://host:port/x", "not a URL"),
    "standard input": ("-?form=parquet", "'parquet' cannot be read from standard input: use one of csv, gtfsrt, jelly"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_opened_is_named(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    for name in ("s.jsonl", "odd.doc", "s.parquet"):
        Path(name).write_text("")
    url, said = BAD[case]
    with pytest.raises(SourceError, match=said):
        open_source(url)


def test_bad_lines_stop_a_source_or_are_counted(tmp_path):
    path = tmp_path / "s.jsonl"
    bad = [b"nonsense\n", b'{"t":1}\n', b"x" * 400 + b"\n", encode_element(element(1, 3))]
    path.write_bytes(encode_element(element(0, 9)) + b"".join(bad) + encode_element(element(2, 11)))
    source = open_source(f"{path}?bad=skip&limit=200")
    assert list(source.items()) == [element(0, 9), element(2, 11)]
    assert source.refused == 4
    assert "line 2: not a line of JSON" in source.reasons[0]
    assert "line 4: longer than 200 bytes" in source.reasons[2]
    assert "line 5: time goes back from 9 to 3 ms" in source.reasons[3]
    with pytest.raises(SourceError, match=r"s\.jsonl, line 2: not a line of JSON"):
        list(open_source(str(path)).items())


def test_bad_quads_are_passed_over(tmp_path):
    path = tmp_path / "s.nq"
    good = "<urn:a> <urn:b> <urn:c> <urn:g{}> .\n"
    lines = [good.format(1), "a b c\n", "<urn:a> <urn:b> <urn:c> .\n", good.format(""), good.format(2), good.format(1)]
    path.write_text("".join(lines))
    source = open_source(f"{path}?bad=skip")
    assert [e.time for e in source.items()] == [1, 2]
    assert sorted(reason.split(": ", 1)[1][:12] for reason in source.reasons) == [
        "a triple out",
        "graph <urn:g",
        "not N-Quads:",
    ]


PROGRAM = """
import sys
from streamgauge.sources import open_sink, open_source
from streamgauge.formats.lines import encode_element
sink = open_sink("-")
for item in open_source(sys.argv[1]).items():
    sink.send(encode_element(item).rstrip())
print(sink.close(), file=sys.stderr)
"""


@pytest.mark.server
@pytest.mark.parametrize("form", ["jelly", "jsonl", "trig"])
def test_standard_input_and_output(tmp_path, form):
    elements = [element(n) for n in range(3)]
    write_stream(elements, tmp_path / "s", form)
    command = [sys.executable, "-c", PROGRAM, f"-?form={form}&stream=urn:s"]
    done = subprocess.run(command, input=(tmp_path / "s").read_bytes(), capture_output=True, check=True, timeout=300)
    assert done.stdout == b"".join(map(encode_element, elements))
    assert done.stderr.strip().endswith(str(Delivery(3, 0)).encode())


def test_a_file_sink_adds_messages_and_reports_what_it_could_not_write(tmp_path):
    for _ in range(2):
        sink = open_sink(str(tmp_path / "out.jsonl"))
        sink.send(b"one")
        sink.send(b"two\n", key="k")
        assert sink.close() == sink.close() == Delivery(2, 0)
    assert (tmp_path / "out.jsonl").read_bytes() == b"one\ntwo\n" * 2
    raw = open_sink(f"file:{tmp_path}/out.jelly?end=none")
    raw.send(b"\x01")
    assert raw.close() == Delivery(1, 0)
    assert (tmp_path / "out.jelly").read_bytes() == b"\x01"
    with pytest.raises(SourceError, match="the sink is closed"):
        raw.send(b"late")
    with pytest.raises(SourceError, match="cannot be written: there is no such file or folder"):
        open_sink(str(tmp_path / "no" / "where"))
    with pytest.raises(SourceError, match="unknown option form: there are end"):
        open_sink(f"{tmp_path}/x?form=jsonl")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which only Linux has")
def test_a_full_disk_is_reported():
    sink = open_sink("/dev/full")
    sink.send(b"lost")
    assert sink.close() == Delivery(0, 1, "the disk is full: free some space and try again")
