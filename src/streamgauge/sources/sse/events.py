"""The text of server-sent events (WHATWG HTML, 9.2.5 and 9.2.6): writing events and parsing them from chunks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

END = "streamgauge-end"
"""The event with which our server ends the stream."""

MISSED = "streamgauge-missed"
"""The event with the number of events that our server no longer had for this client."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_NAMES = 1024
"""Maximum bytes of a line without its data: the field name and separators."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """An event; its data is ``None`` if it exceeded the limit, ``id`` is the latest one in the stream."""

    name: str
    data: bytes | None
    id: str | None


def write_event(data: bytes, identifier: str | None = None, name: str | None = None) -> bytes:
    """The text of an event with its id, without the data's last line end."""
    head = b"" if name is None else f"event: {name}\n".encode()
    head += b"" if identifier is None else f"id: {identifier}\n".encode()
    lines = _LINE_END.split(data.removesuffix(b"\n"))
    return head + b"".join([b"data: " + line + b"\n" for line in lines]) + b"\n"


class EventParser:
    """Parses a stream chunk by chunk; an event has at most ``limit`` bytes of data."""

    def __init__(self, limit: int, last: str | None) -> None:
        self._limit = limit
        self._id = last
        self._line = bytearray()
        self._length = 0
        self._returned = False
        self._begun = False
        self.any = False
        self.retry: int | None = None
        self._name, self._data, self._size = "message", list[bytes](), 0

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """The events that are complete with this chunk."""
        # A CRLF that two chunks divide is one line end, not two, which would end the event.
        if self._returned and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._returned = chunk.endswith(b"\r") if chunk else self._returned
        *ended, rest = _LINE_END.split(chunk)
        for part in ended:
            self._keep(part)
            event = self._ended_line()
            if event is not None:
                self.any = True
                yield event
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        capacity = self._limit + _NAMES - self._length
        self._length += len(part)
        # The length counts on without the bytes, so that an endless line needs bounded memory and is still known to be
        # too long.
        if capacity > 0:
            self._line += part[:capacity]

    def _ended_line(self) -> ServerEvent | None:
        line, length = self._line, self._length
        self._line, self._length = bytearray(), 0
        if not self._begun:
            self._begun, line = True, line.removeprefix(b"\xef\xbb\xbf")
        if not line and not length:
            return self._dispatch()
        colon = line.find(b":") % (len(line) + 1)  # -1 becomes the line's end
        start = colon + 1 + line.startswith(b" ", colon + 1)
        # Slices of a ``bytearray`` are copies: without the view, the data of a large event would be copied twice.
        with memoryview(line) as view:
            field, value = bytes(view[:colon]), bytes(view[start:])
        self._field(field, value, length - len(line) + len(value))
        return None

    def _field(self, field: bytes, value: bytes, length: int) -> None:
        match field:
            case b"data":
                # One more for the line end that joins it with the next data line; the last one is removed again, hence
                # the ``+ 1`` below.
                self._size += length + 1
                if self._size <= self._limit + 1:
                    self._data.append(value)
            case b"event":
                self._name = value.decode(errors="replace")
            # An id with a NUL is ignored (9.2.6), as it cannot be sent back in a header.
            case b"id" if b"\0" not in value:
                self._id = value.decode(errors="replace")
            case b"retry" if value.isdigit():
                self.retry = int(value)

    def _dispatch(self) -> ServerEvent | None:
        name, data, size = self._name, self._data, self._size
        self._name, self._data, self._size = "message", [], 0
        if not size:
            return None
        return ServerEvent(name, b"\n".join(data) if size <= self._limit + 1 else None, self._id)
