"""Mappings of tables and JSON (CSV on the Web): each key is honoured or refused, each cell fits its datatype."""

import json
from pathlib import Path
from typing import Any

import pytest

from streamgauge.formats.streams import Reading
from streamgauge.sources import SourceError, open_source

XSD = "http://www.w3.org/2001/XMLSchema#"
TIME = {"name": "time", "datatype": "dateTime", "suppressOutput": True}


def terms(folder: Path, mapping: dict[str, Any], text: str, name: str = "p.csv") -> list[str]:
    """The objects of the elements of a file that is read by a mapping."""
    (folder / name).write_text(text)
    (folder / "m.json").write_text(json.dumps(mapping))
    option = "csv_mapping" if name.endswith(".csv") else "json_mapping"
    source = open_source(f"{folder / name}?{option}={folder / 'm.json'}", Reading(stream="urn:s", note=str))
    return [triple[2] for element in source.items() for triple in element.added]


def columns(*columns_: dict[str, Any], **others: Any) -> dict[str, Any]:
    """A mapping with a time and the columns."""
    return {**others, "tableSchema": {"columns": [TIME, *columns_]}}


CELL = "time,v\n2026-03-01T08:00:00Z,%s\n"
REFUSED = [
    ({"datatype": "flaot"}, "1", "column 2: datatype 'flaot' is unknown: there are .*; did you mean float"),
    ({"datatype": {"base": "integer", "minimum": 5}}, "1", "column 2: datatype: minimum is not supported"),
    ({"datatype": {"base": "integer", "@id": "urn:x"}}, "1", "column 2: datatype: @id is not supported"),
    ({"required": True}, '""', "line 2: column v is required, and empty here"),
    ({"required": "yes"}, "1", "column 2: required is 'yes': expected true or false"),
    ({"separator": " ", "ordered": True}, "a b", "column 2: ordered is not supported"),
    ({"suppressOutput": "false"}, "1", "column 2: suppressOutput is 'false': expected true or false"),
    ({"lang": "Deutsch, bitte"}, "1", "column 2: lang: 'Deutsch, bitte' is not a language tag"),
    ({"valueUrl": "urn:{v"}, "1", r"line 2: urn:\{v is not a template"),
    ({"datatype": "byte"}, "300", "line 2: column v: '300' is not a valid byte"),
    ({"datatype": "unsignedShort"}, "-1", "column v: '-1' is not a valid unsignedShort"),
    ({"datatype": "positiveInteger"}, "0", "column v: '0' is not a valid positiveInteger"),
    ({"datatype": "integer"}, "٣", "column v: '٣' is not a valid integer"),
    ({"datatype": "gYear"}, "26", "column v: '26' is not a valid gYear"),
    ({"datatype": "time"}, "25:00:00", "column v: '25:00:00' is not a valid time"),
    ({"datatype": "duration"}, "5 s", "column v: '5 s' is not a valid duration"),
    ({"datatype": "hexBinary"}, "abc", "column v: 'abc' is not a valid hexBinary"),
]


@pytest.mark.parametrize(("column", "cell", "sentence"), REFUSED)
def test_a_column_that_is_not_understood_or_does_not_fit(tmp_path, column, cell, sentence):
    with pytest.raises(SourceError, match=sentence):
        terms(tmp_path, columns({"name": "v", **column}), CELL % cell)


READ = [
    ({"datatype": "float"}, "1.5", f'"1.5"^^<{XSD}float>'),
    ({"datatype": "byte"}, "-128", f'"-128"^^<{XSD}byte>'),
    ({"datatype": "integer", "lang": "de"}, "5", f'"5"^^<{XSD}integer>'),
    ({"lang": "de"}, "5", '"5"@de'),
    ({"datatype": "json"}, "[]", '"[]"^^<http://www.w3.org/ns/csvw#JSON>'),
    ({"datatype": "urn:own"}, "x", '"x"^^<urn:own>'),
    ({"datatype": "gYear"}, "2026", f'"2026"^^<{XSD}gYear>'),
    ({"datatype": "time"}, "24:00:00Z", f'"24:00:00Z"^^<{XSD}time>'),
    ({"datatype": "dayTimeDuration"}, "PT5.5S", f'"PT5.5S"^^<{XSD}dayTimeDuration>'),
    ({"ordered": False, "required": True}, "x", '"x"'),
    ({"datatype": {"base": "date", "format": "d MMM yyyy"}}, "1 Mar 2026", f'"2026-03-01"^^<{XSD}date>'),
    (
        {"datatype": {"base": "dateTime", "format": "M/d/yyyy h:mm a"}},
        "3/1/2026 8:05 PM",
        f'"2026-03-01T20:05:00"^^<{XSD}dateTime>',
    ),
]


@pytest.mark.parametrize(("column", "cell", "term"), READ)
def test_a_cell_is_read_by_its_column(tmp_path, column, cell, term):
    mapping = columns({"name": "v", **column})
    (tmp_path / "p.csv").write_text(CELL % cell)
    (tmp_path / "m.json").write_text(json.dumps(mapping))
    reading = Reading(stream="urn:s", note=str, time_property="time")
    (element,) = open_source(f"{tmp_path / 'p.csv'}?csv_mapping={tmp_path / 'm.json'}", reading).items()
    assert [triple[2] for triple in element.added] == [term]


@pytest.mark.parametrize(
    ("mapping", "sentence"),
    [
        ({"@context": ["http://www.w3.org/ns/csvw", {"@language": "de"}]}, "@context: http://www.w3.org/ns/csvw alone"),
        ({"@context": "http://schema.org"}, "@context: http://www.w3.org/ns/csvw alone is supported"),
        ({"dialect": {"header": "false"}}, "dialect: header is 'false': expected true or false"),
        (columns({"name": "v", "titles": "a"}, {"name": "v", "titles": "b"}), "two columns have the name 'v'"),
        (columns({"name": "w", "titles": "v"}), "p.csv: two columns are named 'v': rename one of them"),
    ],
)
def test_a_mapping_that_is_not_understood(tmp_path, mapping, sentence):
    with pytest.raises(SourceError, match=sentence):
        terms(tmp_path, mapping, "time,v,v\n2026-03-01T08:00:00Z,1,2\n")


def test_a_quote_after_a_backslash(tmp_path):
    text = 'time,v\n2026-03-01T08:00:00Z,"a \\"b\\", c"\n'
    assert terms(tmp_path, columns({"name": "v"}, dialect={"doubleQuote": False}), text) == ['"a \\"b\\", c"']
    with pytest.raises(SourceError, match="line 2: not CSV"):
        terms(tmp_path, columns({"name": "v"}), text)


def test_members_of_json_have_the_language_and_the_duties_of_their_column(tmp_path):
    text = '{"time": "2026-03-01T08:00:00Z", "v": ["Bahnhof", 5, true]}'
    wanted = ['"Bahnhof"@de', f'"5"^^<{XSD}integer>', f'"true"^^<{XSD}boolean>']
    assert terms(tmp_path, columns({"name": "v", "lang": "de"}), text, "p.json") == wanted
    with pytest.raises(SourceError, match=r"p\.json, line 1: column w is required, and empty here"):
        terms(tmp_path, columns({"name": "w", "required": True}, {"name": "v"}), text, "p.json")


def test_a_key_that_occurs_twice(tmp_path):
    (tmp_path / "p.csv").write_text(CELL % 1)
    (tmp_path / "m.json").write_text('{"dialect": {"delimiter": ";", "delimiter": ","}}')
    with pytest.raises(SourceError, match=r"m\.json: the member 'delimiter' occurs twice in one object"):
        list(open_source(f"{tmp_path / 'p.csv'}?csv_mapping={tmp_path / 'm.json'}", Reading()).items())
