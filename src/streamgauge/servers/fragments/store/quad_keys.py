"""Quads as keys: a short number for each term, and the six orders in which a quad's four numbers are sorted.

Every set of given places begins one of the six orders, so that the quads of any match are one range of one order:
``(?, <p>, <o>, ?)`` is the prefix *p o* of the order *p o g s*. A number is never given to another term.

An empty store with millions of quads is loaded by sorting their keys once for each order.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import chain, islice
from struct import Struct
from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streamgauge.model.terms import Term
from streamgauge.servers.fragments import ExpiringQuad, Match, Quad
from streamgauge.servers.fragments.store import FULL, KeyValueStore, Writes

WIDTH: Final = 5
"""Bytes of a number: 100 new terms a second for 300 years."""

_TEXT, _NUMBER, _NEXT = b"t", b"n", b"m:terms"
_NAMED = _NUMBER + b"="
_LONGEST = 400
_REMEMBERED = 200_000


class TermDictionary:
    """The dictionary on a records, with a bounded memory of what was asked."""

    def __init__(self, records: KeyValueStore) -> None:
        self._records = records
        self._numbers: dict[Term, bytes] = {}
        self.texts: dict[bytes, Term] = _TermTexts(records)
        """The term of a number that was given."""

    def number(self, term: Term) -> bytes | None:
        """The number of a term; ``None`` when it has none."""
        number = self._numbers.get(term)
        if number is None:
            number = self._records.get(_term_key(term))
            if number is not None:
                self._remember(term, number)
        return number

    def key(self, quad: Quad) -> bytes | None:
        """The numbers of a quad's terms, one after the other; ``None`` when a term has none."""
        numbers = [self.number(term) for term in quad]
        return None if None in numbers else b"".join(number for number in numbers if number is not None)

    def give(self, terms: Iterable[Term]) -> tuple[dict[Term, bytes], dict[bytes, bytes | None]]:
        """Numbers for terms, and what is to be written for those that had none."""
        numbers: dict[Term, bytes] = {}
        writes: dict[bytes, bytes | None] = {}
        following = int.from_bytes(self._records.get(_NEXT) or b"")
        for term in dict.fromkeys(terms):
            number = self.number(term)
            if number is None:
                number = following.to_bytes(WIDTH)
                following += 1
                writes |= {_TEXT + number: term.encode(), _term_key(term): number, _NEXT: following.to_bytes(8)}
            numbers[term] = number
        return numbers, writes

    @staticmethod
    def given(writes: Writes) -> list[bytes]:
        """The numbers that ``give`` gave to terms that had none, by what is to be written for them."""
        return [key[1:] for key in writes if key[:1] == _TEXT]

    def give_first(self, terms: Iterable[Term], met: set[int]) -> dict[Term, bytes]:
        """Numbers for terms of a store that is being loaded, those that are new are written.

        ``met`` has the hashes of all terms that got a number: others are not looked for among the records.
        """
        numbers: dict[Term, bytes] = {}
        texts: list[tuple[bytes, bytes]] = []
        keys: list[tuple[bytes, bytes]] = []
        following = int.from_bytes(self._records.get(_NEXT) or b"")
        for term in dict.fromkeys(terms):
            code, known = hash(term), None
            if code in met:
                known = self._records.get(_term_key(term))
            if known is None:
                known = following.to_bytes(WIDTH)
                following += 1
                text = term.encode()
                texts.append((_TEXT + known, text))
                keys.append((_NAMED + text if len(text) <= _LONGEST else _term_key(term), known))
                met.add(code)
            numbers[term] = known
        keys.sort()
        self._records.fill(keys + texts)
        self._records.commit({_NEXT: following.to_bytes(8)})
        self._records.show()
        return numbers

    @property
    def begun(self) -> bool:
        """Whether a term was given a number."""
        return self._records.get(_NEXT) is not None

    def drop(self, numbers: Iterable[bytes]) -> Writes:
        """The writes by which terms lose their numbers."""
        return {key: None for number in numbers for key in (_TEXT + number, _term_key(self.texts[number]))}

    def has(self, number: bytes) -> bool:
        """Whether a number is a term's."""
        return number in self.texts or self._records.get(_TEXT + number) is not None

    def forget(self, numbers: Iterable[bytes]) -> None:
        """Hold no more what was dropped, once that is shown."""
        for number in numbers:
            self._numbers.pop(self.texts.pop(number, ""), None)

    def _remember(self, term: Term, number: bytes) -> None:
        if len(self._numbers) >= _REMEMBERED:
            self._numbers.clear()
        self._numbers[term] = number


class _TermTexts(dict[bytes, Term]):
    def __init__(self, records: KeyValueStore) -> None:
        self._records = records

    def __missing__(self, number: bytes) -> Term:
        text = self._records.get(_TEXT + number)
        if text is None:
            raise self._records.lost(_TEXT + number)
        if len(self) >= _REMEMBERED:
            self.clear()
        try:
            term = self[number] = text.decode()
        except UnicodeDecodeError:
            raise self._records.lost(_TEXT + number) from None
        return term


def _term_key(term: Term) -> bytes:
    """The key of a term: its text, or a digest of a text that is too long for a key."""
    text = term.encode()
    return _NAMED + text if len(text) <= _LONGEST else _NUMBER + b"#" + sha256(text).digest()


KEY: Final = 4 * WIDTH
"""Bytes of a quad's key: the numbers of its terms."""

IndexOrder: TypeAlias = tuple[int, int, int, int]
"""Places of a quad (subject, predicate, object, graph by number) in a sequence."""

KeyRow: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""The numbers of a key, in its sequence."""

INDEX_ORDERS: Final[tuple[IndexOrder, ...]] = (
    (0, 1, 2, 3),
    (1, 2, 3, 0),
    (2, 3, 0, 1),
    (3, 0, 1, 2),
    (0, 2, 1, 3),
    (1, 3, 0, 2),
)
"""The first is that of keys."""

_TO_QUAD: Final = tuple(tuple(order.index(place) * WIDTH for place in range(4)) for order in INDEX_ORDERS)
_TO_ORDER: Final = tuple(tuple(place * WIDTH for place in order) for order in INDEX_ORDERS)
_ORDERS_BY_PLACES: Final = {
    tuple(place in order[:given] for place in range(4)): number
    for number, order in reversed(list(enumerate(INDEX_ORDERS)))
    for given in range(5)
}
_ROW: Final = Struct(f"{WIDTH}s" * 4)

PLACES: Final = tuple((order.index(0), order.index(1), order.index(2), order.index(3)) for order in INDEX_ORDERS)
"""Where in each sequence the four terms of a quad are."""


def order_for(match: Match) -> int:
    """The sequence, by number, that the places which a match gives begin."""
    s, p, o, g = match
    return _ORDERS_BY_PLACES[s is not None, p is not None, o is not None, g is not None]


def in_order(key: bytes, number: int) -> bytes:
    """A key in the sequence of that number."""
    a, b, c, d = _TO_ORDER[number]
    return key[a : a + WIDTH] + key[b : b + WIDTH] + key[c : c + WIDTH] + key[d : d + WIDTH]


def quad_key(key: bytes, number: int) -> bytes:
    """The key of what is in the sequence of that number."""
    a, b, c, d = _TO_QUAD[number]
    return key[a : a + WIDTH] + key[b : b + WIDTH] + key[c : c + WIDTH] + key[d : d + WIDTH]


def rows(keys: bytes) -> Iterator[KeyRow]:
    """The numbers of keys that come one after the other."""
    return cast(Iterator[KeyRow], _ROW.iter_unpack(keys))


def cut_keys(keys: bytes) -> Iterator[bytes]:
    """Keys that come one after the other."""
    return (keys[at : at + KEY] for at in range(0, len(keys), KEY))


def key_matches(key: bytes, places: Sequence[tuple[int, bytes]]) -> bool:
    """Whether a key has these numbers at these places, in bytes."""
    return all(key[at : at + WIDTH] == number for at, number in places)


TIME: Final = 8
"""Bytes of a time."""

_ZERO: Final = 1 << 63


def stamped(time: int) -> bytes:
    """A time (ms) as bytes that sort as times do."""
    return (time + _ZERO).to_bytes(TIME)


def time_of(end: bytes) -> int:
    """The time (ms) of such bytes."""
    return int.from_bytes(end) - _ZERO


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
    rest, met = iter(quads), set[int]()
    fresh = not terms.begun
    while batch := list(islice(rest, BATCH)):
        mentioned = chain.from_iterable([quad for quad, _ in batch])
        if fresh:
            numbers = terms.give_first(mentioned, met)
        else:  # what a load that did not end wrote
            numbers, writes = terms.give(mentioned)
            records.commit(writes)
            records.show()
        parts = [numbers[s] + numbers[p] + numbers[o] + numbers[g] for (s, p, o, g), _ in batch]
        keys += b"".join(parts)
        ends += b"".join([key + stamped(end) for key, (_, end) in zip(parts, batch, strict=True) if end is not None])
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
