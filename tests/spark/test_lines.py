"""Files of lines: sorted, whole or not at all."""

from pathlib import Path
from typing import Any

import pytest

from streamgauge.formats.files import PlaceError
from streamgauge.spark.files import write_lines


def test_lines_are_sorted_by_bytes_whatever_the_partitions(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("streamgauge.spark.files._ROWS", 20)
    lines = [f"<urn:{n}> {sign}" for n in range(60) for sign in "aÄ🚂~"]
    messages = []
    write_lines(
        spark.createDataFrame([(line,) for line in lines], "line string").repartition(3),
        tmp_path / "out",
        messages.append,
    )
    assert messages == [240]
    assert (tmp_path / "out").read_text("utf-8").splitlines() == sorted(lines, key=str.encode)


def test_a_file_that_is_there_is_left_alone(spark, tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(FileExistsError, match="already exists"):
        write_lines(spark.createDataFrame([("a",)], "line string"), tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_what_fails_leaves_no_file(spark, tmp_path):
    broken = spark.range(10).selectExpr("if(id = 7, raise_error('broken'), string(id)) line")
    with pytest.raises(Exception, match="broken"):
        write_lines(broken, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


class LinesElsewhere:
    """A frame of seven lines whose tasks run where the driver's folders are not."""

    def __getattr__(self, _name: str) -> Any:
        return self

    def __call__(self, *_arguments: object) -> Any:
        return self

    def count(self) -> int:
        return 7

    def text(self, folder: str, **_options: str) -> None:
        Path(folder).mkdir()


def test_lines_written_on_another_machine_are_missed(tmp_path):
    with pytest.raises(PlaceError, match="0 of 7 lines that tasks wrote are here: name a folder that is the same"):
        write_lines(LinesElsewhere(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
