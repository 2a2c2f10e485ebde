"""Windows that hold no more than so many elements or triples: what is kept, by hand."""

import pytest

from streamgauge.model.element import StreamElement
from streamgauge.oracle.diagnosis.faults.window_capped import _admitted, _capped
from streamgauge.oracle.diagnosis.models import Stream
from streamgauge.semantics.arrivals import Arrival
from tests.notation import STREAM, triples

HELD = [Arrival(STREAM, at, None, tuple(triples(text))) for at, text in enumerate(("a p 1", "b p 1. b p 2", "c p 3"))]


@pytest.mark.parametrize(
    ("cap", "newest", "single", "kept"),
    [
        (1, True, False, ["c p 3"]),
        (2, True, False, ["b p 1. b p 2", "c p 3"]),
        (2, False, False, ["a p 1", "b p 1. b p 2"]),
        (3, True, False, ["a p 1", "b p 1. b p 2", "c p 3"]),
        (1, True, True, ["c p 3"]),
        (2, True, True, ["b p 2", "c p 3"]),
        (3, True, True, ["b p 1. b p 2", "c p 3"]),
        (1, False, True, ["a p 1"]),
        (2, False, True, ["a p 1", "b p 1"]),
        (3, False, True, ["a p 1", "b p 1. b p 2"]),
        (4, False, True, ["a p 1", "b p 1. b p 2", "c p 3"]),
    ],
)
def test_the_newest_or_the_oldest_are_kept(cap, newest, single, kept):
    result = list(_capped(HELD, HELD.index, cap, newest, single))
    assert [list(arrival.triples) for arrival in result] == [list(triples(text)) for text in kept]
    assert [arrival.time for arrival in result] == sorted(arrival.time for arrival in result)


def test_arrivals_of_one_element_are_kept_together():
    """Two elements, of two arrivals each."""
    held = [HELD[0], HELD[2], HELD[1], HELD[1]]
    kept = list(_capped(held, lambda arrival: 0 if arrival in (HELD[0], HELD[2]) else 1, 1, False, False))
    assert kept == [HELD[0], HELD[2]]


@pytest.mark.parametrize(
    ("times", "size", "cap", "kept"),
    [
        ((0, 1, 2, 3, 4, 5), 3, 2, [0, 1, 3, 4]),
        ((0, 1, 2, 3), 9, 2, [0, 1]),
        ((0, 1, 2, 3), 1, 1, [0, 1, 2, 3]),
        ((0, 1, 2, 3), 2, 1, [0, 2]),
        ((0, 0, 0), 5, 2, [0, 0]),
        ((), 5, 1, []),
    ],
)
def test_a_full_window_drops_what_comes(times, size, cap, kept):
    elements = [StreamElement(STREAM, time, number, ()) for number, time in enumerate(times)]
    assert [element.time for element in _admitted(Stream(elements[::-1]), size, cap).elements] == kept
