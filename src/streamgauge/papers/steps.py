"""The steps of a long reproduction, each kept when it is done, so that one that was stopped goes on where it was.

Steps are kept for the data and the version that they were made of, and only until the reproduction is whole: the next
one computes all values again.
"""

import shutil
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeVar

from streamgauge.formats.fields import FieldError, decode, encode
from streamgauge.formats.run import RunError, read_json, write_json

_FORMAT: Final = "streamgauge reproduction step"
_VERSION: Final = 1

T = TypeVar("T")


class Steps:
    """Steps kept below a folder, none where there is no folder; ``data`` are the files that they are made of."""

    def __init__(self, folder: Path | None, data: Path) -> None:
        self._folder = None if folder is None else folder / f"unfinished-{_digest(data)}"

    @property
    def kept(self) -> int:
        """How many steps are kept from before."""
        return 0 if self._folder is None else len(list(self._folder.glob("[!.]*.json")))

    def do(self, name: str, kind: type[T], make: Callable[[], T]) -> T:
        """The dataclass ``kind`` that a step gives, as kept, else made now and kept; its fields go into JSON."""
        if self._folder is None:
            return make()
        file = self._folder / f"{name}.json"
        try:
            return decode(kind, read_json(file, _FORMAT, _VERSION)["step"])
        except (RunError, FieldError, KeyError):
            made = make()
        write_json(file, {"format": _FORMAT, "version": _VERSION, "step": encode(made)})
        return made

    def end(self) -> None:
        """All is done: forget the steps."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _digest(data: Path) -> str:
    """A name for the version of Streamgauge and the names, sizes and times of the files of a folder."""
    found = sha256(version("streamgauge").encode())
    for file in sorted(file for file in data.rglob("*") if file.is_file()):
        state = file.stat()
        found.update(f"{file.relative_to(data)} {state.st_size} {state.st_mtime_ns}\n".encode())
    return found.hexdigest()[:16]
