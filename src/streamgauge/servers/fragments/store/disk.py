"""A store in a folder, on LMDB, which survives restarts and kill -9; memory has only the borders of blocks.

A record's checksum is the CRC-32 (ISO 3309) of its key and value, appended to the value: a record that was altered, or
stored under another key, is detected when it is read. That cannot detect a missing record. Records whose absence would
look like a valid answer (numbers of terms, sizes of blocks, marks) are therefore counted in the seal. Before LMDB maps
the file, every page of its trees is checked (``lmdb_file``), the records against the seal, and the seal against the
witness.
"""

import fcntl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from operator import add
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import BinaryIO, Final
from zlib import crc32

import lmdb
import numpy as np

from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.servers.durability import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    Witness,
    WitnessFile,
    explained,
    open_beside,
    probe,
)
from streamgauge.servers.fragments.store import SIZED, DamagedStoreError, FullError, Keep, SortedRun, Writes
from streamgauge.servers.fragments.store.indexed import Store
from streamgauge.servers.fragments.store.lmdb_file import LmdbFile, PageError, Records
from streamgauge.servers.sealed.seal import RunningSeal, Seal, new_id, vanished

FORMAT: Final = b"m:format"
SEAL: Final = b"m:seal"
SUMMED: Final = b"2"
"""The value of ``FORMAT``."""

SEALED: Final = frozenset(b"nsm")
"""First bytes of keys that the seal covers: numbers of terms, sizes, marks (except the seal itself)."""

_SUM: Final = 4
_RESIDUE: Final = 0x2144DF1C
"""The CRC-32 of any bytes followed by their own CRC-32 in little-endian order: a property of the polynomial."""
_SEAL_FORM: Final = Struct(">16sQQQ")
KINDS: Final = {
    **dict.fromkeys(b"012345", "blocks of orders"),
    **dict.fromkeys(b"ABCDEFGH", "blocks of history"),
    **dict.fromkeys(b"ek", "blocks of ends"),
    ord("l"): "logged changes",
    ord("m"): "marks",
    ord("n"): "numbers of terms",
    ord("s"): "sizes of blocks",
    ord("t"): "texts of terms",
}
"""The names of records, in the plural, by the first byte of their keys."""


def with_checksum(key: bytes, value: bytes) -> bytes:
    """The value followed by its checksum."""
    return value + crc32(value, crc32(key)).to_bytes(_SUM, "little")


def checksum_holds(key: bytes, record: bytes) -> bool:
    """Whether a value followed by its checksum is intact."""
    return crc32(record, crc32(key)) == _RESIDUE


def _sum_of(record: bytes) -> int:
    """The checksum at the end of a record."""
    return int.from_bytes(record[-_SUM:], "little")


def _read_seal(record: bytes) -> Seal | None:
    """The seal in a record; ``None`` if its size or checksum is wrong."""
    if len(record) != _SEAL_FORM.size + _SUM or not checksum_holds(SEAL, record):
        return None
    return Seal(*_SEAL_FORM.unpack_from(record))


def record_name(key: bytes) -> str:
    """A description of a record, for messages."""
    return f"one of its {KINDS.get(key[0], 'others') if key else 'others'} ({key[:24].hex() or 'without a key'})"


def data_file(folder: Path) -> Path:
    """The path of LMDB's file in a folder."""
    return folder / "data.mdb"


def lock_file(folder: Path) -> Path:
    """The path of the file that is a folder's lock and contains its witness."""
    return folder / "held"


def saving_advice(folder: Path) -> str:
    """The remedy for a damaged store, the end of a message."""
    return f"`streamgauge fragments verify {folder} --save-to NEW` saves the sound quads; or give an empty folder"


def refuse_vanished(folder: Path, before: Witness | None) -> None:
    """DamagedStoreError if the data file is missing or empty although another file shows that it had content."""
    # A witness of change 0 is written before the first data: its store was killed while it was being created.
    if before is not None and before.number == 0:
        return
    if why := vanished(data_file(folder), (lock_file(folder), folder / "lock.mdb")):
        raise DamagedStoreError(f"{data_file(folder)}: {why}")


def check_store(folder: Path, before: Witness | None) -> Seal:
    """The seal of an intact store, with number 0 if nothing was written yet.

    ``before`` is the folder's witness. DamagedStoreError, in one sentence.
    """
    data = data_file(folder)
    try:
        with closing(LmdbFile(data)) as file:
            return _check_leaves(file.leaves(file.meta()), before)
    except (PageError, DamagedStoreError) as error:
        raise DamagedStoreError(f"{data}: damaged: {error}; {saving_advice(folder)}") from error


def _check_leaves(leaves: Iterable[Records], before: Witness | None) -> Seal:
    form, seal, count, sealed, total = None, None, 0, 0, 0
    for records in leaves:
        count += len(records)
        # Leaves of texts only, most of the file, are not covered by the seal.
        if records[0][0][:1] == records[-1][0][:1] == b"t":
            continue
        for key, value in records:
            if not key or key[0] not in SEALED:
                continue
            if type(value) is not bytes or not checksum_holds(key, value):
                raise DamagedStoreError(f"{record_name(key)}: its checksum does not hold")
            if key == FORMAT:
                form = value
            if key == SEAL:
                seal = _read_seal(value)
            else:
                sealed, total = sealed + 1, total + _sum_of(value)
    # An empty store, but only where the witness has seen no change: else its records have vanished.
    if not count and (before is None or before.number == 0):
        return Seal(new_id() if before is None else before.store)
    if form != with_checksum(FORMAT, SUMMED):
        raise DamagedStoreError("the mark of its format is missing or unknown")
    if seal is None:
        raise DamagedStoreError("its seal is missing")
    if not seal.counts(sealed, total):
        raise DamagedStoreError(
            f"its records are not those that were written ({sealed:,} of {seal.records:,} that a seal counts)"
        )
    if (contradiction := seal.contradiction(before)) is not None:
        raise DamagedStoreError(": ".join(contradiction))
    return seal


LIMIT: Final = 1 << 38
"""Default size limit of a folder (bytes); LMDB reserves as much address space, but no memory or disk."""

_SIZE_PREFIX = b"s"
_LARGE: Final = 256
"""Bytes above which an intact value is not checked again until it changes."""


class FolderError(MistakeError, RuntimeError):
    """A folder that cannot be used; the sentence says why and what to do."""


class LmdbKeyValues:
    """A key-value store in one LMDB environment; FolderError if it is in use, damaged, or has another format.

    All pages, the seal and the witness are checked before LMDB maps the file; a value is checked when it is first read.
    """

    remembered: Final = 200_000
    """Terms cached by a ``TermDictionary``."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self._folder, self._held = folder, _locked(folder)
        self._witness = WitnessFile(self._held)
        self._whole: set[bytes] = set()
        try:
            self._seal = RunningSeal(self._checked())
            # Without read-ahead, which for random reads of a large file loads pages that nobody asked for.
            self._environment = lmdb.open(
                str(folder), map_size=limit, readahead=False, max_readers=8, mode=PRIVATE_FILE
            )
            # One read transaction for all threads, replaced by `show`: its snapshot is what is readable.
            self._reading = self._environment.begin()
        except DamagedStoreError as error:
            self._held.close()
            raise FolderError(str(error)) from error
        except (lmdb.Error, OSError) as error:
            self._held.close()
            raise FolderError(
                f"{folder}: not a store that can be read ({obstacle(error)}); give an empty folder"
            ) from error
        self._lock = Lock()
        self._trouble, self._lasting = "", False
        # Nothing was ever written.
        if not self._seal.seal.number:
            self._begin()

    def _checked(self) -> Seal:
        """The seal of an intact store, an empty one for a new store."""
        before = self._witness.read()
        refuse_vanished(self._folder, before)
        data = data_file(self._folder)
        if not data.exists() or not data.stat().st_size:
            seal = Seal(new_id() if before is None else before.store)
        else:
            seal = check_store(self._folder, before)
        if seal.witness != before:
            self._witness.begin(seal.witness)
        return seal

    def _begin(self) -> None:
        """Mark an empty folder with the format; FolderError if the disk has no room even for that."""
        try:
            self.commit({FORMAT: SUMMED})
        except FullError as error:
            self.close()
            raise FolderError(str(error)) from error
        self.show()

    def get(self, key: bytes) -> bytes | None:
        """The readable value of a key; DamagedStoreError if its checksum is wrong."""
        with self._lock:
            value: bytes | None = self._reading.get(key)
        if key in self._whole and value is not None:
            return value[:-_SUM]
        if value is None:
            return None
        if not checksum_holds(key, value):
            raise self._damaged(key, "its checksum does not hold")
        if len(value) > _LARGE:
            # Blocks are read for every page that is served, and their 4,000 bytes need not be summed each time.
            self._whole.add(key)
        return value[:-_SUM]

    def lost(self, key: bytes) -> DamagedStoreError:
        """The error for a required record that is missing or not text."""
        return self._damaged(key, "it is missing, or no text")

    def _damaged(self, key: bytes, what: str) -> DamagedStoreError:
        data = data_file(self._folder)
        return DamagedStoreError(f"{data}: damaged: {record_name(key)}: {what}; {saving_advice(self._folder)}")

    def sizes(self, prefix: bytes) -> Iterator[tuple[bytes, int]]:
        """Keys with a prefix (its first byte in ``SIZED``), sorted, with the size of each value in bytes."""
        with self._environment.begin() as reading, reading.cursor() as cursor:
            if cursor.set_range(_SIZE_PREFIX + prefix):
                for key, size in cursor:
                    if not key.startswith(_SIZE_PREFIX + prefix):
                        return
                    yield key[len(_SIZE_PREFIX) :], int.from_bytes(size[:8])

    def commit(self, writes: Writes) -> None:
        """Write all or nothing; on disk when it returns, but not readable before ``show``. FullError."""
        with self._change() as writing:
            # In the order of the tree: neighbouring keys are mostly on one page.
            for key, value in sorted(_sized(writes)):
                _write(writing, key, value, self._seal)
        # A changed value is checked again when it is next read.
        self._whole.difference_update(writes)

    def fill(self, *runs: SortedRun) -> None:
        """Write and show records of new keys, in sorted runs. FullError; DamagedStoreError for an existing key."""
        sized = [run for records in runs for run in _with_sizes(*records)]
        with self._change() as writing:
            for keys, values in sized:
                self._fill_run(writing, keys, _summed(keys, values, self._seal))
        self.show()

    @contextmanager
    def _change(self) -> Iterator[lmdb.Transaction]:
        """A transaction that is sealed at its end; afterwards the witness is updated. FullError."""
        try:
            with self._environment.begin(write=True) as writing:
                yield writing
                seal = self._seal.next
                writing.put(SEAL, with_checksum(SEAL, _SEAL_FORM.pack(*seal)))
        except lmdb.Error as error:
            self._seal.roll_back()
            raise self._full(error) from error
        except BaseException:
            self._seal.roll_back()
            raise
        self._trouble = ""
        # Only after the commit: a witness ahead of its store would mean that acknowledged changes were lost.
        self._witness.follow(self._seal.commit(seal))

    def _fill_run(self, writing: lmdb.Transaction, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Put sorted records of new keys; those behind all existing keys are appended without a search."""
        with writing.cursor() as cursor:
            # Appending fills pages one after the other, and splits none.
            last = not cursor.last() or bytes(cursor.key()) < keys[0]
            records = zip(keys, values, strict=True)
            consumed, added = cursor.putmulti(records, dupdata=False, overwrite=False, append=last)
        # `overwrite=False` skips keys that exist, which a load never meets in a sound store.
        if added < consumed:
            raise self._damaged(keys[0], "some of the new records after it exist already")

    def trouble(self) -> str:
        """Why changes are refused; empty if they are accepted, and again once the disk accepts files."""
        if self._trouble and not self._lasting and probe(self._folder) is None:
            self._trouble = ""
        return self._trouble

    def _full(self, error: lmdb.Error) -> FullError:
        """The error for a change that LMDB refused, which ``trouble`` returns from now on."""
        self._trouble = f"{self._folder}: the change was not made, as {self._why(error)}"
        # Both last until a restart; a full disk may get room again, which `trouble` tests.
        self._lasting = isinstance(error, lmdb.MapFullError | lmdb.PanicError)
        return FullError(self._trouble)

    def _why(self, error: lmdb.Error) -> str:
        """Why LMDB did not write, as part of a sentence."""
        if isinstance(error, lmdb.MapFullError):
            return f"the folder has reached its limit and cannot be written: {error}"
        if isinstance(error, lmdb.PanicError):
            return "it cannot be written since the disk failed in the middle of a change: start the server again"
        return f"it cannot be written: {explained(self._folder, str(error), full=isinstance(error, lmdb.DiskError))}"

    def show(self) -> None:
        """Make committed writes readable: begin a new read transaction."""
        with self._lock:
            before, self._reading = self._reading, self._environment.begin()
            # After the new one has begun, so that there is always a snapshot to read from.
            before.abort()

    def close(self) -> None:
        """Close the environment; the store can no longer be used."""
        with self._lock:
            self._reading.abort()
            self._environment.close()
            self._held.close()


def _summed(keys: Sequence[bytes], values: Sequence[bytes], seal: RunningSeal) -> list[bytes]:
    """The values of new records with their checksums, which are added to the seal if it covers the keys."""
    sums = [*map(crc32, map(add, keys, values))]
    if keys[0][0] in SEALED:
        seal.enter(sum(sums), len(sums))
    coded = np.array(sums, dtype="<u4").tobytes()
    return [*map(add, values, [coded[at : at + _SUM] for at in range(0, len(coded), _SUM)])]


def _write(writing: lmdb.Transaction, key: bytes, value: bytes | None, seal: RunningSeal) -> None:
    """Put or delete a record; if the seal covers its key, the seal is updated by the old and the new record."""
    record = None if value is None else with_checksum(key, value)
    if key[0] not in SEALED:
        if record is None:
            writing.delete(key)
        else:
            writing.put(key, record)
        return
    # One descent of the tree for the old and the new record.
    before = writing.pop(key) if record is None else writing.replace(key, record)
    if before is not None:
        seal.leave(_sum_of(bytes(before)))
    if record is not None:
        seal.enter(_sum_of(record))


def _locked(folder: Path) -> BinaryIO:
    """The locked file that gives this process the folder, created if missing; it also contains the witness."""
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        lock = open_beside(lock_file(folder))
    except OSError as error:
        raise FolderError(f"{folder}: not a folder that can be written ({obstacle(error)}); give another") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise FolderError(f"{folder}: another process, or another store, has it open; give another folder") from error
    return lock


def _sized(writes: Writes) -> Iterator[tuple[bytes, bytes | None]]:
    """Writes, and records of the values' sizes, so that ``sizes`` need not read the pages of all values."""
    for key, value in writes.items():
        yield key, value
        if key[0] in SIZED:
            yield _SIZE_PREFIX + key, None if value is None else len(value).to_bytes(8)


def _with_sizes(keys: Sequence[bytes], values: Sequence[bytes]) -> list[SortedRun]:
    """A run of records with one first byte, and the run of their sizes if ``sizes`` supports that byte."""
    if keys[0][0] not in SIZED:
        return [(keys, values)]
    sizes = [_SIZE_PREFIX + key for key in keys], [len(value).to_bytes(8) for value in values]
    return [(keys, values), sizes]


class DiskStore(Store):
    """Quads in a folder, created if missing; with ``keep`` also removed quads.

    ``limit`` is its maximum size in bytes.
    """

    def __init__(self, folder: Path, keep: Keep | None = None, limit: int = LIMIT) -> None:
        super().__init__(LmdbKeyValues(folder, limit), keep)
