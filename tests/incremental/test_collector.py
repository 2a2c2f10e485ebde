import gc

import pytest

from streamgauge.incremental.budget import gc_frozen


def looked_at(table: object) -> bool:
    return any(object_ is table for object_ in gc.get_objects())


def test_a_table_that_lasts_is_not_looked_at_when_it_grows() -> None:
    with gc_frozen():
        table = {(str(n),): n for n in range(1000)}
    table[str(1000),] = 1000
    gc.collect(0)
    table[str(1001),] = 1001
    assert not looked_at(table)


def test_collected_tests_stay_frozen() -> None:
    """Recorded runs of the suite unfreeze all objects, and begin with a full collection (``tests/selection.py``)."""
    gc.unfreeze()
    assert gc.get_freeze_count() > 10_000


def test_what_is_made_afterwards_is_looked_at() -> None:
    with gc_frozen():
        pass
    table = {(str(n),): n for n in range(1000)}
    assert looked_at(table)


def test_the_collector_goes_on_as_it_was() -> None:
    before = gc.get_threshold()
    with pytest.raises(ZeroDivisionError), gc_frozen(), gc_frozen():
        1 / 0  # noqa: B018
    assert gc.get_threshold() == before


def test_no_full_collection_runs_meanwhile() -> None:
    before = gc.get_stats()
    with gc_frozen():
        kept: list[list[list[int]]] = [[[]] for _ in range(200_000)]
    after = gc.get_stats()
    assert len(kept) == 200_000
    assert after[2]["collections"] == before[2]["collections"]
    assert after[0]["collections"] > before[0]["collections"]


def test_garbage_of_meanwhile_is_collected() -> None:
    class Ring:
        def __init__(self) -> None:
            self.own = self

    gone = []
    with gc_frozen():
        Ring.__del__ = lambda _: gone.append(True)  # type: ignore[attr-defined]
        Ring()
    assert gone
