"""Semantics as JSON: every profile comes back, and a wrong field is named with what is allowed."""

import json
from pathlib import Path

import pytest

from streamgauge.formats import stream, tables, windows
from streamgauge.formats.fields import FieldError, decode, encode
from streamgauge.model.run import RunHeader
from streamgauge.model.semantics import Semantics
from streamgauge.semantics.profiles import PROFILES

DOC = Path(__file__).resolve().parents[2] / "docs" / "run-folder.md"


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_comes_back(name):
    profile = PROFILES[name]
    back = decode(Semantics, json.loads(json.dumps(encode(profile))), "semantics")
    assert back == profile
    assert back.sources == profile.sources


def test_fields_left_out_take_their_defaults():
    assert decode(Semantics, {"name": "mine"}, "semantics") == Semantics("mine")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, r"semantics\.name is missing"),
        ({"name": 3}, r"semantics\.name is 3: expected a string"),
        ({"name": "x", "borders": "[o,c)"}, r"semantics\.borders is '\[o,c\)': expected one of '\[o, c\)', '\(o, c\]'"),
        ({"name": "x", "report": "periodic"}, r"semantics\.report is 'periodic': expected a list"),
        ({"name": "x", "report": ["often"]}, r"semantics\.report\[0\] is 'often': expected one of 'window close'"),
        ({"name": "x", "t0": 1.5}, r"semantics\.t0 is 1\.5: expected a whole number"),
        ({"name": "x", "t0": True}, r"semantics\.t0 is True: expected a whole number"),
        ({"name": "x", "notify_empty": 1}, r"semantics\.notify_empty is 1: expected true or false"),
        ({"name": "x", "sources": []}, r"semantics\.sources is \[\]: expected an object"),
        ({"name": "x", "time_unit": 0}, r"semantics: semantics x: time_unit and period are at least 1 ms"),
        ({"name": "x", "ticks": "tuple"}, r"semantics\.ticks is unknown: the fields are name, report, tick"),
        ([], r"semantics is \[\]: expected an object"),
    ],
)
def test_a_wrong_field_is_named(data, message):
    with pytest.raises(FieldError, match=message):
        decode(Semantics, data, "semantics")


def test_the_documentation_names_every_field_and_column():
    text = DOC.read_text(encoding="utf-8")
    names = set(RunHeader.__dataclass_fields__) - {"query"} | set(Semantics.__dataclass_fields__)
    for schema in (tables.ANSWERS, tables.ROWS, tables.FED, tables.SAMPLES, stream.SCHEMA, windows.WINDOWS):
        names |= set(schema.names)
    assert [name for name in sorted(names) if f"{name}`" not in text] == []
