"""The load of an empty store with millions of quads: keys are sorted once for each order, and written as blocks."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamgauge.servers.fragments.quads import ExpiringQuad
from streamgauge.servers.fragments.store.history import TIME, stamped
from streamgauge.servers.fragments.store.key_value import KeyValueStore
from streamgauge.servers.fragments.store.quad_keys import WIDTH, TermDictionary
from streamgauge.servers.fragments.store.sorted_index import FULL

BATCH: Final = 100_000
"""Quads whose terms are written at once."""

_BLOCKS: Final = 20_000
"""Blocks that are written at once."""

_SPARE: Final = FULL // 20
"""Bytes left free in a block for keys to come."""

Keys: TypeAlias = NDArray[np.uint8]
"""A key a row."""


def numbered(quads: Iterable[ExpiringQuad], terms: TermDictionary, records: KeyValueStore) -> tuple[Keys, Keys]:
    """Keys of quads as they come, and keys with their ends of those that have one; their terms are written."""
    keys, ends = bytearray(), bytearray()
    rest = iter(quads)
    while batch := list(islice(rest, BATCH)):
        numbers, writes = terms.give(term for quad, _ in batch for term in quad)
        records.commit(writes)
        records.show()
        for (s, p, o, g), end in batch:
            key = numbers[s] + numbers[p] + numbers[o] + numbers[g]
            keys += key
            if end is not None:
                ends += key + stamped(end)
    return _rows(keys, 4 * WIDTH), _rows(ends, 4 * WIDTH + TIME)


def sequence(keys: Keys, order: Sequence[int]) -> Keys:
    """Keys with their numbers in another sequence, sorted, each once."""
    places = keys.reshape(-1, len(order), WIDTH)[:, list(order), :].reshape(len(keys), len(order) * WIDTH)
    return _once(np.ascontiguousarray(places), places.shape[1])


def latest(ends: Keys) -> Keys:
    """Keys with their ends, sorted, of each key the last end."""
    descending = ends.copy()
    descending[:, -TIME:] ^= 0xFF
    kept = _once(descending, ends.shape[1] - TIME)
    kept[:, -TIME:] ^= 0xFF
    return kept


def by_end(ends: Keys) -> Keys:
    """Ends before their keys, sorted."""
    return _once(np.roll(ends, TIME, axis=1), ends.shape[1])


def fill(name: bytes, keys: Keys, records: KeyValueStore) -> None:
    """Write sorted keys as the blocks of an order that has none."""
    width = keys.shape[1]
    blocks = _blocks(name, keys, (FULL - _SPARE) // width)
    while writes := dict(islice(blocks, _BLOCKS)):
        records.commit(writes)
        records.show()


def _blocks(name: bytes, keys: Keys, size: int) -> Iterator[tuple[bytes, bytes]]:
    for first in range(0, len(keys), size):
        body = keys[first : first + size].tobytes()
        yield name + (body[: keys.shape[1]] if first else bytes(keys.shape[1])), body


def _rows(keys: bytearray, width: int) -> Keys:
    return np.frombuffer(keys, dtype=np.uint8).reshape(-1, width)


def _once(rows: Keys, width: int) -> Keys:
    """Rows sorted, the first of those that begin with the same ``width`` bytes."""
    if not len(rows):
        return rows
    ordered = np.sort(rows.view(f"S{rows.shape[1]}").reshape(-1)).view(np.uint8).reshape(rows.shape)
    begins = np.ascontiguousarray(ordered[:, :width]).view(f"S{width}").reshape(-1)
    return ordered[np.concatenate(([True], begins[1:] != begins[:-1]))]
