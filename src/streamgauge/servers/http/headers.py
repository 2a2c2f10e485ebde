"""Header fields read and written (RFC 9110): dates, conditions and entity tags, negotiation, a server's own address.

An entity tag is a strong validator of exactly the bytes that are sent (8.8.3).
"""

import gzip
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Final, Protocol, TypeAlias

import brotli

SECOND = 1000


def http_date(value: str | None) -> int | None:
    """A date of a header, ms since 1970; ``None`` if absent or not a date."""
    if value is None:
        return None
    try:
        return int(parsedate_to_datetime(value).timestamp() * SECOND)
    except (ValueError, TypeError, OverflowError):
        return None


def retry_after(headers: Mapping[str, str], now: int) -> float | None:
    """The delay (s) that Retry-After asks for, ``None`` if it asks for none.

    A date counts from the Date of the same response, so that wrong clocks do not matter; ``now`` (ms) replaces a
    missing Date.
    """
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        # 9 digits are 30 years: a longer number would only overflow a timer.
        return float(value[:9])
    date = http_date(value)
    shown = http_date(headers.get("date"))
    return None if date is None else max(0.0, (date - (now if shown is None else shown)) / SECOND)


@lru_cache(maxsize=64)
def date_text(second: int) -> bytes:
    """A time (s since 1970) as HTTP writes it."""
    return formatdate(second, usegmt=True).encode()


RawHeaders: TypeAlias = Iterable[tuple[bytes, bytes]]
"""Names in lower case and values, as ASGI has them."""

ANY: Final = ("*",)
_FIELDS: Final = (b"if-match", b"if-none-match")
_MEMBER = re.compile(r'[ \t]*((?:W/)?"[\x21\x23-\x7e\x80-\xff]*")?[ \t]*(?:,|$)')


class ConditionError(ValueError):
    """A header that is not a list of entity tags; the sentence says what is expected."""


class PreconditionError(ValueError):
    """A condition that does not hold, so that nothing was changed; the message names it."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a request: entity tags of If-Match and If-None-Match, ``None`` for an absent field."""

    match: tuple[str, ...] | None = None
    none_match: tuple[str, ...] | None = None

    def require(self, tags: Collection[str], target: str) -> None:
        """PreconditionError unless the conditions hold for a target with these ``tags`` (none: it does not exist).

        If-Match compares strongly (weak tags never match), If-None-Match weakly (RFC 9110, 8.8.3.2).
        """
        if self.match is not None and not _holds(self.match, tags):
            there = "is another by now" if tags else "is not there"
            # If-Match is judged first (RFC 9110, 13.2.2).
            raise PreconditionError(f"If-Match does not hold: {target} {there}, nothing was changed")
        if self.none_match is not None and self.names(tags):
            raise PreconditionError(f"If-None-Match does not hold: {target} already exists, nothing was changed")

    def names(self, tags: Collection[str]) -> bool:
        """Whether If-None-Match names one of the current tags, so that the client already has the representation."""
        if self.none_match is None:
            return False
        return bool(tags) if self.none_match == ANY else any(tag.removeprefix("W/") in tags for tag in self.none_match)

    def refuse(self, target: str) -> None:
        """PreconditionError for any condition on a target without entity tags, where none can hold."""
        for name, condition in (("If-Match", self.match), ("If-None-Match", self.none_match)):
            if condition is not None:
                raise PreconditionError(
                    f"{target} has no entity tag, so {name} cannot be checked: leave it out; nothing was changed"
                )


UNCONDITIONAL: Final = Conditions()


def read_conditions(headers: RawHeaders) -> Conditions:
    """The conditions of a request; ConditionError for a header that is not a list of entity tags."""
    fields = [(name, value.decode("latin-1")) for name, value in headers if name in _FIELDS]
    if not fields:
        return UNCONDITIONAL
    return Conditions(*(_tags(field.decode(), [value for name, value in fields if name == field]) for field in _FIELDS))


def entity_tag(representation: bytes) -> str:
    """The strong validator of a representation."""
    return f'"{blake2b(representation, digest_size=12).hexdigest()}"'


def _holds(wanted: tuple[str, ...], tags: Collection[str]) -> bool:
    return bool(tags) if wanted == ANY else any(tag in tags for tag in wanted if not tag.startswith("W/"))


def _tags(name: str, lines: list[str]) -> tuple[str, ...] | None:
    """The tags of a field's lines, which are one list together (RFC 9110, 5.3)."""
    if not lines:
        return None
    text = ", ".join(lines)
    if text.strip(" \t") == "*":
        return ANY
    tags_, position = [], 0
    while position < len(text):
        # A pattern per member and not a split at commas, which an entity tag may contain (8.8.3). Empty members are
        # legal (5.6.1).
        member = _MEMBER.match(text, position)
        if member is None:
            raise ConditionError(f'{name} is {text!r:.80}: expected * or a list of entity tags, as in "a", "b"')
        # The pattern always takes a comma or reaches the end of the text, so the loop advances.
        tags_ += [member[1]] if member[1] else []
        position = member.end()
    return tuple(tags_)


def unchanged(validator: bytes, modified: bytes | None, none_match: bytes | None, since: bytes | None) -> bool:
    """Whether a client has the representation of this ``validator``, by If-None-Match, else by If-Modified-Since.

    (RFC 9110, 13.1.2 and 13.1.3; ``modified`` is the representation's Last-Modified, ``since`` the field's value.)
    """
    # If-Modified-Since is ignored beside If-None-Match (RFC 9110, 13.1.3): its seconds are coarser than a tag.
    if none_match is not None:
        tags = [part.strip().removeprefix(b"W/") for part in none_match.split(b",")]
        return validator in tags or tags == [b"*"]
    # Both through http_date: If-Modified-Since may be in any of three formats (RFC 9110, 5.6.7).
    changed, known = (http_date(None if value is None else value.decode("latin-1")) for value in (modified, since))
    return changed is not None and known is not None and changed <= known


MIN_CODED_SIZE: Final = 400
"""Bytes below which a content coding saves nothing."""


CODINGS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    # Level 11, the default, is for files that are packed once; these bodies are made for a request that waits.
    "br": lambda body: bytes(brotli.compress(body, quality=5)),
    # Without the time of packing, so that the same body has the same bytes and the same strong entity tag.
    "gzip": partial(gzip.compress, compresslevel=6, mtime=0),
}
"""Encoders by content coding, in order of preference."""

CODING_NAMES: Final = tuple(CODINGS)


_WEIGHT = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")
_MAX_ACCEPT = 4000
"""Characters of an Accept header that are read."""


def weights(header: str) -> list[tuple[str, float]]:
    """The names of an Accept header and their weights (RFC 9110, 12.4.2); a weight that cannot be read is 0."""
    weights_ = []
    # Cut: a header of 64 KB would be split into thousands of names.
    for part in header[:_MAX_ACCEPT].split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if name:
            weights_.append((name, _q(parameters)))
    return weights_


def accepts(header: bytes, media_type: str) -> bool:
    """Whether an Accept header names a media type, with a weight above 0."""
    named = dict(weights(header.decode("latin-1")))
    return named.get(media_type, 0.0) > 0


def _q(parameters: Sequence[str]) -> float:
    values = [
        value.strip()
        for name, _, value in (parameter.partition("=") for parameter in parameters)
        if name.strip() == "q"
    ]
    if not values:
        return 1.0
    return float(values[0]) if _WEIGHT.fullmatch(values[0]) else 0.0


@lru_cache(maxsize=2000)
def content_coding(header: str, known: Sequence[str]) -> str:
    """The content coding to send: one of ``known``, in order of preference, or ``identity`` (RFC 9110, 12.5.3)."""
    wanted = dict(weights(header))
    # The star covers only what is not named (RFC 9110, 12.5.3); among equal weights the server's order decides.
    weighed = [(wanted.get(name, wanted.get("*", 0.0)), -number, name) for number, name in enumerate(known)]
    weight, _, name = max(weighed, default=(0.0, 0, "identity"))
    # Where nothing known is acceptable, the response goes without a coding (RFC 9110, 12.5.3).
    return name if weight > 0 and weight >= wanted.get("identity", 0.0) else "identity"


_HOST = re.compile(r"(?:[A-Za-z0-9._\-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~\-]+)*")
_BASE = re.compile(r"https?://[^\s/?#<>\"{}|\\^`@]+(?:/[^\s?#<>\"{}|\\^`]*)?", re.IGNORECASE)


class HostError(ValueError):
    """A request from whose headers the server's own address cannot be derived; the sentence says why."""


class BaseAddress(Protocol):
    """Returns the base of all addresses, without a final slash; HostError if the headers give none."""

    def __call__(self, scheme: str, headers: Mapping[bytes, bytes]) -> str:
        """From the request's scheme and headers."""


def of_host(scheme: str, headers: Mapping[bytes, bytes]) -> str:
    """The base by the Host header. Forwarded and X-Forwarded-* are ignored: any client could set them."""
    return _base(scheme, headers.get(b"host", b""))


def of_proxy(scheme: str, headers: Mapping[bytes, bytes]) -> str:
    """The base by a trusted proxy's Forwarded (RFC 7239), else X-Forwarded-Host, -Proto and -Prefix, else Host."""
    forwarded = _forwarded(headers.get(b"forwarded", b""))
    # Of a chain the first proxy's value: it has seen the name that the client asked for, later ones see internal names.
    host = forwarded.get(b"host") or _first(headers, b"x-forwarded-host") or headers.get(b"host", b"")
    scheme_sent = forwarded.get(b"proto") or _first(headers, b"x-forwarded-proto")
    prefix = _first(headers, b"x-forwarded-prefix").rstrip(b"/").decode("latin-1")
    if not _PREFIX.fullmatch(prefix):
        raise HostError(f"X-Forwarded-Prefix: {prefix!r:.80} is not a path")
    return f"{_base(scheme_sent.decode('latin-1') or scheme, host)}{prefix}"


def fixed(base: str) -> BaseAddress:
    """Always the address ``base``; HostError if it is not an address of http or https."""
    if not _BASE.fullmatch(base):
        raise HostError(f"{base!r:.80} is not an address of a server: write one like https://data.example.org/ldf")
    return lambda _scheme, _headers: base.rstrip("/")


def _first(headers: Mapping[bytes, bytes], name: bytes) -> bytes:
    return headers.get(name, b"").partition(b",")[0].strip()


def _forwarded(header: bytes) -> dict[bytes, bytes]:
    """The parameters that the first proxy, the one nearest to the client, set in Forwarded."""
    parts = (part.strip().partition(b"=") for part in header.partition(b",")[0].split(b";"))
    return {name.lower(): value.strip(b'"') for name, _, value in parts}


@lru_cache(maxsize=1000)
def _base(scheme: str, host_sent: bytes) -> str:
    host = host_sent.decode("latin-1")
    if scheme.lower() not in ("http", "https"):
        raise HostError(f"the scheme is {scheme!r:.20}: http or https is served")
    if not _HOST.fullmatch(host):
        raise HostError(f"the Host header is {host!r:.80}: a name or address is needed, and a port where it is not 80")
    return f"{scheme.lower()}://{host}"
