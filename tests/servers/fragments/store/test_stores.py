"""In memory = on disk = a list that is looked through, whatever changes, restarts included."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgauge.servers.fragments import Match
from streamgauge.servers.fragments import store as keys_and_values
from streamgauge.servers.fragments.store import Keep, history, quad_keys
from streamgauge.servers.fragments.store.disk import DiskStore, FolderError
from streamgauge.servers.fragments.store.indexed import KeepError, MemoryStore, Store
from tests.servers.fragments.store.drawn import SHAPES, Step, all_matches, quads, steps
from tests.servers.fragments.store.naive import Naive

EVERYTHING = (None, None, None, None)
A, B = ("<urn:a>", "<urn:p>", '"1"', ""), ("<urn:b>", "<urn:p>", '"2"', "<urn:g>")


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so small that they split and join all the time."""
    monkeypatch.setattr(keys_and_values, "FULL", 200)


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else DiskStore(tmp_path / "store")
    yield made
    made.close()


def assert_equal(store: Store, naive: Naive, match: Match, now: int) -> None:
    wanted = naive.select(match)
    assert store.version == naive.version
    assert store.count(match) == len(wanted)
    everything = store.page(match, 0, 1000)
    assert sorted(everything) == wanted
    for offset, limit in ((0, 1), (2, 3), (len(wanted) - 1, 5), (len(wanted), 5), (7, 1000)):
        assert store.page(match, max(0, offset), limit) == everything[max(0, offset) : max(0, offset) + limit]
    for instant in (90, now - 5, now - 1, now, now + 7):
        assert store.nearest(match, instant) == naive.nearest(match, instant)
        past = store.at(match, instant, 1000)
        assert past is None or sorted(past) == naive.at(match, instant)
        assert (past is None) == (naive.first is None or instant < naive.first)
    for since in {0, naive.version // 2, naive.version}:
        changes = store.changed(match, since)
        assert changes is not None
        assert (set(changes.added), set(changes.removed)) == naive.changed(match, since)


@pytest.mark.slow
@given(st.lists(steps, max_size=8), quads)
@pytest.mark.usefixtures("small_blocks")
def test_stores_are_a_list(changes: list[Step], probe: tuple[str, str, str, str]) -> None:
    with TemporaryDirectory() as folder:
        memory, disk, naive, now = MemoryStore(Keep()), DiskStore(Path(folder), Keep()), Naive(), 100
        for step in changes:
            now += step.later
            before = naive.version
            naive.change(step.removed, step.added, now)
            for store in (memory, disk):
                made = store.change(step.removed, step.added, now)
                assert (set(made.added), set(made.removed)) == naive.changed(EVERYTHING, before)
            if step.restart:
                disk.close()
                disk = DiskStore(Path(folder), Keep())
            for store in (memory, disk):
                for match in all_matches(probe):
                    assert_equal(store, naive, match, now)
                assert [naive.ends[quad] for quad in store.expired(now, 3)] == naive.ended(now)[:3]
        disk.close()


@given(st.lists(st.tuples(quads, st.none() | st.integers(0, 9)), max_size=60), quads)
@pytest.mark.usefixtures("small_blocks")
def test_loaded_is_as_if_added(loaded: list[tuple[tuple[str, str, str, str], int | None]], probe: object) -> None:
    unique = dict(sorted(loaded, key=lambda entry: -1 if entry[1] is None else entry[1]))
    with TemporaryDirectory() as folder:
        naive, disk = Naive(), DiskStore(Path(folder))
        naive.change((), unique.items(), 0)
        for store in (MemoryStore(), disk):
            assert store.load(loaded) == len(unique)
            assert (store.changed(EVERYTHING, 0) is None) == bool(loaded)
            for match in all_matches(probe):
                assert store.count(match) == len(naive.select(match))
                assert sorted(store.page(match, 0, 100)) == naive.select(match)
                assert store.nearest(match, 3) == naive.nearest(match, 3)
            store.change(list(unique)[:5], ())
            assert store.count(EVERYTHING) == max(0, len(unique) - 5)
        disk.close()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("same", [False, True], ids=["hashes", "one hash for all"])
def test_terms_that_come_in_several_parts_keep_their_numbers(
    store: Store, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    """Terms too long for a key among them, and terms whose hash another has."""
    monkeypatch.setattr(quad_keys, "BATCH", 7)
    if same:
        monkeypatch.setattr(quad_keys, "hash", lambda _: 1, raising=False)
    terms = [f'"{number % 11}{"é" * (number % 3 * 150)}"' for number in range(60)]
    rows = [(f"<urn:{number % 13}>", f"<urn:p{number % 2}>", term, "") for number, term in enumerate(terms)]
    assert store.load((quad, None) for quad in rows) == len(set(rows))
    assert set(store.page(EVERYTHING, 0, 1000)) == set(rows)
    for s, p, o, g in rows:
        assert store.page((s, p, o, g), 0, 2) == [(s, p, o, g)]
    numbers = sorted(quad_keys.TermDictionary(store._records).number(term) or b"" for term in {*sum(rows, ())})
    assert numbers == [number.to_bytes(quad_keys.WIDTH) for number in range(len(numbers))]


@pytest.mark.parametrize("word", [64, 3], ids=["one word", "several"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(*[st.integers(0, 5) | st.integers(0, 70_000)] * 4), max_size=40))
def test_keys_of_every_order_are_sorted(
    monkeypatch: pytest.MonkeyPatch, word: int, rows: list[tuple[int, ...]]
) -> None:
    monkeypatch.setattr(quad_keys, "_WORD", word)
    ids = np.array(rows, dtype=np.uint32).reshape(-1, 4)
    for order, keys in zip(quad_keys.INDEX_ORDERS, quad_keys.sequences(ids), strict=True):
        assert quad_keys.cut_rows(keys) == sorted(
            {b"".join(row[place].to_bytes(quad_keys.WIDTH) for place in order) for row in rows}
        )


@pytest.mark.usefixtures("small_blocks")
def test_deep_pages_of_many_blocks(store: Store) -> None:
    rows = [(f"<urn:{number % 7}>", "<urn:p>", f'"{number}"', "") for number in range(3000)]
    store.load((quad, None) for quad in rows)
    store.change(rows[::3], ())
    left = set(rows) - set(rows[::3])
    for match in (EVERYTHING, (None, "<urn:p>", None, None), ("<urn:3>", None, None, None)):
        pages = [store.page(match, offset, 37) for offset in range(0, 3000, 37)]
        together = [quad for page in pages for quad in page]
        assert len(together) == store.count(match) == len(set(together))
        assert set(together) == {quad for quad in left if match[0] in (None, quad[0])}
        assert store.page(match, 1000, 5) == together[1000:1005]


def test_every_shape_is_counted_once(store: Store) -> None:
    store.change((), [(A, None), (B, 5)])
    assert len(SHAPES) == 16
    assert [store.count(match) for match in all_matches(A)] == [
        2 if match in (EVERYTHING, (None, "<urn:p>", None, None)) else 1 for match in all_matches(A)
    ]
    assert store.count((None, None, None, "<urn:none>")) == 0


def test_nearest_of_many_is_early_at_worst(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history.EndTimes, "few", 10)
    some = [((f"<urn:{number}>", "<urn:p>", '"1"', ""), 1000 + number) for number in range(50)]
    others = [((f"<urn:{number}>", "<urn:q>", '"1"', ""), 1025 + number) for number in range(50)]
    store.load([*some, *others])
    assert store.nearest((None, "<urn:p>", None, None), 1003) == 1004
    assert store.nearest((None, "<urn:q>", None, None), 0) == 1009
    assert store.nearest((None, "<urn:q>", None, None), 1009) == 1019
    assert store.nearest((None, "<urn:q>", None, None), 1020) == 1025
    assert store.nearest((None, "<urn:p>", None, None), 1073) is None


def test_changes_are_forgotten_when_there_are_too_many(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_LOGGED_QUADS", 20)
    monkeypatch.setattr(history, "MAX_VERSIONS", 5)
    for number in range(9):
        store.change((), [((f"<urn:{number}>", "<urn:p>", '"1"', ""), None)])
    known = [store.changed(EVERYTHING, since) is not None for since in range(10)]
    assert known == [since >= 4 for since in range(10)]
    assert store.changed(EVERYTHING, 10) is None
    store.change((), [((f"<urn:{number}>", "<urn:q>", '"1"', ""), None) for number in range(30)])
    assert [store.changed(EVERYTHING, since) is not None for since in (8, 9, 10)] == [False, True, True]


def test_nothing_is_no_change(store: Store) -> None:
    store.change((), [(A, 5)])
    assert store.change([B], [(A, 5)]).version == 1
    assert store.change([A], [(A, 5)]).version == 1
    again = store.change((), [(A, 6), (A, 7)])
    assert (again.version, again.added, again.removed) == (2, (), ())
    assert store.nearest(EVERYTHING, 0) == 7


@pytest.mark.parametrize("size", [399, 400, 401, 511, 600, 100_000])
def test_long_terms(store: Store, size: int) -> None:
    first, second = (f'"{last.rjust(size - 2, "x")}"' for last in "ab")
    store.change((), [(("<urn:s>", "<urn:p>", first, ""), 1), (("<urn:s>", "<urn:p>", second, f"<{second[1:-1]}>"), 2)])
    assert store.page((None, None, first, None), 0, 9) == [("<urn:s>", "<urn:p>", first, "")]
    assert store.count((None, None, second, None)) == store.count((None, None, None, f"<{second[1:-1]}>")) == 1
    assert store.count((None, None, first + "x", None)) == 0


def test_only_an_empty_store_is_loaded(store: Store) -> None:
    store.change((), [(A, None)])
    with pytest.raises(ValueError, match="use change"):
        store.load([(B, None)])
    assert store.page(EVERYTHING, 0, 9) == [A]


def test_a_load_that_failed_left_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[tuple[tuple[str, str, str, str], None]]:
        yield A, None
        raise OSError("line 2")

    store = DiskStore(tmp_path)
    with pytest.raises(OSError, match="line 2"):
        store.load(broken())
    assert (store.version, store.count(EVERYTHING)) == (0, 0)
    assert store.load([(B, 3)]) == 1
    assert store.page(EVERYTHING, 0, 9) == [B]
    store.close()


def test_a_folder_is_opened_once(tmp_path: Path) -> None:
    first = DiskStore(tmp_path)
    with pytest.raises(FolderError, match="has it open"):
        DiskStore(tmp_path)
    first.close()
    DiskStore(tmp_path).close()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(FolderError, match="give an empty folder"):
        DiskStore(tmp_path)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match="not a folder that can be written"):
        DiskStore(tmp_path / "file")


def test_what_left_is_kept_from_the_beginning_or_never(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    store.change((), [(A, None)])
    assert store.at(EVERYTHING, 0, 9) is None
    store.close()
    with pytest.raises(KeepError, match="into another store"):
        DiskStore(tmp_path, Keep())
    DiskStore(tmp_path).close()
    with pytest.raises(KeepError, match="give the time of the change"):
        MemoryStore(Keep()).change((), [(A, None)])


def test_equal_facts_one_after_the_other_are_one_run() -> None:
    store = MemoryStore(Keep(runs=3))
    for number in range(100):
        store.change([B if number % 2 else A], [(A if number % 2 else B, None)], number)
    assert store.at(EVERYTHING, 98, 9) == [B]
    assert store.at(EVERYTHING, 97, 9) == [A]
    assert store.at(EVERYTHING, 90, 9) is None
    renewed = MemoryStore(Keep(runs=0))
    for number in range(100):
        renewed.change((), [(A, number + 1)], number)
    assert all(renewed.at(EVERYTHING, number, 9) == [A] for number in range(100))


def test_what_comes_when_it_has_ended_takes_nothing_back() -> None:
    store = MemoryStore(Keep())
    store.change((), [(A, None)], 100)
    store.change([A], (), 110)
    store.change((), [(A, 104)], 110)
    assert [store.at(EVERYTHING, instant, 9) for instant in (103, 104, 109, 110)] == [[A], [A], [A], []]


def test_what_ended_long_ago_is_dropped() -> None:
    store = MemoryStore(Keep(span=10))
    versions = [((f"<urn:{number}>", "<urn:p>", '"1"', ""), None) for number in range(60)]
    for number, (before, after) in enumerate(pairwise(versions)):
        store.change([before[0]], [after], number)
    known = [store.at(EVERYTHING, number, 9) is not None for number in range(59)]
    assert known == [number >= 47 for number in range(59)]
    assert store.at(EVERYTHING, 50, 9) == [versions[51][0]]


def test_loaded_quads_were_there_since_ever() -> None:
    store = MemoryStore(Keep())
    store.load([(A, None), (B, 70)], at=50)
    assert store.at(EVERYTHING, 49, 9) is None
    store.change([A], (), 60)
    assert [store.at(EVERYTHING, instant, 9) for instant in (50, 59, 60, 69, 70)] == [[B, A], [B, A], [B], [B], []]


def test_clocks_that_go_back_do_not_turn_runs_around() -> None:
    store = MemoryStore(Keep())
    store.change((), [(A, None)], 100)
    store.change([A], [(B, None)], 90)
    assert store.at(EVERYTHING, 100, 9) == [B]
