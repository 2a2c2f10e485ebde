"""Commands on HDFS: a stream made there, answered and judged there, and what is refused by name."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamgauge.cli.main import app
from streamgauge.formats import manifest as local_manifest
from streamgauge.formats import stream
from streamgauge.formats.manifest import NAME, TableError
from streamgauge.formats.places import RemotePlace
from streamgauge.formats.run import read_verdict, stream_place
from streamgauge.model.verdict import Judgement
from tests.harness.importing import files
from tests.notation import stream as elements

QUERY = Path(__file__).parent / "hadoop.rq"
SIZE = ("--stations", "4", "--duration", "4s", "--seed", "3")


@pytest.fixture(scope="module")
def hdfs(spark, tmp_path_factory) -> Iterator[RemotePlace]:
    from tests.spark.hadoop import Hdfs

    cluster = Hdfs(tmp_path_factory.mktemp("hdfs"))
    yield RemotePlace(cluster.url)
    cluster.stop()


@pytest.fixture(scope="module")
def table(hdfs) -> RemotePlace:
    """A stream that `generate` made on HDFS, in a folder whose name is also a pattern."""
    folder = hdfs / "runs [1]" / "stream"
    done = run("generate", "weather", *SIZE, "--out", folder)
    assert done.exit_code == 0, done.output
    return folder


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def test_a_file_system_may_store_no_digests(spark, tmp_path):
    from streamgauge.spark.hadoop_tables import commit, manifest

    stream.write(elements("0: a p b. | 5: b p c."), tmp_path / "part 1+%20.parquet")
    place = RemotePlace(f"file://{tmp_path}")
    (part,) = commit(spark, place).parts
    assert (part.file, part.rows, part.digest) == ("part 1+%20.parquet", 2, None)
    assert manifest(spark, place).parts == (part,)


def test_files_of_one_name_in_different_folders_are_told_apart(spark, tmp_path):
    from streamgauge.spark.hadoop_tables import measured

    places = []
    for number, text in enumerate(("0: a p b.", "5: a p b. c p d.")):
        folder = tmp_path / f"hour={number} ü%20"
        folder.mkdir()
        stream.write(elements(text), folder / "part.parquet")
        places.append(RemotePlace(f"file://{folder}/part.parquet"))
    assert [(part.file, part.rows) for part in map(measured(spark, places).get, places)] == [
        ("part.parquet", 1),
        ("part.parquet", 2),
    ]


def test_generate_writes_there_with_a_manifest_and_nothing_here(spark, table, tmp_path, monkeypatch):
    from streamgauge.spark.hadoop_tables import manifest

    monkeypatch.chdir(tmp_path)
    done = run("generate", "weather", *SIZE, "--out", tmp_path / "here")
    assert done.exit_code == 0, done.output
    far, here = manifest(spark, table), local_manifest.manifest(tmp_path / "here")
    assert (far.rows, far.time, far.sequence, far.streams) == (here.rows, here.time, here.sequence, here.streams)
    assert all(part.digest for part in far.parts)
    assert [file.name for file in tmp_path.iterdir()] == ["here"]


def test_what_was_made_there_is_what_is_made_here(spark, table, tmp_path):
    from streamgauge.spark.hadoop import HadoopFiles

    HadoopFiles(spark).get(table, tmp_path / "copy")
    assert run("generate", "weather", *SIZE, "--out", tmp_path / "here").exit_code == 0
    assert list(stream.elements(tmp_path / "copy")) == list(stream.elements(tmp_path / "here"))


def test_a_second_generate_is_refused(table):
    done = run("generate", "weather", *SIZE, "--out", table)
    assert done.exit_code != 0
    assert "already exists" in str(done.exception)


@pytest.mark.prove
@pytest.mark.parametrize("lateness", ["0s", "1s"])
def test_a_stream_there_is_answered_and_judged_there(table, tmp_path, lateness):
    run_folder = tmp_path / "run"
    words = ("--from", table, "--to", run_folder, "--checkpoint", tmp_path / "c", "--drain", "--lateness", lateness)
    done = run("stream", QUERY, *words)
    assert done.exit_code == 0, (done.output, done.exception)
    judged = run("check", run_folder, "--master", "local[2]")
    assert judged.exit_code == 0, (judged.output, judged.exception)
    verdict = read_verdict(run_folder)
    assert verdict.judgement is Judgement.RIGHT
    assert sum(window.expected for window in verdict.windows) > 4


def test_a_table_that_lost_a_part_is_refused(spark, hdfs, table, tmp_path):
    from streamgauge.spark.hadoop import HadoopFiles
    from streamgauge.spark.hadoop_tables import manifest, put_text

    files, folder = HadoopFiles(spark), hdfs / "lost"
    files.get(table, tmp_path / "copy")
    for file in sorted((tmp_path / "copy").glob("*.parquet"))[1:]:
        files.put(file, folder / file.name)
    put_text(files, (tmp_path / "copy" / NAME).read_text(), folder / NAME)
    with pytest.raises(TableError, match=r"\.parquet: (missing|not the file)"):
        manifest(spark, folder)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("generate", "weather", *SIZE, "--out", "s3a://bucket/x"), "hadoop-aws"),
        (("generate", "weather", *SIZE, "--out", "foo://host/x"), "no file system 'foo'"),
        (("generate", "weather", *SIZE, "--format", "nquads", "--out", "hdfs://h/x"), "--format nquads works on local"),
        (("generate", "weather", *SIZE, "--out", "hdfs://127.0.0.1:1/x"), "127.0.0.1:1"),
    ],
)
def test_what_cannot_be_written_is_refused_by_name(spark, words, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*words)
    assert done.exit_code != 0
    assert sentence in str(done.exception)
    assert "\n" not in str(done.exception)
    assert not list(tmp_path.iterdir())


EXPERIMENT = """
name = "far"
[workload]
name = "weather"
stations = 4
duration = "4s"
[query]
file = "{query}"
[[engine]]
name = "spark"
semantics = "rspql"
"""


@pytest.mark.prove
def test_a_pipeline_runs_there_and_goes_on(spark, hdfs, tmp_path):
    from streamgauge.spark.hadoop import HadoopFiles

    file = tmp_path / "far.toml"
    file.write_text(EXPERIMENT.format(query=QUERY))
    words = ("pipeline", file, "--at", hdfs / "far", "--out", tmp_path / "out", "--master", "local[2]")
    done = run(*words)
    assert done.exit_code == 0, (done.output, done.exception)
    (folder,) = (tmp_path / "out").glob("spark-*")
    verdict = read_verdict(folder)
    assert verdict.judgement is Judgement.RIGHT
    assert sum(window.expected for window in verdict.windows) > 4
    names = {file.place.name for file in HadoopFiles(spark).listed(hdfs / "far")}
    assert {folder.name, "report.html"} < names
    again = run(*words)
    assert again.exit_code == 0, (again.output, again.exception)
    assert again.output.count(" exists") == 3


@pytest.mark.prove
def test_the_stream_of_an_import_is_read_and_kept_there(spark, hdfs, tmp_path):
    from streamgauge.spark.hadoop import HadoopFiles

    for name, text in (("QR_x", files.QR), ("SG_x", files.SG), ("q.rq", files.QUERY)):
        (tmp_path / name).write_text(text)
    HadoopFiles(spark).put(tmp_path / "SG_x", hdfs / "in" / "SG_x.yabench")
    words = ("import", tmp_path / "QR_x", "--query", tmp_path / "q.rq", "--semantics", "yabench", "-D", "LEAST=50")
    assert run(*words, "--out", tmp_path / "here").exit_code == 0
    there = (*words, "--stream", hdfs / "in" / "SG_x.yabench", "--at", hdfs / "kept", "--out", tmp_path / "run")
    done = run(*there, "--master", "local[2]")
    assert done.exit_code == 0, (done.output, done.exception)
    assert str(stream_place(tmp_path / "run")) == f"{hdfs}/kept/run"
    HadoopFiles(spark).get(hdfs / "kept" / "run", tmp_path / "copy")
    assert list(stream.elements(tmp_path / "copy")) == list(stream.elements(tmp_path / "here" / "stream"))
    alone = run(*there[:-1], tmp_path / "other")
    assert alone.exit_code != 0
    assert "hdfs" in str(alone.exception)


def test_an_empty_folder_is_no_table(spark, hdfs):
    from streamgauge.spark.hadoop_tables import manifest

    with pytest.raises(TableError, match="not found: a folder of Parquet files is expected"):
        manifest(spark, hdfs / "nowhere")
