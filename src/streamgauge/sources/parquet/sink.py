"""The files of Parquet in the folder of a sink, and the journal of the answers that are in none yet.

Answers are lines of a journal, ``open-N.jsonl``, until ``part-N.parquet`` is written from them and appears whole, N
being the number of its first answer in the folder. So readers of ``part-*.parquet`` see nothing unfinished, and a
process that goes on after a kill knows how many answers are there and passes over those that it is given again.
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
    """A file is written of every ``answers`` answers, and at the latest ``every`` ms after its first one came."""

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
            raise SourceError(f"{address.text}: no answers can be kept there: {_why(error)}") from error
        self._begun = clock() if self._journal.count else None
        self._thread = Thread(target=self._watch, name="streamgauge-parquet", daemon=True)
        self._thread.start()

    def send(self, message: bytes, key: str | None = None) -> None:
        """Keep an answer, a line of JSON; the key has its number where the line has none (``QUERY/NUMBER``)."""
        with self._changed:
            if self._ending:
                raise SourceError(f"{self._address.text}: the sink is closed")
            if self._passed:
                self._passed -= 1
                self._sent += 1
                return
            try:
                decode_answer(message)
                self._journal.append(message, key)
                self._sent += 1
            except (OSError, LineError) as error:
                self._lost += 1
                self._why = self._why or _why(error)
                return
            if self._begun is None:
                self._begun = self._clock()
                self._changed.notify_all()
            if self._journal.count >= self._options.answers:
                self._write()

    def settle(self) -> Delivery:
        """All that was sent is on the disk."""
        with self._changed:
            self._journal.settle()
            return Delivery(self._sent, self._lost, self._why)

    def mark(self) -> int:
        """How many answers the folder has."""
        return self._journal.end

    def restore(self, mark: Any) -> None:
        """Pass over answers that were kept since a mark when they are sent again."""
        if mark is not None:
            self._passed = max(0, self._journal.end - int(mark))

    def close(self, patience: float | None = None) -> Delivery:  # noqa: ARG002
        """Write a file of the last answers. Nothing is waited for."""
        with self._changed:
            if not self._ending:
                self._ending = True
                self._changed.notify_all()
                self._write()
                self._journal.close()
            return Delivery(self._sent, self._lost, self._why)

    def _watch(self) -> None:
        """Write a file when its time has come, though no answer comes."""
        with self._changed:
            while not self._ending:
                if self._begun is None:
                    self._changed.wait()
                elif (left := self._begun + self._options.every / 1000 - self._clock()) > 0:
                    self._changed.wait(left)
                else:
                    self._write()

    def _write(self) -> None:
        """Write a file; where that fails the answers stay in the journal, and a later file has them."""
        try:
            self._journal.write()
            self._begun = None
        except (OSError, pa.ArrowException) as error:
            self._why = self._why or f"no file could be written, the answers wait in the folder: {_why(error)}"
            self._begun = self._clock()


class AnswerJournal:
    """The answers of a folder that are not in a file of Parquet yet; OSError, as from all methods that write."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._begin(max(map(_end_of, folder.glob("part-*.parquet")), default=0) + 1)
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def end(self) -> int:
        """How many answers the folder has in all."""
        return self._first - 1 + self.count

    def append(self, message: bytes, key: str | None) -> None:
        """Add an answer: a line of its checksum, its key and itself, with tabs between."""
        text = (key or "").encode() + b"\t" + message.rstrip(b"\n")
        data = b"%08x\t%s\n" % (crc32(text), text)
        before = self._file.tell()
        try:
            self._file.write(data)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), before)
            raise
        self.count += 1

    def settle(self) -> None:
        """All that was added is on the disk."""
        os.fsync(self._file.fileno())

    def write(self) -> None:
        """Make the answers a file of Parquet; nothing where there are none."""
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
        os.fsync(self._lock)
        self._file.close()
        self._begin(self.end + 1)

    def close(self) -> None:
        """Leave the folder to others."""
        self._file.close()
        os.close(self._lock)

    def _begin(self, first: int) -> None:
        """The journal from an answer on; those before it are in files."""
        self._first, path = first, self._folder / f"open-{first:012}.jsonl"
        for old in (*self._folder.glob("open-*.jsonl"), *self._folder.glob(".part-*.tmp")):
            if old != path:
                old.unlink()
        self._file: IO[bytes] = path.open("ab+", buffering=0)
        self._file.seek(0)
        lines = self._file.readlines()
        whole = [line for line in lines if line.endswith(b"\n")]
        self._file.truncate(sum(map(len, whole)))  # one that was cut by a kill was not acknowledged
        self._file.seek(0, os.SEEK_END)
        self.count = len(whole)


def _end_of(file: Path) -> int:
    """The number of the last answer of a file in its folder; OSError for a file of another program."""
    with tables.opened(file) as part:
        metadata = part.metadata.metadata or {}
    if _END not in metadata:
        raise OSError(f"{file.name} is not of this sink: name a folder of its own")
    return int(metadata[_END])


def _kept(line: bytes) -> tuple[int | None, Answer]:
    """The number of an answer and itself, of a line of the journal; OSError for one that has changed since."""
    checksum, _, text = line.rstrip(b"\n").partition(b"\t")
    if checksum != b"%08x" % crc32(text):
        raise OSError("a line of the answers that wait is damaged: move open-*.jsonl away, their answers are lost")
    key, _, message = text.partition(b"\t")
    number = int(key.rpartition(b"/")[2]) if b"/" in key else _numbered(message).number
    return number, decode_answer(message)


class _Numbered(msgspec.Struct):
    number: int | None = None


_numbered: Final = msgspec.json.Decoder(_Numbered).decode


def table_of(answers: Iterator[tuple[int | None, Answer]]) -> pa.Table:
    """Answers with their numbers as a table, a row for each that came or went."""
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
        return "another sink writes there"
    return obstacle(error) if isinstance(error, OSError) and error.strerror else str(error)
