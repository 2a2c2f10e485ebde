"""Documents: input of any origin, decompressed and transcoded to UTF-8 when it is opened.

A file is a document, so is each file of a folder, of a zip or of a tar archive, standard input, and a message.
"""

import os
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from streamgauge.formats.charsets import CharsetError, in_utf8
from streamgauge.formats.codings import ENDINGS, unpacked
from streamgauge.model.mistake import MistakeError, obstacle

ARCHIVES: Final = (".zip", ".tar", ".tgz")

MAX_ARCHIVE_BYTES: Final = 2**32
"""Maximum bytes of an unpacked tar archive, which is buffered while its files are read."""

BUFFER: Final = 2**18
"""Read size in bytes: some hundred lines, which line-based formats parse at a time."""

_IN_MEMORY: Final = 2**24
_BLOCK: Final = 2**20


class FormatError(MistakeError, ValueError):
    """A file that is not in its format; the sentence names the file and the line."""


@dataclass(frozen=True, slots=True)
class Document:
    """Bytes with their ``place`` (for errors), ``name`` (whose ending determines the format), and an opener.

    ``base`` resolves relative IRIs, ``charset`` applies to text without a byte order mark.
    """

    place: str
    name: str
    raw: Callable[[], IO[bytes]]
    base: str | None = None
    charset: str | None = None
    ending: str = field(init=False)
    """The ending of its name in lower case, without that of a content coding."""

    def __post_init__(self) -> None:
        """Derive the ending from the name."""
        object.__setattr__(self, "ending", name_ending(self.name))

    def open(self, *, binary: bool = False, charset: str | None = None) -> IO[bytes]:
        """Its unpacked bytes, in UTF-8 without a byte order mark unless ``binary``; FormatError.

        ``charset`` is the format's default, used if the user named none.
        """
        coding = ENDINGS.get(suffix_of(self.name))
        try:
            file = self.raw() if coding is None else unpacked(self.raw(), coding)
            return file if binary else in_utf8(file, self.charset or charset)
        except CharsetError as error:
            raise FormatError(f"{self.place}: {error}") from error
        except (OSError, EOFError) as error:
            what = ": cannot be read" if coding is None else ", line 1: cannot be unpacked"
            raise FormatError(f"{self.place}{what}: {obstacle(error)}") from error


def suffix_of(name: str) -> str:
    """The last ending of a name in lower case."""
    stem, dot, suffix = name.rpartition(".")
    return f".{suffix.lower()}" if dot and stem and suffix and "/" not in suffix else ""


def name_ending(name: str) -> str:
    """The ending of a file's name in lower case, without that of a content coding: ``.ttl`` of ``a.TTL.gz``."""
    suffix = suffix_of(name)
    return suffix_of(name[: -len(suffix)]) if suffix in ENDINGS else suffix


def ending(path: Path) -> str:
    """``name_ending`` of a path."""
    return name_ending(path.name)


def file_document(path: Path, charset: str | None = None, base: str | None = None) -> Document:
    """A file as a document."""
    return Document(str(path), path.name, lambda: path.open("rb", buffering=BUFFER), base, charset)


def open_bytes(path: Path) -> IO[bytes]:
    """A file of text for reading, unpacked by its name's ending, in UTF-8 without a byte order mark; FormatError."""
    return file_document(path).open()


def documents(path: Path, charset: str | None = None, base: str | None = None) -> list[Document]:
    """The file itself, or the files in a folder, a zip or a tar archive, sorted by name; FormatError.

    Files whose names begin with ``_`` or ``.`` are skipped, as in Hadoop.
    """
    try:
        if path.is_dir():
            files = sorted(Path(entry) for entry in os.scandir(path) if entry.is_file() and _is_data(entry.name))
            return [file_document(file, charset, base) for file in files]
        kind = ending(path)
        if kind not in ARCHIVES:
            return [file_document(path, charset, base)]
        members = _zip_members(path) if kind == ".zip" else _tar_members(path)
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise FormatError(f"{path}: cannot be unpacked: {obstacle(error)}") from error
    return [
        Document(f"{path}/{name}", PurePosixPath(name).name, raw, base, charset)
        for name, raw in members
        if all(map(_is_data, PurePosixPath(name).parts))
    ]


def _is_data(name: str) -> bool:
    """Whether a name is that of data: not ``_manifest.json``, ``_SUCCESS``, ``.DS_Store`` or ``__MACOSX``."""
    return not name.startswith(("_", ".")) or name in (".", "..")


def document_lines(document: Document) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers, from 1; FormatError if it is not UTF-8 or cannot be unpacked."""
    # Outside of the loop: an error while reading has no line of its own, and is reported for the one after the last.
    last = 0
    with document.open() as file:
        try:
            for last, line in enumerate(file, 1):
                yield last, line.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            message = "not UTF-8 text: save it as UTF-8, or name its charset (?charset=windows-1252)"
            raise FormatError(f"{document.place}, line {last}: {message}") from error
        except CharsetError as error:
            raise FormatError(f"{document.place}, line {last + 1}: {error}") from error
        except (OSError, EOFError) as error:
            raise FormatError(f"{document.place}, line {last + 1}: cannot be unpacked: {obstacle(error)}") from error


Member = tuple[str, Callable[[], IO[bytes]]]


def _zip_members(path: Path) -> list[Member]:
    with zipfile.ZipFile(path) as archive:
        names = sorted(entry.filename for entry in archive.infolist() if not entry.is_dir())
    # An archive for each member, as members that are open at the same time would share its file position. The default
    # argument binds the name of this turn of the loop.
    return [(name, lambda name=name: zipfile.ZipFile(path).open(name)) for name in names]  # type: ignore[misc]


def _tar_members(path: Path) -> list[Member]:
    archive = tarfile.open(fileobj=_whole_archive(path))  # noqa: SIM115  # its members are opened later
    entries = sorted((entry for entry in archive if entry.isfile()), key=lambda entry: entry.name)
    return [(entry.name, lambda entry=entry: cast(IO[bytes], archive.extractfile(entry))) for entry in entries]  # type: ignore[misc]


def _whole_archive(path: Path) -> IO[bytes]:
    """The unpacked archive, on disk if it is large: its members are read in the order of their names."""
    whole = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  # closed with the archive
    coding = "gzip" if suffix_of(path.name) == ".tgz" else ENDINGS.get(suffix_of(path.name))
    with path.open("rb") as packed:
        file = packed if coding is None else unpacked(packed, coding)
        while block := file.read(_BLOCK):
            if whole.tell() > MAX_ARCHIVE_BYTES:
                raise FormatError(f"{path}: unpacks to more than {MAX_ARCHIVE_BYTES:,} bytes: unpack it to a folder")
            whole.write(block)
    whole.seek(0)
    return cast(IO[bytes], whole)
