"""Manifests: what they say of each table's parts, and what a reader makes of folders that have none, or a wrong one."""

import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from streamgauge.formats import manifest, stream
from streamgauge.formats.manifest import NAME, Manifest, Range, TableError, TablePart
from streamgauge.model.element import StreamElement

S = "http://example.org/s"


def element(sequence: int, time: int, stream_name: str = S) -> StreamElement:
    triples = tuple((f"<http://example.org/{place}>", "<http://example.org/p>", '"1"') for place in range(2))
    return StreamElement(stream_name, time, sequence, triples)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two part files, the later elements in the first by name."""
    stream.write([element(5, 500), element(6, 700, "http://example.org/t")], tmp_path / "part-00000.parquet")
    stream.write([element(0, 100), element(1, 100)], tmp_path / "part-00001.parquet")
    return tmp_path


def test_parts_are_ordered_by_sequence_with_rows_ranges_and_digests(folder: Path) -> None:
    written = manifest.commit(folder)
    assert [(part.file, part.rows, part.sequence, part.time) for part in written.parts] == [
        ("part-00001.parquet", 4, Range(0, 1), Range(100, 100)),
        ("part-00000.parquet", 4, Range(5, 6), Range(500, 700)),
    ]
    assert written.streams == (S, "http://example.org/t")
    assert all(part.digest is not None and len(part.digest) == 64 for part in written.parts)
    assert manifest.manifest(folder) == written
    assert (written.rows, written.time, written.sequence) == (8, Range(100, 700), Range(0, 6))


def part(name: str, numbers: list[int]) -> TablePart:
    return TablePart(name, len(numbers), Range(min(numbers), max(numbers)) if numbers else None)


def test_the_first_rows_are_in_the_first_parts() -> None:
    draw = random.Random(1)
    some = 0
    for _ in range(100):
        drawn = [sorted(draw.choices(range(begin, begin + 8), k=draw.randrange(5))) for begin in range(0, 40, 5)]
        parts = draw.sample([part(str(at), numbers) for at, numbers in enumerate(drawn)], len(drawn))
        rows = draw.randrange(1, 12)
        chosen = {one.file for one in Manifest(tuple(parts)).first_parts(rows)}
        needed = sorted((number, str(at)) for at, numbers in enumerate(drawn) for number in numbers)[:rows]
        assert {file for _, file in needed} <= chosen
        some += len(chosen) < sum(map(bool, drawn))
    assert some > 50
    example = Manifest((part("c", [20, 29]), part("a", [0, 9]), part("b", [5, 14])))
    assert [one.file for one in example.first_parts(2)] == ["a", "b"]


def test_a_folder_without_a_manifest_is_read_by_making_one(folder: Path) -> None:
    made = manifest.manifest(folder)
    assert made.parts == manifest.commit(folder).parts
    assert [element.sequence for element in stream.elements(folder)] == [0, 1, 5, 6]


def test_a_file_without_statistics_has_the_ranges_of_its_values(folder: Path) -> None:
    file = folder / "part-00001.parquet"
    table = pq.read_table(file)
    known = manifest.made(file)
    pq.write_table(table, file, write_statistics=False)
    bare = manifest.made(file)
    assert (bare.sequence, bare.time, bare.digest) == (known.sequence, known.time, None)


def test_parts_that_are_added_later_are_read_too(folder: Path) -> None:
    manifest.commit(folder)
    stream.write([element(9, 900)], folder / "more.parquet")
    assert [part.file for part in manifest.manifest(folder).parts][-1] == "more.parquet"
    assert manifest.manifest(folder).streams is None
    assert stream.stream_names(folder) == {S, "http://example.org/t"}


def test_a_missing_part_is_refused(folder: Path) -> None:
    manifest.commit(folder)
    (folder / "part-00000.parquet").unlink()
    with pytest.raises(TableError, match=r"part-00000\.parquet: missing"):
        manifest.files(folder)


def test_a_part_of_another_table_is_refused(folder: Path) -> None:
    manifest.commit(folder)
    stream.write([element(0, 100), element(1, 101)], folder / "part-00001.parquet")
    with pytest.raises(TableError, match=r"part-00001\.parquet: damaged"):
        list(stream.elements(folder))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: data["parts"].pop(), "damaged"),
        (lambda data: data.update(version=2), "expected version 1"),
        (lambda data: data.update(format="x"), "expected version 1"),
    ],
)
def test_a_changed_manifest_is_refused(folder: Path, change, sentence: str) -> None:  # type: ignore[no-untyped-def]
    manifest.commit(folder)
    data = json.loads((folder / NAME).read_text())
    change(data)
    (folder / NAME).write_text(json.dumps(data))
    with pytest.raises(TableError, match=sentence):
        manifest.files(folder)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": "streamgauge table", "version": 1}'])
def test_a_file_that_is_no_manifest_is_refused(folder: Path, text: str) -> None:
    (folder / NAME).write_text(text)
    with pytest.raises(TableError, match="manifest"):
        manifest.files(folder)


def test_a_table_that_goes_on_has_no_manifest(folder: Path) -> None:
    from streamgauge.formats import tables

    manifest.commit(folder)
    tables.write_part(folder, 7, pq.read_table(folder / "part-00001.parquet"))
    assert not (folder / NAME).exists()
