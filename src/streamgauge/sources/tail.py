"""Live input: bytes of an open descriptor, or of a file that is appended to and rotated (as by logrotate).

A file is followed by name across both kinds of rotation: rename, and copy and truncate.

The last bytes that were read identify the file to continue with. After a rename they are in the open file; after a copy
they are in a file beside it, compressed or not; if no file has them, later bytes are lost, and a note says so.

Worked example: ``log`` was read up to byte 300, then copied to ``log.1`` with 360 bytes and truncated. ``log.1`` has
the same bytes before byte 300, so its last 60 are read next, then ``log`` from its beginning.
"""

import io
import os
import re
import select
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import IO, Final, NamedTuple, TypeAlias, cast

from streamgauge.formats.bounded_files import ByteReader
from streamgauge.formats.codings import ENDINGS as CODINGS
from streamgauge.formats.documents import FormatError, file_document
from streamgauge.formats.json_values import has_value
from streamgauge.formats.streams import HEAD
from streamgauge.formats.streams.format import Note

POLL_S: Final = 0.1
"""Polling interval (s) at the end of a file."""

TAIL: Final = 1024
"""Number of bytes before the read position that identify a file."""

_NUMBERED: Final = r"[.-][0-9][0-9TZ_.:-]*"
_BLOCK: Final = 2**20


Take: TypeAlias = Callable[[int], bytes]
"""Reads at most so many bytes; empty at the end."""


def waiting(descriptor: int, closing: Event) -> ByteReader:
    """A reader of an open descriptor (pipe, terminal) as bytes arrive, until its end or ``closing``."""
    ended = False

    def take(size: int) -> bytes:
        nonlocal ended
        data = b""
        # A pipe gives 64 KiB at once at most: go on with what is there, but do not wait for more.
        while not (ended or closing.is_set()) and len(data) < size:
            if select.select([descriptor], [], [], 0.0 if data else POLL_S)[0]:
                more = os.read(descriptor, size - len(data))
                data, ended = data + more, not more  # a terminal says its end only once
            elif data:
                break
        return data

    return ByteReader(take)


HEAD_BYTES: Final = 256
"""Number of bytes that identify a file under another name: its first lines, which usually contain times."""


class FileHead(NamedTuple):
    """The first bytes of a file."""

    data: bytes

    def begins(self, file: IO[bytes]) -> bool:
        """Whether a file begins with these bytes, which are consumed."""
        return _exactly(file, len(self.data)) == self.data


LAST_BYTES: Final = 64
"""Number of bytes read last by which a file is recognised: one that was truncated and written anew has others."""


class FilePlace(NamedTuple):
    """A file, and the offset of the next byte; it was read up to byte ``end``, before which the ``last`` ones are."""

    head: FileHead
    offset: int
    end: int = 0
    last: bytes = b""


class FollowedFile:
    """The bytes of a file, then of its successors under the same name, as they arrive; ``note`` reports lost bytes."""

    def __init__(self, path: Path, closing: Event, note: Note) -> None:
        self._path, self._closing, self._note = path, closing, note
        self._file = cast(IO[bytes], path.open("rb", buffering=0))
        self._next = deque[IO[bytes]]()
        self._offset, self._tail, self._line = 0, b"", 0
        self._head = FileHead(b"")
        self.files = 0
        """The number of files read to their end."""
        self.rotates = True
        """Whether a successor continues the stream; binary formats start anew with each file."""

    def take(self, size: int) -> bytes:
        """Wait for the next bytes, at most ``size``; empty after ``closing``. OSError."""
        while not self._closing.is_set():
            data = self._file.read(size)
            # A successor is known: read the rest of this file first, as its writer may have appended until the rename.
            if self._next:
                if data:
                    return self._read(data)
                self._open(self._next.popleft())
            # Checked before ``data`` is given: after a truncation it may come from new content at the old offset.
            elif not self._is_whole():
                self._after_cut()
            elif data:
                return self._read(data)
            elif self._was_renamed():
                self._go_on(self._newer(os.fstat(self._file.fileno()).st_mtime_ns))
            else:
                self._closing.wait(POLL_S)
        return b""

    def close(self) -> None:
        """Close all open files."""
        for file in (self._file, *self._next):
            file.close()

    @property
    def place(self) -> "FilePlace":
        """The current file, and the start of its incomplete line."""
        return FilePlace(self._head, self._line, self._offset, self._tail[-LAST_BYTES:])

    def begin_at(self, place: "FilePlace") -> bool:
        """Continue at a place of a file, whatever its name is now; false, starting at the beginning, if it is gone."""
        for written, path in [(0, self._path), *reversed(self._rotated())]:
            with suppress(OSError, EOFError, FormatError):
                file = cast(IO[bytes], path.open("rb", buffering=0)) if path == self._path else _unpacked(path)
                if place.head.begins(file) and self._begin(file, place):
                    if path != self._path:
                        self._go_on(self._newer(written))
                    return True
                file.close()
        return False

    def _begin(self, file: IO[bytes], place: "FilePlace") -> bool:
        """Read a file, whose head has been read, from a place on; false if it is shorter or has other bytes there."""
        file.seek(max(0, place.end - len(place.last)))
        if _exactly(file, len(place.last)) != place.last:
            return False
        # Read the tail again, by which later rotations of the file are recognised.
        begin = file.seek(max(0, place.offset - TAIL))
        tail = _exactly(file, place.offset - begin)
        if begin + len(tail) < place.offset:
            return False
        self._file.close()
        self._file, self._offset, self._tail = file, place.offset, tail
        self._head, self._line = place.head, place.offset
        return True

    def _read(self, data: bytes) -> bytes:
        if self._offset < HEAD_BYTES:
            # Behind a place in the head, its bytes are read again.
            self._head = FileHead((self._head.data[: self._offset] + data)[:HEAD_BYTES])
        if newline := data.rfind(b"\n") + 1:
            self._line = self._offset + newline
        self._offset += len(data)
        self._tail = (self._tail + data)[-TAIL:]
        return data

    def _open(self, file: IO[bytes]) -> None:
        self._file.close()
        self._file, self._offset, self._tail, self._line = file, 0, b"", 0
        self.files += 1
        self._head = FileHead(b"")

    def _is_whole(self) -> bool:
        """Whether the last bytes read are still in place, which a truncation changes whatever was written since."""
        begin = self._offset - len(self._tail)
        return os.pread(self._file.fileno(), len(self._tail), begin) == self._tail

    def _was_renamed(self) -> bool:
        """Whether another, non-empty file has the name, so that the writer has left the old one."""
        try:
            named, opened = self._path.stat(), os.fstat(self._file.fileno())
        except FileNotFoundError:
            return False
        # An empty file may be one that logrotate has just created while the writer still has the old one open.
        return not os.path.samestat(named, opened) and named.st_size > 0

    def _after_cut(self) -> None:
        """After truncation continue in the copy that has the last bytes read, then in newer files."""
        copies = ((time, self._continued(file)) for time, file in self._rotated())
        time, rest = next((copy for copy in copies if copy[1] is not None), (None, None))
        if time is not None and rest is not None:
            self._go_on([rest, *self._newer(time)])
            self._file.close()
            self._file = self._next.popleft()  # the same bytes under another name
            return
        self._note(f"{self._path} was truncated: bytes written to it after byte {self._offset:,} before that are lost")
        # Joined with the new content's first line, the incomplete one would damage that as well.
        self._go_on([] if self._tail.endswith(b"\n") else [io.BytesIO(b"\n")])  # terminate an incomplete line
        self._open(self._next.popleft())

    def _go_on(self, files: list[IO[bytes]]) -> None:
        """Continue with these files, then with the file that has the name now."""
        if not self.rotates:
            raise OSError("it was renamed or truncated during reading: start again with the new file")
        self._next.extend([*files, cast(IO[bytes], self._path.open("rb", buffering=0))])

    def _rotated(self) -> list[tuple[int, Path]]:
        """(time in ns, file) of rotated files such as ``log.1`` and ``log-20260301.gz``, sorted."""
        name, stem, suffix = map(re.escape, (self._path.name, self._path.stem, self._path.suffix))
        packed = "|".join(map(re.escape, CODINGS))
        numbered = re.compile(rf"(?:{name}{_NUMBERED}|{stem}{_NUMBERED}{suffix})(?:{packed})?")
        files: list[tuple[int, Path]] = []
        for file in self._path.parent.iterdir():
            with suppress(FileNotFoundError):  # compressed or renamed again meanwhile
                if numbered.fullmatch(file.name):
                    files.append((file.stat().st_mtime_ns, file))
        return sorted(files)

    def _newer(self, time: int) -> list[IO[bytes]]:
        """Rotated files that were written after a time (ns), so that they had the name between two polls."""
        newer = [file for written, file in self._rotated() if written > time]
        return [file_document(file).open(binary=True) for file in newer if self._continued(file) is None]

    def _continued(self, path: Path) -> IO[bytes] | None:
        """The file, positioned after the last bytes read, if it has them at their place."""
        with suppress(OSError, EOFError, FormatError):
            file = file_document(path).open(binary=True)
            if (
                self._tail
                and _skipped(file, self._offset - len(self._tail))
                and file.read(len(self._tail)) == self._tail
            ):
                return file
            file.close()
        return None


def _unpacked(path: Path) -> IO[bytes]:
    """Open a file, decompressed by its ending."""
    return file_document(path).open(binary=True)


def _exactly(file: IO[bytes], count: int) -> bytes:
    """Read ``count`` bytes of a file, fewer only at its end."""
    parts: list[bytes] = []
    while count and (data := file.read(count)):
        parts.append(data)
        count -= len(data)
    return b"".join(parts)


def _skipped(file: IO[bytes], count: int) -> bool:
    """Skip ``count`` bytes of a file; false if it has fewer."""
    while count and (data := file.read(min(count, _BLOCK))):
        count -= len(data)
    return not count


def first_value(take: Take) -> bytes:
    """The first bytes up to the end of the first line and of a JSON value that begins there, at most ``HEAD``."""
    head = b""
    # A JSON value may span lines; formats of JSON can only be told apart by its fields.
    while len(head) < HEAD and not _is_value(head) and (data := take(HEAD - len(head))):
        head += data
    return head


def _is_value(head: bytes) -> bool:
    """Whether the first line, and a JSON value that begins in it, are complete."""
    begun = head.lstrip()
    return b"\n" in begun and (begun[:1] not in b"[{" or has_value(begun))


def after(head: bytes, take: Take) -> Take:
    """A reader of the inspected bytes, then of the others."""
    rest = head

    def both(size: int) -> bytes:
        nonlocal rest
        part, rest = rest[:size], rest[size:]
        return part or take(size)

    return both
