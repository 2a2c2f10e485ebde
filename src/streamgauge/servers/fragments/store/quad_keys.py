"""Quads as keys: a short number for each term, and the six orders in which a quad's four numbers are sorted.

Every subset of bound places is a prefix of one of the six orders, so the quads of any match are one range of one
order: ``(?, <p>, <o>, ?)`` is the prefix *p o* of the order *p o g s*. Four orders (the rotations) cover all subsets
but *s o* and *p g*, for which the last two exist. A number is never assigned to another term.

An empty store is loaded with millions of quads by sorting their keys once for each order.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import chain, compress, count, islice
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streamgauge.model.terms import Term
from streamgauge.servers.fragments import ExpiringQuad, Match, Quad
from streamgauge.servers.fragments.store import FULL, NAMED, TEXT, KeyValueStore, Writes

WIDTH: Final = 5
"""Bytes of a term's number: enough for 100 new terms a second for 300 years."""

_DIGESTED, _NEXT = b"n#", b"m:terms"
_MAX_KEY_TEXT = 400
"""Bytes of a text that is used as a key; LMDB's keys have at most 511."""
_MET_BITS = 1 << 27

TermIds: TypeAlias = NDArray[np.int64]
"""Numbers of terms, one-dimensional."""

Ranks: TypeAlias = NDArray[np.uint32]
"""For one place, the rank of each quad's number: how many distinct smaller numbers occur in that place."""


class TermDictionary:
    """Terms and their numbers over a key-value store, with a bounded cache of lookups."""

    def __init__(self, records: KeyValueStore) -> None:
        self._records = records
        self._numbers: dict[Term, bytes] = {}
        self.texts: dict[bytes, Term] = _TermTexts(records)
        """Terms by number, read from the store when they are missing here."""

    def number(self, term: Term) -> bytes | None:
        """The number of a term; ``None`` if the store does not know the term."""
        number = self._numbers.get(term)
        if number is None and (number := self._records.get(_term_key(term))) is not None:
            if len(self._numbers) >= self._records.remembered:
                # All at once: no order of use has to be kept.
                self._numbers.clear()
            self._numbers[term] = number
        return number

    def key(self, quad: Quad) -> bytes | None:
        """A quad's key, the concatenated numbers of its terms; ``None`` if the store does not know a term."""
        numbers = [self.number(term) for term in quad]
        return None if None in numbers else b"".join(number for number in numbers if number is not None)

    def assign(self, terms: Iterable[Term]) -> tuple[dict[Term, bytes], dict[bytes, bytes | None]]:
        """The numbers of terms, and the writes that assign one to each new term."""
        numbers: dict[Term, bytes] = {}
        writes: dict[bytes, bytes | None] = {}
        following = int.from_bytes(self._records.get(_NEXT) or b"")
        for term in dict.fromkeys(terms):
            number = self.number(term)
            if number is None:
                number = following.to_bytes(WIDTH)
                following += 1
                # A worked example: the first term is `<a>`. Number 0 leads to its text, its text leads to number 0,
                # and 1 comes next.
                writes |= {TEXT + number: term.encode(), _term_key(term): number, _NEXT: following.to_bytes(8)}
            numbers[term] = number
        return numbers, writes

    @staticmethod
    def assigned(writes: Writes) -> list[bytes]:
        """The numbers of new terms in the writes of ``assign``."""
        return [key[1:] for key in writes if key[:1] == TEXT]

    def assign_loaded(self, terms: Sequence[Term], met: "MetHashes") -> TermIds:
        """Numbers for distinct terms of a store that is being loaded, in order; new terms are written.

        ``met`` has the hashes of all terms with a number, so that most new terms need no lookup.
        """
        numbers, fresh = np.zeros(len(terms), dtype=np.int64), np.ones(len(terms), dtype=np.bool_)
        again = met.add(np.fromiter(map(hash, terms), dtype=np.int64, count=len(terms)))
        for place in np.flatnonzero(again).tolist():
            number = self.number(terms[place])
            if number is not None:
                numbers[place], fresh[place] = int.from_bytes(number), False
        following = int.from_bytes(self._records.get(_NEXT) or b"")
        end = following + int(fresh.sum())
        numbers[fresh] = np.arange(following, end)
        if end > following:
            self._write_first([*compress(terms, fresh.tolist())], cut_rows(number_rows(numbers[fresh])))
            self._records.commit({_NEXT: end.to_bytes(8)})
            self._records.show()
        return numbers

    def _write_first(self, terms: Sequence[Term], numbers: Sequence[bytes]) -> None:
        """Write new terms, in the order of their numbers."""
        texts = [*map(str.encode, terms)]
        if max(map(len, texts)) > _MAX_KEY_TEXT:
            named = sorted(zip(map(_term_key, terms), numbers, strict=True))
            keys, values = [key for key, _ in named], [number for _, number in named]
        else:  # sorting str is faster, in the same order as UTF-8
            order = sorted(range(len(terms)), key=terms.__getitem__)
            keys, values = [NAMED + texts[place] for place in order], [numbers[place] for place in order]
        self._records.fill((keys, values), ([TEXT + number for number in numbers], texts))

    @property
    def begun(self) -> bool:
        """Whether any term has ever had a number."""
        return self._records.get(_NEXT) is not None

    def drop(self, numbers: Iterable[bytes]) -> Writes:
        """The writes that delete terms and their numbers."""
        return {key: None for number in numbers for key in (TEXT + number, _term_key(self.texts[number]))}

    def has(self, number: bytes) -> bool:
        """Whether a term has this number."""
        return number in self.texts or self._records.get(TEXT + number) is not None

    def forget(self, numbers: Iterable[bytes]) -> None:
        """Remove dropped terms from the cache, once their deletion is shown."""
        for number in numbers:
            self._numbers.pop(self.texts.pop(number, ""), None)


class MetHashes:
    """The hashes of terms met so far, as a Bloom filter (CACM 13(7), 1970) of 16 MiB with one hash function.

    After a million terms, one new term in a hundred seems met although it was not, and costs a lookup.
    """

    def __init__(self) -> None:
        self._bits = np.zeros(_MET_BITS // 8, dtype=np.uint8)

    def add(self, hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these hashes seem to have been added by earlier calls; adds all of them."""
        # Python's hashes of text are well mixed, so their lowest bits will do.
        bits = hashes & (_MET_BITS - 1)
        places, masks = bits >> 3, (1 << (bits & 7)).astype(np.uint8)
        again: NDArray[np.bool_] = (self._bits[places] & masks) != 0
        # `|=` with an index array keeps only one of several bits that fall into the same byte.
        np.bitwise_or.at(self._bits, places, masks)
        return again


class _TermTexts(dict[bytes, Term]):
    def __init__(self, records: KeyValueStore) -> None:
        self._records = records

    def __missing__(self, number: bytes) -> Term:
        text = self._records.get(TEXT + number)
        if text is None:
            raise self._records.lost(TEXT + number)
        if len(self) >= self._records.remembered:
            self.clear()
        try:
            term = self[number] = text.decode()
        except UnicodeDecodeError:
            raise self._records.lost(TEXT + number) from None
        return term


def _term_key(term: Term) -> bytes:
    """The key of a term's number: the term's text, or a digest of a text that is too long for a key."""
    text = term.encode()
    return NAMED + text if len(text) <= _MAX_KEY_TEXT else _DIGESTED + sha256(text).digest()


KEY: Final = 4 * WIDTH
"""Bytes of a quad's key: the numbers of its four terms."""

IndexOrder: TypeAlias = tuple[int, int, int, int]
"""A permutation of the places of a quad: 0 subject, 1 predicate, 2 object, 3 graph."""

KeyRow: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""The four numbers of a key, in its order."""

INDEX_ORDERS: Final[tuple[IndexOrder, ...]] = (
    (0, 1, 2, 3),
    (1, 2, 3, 0),
    (2, 3, 0, 1),
    (3, 0, 1, 2),
    (0, 2, 1, 3),
    (1, 3, 0, 2),
)
"""The six orders; the first is that of quads' keys."""

_TO_QUAD: Final = tuple(tuple(order.index(place) * WIDTH for place in range(4)) for order in INDEX_ORDERS)
_TO_ORDER: Final = tuple(tuple(place * WIDTH for place in order) for order in INDEX_ORDERS)
_ORDERS_BY_PLACES: Final = {
    tuple(place in order[:index] for place in range(4)): number
    # Where several orders begin with the same places, the first order stays, as later entries replace earlier ones.
    for number, order in reversed(list(enumerate(INDEX_ORDERS)))
    for index in range(5)
}
_ROW: Final = Struct(f"{WIDTH}s" * 4)

PLACES: Final = tuple((order.index(0), order.index(1), order.index(2), order.index(3)) for order in INDEX_ORDERS)
"""For each order, the positions of subject, predicate, object and graph in it."""


def order_for(match: Match) -> int:
    """The number of the order that begins with the bound places of a match."""
    s, p, o, g = match
    return _ORDERS_BY_PLACES[s is not None, p is not None, o is not None, g is not None]


def in_order(key: bytes, number: int) -> bytes:
    """A quad's key, rearranged to the order of that number."""
    a, b, c, d = _TO_ORDER[number]
    return key[a : a + WIDTH] + key[b : b + WIDTH] + key[c : c + WIDTH] + key[d : d + WIDTH]


def quad_key(key: bytes, number: int) -> bytes:
    """The quad's key from a key in the order of that number; the inverse of ``in_order``."""
    a, b, c, d = _TO_QUAD[number]
    return key[a : a + WIDTH] + key[b : b + WIDTH] + key[c : c + WIDTH] + key[d : d + WIDTH]


def rows(keys: bytes) -> Iterator[KeyRow]:
    """The numbers of concatenated keys, a tuple each."""
    return cast("Iterator[KeyRow]", _ROW.iter_unpack(keys))


def cut_keys(keys: bytes) -> Iterator[bytes]:
    """The single keys of concatenated ones."""
    return (keys[at : at + KEY] for at in range(0, len(keys), KEY))


def key_matches(key: bytes, places: Sequence[tuple[int, bytes]]) -> bool:
    """Whether a key has these numbers at these byte offsets."""
    return all(key[at : at + WIDTH] == number for at, number in places)


TIME: Final = 8
"""Bytes of a time."""

_ZERO: Final = 1 << 63


def stamped(time: int) -> bytes:
    """A time (ms) as bytes that sort like times, negative ones included."""
    # Worked examples: -1 is written as 2^63 - 1, 0 as 2^63, 1 as 2^63 + 1. Without the shift -1 could not be written.
    return (time + _ZERO).to_bytes(TIME)


def _stamped_rows(times: NDArray[np.int64]) -> NDArray[np.uint8]:
    """``stamped`` for an array of times (ms), a row each."""
    return (times.astype(np.uint64) ^ np.uint64(_ZERO)).astype(">u8").reshape(-1, 1).view(np.uint8)


def time_of(end: bytes) -> int:
    """The time (ms) of ``stamped`` bytes."""
    return int.from_bytes(end) - _ZERO


BATCH: Final = 100_000
"""Quads whose terms are written in one transaction."""

_BLOCKS: Final = 4_000
"""Blocks written in one transaction."""

_SPARE: Final = FULL // 20
"""Bytes left free in a block for later keys."""

_WORD: Final = 64
"""Bits of the words in which packed ranks are sorted."""

Keys: TypeAlias = NDArray[np.uint8]
"""Keys as an array of bytes, shape (keys, width)."""

QuadIds: TypeAlias = NDArray[np.integer[Any]]
"""The numbers of quads' terms, shape (quads, 4)."""


class QuadBatch(NamedTuple):
    """Quads of one batch, and (index, end in ms) of those with an end."""

    quads: Sequence[Quad]
    ends: Sequence[tuple[int, int]] = ()


def batches(quads: Iterable[ExpiringQuad]) -> Iterator[QuadBatch]:
    """Quads in batches of ``BATCH``."""
    rest = iter(quads)
    while batch := list(islice(rest, BATCH)):
        ends = [(place, end) for place, (_, end) in enumerate(batch) if end is not None]
        yield QuadBatch([quad for quad, _ in batch], ends)


def numbered(loaded: Iterable[QuadBatch], terms: TermDictionary, records: KeyValueStore) -> tuple[QuadIds, Keys]:
    """Number the terms of quads, writing new ones; returns the numbers, and keys with ends of quads that have one."""
    ids: list[QuadIds] = [np.zeros((0, 4), dtype=np.uint32)]
    ends: list[Keys] = [np.zeros((0, KEY + TIME), dtype=np.uint8)]
    met = MetHashes()
    fresh = not terms.begun
    for quads, ending in loaded:
        places = defaultdict[Term, int](count().__next__)
        mentioned = chain.from_iterable(quads)
        indices = np.fromiter(map(places.__getitem__, mentioned), dtype=np.int64, count=4 * len(quads))
        numbers = terms.assign_loaded([*places], met) if fresh else _assigned_again([*places], terms, records)
        quads_of_numbers = numbers[indices].reshape(-1, 4)
        # Half the memory.
        ids.append(quads_of_numbers.astype(np.uint32) if int(numbers.max(initial=0)) < 1 << 32 else quads_of_numbers)
        if ending:
            places_ended, times = np.array(ending, dtype=np.int64).T
            rows = number_rows(quads_of_numbers[places_ended]).reshape(-1, KEY)
            ends.append(np.hstack([rows, _stamped_rows(times)]))
    return np.concatenate(ids), np.concatenate(ends)


def _assigned_again(terms: Sequence[Term], dictionary: TermDictionary, records: KeyValueStore) -> TermIds:
    """Numbers of terms, some of which an interrupted load has written already."""
    numbers, writes = dictionary.assign(terms)
    records.commit(writes)
    records.show()
    return np.array([int.from_bytes(numbers[term]) for term in terms], dtype=np.int64)


def number_rows(numbers: NDArray[np.integer[Any]]) -> Keys:
    """Numbers as rows of ``WIDTH`` bytes, big-endian."""
    wide = np.ascontiguousarray(numbers, dtype=">u8").reshape(-1, 1).view(np.uint8)
    return np.ascontiguousarray(wide[:, 8 - WIDTH :])


def cut_rows(rows: Keys) -> list[bytes]:
    """The rows as ``bytes`` objects."""
    width, raw = rows.shape[1], rows.tobytes()
    return [raw[at : at + width] for at in range(0, len(raw), width)]


def sequences(ids: QuadIds) -> Iterator[Keys]:
    """The keys of quads in each of ``INDEX_ORDERS``, sorted and without duplicates.

    Sorting 20-byte keys is slow. Numbers are replaced by their ranks among the distinct numbers of their place, and the
    four ranks are packed into one 64-bit word where they fit. With the subjects 4, 9 and 70, one predicate and the
    objects 5 to 8, the quad (9, 2, 7, 0) is 01 10 in the first order: two bits for rank 1 of three subjects, none for
    the only predicate, two for rank 2 of four objects, none for the only graph.
    """
    values, ranks = [], []
    for place in range(4):
        # A table over all numbers: they have few gaps in a store that is being loaded, and no sort is needed.
        there = np.zeros(int(ids[:, place].max(initial=0)) + 1, dtype=np.bool_)
        there[ids[:, place]] = True
        values.append(np.flatnonzero(there))
        ranks.append((np.cumsum(there, dtype=np.uint32) - 1)[ids[:, place]])
    tables = [number_rows(value) for value in values]
    bits = [max(0, len(value) - 1).bit_length() for value in values]
    for order in INDEX_ORDERS:
        ranks = _sorted_ranks(ranks, order, bits)
        yield np.hstack([tables[place][ranks[place]] for place in order])


def _sorted_ranks(ranks: Sequence[Ranks], order: IndexOrder, bits: Sequence[int]) -> list[Ranks]:
    """The ranks by place, sorted by an order and without duplicates; ``bits`` is the width of each place's ranks."""
    # More than 2^64 combinations: then the ranks are sorted place by place, which takes longer.
    if sum(bits) > _WORD:
        taken = np.lexsort([ranks[place] for place in reversed(order)])
        rows = np.stack([rank[taken] for rank in ranks], axis=1)
        return [*rows[np.concatenate(([True], (rows[1:] != rows[:-1]).any(axis=1)))[: len(rows)]].T]
    packed = np.zeros(len(ranks[0]), dtype=np.uint64)
    for place in order:
        packed <<= np.uint64(bits[place])
        packed |= ranks[place]
    packed.sort()
    packed = packed[np.concatenate(([True], packed[1:] != packed[:-1]))[: len(packed)]]
    # Unpacked from the last place of the order on, which has the lowest bits.
    ranks_sorted = [*ranks]
    for place in reversed(order):
        ranks_sorted[place] = (packed & np.uint64((1 << bits[place]) - 1)).astype(np.uint32)
        packed >>= np.uint64(bits[place])
    return ranks_sorted


def latest(ends: Keys) -> Keys:
    """Keys with their ends, sorted, with only the latest end of each key."""
    # `_once` keeps the first row of a key: with the bits of its time inverted that is the latest.
    descending = ends.copy()
    descending[:, -TIME:] ^= 0xFF
    kept = _once(descending, ends.shape[1] - TIME)
    kept[:, -TIME:] ^= 0xFF
    return kept


def by_end(ends: Keys) -> Keys:
    """Rows with the end before the key, sorted."""
    return _once(np.roll(ends, TIME, axis=1), ends.shape[1])


def fill(name: bytes, keys: Keys, records: KeyValueStore) -> None:
    """Write sorted keys as the blocks of an index that has none."""
    width = keys.shape[1]
    size = (FULL - _SPARE) // width * width
    for first in range(0, len(keys), _BLOCKS * size // width):
        raw = keys[first : first + _BLOCKS * size // width].tobytes()
        bodies = [raw[at : at + size] for at in range(0, len(raw), size)]
        borders = [name + body[:width] for body in bodies]
        if first == 0:
            # The first block begins at the least key there can be, so that every key has a block.
            borders[0] = name + bytes(width)
        records.fill((borders, bodies))


def _once(rows: Keys, width: int) -> Keys:
    """The sorted rows, only the first of those with equal first ``width`` bytes."""
    if not len(rows):
        return rows
    ordered = np.sort(rows.view(f"S{rows.shape[1]}").reshape(-1)).view(np.uint8).reshape(rows.shape)
    begins = np.ascontiguousarray(ordered[:, :width]).view(f"S{width}").reshape(-1)
    return ordered[np.concatenate(([True], begins[1:] != begins[:-1]))]
