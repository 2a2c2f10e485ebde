"""The sequences in which six orders have the numbers of a quad's terms: every set of places begins one of them."""

from collections.abc import Iterator
from struct import Struct
from typing import Final, TypeAlias, cast

from streamgauge.servers.fragments.quads import Match
from streamgauge.servers.fragments.storing.terms import WIDTH

KEY: Final = 4 * WIDTH
"""Bytes of a quad's key: the numbers of its terms."""

Turn: TypeAlias = tuple[int, int, int, int]
"""Places of a quad (subject, predicate, object, graph by number) in a sequence."""

Row: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""The numbers of a key, in its sequence."""

TURNS: Final[tuple[Turn, ...]] = ((0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2), (0, 2, 1, 3), (1, 3, 0, 2))
"""The first is that of keys."""

_BACK: Final = tuple(tuple(turn.index(place) * WIDTH for place in range(4)) for turn in TURNS)
_THERE: Final = tuple(tuple(place * WIDTH for place in turn) for turn in TURNS)
_WAYS: Final = {
    tuple(place in turn[:given] for place in range(4)): number
    for number, turn in reversed(list(enumerate(TURNS)))
    for given in range(5)
}
_ROW: Final = Struct(f"{WIDTH}s" * 4)

PLACES: Final = tuple((turn.index(0), turn.index(1), turn.index(2), turn.index(3)) for turn in TURNS)
"""Where in each sequence the four terms of a quad are."""


def way(match: Match) -> int:
    """The sequence, by number, that the places which a match gives begin."""
    s, p, o, g = match
    return _WAYS[s is not None, p is not None, o is not None, g is not None]


def turned(key: bytes, number: int) -> bytes:
    """A key in the sequence of that number."""
    a, b, c, d = _THERE[number]
    return key[a : a + WIDTH] + key[b : b + WIDTH] + key[c : c + WIDTH] + key[d : d + WIDTH]


def straight(key: bytes, number: int) -> bytes:
    """The key of what is in the sequence of that number."""
    a, b, c, d = _BACK[number]
    return key[a : a + WIDTH] + key[b : b + WIDTH] + key[c : c + WIDTH] + key[d : d + WIDTH]


def rows(keys: bytes) -> Iterator[Row]:
    """The numbers of keys that come one after the other."""
    return cast(Iterator[Row], _ROW.iter_unpack(keys))
