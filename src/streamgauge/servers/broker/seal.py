"""Checksums of a journal: each row's own, and a seal over all rows, which every transaction writes anew.

A row's checksum tells that one of its bits changed; the seal, how many rows there are and the sum of their checksums,
tells that a row is missing, is there twice, or is an older one. Row checksums are CRC-32 (ISO 3309) of the MessagePack
of the values, so that text, numbers and nothing cannot be taken for each other. The seal is in the row of the last
publication, whose page a publication changes anyway.
"""

import os
import sqlite3
from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from streamgauge.servers.durability.witness import Witness

_WRAP: Final = (1 << 63) - 1
_BODY: Final = Struct(">QQQ")
_SUM: Final = 4
_encode = msgspec.msgpack.Encoder().encode
_SEEDS: Final = {
    name: crc32(name.encode())
    for name in ("fact", "publication", "log", "channel", "subscriber", "entry", "retry", "owner", "journal")
}
_FACT: Final = _SEEDS["fact"]


def row_sum(table: str, values: Sequence[object]) -> int:
    """The checksum of a row of a table, from 0 to 2^32 - 1; UnicodeEncodeError for text that is none."""
    return crc32(_encode(values), _SEEDS[table])


def fact_sum(triple: tuple[str, str, str]) -> int:
    """``row_sum`` of a fact."""
    return crc32(_encode(triple), _FACT)


class Sealed(NamedTuple):
    """The number of the last transaction, how many rows there are, the sum of their checksums modulo 2^63."""

    number: int
    rows: int
    total: int

    def witness(self, journal: bytes) -> Witness:
        """The same, for the file beside the journal of that name (16 bytes)."""
        return Witness(journal, self.number, self.rows + (self.total << 1) & _WRAP)


class Seal:
    """The seal as rows come and go; ``sealed`` is that of the last transaction that was committed."""

    def __init__(self, journal: bytes, sealed: Sealed) -> None:
        self.journal, self.sealed = journal, sealed
        self._rows, self._total = sealed.rows, sealed.total

    def enter(self, value: int) -> None:
        """A row with that checksum is there."""
        self._rows += 1
        self._total += value

    def entered(self, table: str, row: Sequence[object]) -> int:
        """The checksum of a row that is there from now on."""
        value = crc32(_encode(row), _SEEDS[table])
        self._rows += 1
        self._total += value
        return value

    def leave(self, value: int) -> None:
        """A row with that checksum is there no more."""
        self._rows -= 1
        self._total -= value

    def count(self, sealed: Sealed) -> None:
        """The rows were counted: so many are there, whatever came and went."""
        _, self._rows, self._total = sealed

    @property
    def next(self) -> Sealed:
        """The seal of the transaction that ends now."""
        return Sealed(self.sealed.number + 1, self._rows, self._total & _WRAP)

    def commit(self, sealed: Sealed) -> Witness:
        """A transaction is durable; what a witness has to say."""
        self.sealed = sealed
        self._total = sealed.total
        return sealed.witness(self.journal)

    def roll_back(self) -> None:
        """A transaction is not."""
        _, self._rows, self._total = self.sealed


def packed(sealed: Sealed) -> bytes:
    """A seal as bytes, with a checksum of its own."""
    body = _BODY.pack(*sealed)
    return body + crc32(body).to_bytes(_SUM)


def new_name() -> bytes:
    """A name for a journal, which no other has."""
    return os.urandom(16)


def read_name(database: sqlite3.Connection) -> bytes | None:
    """The name of a journal; ``None`` when there is none that can be believed."""
    row = database.execute("SELECT name, sum FROM journal").fetchone()
    return row[0] if row is not None and row_sum("journal", row[:1]) == row[1] else None


def read_seal(database: sqlite3.Connection) -> Sealed | None:
    """The seal that is there; ``None`` when there is none that can be believed."""
    row = database.execute("SELECT seal FROM publication").fetchone()
    if row is None or not isinstance(row[0], bytes) or len(row[0]) != _BODY.size + _SUM:
        return None
    body = row[0][:-_SUM]
    return Sealed(*_BODY.unpack(body)) if crc32(body).to_bytes(_SUM) == row[0][-_SUM:] else None
