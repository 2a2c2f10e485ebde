"""Faults of the spark engine: killed at random points, out of disk; nothing lost, nothing twice, and it says so."""

import os
import random
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.prove.streamed import Streamed, observed
from tests.prove.weathered import late_stream

pytestmark = pytest.mark.prove

JOBS = {
    "Rstream 5 s/2 s, watermark 1 s": (observed("RSTREAM", 5, 2), "1s"),
    "Istream 6 s/3 s, watermark 2 s": (observed("ISTREAM", 6, 3), "2s"),
}
KILLS = 10


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    return late_stream(tmp_path_factory.mktemp("stream"), 60)


@pytest.mark.parametrize("name", JOBS)
def test_killed_at_random_points_every_answer_is_there_once(name, source, tmp_path, capsys):
    text, watermark = JOBS[name]
    job = Streamed(tmp_path, source, text, ("--lateness", watermark, "--files", "1"))
    points = job.killed(name, random.Random(name), KILLS)
    late = pq.read_table(job.answers / "batches.parquet")["late"]
    with capsys.disabled():
        print(
            f"\n{name}: killed at (begun, committed) {points}; {len(job.reports())} reports, "
            f"{sum(late.to_pylist())} elements late"
        )
    assert job.reports() == job.expected()


def test_a_full_disk_is_said_and_work_goes_on_when_there_is_room(source, tmp_path, capsys):
    if os.geteuid() != 0:
        pytest.skip("a small file system needs root to be mounted")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        job = Streamed(disk, source, JOBS["Rstream 5 s/2 s, watermark 1 s"][0], ("--lateness", "1s", "--files", "1"))
        assert job.finish() != 0
        with capsys.disabled():
            print(f"\ndisk full: begun, committed {job.progress()}: {job.words()[-300:]}")
        assert "No space left" in job.words() or "disk is full" in job.words()
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
        assert job.finish() == 0, job.words()[-2000:]
        assert job.reports() == job.expected()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
