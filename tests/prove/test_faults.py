"""Faults of the harness: `run` killed at 20 random points, a disk that fills while it records or judges."""

import os
import subprocess

import pytest

from tests.prove.killed import Killed, kill_and_go_on

pytestmark = pytest.mark.prove


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_random_points_what_was_finished_is_kept(tmp_path, capsys, seed):
    points = kill_and_go_on(Killed(tmp_path, repetitions=8), seed=seed, kills=10)
    with capsys.disabled():
        print(f"\nkilled when the folder had {points} files and folders")
    assert len(points) == 10


@pytest.mark.parametrize("size", ["16k", "40k", "80k", "120k", "160k"])
def test_a_full_disk_is_said_and_the_same_command_goes_on_when_there_is_room(tmp_path, size):
    if os.geteuid() != 0:
        pytest.skip("a small file system needs root to be mounted")
    job = Killed(tmp_path, repetitions=2)
    job.prepare()
    job.out.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(job.out)], check=False)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        code, said = job.finish()
        assert code == 2, said
        assert "the disk is full" in said or "No space left" in said
        kept = job.whole()
        subprocess.run(["mount", "-o", "remount,size=200m", str(job.out)], check=True)
        code, said = job.finish()
        assert code == 0, said
        assert kept.items() <= job.whole().items()
        assert len(job.whole()) == 4
    finally:
        subprocess.run(["umount", "-l", str(job.out)], check=True)
