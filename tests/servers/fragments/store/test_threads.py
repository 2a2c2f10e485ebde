"""One thread changes a store while others read it: each call sees one state."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from streamgauge.servers.fragments import Quad
from streamgauge.servers.fragments.store.disk import DiskStore
from streamgauge.servers.fragments.store.indexed import MemoryStore, Store

SIZE, CHANGES = 150, 20


def state(number: int) -> list[Quad]:
    return [(f"<urn:{index}>", "<urn:p>", f'"{number}"', f"<urn:g{number}>") for index in range(SIZE)]


def read(store: Store, done: Event) -> int:
    """Read until the changes are done; how many states were seen."""
    seen = set()
    while not done.is_set():
        page = store.page((None, "<urn:p>", None, None), 0, SIZE + 1)
        graphs = {quad[3] for quad in page}
        assert (len(page), len(graphs)) == (SIZE, 1)
        assert store.count((None, "<urn:p>", None, None)) == SIZE
        assert store.count((None, None, None, next(iter(graphs)))) in (0, SIZE)
        assert store.nearest((None, None, None, None), 0) == 5
        seen.add(graphs.pop())
    return len(seen)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_readers_see_one_state(kind: str, tmp_path: Path) -> None:
    store: Store = MemoryStore() if kind == "memory" else DiskStore(tmp_path)
    store.change((), [(quad, 5) for quad in state(0)])
    done = Event()
    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(read, store, done) for _ in range(3)]
        try:
            for number in range(CHANGES):
                store.change(state(number), [(quad, 5) for quad in state(number + 1)])
        finally:
            done.set()
        assert all(reader.result() >= 1 for reader in readers)
    store.close()


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_writers_wait_for_each_other(kind: str, tmp_path: Path) -> None:
    store: Store = MemoryStore() if kind == "memory" else DiskStore(tmp_path)
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda number: store.change((), [(quad, None) for quad in state(number)]), range(20)))
    assert sorted(changes.version for changes in made) == list(range(1, 21))
    assert store.count((None, None, None, None)) == 20 * SIZE
    store.close()
