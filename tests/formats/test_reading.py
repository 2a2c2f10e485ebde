"""The matrix of format, door and option: each cell gives the file's elements, or one sentence that names both.

Doors are called as sources call them; what is drawn comes from what formats declare.
"""

import gzip
import io
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from streamgauge.formats.lines import Advance
from streamgauge.formats.streams import (
    Reading,
    message_decoder,
    read_open,
    read_whole,
    refused,
    stream_formats,
    whole_path,
)
from streamgauge.formats.streams.format import OPTIONS, Format
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError

AT = "<http://www.w3.org/ns/sosa/resultTime>"
DATE = "http://www.w3.org/2001/XMLSchema#dateTime"
MOMENTS = ("2026-03-01T08:00:01", "2026-03-01T08:00:02")
LINES = [f'<urn:o{n}> {AT} "{moment}"^^<{DATE}> .\n<urn:o{n}> <urn:v> "{n}" .\n' for n, moment in enumerate(MOMENTS)]
CONTEXT = f'{{"@context": {{"at": {{"@id": "{AT[1:-1]}", "@type": "{DATE}"}}, "v": "urn:v"}}}}'
FEEDS = ("1772352001", "1772352002")


def jsonld(n: int) -> str:
    return f'{{"@context": "urn:c", "@id": "urn:o{n}", "at": "{MOMENTS[n]}", "v": "{n}"}}\n'


def rdf_xml(numbers: Iterable[int]) -> bytes:
    rows = "".join(
        f'<d:Description d:about="urn:o{n}"><s:resultTime d:datatype="{DATE}">{MOMENTS[n]}</s:resultTime>'
        f"<v xmlns='urn:'>{n}</v></d:Description>"
        for n in numbers
    )
    space = 'xmlns:d="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:s="http://www.w3.org/ns/sosa/"'
    return f"<d:RDF {space}>{rows}</d:RDF>".encode()


def gtfs(n: int) -> bytes:
    from google.transit.gtfs_realtime_pb2 import FeedMessage

    feed = FeedMessage()
    feed.header.gtfs_realtime_version, feed.header.timestamp = "2.0", int(FEEDS[n])
    update = feed.entity.add(id=str(n)).trip_update
    update.trip.trip_id = f"t{n}"
    update.stop_time_update.add(stop_id="s").departure.delay = 60
    return bytes(feed.SerializeToString())


def element(n: int) -> StreamElement:
    triples = ((f"<urn:o{n}>", AT, f'"{MOMENTS[n]}"^^<{DATE}>'), (f"<urn:o{n}>", "<urn:v>", f'"{n}"'))
    return StreamElement("urn:s", 1000 * (n + 1), n, triples)


def messages(form: Format) -> list[bytes]:
    """Two messages in a format, an element each."""
    name = form.name
    if name == "turtle":
        return [line.encode() for line in LINES]
    if name == "rdf":
        return [rdf_xml([n]) for n in range(2)]
    if name == "jsonld":
        return [jsonld(n).encode() for n in range(2)]
    if name == "csv":
        return [f"time,v\n{moment},{n}\n".encode() for n, moment in enumerate(MOMENTS)]
    if name == "json":
        return [b'{"time": "%s", "v": %d}\n' % (moment.encode(), n) for n, moment in enumerate(MOMENTS)]
    if name == "gtfsrt":
        return [gtfs(n) for n in range(2)]
    assert form.encode is not None
    return [form.encode(element(n)) for n in range(2)]


def content(form: Format) -> bytes:
    """The same elements as one file; of ``gtfsrt`` and ``turtle`` only the first."""
    one, two = messages(form) if form.name not in ("parquet", "yabench") else (b"", b"")
    if form.name == "csv":
        return one + two.partition(b"\n")[2]
    if form.name in ("nquads", "trig"):
        return one + two
    if form.name == "rdf":
        return rdf_xml(range(2))
    if form.name in ("parquet", "yabench", "jelly"):
        file = io.BytesIO()
        assert form.write is not None
        form.write([element(n) for n in range(2)], file)
        return file.getvalue()
    return one if form.name == "gtfsrt" else one + two


PROPERTY = {"time_property": "sosa:resultTime"}
EXAMPLES: dict[str, dict[str, Any]] = {
    "time_property": PROPERTY,
    "time_in": {"time_in": "s"},
    "time_zone": {"time_zone": "Europe/Vienna"},
    "fold": {"fold": "later"},
    "parts": {"parts": "sosa:hasResult"},
    "csv_mapping": {"csv_mapping": "m.json"},
    "json_mapping": {"json_mapping": "m.json"},
    "base": {"base": "http://b.example/"},
    "context": {"context": "c.jsonld"},
    "charset": {"charset": "iso-8859-1"},
    "interval": {"interval": 7},
    "once": {"once": True},
}
"""A value for each option."""

FORMS = stream_formats()
DOORS = ("file", "packed", "standard input", "messages")
MAPPING = (
    '{"tableSchema": {"columns": [{"name": "time", "datatype": "dateTime"}, {"name": "v", "datatype": "integer"}]}}'
)


def plain(result: list[Any]) -> list[tuple[int, list[tuple[str, str]]]]:
    """What two doors must agree on: times and triples, blank nodes apart."""
    items = [item for item in result if not isinstance(item, Advance)]
    return [(item.time, sorted((p, o) for _, p, o in item.added)) for item in items]


def read(form: Format, door: str, reading: Reading, folder: Path) -> list[tuple[int, list[tuple[str, str]]]]:
    """The elements of a format by a door; FormatError."""
    if door == "messages":
        decode = message_decoder(form, reading, "mqtt://b/t")
        return plain([item for payload in messages(form) for item in decode(payload, "mqtt://b/t", None)])
    if door == "standard input":
        file = io.BufferedReader(io.BytesIO(content(form)))  # type: ignore[arg-type]
        return plain(list(read_open(file, "standard input", form, reading, refused)))
    path = folder / f"s7{form.endings[0]}{'.gz' if door == 'packed' else ''}"
    path.write_bytes(gzip.compress(content(form)) if door == "packed" else content(form))
    return plain(list(read_whole(whole_path(path, reading), form, reading, refused)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.json").write_text(MAPPING)
    (tmp_path / "c.jsonld").write_text(CONTEXT)
    return tmp_path


def base(form: Format, named: dict[str, Any]) -> Reading:
    """A reading by which a format is read at all, with an option."""
    need = {"context": "urn:c=c.jsonld"} if form.name == "jsonld" else {}
    stated = PROPERTY if form.name in ("rdf", "jsonld") else {}
    return Reading(stream="urn:s", lateness=10**9, note=lambda _note: None, **{**need, **stated, **named})


def test_there_is_an_example_of_every_option_and_every_way_is_declared():
    assert set(EXAMPLES) == set(OPTIONS)
    for form in FORMS.values():
        ways = {way for way in ("read", "timed", "follow", "decoder") if getattr(form, way) is not None}
        assert set(form.honours) == ways, form.name


@pytest.mark.parametrize("name", FORMS)
def test_every_cell_is_the_files_elements_or_one_sentence(folder, name):
    form = FORMS[name]
    for options in [{}, *EXAMPLES.values(), *({**PROPERTY, **item} for item in EXAMPLES.values())]:
        reading, cells = base(form, options), {}
        for door in DOORS:
            try:
                cells[door] = read(form, door, reading, folder)
            except MistakeError as error:
                message = str(error)
                assert "\n" not in message
                unhonoured = set(options) - form.options
                assert (
                    not unhonoured
                    or "cannot be in the format" in message
                    or any(option in message and name in message for option in unhonoured)
                )
            else:
                assert not set(options) - form.options, (door, options)
        if len(cells.get("file", [])) == 2:
            assert all(cell == cells["file"] for cell in cells.values()), (options, cells)


HONOURED = {
    "time_zone": [1772348401000, 1772348402000],
    "fold": [1772352001000, 1772352002000],
    "charset": [1772352001000, 1772352002000],
    "base": [1772352001000, 1772352002000],
    "parts": [1772352001000, 1772352002000],
}


@pytest.mark.parametrize(("name", "option"), list(product(FORMS, HONOURED)))
def test_what_a_format_declares_it_does_at_each_door(folder, name, option):
    """Times without a zone show whether an option was heard."""
    form = FORMS[name]
    options = {**({} if form.guesses_time else PROPERTY), **EXAMPLES[option]}
    for door, way in (("file", "timed"), ("messages", "decoder")):
        if option in form.honours.get(way, ()) and "time_property" in form.honours[way] and name != "messages":
            reading = replace(base(form, options), lateness=None)
            times = [time for time, _ in read(form, door, reading, folder)]
            assert times == HONOURED[option], (door, times)
