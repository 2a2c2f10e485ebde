"""Durable files: a witness of the last acknowledged change, reports of damage, full disks and unreadable pages.

A log that was cut off looks like one whose last record was never finished; the witness tells them apart. It is written
after a change is on the disk and before it is acknowledged, in place and without fsync: it survives kill -9, and may
lag behind after a loss of power, but is never ahead.

If a page of a mapped file is lost (the file was truncated, or the disk fails), the kernel sends SIGBUS in the midst of
the read. The thread cannot go on, and a handler of CPython would only run after the read, which never ends. So the
handler is set in C: on the reading thread it takes the interpreter lock, writes a sentence and ends the process. All
acknowledged changes are on the disk.
"""

import ctypes
import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_FSIZE, getrlimit
from signal import SIGBUS
from struct import Struct
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final, NamedTuple
from zlib import crc32

UNREADABLE: Final = "the disk cannot read it: it reports an input/output error (EIO)"
_BLOCK: Final = 1 << 20
_SECTOR: Final = 4096


def copy_readable(source: Path, to: Path) -> list[tuple[int, int]]:
    """Copy a file; returns the byte ranges (from, to) that the disk could not read, which are zeros in the copy.

    A block that fails is read again in pieces of 4,096 bytes. OSError for any error but EIO.
    """
    lost: list[tuple[int, int]] = []
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        with os.fdopen(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE), "wb") as file:
            for start in range(0, size, _BLOCK):
                length = min(_BLOCK, size - start)
                # A block is read whole first, which is fast where nothing is wrong. Sectors are only tried where a
                # block has failed.
                file.write(_read(descriptor, start, length) or _pieces(descriptor, start, length, lost))
    finally:
        os.close(descriptor)
    return lost


def unreadable(source: Path) -> str:
    """Which bytes of a file the disk cannot read first, as a sentence; empty if it can read all."""
    # Reading is the only test, so the copy itself goes nowhere.
    lost = copy_readable(source, Path(os.devnull))
    return f"bytes {lost[0][0]:,} to {lost[0][1]:,}: {UNREADABLE}" if lost else ""


def _pieces(descriptor: int, start: int, length: int, lost: list[tuple[int, int]]) -> bytes:
    data = bytearray()
    for at in range(start, start + length, _SECTOR):
        wanted = min(_SECTOR, start + length - at)
        piece = _read(descriptor, at, wanted)
        if piece is None:
            _note(lost, at, at + wanted)
        # Zeros keep the offsets of everything behind the lost piece, so that readers of the copy find later records.
        data += piece or bytes(wanted)
    return bytes(data)


def _read(descriptor: int, start: int, length: int) -> bytes | None:
    try:
        return os.pread(descriptor, length, start)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return None


def _note(lost: list[tuple[int, int]], start: int, end: int) -> None:
    # Adjacent sectors are one range in the report.
    if lost and lost[-1][1] == start:
        start, _ = lost.pop()
    lost.append((start, end))


_MAGIC: Final = b"SGWITNS1"
_BODY: Final = Struct(">8s16sQQ")
_SUM: Final = Struct(">I")
WITNESS_SIZE: Final = _BODY.size + _SUM.size
"""Bytes of a witness; less than a sector, so that a crash leaves the old or the new one, never a mixture."""


class Witness(NamedTuple):
    """The id of a store (16 random bytes), the number of its last change, and a digest of its content."""

    store: bytes
    number: int
    digest: int


class WitnessFile:
    """A witness at the beginning of an open file; the caller closes the file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._descriptor = file, file.fileno()

    @property
    def empty(self) -> bool:
        """Whether no witness was ever written."""
        return os.fstat(self._descriptor).st_size == 0

    def read(self) -> Witness | None:
        """The witness, ``None`` if missing or damaged."""
        return unpack(os.pread(self._descriptor, WITNESS_SIZE, 0))

    def write(self, witness: Witness) -> None:
        """Overwrite the witness. OSError."""
        os.pwrite(self._descriptor, pack(witness), 0)

    def follow(self, witness: Witness) -> None:
        """Like ``write``, but without errors: a witness may lag behind."""
        try:
            os.pwrite(self._descriptor, pack(witness), 0)
        except OSError:
            return

    def begin(self, witness: Witness) -> None:
        """Write the first witness and sync it to the disk. OSError."""
        self.write(witness)
        os.ftruncate(self._descriptor, WITNESS_SIZE)
        os.fsync(self._descriptor)


def pack(witness: Witness) -> bytes:
    """A witness as bytes."""
    body = _BODY.pack(_MAGIC, *witness)
    return body + _SUM.pack(crc32(body))


def unpack(data: bytes) -> Witness | None:
    """The witness in ``data``, ``None`` if it is not one."""
    if len(data) < WITNESS_SIZE or data[: len(_MAGIC)] != _MAGIC:
        return None
    (checksum,) = _SUM.unpack_from(data, _BODY.size)
    return Witness(*_BODY.unpack_from(data)[1:]) if checksum == crc32(data[: _BODY.size]) else None


def open_beside(path: Path) -> BinaryIO:
    """Open or create the file of a witness, without changing it. OSError."""
    return os.fdopen(open_private(path), "r+b", buffering=0)


PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
"""Permissions of servers' files: only for the user who runs the server."""


def open_private(path: Path) -> int:
    """The descriptor of a file, created if missing, for this user only. OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)


_LISTED: Final = 20


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged place in a file."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(slots=True)
class Inspection:
    """Findings of a check: ``sound`` records by kind; the first damages, and the number of ``more``."""

    sound: dict[str, int] = field(default_factory=dict)
    damages: list[Damage] = field(default_factory=list)
    more: int = 0

    def note(self, where: str, what: str) -> None:
        """List a damage, or count it if the list is full."""
        # A file of which a large part is lost may have damages by the million; the first ones say what has happened.
        if len(self.damages) < _LISTED:
            self.damages.append(Damage(where, what))
        else:
            self.more += 1

    def count(self, kind: str, number: int = 1) -> None:
        """Add sound records of a kind."""
        self.sound[kind] = self.sound.get(kind, 0) + number

    @property
    def whole(self) -> bool:
        """Whether no damage was found."""
        return not self.damages

    @property
    def remains(self) -> str:
        """The sound records, in words."""
        text = ", ".join(f"{count:,} {kind}" for kind, count in self.sound.items() if count)
        return text or "nothing"


@dataclass(frozen=True, slots=True)
class Saved:
    """Records saved to a new file, and the losses, a sentence each."""

    kept: str
    losses: tuple[str, ...]


_WORDS: Final = {
    errno.ENOSPC: "the disk is full (ENOSPC): make room, and writes are taken again",
    errno.EDQUOT: "the disk quota is used up (EDQUOT): raise the quota or make room, and writes are taken again",
    errno.EIO: "the disk reports an input/output error (EIO): look at the system's log, and replace the disk",
    errno.EFBIG: "the file may not grow any more (EFBIG): raise the limit of file sizes, and writes are taken again",
    errno.EROFS: "the file system is read-only (EROFS): mount it for writing, and writes are taken again",
}
_PROBED: Final = 65536


def probe(folder: Path) -> int | None:
    """The errno with which a folder refuses a file of 64 KiB now; ``None`` if it accepts one.

    EFBIG if one of its files has nearly reached this process's limit of file sizes.
    """
    limit, _ = getrlimit(RLIMIT_FSIZE)
    try:
        sizes = [path.stat().st_size for path in folder.iterdir() if path.is_file()]
        # The limit concerns each file on its own, and the probe is a small file: it would pass. So the largest file is
        # asked instead.
        if limit != RLIM_INFINITY and max(sizes, default=0) + _PROBED > limit:
            return errno.EFBIG
        with TemporaryFile(dir=folder, prefix="probe-") as file:
            file.write(bytes(_PROBED))
            file.flush()
            # Some file systems only allocate blocks on writing back, and report a full disk as late as here.
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno
    return None


def explained(folder: Path, message: str, *, full: bool) -> str:
    """Why a library could not write in a folder: from its ``message``, else by trying.

    ``full`` if the library reports a lack of space without its kind.
    """
    named = next((code for code in _WORDS if os.strerror(code) in message), errno.ENOSPC if full else None)
    if named in (None, errno.EIO):  # which is also how LMDB and SQLite say that only a part was written
        code = probe(folder)
        named = code if code in _WORDS else named
    return message if named is None else _WORDS[named]


STATUS: Final = 2
"""Exit code of a process that lost a page."""

_HANDLERS: list[Any] = []
"""The handler, referenced so that it is never freed: C would call freed memory."""


def end_with_sentence(folders: Sequence[Path], advice: str) -> None:
    """Make a lost page of a file in ``folders`` end the process with a message; ``advice`` is the remedy in it."""
    sentence = f"{', '.join(map(str, folders))}: a part of what is kept there cannot be read any more"
    sentence += f" (a file was cut short, or the disk fails): the server ends; {advice}\n"
    line = sentence.encode()

    def end(_signal: int) -> None:
        # No buffered output and no exit handlers: the interrupted thread may hold any of their locks.
        os.write(2, line)
        os._exit(STATUS)

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(end)
    _HANDLERS[:] = [handler]
    # ``signal.signal`` would only note the signal for the interpreter's next instruction, which the thread never
    # reaches.
    setter = ctypes.CDLL(None).signal
    setter.argtypes, setter.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    setter(SIGBUS, ctypes.cast(handler, ctypes.c_void_p))
