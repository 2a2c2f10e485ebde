"""`streamgauge pipeline` on HDFS and two workers, the driver or a worker killed in each stage: as in one process."""

import os
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamgauge.cli.main import app
from streamgauge.formats.run import read_run, read_verdict, stream_place, write_run
from streamgauge.formats.stream import elements
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.diagnosis.diagnose import explained
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse
from tests.prove.clusters import Cluster
from tests.prove.streamed import kill
from tests.spark.hadoop import Hdfs
from tests.spark.test_hadoop import QUERY

pytestmark = pytest.mark.prove

EXPERIMENT = """
name = "far"
[workload]
name = "weather"
stations = 20
duration = "30s"
[query]
file = "{query}"
[[engine]]
name = "spark"
semantics = "rspql"
"""
BEFORE = {"run": "generate", "judge": "run", "diagnose": "judge"}
"""The stage before each but the first."""
CALLS = ((("generate", "run"), Judgement.RIGHT), (("judge", "diagnose"), Judgement.WRONG))
"""The stages that each of two commands does, and the judgement: before the second a wrong operator is planted."""
DONE = re.compile(r"^(\w+): ", re.MULTILINE)
QUICK = "--conf spark.executor.memory=700m --conf spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1"
SECONDS = 1800


@dataclass
class Pipelined:
    """One experiment whose streams are on HDFS: its folders, and how it is asked for."""

    root: Path
    place: str
    cluster: Cluster
    executors: int = 0
    """Executors that the cluster had launched before the last start."""

    def start(self) -> "subprocess.Popen[bytes]":
        """The command in a process group of its own, Python and JVM."""
        file = self.root / "far.toml"
        file.write_text(EXPERIMENT.format(query=QUERY))
        words = ["pipeline", file, "--at", self.place, "--out", self.root / "out", "--master", self.cluster.url]
        command = [sys.executable, "-m", "streamgauge.cli.main", *map(str, words)]
        environment = os.environ | {
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
            "PYSPARK_SUBMIT_ARGS": f"{QUICK} pyspark-shell",
            "SPARK_LOCAL_IP": self.cluster.host,
            "STREAMGAUGE_WORKERS_LIMIT_S": str(SECONDS),
        }
        said = (self.root / "words.txt").open("wb")
        self.executors = self._launched()
        return subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True, env=environment)

    def words(self) -> str:
        file = self.root / "words.txt"
        return file.read_text(errors="replace") if file.exists() else ""

    def stages(self) -> set[str]:
        """The stages that the last command has done."""
        return {*DONE.findall(self.words())}

    def _launched(self) -> int:
        return self.cluster.log().count("Launching executor")

    def wait_for(self, stage: str, process: "subprocess.Popen[bytes]") -> None:
        """Wait until a stage has begun: the one before it is done, or for the first, executors are there."""
        before = BEFORE.get(stage)
        if before is None:
            self.wait_until(lambda: self._launched() > self.executors, process)
        else:
            self.wait_until(lambda: before in self.stages(), process)

    def wait_until(self, holds, process: "subprocess.Popen[bytes]") -> None:
        end = time.monotonic() + SECONDS
        while not holds():
            assert process.poll() is None, self.words()[-3000:]
            assert time.monotonic() < end, self.words()[-3000:]
            time.sleep(0.02)

    @property
    def folder(self) -> Path:
        (folder,) = (self.root / "out").glob("spark-*")
        return folder

    def plant(self) -> None:
        """Have the recorded answers be those of a wrong operator: of each report the least row is not there."""
        run = read_run(self.folder, parse)
        answers = tuple(replace(one, added=tuple(sorted(one.added)[1:])) for one in run.answers)
        write_run(self.folder, replace(run, answers=answers), str(stream_place(self.folder)))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        cluster.work()
        cluster.work()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory):
    hdfs = Hdfs(tmp_path_factory.mktemp("hdfs"))
    yield hdfs
    hdfs.stop()


@pytest.fixture(scope="module")
def stream(tmp_path_factory) -> Path:
    """The stream as this process makes it."""
    folder = tmp_path_factory.mktemp("here") / "stream"
    words = ["generate", "weather", "--stations", "20", "--duration", "30s", "--seed", "0", "--out", str(folder)]
    assert CliRunner().invoke(app, words).exit_code == 0
    return folder


def as_here(folder: Path, stream: Path) -> Judgement:
    """The judgement in a run folder, whose verdict is that of this process, up to the choice of differing rows."""
    run, there = read_run(folder, parse), read_verdict(folder)
    here = judge_run(run, stream, Means(pytest.fail, "definition"))
    assert (there.judgement, there.t0, plain(there)) == (here.judgement, here.t0, plain(here))
    if here.judgement is Judgement.WRONG:
        assert there.diagnosis == explained(run, [*elements(stream)]).diagnosis
    return here.judgement


def plain(verdict: Verdict) -> list[object]:
    """The windows without delays, and with the numbers of differing rows."""
    counted = (replace(one, missing=len(one.missing), surplus=len(one.surplus)) for one in verdict.windows)
    return [replace(one, delay=None) for one in counted]


def done(job: Pipelined, process: "subprocess.Popen[bytes]", judgement: Judgement, stream: Path) -> None:
    """The command to its end, with what this process finds."""
    try:
        assert process.wait(SECONDS) == (0 if judgement is Judgement.RIGHT else 1), job.words()[-3000:]
    finally:
        kill(process)
    assert as_here(job.folder, stream) is judgement


def going(job: Pipelined, process: "subprocess.Popen[bytes]", hurt) -> "subprocess.Popen[bytes]":
    """The command, started again if it was killed or is done; the end of a worker must not end it."""
    if process.poll() is None:
        return process
    assert hurt is kill or process.returncode in (0, 1), job.words()[-3000:]
    return job.start()


def disturbed(job: Pipelined, hurt, stream: Path) -> None:
    """All stages, each hurt a drawn time after its beginning."""
    draws, hits = random.Random(1), []
    for stages, judgement in CALLS:
        process = job.start()
        for stage in stages:
            try:
                process = going(job, process, hurt)
                job.wait_for(stage, process)
                time.sleep(draws.uniform(0, 2))  # stages take longer on any machine
                hits.append(stage not in job.stages())
                print(f"{stage}: hurt {'within' if hits[-1] else 'after'} it", file=sys.stderr)
                hurt(process)
            except BaseException:
                kill(process)
                raise
        done(job, going(job, process, hurt), judgement, stream)
        if judgement is Judgement.RIGHT:
            job.plant()
    assert sum(hits) >= len(hits) - 1  # a stage may have been quicker than the draw


def test_a_worker_is_killed_in_each_stage(cluster, hdfs, stream, tmp_path):
    def hurt(_process: object) -> None:
        kill(cluster.running[-1])
        cluster.work()

    disturbed(Pipelined(tmp_path, f"{hdfs.url}/worker", cluster), hurt, stream)


def test_the_driver_is_killed_in_each_stage_and_started_again(cluster, hdfs, stream, tmp_path):
    disturbed(Pipelined(tmp_path, f"{hdfs.url}/driver", cluster), kill, stream)
