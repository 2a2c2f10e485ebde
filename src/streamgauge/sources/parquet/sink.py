"""The Parquet files of a sink's folder, and the journal of answers that are not yet in one.

Answers are lines of a journal, ``open-N.jsonl``, from which ``part-N.parquet`` is written and renamed into place; N
is the number of its first answer in the folder. So readers of ``part-*.parquet`` never see an incomplete file, and
a process that continues after a kill knows how many answers are stored, and skips those that are sent again.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Thread
from time import monotonic
from typing import IO, Any, Final
from zlib import crc32

import msgspec
import pyarrow as pa

from streamgauge.formats import tables
from streamgauge.formats.lines import LineError, decode_answer
from streamgauge.formats.manifest import TableError
from streamgauge.model.answer import Answer
from streamgauge.model.mistake import obstacle
from streamgauge.model.terms import plain
from streamgauge.sources.contract import Address, Delivery, SourceError

_TIME: Final = pa.timestamp("ms", "UTC")
_FIXED: Final = {
    "number": pa.int64(),
    "instant": _TIME,
    "start": _TIME,
    "end": _TIME,
    "change": pa.string(),
}
"""The columns before those of the variables; a variable of such a name has a ``?`` before it."""

_END: Final = b"streamgauge.end"
"""The key in a file's metadata of the number of its last answer in the folder."""


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """A file is written for every ``answers`` answers, and at most ``every`` ms after its first answer."""

    answers: int = 100_000
    every: int = 3_600_000


class ParquetSink:
    """Writes a row for each row of an answer: its number, instant, scope (start, end), ``+`` or ``-``, plain values."""

    def __init__(self, address: Address, options: ParquetOptions, clock: Callable[[], float] = monotonic) -> None:
        self._address, self._options, self._clock = address, options, clock
        self._changed, self._ending = Condition(), False
        self._sent = self._lost = self._passed = 0
        self._why: str | None = None
        try:
            self._journal = AnswerJournal(Path(address.path))
        except (OSError, pa.ArrowException, TableError) as error:
            raise SourceError(f"{address.text}: answers cannot be stored there: {_why(error)}") from error
        self._begun = clock() if self._journal.count else None
        self._thread = Thread(target=self._watch, name="streamgauge-parquet", daemon=True)
        self._thread.start()

    def send(self, message: bytes, key: str | None = None) -> None:
        """Store an answer, a line of JSON; its number is in the line or in the key (``QUERY/NUMBER``)."""
        with self._changed:
            if self._ending:
                raise SourceError(f"{self._address.text}: the sink is closed")
            # Not decoded: it was checked when it was stored.
            if self._passed:
                self._passed -= 1
                self._sent += 1
                return
            try:
                decode_answer(message)
                self._journal.append(message, key)
                self._sent += 1
            # Counted, not raised: one bad answer must not stop the query that sends the others.
            except (OSError, LineError) as error:
                self._lost += 1
                self._why = self._why or _why(error)
                return
            if self._begun is None:
                self._begun = self._clock()
                self._changed.notify_all()
            if self._journal.count >= self._options.answers:
                self._write()

    def hold(self) -> None:
        """Do nothing, as no answer is in flight."""

    def settle(self, patience: float | None = None) -> Delivery:  # noqa: ARG002
        """Sync all answers to the disk."""
        with self._changed:
            self._journal.settle()
            return Delivery(self._sent, self._lost, self._why)

    def mark(self) -> int:
        """The number of answers in the folder."""
        return self._journal.end

    def restore(self, mark: Any) -> None:
        """Skip the answers that were stored since a mark when they are sent again."""
        if mark is not None:
            self._passed = max(0, self._journal.end - int(mark))

    def close(self, patience: float | None = None) -> Delivery:  # noqa: ARG002
        """Write the remaining answers to a file, without waiting."""
        with self._changed:
            if not self._ending:
                self._ending = True
                self._changed.notify_all()
                self._write()
                self._journal.close()
            return Delivery(self._sent, self._lost, self._why)

    def _watch(self) -> None:
        """Write a file when its time is up, even if no answer arrives."""
        with self._changed:
            while not self._ending:
                if self._begun is None:
                    self._changed.wait()
                elif (left := self._begun + self._options.every / 1000 - self._clock()) > 0:
                    self._changed.wait(left)
                else:
                    self._write()

    def _write(self) -> None:
        """Write a file; if that fails, the answers stay in the journal for a later file."""
        try:
            self._journal.write()
            self._begun = None
        except (OSError, pa.ArrowException) as error:
            self._why = self._why or f"a file could not be written, its answers stay in the journal: {_why(error)}"
            self._begun = self._clock()


class AnswerJournal:
    """The answers of a folder that are not yet in a Parquet file; methods that write raise OSError."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # The kernel releases this lock when a process is killed, so that the next one can open the folder.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._begin(max(map(_end_of, folder.glob("part-*.parquet")), default=0) + 1)
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def end(self) -> int:
        """The number of the last answer in the folder."""
        return self._first - 1 + self.count

    def append(self, message: bytes, key: str | None) -> None:
        """Append an answer as a line: checksum, key and answer, separated by tabs."""
        text = (key or "").encode() + b"\t" + message.rstrip(b"\n")
        data = b"%08x\t%s\n" % (crc32(text), text)
        before = self._file.tell()
        try:
            self._file.write(data)
        except OSError:
            with suppress(OSError):
                # A line cut by a full disk would be joined with the next one.
                os.ftruncate(self._file.fileno(), before)
            raise
        self.count += 1

    def settle(self) -> None:
        """Sync the journal to the disk."""
        os.fsync(self._file.fileno())

    def write(self) -> None:
        """Turn the journal into a Parquet file, unless it is empty."""
        if not self.count:
            return
        self.settle()
        self._file.seek(0)
        table = table_of(map(_kept, self._file.readlines()))
        scratch, part = self._folder / f".part-{self._first:012}.tmp", self._folder / f"part-{self._first:012}.parquet"
        table = table.replace_schema_metadata({_END: str(self.end).encode()})
        with tables.writer(scratch, table.schema) as out:
            out.write_table(table)
        with scratch.open("rb+") as file:
            os.fsync(file.fileno())
        scratch.replace(part)
        # The descriptor is the folder's: syncing it makes the renaming durable before the journal is deleted.
        os.fsync(self._lock)
        self._file.close()
        self._begin(self.end + 1)

    def close(self) -> None:
        """Close the journal and unlock the folder."""
        self._file.close()
        os.close(self._lock)

    def _begin(self, first: int) -> None:
        """Open the journal from answer ``first`` on; earlier answers are in files."""
        self._first, path = first, self._folder / f"open-{first:012}.jsonl"
        for old in (*self._folder.glob("open-*.jsonl"), *self._folder.glob(".part-*.tmp")):
            if old != path:
                old.unlink()
        self._file: IO[bytes] = path.open("ab+", buffering=0)
        self._file.seek(0)
        lines = self._file.readlines()
        whole = [line for line in lines if line.endswith(b"\n")]
        self._file.truncate(sum(map(len, whole)))  # an incomplete line was never acknowledged
        self._file.seek(0, os.SEEK_END)
        self.count = len(whole)


def _end_of(file: Path) -> int:
    """The number of a file's last answer in its folder; OSError for a file of another program."""
    with tables.opened(file) as part:
        metadata = part.metadata.metadata or {}
    if _END not in metadata:
        raise OSError(f"{file.name} is not a file of this sink: name another folder")
    return int(metadata[_END])


def _kept(line: bytes) -> tuple[int | None, Answer]:
    """An answer of the journal with its number; OSError if its line is damaged."""
    checksum, _, text = line.rstrip(b"\n").partition(b"\t")
    if checksum != b"%08x" % crc32(text):
        raise OSError("the journal has a damaged line: move open-*.jsonl away; its answers are lost")
    key, _, message = text.partition(b"\t")
    number = int(key.rpartition(b"/")[2]) if b"/" in key else _numbered(message).number
    return number, decode_answer(message)


class _Numbered(msgspec.Struct):
    number: int | None = None


_numbered: Final = msgspec.json.Decoder(_Numbered).decode


def table_of(answers: Iterator[tuple[int | None, Answer]]) -> pa.Table:
    """Numbered answers as a table with a row for each added or removed one."""
    rows: list[dict[str, Any]] = []
    variables: dict[str, None] = {}
    for number, answer in answers:
        start, end = answer.scope or (None, None)
        fixed = {"number": number, "instant": answer.instant, "start": start, "end": end}
        names = [f"?{name}" if name in _FIXED else name for name in answer.columns]
        variables |= dict.fromkeys(names)
        for change, changed in (("+", answer.added), ("-", answer.removed)):
            rows += [{**fixed, "change": change, **_values(names, row)} for row in changed]
    schema = pa.schema([*_FIXED.items(), *((name, pa.string()) for name in variables)])
    return pa.Table.from_pylist(rows, schema)


def _values(names: Sequence[str], row: Sequence[str | None]) -> dict[str, str | None]:
    return {name: None if term is None else plain(term) for name, term in zip(names, row, strict=True)}


def _why(error: Exception) -> str:
    if isinstance(error, BlockingIOError):
        return "another sink is writing there"
    return obstacle(error) if isinstance(error, OSError) and error.strerror else str(error)
