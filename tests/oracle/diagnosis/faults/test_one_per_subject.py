"""Windows that keep the newest or the oldest triples per key: what is kept, by hand."""

from functools import partial

import pytest

from streamgauge.oracle.diagnosis.faults.one_per_subject import _kept, _objects, _properties, _subjects
from streamgauge.semantics.arrivals import Arrival
from tests.notation import STREAM, triples

OBSERVED = partial(_objects, predicate="<urn:sensor>")
OBSERVATIONS = [
    "o1 sensor s. o1 result r1. r1 value 1",
    "r2 value 2. o2 sensor t. o2 result r2. z note 7",
    "o3 result r3. r3 value 3. o3 sensor s",
]


@pytest.mark.parametrize(
    ("elements", "keys", "newest", "kept"),
    [
        # The worked example.
        (["s p a", "r p b", "s p c"], _subjects, True, ["r p b", "s p c"]),
        (["s p a", "r p b", "s p c"], _subjects, False, ["s p a", "r p b"]),
        (["s p a. s q b", "s p c. r p d"], _subjects, True, ["s p c. r p d"]),
        (["s p a. s q b", "s p c. r p d"], _subjects, False, ["s p a. s q b", "r p d"]),
        (["s p a. s q b", "s p c. r p d"], _properties, True, ["s q b", "s p c. r p d"]),
        (["s p a. s q b", "s p c. r p d"], _properties, False, ["s p a. s q b", "r p d"]),
        # A fact group has the key of its observation, whatever the order of its triples; z has none.
        (OBSERVATIONS, OBSERVED, True, OBSERVATIONS[1:]),
        (OBSERVATIONS, OBSERVED, False, OBSERVATIONS[:2]),
        (["o1 sensor s. o1 sensor t", "o2 sensor s"], OBSERVED, True, ["o1 sensor s. o1 sensor t", "o2 sensor s"]),
        (["o1 sensor s. o1 sensor t", "o2 sensor s. o2 sensor t"], OBSERVED, True, ["o2 sensor s. o2 sensor t"]),
        ([], _subjects, True, []),
    ],
)
def test_one_per_key_is_kept(elements, keys, newest, kept):
    held = [Arrival(STREAM, at, None, tuple(triples(text))) for at, text in enumerate(elements)]
    result = list(_kept(held, held.index, keys, newest))
    assert [list(arrival.triples) for arrival in result] == [list(triples(text)) for text in kept]
    # The same where each triple is an arrival.
    single = [(at, Arrival(STREAM, at, None, (triple,))) for at, whole in enumerate(held) for triple in whole.triples]
    numbers = {id(arrival): at for at, arrival in single}
    apart = _kept([arrival for _, arrival in single], lambda arrival: numbers[id(arrival)], keys, newest)
    assert [arrival.triples[0] for arrival in apart] == [triple for text in kept for triple in triples(text)]
