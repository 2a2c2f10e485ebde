"""Standard output and standard error of a command: the one place through which text reaches people.

While a command runs, its streams show control characters instead of sending them, whoever prints: a command,
``logging``, a warning, a traceback, a server. Bytes in a format pass as they are, except to a terminal.
"""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from streamgauge.model.controls import visible


class _VisibleStream(io.TextIOWrapper):
    """A stream of text in which control characters are visible; ``exact`` writes what was made visible before."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        encoding = "utf-8" if stream.encoding in ("ascii", "ANSI_X3.4-1968") else stream.encoding
        super().__init__(stream.buffer, encoding, "backslashreplace", line_buffering=True)
        self.exact = _ExactStream(self)

    def write(self, text: str) -> int:
        """Write the text visibly; its length."""
        super().write(visible(text))
        return len(text)

    def close(self) -> None:
        """Flush: the bytes belong to the stream that was there before, and a library may have kept this one."""
        with suppress(OSError, ValueError):
            self.flush()


class _ExactStream:
    """The way past a visible stream for a console, which has escape sequences of its own."""

    def __init__(self, stream: _VisibleStream) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text as it is."""
        return io.TextIOWrapper.write(self._stream, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def visible_streams() -> Iterator[None]:
    """Standard output and standard error of a command, in which control characters are visible."""
    before = sys.stdout, sys.stderr
    streams = [_VisibleStream(one) if isinstance(one, io.TextIOWrapper) else one for one in before]
    for one in before:
        one.flush()
    sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for one in streams:
            if isinstance(one, _VisibleStream):
                one.close()


def write(data: bytes) -> None:
    """Write bytes in a format to standard output: as they are, except to a terminal."""
    if sys.stdout.isatty():
        data = visible(data.decode("utf-8", "replace")).encode()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
