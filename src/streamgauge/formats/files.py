"""Atomic creation of files and folders, also by several processes at once; reading of text files."""

import errno
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from streamgauge.model.mistake import MistakeError, obstacle

_TAKEN = frozenset((errno.ENOTEMPTY, errno.EEXIST))
_HOST = platform.node().replace(".", "-")
_numbers = count()


class PlaceError(MistakeError, OSError):
    """A folder that cannot be created; the sentence says why."""


def made_folder(folder: Path) -> Path:
    """The folder, created if it does not exist; PlaceError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    # ``exist_ok`` accepts folders only.
    except FileExistsError:
        raise PlaceError(f"{folder}: cannot make the folder: a file has this name: name another place") from None
    except OSError as error:
        raise PlaceError(f"{folder}: cannot make the folder: {obstacle(error)}") from error
    return folder


@contextmanager
def stage(target: Path) -> Iterator[Path]:
    """A unique place beside ``target`` for a file or folder; removed at the end unless it was moved.

    Places of killed processes of this machine that staged the same target are removed first.
    """
    made_folder(target.parent)
    # Only names with this host: on a shared file system, process ids of other machines say nothing here.
    for left in target.parent.glob(f".{target.name}.{_HOST}.*"):
        import psutil  # late: nothing is left behind but by a kill

        process = left.name.removeprefix(f".{target.name}.{_HOST}.").split(".")[0]
        # A place of a running process may still be in use.
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            _remove(left)
    place = _beside(target, "making")
    try:
        yield place
    finally:
        _remove(place)


def hardlink(file: Path, target: Path) -> None:
    """Make a file available at another place, without a copy if the file system supports it."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copy2(file, target)


def put_if_absent(place: Path, target: Path) -> None:
    """Move a staged place to ``target``, unless another process was first: then its result stays."""
    try:
        # Needed for files: renaming replaces a file silently, whereas a folder that is not empty raises an error.
        if not target.exists():
            place.rename(target)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise


def overwrite(place: Path, target: Path) -> None:
    """Move a staged place to ``target``, replacing anything there."""
    while True:
        try:
            place.replace(target)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            # A folder that is not empty cannot be replaced in one step.
            _set_aside(target)
        else:
            return


def _set_aside(target: Path) -> None:
    """Rename a folder, which is atomic, and then delete it; another process may have done so before."""
    aside = _beside(target, "old")
    try:
        # Renamed first, as a reader must not meet a folder of which some files are gone.
        target.rename(aside)
    except FileNotFoundError:
        return
    _remove(aside)


def _beside(target: Path, what: str) -> Path:
    return target.with_name(f".{target.name}.{_HOST}.{os.getpid()}.{next(_numbers)}.{what}")


def _remove(left: Path) -> None:
    if left.is_dir():
        shutil.rmtree(left, ignore_errors=True)
    else:
        left.unlink(missing_ok=True)


class UnreadableError(MistakeError, ValueError):
    """A text file that cannot be read; the sentence says why."""


def read_text(path: Path) -> str:
    """The text of a file; UnreadableError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{path}: cannot be read: {obstacle(error)}") from error
