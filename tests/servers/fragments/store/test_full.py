"""A disk that is full: the change is refused by a sentence, and the store is as it was, opened again too."""

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamgauge.servers.fragments import Quad
from streamgauge.servers.fragments.store import FullError
from streamgauge.servers.fragments.store.disk import DiskStore

pytestmark = pytest.mark.server

EVERYTHING = (None, None, None, None)


def batch(number: int) -> list[tuple[Quad, int | None]]:
    return [((f"<urn:s{number}-{index}>", "<urn:p>", f'"{index}"', f"<urn:g{number}>"), number) for index in range(500)]


def fill(store: DiskStore, why: str) -> int:
    """Add batches until one is refused, with a sentence that says why; how many were added."""
    for number in range(10_000):
        before = store.version, store.page(EVERYTHING, 0, 10**6)
        try:
            store.change((), batch(number))
        except FullError as error:
            message = str(error)
            break
    else:
        pytest.fail("the disk was never full")
    assert "the change was not made" in message
    assert why in message
    assert (store.version, store.page(EVERYTHING, 0, 10**6)) == before
    assert store.count((None, None, None, f"<urn:g{number}>")) == 0
    assert store.nearest(EVERYTHING, number - 1) is None
    return number


def goes_on(folder: Path, batches: int) -> None:
    """The store opens again with what it had, and takes what was refused."""
    store = DiskStore(folder)
    assert (store.version, store.count(EVERYTHING)) == (batches, batches * 500)
    assert store.change((), batch(batches)).version == batches + 1
    assert store.count((None, None, None, f"<urn:g{batches}>")) == 500
    store.close()


def test_a_folder_that_may_not_grow(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, limit=2**21)
    batches = fill(store, "the folder has reached its limit")
    store.close()
    goes_on(tmp_path, batches)


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    with files_no_larger_than(2**21):
        batches = fill(store, "the file may not grow any more (EFBIG)")
    assert store.change((), batch(batches)).version == batches + 1
    store.close()
    goes_on(tmp_path, batches + 1)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mounted = tmp_path / "disk"
    mounted.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(mounted)], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    yield mounted
    subprocess.run(["umount", str(mounted)], check=True)


def test_a_disk_that_is_full(small_disk: Path) -> None:
    store = DiskStore(small_disk)
    batches = fill(store, "the disk is full (ENOSPC)")
    store.close()
    again = DiskStore(small_disk)
    assert (again.version, again.count(EVERYTHING)) == (batches, batches * 500)
    with pytest.raises(FullError):
        again.change((), batch(batches))
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert again.change((), batch(batches)).version == batches + 1
    again.close()
    goes_on(small_disk, batches + 1)
