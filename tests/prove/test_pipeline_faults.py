"""`streamgauge pipeline` on HDFS and a cluster of two workers: killed in each stage, a driver or a worker; the same."""

import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from streamgauge.formats.run import read_run, read_verdict, stream_place, write_run
from streamgauge.model.verdict import Judgement, Verdict
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
CALLS = ((("generate", "run"), False), (("judge", "diagnose"), True))
"""The stages that each of two commands does, and whether the answers that it finds are those of a wrong operator."""
DONE = re.compile(r"^(\w+): (?:.* in ([\d,.]+) s,)?", re.MULTILINE)
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

    def stages(self) -> dict[str, float]:
        """The stages that the last command has done, with their seconds (0 for what was there)."""
        return {stage: float((seconds or "0").replace(",", "")) for stage, seconds in DONE.findall(self.words())}

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

    def result(self) -> tuple[Verdict, list[Counter]]:
        """What is left of a run: its verdict without times of clocks, and its rows."""
        verdict = read_verdict(self.folder)
        windows = tuple(replace(window, delay=None) for window in verdict.windows)
        rows = [Counter(answer.added) for answer in read_run(self.folder, parse).answers]
        return replace(verdict, windows=windows, max_delay=None, last_answer=None), rows


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    cluster.start()
    cluster.work()
    cluster.work()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory):
    hdfs = Hdfs(tmp_path_factory.mktemp("hdfs"))
    yield hdfs
    hdfs.stop()


@pytest.fixture(scope="module")
def undisturbed(cluster, hdfs, tmp_path_factory) -> tuple[tuple[Verdict, list[Counter]], dict[str, float]]:
    """The result of all stages, nothing killed, and the seconds that each took."""
    job = Pipelined(tmp_path_factory.mktemp("whole"), f"{hdfs.url}/whole", cluster)
    done(job, job.start(), planted=False)
    assert read_verdict(job.folder).judgement is Judgement.RIGHT
    seconds = job.stages()
    job.plant()
    done(job, job.start(), planted=True)
    verdict = read_verdict(job.folder)
    assert (verdict.judgement, verdict.diagnosis is not None) == (Judgement.WRONG, True)
    again = job.stages()
    return job.result(), seconds | {stage: again[stage] for stage in ("judge", "diagnose")}


def done(job: Pipelined, process: "subprocess.Popen[bytes]", planted: bool) -> None:
    """The command to its end; the fault is planted between the stages that answer and that judge."""
    try:
        assert process.wait(SECONDS) == (1 if planted else 0), job.words()[-3000:]
    finally:
        kill(process)


def disturbed(job: Pipelined, hurt, seconds: dict[str, float]) -> tuple[Verdict, list[Counter]]:
    """All stages, each hurt after a drawn part of its seconds; a command that this ends is started again."""
    draws, hits = random.Random(1), []
    for stages, planted in CALLS:
        process = job.start()
        for stage in stages:
            try:
                process = process if process.poll() is None else job.start()
                job.wait_for(stage, process)
                time.sleep(draws.uniform(0.1, 0.5) * seconds[stage])
                hits.append(stage not in job.stages())
                print(f"{stage}: hurt {'within' if hits[-1] else 'after'} it", file=sys.stderr)
                hurt(process)
            except BaseException:
                kill(process)
                raise
        done(job, process if process.poll() is None else job.start(), planted)
        if not planted:
            job.plant()
    assert sum(hits) >= len(hits) - 1  # the machine may have been faster than undisturbed once
    return job.result()


def test_the_driver_is_killed_in_each_stage_and_started_again(cluster, hdfs, undisturbed, tmp_path):
    result, seconds = undisturbed
    assert disturbed(Pipelined(tmp_path, f"{hdfs.url}/driver", cluster), kill, seconds) == result


def test_a_worker_is_killed_in_each_stage(cluster, hdfs, undisturbed, tmp_path):
    def hurt(_process: object) -> None:
        kill(cluster.running[-1])
        cluster.work()

    result, seconds = undisturbed
    assert disturbed(Pipelined(tmp_path, f"{hdfs.url}/worker", cluster), hurt, seconds) == result
