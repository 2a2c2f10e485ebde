"""The cases of reading.toml and reading_further.toml: files as people have them, by each door that is open."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from streamgauge.formats.lines import Advance
from streamgauge.formats.streams import Reading
from streamgauge.sources import SourceError, open_source

FILES = [Path(__file__).with_name(name) for name in ("reading.toml", "reading_further.toml")]
FOUND = [case for file in FILES for case in tomllib.loads(file.read_text(encoding="utf-8"))["case"]]
CASES = {case["name"]: case for case in FOUND}
BESIDE = {
    "context.jsonld": '{"@context": {"at": "urn:at", "n": "urn:n", "x": "urn:x"}}',
    "plain.json": '{"at": 1}',
    "map.json": '{"iterator": "$.readings[*]", "tableSchema": {"columns": [{"name": "device", "titles": "$.device"},'
    ' {"name": "time", "titles": "t", "datatype": {"base": "date"}, "suppressOutput": true}, {"name": "c"}]}}',
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in BESIDE.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def read(case: dict[str, Any], notes: list[str]) -> list[tuple[int, int]]:
    """(time, triples) of each element of a case's file."""
    Path(case["file"]).write_text(case["text"], encoding=case.get("encoding", "utf-8"), newline="")
    options = f"?{case['options']}" if "options" in case else ""
    results = list(open_source(case["file"] + options, Reading(stream="urn:s", note=notes.append)).items())
    return [(item.time, len(item.added)) for item in results if not isinstance(item, Advance)]


@pytest.mark.parametrize("name", CASES)
def test_a_file_as_people_have_it(folder, name):
    case, notes = CASES[name], list[str]()
    if "says" in case:
        with pytest.raises(SourceError) as refused:
            read(case, notes)
        assert case["says"] in str(refused.value)
        return
    elements = read(case, notes)
    assert [time for time, _ in elements] == case["times"]
    if "sizes" in case:
        assert [size for _, size in elements] == case["sizes"]
    taken = " ".join(notes)
    assert case.get("note", "") in taken
    assert ("is read as" in taken) == ("is read as" in case.get("note", ""))


def test_there_are_many_cases():
    assert len(CASES) == len(FOUND) >= 130
