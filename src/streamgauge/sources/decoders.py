"""Shared code of transports: reading options, refusals, decoding of messages, messages in flight."""

import json
import os
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Condition
from typing import Any, Literal, NamedTuple, TypedDict

from streamgauge.formats.lines import Input
from streamgauge.formats.streams import FormatError, Reading, message_decoder, one_by_one, stream_formats
from streamgauge.formats.streams.format import Format
from streamgauge.model.mistake import obstacle
from streamgauge.model.own_data import OWN_DATA_NAMES, OwnData
from streamgauge.sources.contract import Address, Delivery, SourceError


class Letter(NamedTuple):
    """A message and its key."""

    message: bytes
    key: str | None = None


class DeadLetters:
    """A file of undelivered messages, one JSON object per line; without a path they are dropped.

    Fields: ``time`` (ms), ``sink``, ``why``, ``key``, and ``message``, or ``base64`` for one that is not UTF-8.
    """

    def __init__(self, path: str | None, sink: str, clock: Callable[[], float] = time.time) -> None:
        self._path, self._sink, self._clock = path, sink, clock
        self._before = set[str | None]()
        if path is not None:
            # A file that cannot be written is reported when the sink opens, not with the first lost message. A line
            # that a killed process left incomplete ends here.
            self._add(b"" if _ends_with_line(Path(path)) else b"\n")

    def mark(self) -> Sequence[int] | None:
        """The file's inode and size in bytes; ``None`` without a file."""
        if self._path is None:
            return None
        status = Path(self._path).stat()
        return status.st_ino, status.st_size

    def restore(self, mark: Sequence[int] | None) -> None:
        """Read the keys of messages stored since an earlier process's mark, which will arrive again."""
        now = self.mark()
        if self._path is None or mark is None or now is None or now[0] != mark[0]:
            return
        with Path(self._path).open("rb") as file:
            file.seek(mark[1])
            for line in file:
                with suppress(ValueError):  # an incomplete line
                    letter = json.loads(line)
                    self._before |= {letter["key"]} if letter["sink"] == self._sink else set()

    def has(self, letter: Letter) -> bool:
        """Whether an earlier process has stored this message."""
        return letter.key is not None and letter.key in self._before

    def add(self, letter: Letter, why: str) -> bool:
        """Append a message, and return whether a file is configured; SourceError if it cannot be written."""
        if self._path is None:
            return False
        record = {"time": int(self._clock() * 1000), "sink": self._sink, "why": why, "key": letter.key}
        try:
            record["message"] = letter.message.decode()
        except UnicodeDecodeError:
            record["base64"] = b64encode(letter.message).decode()
        self._add(json.dumps(record).encode() + b"\n")
        return True

    def _add(self, line: bytes) -> None:
        try:
            with Path(str(self._path)).open("ab") as file:
                file.write(line)
                file.flush()
                # This may be the only copy of the message.
                os.fsync(file.fileno())
        except OSError as error:
            raise SourceError(f"{self._sink}: dead={self._path} cannot be written: {obstacle(error)}") from error


def _ends_with_line(path: Path) -> bool:
    """Whether a file is missing, empty, or ends with a line end."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        return not file.seek(0, os.SEEK_END) or (file.seek(-1, os.SEEK_END) >= 0 and file.read() == b"\n")
    return True


class Pending:
    """Counts messages in flight, at most ``capacity``; a further one waits up to ``patience`` seconds.

    Undeliverable messages are stored in ``dead``, once across all processes that resume from the same mark. ``still``
    explains why messages have been in flight for longer than they should.
    """

    def __init__(
        self, capacity: int, patience: float, dead: DeadLetters | None = None, still: Callable[[], str] = str
    ) -> None:
        self._capacity = capacity
        self._patience = patience
        self._dead, self._still = dead or DeadLetters(None, ""), still
        self._changed = Condition()
        self._under_way = 0
        self._sent = 0
        self._lost = self._buried = 0
        self._held = False
        self._why: str | None = None

    def hold(self) -> None:
        """Leave messages that are still in flight at the end to the next process, which sends them again."""
        self._held = True

    def mark(self) -> Any:
        """The end of the dead letters, as JSON."""
        return self._dead.mark()

    def restore(self, mark: Any) -> None:
        """Count messages that an earlier process has stored as dead letters since a mark, without sending them."""
        self._dead.restore(mark)

    def enter(self, letter: Letter) -> bool:
        """Wait for capacity; if none becomes free in time, count the message as undelivered and return false."""
        with self._changed:
            # Before the wait for capacity: a message that is not sent needs none.
            if self._dead.has(letter):
                self._lost, self._buried = self._lost + 1, self._buried + 1
                self._why = self._why or "a message became a dead letter before"
                return False
            if self._changed.wait_for(lambda: self._under_way < self._capacity, self._patience):
                self._under_way += 1
                return True
            self._fail(f"{self._capacity} messages were in flight for more than {self._patience:g} s", letter)
            return False

    def delivered(self) -> None:
        """Count one acknowledged message."""
        with self._changed:
            self._under_way -= 1
            self._sent += 1
            self._changed.notify_all()

    def lost(self, why: str, letter: Letter) -> None:
        """Count one message as undelivered, and store it as a dead letter."""
        with self._changed:
            self._under_way -= 1
            self._fail(why, letter)
            self._changed.notify_all()

    def bury(self, letters: Iterable[Letter], why: str) -> None:
        """Store the messages that were in flight when the sink closed, which ``drain`` has counted."""
        for letter in letters:
            self._keep(letter, why)

    def drain(self, patience: float | None = None) -> Delivery:
        """Wait up to ``patience`` (s) until no message is in flight; the others count as undelivered."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way, shorter(self._patience, patience))
            waiting = self._under_way
            why = self._why or (self._still() if waiting else None)
            return Delivery(self._sent, self._lost + waiting, why, self._buried, waiting)

    def end(self, patience: float | None = None) -> Delivery:
        """``drain`` for the last time."""
        delivery = self.drain(patience)
        # ``bury`` follows. Another process sends these messages again, so as dead letters they would exist twice.
        if self._held:
            self._dead = DeadLetters(None, "")
        return delivery

    def _fail(self, why: str, letter: Letter) -> None:
        self._lost += 1
        self._why = self._why or why
        self._keep(letter, why)

    def _keep(self, letter: Letter, why: str) -> None:
        """Store a dead letter; if that fails, the outcome has the reason, and the caller continues."""
        try:
            self._buried += self._dead.add(letter, why)
        except SourceError as error:
            # ``lost`` runs in callbacks of client libraries; an exception there would end the connection's thread.
            self._why = str(error)


class PendingSink:
    """Base of sinks with messages in flight; a mark is the end of the dead letters."""

    _pending: Pending

    def hold(self) -> None:
        """Leave messages that are still in flight at the end to the next process."""
        self._pending.hold()

    def mark(self) -> Any:
        """The mark from which another process can resume."""
        return self._pending.mark()

    def restore(self, mark: Any) -> None:
        """Resume from an earlier process's mark."""
        self._pending.restore(mark)

    def settle(self, patience: float | None = None) -> Delivery:
        """Wait up to ``wait`` and ``patience`` (s) until no message is in flight, and return the outcome."""
        return self._pending.drain(patience)


def shorter(own: float, patience: float | None) -> float:
    """The shorter of two durations (s); ``None`` means no limit."""
    return own if patience is None else min(own, patience)


_REASONS = 10


class OwnDataOptions(TypedDict, total=False):
    """The options of Python functions that read streams: ``reading`` holds defaults for the options of ``OwnData``."""

    reading: Reading | None
    time_property: str | None
    time_in: str | None
    time_zone: str | None
    fold: str | None
    parts: str | None
    csv_mapping: str | None
    json_mapping: str | None
    base: str | None
    context: str | None
    charset: str | None


@dataclass(frozen=True, slots=True)
class ReadingOptions(OwnData):
    """Reading options of a URL: ``Reading``'s fields, the format, and whether a bad part stops the source."""

    form: str | None = None
    stream: str | None = None
    interval: int | None = None
    lateness: int | None = None
    limit: int | None = None
    once: bool | None = None
    bad: Literal["stop", "skip"] = "stop"

    def over(self, reading: Reading | None) -> Reading:
        """The reading, overridden by the URL's options."""
        names = ("stream", "interval", "lateness", "limit", "once", *OWN_DATA_NAMES)
        options = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        under = reading or Reading()
        return replace(under, named=under.named | self.extra | ({"stream"} & set(options)), **options)

    @property
    def extra(self) -> frozenset[str]:
        """The options beyond those of ``Reading`` that a format must honour."""
        # Only ``MessageOptions`` has the field: files have no arrival.
        arrival = getattr(self, "time", "stated") == "arrival"
        return frozenset({"bad"} if self.bad == "skip" else ()) | frozenset({"time"} if arrival else ())


@dataclass(frozen=True, slots=True)
class MessageOptions(ReadingOptions):
    """Options of message transports: an element's ``time`` is stated in it, or that of its arrival."""

    time: Literal["stated", "arrival"] = "stated"


class Refusals:
    """Handles bad input: stop at the first error (``stop``), or count and skip it (``skip``)."""

    def __init__(self, bad: Literal["stop", "skip"]) -> None:
        self._bad = bad
        self.count = 0
        self.reasons: list[str] = []

    def __call__(self, error: FormatError) -> None:
        """Raise the error or count it, depending on ``bad``."""
        if self._bad == "stop":
            raise error
        self.count += 1
        if len(self.reasons) < _REASONS:
            self.reasons.append(str(error))


class RefusalReport:
    """The number of skipped parts of a source, and the reasons."""

    _refusals: Refusals

    @property
    def refused(self) -> int:
        """The number of skipped parts."""
        return self._refusals.count

    @property
    def reasons(self) -> Sequence[str]:
        """The reasons for the first ten skipped parts."""
        return tuple(self._refusals.reasons)


class Messages:
    """Turns the messages of a transport into elements and advances."""

    def __init__(self, address: Address, options: MessageOptions, reading: Reading | None, form: str | None) -> None:
        chosen = message_format(address, options.form or form or "jsonl")
        self._reading = options.over(reading)
        self._decode = message_decoder(chosen, self._reading, address.text)
        self._arrival = options.time == "arrival"
        self.refusals = Refusals(options.bad)

    @property
    def limit(self) -> int:
        """Maximum size of a message in bytes."""
        return self._reading.limit

    def items(self, payload: bytes, place: str, arrived: int) -> Sequence[Input]:
        """The items of a message, none if it was refused; ``arrived`` (ms): when the broker or this process got it."""
        try:
            if len(payload) > self._reading.limit:
                raise FormatError(f"{place}: {len(payload)} bytes, more than {self._reading.limit}: raise the limit")
            # A list, not an iterator: a message is refused as a whole, so none of its elements may have been delivered
            # before.
            return [*one_by_one(self._decode(payload, place, arrived if self._arrival else None))]
        except FormatError as error:
            self.refuse(error)
        return ()

    def refuse(self, error: FormatError) -> None:
        """Skip the part with an error, or stop with a SourceError."""
        try:
            self.refusals(error)
        except FormatError as stopped:
            raise SourceError(str(stopped)) from stopped


def message_format(address: Address, name: str) -> Format:
    """The format with that name; SourceError if it cannot be used for messages."""
    able = [one.name for one in stream_formats().values() if one.decoder is not None]
    if name not in able:
        raise SourceError(f"{address.text}: messages cannot be in the format {name!r}: use one of {', '.join(able)}")
    return stream_formats()[name]
