"""The seal of a store: the number of its records and the sum of their checksums, rewritten by every change.

A record's own checksum detects changed bits. The seal detects that a record is missing, duplicated or outdated, and the
witness beside the store that a whole file is. Both storage engines have it: journals in SQLite, and fragments in LMDB.

A worked example: records with the checksums 3, 5 and 9 have the seal (3, 17). If the record 5 is lost the count is 2;
if it is replaced by an older version of itself with the checksum 4, the sum is 16.
"""

from collections.abc import Sequence
from os import urandom
from pathlib import Path
from typing import Final, NamedTuple

from streamgauge.servers.durability import Witness

_WRAP: Final = (1 << 63) - 1
"""SQLite's integers are signed, so totals are kept to 63 bits."""


class Seal(NamedTuple):
    """A store's id (16 random bytes), the number of its last change, the count and the sum modulo 2^63 of its records.

    Change 0 is the creation of the store.
    """

    store: bytes
    number: int = 0
    records: int = 0
    total: int = 0

    @property
    def witness(self) -> Witness:
        """The witness of the seal, for the file beside the data."""
        # Count and sum in one number; `+` binds tighter than `&`.
        return Witness(self.store, self.number, self.records + (self.total << 1) & _WRAP)

    def counts(self, records: int, total: int) -> bool:
        """Whether a full scan with this count and sum found the sealed records."""
        return (records, total & _WRAP) == (self.records, self.total)

    def contradiction(self, witness: Witness | None) -> tuple[str, str] | None:
        """Where and how a witness contradicts the seal; a seal ahead of it is fine.

        A crash may come between the commit and the write of the witness.
        """
        # No witness proves nothing: it may have been lost with a file system that keeps one file and not the other.
        if witness is None:
            return None
        if witness.store != self.store:
            return "its name", "it is another's: the witness beside it names another store"
        if self.number < witness.number:
            lost = witness.number - self.number
            return f"after change {self.number:,}", f"{lost:,} acknowledged changes are missing"
        # The same number with other contents: another history of the same store, such as a copy that went on elsewhere.
        if self.number == witness.number and self.witness != witness:
            return f"change {self.number:,}", "it is not the one that was acknowledged"
        return None


class RunningSeal:
    """The seal during a change; ``seal`` is that of the last committed one."""

    def __init__(self, seal: Seal) -> None:
        self.seal = seal
        self.roll_back()

    def enter(self, value: int, records: int = 1) -> None:
        """Count a new record by its checksum, or several by the sum of theirs."""
        self._records += records
        self._total += value

    def leave(self, value: int) -> None:
        """Subtract a deleted record by its checksum."""
        self._records -= 1
        self._total -= value

    def count(self, records: int, total: int) -> None:
        """Replace the counts by those of a full scan."""
        self._records, self._total = records, total

    @property
    def next(self) -> Seal:
        """The seal of the current change."""
        return Seal(self.seal.store, self.seal.number + 1, self._records, self._total & _WRAP)

    def commit(self, seal: Seal) -> Witness:
        """Record that a change was committed; returns the new witness."""
        # The running total may exceed 63 bits during a change; from here it is the wrapped one.
        self.seal, self._total = seal, seal.total
        return seal.witness

    def roll_back(self) -> None:
        """Record that a change was rolled back."""
        self._records, self._total = self.seal.records, self.seal.total


def new_id() -> bytes:
    """A new random id for a store."""
    return urandom(16)


def vanished(path: Path, beside: Sequence[Path]) -> str:
    """Why a missing or empty file is damaged: files ``beside`` it show that it had content. Empty if it is not."""
    if _size(path):
        return ""
    names = [file.name for file in beside if _size(file)]
    if not names:
        return ""
    state = "empty" if path.exists() else "missing"
    return (
        f"damaged from its first byte on: it is {state} though {' and '.join(names)} beside it was kept for it, and"
        f" nothing of it can be saved: restore it from a copy, or remove {' and '.join(names)} to begin anew"
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
