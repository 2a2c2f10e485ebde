"""The last acknowledged change, noted beside the file that holds it: a file that lost its end cannot pass for whole.

A log whose end was cut off looks like a log whose last record was never finished. The witness tells the two apart.
The witness is written after a change is on the disk and before the change is acknowledged, in place and without a
synchronisation of its own: a witness survives kill -9, and may lag behind after a loss of power, but is never ahead.
"""

import os
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final, NamedTuple
from zlib import crc32

_MAGIC: Final = b"SGWITNS1"
_BODY: Final = Struct(">8s16sQQ")
_SUM: Final = Struct(">I")
SIZE: Final = _BODY.size + _SUM.size
"""Bytes of a witness: less than a disk's sector, so that a crash leaves the one before or this one."""


class Witness(NamedTuple):
    """The file that a change was made in (16 random bytes), the number of the change, and a digest of what is there."""

    store: bytes
    number: int
    digest: int


class WitnessFile:
    """A witness at the beginning of an open file; the caller closes the file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._descriptor = file, file.fileno()

    @property
    def empty(self) -> bool:
        """Whether nothing was ever written."""
        return os.fstat(self._descriptor).st_size == 0

    def read(self) -> Witness | None:
        """The witness; ``None`` when there is none that can be read."""
        return unpack(os.pread(self._descriptor, SIZE, 0))

    def write(self, witness: Witness) -> None:
        """Take the place of the one before. OSError."""
        os.pwrite(self._descriptor, pack(witness), 0)

    def follow(self, witness: Witness) -> None:
        """As ``write``; where the disk refuses that, the witness lags behind, which it may."""
        try:
            os.pwrite(self._descriptor, pack(witness), 0)
        except OSError:
            return

    def begin(self, witness: Witness) -> None:
        """The first one, which is on the disk when this returns. OSError."""
        self.write(witness)
        os.ftruncate(self._descriptor, SIZE)
        os.fsync(self._descriptor)


def pack(witness: Witness) -> bytes:
    """A witness as bytes."""
    body = _BODY.pack(_MAGIC, *witness)
    return body + _SUM.pack(crc32(body))


def unpack(data: bytes) -> Witness | None:
    """The witness of such bytes; ``None`` when they are none."""
    if len(data) < SIZE or data[: len(_MAGIC)] != _MAGIC:
        return None
    (found,) = _SUM.unpack_from(data, _BODY.size)
    return Witness(*_BODY.unpack_from(data)[1:]) if found == crc32(data[: _BODY.size]) else None


def open_beside(path: Path) -> BinaryIO:
    """The file for a witness, made when it is not there; what is in it stays. OSError."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+b", buffering=0)
