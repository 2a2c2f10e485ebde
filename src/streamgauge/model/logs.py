"""Log records of commands and servers: as text for people, or as lines of JSON with the ids of request and query.

Passwords and tokens are removed from every line, whichever library logged it.
"""

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final

REQUEST: Final[ContextVar[str]] = ContextVar("request", default="")
"""The id of the request that is answered."""

LEVELS: Final = ("debug", "info", "warning", "error")
FORMS: Final = ("text", "json")
PACKAGE: Final = "streamgauge"

_LIBRARIES: Final = logging.WARNING
"""Below this level libraries log addresses and headers verbatim."""

_SECRETS: Final = re.compile(
    r"(?P<user>://[^\s/:@]*:)[^\s/@]+(?=@)"
    r"|(?P<parameter>\b(?:access_token|token|password|secret)=)[^\s&'\"]+"
    r"|(?P<bearer>\bBearer\s+)[^\s'\"]+",
    re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """A text without the passwords and tokens of its URLs and headers.

    >>> without_secrets("mqtt://me:secret@host/topic?token=abc&qos=1")
    'mqtt://me:...@host/topic?token=...&qos=1'
    """
    return _SECRETS.sub(lambda match: f"{match['user'] or match['parameter'] or match['bearer']}...", text)


def fields(**values: object) -> dict[str, Any]:
    """The fields of a record beside its message: ``log.info("...", extra=fields(query="q1"))``."""
    return {"fields": {name: value for name, value in values.items() if value is not None}}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    request = REQUEST.get()
    return {**({"request": request} if request else {}), **getattr(record, "fields", {})}


class TextLines(logging.Formatter):
    """A sentence, after its level unless that is ``info``, and the fields in brackets."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text; a traceback has further lines."""
        level = record.levelname.lower()
        pairs = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        head = "" if level == "info" else f"{level}: "
        error = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return without_secrets(f"{head}{record.getMessage()}{f' ({pairs})' if pairs else ''}{error}")


class JsonLines(logging.Formatter):
    """An object a line: ``time`` (UTC), ``level``, ``logger``, ``message``, the fields, and ``error``, a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        line: dict[str, Any] = {"level": record.levelname.lower(), "logger": record.name}
        line |= {"message": record.getMessage(), **_fields(record)}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return _line(record.created, line)


def _line(created: float, line: dict[str, Any]) -> str:
    time = datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    clean = {name: without_secrets(value) if isinstance(value, str) else value for name, value in line.items()}
    return json.dumps({"time": time, **clean}, default=str)


class _Handler(logging.StreamHandler[Any]):
    """Writes to the ``sys.stderr`` of the moment, which tests and ``_JsonStream`` replace."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.setFormatter(JsonLines() if form == "json" else TextLines())

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record to the current standard error."""
        stream = sys.stderr
        # Records are JSON already; through ``_JsonStream`` they would become the message of another record.
        self.stream = stream.inner if isinstance(stream, _JsonStream) else stream
        super().emit(record)


class _JsonStream(io.TextIOBase):
    """Standard error of a command that logs JSON: other output becomes the message of a record."""

    def __init__(self, inner: Any) -> None:
        self.inner, self._begun = inner, ""

    def write(self, text: str) -> int:
        """Write each complete line as an object."""
        # What is behind the last line end waits for the rest of its line.
        *lines, self._begun = (self._begun + text).split("\n")
        for line in filter(str.strip, lines):
            created = datetime.now(UTC).timestamp()
            self.inner.write(f"{_line(created, {'level': 'info', 'logger': PACKAGE, 'message': line})}\n")
        return len(text)

    def flush(self) -> None:
        self.inner.flush()

    def fileno(self) -> int:
        """The descriptor of standard error."""
        descriptor: int = self.inner.fileno()
        return descriptor


@contextmanager
def logging_to_standard_error(level: str, form: str) -> Iterator[None]:
    """Log records of a level (of ``LEVELS``) and above in a form (of ``FORMS``) during the block.

    Libraries log warnings and errors only. In JSON, all output on standard error is JSON until the process ends, the
    command's last sentence included.
    """
    handler, number = _Handler(form), logging.getLevelNamesMapping()[level.upper()]
    root, own = logging.getLogger(), logging.getLogger(PACKAGE)
    before = root.level, own.level
    root.addHandler(handler)
    root.setLevel(max(number, _LIBRARIES))
    own.setLevel(number)
    if form == "json" and not isinstance(sys.stderr, _JsonStream):
        sys.stderr = _JsonStream(sys.stderr)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before[0])
        own.setLevel(before[1])
