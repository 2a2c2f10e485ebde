"""Data as people have it is a stream: times that are properties or columns; errors name file and place."""

from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.formats.instants import InstantError, Instants, strptime_pattern
from streamgauge.formats.streams import FormatError, Reading, read_triples
from streamgauge.formats.streams.properties import property_path
from streamgauge.sources import SourceError, open_source

PREFIXES = """@prefix sosa: <http://www.w3.org/ns/sosa/> . @prefix prov: <http://www.w3.org/ns/prov#> .
@prefix time: <http://www.w3.org/2006/time#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix : <urn:> .
"""
SOSA = Reading(stream="urn:s", time_property="sosa:resultTime", note=lambda _sentence: None)
PROV = replace(SOSA, time_property="prov:generatedAtTime")


def at(time: str, kind: str = "dateTime") -> str:
    return f'"1970-01-01T00:00:{time}"^^xsd:{kind}'


def read(tmp_path: Path, name: str, text: str, reading: Reading = SOSA, options: str = "") -> list[tuple[int, int]]:
    """(time, triples) of each element of a file with that text."""
    file = tmp_path / name
    file.write_text(text if name.endswith(("csv", "tsv", "jsonld", "rdf", "nt", "nq")) else PREFIXES + text)
    results = list(open_source(f"{file}{options}", reading).items())
    assert [element.sequence for element in results] == list(range(len(results)))
    assert {element.stream for element in results} <= {reading.stream}
    return [(element.time, len(element.added)) for element in results]


TURTLE = {
    "a description each": (
        f":a sosa:resultTime {at('01Z')} ; :p 1 . :b sosa:resultTime {at('02Z')} .",
        [(1000, 2), (2000, 1)],
    ),
    "blank nodes belong to it": (f":a sosa:resultTime {at('01Z')} ; :r [ :v 1 ; :u [ :w 2 ] ] .", [(1000, 5)]),
    "a blank node has the time": (f"[] sosa:resultTime {at('01Z')} ; :p ( 1 2 ) .", [(1000, 6)]),
    "a blank node in two": (
        f":a sosa:resultTime {at('01Z')} ; :r _:x . :b sosa:resultTime {at('02Z')} ; :r _:x . _:x :v 1 .",
        [(1000, 3), (2000, 3)],
    ),
    "sorted by time": (
        f":a sosa:resultTime {at('09Z')} . :b sosa:resultTime {at('02Z')} ; :p 1 .",
        [(2000, 2), (9000, 1)],
    ),
    "the same instant twice": (f":a sosa:resultTime {at('01Z')} , {at('01.000Z')} .", [(1000, 2)]),
    "a number": (":a sosa:resultTime 1500 .", [(1500, 1)]),
    "a decimal": (":a sosa:resultTime 1500.6 .", [(1501, 1)]),
    "a date": (':a sosa:resultTime "1970-01-02"^^xsd:date .', [(86_400_000, 1)]),
    "a stamp": (f":a sosa:resultTime {at('01Z', 'dateTimeStamp')} .", [(1000, 1)]),
    "text that is a time": (':a sosa:resultTime "1970-01-01T00:00:01Z" .', [(1000, 1)]),
    "an offset": (':a sosa:resultTime "1970-01-01T01:00:01+01:00"^^xsd:dateTime .', [(1000, 1)]),
    "an annotated triple belongs to its annotation": (
        f":s :p 1 ~ :a {{| sosa:resultTime {at('01Z')} ; :q 2 |}} . :s :p 2 {{| sosa:resultTime {at('02Z')} |}} .",
        [(1000, 4), (2000, 3)],
    ),
    "a triple that is reified and not asserted": (
        f"<< :s :p 1 ~ :a >> sosa:resultTime {at('01Z')} . << :s :p 2 >> sosa:resultTime {at('02Z')} .",
        [(1000, 2), (2000, 2)],
    ),
    "a triple term that is not a reification": (
        f":a :says <<( :s :p 1 )>> ; sosa:resultTime {at('01Z')} . :s :p 1 ; sosa:resultTime {at('02Z')} .",
        [(1000, 2), (2000, 2)],
    ),
    "blank nodes of a triple term belong to it": (
        f"<< _:x :p [] ~ :a >> sosa:resultTime {at('01Z')} . _:x :v 1 .",
        [(1000, 3)],
    ),
    "an annotated triple leads to a blank node": (
        f":s :p _:x ~ :a {{| sosa:resultTime {at('01Z')} |}} . _:x :v 1 .",
        [(1000, 4)],
    ),
    "two annotations of one triple": (
        f":s :p 1 ~ :a {{| sosa:resultTime {at('01Z')} |}} ~ :b {{| sosa:resultTime {at('02Z')} |}} .",
        [(1000, 3), (2000, 3)],
    ),
    "before 1970": (':a sosa:resultTime "1969-12-31T23:59:59.5Z"^^xsd:dateTime .', [(-500, 1)]),
}


@pytest.mark.parametrize("case", TURTLE)
def test_observations_in_one_graph(tmp_path, case):
    text, wanted = TURTLE[case]
    assert read(tmp_path, "o.ttl", text) == wanted
    if case not in ("a blank node has the time", "sorted by time"):
        assert read(tmp_path, "o.trig", f"GRAPH :all {{ {text} }}") == wanted


@pytest.mark.parametrize("name", ["o.nt", "o.nq"])
def test_lines_of_triples(tmp_path, name):
    text = '<urn:a> <http://www.w3.org/ns/sosa/resultTime> "1500"^^<http://www.w3.org/2001/XMLSchema#long> .\n'
    assert read(tmp_path, name, text + "<urn:a> <urn:p> _:b .\n_:b <urn:q> <urn:c> .\n") == [(1500, 3)]


def test_other_syntaxes(tmp_path):
    json = '{"@id": "urn:a", "http://www.w3.org/ns/sosa/resultTime": "1970-01-01T00:00:01Z", "urn:p": 1}'
    assert read(tmp_path, "o.jsonld", json) == [(1000, 2)]
    xml = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:s="http://www.w3.org/ns/sosa/">
        <rdf:Description rdf:about="urn:a"><s:resultTime>1970-01-01T00:00:01Z</s:resultTime></rdf:Description>
        </rdf:RDF>"""
    assert read(tmp_path, "o.rdf", xml) == [(1000, 1)]
    with pytest.raises(SourceError, match="no times: name the property that states them"):
        read(tmp_path, "o.rdf", xml, Reading())


def test_a_folder_is_read_file_by_file(tmp_path):
    for name, time in (("a.ttl", "05Z"), ("b.ttl", "02Z")):
        (tmp_path / name).write_text(f"{PREFIXES} [] sosa:resultTime {at(time)} .")
    results = list(open_source(str(tmp_path), SOSA).items())
    assert [(item.time, item.added[0][0]) for item in results] == [(2000, "_:f1b0"), (5000, "_:f0b0")]


G, H = "prov:generatedAtTime " + at("01Z"), "prov:generatedAtTime " + at("02Z")
TWO = ":g { :a :p 1 . :b :p 2 } :h { :a :p 3 }"
GRAPHS = {
    "in the default graph": f"{TWO} :g {G} . :h {H} .",
    "in the graph, of its name": f":g {{ :a :p 1 . :g {G} }} :h {{ :h {H} }}",
    "in the graph, of a thing": f":g {{ :a :p 1 ; {G} }} :h {{ :b {H} }}",
    "in a graph of times": f"{TWO} :times {{ :g {G} . :h {H} }}",
    "with provenance": f"{TWO} :g {G} ; prov:wasAttributedTo [ :n 1 ] . :h {H} .",
    "alike within": f":g {{ :a {G} . :b {G.replace('01Z', '01.0Z')} }} :h {{ :b {H} }}",
}


@pytest.mark.parametrize("case", GRAPHS)
def test_a_graph_per_element(tmp_path, case):
    assert read(tmp_path, "g.trig", GRAPHS[case], PROV) == [(1000, 2), (2000, 1)]


def test_a_graph_of_several_times_is_read_by_subject(tmp_path):
    text = f":g {{ :a sosa:resultTime {at('01Z')} ; :p [ :q 1 ] . :b sosa:resultTime {at('02Z')} }}"
    assert read(tmp_path, "g.trig", text) == [(1000, 3), (2000, 1)]


def test_a_path_leads_to_the_time(tmp_path):
    text = f":a sosa:phenomenonTime [ time:inXSDDateTimeStamp {at('01Z', 'dateTimeStamp')} ] ; :p 1 ."
    reading = replace(SOSA, time_property="sosa:phenomenonTime/time:inXSDDateTimeStamp")
    assert read(tmp_path, "o.ttl", text, reading) == [(1000, 3)]


def test_parts_belong_to_an_element_although_they_are_iris(tmp_path):
    text = f":a sosa:resultTime {at('01Z')} ; sosa:hasResult :r . :r :v 1 ; :u [ :w 2 ] ."
    assert read(tmp_path, "o.ttl", text, replace(SOSA, parts="sosa:hasResult")) == [(1000, 5)]
    notes: list[str] = []
    assert read(tmp_path, "o.ttl", text, replace(SOSA, note=notes.append)) == [(1000, 2)]
    assert "o.ttl: 1 subject without sosa:resultTime (<urn:r>): static data" in notes[0]
    assert "--parts sosa:hasResult includes those" in notes[0]


def test_the_order_of_the_file_counts_where_lateness_is_declared(tmp_path):
    text = f":a sosa:resultTime {at('09Z')} . :b sosa:resultTime {at('02Z')} ; :p 1 ."
    assert read(tmp_path, "o.ttl", text, replace(SOSA, lateness=10_000)) == [(9000, 1), (2000, 2)]


UNITS = {"ns": 1500 / 1e6, "us": 1.5, "ms": 1500, "s": 1_500_000}


@pytest.mark.parametrize("unit", UNITS)
def test_what_numbers_count(tmp_path, unit):
    reading = replace(SOSA, time_in=unit)
    assert read(tmp_path, "o.ttl", ":a sosa:resultTime 1500 .", reading) == [(round(UNITS[unit]), 1)]


def test_times_without_a_zone(tmp_path):
    notes: list[str] = []
    text = f":a sosa:resultTime {at('01')} . :b sosa:resultTime {at('02')} ."
    assert read(tmp_path, "o.ttl", text, replace(SOSA, note=notes.append)) == [(1000, 1), (2000, 1)]
    assert len(notes) == 1
    assert "o.ttl, <urn:a>: 1970-01-01T00:00:01 has no zone: such times are read as UTC" in notes[0]
    for zone in ("+01:00", "Europe/Vienna"):
        assert read(tmp_path, "o.ttl", text, replace(SOSA, time_zone=zone))[0] == (1000 - 3_600_000, 1)
    both = f":a sosa:resultTime {at('01')} . :b sosa:resultTime {at('02Z')} ."
    with pytest.raises(SourceError, match=r"<urn:b>: 1970-01-01T00:00:01 .*<urn:a>.* has no zone and .* has one: name"):
        read(tmp_path, "o.ttl", both)
    assert read(tmp_path, "o.ttl", both, replace(SOSA, time_zone="Z")) == [(1000, 1), (2000, 1)]


REFUSED = {
    "two times": (f":a sosa:resultTime {at('01Z')} , {at('02Z')} .", "o.ttl, <urn:a>: two times by sosa:resultTime"),
    "no time at all": (":a :p 1 .", "o.ttl: nothing in it has sosa:resultTime"),
    "another property": (f":a :at {at('01Z')} .", "nothing in it has sosa:resultTime: did you mean <urn:at>?"),
    "no moment": (
        ':a sosa:resultTime "noon" .',
        "<urn:a>: 'noon' is not a time: a date with a time as 2026-03-01T08:00:00Z",
    ),
    "no day": (':a sosa:resultTime "2026-02-30T00:00:00Z"^^xsd:dateTime .', "day is out of range for month"),
    "a node": (":a sosa:resultTime :t .", "<urn:t> is not a time: name the path to the time"),
    "a year": (
        ':a sosa:resultTime "2026"^^xsd:gYear .',
        "is not a time: xsd:dateTime, xsd:dateTimeStamp, xsd:date or a number",
    ),
    "too large": (":a sosa:resultTime 1e30 .", "is not a time: it is beyond 64 bits of ms"),
    "larger than a Decimal": (":a sosa:resultTime 1e1000000 .", "is not a time: it is beyond 64 bits of ms"),
    "NaN": (':a sosa:resultTime "NaN"^^xsd:double .', "is not a time"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_one_time_is_refused_by_subject(tmp_path, case):
    text, words = REFUSED[case]
    with pytest.raises(SourceError) as result:
        read(tmp_path, "o.ttl", text)
    assert words in str(result.value)


def test_what_is_bad_is_passed_over_where_that_is_asked_for(tmp_path):
    text = f":a sosa:resultTime {at('01Z')} . :b sosa:resultTime 1, 2 . :c sosa:resultTime :d . :e sosa:resultTime 3 ."
    (tmp_path / "o.ttl").write_text(PREFIXES + text)
    source = open_source(f"{tmp_path / 'o.ttl'}?bad=skip", SOSA)
    assert [element.time for element in source.items()] == [3, 1000]
    assert source.refused == 2


def test_a_file_whose_times_nobody_names_says_which_property_has_them(tmp_path):
    text = f":a sosa:resultTime {at('01Z')} ."
    with pytest.raises(
        SourceError, match=r"name has no number for its time.*states them: --time-property sosa:resultTime"
    ):
        read(tmp_path, "o.ttl", text, Reading())
    notes: list[str] = []
    assert read(tmp_path, "o7.ttl", text, Reading(note=notes.append)) == [(7000, 1)]
    assert "is one element, at 7,000 ms by the number in its name; --time-property sosa:resultTime reads" in notes[0]
    with pytest.raises(SourceError, match=r"outside any named graph.*\(--time-property sosa:resultTime reads"):
        read(tmp_path, "o.trig", text, Reading())
    assert read(tmp_path, "o.trig", f"<urn:g:5> {{ {text} }}", Reading(note=notes.append)) == [(5, 1)]
    assert "the digits that end <urn:g:5> are its time" in notes[1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sossa:x", "did you mean sosa:"),
        ("time", "is not a property: write an IRI"),
        ("<x>", "<x> is not an absolute IRI"),
    ],
)
def test_a_property_that_is_none(tmp_path, name, words):
    with pytest.raises(SourceError, match=words):
        read(tmp_path, "o.ttl", ":a :p 1 .", replace(SOSA, time_property=name))


def test_names_of_properties():
    result = "<http://www.w3.org/ns/sosa/resultTime>"
    for name in ("sosa:resultTime", "http://www.w3.org/ns/sosa/resultTime", result, " sosa:resultTime "):
        assert property_path(name, {}) == (result,)
    assert property_path("a:b/<urn:c/d>", {"a": "urn:a#"}) == ("<urn:a#b>", "<urn:c/d>")
    assert property_path("sosa:x", {"sosa": "urn:mine:"}) == ("<urn:mine:x>",)


def test_growing_files_take_a_time_property_too(tmp_path):
    text = f":g {{ :a :p 1 }} :g prov:generatedAtTime {at('01Z')} . :h {{ :b prov:generatedAtTime {at('02Z')} }}"
    (tmp_path / "g.trig").write_text(PREFIXES + text)
    source = open_source(f"{tmp_path / 'g.trig'}?follow=1&time_property=prov:generatedAtTime", Reading())
    items = source.items()
    assert next(items).time == 1000
    source.close()


CSV = {
    "a header's names": ("time,lot,free\n1000,a,12\n2000,b,\n", [(1000, 3), (2000, 2)]),
    "semicolons": ("Time;lot\n1970-01-01 00:00:01;a\n", [(1000, 2)]),
    "a bare line end": ("timestamp,lot\r\n1000,a\r\n\r\n", [(1000, 2)]),
    "quotes and lines in cells": ('time,note\n1000,"a ""b"",\nc"\n2000,d\n', [(1000, 2), (2000, 2)]),
    "sorted": ("time,lot\n2000,a\n1000,b\n", [(1000, 2), (2000, 2)]),
    "a mark of UTF-8": ("\ufefftime,lot\n1000,a\n", [(1000, 2)]),
    "predicates in the header": ("sosa:resultTime,urn:lot\n1000,a\n", [(1000, 2)]),
}


@pytest.mark.parametrize("case", CSV)
def test_csv_by_its_header(tmp_path, case):
    text, wanted = CSV[case]
    assert read(tmp_path, "p.csv", text, replace(SOSA, time_property=None)) == wanted
    assert (
        read(tmp_path, "p.tsv", text.replace(",", "\t").replace(";", "\t"), replace(SOSA, time_property=None)) == wanted
    )


def test_cells_are_terms_by_their_look(tmp_path):
    row = '1000,12,1.5,1e3,true,2026-03-01,2026-03-01 08:00,http://a.example/x,Zürich "x",007'
    quoted = row.replace('Zürich "x"', '"Zürich ""x"""')
    (tmp_path / "p.csv").write_text(f"time,{','.join('abcdefghi')}\n{quoted}\n")
    (element,) = open_source(str(tmp_path / "p.csv"), replace(SOSA, time_property=None)).items()
    xsd = "http://www.w3.org/2001/XMLSchema#"
    assert [o for _, _, o in element.added] == [
        f'"1000"^^<{xsd}integer>', f'"12"^^<{xsd}integer>', f'"1.5"^^<{xsd}decimal>', f'"1e3"^^<{xsd}double>',
        f'"true"^^<{xsd}boolean>', f'"2026-03-01"^^<{xsd}date>', f'"2026-03-01T08:00:00"^^<{xsd}dateTime>',
        "<http://a.example/x>", '"Zürich \\"x\\""', f'"007"^^<{xsd}integer>',
    ]  # fmt: skip
    assert element.added[1][1] == "<urn:s#a>"
    assert len({s for s, _, _ in element.added}) == 1


MAPPING = """{"@context": "http://www.w3.org/ns/csvw", "url": "p.csv", "dc:title": "left out",
 "dialect": {"delimiter": ";"},
 "tableSchema": {"aboutUrl": "http://p.example/obs/{_row}", "columns": [
  {"titles": "Zeit", "name": "at", "propertyUrl": "sosa:resultTime",
   "datatype": {"base": "dateTime", "format": "dd.MM.yyyy HH:mm:ss"}},
  {"titles": "Parkhaus", "name": "lot", "propertyUrl": "urn:lot", "valueUrl": "http://p.example/lot/{lot}"},
  {"titles": "frei", "name": "free", "propertyUrl": "urn:free", "datatype": "integer", "null": "-"},
  {"titles": "Preis", "name": "price", "propertyUrl": "urn:price",
   "datatype": {"base": "decimal", "format": {"decimalChar": ",", "groupChar": "."}}},
  {"titles": "offen", "name": "open", "propertyUrl": "urn:open", "datatype": {"base": "boolean", "format": "ja|nein"}},
  {"titles": "Tags", "name": "tags", "propertyUrl": "urn:tag", "separator": " ", "lang": "de"},
  {"titles": "egal", "name": "x", "suppressOutput": true},
  {"virtual": true, "name": "type", "propertyUrl": "rdf:type", "valueUrl": "sosa:Observation"}]}}"""
ROWS = "Zeit;Parkhaus;frei;Preis;offen;Tags;egal;mehr\n01.01.1970 00:00:02;b c;-;1.200,50;ja;alt neu;1;2\n"


def test_a_mapping_beside_the_file_says_what_columns_are(tmp_path):
    (tmp_path / "p.csv-metadata.json").write_text(MAPPING)
    (tmp_path / "p.csv").write_text(ROWS)
    (element,) = open_source(str(tmp_path / "p.csv"), replace(SOSA, time_property=None)).items()
    xsd, subject = "http://www.w3.org/2001/XMLSchema#", "<http://p.example/obs/1>"
    assert element.time == 2000
    assert element.added == (
        (subject, "<http://www.w3.org/ns/sosa/resultTime>", f'"1970-01-01T00:00:02"^^<{xsd}dateTime>'),
        (subject, "<urn:lot>", "<http://p.example/lot/b%20c>"),
        (subject, "<urn:price>", f'"1200.50"^^<{xsd}decimal>'),
        (subject, "<urn:open>", f'"true"^^<{xsd}boolean>'),
        (subject, "<urn:tag>", '"alt"@de'),
        (subject, "<urn:tag>", '"neu"@de'),
        (subject, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<http://www.w3.org/ns/sosa/Observation>"),
    )
    named = replace(SOSA, csv_mapping=str(tmp_path / "p.csv-metadata.json"))
    (tmp_path / "q.csv").write_text(ROWS)
    assert len(next(iter(open_source(str(tmp_path / "q.csv"), named).items())).added) == 7


def test_a_table_without_a_header_and_several_tables(tmp_path):
    columns = '"columns": [{"name": "t", "datatype": "date"}, {"name": "v"}]'
    other, mine = (
        '{"url": "other.csv"}',
        f'"url": "x/p.csv", "dialect": {{"header": false}}, "tableSchema": {{{columns}}}',
    )
    text = f'{{"tables": [{other}, {{{mine}}}]}}'
    (tmp_path / "p.csv-metadata.json").write_text(text)
    assert read(tmp_path, "p.csv", "1970-01-02,a\n", replace(SOSA, time_property=None)) == [(86_400_000, 2)]


BAD_TABLES = {
    "no time column": (
        "a,b\n1,2\n",
        "no columns that look like the time: name it with --time-property",
    ),
    "two time columns": ("time,date\n1,2\n", "p.csv: 2 columns that look like the time"),
    "no cell of time": ("time,b\n,2\n", "p.csv, line 2: no time: column time is empty"),
    "no time in it": ("time,b\n1,2\nsoon,2\n", "p.csv, line 3: 'soon' is not a time"),
    "too few cells": ("time,b\n1\n", "p.csv, line 2: 1 cell where the header has 2"),
    "too many cells": ("time,b\n1,2,3\n", "p.csv, line 2: 3 cells where the header has 2"),
    "a name twice": ("time,b,b\n1,2,3\n", "p.csv: two columns are named 'b'"),
    "a column without a name": ("time,,b\n1,2,3\n", "p.csv, line 2: column 2 has no name"),
    "an open quote": ('time,b\n1,"2\n', "p.csv, line 2: not CSV: unexpected end of data"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_refused_by_line(tmp_path, case):
    text, words = BAD_TABLES[case]
    with pytest.raises(SourceError) as result:
        read(tmp_path, "p.csv", text, replace(SOSA, time_property=None))
    assert words in str(result.value)


def test_another_encoding_is_refused_and_named(tmp_path):
    (tmp_path / "p.csv").write_bytes("time,lot\n1000,Zürich\n".encode("latin-1"))
    with pytest.raises(SourceError, match=r"p.csv, line 2: not utf-8 text.*dialect.encoding"):
        list(open_source(str(tmp_path / "p.csv"), replace(SOSA, time_property=None)).items())
    (tmp_path / "p.csv-metadata.json").write_text('{"dialect": {"encoding": "latin-1"}}')
    (element,) = open_source(str(tmp_path / "p.csv"), replace(SOSA, time_property=None)).items()
    assert element.added[1][2] == '"Zürich"'


COLUMNS = '{"tableSchema": {"columns": [%s]}}'
BAD_MAPPINGS = {
    "{": "a mapping of columns is a JSON file",
    "[]": "the mapping: expected an object",
    '{"tableSchema": {"columns": []}}': "expected a list of columns",
    '{"tableSchema": {"columns": [{}]}}': "column 1: give it a name or a title",
    '{"tableSchema": {"columns": [{"name": "t", "regex": "x"}]}}': "column 1: regex is not ",
    '{"tableSchema": {"columns": [{"name": "t", "propertyUrl": 5}]}}': "column 1: propertyUrl: expected a string",
    '{"tableSchema": {"columns": [{"name": "t", "propertyUrl": "sossa:x"}]}}': "did you mean sosa:",
    '{"tableSchema": {"columns": [{"name": "u", "datatype": "date"}]}}': "the header has no column 'u': it has time, b",
    COLUMNS % '{"name": "time", "datatype": {"base": "date", "format": "QQQ"}}': "QQQ is not supported",
    '{"dialect": {"delimiter": "ab"}}': "dialect.delimiter: expected one character",
    '{"tables": []}': "tables: no entries have the url p.csv",
    COLUMNS % '{"name": "time"}, {"name": "b", "datatype": "integer"}': "line 2: column b: 'x' is not a valid integer",
    COLUMNS % '{"name": "time"}, {"name": "b", "valueUrl": "urn:{c}"}': "there is no column c: the columns are time, b",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD_MAPPINGS)
def test_a_bad_mapping_is_refused_by_key(tmp_path, text):
    (tmp_path / "p.csv-metadata.json").write_text(text)
    with pytest.raises(SourceError) as result:
        read(tmp_path, "p.csv", "time,b\n1,x\n", replace(SOSA, time_property=None))
    assert BAD_MAPPINGS[text] in str(result.value)


def test_rows_of_a_growing_file_come_in_their_order(tmp_path):
    (tmp_path / "p.csv").write_text("time,lot\n1000,a\n2000,b\n")
    source = open_source(f"{tmp_path / 'p.csv'}?follow=1", Reading())
    items = source.items()
    assert [next(items).time, next(items).time] == [1000, 2000]
    source.close()
    (tmp_path / "p.csv").write_text("time,lot\n2000,a\n1000,b\n3000,c\n")
    skipping = open_source(f"{tmp_path / 'p.csv'}?follow=1&bad=skip", Reading())
    items = skipping.items()
    assert [next(items).time, next(items).time] == [2000, 3000]
    skipping.close()
    assert "line 3: time goes back" in skipping.reasons[0]


def test_units_zones_and_patterns_that_are_none():
    for wrong in ({"unit": "h"}, {"zone": "Vienna"}):
        with pytest.raises(InstantError, match=r"Vienna|expected ns"):
            Instants(**wrong)
    with pytest.raises(InstantError, match="EEE is not supported"):
        strptime_pattern("EEE dd")
    assert strptime_pattern("dd.MM.yyyy 'um' HH:mm:ss.SSS") == "%d.%m.%Y um %H:%M:%S.%f"


def test_a_unit_that_is_none_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(SourceError, match="time_in is 'h': expected ns, us, ms, s"):
        read(tmp_path, "o.ttl", ":a sosa:resultTime 1 .", replace(SOSA, time_in="h"))


def test_static_data_take_a_base_contexts_and_a_charset_behind_their_name(tmp_path):
    (tmp_path / "c.jsonld").write_text('{"@context": {"v": "urn:v"}}')
    (tmp_path / "rooms.jsonld").write_text('{"@context": "urn:c", "@id": "room", "v": "é"}', encoding="latin-1")
    name = f"{tmp_path}/rooms.jsonld"
    options = f"base=http://b.example/&context=urn:c={tmp_path}/c.jsonld&charset=latin-1"
    assert list(read_triples(f"{name}?{options}")) == [("<http://b.example/room>", "<urn:v>", '"é"')]
    with pytest.raises(FormatError, match="bsae is not an option of an RDF file: use base, context, charset"):
        list(read_triples(f"{name}?bsae=x"))
    (tmp_path / "odd?name.nt").write_text("<urn:a> <urn:b> <urn:c> .")
    assert len(list(read_triples(tmp_path / "odd?name.nt"))) == 1
