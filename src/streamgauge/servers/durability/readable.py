"""A copy of a file on a disk that fails: what can be read, zeros for what cannot, and where that is."""

import errno
import os
from pathlib import Path
from typing import Final

UNREADABLE: Final = "the disk cannot read it: it reports an input/output error (EIO)"
_BLOCK: Final = 1 << 20
_SECTOR: Final = 4096


def copy_readable(source: Path, to: Path) -> list[tuple[int, int]]:
    """Copy a file; the ranges of bytes (from, to) that the disk could not read, which are zeros in the copy.

    A block that fails is read again in pieces of 4,096 bytes. OSError for any other error.
    """
    lost: list[tuple[int, int]] = []
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        with to.open("wb") as file:
            for start in range(0, size, _BLOCK):
                length = min(_BLOCK, size - start)
                file.write(_read(descriptor, start, length) or _pieces(descriptor, start, length, lost))
    finally:
        os.close(descriptor)
    return lost


def unreadable(source: Path) -> str:
    """The first bytes of a file that the disk cannot read, and that it cannot; empty where all can be read."""
    lost = copy_readable(source, Path(os.devnull))
    return f"bytes {lost[0][0]:,} to {lost[0][1]:,}: {UNREADABLE}" if lost else ""


def _pieces(descriptor: int, start: int, length: int, lost: list[tuple[int, int]]) -> bytes:
    """A block piece by piece; those that fail are noted."""
    found = bytearray()
    for at in range(start, start + length, _SECTOR):
        wanted = min(_SECTOR, start + length - at)
        piece = _read(descriptor, at, wanted)
        if piece is None:
            _note(lost, at, at + wanted)
        found += piece or bytes(wanted)
    return bytes(found)


def _read(descriptor: int, start: int, length: int) -> bytes | None:
    try:
        return os.pread(descriptor, length, start)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return None


def _note(lost: list[tuple[int, int]], start: int, end: int) -> None:
    if lost and lost[-1][1] == start:
        start, _ = lost.pop()
    lost.append((start, end))
