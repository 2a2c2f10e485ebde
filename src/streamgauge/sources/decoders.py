"""The common part of transports: options of reading, refusals, decoding of messages, messages under way."""

import json
import os
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Condition
from typing import Literal, NamedTuple, TypedDict

from streamgauge.formats.lines import Input
from streamgauge.formats.streams import FormatError, Reading, message_decoder, stream_formats
from streamgauge.formats.streams.format import OWN_DATA, Format, OwnData
from streamgauge.model.mistake import obstacle
from streamgauge.sources.contract import Address, Delivery, SourceError


class Letter(NamedTuple):
    """A message with its key."""

    message: bytes
    key: str | None = None


class DeadLetters:
    """A file of the messages that a sink did not deliver, a JSON object a line; without a path they are let go.

    Fields: ``time`` (ms), ``sink``, ``why``, ``key``, and ``message``, or ``base64`` for one that is no UTF-8.
    """

    def __init__(self, path: str | None, sink: str, clock: Callable[[], float] = time.time) -> None:
        self._path, self._sink, self._clock = path, sink, clock
        if path is not None:
            self._add(b"")

    def add(self, letter: Letter, why: str) -> None:
        """Keep one message; SourceError where the file cannot be written."""
        if self._path is None:
            return
        record = {"time": int(self._clock() * 1000), "sink": self._sink, "why": why, "key": letter.key}
        try:
            record["message"] = letter.message.decode()
        except UnicodeDecodeError:
            record["base64"] = b64encode(letter.message).decode()
        self._add(json.dumps(record).encode() + b"\n")

    def _add(self, line: bytes) -> None:
        try:
            with Path(str(self._path)).open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise SourceError(f"{self._sink}: dead={self._path} cannot be written: {obstacle(error)}") from error


class Pending:
    """Counts messages under way, at most ``room``; who hands over another waits for at most ``patience`` seconds.

    Messages that will not arrive are kept as ``dead`` letters.
    """

    def __init__(self, capacity: int, patience: float, dead: DeadLetters | None = None) -> None:
        self._room = capacity
        self._patience = patience
        self._dead = dead or DeadLetters(None, "")
        self._changed = Condition()
        self._under_way = 0
        self._sent = 0
        self._lost = 0
        self._why: str | None = None

    def enter(self, letter: Letter) -> bool:
        """Whether there is room for one more, waited for; without room the message counts as undelivered."""
        with self._changed:
            if self._changed.wait_for(lambda: self._under_way < self._room, self._patience):
                self._under_way += 1
                return True
            self._fail(f"{self._room} messages were under way for more than {self._patience:g} s", letter)
            return False

    def delivered(self) -> None:
        """Count one acknowledged message."""
        with self._changed:
            self._under_way -= 1
            self._sent += 1
            self._changed.notify_all()

    def lost(self, why: str, letter: Letter) -> None:
        """Count one message as undelivered, and keep it as a dead letter."""
        with self._changed:
            self._under_way -= 1
            self._fail(why, letter)
            self._changed.notify_all()

    def bury(self, letters: Iterable[Letter], why: str) -> None:
        """Keep those that were under way when the sink closed; they are counted by ``drain`` already."""
        for letter in letters:
            self._keep(letter, why)

    def drain(self, still: Callable[[], str], patience: float | None = None) -> Delivery:
        """Wait until nothing is under way, as long as ``patience`` (s); the rest is undelivered, ``still`` says why."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way, shorter(self._patience, patience))
            if self._under_way:
                self._why = self._why or still()
            return Delivery(self._sent, self._lost + self._under_way, self._why)

    def _fail(self, why: str, letter: Letter) -> None:
        self._lost += 1
        self._why = self._why or why
        self._keep(letter, why)

    def _keep(self, letter: Letter, why: str) -> None:
        """Keep a dead letter; where that fails, the outcome says so: the thread that tells of it goes on."""
        try:
            self._dead.add(letter, why)
        except SourceError as error:
            self._why = str(error)


def shorter(own: float, patience: float | None) -> float:
    """The shorter one of two times (s), of which the second may not be limited."""
    return own if patience is None else min(own, patience)


_REASONS = 10


class OwnDataOptions(TypedDict, total=False):
    """The options of Python functions that read streams: how files are read, and where one's own data state time."""

    reading: Reading | None
    """How files are read."""
    time_property: str | None
    """The property, or CSV column, that states the time of elements (docs/own-data.md)."""
    time_in: str | None
    """The unit of times that are numbers: ms, s, us or ns."""
    time_zone: str | None
    """The zone of times without one."""
    fold: str | None
    """``earlier`` or ``later``: which of the two instants a local time is that a change of the clock repeats."""
    parts: str | None
    """Properties, parted by commas, whose objects belong to an element."""
    csv_mapping: str | None
    """The file that says what columns are."""
    json_mapping: str | None
    """The file that says what members of plain JSON are."""
    base: str | None
    """The IRI that relative ones are resolved against."""
    context: str | None
    """``IRI=FILE``, parted by commas: the files of JSON-LD contexts."""
    charset: str | None
    """The charset of text without a byte order mark."""


@dataclass(frozen=True, slots=True)
class ReadingOptions(OwnData):
    """How to read, in a URL: ``Reading``'s fields, the format, and whether a bad part stops the source."""

    form: str | None = None
    stream: str | None = None
    interval: int | None = None
    lateness: int | None = None
    limit: int | None = None
    once: bool | None = None
    bad: Literal["stop", "skip"] = "stop"

    def over(self, reading: Reading | None) -> Reading:
        """The given reading with what the URL says put over it."""
        names = ("stream", "interval", "lateness", "limit", "once", *OWN_DATA)
        options = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        under = reading or Reading()
        return replace(under, named=under.named | self.extra | ({"stream"} & set(options)), **options)

    @property
    def extra(self) -> frozenset[str]:
        """The options beside those of ``Reading`` that a format must honour."""
        arrival = getattr(self, "time", "stated") == "arrival"
        return frozenset({"bad"} if self.bad == "skip" else ()) | frozenset({"time"} if arrival else ())


@dataclass(frozen=True, slots=True)
class MessageOptions(ReadingOptions):
    """For transports of messages also: is an element's time stated in it, or that of its arrival?"""

    time: Literal["stated", "arrival"] = "stated"


class Refusals:
    """Bad parts: the first one stops the source (``stop``), or they are counted and passed over (``skip``)."""

    def __init__(self, bad: Literal["stop", "skip"]) -> None:
        self._bad = bad
        self.count = 0
        self.reasons: list[str] = []

    def __call__(self, error: FormatError) -> None:
        """Refuse a part: raise the error, or count it, by ``bad``."""
        if self._bad == "stop":
            raise error
        self.count += 1
        if len(self.reasons) < _REASONS:
            self.reasons.append(str(error))


class RefusalReport:
    """The report of a source on the parts that it passed over."""

    _refusals: Refusals

    @property
    def refused(self) -> int:
        """How many parts were refused and passed over."""
        return self._refusals.count

    @property
    def reasons(self) -> Sequence[str]:
        """Why, for the first ten."""
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
        """How many bytes a message may have."""
        return self._reading.limit

    def items(self, payload: bytes, place: str, arrived: int) -> Sequence[Input]:
        """The items of a message, none when it was refused; ``arrived`` (ms) is when the broker or we got it."""
        try:
            if len(payload) > self._reading.limit:
                raise FormatError(f"{place}: {len(payload)} bytes, more than {self._reading.limit}: raise the limit")
            return self._decode(payload, place, arrived if self._arrival else None)
        except FormatError as error:
            self.refuse(error)
        return ()

    def refuse(self, error: FormatError) -> None:
        """Pass over what the error speaks of, or stop with a SourceError."""
        try:
            self.refusals(error)
        except FormatError as stopped:
            raise SourceError(str(stopped)) from stopped


def message_format(address: Address, name: str) -> Format:
    """The format of that name if it can be carried in messages."""
    able = [one.name for one in stream_formats().values() if one.decoder is not None]
    if name not in able:
        raise SourceError(f"{address.text}: messages have no form {name!r}: there are {', '.join(able)}")
    return stream_formats()[name]
