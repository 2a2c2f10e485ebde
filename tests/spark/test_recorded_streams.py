"""Recorded streams that tasks of Spark read in parts are the tables that one process writes."""

import json
import random
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from streamgauge.formats.run import RunError
from streamgauge.formats.stream import elements, to_table, write
from streamgauge.formats.streams import Reading
from streamgauge.formats.tables import write_part
from streamgauge.harness import importing
from streamgauge.model.mistake import MistakeError
from streamgauge.sources.named import Course, NamedSource, named_source, recorded
from streamgauge.suites.experiments.plan import write_advance
from tests.harness.importing import files

STREAM = "http://ex.org/streams/test"
CHECKED = Reading(checked=True)
TASKS = {"spark.sql.files.maxPartitionBytes": "150b", "spark.sql.files.openCostInBytes": "0"}
"""Parts of three lines or so."""


@contextmanager
def in_small_parts(spark):
    before = {name: spark.conf.get(name) for name in TASKS}
    for name, value in TASKS.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def by_tasks(spark, source: NamedSource, folder: Path, reading: Reading = CHECKED) -> Course:
    from streamgauge.spark.recorded_streams import write_recorded

    with in_small_parts(spark):
        return write_recorded(spark, source, [STREAM], reading, folder)


def yabench(draw: random.Random, begin: int) -> str:
    """Lines with few times, so that elements cross parts, and with empty lines."""
    time, lines = begin, []
    for number in range(draw.randrange(1, 40)):
        time += draw.choice([0, 0, 0, 0, 1, 500])
        lines.append(f'<urn:s{number}> <urn:p> {draw.choice(["<urn:o>", "1.5^^urn:float", "x y"])} "{time}" .')
        lines += draw.choice([[], [], [], [""]])
    return "\n".join(lines) + draw.choice(["", "\n", "\r\n"])


def jsonl(draw: random.Random, begin: int, *, numbered: bool = False) -> str:
    """Elements of one line, some of which end, and advances."""
    time, lines = begin, []
    for number in range(draw.randrange(1, 30)):
        time += draw.choice([0, 1, 500])
        triples = "".join(f"<urn:s{number}> <urn:p> <urn:{one}> .\n" for one in range(draw.randrange(1, 4)))
        until = draw.choice([{}, {}, {"until": time + 5}])
        own = {"n": 7 + 3 * number} if numbered else {}
        element = {"t": time, **own, "stream": STREAM, **until, "add": triples}
        lines.append(json.dumps(draw.choice([element] * 6 + [{"advance": time}])))
    return "\n".join([*lines, ""])


def drawn(seed: int, root: Path) -> NamedSource:
    """A source of one of the formats: a file or a folder."""
    draw = random.Random(seed)
    kind = draw.choice(["yabench", "yabench", "jsonl", "numbered"])
    if kind != "yabench":
        file = root / "a b+c.jsonl"
        file.write_text(jsonl(draw, 0, numbered=kind == "numbered"))
        return named_source(draw.choice([str(file), f"{STREAM}={file}"]))
    for number in range(draw.choice([1, 3])):
        text = yabench(draw, 100_000 * number)
        (root / f"part {number}+%20.yabench").write_text(text, encoding=draw.choice(["utf-8", "utf-8-sig"]), newline="")
    return NamedSource(str(root))


def agree(spark, seed: int, root: Path) -> None:
    (root / "source").mkdir(parents=True)
    source, course = drawn(seed, root / "source"), Course()
    write(recorded([source], [STREAM], CHECKED, course), root / "here.parquet")
    there = by_tasks(spark, source, root / "there")
    assert list(elements(root / "there")) == list(elements(root / "here.parquet"))
    assert (there.first, there.last) == (course.first, course.last)


@pytest.mark.parametrize("seed", [3])
def test_tasks_write_the_table_of_one_process(spark, tmp_path, seed):
    agree(spark, seed, tmp_path)


@pytest.mark.prove
def test_tasks_write_many_tables_of_one_process(spark, tmp_path):
    for seed in range(60):
        agree(spark, seed, tmp_path / str(seed))


LINE = '{"t":%d,"stream":"http://ex.org/streams/test","add":"<urn:s> <urn:p> <urn:o> ."}\n'
NUMBERED = LINE.replace("{", '{"n":1,')


@pytest.mark.parametrize(
    ("name", "text", "reading", "sentence"),
    [
        ("a.csv", "time,v\n1,2\n", CHECKED, "csv files like this are not read in parts: leave out --master"),
        ("a.jsonl.gz", "", CHECKED, "files like this are not read in parts"),
        ("a.jsonl", LINE % 1, Reading(once=True), "option once is not for tasks"),
        ("a.jsonl", LINE % 9 * 4 + LINE % 8, CHECKED, "time goes back from 9 to 8 ms"),
        ("a.jsonl", LINE % 1 * 5 + '{"t":\n', CHECKED, r"a.jsonl, from byte \d+ on, line"),
        ("a.jsonl", NUMBERED % 1 * 5, CHECKED, "sequence 1 comes after 1"),
        ("a.jsonl", LINE % 1 + NUMBERED % 1, CHECKED, "only some elements have a number"),
        ("a.yabench", "no triple\n", CHECKED, "a.yabench, line 1: expected <s> <p> <o>"),
    ],
    ids=[
        "a format",
        "a packed file",
        "an option",
        "a time",
        "a line",
        "a number",
        "only some numbers",
        "YABench's line",
    ],
)
def test_what_tasks_cannot_read_is_refused_by_name(spark, tmp_path, name, text, reading, sentence):
    (tmp_path / name).write_text(text)
    with pytest.raises(MistakeError, match=sentence):
        by_tasks(spark, NamedSource(str(tmp_path / name)), tmp_path / "table", reading)
    assert not (tmp_path / "table").exists()


def test_import_by_tasks_gives_the_run_of_one_process(spark, tmp_path, command):
    for name, text in (("QR_x", files.QR), ("SG_x", files.SG), ("q.rq", files.QUERY)):
        (tmp_path / name).write_text(text)
    words = ["import", tmp_path / "QR_x", "--query", tmp_path / "q.rq", "--semantics", "yabench", "-D", "LEAST=50"]
    assert command(*words, "--out", tmp_path / "here")[0] == 0
    done = command(*words, "--out", tmp_path / "there", "--at", tmp_path / "tables", "--master", "local[2]")
    assert done[0] == 0, done
    assert list(elements(tmp_path / "tables" / "there")) == list(elements(tmp_path / "here" / "stream"))
    assert command("check", tmp_path / "there", "--evaluator", "definition")[0] == 0
    again = command(*words, "--out", tmp_path / "other" / "there", "--at", tmp_path / "tables", "--master", "local[2]")
    assert "already exists" in again.err
    assert (tmp_path / "tables" / "there").exists()
    with patch.object(importing, "write_run", side_effect=RunError("the disk is full")):
        late = command(*words, "--out", tmp_path / "late", "--at", tmp_path / "tables", "--master", "local[2]")
    assert "the disk is full" in late.err
    assert not (tmp_path / "tables" / "late").exists()


def test_spark_reads_the_parts_of_a_table_not_the_file_beside_them(spark, tmp_path):
    from streamgauge.spark.hadoop_tables import read_table

    write_part(tmp_path / "stream", 0, to_table([]))
    write_advance(tmp_path / "stream", 5)
    assert read_table(spark, tmp_path / "stream").count() == 0
