"""The whole pipeline on S3: moto's server on loopback, `hadoop-aws` by Maven, programs as a user starts them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamgauge.formats.run import read_verdict
from streamgauge.model.verdict import Judgement
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
