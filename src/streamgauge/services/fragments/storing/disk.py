"""A store in a folder, on LMDB: it survives restarts and kill -9, and holds in memory only where blocks begin."""

import fcntl
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Final

import lmdb

from streamgauge.services.fragments.storing.indexed import IndexedStore
from streamgauge.services.fragments.storing.shelf import FullError, Writes

LIMIT: Final = 1 << 38
"""Bytes that a folder may grow to unless said: address space is reserved for them, nothing else."""

_FORMAT = b"m:format"
_THIS = b"1"


class FolderError(RuntimeError):
    """A folder that cannot be used; the sentence says why and what to do."""


class DiskShelf:
    """One LMDB environment; FolderError when it is in use, damaged, or of another format."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._held = (folder / "held").open("wb")
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._held.close()
            raise FolderError(
                f"{folder}: another process, or another store, has it open; give another folder"
            ) from error
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
        """Keys that begin so, in order, with the number of bytes of each value."""
        with self._environment.begin(buffers=True) as reading, reading.cursor() as cursor:
            if cursor.set_range(prefix):
                for key, value in cursor:
                    if key[: len(prefix)] != prefix:
                        return
                    yield bytes(key), len(value)

    def commit(self, writes: Writes) -> None:
        """All or nothing; on the disk when it returns, not yet shown. FullError when there is no room."""
        try:
            with self._environment.begin(write=True) as writing:
                for key in sorted(writes):
                    value = writes[key]
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


class DiskStore(IndexedStore):
    """Quads in a folder, which is made when it is not there; ``limit`` is the most bytes that it may grow to."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        super().__init__(DiskShelf(folder, limit))
