"""Values grouped by key, also those of files larger than memory: the older ones are in a temporary database.

RDF has no order, so the triples of a graph or a subject may be anywhere in a file. They are put together here: a
window of values is in memory, and each time that it is full its groups become rows, found again by the hash of their
key. Keys come in the order of their first appearance.

Worked example, with a window of two values: of ``a 1, b 2, a 3`` the rows are ``a [1]``, ``b [2]`` and ``a [3]``, the
groups ``a [1, 3]`` and ``b [2]``.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from tempfile import gettempdir
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from streamgauge.formats.documents import FormatError
from streamgauge.model.terms import Triple

WINDOW: Final = 50_000
"""Values in memory: triples of readings take about 25 MB then."""

_CACHE_KIB: Final = 4096
"""Pages of the database in memory."""

_NEAR: Final = 1000
"""Groups read at a time."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[tuple[str, ...], list[int | str | Triple]]).decode

Key: TypeAlias = tuple[str, ...]
V = TypeVar("V", bound=int | str | Triple)


class Groups(Generic[V]):
    """Lists of values by key; a key without values is a member of a set.

    ``place`` is named by the FormatError where the disk is full.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._window: dict[Key, list[V]] = {}
        self._aside: dict[Key, list[V]] = {}
        self._size = 0
        self._open: list[V] = []
        self._before = 0
        self._rows: _Rows | None = None
        self._near: dict[Key, list[V]] = {}
        """The groups about the place that is read: what belongs together mostly stands together."""

    def begin(self, key: Key) -> list[V]:
        """The list that takes further values of a key, until the next call that adds any."""
        self._size += len(self._open) - self._before
        if self._size >= WINDOW:
            self._store()
        values = self._window.get(key)
        if values is None:
            values = self._window[key] = []
            self._size += 1
        self._open, self._before = values, len(values)
        return values

    def put_aside(self, key: Key, value: V) -> None:
        """Give a key a value that comes before the others of its window and does not make the key appear."""
        if self._size >= WINDOW:
            self._store()
        self._aside.setdefault(key, []).append(value)
        self._size += 1

    def get(self, key: Key) -> list[V]:
        """The values of a key; empty if it has none."""
        if key in self._near:
            return self._near[key]
        stored = [] if self._rows is None else [values for _, _, values in self._stored(self._rows, key)]
        return [*chain(*stored), *self._aside.get(key, ()), *self._window.get(key, ())]

    def __contains__(self, key: Key) -> bool:
        """Whether a key has appeared."""
        if key in self._window or self._rows is None:
            return key in self._window
        return any(leads for _, leads, _ in self._stored(self._rows, key))

    def __bool__(self) -> bool:
        """Whether any key has appeared."""
        return bool(self._window) or self._rows is not None

    def forget(self, key: Key) -> bool:
        """Remove a key without values that is still in memory; whether it was there."""
        known = self._window.pop(key, None) is not None
        self._size -= known
        return known

    def __iter__(self) -> Iterator[tuple[Key, list[V]]]:
        """Every key with its values; none may be added meanwhile."""
        if self._rows is None:
            for key, values in self._window.items():
                yield key, [*self._aside[key], *values] if key in self._aside else values
            return
        self._store()
        with self._room():
            groups, before = self._rows.groups(), dict[Key, list[V]]()
            while block := dict(islice(groups, _NEAR)):
                self._near = before | block
                yield from block.items()
                before = block

    def _store(self) -> None:
        self._near = {}
        with self._room():
            if self._rows is None:
                self._rows = _Rows()
            self._rows.add(self._window, self._aside)
        self._window, self._aside, self._size, self._open, self._before = {}, {}, 0, [], 0

    def _stored(self, rows: "_Rows", key: Key) -> "Iterator[_Row]":
        with self._room():
            yield from rows.of(key)

    @contextmanager
    def _room(self) -> Iterator[None]:
        """FormatError for a full disk."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise FormatError(
                f"{self._place}: it is too large to be put together in memory, and {gettempdir()} cannot take it "
                f"({error}): set TMPDIR to another folder"
            ) from error


_Row: TypeAlias = tuple[int, bool, list[Any]]
"""Its number, whether the key appears with it, and its values."""


class _Rows:
    """The groups of each window in a temporary database, which SQLite deletes when they are."""

    def __init__(self) -> None:
        # Readers may be created by one thread and read by another, one at a time.
        self._base = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for sentence in (
            f"PRAGMA cache_size = -{_CACHE_KIB}",
            "PRAGMA journal_mode = OFF",
            "CREATE TABLE row (number INTEGER PRIMARY KEY, hash INTEGER, leads INTEGER, data BLOB)",
        ):
            self._base.execute(sentence)
        self._indexed = False

    def add(self, window: dict[Key, list[Any]], aside: dict[Key, list[Any]]) -> None:
        """Append a row for each key."""
        leading = ((hash(key), 1, _encode((key, [*aside.pop(key, ()), *values]))) for key, values in window.items())
        insert = "INSERT INTO row (hash, leads, data) VALUES (?, ?, ?)"
        self._base.execute("BEGIN")
        self._base.executemany(insert, leading)
        self._base.executemany(insert, ((hash(key), 0, _encode((key, values))) for key, values in aside.items()))
        self._base.execute("COMMIT")

    def of(self, key: Key) -> Iterator[_Row]:
        """The rows of a key in their order."""
        self._index()
        found = self._base.execute("SELECT number, leads, data FROM row WHERE hash = ? ORDER BY number", (hash(key),))
        for number, leads, data in found:
            other, values = _decode(data)
            # Different keys may have one hash.
            if other == key:
                yield number, bool(leads), values

    def groups(self) -> Iterator[tuple[Key, list[Any]]]:
        """Each key that appeared, with all its values, in order of first appearance."""
        self._index()
        self._base.execute("DROP TABLE IF EXISTS parted")
        self._base.execute("CREATE TABLE parted (hash INTEGER PRIMARY KEY)")
        self._base.execute("INSERT INTO parted SELECT hash FROM row GROUP BY hash HAVING count(*) > 1")
        rows = self._base.execute(
            "SELECT number, hash IN (SELECT hash FROM parted), data FROM row WHERE leads ORDER BY number"
        )
        for number, parted, data in rows:
            key, values = _decode(data)
            if not parted:
                yield key, values
            elif next(first for first, leads, _ in self.of(key) if leads) == number:
                yield key, [value for _, _, part in self.of(key) for value in part]

    def _index(self) -> None:
        """Build the index with the first search: that is faster than keeping one while rows are added."""
        if not self._indexed:
            self._base.execute("CREATE INDEX by_hash ON row (hash)")
            self._indexed = True

    def __del__(self) -> None:
        """Delete the database; readers that are given up half-way have no other moment for it."""
        self._base.close()
