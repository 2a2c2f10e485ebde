"""The cases of reading.toml and those beside it: files as people have them, by each door that is open."""

import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from streamgauge.formats.lines import Advance
from streamgauge.formats.streams import Reading, one_by_one
from streamgauge.model.mistake import MistakeError
from streamgauge.sources import SourceError, open_source

FILES = [Path(__file__).with_name(name) for name in ("reading.toml", "reading_further.toml", "reading_strangers.toml")]
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


TRIPLE = '"<urn:a> <urn:b> <urn:c> ."'


@pytest.mark.parametrize(
    "line",
    [
        f'{{"t": 5, "add": {TRIPLE}}}',
        f'\ufeff{{"t": 5, "add": {TRIPLE}}}',
        f' {{ "add" :{TRIPLE} , "t":5}}',
        f'{{"until": null, "remove": null, "t": 5, "add": {TRIPLE}}}',
        f'{{"stream": null, "n": null, "t": 5, "add": {TRIPLE}}}',
        f'{{"n": 7, "until": 9, "add": {TRIPLE}, "t": 5, "stream": "urn:s"}}',
        f'{{"advance": 3}}\n{{"t": 5, "add": {TRIPLE}}}',
        f'{{"time": 5, "add": {TRIPLE}}}',
        f'{{"add": {TRIPLE}}}',
        f'{{"t": "5", "add": {TRIPLE}}}',
        '{"time": 5, "temperature": 3}',
        '{"time": 5, "t": 6, "temperature": 3}',
        '{"t": 6, "temperature": 3}',
    ],
)
def test_lines_of_json_are_the_same_by_each_door_or_refused(folder, monkeypatch, line):
    """A file may be the pipe's or plain JSON, standard input is the pipe's unless its form is named."""
    (folder / "in.jsonl").write_text(line + "\n", encoding="utf-8")

    def outcome(address: str) -> object:
        with (folder / "in.jsonl").open() as file:
            monkeypatch.setattr("sys.stdin", file)
            try:
                return list(one_by_one(open_source(address, Reading(stream="urn:s", note=str)).items()))
            except MistakeError as error:
                return str(error)

    by_file, piped = outcome("in.jsonl"), outcome("-")
    if isinstance(by_file, str) or isinstance(piped, str):
        assert isinstance(piped, str)
        assert "form=json reads plain JSON" in piped or "field t is" in piped
        assert outcome("-?form=json") == by_file or isinstance(by_file, str)
    else:
        assert piped == by_file


@pytest.mark.parametrize("line", [f'{{"t": 5, "add": {TRIPLE}}}', '{"time": 5, "temperature": 3}'])
def test_the_lines_of_a_folder_or_archive_are_those_of_a_file(folder, line):
    """Whether JSON lines are the pipe's or plain is decided by bytes, wherever the file lies."""
    (folder / "in.jsonl").write_text(line + "\n")
    for place in ("one", "beside"):
        (folder / place).mkdir()
        (folder / place / "in.jsonl").write_text(line + "\n")
    (folder / "beside" / "a.txt").write_text("about it")
    with zipfile.ZipFile(folder / "in.zip", "w") as archive:
        archive.write(folder / "in.jsonl", "b/in.jsonl")
    reading = Reading(stream="urn:s", note=str)
    by_file, *others = (
        [(one.time, len(one.added)) for one in one_by_one(open_source(name, reading).items())]
        for name in ("in.jsonl", "one", "beside", "in.zip")
    )
    assert others == [by_file] * 3


@pytest.mark.parametrize("text", ["{}", "5", '[{"time": 1, "v": NaN}]', '[{"time": true}]'])
def test_an_error_in_plain_json_names_its_file_once(folder, text):
    (folder / "in.json").write_text(text)
    with pytest.raises(SourceError, match=r"^in\.json, line 1: (?!.*in\.json)"):
        list(open_source("in.json", Reading(stream="urn:s", note=str)).items())


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
