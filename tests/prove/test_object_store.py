"""The whole pipeline on S3: moto's server on loopback, `hadoop-aws` by Maven, programs as a user starts them."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from streamgauge.formats.run import read_verdict, stream_place
from streamgauge.model.verdict import Judgement
from tests.harness.importing import files
from tests.spark.hadoop import S3
from tests.spark.test_hadoop import EXPERIMENT, QUERY

pytestmark = pytest.mark.prove


@pytest.fixture
def s3(tmp_path):
    server = S3(tmp_path)
    yield server
    server.stop()


def streamgauge(s3: S3, *words: object) -> subprocess.CompletedProcess[str]:
    settings = " ".join(f"--conf {name}={value}" for name, value in s3.settings.items())
    environment = os.environ | {"PYSPARK_SUBMIT_ARGS": f"{settings} pyspark-shell"}
    command = [sys.executable, "-m", "streamgauge.cli.main", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=900)


def request(s3: S3, method: str, key: str, text: str | None = None) -> str:
    """The body of an answer of the object store to a plain request."""
    url = f"{s3.settings['spark.hadoop.fs.s3a.endpoint']}/bucket{key}"
    content, kind = None if text is None else text.encode(), {"Content-Type": "text/plain"}  # or it is read as a form
    with urllib.request.urlopen(urllib.request.Request(url, content, kind, method=method)) as answer:
        return answer.read().decode()


def test_a_pipeline_runs_on_s3_and_goes_on(s3, tmp_path):
    file = tmp_path / "far.toml"
    file.write_text(EXPERIMENT.format(query=QUERY))
    words = ("pipeline", file, "--at", f"{s3.url}/far", "--out", tmp_path / "out", "--master", "local[2]")
    done = streamgauge(s3, *words)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "out").glob("spark-*")
    verdict = read_verdict(folder)
    assert verdict.judgement is Judgement.RIGHT
    assert sum(window.expected for window in verdict.windows) > 4
    assert json.loads((folder / "run.json").read_text())["stream"].startswith(f"{s3.url}/far/")
    again = streamgauge(s3, *words)
    assert (again.returncode, again.stderr.count(" exists")) == (0, 3), again.stderr
    assert not Path("s3a:").exists()


LINE = '{"t":%d,"stream":"http://ex.org/s","add":"<urn:s%d> <urn:p> <urn:o> ."}\n'
RECORDED = """
name = "recorded"
[workload]
file = "{file}"
[query]
file = "{query}"
[[engine]]
name = "spark"
semantics = "rspql"
"""
OWN_QUERY = """REGISTER <http://ex.org/q> AS SELECT ?s FROM NAMED WINDOW <http://ex.org/w> ON <http://ex.org/s>
[RANGE PT2S STEP PT2S] WHERE { WINDOW <http://ex.org/w> { ?s <urn:p> ?o } }"""


@pytest.mark.parametrize("far", [False, True], ids=["a file here", "an object there"])
def test_a_recorded_stream_runs_on_s3(s3, tmp_path, far):
    text = "".join(LINE % (500 * number, number) for number in range(12)) + '{"advance":9000}\n'
    source = str(tmp_path / "own.jsonl")
    if far:
        request(s3, "PUT", "/in/own.jsonl", text)
        source = f"{s3.url}/in/own.jsonl"
    else:
        Path(source).write_text(text)
    file, query = tmp_path / "recorded.toml", tmp_path / "q.rq"
    query.write_text(OWN_QUERY)
    file.write_text(RECORDED.format(file=source, query=query))
    words = ("pipeline", file, "--at", f"{s3.url}/far", "--out", tmp_path / "out", "--master", "local[2]")
    done = streamgauge(s3, *words)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "out").glob("spark-*")
    verdict = read_verdict(folder)
    assert verdict.judgement is Judgement.RIGHT
    assert [window.expected for window in verdict.windows] == [4, 4, 4]
    again = streamgauge(s3, *words)
    assert (again.returncode, again.stderr.count(" exists")) == (0, 3), again.stderr


def test_an_import_is_read_from_s3_and_kept_there_or_leaves_nothing(s3, tmp_path):
    for name, text in (("QR_x", files.QR), ("SG_x", files.SG), ("q.rq", files.QUERY)):
        (tmp_path / name).write_text(text)
    request(s3, "PUT", "/in/SG_x.yabench", files.SG)
    words = ("import", tmp_path / "QR_x", "--query", tmp_path / "q.rq", "--semantics", "yabench", "-D", "LEAST=50",
             "--stream", f"{s3.url}/in/SG_x.yabench", "--at", f"{s3.url}/kept", "--master", "local[2]")  # fmt: skip
    (tmp_path / "sealed").touch()
    late = streamgauge(s3, *words, "--out", tmp_path / "sealed" / "run")  # which cannot be a folder
    assert late.returncode != 0
    assert "<Key>kept/" not in request(s3, "GET", "?list-type=2")
    done = streamgauge(s3, *words, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert str(stream_place(tmp_path / "run")) == f"{s3.url}/kept/run"
    judged = streamgauge(s3, "check", tmp_path / "run", "--master", "local[2]")
    assert (judged.returncode, read_verdict(tmp_path / "run").judgement) == (0, Judgement.RIGHT), judged.stderr
