"""A store in a folder, on LMDB: it survives restarts and kill -9, and holds in memory only where blocks begin."""

import fcntl
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Final

import lmdb

from streamgauge.services.fragments.storing import Keep
from streamgauge.services.fragments.storing.indexed import IndexedStore
from streamgauge.services.fragments.storing.shelf import SIZED, FullError, Writes

LIMIT: Final = 1 << 38
"""Bytes that a folder may grow to unless said: address space is reserved for them, nothing else."""

_FORMAT = b"m:format"
_THIS = b"1"
_SIZE = b"s"


class FolderError(RuntimeError):
    """A folder that cannot be used; the sentence says why and what to do."""


class DiskShelf:
    """One LMDB environment; FolderError when it is in use, damaged, or of another format."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self._folder, self._held = folder, _held(folder)
        try:
            self._environment = lmdb.open(str(folder), map_size=limit, readahead=False, max_readers=8)
            self._reading = self._environment.begin()
        except lmdb.Error as error:
            self._held.close()
            raise FolderError(f"{folder}: not a store that can be read ({error}); give an empty folder") from error
        self._lock = Lock()
        self._agree()

    def get(self, key: bytes) -> bytes | None:
        """The value shown."""
        with self._lock:
            value: bytes | None = self._reading.get(key)
            return value

    def sizes(self, prefix: bytes) -> Iterator[tuple[bytes, int]]:
        """Keys that begin so (with one of ``SIZED``), in order, with the number of bytes of each value."""
        with self._environment.begin() as reading, reading.cursor() as cursor:
            if cursor.set_range(_SIZE + prefix):
                for key, size in cursor:
                    if not key.startswith(_SIZE + prefix):
                        return
                    yield key[len(_SIZE) :], int.from_bytes(size)

    def commit(self, writes: Writes) -> None:
        """All or nothing; on the disk when it returns, not yet shown. FullError when there is no room."""
        try:
            with self._environment.begin(write=True) as writing:
                for key, value in sorted(_sized(writes)):
                    if value is None:
                        writing.delete(key)
                    else:
                        writing.put(key, value)
        except lmdb.Error as error:
            raise FullError(f"{self._folder}: the change was not made, as it cannot be written: {error}") from error

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

    def _agree(self) -> None:
        """Mark an empty folder with the format, or refuse that of another."""
        found = self.get(_FORMAT)
        if found is None:
            self.commit({_FORMAT: _THIS})
            self.show()
        elif found != _THIS:
            self.close()
            raise FolderError(f"{self._folder}: written in format {found.decode()}, this reads {_THIS.decode()}")


def _held(folder: Path) -> BinaryIO:
    """The file by which this process alone has the folder, which is made when it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = (folder / "held").open("wb")
    except OSError as error:
        raise FolderError(f"{folder}: not a folder that can be written ({error}); give another") from error
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
