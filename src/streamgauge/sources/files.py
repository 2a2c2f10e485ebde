"""Files and folders: a path or ``file:``. ``follow=1`` keeps reading a growing file.

Standard input and output share the source and the sink over bytes.
"""

import contextlib
import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import IO, TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from streamgauge.formats.bounded_files import ByteReader
from streamgauge.formats.charsets import charset_of, is_ascii_based
from streamgauge.formats.codings import ENDINGS as CODINGS
from streamgauge.formats.documents import BUFFER, suffix_of
from streamgauge.formats.lines import Input
from streamgauge.formats.streams import (
    FormatError,
    Reading,
    Refuse,
    format_by_bytes,
    format_claimants,
    one_by_one,
    read_open,
    read_whole,
    stream_format,
    whole_path,
)
from streamgauge.formats.streams.format import Format
from streamgauge.formats.streams.marks import LineMark
from streamgauge.model.mistake import obstacle
from streamgauge.model.phrases import counted
from streamgauge.sources.contract import Address, Delivery, Position, Sink, Source, SourceError, read_options
from streamgauge.sources.decoders import ReadingOptions, RefusalReport, Refusals
from streamgauge.sources.tail import HEAD_BYTES, FileHead, FilePlace, FollowedFile, after, first_value

if TYPE_CHECKING:
    from streamgauge.formats.batches import Taken


class ByteSource(RefusalReport):
    """The elements that a format reads from bytes, until ``closing`` is set."""

    def __init__(
        self, address: Address, closing: Event, refusals: Refusals, read: "Callable[[Refuse], Iterator[Taken]]"
    ) -> None:
        self._address = address
        self._closing = closing
        self._refusals = refusals
        self._read = read

    def items(self) -> "Iterator[Taken]":
        """The elements and advances in the order of the bytes."""
        try:
            for item in self._read(self._refusals):
                if self._closing.is_set():
                    return
                yield item
        except FormatError as error:
            if not self._closing.is_set():  # closing may cut an element short, which is not an error
                raise SourceError(str(error)) from error
        except OSError as error:
            raise SourceError(f"{self._address.text}: cannot be read: {obstacle(error)}") from error

    def close(self) -> None:
        """Stop at the next element, or while waiting for bytes."""
        self._closing.set()


@dataclass
class FileOrigin:
    """The place from which the items of a file are counted, and the number of items since.

    An earlier process has read ``passed`` of them; ``lost`` is why that place cannot be found again. ``resumable``:
    the place must be one at which another process can resume, ``apart`` each element must have one. ``form`` and
    ``state`` are the format and what its reader knew at the place; ``files`` is the number of files before.
    """

    place: FilePlace
    items: int = 0
    passed: int = 0
    lost: str = ""
    resumable: bool = False
    apart: bool = False
    form: str | None = None
    state: Mapping[str, Any] = field(default_factory=dict)
    files: int = 0

    def begin(self, place: FilePlace, files: int, state: Mapping[str, Any]) -> None:
        """Count from another place, before which all elements were delivered."""
        self.place, self.files, self.state, self.items, self.passed = place, files, state, 0, 0


class ItemPlace(NamedTuple):
    """The place behind an item: that from which items are counted, the format and state of its reader, their number."""

    origin: FilePlace
    form: str | None
    state: Mapping[str, Any]
    items: int


class FileSource(ByteSource):
    """The elements of a file; a place is a byte offset and the number of items since."""

    def __init__(
        self,
        address: Address,
        closing: Event,
        refusals: Refusals,
        read: "Callable[[Refuse], Iterator[Taken]]",
        origin: FileOrigin,
    ) -> None:
        super().__init__(address, closing, refusals, read)
        self._origin = origin

    @property
    def lost(self) -> str:
        """Why the position could not be found again; empty if it was."""
        return self._origin.lost

    def items(self) -> "Iterator[Taken]":
        """The elements and advances in the order of the bytes, without those that an earlier process read."""
        origin = self._origin
        for item in one_by_one(super().items()) if origin.apart else super().items():
            count = 1 if isinstance(item, Input) else len(item)
            origin.items += count
            if (passed := origin.passed - origin.items + count) <= 0:
                yield item
            elif passed < count and not isinstance(item, Input):
                yield item.part(passed, count)
        # Silence would pass over what is appended, until the file has as many elements as before.
        if origin.items < origin.passed and not self._closing.is_set():
            raise SourceError(
                f"{self._address.text}: {counted(origin.passed, 'element')} of it had been read, and it has "
                f"{origin.items:,} now: put back the file as it was, or begin with a new state"
            )

    def hold(self, *, apart: bool = True) -> bool:
        """Record that places must be resumable; a file needs no acknowledgement."""
        self._origin.resumable, self._origin.apart = True, apart
        return False

    def place(self) -> "ItemPlace":
        """The place in the file, what its reader knew there, and the items since."""
        origin = self._origin
        # Before the first item this is the place that the source was opened at.
        return ItemPlace(origin.place, origin.form, origin.state, max(origin.items, origin.passed))

    def position(self, place: "ItemPlace") -> Position | None:
        """The place as JSON: the file's bytes and offsets, its format, the state of its reader, and items since."""
        (head, offset, end, last), form, state, items = place
        read = {"head": head.data.decode("latin-1"), "offset": offset, "end": end, "last": last.decode("latin-1")}
        return {**read, "form": form, "state": state, "items": items}

    def settle(self, place: object) -> None:
        """Do nothing, as a file needs no acknowledgement."""


@dataclass(frozen=True, slots=True)
class WritingOptions:
    """The end of each message: a line end, added if missing, or none for binary messages."""

    end: Literal["line", "none"] = "line"


class ByteSink:
    """Appends messages to an open descriptor, unbuffered; a message that was written in part is removed again."""

    def __init__(self, descriptor: int, end: str, take_back: Callable[[int], None] | None) -> None:
        self._descriptor = descriptor
        self._restorable = take_back is not None
        self._ending = b"\n" if end == "line" else b""
        self._take_back = take_back
        self._lock = Lock()
        self._sent = 0
        self._lost = 0
        self._why: str | None = None
        self._closed = False

    def send(self, message: bytes, key: str | None = None) -> None:  # noqa: ARG002
        """Write one message, ignoring the key; one that cannot be written counts as undelivered."""
        data = message if message.endswith(self._ending) else message + self._ending
        with self._lock:
            if self._closed:
                raise SourceError("the sink is closed")
            written = 0
            try:
                # ``os.write`` to a pipe or to a disk that is nearly full may write a part without an error.
                while written < len(data):
                    written += os.write(self._descriptor, data[written:])
                self._sent += 1
            except OSError as error:
                self._lost += 1
                self._why = self._why or obstacle(error)
                # The next message would be joined with the written part.
                if written and self._take_back is not None:
                    self._take_back(written)

    def mark(self) -> Sequence[int] | None:
        """The file's inode and size in bytes; ``None`` for a pipe or another stream."""
        status = os.fstat(self._descriptor)
        # A named pipe or a device opens as a file, but cannot be truncated.
        return [status.st_ino, status.st_size] if self._restorable and stat.S_ISREG(status.st_mode) else None

    def restore(self, mark: Any) -> None:
        """Truncate the file to its size at the mark."""
        now = self.mark()
        # Another file under this name, or one that was truncated since, is left alone.
        if mark is not None and now is not None and now[0] == mark[0] and now[1] > mark[1]:
            os.ftruncate(self._descriptor, mark[1])

    def close(self, patience: float | None = None) -> Delivery:  # noqa: ARG002
        """Close the descriptor if it is a file's, and return the outcome, without waiting."""
        with self._lock:
            # Standard output belongs to the process and stays open.
            if not self._closed and self._take_back is not None:
                os.close(self._descriptor)
            self._closed = True
            return Delivery(self._sent, self._lost, self._why)


SCHEMES = ("file",)


@dataclass(frozen=True, slots=True)
class FileOptions(ReadingOptions):
    """Options of files: ``follow`` keeps reading a growing file."""

    follow: bool = False


def open_source(address: Address, reading: Reading | None, form: str | None) -> Source:
    """A file or folder, in a named format or that of its ending. FormatError, SourceError."""
    return _opened(address, reading, form, FileOrigin(FilePlace(FileHead(b""), 0)))


def resume_source(address: Address, reading: Reading | None, form: str | None, position: Position) -> Source:
    """A file from a position on; SourceError if it is not followed and has been replaced."""
    # Earlier versions kept neither last bytes nor format nor state.
    last, state, named = position.get("last", ""), position.get("state", {}), position.get("form")
    head = FileHead(position["head"].encode("latin-1"))
    place = FilePlace(head, position["offset"], position.get("end", 0), last.encode("latin-1"))
    origin = FileOrigin(place, passed=position["items"], form=named, state=state)
    path, follow = Path(address.path), read_options(FileOptions, address).follow
    # A file that is not there is refused when it is opened.
    if not follow and path.exists() and _head(path, len(place.head.data)) != place.head:
        raise SourceError(
            f"{address.text}: this is not the file that was read before: name that one, or begin with a new state"
        )
    return _opened(address, reading, form, origin)


def _opened(address: Address, reading: Reading | None, form: str | None, origin: FileOrigin) -> Source:
    options = read_options(FileOptions, address)
    path, reading = Path(address.path), options.over(reading)
    if not path.exists():
        raise SourceError(f"{address.text}: there is no such file or folder")
    # The first bytes at another place may look like another format's.
    named, closing = options.form or form or origin.form, Event()
    claimants = format_claimants(path, named)
    if options.follow:
        read = partial(_followed, path, _followable(address, path, claimants), reading, closing, origin)
    else:
        # A file that is not followed has only this place: resuming reads it from the beginning, past ``passed`` items.
        origin.place = FilePlace(_head(path, HEAD_BYTES), 0)
        read = partial(_whole, path, stream_format(path, named, reading), reading)
    return FileSource(address, closing, Refusals(options.bad), read, origin)


def _head(path: Path, size: int) -> FileHead:
    """The first bytes of a file; empty for a folder or pipe."""
    if not path.is_file():
        return FileHead(b"")
    with path.open("rb") as file:
        return FileHead(file.read(size))


def open_sink(address: Address) -> Sink:
    """A file to which messages are appended; SourceError if it cannot be opened."""
    options = read_options(WritingOptions, address)
    try:
        # In append mode every write goes to the end of the file, so after ``ftruncate`` no seek is needed.
        descriptor = os.open(address.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError as error:
        raise SourceError(f"{address.text}: cannot be written: {obstacle(error)}") from error

    def take_back(count: int) -> None:
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - count)

    return ByteSink(descriptor, options.end, take_back)


def _whole(path: Path, form: Format, reading: Reading, refuse: Refuse) -> "Iterator[Taken]":
    return read_whole(whole_path(path, reading), form, reading, refuse)


_NOT_FOLLOWED: Final = "cannot be followed: follow an uncompressed file, as of nquads or jsonl"


def _followable(address: Address, path: Path, claimants: Sequence[Format]) -> Sequence[Format]:
    """The formats, unchanged; SourceError if the file, or all of them, cannot be followed."""
    if all(form.follow is None for form in claimants) or not path.is_file() or suffix_of(path.name) in CODINGS:
        raise SourceError(f"{address.text}: {claimants[0].name} {_NOT_FOLLOWED}")
    return claimants


def _followed(
    path: Path, claimants: Sequence[Format], reading: Reading, closing: Event, origin: FileOrigin, refuse: Refuse
) -> "Iterator[Taken]":
    with contextlib.closing(FollowedFile(path, closing, reading.note)) as file:
        # Without a head this is a first start, not a resumption.
        if origin.place.head.data and not file.begin_at(origin.place):
            origin.lost = f"{path}: the file that was read up to byte {origin.place.offset:,} is gone"
            origin.begin(file.place, file.files, {})
        # This waits, as a log that is followed may be empty at first.
        head = first_value(file.take) if len(claimants) > 1 else b""
        if head:
            origin.place = file.place._replace(offset=origin.place.offset)
        form = format_by_bytes(claimants, head, reading)
        if form.follow is None:
            raise FormatError(f"{path}: {form.name} {_NOT_FOLLOWED}")
        origin.form = form.name
        mark = LineMark(origin.state) if origin.resumable and form.resumes else None
        if origin.passed and not (form.resumes and is_ascii_based(charset_of(origin.place.head.data, reading.charset))):
            reading.note(f"{path}: {form.name} is read again from its beginning, past {origin.passed:,} elements")
        # Without marks a place counts the items since the file's beginning, which loses its meaning when a successor
        # follows.
        file.rotates = not form.binary and (mark is not None or not origin.resumable)
        take, reading = after(head, partial(_take, file, origin, mark)), replace(reading, mark=mark)
        opened = cast(IO[bytes], io.BufferedReader(ByteReader(take), BUFFER))
        # No head although one is needed: the source was closed before the first bytes arrived.
        if head or len(claimants) == 1:
            yield from _guessed(read_open(opened, str(path), form, reading, refuse), form, claimants)


def _take(file: FollowedFile, origin: FileOrigin, mark: LineMark | None, size: int) -> bytes:
    """The next bytes; the count of items restarts at the reader's mark."""
    # The reader asks for bytes when it has delivered the elements of the lines before its mark. So the offset can
    # replace the count, and a resumed source does not read the file from its beginning.
    here = mark.here() if mark is not None and origin.items >= origin.passed else None
    # Held lines may begin in the file before; that place stays.
    if here is not None and (offset := file.place.offset - here.held) >= 0:
        origin.begin(file.place._replace(offset=offset), file.files, here.state)
    if mark is not None:
        file.rotates = is_ascii_based(mark.charset)
    data = file.take(size)
    if here is not None and not here.held and origin.files != file.files:
        origin.begin(file.place._replace(offset=0), file.files, here.state)
    elif origin.files == file.files:
        origin.place = file.place._replace(offset=origin.place.offset)
    return data


def _guessed(items: "Iterator[Taken]", form: Format, claimants: Sequence[Format]) -> "Iterator[Taken]":
    """The elements in a format; an error before the first also says that first bytes decided about the format."""
    begun = False
    try:
        for item in items:
            begun = True
            yield item
    except FormatError as error:
        others = " or ".join(other.name for other in claimants if other is not form)
        # Only errors of syntax, which name a line, can come from a wrong guess.
        if begun or not others or ", line " not in str(error):
            raise
        raise FormatError(
            f"{error} (its first bytes look like {form.name}; if it is {others}, name that with form=)"
        ) from error
