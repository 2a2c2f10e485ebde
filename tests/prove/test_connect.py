"""Spark Connect, by PySpark's own server: what needs no classic Spark works over it, the rest is refused by name."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest

from streamgauge.formats.run import read_heads, read_verdict, stream_place, write_header
from streamgauge.query import parse
from streamgauge.spark.requirements import connect_lack
from tests.sources.conftest import answers, free_port
from tests.spark.test_hadoop import QUERY, SIZE

pytestmark = [pytest.mark.prove, pytest.mark.timeout(3600)]

HOME = Path(pyspark.__file__).parent
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
IN_TASKS = """
import sys
from pathlib import Path
from streamgauge.formats.run import read_heads
from streamgauge.oracle.judging.oracle import JudgingRules
from streamgauge.oracle.judging.tables import judge_tables
from streamgauge.query import parse
from streamgauge.spark.session import session

run, stream, address = sys.argv[1:]
verdict = judge_tables(session(address), read_heads(run, parse), Path(stream), JudgingRules("definition"))
print(verdict.judgement, verdict.evaluator)
"""
"""The definition in tasks, which `check` does not ask of so small a stream."""


@pytest.fixture
def connected(tmp_path):
    """The address of a server."""
    if lack := connect_lack():
        pytest.skip(lack)
    port = free_port()
    words = ["--class", SERVER, "--master", "local[2]", "--conf", f"spark.connect.grpc.binding.port={port}"]
    environment = os.environ | {"SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable}
    with (tmp_path / "server.txt").open("wb") as log:
        command = [HOME / "bin" / "spark-submit", *words, "spark-internal"]
        server = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, env=environment)
    end = time.monotonic() + 300
    while not answers(port):
        assert server.poll() is None, (tmp_path / "server.txt").read_text()
        assert time.monotonic() < end, "the server does not answer"
        time.sleep(0.2)
    yield f"sc://127.0.0.1:{port}"
    server.terminate()
    server.wait(60)


def streamgauge(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streamgauge.cli.main", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)


def test_what_needs_no_classic_spark_works_over_connect(connected, tmp_path):
    stream, run = tmp_path / "stream", tmp_path / "run"
    assert streamgauge("generate", "weather", *SIZE, "--out", stream).returncode == 0
    words = ("--from", stream, "--to", run, "--checkpoint", tmp_path / "c", "--drain")
    assert streamgauge("stream", QUERY, *words, "--master", "local[2]").returncode == 0
    heads = read_heads(run, parse)
    assert heads is not None
    write_header(run, replace(heads.header, evaluator=None), str(stream_place(run)), finished=True)
    done = streamgauge("check", run, "--master", connected, "--evaluator", "spark", "--gracious")
    assert done.returncode == 0, done.stderr
    assert read_verdict(run).evaluator == "spark"
    tasks = [sys.executable, "-c", IN_TASKS, run, stream, connected]
    judged = subprocess.run(list(map(str, tasks)), capture_output=True, text=True, check=False, timeout=900)
    assert judged.stdout.split() == [read_verdict(run).judgement, "definition"], judged.stderr
    asked = ("expect", QUERY, "--stream", stream, "--json", "--evaluator")
    expected, here = streamgauge(*asked, "spark", "--master", connected), streamgauge(*asked, "definition")
    assert (expected.returncode, json.loads(expected.stdout)) == (0, json.loads(here.stdout)), expected.stderr
    assert json.loads(here.stdout)
    refused = streamgauge("generate", "weather", *SIZE, "--out", tmp_path / "other", "--master", connected)
    assert refused.returncode != 0
    assert f"needs classic Spark, and {connected} is Spark Connect" in refused.stderr
    assert not (tmp_path / "other").exists()
