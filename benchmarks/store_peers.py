"""Stores of quads on other libraries, to compare with ours: a class each, with the same methods.

None of the libraries counts the keys of a range, so every class keeps a counter for each match, updated in the same
transaction as the quads where the library has transactions. SQLite and LMDB store terms as numbers, as ours does.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Protocol

import lmdb
import pyoxigraph as ox

from streamgauge.servers.fragments import Match, Quad
from streamgauge.servers.fragments.store import NAMED, SIZED, TEXT, DamagedStoreError, SortedRun, Writes
from streamgauge.servers.fragments.store.quad_keys import INDEX_ORDERS, WIDTH, order_for

SHAPES = [shape for shape in product((True, False), repeat=4) if any(shape)]


class Peer(Protocol):
    """The methods that are measured, and ``close``."""

    def change(self, removed: Iterable[Quad], added: Iterable[Quad]) -> object:
        """Remove quads, then add others; both are on disk when it returns."""
        ...

    def count(self, match: Match) -> int:
        """The number of matching quads."""
        ...

    def page(self, match: Match, offset: int, limit: int) -> list[Quad]:
        """At most ``limit`` matching quads from position ``offset`` on, in an order that stays the same."""
        ...

    def close(self) -> None:
        """Close the store, so that its folder can be measured or deleted."""
        ...


def counted(quad: Quad) -> Iterator[Match]:
    """The matches whose counts a quad changes, without the one of all quads."""
    for s, p, o, g in SHAPES:
        yield quad[0] if s else None, quad[1] if p else None, quad[2] if o else None, quad[3] if g else None


def differences(removed: Iterable[Quad], added: Iterable[Quad]) -> Counter[Match]:
    """The number that a change adds to the counter of each match, negative where it removes more."""
    changes = Counter(match for quad in added for match in counted(quad))
    changes.subtract(match for quad in removed for match in counted(quad))
    return changes


class Sqlite:
    """SQLite (WAL, full synchronisation): a table without row ids, five more indexes, a table of counters."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._base = sqlite3.connect(folder / "quads.sqlite", isolation_level=None)
        self._base.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-262144;"
            "CREATE TABLE term (id INTEGER PRIMARY KEY, text TEXT UNIQUE);"
            "CREATE TABLE quad (s INT, p INT, o INT, g INT, PRIMARY KEY (s, p, o, g)) WITHOUT ROWID;"
            "CREATE TABLE counter (s INT, p INT, o INT, g INT, n INT, PRIMARY KEY (s, p, o, g)) WITHOUT ROWID;"
        )
        for turn in INDEX_ORDERS[1:]:
            columns = ",".join("spog"[place] for place in turn)
            self._base.execute(f"CREATE UNIQUE INDEX quad_{columns.replace(',', '')} ON quad ({columns})")

    def change(self, removed: Iterable[Quad], added: Iterable[Quad]) -> None:
        """Remove and add in one transaction."""
        gone, come = list(removed), list(added)
        run = self._base.executemany
        self._base.execute("BEGIN")
        run("INSERT OR IGNORE INTO term (text) VALUES (?)", {(term,) for quad in come for term in quad})
        known = self._known({term for quad in (*gone, *come) for term in quad})
        run("DELETE FROM quad WHERE s=? AND p=? AND o=? AND g=?", [[known[term] for term in quad] for quad in gone])
        run("INSERT INTO quad VALUES (?, ?, ?, ?)", [[known[term] for term in quad] for quad in come])
        rows = [
            (*(0 if term is None else known[term] for term in match), n)
            for match, n in differences(gone, come).items()
            if n
        ]
        run("INSERT INTO counter VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n", rows)
        self._base.execute("COMMIT")

    def count(self, match: Match) -> int:
        """The counter of the match, 0 if it has none."""
        keys = [0 if term is None else self._id(term) for term in match]
        row = self._base.execute("SELECT n FROM counter WHERE s=? AND p=? AND o=? AND g=?", keys).fetchone()
        return row[0] if row else 0

    def page(self, match: Match, offset: int, limit: int) -> list[Quad]:
        """A page of the matching quads; those before ``offset`` are walked over."""
        bound = [("spog"[place], self._id(term)) for place, term in enumerate(match) if term is not None]
        where = " AND ".join(f"{column}={number}" for column, number in bound) or "1"
        order = ",".join("spog"[place] for place in INDEX_ORDERS[order_for(match)])
        text = "(SELECT text FROM term WHERE id = {})"
        columns = ",".join(text.format(f"q.{column}") for column in "spog")
        inner = f"SELECT * FROM quad WHERE {where} ORDER BY {order} LIMIT {limit} OFFSET {offset}"
        return self._base.execute(f"SELECT {columns} FROM ({inner}) q").fetchall()

    def close(self) -> None:
        """Close the database, whose transactions are all committed."""
        self._base.close()

    def _id(self, term: str) -> int:
        row = self._base.execute("SELECT id FROM term WHERE text=?", (term,)).fetchone()
        return row[0] if row else -1

    def _known(self, terms: set[str]) -> dict[str, int]:
        return {term: self._id(term) for term in terms}


class Oxigraph:
    """pyoxigraph's store (RocksDB), with counters in memory only, which a restart would have to count again."""

    def __init__(self, folder: Path) -> None:
        self._store = ox.Store(str(folder))
        self._counts: Counter[Match] = Counter()

    def change(self, removed: Iterable[Quad], added: Iterable[Quad]) -> None:
        """Add, remove and flush, which are not one transaction; from 1,000 quads on by the bulk loader."""
        gone, come = list(removed), list(added)
        extend = self._store.extend if len(come) < 1000 else self._store.bulk_extend
        extend(_oxigraph(quad) for quad in come)
        for quad in gone:
            self._store.remove(_oxigraph(quad))
        self._store.flush()
        self._counts.update(differences(gone, come))

    def count(self, match: Match) -> int:
        """The counter of the match, 0 if it has none."""
        return self._counts[match]

    def page(self, match: Match, offset: int, limit: int) -> list[Quad]:
        """A page of the matching quads; those before ``offset`` are walked over."""
        s, p, o, g = match
        quads = self._store.quads_for_pattern(
            None if s is None else _node(s),
            None if p is None else _node(p),
            None if o is None else _term(o),
            None if g is None else _graph(g),
        )
        some = islice(quads, offset, offset + limit)
        return [(str(q.subject), str(q.predicate), str(q.object), _name(q.graph_name)) for q in some]

    def close(self) -> None:
        """Drop the store, which closes its files."""
        del self._store


def _term(text: str) -> ox.NamedNode | ox.Literal:
    return _node(text) if text[0] == "<" else ox.Literal(text[1:-1])


def _node(text: str) -> ox.NamedNode:
    return ox.NamedNode(text[1:-1])


def _graph(text: str) -> ox.NamedNode | ox.DefaultGraph:
    return _node(text) if text else ox.DefaultGraph()


def _name(graph: object) -> str:
    return "" if isinstance(graph, ox.DefaultGraph) else str(graph)


def _oxigraph(quad: Quad) -> ox.Quad:
    s, p, o, g = quad
    return ox.Quad(_node(s), _node(p), _term(o), _graph(g))


class Entries:
    """LMDB with an entry for each quad in each of six orders, and an entry for each counter."""

    def __init__(self, folder: Path) -> None:
        self._base = lmdb.open(str(folder), map_size=1 << 36, readahead=False)
        self._numbers: dict[str, bytes] = {}
        self._texts: dict[bytes, str] = {}

    def change(self, removed: Iterable[Quad], added: Iterable[Quad]) -> None:
        """Remove and add in one transaction."""
        gone, come = list(removed), list(added)
        with self._base.begin(write=True) as writing:
            for quad in come:
                for term in quad:
                    self._give(writing, term)
            for number, turn in enumerate(INDEX_ORDERS):
                for key in sorted(self._key(number, [quad[place] for place in turn]) for quad in gone):
                    writing.delete(key)
                for key in sorted(self._key(number, [quad[place] for place in turn]) for quad in come):
                    writing.put(key, b"")
            counters = sorted((self._counter(match), n) for match, n in differences(gone, come).items() if n)
            for key, n in counters:
                writing.put(key, (int.from_bytes(writing.get(key) or b"") + n).to_bytes(8))

    def count(self, match: Match) -> int:
        """The counter of the match, 0 if it has none."""
        with self._base.begin() as reading:
            return int.from_bytes(reading.get(self._counter(match)) or b"")

    def page(self, match: Match, offset: int, limit: int) -> list[Quad]:
        """A page of the matching quads; those before ``offset`` are walked over."""
        number = order_for(match)
        prefix = self._key(number, [term for place in INDEX_ORDERS[number] if (term := match[place]) is not None])
        back = [INDEX_ORDERS[number].index(place) * 5 + 1 for place in range(4)]
        with self._base.begin() as reading, reading.cursor() as cursor:
            cursor.set_range(prefix)
            keys = islice(cursor.iternext(values=False), offset, offset + limit)
            matching = [key for key in keys if key.startswith(prefix)]
        return [
            (self._texts[k[s : s + 5]], self._texts[k[p : p + 5]], self._texts[k[o : o + 5]], self._texts[k[g : g + 5]])
            for k in matching
            for s, p, o, g in (back,)
        ]

    def close(self) -> None:
        """Close LMDB's environment, which unmaps its file."""
        self._base.close()

    def _give(self, writing: lmdb.Transaction, term: str) -> None:
        if term not in self._numbers:
            number = self._numbers[term] = len(self._numbers).to_bytes(5)
            self._texts[number] = term
            writing.put(b"t" + number, term.encode())

    def _key(self, number: int, terms: list[str]) -> bytes:
        return str(number).encode() + b"".join(self._numbers[term] for term in terms)

    def _counter(self, match: Match) -> bytes:
        unknown = b"\xff" * 5
        return b"c" + b"".join(unknown if term is None else self._numbers.get(term, b"") for term in match)


BLOCKS = frozenset(SIZED)
CACHED = 16_000
"""Blocks kept in memory: 64 MiB."""


class BlocksOnSqlite:
    """The store's records in SQLite (WAL, full synchronisation), tuned for speed; for one thread.

    A block has a page of its own (in a table with row numbers, because a body in an index would overflow), and is
    cached; a term is a row with an index. Records have no checksums, unlike those of our store on disk.
    """

    remembered = 200_000

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._base = sqlite3.connect(folder / "quads.sqlite", isolation_level=None)
        self._base.executescript(
            "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536;"
            "CREATE TABLE block (number INTEGER PRIMARY KEY, key BLOB, body BLOB);"
            "CREATE TABLE term (number INTEGER PRIMARY KEY, text TEXT); CREATE UNIQUE INDEX term_text ON term (text);"
            "CREATE TABLE mark (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID;"
        )
        self._places: dict[bytes, int] = {}
        self._next = 1
        self._cache: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        """The value of a key; ``None`` if it has none."""
        if key[0] in BLOCKS:
            return self._block(key)
        one = self._base.execute
        if key.startswith(TEXT):
            row = one("SELECT text FROM term WHERE number = ?", (int.from_bytes(key[1:]),)).fetchone()
            return row[0].encode() if row else None
        if key.startswith(NAMED):
            row = one("SELECT number FROM term WHERE text = ?", (key[len(NAMED) :].decode(),)).fetchone()
            return row[0].to_bytes(WIDTH) if row else None
        row = one("SELECT value FROM mark WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _block(self, key: bytes) -> bytes | None:
        body = self._cache.get(key)
        if body is None and key in self._places:
            (body,) = self._base.execute("SELECT body FROM block WHERE number = ?", (self._places[key],)).fetchone()
            if len(self._cache) >= CACHED:
                self._cache.clear()
            self._cache[key] = body
        return body

    def lost(self, key: bytes) -> DamagedStoreError:
        """The error for a missing record."""
        return DamagedStoreError(key.hex())

    def trouble(self) -> str:
        """Why changes are refused; empty, as they never are."""
        return ""

    def sizes(self, prefix: bytes) -> Iterator[tuple[bytes, int]]:
        """Keys of blocks with a prefix, sorted, with the size of each value in bytes."""
        ends = prefix + b"\xff" * 40
        query = "SELECT key, length(body) FROM block WHERE key BETWEEN ? AND ? ORDER BY key"
        return iter(self._base.execute(query, (prefix, ends)).fetchall())

    def commit(self, writes: Writes) -> None:
        """Write all records in one transaction."""
        self._base.execute("BEGIN")
        for key, value in writes.items():
            self._write(key, value)
        self._base.execute("COMMIT")

    def _write(self, key: bytes, value: bytes | None) -> None:
        run = self._base.execute
        if key[0] in BLOCKS:
            place = self._places.get(key)
            if value is None:
                run("DELETE FROM block WHERE number = ?", (self._places.pop(key, 0),))
                self._cache.pop(key, None)
                return
            self._cache[key] = value
            if place is None:
                self._insert([key], [value])
            else:
                run("UPDATE block SET body = ? WHERE number = ?", (value, place))
        elif key.startswith(TEXT) and value is not None:
            run("INSERT INTO term VALUES (?, ?)", (int.from_bytes(key[1:]), value.decode()))
        elif key.startswith(TEXT):
            run("DELETE FROM term WHERE number = ?", (int.from_bytes(key[1:]),))
        elif not key.startswith(NAMED):
            run("INSERT OR REPLACE INTO mark VALUES (?, ?)", (key, value))

    def _insert(self, keys: Sequence[bytes], bodies: Sequence[bytes]) -> None:
        places = range(self._next, self._next + len(keys))
        self._places.update(zip(keys, places, strict=True))
        self._next = places.stop
        self._base.executemany("INSERT INTO block VALUES (?, ?, ?)", zip(places, keys, bodies, strict=True))

    def show(self) -> None:
        """Do nothing: committed writes are readable already."""

    def fill(self, *runs: SortedRun) -> None:
        """Write records of new keys in one transaction."""
        self._base.execute("BEGIN")
        for keys, values in runs:
            if keys[0][0] in BLOCKS:
                self._insert(keys, values)
            elif keys[0].startswith(TEXT):
                rows = zip([int.from_bytes(key[1:]) for key in keys], map(bytes.decode, values), strict=True)
                self._base.executemany("INSERT INTO term VALUES (?, ?)", rows)
        self._base.execute("COMMIT")

    def close(self) -> None:
        """Close the database, whose transactions are all committed."""
        self._base.close()


PEERS: Mapping[str, type[Sqlite | Oxigraph | Entries]] = {
    "SQLite": Sqlite,
    "RocksDB (pyoxigraph)": Oxigraph,
    "LMDB, an entry a quad": Entries,
}
