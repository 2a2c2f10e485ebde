"""Files that have no end yet, as raw streams whose reads can be ended by closing."""

import io
import os
import select
from threading import Event
from typing import IO

_POLL = 0.1
"""Seconds between two looks at a file that has no more bytes, or at the wish to close."""


class Waiting(io.RawIOBase):
    """An open descriptor (pipe, terminal) read as bytes come; at its end, or after ``closing``, there are no more."""

    def __init__(self, descriptor: int, closing: Event) -> None:
        self._descriptor = descriptor
        self._closing = closing

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Whatever is there, at least a byte unless it is over."""
        while not self._closing.is_set():
            ready, _, _ = select.select([self._descriptor], [], [], _POLL)
            if ready:
                return _into(buffer, os.read(self._descriptor, len(buffer)))
        return 0


class Growing(io.RawIOBase):
    """A file that is still written to: at its end, more is waited for until ``closing``; OSError when it was cut."""

    def __init__(self, file: IO[bytes], closing: Event) -> None:
        self._file = file
        self._closing = closing

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Whatever is there, at least a byte unless closed."""
        while not self._closing.is_set():
            data = self._file.read(len(buffer))
            if data:
                return _into(buffer, data)
            if os.fstat(self._file.fileno()).st_size < self._file.tell():
                raise OSError("the file was cut while it was read")
            self._closing.wait(_POLL)
        return 0

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()


def _into(buffer: memoryview, data: bytes) -> int:
    buffer[: len(data)] = data
    return len(data)
