"""A store in a folder, on LMDB: it survives restarts and kill -9, and holds in memory only where blocks begin."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Final

import lmdb

from streamgauge.model.mistake import MistakeError
from streamgauge.model.obstacles import obstacle
from streamgauge.servers.durability.disk import explained
from streamgauge.servers.durability.witness import Witness, WitnessFile, open_beside
from streamgauge.servers.fragments.storing import Keep
from streamgauge.servers.fragments.storing.indexed import IndexedStore
from streamgauge.servers.fragments.storing.records import (
    FORMAT,
    SEAL,
    SEALED,
    SUMMED,
    Seal,
    Sealing,
    described,
    summed,
    whole,
)
from streamgauge.servers.fragments.storing.shelf import SIZED, DamagedStoreError, FullError, Writes
from streamgauge.servers.fragments.storing.soundness import advice, checked, data_of, held_of, refuse_vanished

LIMIT: Final = 1 << 38
"""Bytes that a folder may grow to unless said: address space is reserved for them, nothing else."""

_SIZE = b"s"
_LARGE: Final = 256
"""Bytes from which on a value that was found whole is not looked at again until it changes."""


class FolderError(MistakeError, RuntimeError):
    """A folder that cannot be used; the sentence says why and what to do."""


class DiskShelf:
    """One LMDB environment; FolderError when it is in use, damaged, or of another format.

    Each value has a checksum behind it; the records by which others are found are summed up in a seal, and the folder's
    witness says which the last acknowledged change was. LMDB maps the file only when every page of its trees was found
    whole. Values are looked at when they are read first.
    """

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self._folder, self._held = folder, _held(folder)
        self._witness = WitnessFile(self._held)
        self._whole: set[bytes] = set()
        try:
            self._sealing = self._looked_at()
            self._environment = lmdb.open(str(folder), map_size=limit, readahead=False, max_readers=8)
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
        if self._sealing is not None and not self._sealing.seal.number:
            self._begin()

    def _looked_at(self) -> Sealing | None:
        """The sums of a sound store, those of nothing for a new one, ``None`` for one without sums."""
        before = self._witness.read()
        refuse_vanished(self._folder, before, begun=not self._witness.empty)
        data = data_of(self._folder)
        if not data.exists() or not data.stat().st_size:
            before = before or Witness(os.urandom(16), 0, 0)
            self._witness.begin(before)
            return Sealing(Seal(before.store, 0, 0, 0))
        sealing = checked(self._folder, before)
        if sealing is not None and sealing.seal.number and sealing.seal.witness != before:
            self._witness.begin(sealing.seal.witness)
        return sealing

    def _begin(self) -> None:
        """Mark an empty folder with the format. FolderError when there is no room even for that."""
        try:
            self.commit({FORMAT: SUMMED})
        except FullError as error:
            self.close()
            raise FolderError(str(error)) from error
        self.show()

    def get(self, key: bytes) -> bytes | None:
        """The value shown. DamagedStoreError when its checksum does not hold."""
        with self._lock:
            value: bytes | None = self._reading.get(key)
        if key in self._whole and value is not None:
            return value[:-4]
        if value is None or self._sealing is None:
            return value
        if not whole(key, value):
            raise self._damaged(key, "its checksum does not hold")
        if len(value) > _LARGE:
            self._whole.add(key)
        return value[:-4]

    def lost(self, key: bytes) -> DamagedStoreError:
        """The error for a record that must be there and is not."""
        return self._damaged(key, "it is missing, or no text")

    def _damaged(self, key: bytes, what: str) -> DamagedStoreError:
        data = data_of(self._folder)
        return DamagedStoreError(f"{data}: damaged: {described(key)}: {what}; {advice(self._folder)}")

    def sizes(self, prefix: bytes) -> Iterator[tuple[bytes, int]]:
        """Keys that begin so (with one of ``SIZED``), in order, with the number of bytes of each value."""
        with self._environment.begin() as reading, reading.cursor() as cursor:
            if cursor.set_range(_SIZE + prefix):
                for key, size in cursor:
                    if not key.startswith(_SIZE + prefix):
                        return
                    yield key[len(_SIZE) :], int.from_bytes(size[:8])

    def commit(self, writes: Writes) -> None:
        """All or nothing; on the disk when it returns, not yet shown. FullError when there is no room."""
        sealing = None if self._sealing is None else Sealing(self._sealing.seal)
        try:
            with self._environment.begin(write=True) as writing:
                for key, value in sorted(_sized(writes)):
                    _write(writing, key, value, sealing)
                if sealing is not None:
                    writing.put(SEAL, summed(SEAL, sealing.next()))
        except lmdb.Error as error:
            raise FullError(f"{self._folder}: the change was not made, as {self._why(error)}") from error
        if sealing is not None:
            self._sealing = sealing
            self._whole.difference_update(writes)
            self._witness.follow(sealing.seal.witness)

    def _why(self, error: lmdb.Error) -> str:
        """Why LMDB did not write."""
        if isinstance(error, lmdb.MapFullError):
            return f"the folder has reached its limit and cannot be written: {error}"
        if isinstance(error, lmdb.PanicError):
            return "it cannot be written since the disk failed in the middle of a change: start the server again"
        return f"it cannot be written: {explained(self._folder, str(error), full=isinstance(error, lmdb.DiskError))}"

    def show(self) -> None:
        """From now on what was committed is read."""
        with self._lock:
            before, self._reading = self._reading, self._environment.begin()
            before.abort()

    def close(self) -> None:
        """Nothing is read or written any more."""
        with self._lock:
            self._reading.abort()
            self._environment.close()
            self._held.close()


def _write(writing: lmdb.Transaction, key: bytes, value: bytes | None, sealing: Sealing | None) -> None:
    """Put or delete a record; those that the seal sums up are exchanged for the one before."""
    if sealing is None:
        if value is None:
            writing.delete(key)
        else:
            writing.put(key, value)
        return
    record = None if value is None else summed(key, value)
    if key[0] not in SEALED:
        if record is None:
            writing.delete(key)
        else:
            writing.put(key, record)
        return
    before = writing.pop(key) if record is None else writing.replace(key, record)
    if before is not None:
        sealing.leave(bytes(before))
    if record is not None:
        sealing.enter(record)


def _held(folder: Path) -> BinaryIO:
    """The file by which this process alone has the folder, which is made when it is not there; the witness is in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = open_beside(held_of(folder))
    except OSError as error:
        raise FolderError(f"{folder}: not a folder that can be written ({obstacle(error)}); give another") from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        held.close()
        raise FolderError(f"{folder}: another process, or another store, has it open; give another folder") from error
    return held


def _sized(writes: Writes) -> Iterator[tuple[bytes, bytes | None]]:
    """Writes, and those of sizes apart from the values, which are as many pages to read as there is data."""
    for key, value in writes.items():
        yield key, value
        if key[0] in SIZED:
            yield _SIZE + key, None if value is None else len(value).to_bytes(8)


class DiskStore(IndexedStore):
    """Quads in a folder, which is made when it is not there; with ``keep`` those that left too.

    ``limit`` is the most bytes that it may grow to.
    """

    def __init__(self, folder: Path, keep: Keep | None = None, limit: int = LIMIT) -> None:
        super().__init__(DiskShelf(folder, limit), keep)
