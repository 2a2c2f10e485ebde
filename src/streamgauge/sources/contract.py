"""The contract of sources and sinks of all transports, and their addresses, which are URLs with options."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)
from urllib.parse import parse_qsl, unquote, urlsplit

from streamgauge.formats.fields import FieldError, decode
from streamgauge.formats.places import exists
from streamgauge.model.logs import without_secrets
from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.model.phrases import offered

if TYPE_CHECKING:
    from streamgauge.formats.batches import Taken

T = TypeVar("T")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
SECRETS: Final = ("password", "token", "secret")
"""Parts of addresses that may be read from a file, as by ``password_file=PATH``."""

_TRUTH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed URL; ``text`` is the URL without password and token, for messages."""

    text: str
    scheme: str
    path: str
    options: Mapping[str, str]
    host: str = ""
    port: int | None = None
    user: str | None = None
    password: str | None = None


def parse_address(url: str) -> Address:
    """Parse a path, ``-`` or a URL; SourceError for an invalid port or a repeated option."""
    scheme = _SCHEME.match(url)
    # An existing file wins, as names of files may contain a colon or a question mark.
    if (there := exists(url)) or scheme is None:
        # Percent signs of a path are not decoded: ``a%20b.nq`` is a legal file name.
        path, question, query = (url, "", "") if there else url.partition("?")
        return Address(url, "-" if path == "-" else "file", path, _options(url, query) if question else {})
    # ``urlsplit`` would cut the rest off as a fragment.
    if "#" in url:
        raise SourceError(f"{url}: write # as %23 in a URL")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise SourceError(f"{url}: not a URL: {error}") from error
    shown = without_secrets(url)
    options = _options(shown, parts.query)
    password = parts.password and unquote(parts.password)
    for name in SECRETS:
        if (file := options.pop(f"{name}_file", None)) is not None:
            # Precedence between the two would hide which secret is in use.
            if name in options or (name == "password" and password):
                raise SourceError(f"{shown}: {name} and {name}_file exclude each other: write one of them")
            secret = read_secret(file, f"{shown}: {name}_file")
            options, password = (options, secret) if name == "password" else (options | {name: secret}, password)
    user = parts.username and unquote(parts.username)
    return Address(shown, parts.scheme, unquote(parts.path), options, parts.hostname or "", port, user, password)


def read_secret(path: str, where: str) -> str:
    """The password or token in a file; SourceError if it cannot be read or is empty.

    ``where`` names the option or variable that names the file.
    """
    try:
        secret = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{where}: {path} cannot be read: {obstacle(error)}") from error
    if not secret:
        raise SourceError(f"{where}: {path} is empty: write the secret into it")
    return secret


def read_options(kind: type[T], address: Address) -> T:
    """The address's options as the dataclass ``kind``; SourceError names an unknown option or invalid value.

    A field ``from_`` is the option ``from``.
    """
    hints = get_type_hints(kind)
    names = {field.name.rstrip("_"): field.name for field in fields(kind)}  # type: ignore[arg-type]
    data: dict[str, Any] = {}
    for option, text in address.options.items():
        if option not in names:
            raise SourceError(f"{address.text}: unknown option {option}: {offered(option, sorted(names))}")
        data[names[option]] = _value(address, option, text, hints[names[option]])
    try:
        return decode(kind, data)
    except FieldError as error:
        # The sentence of a FieldError begins with the field's name.
        name, _, wrong = str(error).partition(" ")
        raise SourceError(f"{address.text}: option {name.rstrip('_')} {wrong}") from error


def _options(url: str, query: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    for name in {name for name, _ in pairs}:
        if sum(name == other for other, _ in pairs) > 1:
            raise SourceError(f"{url}: option {name} is repeated: write it once")
    return dict(pairs)


def _value(address: Address, option: str, text: str, kind: Any) -> Any:
    """The option's text converted to its type."""
    if get_origin(kind) in (Union, UnionType):
        # An option that may be left out is ``T | None``.
        (kind,) = [one for one in get_args(kind) if one is not NoneType]
    try:
        if kind is bool:
            return _TRUTH[text.lower()]
        return kind(text) if kind in (int, float) else text
    except (KeyError, ValueError) as error:
        expected = "1 or 0" if kind is bool else "a whole number" if kind is int else "a number"
        raise SourceError(f"{address.text}: option {option} is {text!r}: expected {expected}") from error


class SourceError(MistakeError, ValueError):
    """A source or sink that cannot be opened, read or reached; the sentence names it and the remedy."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The outcome of a sink's messages: the numbers of acknowledged and undelivered ones, and the first reason.

    Undelivered messages that are kept as dead letters are ``buried``, those still in flight ``waiting``.
    """

    sent: int
    undelivered: int
    why: str | None = None
    buried: int = 0
    waiting: int = 0

    @property
    def missing(self) -> int:
        """The number of messages that have neither arrived nor become dead letters."""
        return self.undelivered - self.buried


class Source(Protocol):
    """A stream of elements and advances; ``refused`` and ``reasons`` describe the bad parts that were skipped."""

    @property
    def refused(self) -> int:
        """The number of messages or lines that were refused and skipped (``bad=skip``)."""

    @property
    def reasons(self) -> Sequence[str]:
        """The reasons for the first ten."""

    def items(self) -> "Iterator[Taken]":
        """The elements and advances as they arrive, many in columns; blocks until the end or ``close``. SourceError."""

    def close(self) -> None:
        """Stop, from any thread; closing twice is allowed."""


Position: TypeAlias = Mapping[str, Any]
"""A place in a source, as JSON, at which another process can resume."""


@runtime_checkable
class Resumable(Protocol):
    """A source that another process can resume where this one ended; its module has ``resume_source``.

    ``lost`` describes input since the position that cannot be read again; empty if there is none.
    """

    lost: str

    def hold(self, *, apart: bool = True) -> bool:
        """Acknowledge only settled items; called before ``items``. True if the sender then soon waits.

        ``apart``: each element has a place of its own; else several in columns may have one.
        """

    def place(self) -> object:
        """The place after the last item."""

    def position(self, place: Any) -> Position | None:
        """A place as a position for another process; ``None`` if it could not resume there."""

    def settle(self, place: Any) -> None:
        """Record that all items up to a place are durable."""


LEAVE_S: Final = 2.0
"""Seconds in which the sinks of an interrupted command deliver what is under way: with all else it ends within 5."""


class Sink(Protocol):
    """Delivers messages at least once."""

    def send(self, message: bytes, key: str | None = None) -> None:
        """Hand over one message; blocks while too many are in flight."""

    def close(self, patience: float | None = None) -> Delivery:
        """Deliver the messages in flight, stop, and return the outcome; a second call returns the same.

        ``patience`` (s) is the maximum time for that, by default the sink's own.
        """


@runtime_checkable
class Marked(Protocol):
    """A sink that can return to a mark, so that a restarted process does not duplicate its last messages."""

    def mark(self) -> Any:
        """The current mark, as JSON."""

    def restore(self, mark: Any) -> None:
        """Undo the messages since a mark, as far as that is still possible."""


@runtime_checkable
class Settling(Protocol):
    """A sink that reports the outcome of its messages while it is open."""

    def hold(self) -> None:
        """Leave messages that are not settled at the end to the next process, which sends them again."""

    def settle(self, patience: float | None = None) -> Delivery:
        """Wait until no message is in flight, at most for ``patience`` (s), and return the outcome so far."""
