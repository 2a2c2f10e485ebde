"""Checksums of a store's records: each value's own, and a seal over the records by which others are found.

A record's checksum is CRC-32 (ISO 3309) of its key and value, four bytes behind the value: a record that changed, or
that is another's, is found when it is read. A record that is missing cannot be found so; those whose absence would pass
for an answer (numbers of terms, sizes of blocks, the marks of a store) are counted and their checksums added up in the
seal, which every change writes anew.
"""

from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from streamgauge.servers.durability.witness import Witness

FORMAT: Final = b"m:format"
SEAL: Final = b"m:seal"
PLAIN: Final = b"1"
SUMMED: Final = b"2"
"""The formats: without checksums, and with."""

SEALED: Final = b"nsm"
"""First bytes of the keys of records that the seal sums up: numbers of terms, sizes, marks (but itself)."""

_SUM: Final = 4
_RESIDUE: Final = 0x2144DF1C
"""The CRC-32 of whatever has its own CRC-32 behind it, the lowest byte first."""
_WRAP: Final = (1 << 64) - 1
_SEAL: Final = Struct(">16sQQQ")
_KINDS: Final = {
    **{ord("0") + number: f"a block of order {number}" for number in range(6)},
    **{ord("A") + number: "a block of what left" for number in range(8)},
    ord("e"): "a block of ends by time",
    ord("k"): "a block of ends by quad",
    ord("l"): "a remembered change",
    ord("m"): "a mark of the store",
    ord("n"): "the number of a term",
    ord("s"): "the size of a block",
    ord("t"): "the text of a term",
}


class Seal(NamedTuple):
    """The store's own name (16 random bytes), the number of its last change, how many records, their sums added up."""

    store: bytes
    number: int
    records: int
    total: int

    @property
    def witness(self) -> Witness:
        """The same, for the file beside the data."""
        return Witness(self.store, self.number, self.records + (self.total << 1) & _WRAP)


@dataclass(slots=True)
class Sealing:
    """A seal as records come and go."""

    seal: Seal
    records: int = 0
    total: int = 0

    def enter(self, record: bytes) -> None:
        """A value with its checksum is there."""
        self.records += 1
        self.total += int.from_bytes(record[-_SUM:], "little")

    def leave(self, record: bytes) -> None:
        """A value with its checksum is there no more."""
        self.records -= 1
        self.total -= int.from_bytes(record[-_SUM:], "little")

    def next(self) -> bytes:
        """The seal of the change that was made, as bytes."""
        store, number, records, total = self.seal
        self.seal = Seal(store, number + 1, records + self.records, total + self.total & _WRAP)
        self.records = self.total = 0
        return _SEAL.pack(*self.seal)


def summed(key: bytes, value: bytes) -> bytes:
    """A value with its checksum."""
    return value + crc32(value, crc32(key)).to_bytes(_SUM, "little")


def whole(key: bytes, record: bytes) -> bool:
    """Whether the checksum of a value holds."""
    return crc32(record, crc32(key)) == _RESIDUE


def read_seal(record: bytes) -> Seal | None:
    """The seal of a record whose checksum holds; ``None`` for any other."""
    if len(record) != _SEAL.size + _SUM or not whole(SEAL, record):
        return None
    return Seal(*_SEAL.unpack_from(record))


def described(key: bytes) -> str:
    """A record in words."""
    return f"{_KINDS.get(key[0], 'a record of no known kind') if key else 'a record without a key'} ({key[:24].hex()})"
