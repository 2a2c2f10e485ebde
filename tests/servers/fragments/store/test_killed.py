"""A store whose process was killed: what was acknowledged is there, and nothing half."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamgauge.servers.fragments.store import Keep
from streamgauge.servers.fragments.store.disk import DiskStore
from tests.servers.fragments.store.changing import step
from tests.servers.fragments.store.drawn import all_matches
from tests.servers.fragments.store.naive import Naive

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[4]


@contextmanager
def changing(folder: Path, what: str) -> "Iterator[subprocess.Popen[str]]":
    words = [sys.executable, "-m", "tests.servers.fragments.store.changing", str(folder), what]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def killed_after(folder: Path, changes: int, moment: float) -> int:
    """Let it make so many changes, and a part of the next; the number of the last that it acknowledged."""
    with changing(folder, "change") as process:
        assert process.stdout is not None
        last = int(process.stdout.readline())
        for _ in range(changes):
            last = int(process.stdout.readline())
        time.sleep(moment)
        process.kill()
        return max([last, *(int(line) for line in process.stdout if line.endswith("\n"))])


def assert_whole(store: DiskStore, naive: Naive) -> None:
    """Every order of the store has what the changes up to its version make, and the past has too."""
    everything = sorted(naive.ends)
    assert sorted(store.page((None, None, None, None), 0, 10**6)) == everything
    for quad in random.Random(naive.version).sample(everything, min(20, len(everything))):
        for match in all_matches(quad):
            assert store.count(match) == len(naive.select(match))
            assert sorted(store.page(match, 0, 10**6)) == naive.select(match)
    assert len(store.expired(naive.version, 10**6)) == len(naive.ended(naive.version))
    then = max(1, naive.version - 5)
    assert sorted(store.at((None, None, None, None), then, 10**6) or ()) == naive.at((None,) * 4, then)


def kill_again_and_again(folder: Path, points: int, seed: int) -> int:
    """The version that a store has reached after so many kills; it is whole after each."""
    draws, naive = random.Random(seed), Naive()
    for _ in range(points):
        acknowledged = killed_after(folder, draws.randrange(1, 40), draws.random() * 0.02)
        store = DiskStore(folder, Keep(runs=1000))
        assert store.version >= acknowledged
        while naive.version < store.version:
            removed, added = step(naive.version + 1)
            naive.change(removed, added, naive.version + 1)
        assert_whole(store, naive)
        store.close()
    return naive.version


def test_killed_in_the_middle_of_changes(tmp_path: Path) -> None:
    assert kill_again_and_again(tmp_path, 3, seed=1) >= 3


@pytest.mark.prove
def test_killed_in_the_middle_of_changes_fifty_times(tmp_path: Path) -> None:
    assert kill_again_and_again(tmp_path, 50, seed=2) >= 50


def test_killed_while_it_loads(tmp_path: Path) -> None:
    with changing(tmp_path, "load") as process:
        assert process.stdout is not None
        process.stdout.readline()
        while (tmp_path / "data.mdb").stat().st_size < 2**20:
            time.sleep(0.001)
        process.kill()
        assert list(process.stdout) == [], "it was done before it was killed"
    store = DiskStore(tmp_path, Keep(runs=1000))
    assert (store.version, store.count((None, None, None, None))) == (0, 0)
    assert store.load(step(4)[1], at=0) == len(dict(step(4)[1]))
    store.close()
