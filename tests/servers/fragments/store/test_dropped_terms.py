"""What a store lets go of: versions, runs, and the terms that are in nothing any more."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.servers.fragments import Quad
from streamgauge.servers.fragments import store as keys_and_values
from streamgauge.servers.fragments.store import NAMED, TEXT, Keep, history
from streamgauge.servers.fragments.store.disk import DiskStore
from streamgauge.servers.fragments.store.indexed import MemoryKeyValues, Store
from streamgauge.servers.fragments.store.quad_keys import WIDTH
from tests.servers.fragments.store.drawn import Step, all_matches, quads, steps
from tests.servers.fragments.store.naive import Naive

EVERYTHING = (None, None, None, None)


@pytest.fixture
def short_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, and two versions remembered."""
    monkeypatch.setattr(keys_and_values, "FULL", 200)
    monkeypatch.setattr(history, "MAX_VERSIONS", 2)


@pytest.mark.slow
@given(st.lists(steps, max_size=12), quads, st.sampled_from((None, Keep(runs=3), Keep(span=4))))
@pytest.mark.usefixtures("short_memory")
def test_what_is_forgotten_is_not_missed(changes: list[Step], probe: Quad, keep: Keep | None) -> None:
    with TemporaryDirectory() as folder:
        store, naive, now = DiskStore(Path(folder), keep), Naive(), 100
        for step in changes:
            now += step.later
            store.change(step.removed, step.added, now)
            naive.change(step.removed, step.added, now)
            if step.restart:
                store.close()
                store = DiskStore(Path(folder), keep)
            for match in all_matches(probe):
                assert store.count(match) == len(naive.select(match))
                assert sorted(store.page(match, 0, 1000)) == naive.select(match)
                told = store.changed(match, max(0, naive.version - 2))
                assert told is not None
                assert (set(told.added), set(told.removed)) == naive.changed(match, max(0, naive.version - 2))
                past = store.at(match, now - 4, 1000)
                assert past is None or sorted(past) == naive.at(match, now - 4)
        store.close()


@pytest.mark.parametrize("keep", [None, Keep(runs=20), Keep(span=5)])
@pytest.mark.usefixtures("short_memory")
def test_terms_of_graphs_that_come_and_go_are_dropped(keep: Keep | None) -> None:
    records = MemoryKeyValues()
    store = Store(records, keep)
    for number in range(300):
        gone = [(f"<urn:{index}>", "<urn:p>", '"0"', f"<urn:g{number - 1}>") for index in range(5)]
        come = [((f"<urn:{index}>", "<urn:p>", '"0"', f"<urn:g{number}>"), None) for index in range(5)]
        store.change(gone, come, number)
    numbers = [number.to_bytes(WIDTH) for number in range(400)]
    texts = [text for number in numbers if (text := records.get(TEXT + number)) is not None]
    assert 8 <= len(texts) < 30
    assert all(records.get(NAMED + text) is not None for text in texts)
    assert records.get(TEXT + numbers[-1]) is None
    kept = [number for number in range(300) if records.get(NAMED + f"<urn:g{number}>".encode()) is not None]
    assert len(kept) < 30
    assert {quad[3] for quad in store.page(EVERYTHING, 0, 99)} == {"<urn:g299>"}
    assert store.count((None, None, None, "<urn:g7>")) == 0
    store.change((), [(("<urn:0>", "<urn:p>", '"0"', "<urn:g7>"), None)], 300)
    assert store.count((None, None, None, "<urn:g7>")) == 1
