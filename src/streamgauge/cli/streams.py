"""Standard output and standard error of a command, through which all text for people passes.

While a command runs, these streams make control characters visible, whoever prints: a command, ``logging``, a
warning, a traceback, a server. Bytes in a format pass unchanged, except to a terminal.
"""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from streamgauge.model.controls import visible


class _VisibleStream(io.TextIOWrapper):
    """A text stream that makes control characters visible; ``exact`` writes text unchanged."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        # `ANSI_X3.4-1968` is how Linux names ASCII in the locale C, where terminals take UTF-8 all the same.
        encoding = "utf-8" if stream.encoding in ("ascii", "ANSI_X3.4-1968") else stream.encoding
        super().__init__(stream.buffer, encoding, "backslashreplace", line_buffering=True)
        self.exact = _ExactStream(self)

    def write(self, text: str) -> int:
        """Write text with its control characters made visible; returns the length of ``text``."""
        super().write(visible(text))
        return len(text)

    def close(self) -> None:
        """Only flush: the bytes belong to the original stream, and a library may still use this one."""
        with suppress(OSError, ValueError):
            self.flush()


class _ExactStream:
    """Bypasses a visible stream, for a console that writes escape sequences."""

    def __init__(self, stream: _VisibleStream) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text unchanged."""
        return io.TextIOWrapper.write(self._stream, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def visible_streams() -> Iterator[None]:
    """Replace standard output and standard error by visible streams."""
    before = sys.stdout, sys.stderr
    streams = [_VisibleStream(one) if isinstance(one, io.TextIOWrapper) else one for one in before]
    # The new streams have buffers of their own: what was written before is to come out first.
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
    """Write bytes in a format to standard output, unchanged except to a terminal."""
    if sys.stdout.isatty():
        data = visible(data.decode("utf-8", "replace")).encode()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
