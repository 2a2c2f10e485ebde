"""Why a disk refused a change, in words: full, a quota, an error of the device."""

import errno
import os
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_FSIZE, getrlimit
from tempfile import TemporaryFile
from typing import Final

_WORDS: Final = {
    errno.ENOSPC: "the disk is full (ENOSPC): make room, and writes are taken again",
    errno.EDQUOT: "the disk quota is used up (EDQUOT): raise the quota or make room, and writes are taken again",
    errno.EIO: "the disk reports an input/output error (EIO): look at the system's log, and replace the disk",
    errno.EFBIG: "the file may not grow any more (EFBIG): raise the limit of file sizes, and writes are taken again",
    errno.EROFS: "the file system is read-only (EROFS): mount it for writing, and writes are taken again",
}
_PROBED: Final = 65536


def refusal(code: int) -> str | None:
    """The words for an errno with which disks refuse writes; ``None`` for any other."""
    return _WORDS.get(code)


def probe(folder: Path) -> int | None:
    """The errno with which a folder refuses a file of 64 KiB now; ``None`` when it takes one.

    EFBIG when one of its files has nearly the size that this process may give a file.
    """
    limit, _ = getrlimit(RLIMIT_FSIZE)
    try:
        sizes = [each.stat().st_size for each in folder.iterdir() if each.is_file()]
        if limit != RLIM_INFINITY and max(sizes, default=0) + _PROBED > limit:
            return errno.EFBIG
        with TemporaryFile(dir=folder, prefix="probe-") as file:
            file.write(bytes(_PROBED))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno
    return None


def explained(folder: Path, said: str, *, full: bool) -> str:
    """Why a library could not write in a folder: by the words that it ``said``, else by trying.

    ``full`` when the library says that there is no room, without saying of what kind.
    """
    named = next((code for code in _WORDS if os.strerror(code) in said), errno.ENOSPC if full else None)
    if named in (None, errno.EIO):  # which is also how LMDB and SQLite say that only a part was written
        found = probe(folder)
        named = found if found in _WORDS else named
    return said if named is None else _WORDS[named]
