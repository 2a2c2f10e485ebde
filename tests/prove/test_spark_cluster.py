"""`streamgauge stream` on a real cluster, unchanged: whole, with a worker killed, with a worker cut off."""

import os
import shutil
from pathlib import Path

import pytest

from tests.prove.clusters import FAR, NEAR, Cluster, cut, network
from tests.prove.streamed import Streamed, kill, observed
from tests.prove.weathered import late_stream

pytestmark = pytest.mark.prove

QUICK = (
    "--conf spark.network.timeout=12s --conf spark.network.timeoutInterval=4s "
    "--conf spark.executor.heartbeatInterval=3s --conf spark.executor.memory=700m"
)
MORE = ("--lateness", "1s", "--files", "1")


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    return late_stream(tmp_path_factory.mktemp("stream"), 15)


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.stop()


def job_on(cluster: Cluster, source: Path, root: Path) -> Streamed:
    env = {"PYSPARK_SUBMIT_ARGS": f"{QUICK} pyspark-shell", "SPARK_LOCAL_IP": cluster.host}
    return Streamed(root, source, observed("RSTREAM", 5, 2), (*MORE, "--master", cluster.url), env)


def done_right(job: Streamed, begun: int, hurt) -> None:
    """The job to its end, hurt once so many batches have begun; its answers are what the definition says."""
    process = job.start()
    try:
        assert job.wait_for(begun, process, 300), job.words()[-2000:]
        hurt()
        assert process.wait(900) == 0, job.words()[-3000:]
    finally:
        kill(process)
    assert job.reports() == job.expected()


def test_it_runs_unchanged_on_a_cluster(cluster, source, tmp_path):
    cluster.start()
    cluster.work()
    cluster.work()
    done_right(job_on(cluster, source, tmp_path), 1, lambda: None)
    assert cluster.log().count("Launching executor") == 2


def test_a_worker_is_killed(cluster, source, tmp_path, capsys):
    cluster.start()
    cluster.work()
    doomed = cluster.work()
    job = job_on(cluster, source, tmp_path)
    done_right(job, 4, lambda: kill(doomed))
    said = [line for line in job.words().splitlines() if "Lost executor" in line]
    with capsys.disabled():
        print(f"\nworker killed: {said[:1]}")
    assert said


def test_a_worker_is_cut_off(cluster, source, tmp_path, capsys):
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("a network namespace needs root and the program ip")
    with network() as inside:
        cluster.host = NEAR
        cluster.start()
        cluster.work()
        cluster.work(FAR, inside)
        job = job_on(cluster, source, tmp_path)
        done_right(job, 4, cut)
        said = [line for line in job.words().splitlines() if "Lost executor" in line]
        with capsys.disabled():
            print(f"\nworker cut off: {said[:1]}")
        assert said
        cluster.stop()
