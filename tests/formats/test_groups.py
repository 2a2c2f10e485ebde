"""Whole files are read in bounded memory, and what their parts say is put together wherever it stands."""

import random
import sqlite3
import tracemalloc
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.documents import FormatError
from streamgauge.formats.streams import Reading, groups, read_elements, stream_format
from streamgauge.formats.streams.format import Relabel
from streamgauge.formats.streams.groups import Groups
from streamgauge.formats.syntaxes import parse_open
from streamgauge.model.terms import Triple
from tests.examples import examples

STATED = "http://www.streamreasoning.org/schema/benchmark#hasTimestamp"
RESULT_TIME = "http://www.w3.org/ns/sosa/resultTime"
LONG = "http://www.w3.org/2001/XMLSchema#long"


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(groups, "WINDOW", 3)
    monkeypatch.setattr(groups, "_NEAR", 2)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 9), st.booleans())))
@examples(100, 3000)
def test_groups_on_disk_are_those_in_memory(values):
    with pytest.MonkeyPatch.context() as patch:
        results = []
        for window in (10**9, 3):
            patch.setattr(groups, "WINDOW", window)
            together = Groups[int]("f")
            for key, value, aside in values:
                if aside:
                    together.put_aside((key,), value)
                else:
                    together.begin((key,)).append(value)
            results.append([(key, sorted(items), (key in together)) for key, items in together])
            assert all(together.get(key) == items for key, items in together)
        assert results[0] == results[1]
        expected: dict[str, list[int]] = {key: [] for key, _, aside in values if not aside}
        for key, value, _ in values:
            expected.get(key, []).append(value)
        assert results[0] == [((key,), sorted(items), True) for key, items in expected.items()]


def _lines(count: int, seed: int) -> dict[str, list[str]]:
    """Lines of N-Quads and N-Triples in any order: graphs with their times, and observations with blank nodes."""
    draw = random.Random(seed)
    quads, triples = [], []
    for at in range(count):
        graph, time = f"<urn:g{at}>", draw.randrange(50)
        quads.append(f'{graph} <{STATED}> "{time}"^^<{LONG}> <urn:times> .')
        quads += [f'<urn:s{draw.randrange(9)}> <urn:p> "{draw.randrange(9)} x" {graph} .' for _ in range(3)]
        triples.append(f'<urn:o{at}> <{RESULT_TIME}> "{time}"^^<{LONG}> .')
        triples += [f"<urn:o{at}> <urn:has> _:b{at} .", f'_:b{at} <urn:v> "{draw.randrange(9)}" .']
        triples += [f"<urn:o{at}> <urn:by> <urn:sensor{at % 3}> .", f"_:b{at} <urn:of> _:c{at % 4} ."]
    triples += [f'<urn:sensor{at}> <urn:name> "{at}" .' for at in range(5)]
    triples += [f'_:c{at} <urn:name> "{at}" .' for at in range(4)]
    draw.shuffle(quads)
    draw.shuffle(triples)
    in_graphs = [f"{line[:-1]}<urn:g{at % 3}> ." for at, line in enumerate(triples)]
    return {"f.nq": quads, "f.trig": quads, "f.nt": triples, "o.nq": in_graphs}


def _read(path: Path, name: str, notes: list[str]) -> list[tuple[int, tuple[Triple, ...]]]:
    time_property = None if name in ("f.nq", "f.trig") else RESULT_TIME
    reading = replace(Reading(note=notes.append), time_property=time_property, lateness=10**9, parts="urn:by")
    reading = reading if time_property else reading.without(("parts",))
    return [(item.time, item.added) for item in read_elements(path, stream_format(path, None, reading), reading)]


@pytest.mark.parametrize("name", ["f.nq", "f.trig", "f.nt", "o.nq"])
@pytest.mark.parametrize("seed", range(5))
def test_a_file_in_any_order_gives_the_same_on_disk(tmp_path, monkeypatch, name, seed):
    path = tmp_path / name
    lines = _lines(20, seed)[name]
    if name == "f.trig":
        lines = [f"{line.rsplit(' ', 2)[1]} {{ {line.rsplit(' ', 2)[0]} }}" for line in lines]
    path.write_text("\n".join(lines) + "\n")
    notes: list[list[str]] = [[], []]
    in_memory = _read(path, name, notes[0])
    monkeypatch.setattr(groups, "WINDOW", 3)
    monkeypatch.setattr(groups, "_NEAR", 2)
    assert _read(path, name, notes[1]) == in_memory
    assert len(in_memory) >= 15
    assert notes[0] == notes[1]


def test_blank_nodes_keep_their_names_when_there_are_many(small):
    names = [f"_:x{at * 7 % 20}" for at in range(60)]
    assert list(map(Relabel("f").blank, names)) == [f"_:fb{at % 20}" for at in range(60)]


def test_an_error_names_its_line_in_a_file_larger_than_memory(tmp_path, small):
    path = tmp_path / "f.nq"
    path.write_text('<urn:a> <urn:p> "1" <urn:g1> .\n' * 9 + "<urn:a> <urn:p> .\n")
    with pytest.raises(FormatError, match=r"f\.nq, line 10: not N-Quads"):
        next(read_elements(path, stream_format(path, None), Reading()))


def test_a_full_disk_is_named(monkeypatch, small):
    class Full(groups._Rows):
        def add(self, *_windows: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(groups, "_Rows", Full)
    together = Groups[int]("f.nq")
    with pytest.raises(FormatError, match=r"^f.nq: .* cannot take it .*disk is full.*: set TMPDIR"):
        list(map(together.begin, zip("abcdefghi", strict=True)))


SIZES = {
    "f.nq": "<urn:g/{n}> <" + STATED + '> "{n}"^^<' + LONG + '> <urn:t> .\n<urn:s> <urn:p> "{n}" <urn:g/{n}> .\n',
    "f.trig": "<urn:t> {{ <urn:g/{n}> <" + STATED + "> {n} }} <urn:g/{n}> {{ <urn:s> <urn:p> {n} }}\n",
    "f.nt": "_:b{n} <" + RESULT_TIME + '> "{n}"^^<' + LONG + '> .\n_:b{n} <urn:p> "{n}" .\n',
    "f.ttl": "[] <" + RESULT_TIME + "> {n} ; <urn:p> [ <urn:q> {n} ] .\n",
    "f.rdf": "<r:Bag><s:resultTime>{n}</s:resultTime><e:p r:parseType='Resource'><e:q>{n}</e:q></e:p></r:Bag>\n",
}
RDF_XML = (
    "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:s='http://www.w3.org/ns/sosa/' xmlns:e='urn:'>"
)
AROUND = {"f.rdf": (RDF_XML, "</r:RDF>")}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch, name):
    monkeypatch.setattr(groups, "WINDOW", 500)
    monkeypatch.setattr(groups, "_NEAR", 50)
    monkeypatch.setattr("streamgauge.formats.streams.sorted_runs.RUN", 500)
    monkeypatch.setattr("streamgauge.formats.streams.format.WINDOW", 500)
    monkeypatch.setattr("streamgauge.formats.documents.BUFFER", 2**13)
    peaks = []
    for count in (100, 1_000, 3_000):  # the first imports modules
        path = tmp_path / name
        path.write_text("".join(SIZES[name].format(n=at) for at in range(count)).join(AROUND.get(name, ("", ""))))
        reading = Reading(time_property=None if name in ("f.nq", "f.trig") else RESULT_TIME)
        tracemalloc.start()
        assert sum(1 for _ in read_elements(path, stream_format(path, None, reading), reading)) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Of an element that stays in memory, the triples alone take 1,000 bytes and more.
    assert peaks[2] - peaks[1] < 200 * 2_000, peaks


def test_rdf_xml_of_many_blocks_is_not_nested():
    head = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:t="urn:t:">'
    one = b'<rdf:Description rdf:about="urn:a"><t:p rdf:resource="urn:b"/></rdf:Description>'
    body = BytesIO(head + one * 20_000 + b"</rdf:RDF>")
    quads = parse_open(body, "f.rdf", ox.RdfFormat.RDF_XML)
    assert next(quads)
    # The first description comes before the last is read.
    assert body.tell() < 2**17
    assert sum(1 for _ in quads) == 19_999


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("<!DOCTYPE a>", "f.rdf: XML with a DTD"),
        ("<t:a>" * 120, "f.rdf: elements are nested more than 100 deep"),
        ("</t:a>", "f.rdf: ill-formed document"),
    ],
)
def test_what_is_wrong_after_many_blocks_of_rdf_xml_is_refused(part, reason):
    head = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:t="urn:t:">\n'
    one = '<rdf:Description rdf:about="urn:a"><t:p rdf:resource="urn:b"/></rdf:Description>\n'
    with pytest.raises(FormatError, match=reason):
        list(parse_open(BytesIO((head + one * 5_000 + part).encode()), "f.rdf", ox.RdfFormat.RDF_XML))
