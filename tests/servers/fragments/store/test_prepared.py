"""Changes that are worked out beside others: made later, they are what they would have been if made at once."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from streamgauge.servers.fragments import ExpiringQuad, Quad
from streamgauge.servers.fragments.store import FullError
from streamgauge.servers.fragments.store.disk import DiskStore
from streamgauge.servers.fragments.store.indexed import MemoryStore, Store

ALL = (None, None, None, None)
Change = tuple[list[Quad], list[ExpiringQuad]]


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Makes stores, which are closed in the end."""
    made: list[Store] = []

    def make() -> Store:
        made.append(MemoryStore() if request.param == "memory" else DiskStore(tmp_path / str(len(made))))
        return made[-1]

    yield make
    for item in made:
        item.close()


def quad(number: int) -> Quad:
    """One of many quads; 7 in a row have the subject, all have one of 5 predicates."""
    return f"<urn:s{number // 7}>", f"<urn:p{number % 5}>", f'"{number}"', f"<urn:g{number % 3}>"


def drawn(draw: Random, most: int) -> Change:
    """A change of quads below 5,000."""
    removed = [quad(draw.randrange(5_000)) for _ in range(draw.randrange(most))]
    return removed, [(quad(draw.randrange(5_000)), draw.choice((None, 5, 9))) for _ in range(draw.randrange(most))]


def touched(change: Change) -> set[Quad]:
    return {*change[0], *(item for item, _ in change[1])}


def shown(store: Store) -> tuple[object, ...]:
    """What readers see, in an order that does not depend on the numbers of terms."""
    patterns = [ALL, (None, "<urn:p1>", None, None), ("<urn:s3>", None, None, None), (None, None, None, "<urn:g2>")]
    results = [tuple(sorted(store.page(match, 0, 10_000))) for match in patterns]
    return (*results, *map(store.count, patterns), store.nearest(ALL, 0), set(store.expired(5, 10_000)), store.version)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.prove) for seed in range(2, 6))])
def test_a_prepared_change_is_as_if_made_at_once(store: Callable[[], Store], seed: int) -> None:
    """While large changes are worked out, small ones of other quads are made; each of the two stores has the same."""
    draw, beside, plain = Random(seed), store(), store()
    made = 0
    for _ in range(8):
        large = drawn(draw, 1_500)
        change = beside.prepare(*large)
        small = [item for item in (drawn(draw, 12) for _ in range(10)) if not touched(item) & touched(large)]
        for item in small:
            assert beside.change(*item) == plain.change(*item)
        told = beside.make(change)
        expected = plain.change(*large)
        assert told is not None
        assert (set(told.added), set(told.removed)) == (set(expected.added), set(expected.removed))
        assert shown(beside) == shown(plain)
        made += len(small)
    assert made > 5


def test_what_others_changed_meanwhile_is_not_made(store: Callable[[], Store]) -> None:
    there = store()
    there.change((), [(quad(n), None) for n in range(300)])
    for other in (
        ([quad(3)], []),
        ([], [(quad(1_000), None)]),
        ([], [(quad(4), 9)]),
    ):
        change = there.prepare([quad(n) for n in range(10)], [(quad(n), 5) for n in range(1_000, 1_200)])
        there.change(*other)
        before = shown(there)
        assert there.make(change) is None
        assert shown(there) == before
        there.abandon(change)


@pytest.mark.slow
def test_terms_of_a_change_that_waits_are_not_dropped(store: Callable[[], Store]) -> None:
    """A term leaves its last quad while a change that brings it again is worked out."""
    there = store()
    there.change((), [(("<urn:a>", "<urn:p>", '"rare"', ""), None), (quad(1), None)])
    change = there.prepare([], [(("<urn:b>", "<urn:p>", '"rare"', ""), None)])
    there.change([("<urn:a>", "<urn:p>", '"rare"', "")], ())
    for number in range(2_000):
        there.change((), [(quad(2 + number % 50), number)])
    assert there.make(change) is not None
    assert there.page((None, None, '"rare"', None), 0, 9) == [("<urn:b>", "<urn:p>", '"rare"', "")]


def test_terms_of_a_change_that_is_abandoned_are_dropped(store: Callable[[], Store]) -> None:
    there = store()
    there.change((), [(quad(1), None)])
    change = there.prepare([], [(("<urn:new>", "<urn:p>", '"new"', ""), None)])
    assert there._terms.number('"new"') is not None
    there.abandon(change)
    while there.tidy():
        pass
    assert there._terms.number('"new"') is None
    assert there._terms.number(quad(1)[0]) is not None


def test_what_a_change_writes_ahead_is_no_damage(tmp_path: Path) -> None:
    """A store whose process ends in the midst of it opens, without the change and with its other quads."""
    there = DiskStore(tmp_path / "a")
    there.change((), [(quad(n), None) for n in range(300)])
    before = shown(there)
    there.prepare([quad(1)], [(quad(n), None) for n in range(1_000, 1_500)])
    there.close()
    again = DiskStore(tmp_path / "a")
    assert shown(again) == before
    again.change((), [(quad(1_001), None)])
    assert again.page((None, None, quad(1_001)[2], None), 0, 9) == [quad(1_001)]
    again.close()


@pytest.mark.slow
def test_a_change_for_which_there_is_no_room_leaves_all_as_it_was(tmp_path: Path) -> None:
    """The folder is full while terms are written ahead, or when the change is made; small changes go on."""
    there = DiskStore(tmp_path / "a", limit=2**20)
    there.change((), [(quad(n), None) for n in range(300)])
    before = shown(there)
    refused = 0
    for index in range(1_000, 12_000, 1_000):
        change = None
        try:
            change = there.prepare([quad(1)], [(quad(n), None) for n in range(1_000, 1_000 + index)])
            if there.make(change) is not None:
                undone = there.change([item for item, _ in drop(index)], [(quad(1), None)])
                assert len(undone.removed) == index
        except FullError:
            refused += 1
            if change is not None:
                there.abandon(change)
        assert shown(there)[:-1] == before[:-1]
        while there.tidy():
            pass
    assert refused > 2
    assert there.change([quad(2)], ()).removed == (quad(2),)
    there.close()


def drop(many: int) -> list[ExpiringQuad]:
    return [(quad(n), None) for n in range(1_000, 1_000 + many)]
