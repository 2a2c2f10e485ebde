"""Sources and sinks over bytes without messages: files, standard input and output."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event, Lock
from typing import Literal

from streamgauge.formats.lines import Input
from streamgauge.formats.streams import FormatError, Refuse
from streamgauge.model.mistake import obstacle
from streamgauge.sources.address import Address
from streamgauge.sources.contract import Delivery, SourceError
from streamgauge.sources.decoders import Refusals, Refusing


class ByteSource(Refusing):
    """The elements that a format reads from bytes; ``closing`` ends the reading."""

    def __init__(
        self, address: Address, closing: Event, refusals: Refusals, read: Callable[[Refuse], Iterator[Input]]
    ) -> None:
        self._address = address
        self._closing = closing
        self._refusals = refusals
        self._read = read

    def items(self) -> Iterator[Input]:
        """The elements and advances in the order of the bytes."""
        try:
            for item in self._read(self._refusals):
                if self._closing.is_set():
                    return
                yield item
        except FormatError as error:
            if not self._closing.is_set():  # what was cut short by closing is no fault
                raise SourceError(str(error)) from error
        except OSError as error:
            raise SourceError(f"{self._address.text}: cannot be read: {obstacle(error)}") from error

    def close(self) -> None:
        """Stop at the next element, or while waiting for bytes."""
        self._closing.set()


@dataclass(frozen=True, slots=True)
class WritingOptions:
    """How messages end in bytes: with a line end (added where there is none), or as they are (binary messages)."""

    end: Literal["line", "none"] = "line"


class ByteSink:
    """Appends messages to an open descriptor, each at once; a message that was not written whole is taken back."""

    def __init__(self, descriptor: int, end: str, take_back: Callable[[int], None] | None) -> None:
        self._descriptor = descriptor
        self._ending = b"\n" if end == "line" else b""
        self._take_back = take_back
        self._lock = Lock()
        self._sent = 0
        self._lost = 0
        self._why: str | None = None
        self._closed = False

    def send(self, message: bytes, key: str | None = None) -> None:  # noqa: ARG002
        """Write one message; the key means nothing here. What cannot be written counts as undelivered."""
        data = message if message.endswith(self._ending) else message + self._ending
        with self._lock:
            if self._closed:
                raise SourceError("the sink is closed")
            written = 0
            try:
                while written < len(data):
                    written += os.write(self._descriptor, data[written:])
                self._sent += 1
            except OSError as error:
                self._lost += 1
                self._why = self._why or obstacle(error)
                if written and self._take_back is not None:
                    self._take_back(written)

    def close(self) -> Delivery:
        """Say what was written; the descriptor is closed where it is a file's."""
        with self._lock:
            if not self._closed and self._take_back is not None:
                os.close(self._descriptor)
            self._closed = True
            return Delivery(self._sent, self._lost, self._why)
