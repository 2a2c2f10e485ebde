"""Responses: their lifetimes (HTTP Caching, RFC 9111), their bodies as quads; and the contract of a source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Final, Protocol

import pyoxigraph as ox

from streamgauge.formats.bounds import check_rdf, check_turtle
from streamgauge.formats.charsets import text_in_utf8
from streamgauge.formats.documents import suffix_of
from streamgauge.formats.line_versions import without_versions
from streamgauge.formats.streams.format import Relabel
from streamgauge.formats.syntaxes import BY_ENDING, BY_MEDIA_TYPE, DATASETS, reason
from streamgauge.model.algebra import Var
from streamgauge.model.terms import Term
from streamgauge.servers.fragments import PATCH_TYPE, TIME, VERSION, Quad, QuadPattern, named_quad
from streamgauge.servers.http.headers import SECOND, http_date


@dataclass(frozen=True, slots=True)
class Response:
    """A response of an address: ``at`` and ``until`` in ms of the server's clock (see Lifetime).

    ``address`` is where redirects led, ``kind`` the media type, ``validator`` an ETag or else a Last-Modified,
    ``changed`` that time (ms), ``version`` that of its data set. ``made`` is what readers made of the body, by name.
    """

    address: str
    kind: str
    body: bytes
    at: int
    until: int | None
    validator: str | None
    changed: int | None
    version: str | None
    made: dict[object, object] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ShownTime:
    """The time of a server's clock that a response shows (ms since 1970), and how many ms that time stands for."""

    time: int
    resolution: int = SECOND


_FOREVER = 10 * 365 * 86_400


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Of a response: ``at`` when its origin made it, ``until`` when it is no longer fresh (``None``: not said).

    Both in ms of the server's clock, ``now`` what that showed when the response came; ``kept``: whether it may be.
    """

    at: int
    now: int
    until: int | None
    kept: bool


def lifetime(headers: Mapping[str, str], came: int) -> Lifetime:
    """The lifetime that headers say; ``came`` (ms) is when the response came, used where the server shows no clock.

    The earlier of max-age and Expires: a shared cache that hides its Age still leaves Expires as it was.
    """
    clock = shown_time(headers)
    shown = came if clock is None else clock.time
    directives = cache_control(headers.get("cache-control", ""))
    at = _made(headers, directives, shown)
    ends = [end for end in (_max_age(directives, at), _expires(headers, at)) if end is not None]
    if "no-cache" in directives or headers.get("vary", "").strip() == "*":
        ends = [at // SECOND * SECOND]
    age = min(_seconds(headers.get("age", "")), _FOREVER) * SECOND
    return Lifetime(at, shown + age, min(ends, default=None), "no-store" not in directives)


def shown_time(headers: Mapping[str, str]) -> ShownTime | None:
    """The server's time in headers: Server-Time where that is of the second of Date, else Date; ``None`` without one.

    A cache that writes Date anew leaves Server-Time as it was: then the two disagree.
    """
    date, exact = http_date(headers.get("date")), headers.get(TIME.lower(), "")
    if date is None:
        return None
    if exact.isascii() and exact.isdigit() and len(exact) < 16 and int(exact) // SECOND * SECOND == date:
        return ShownTime(int(exact), 1)
    return ShownTime(date)


def cache_control(value: str) -> dict[str, str]:
    """Directives in lower case with their arguments; the first of several with one name."""
    directives: dict[str, str] = {}
    for part in value.split(","):
        name, _, argument = part.strip().partition("=")
        directives.setdefault(name.strip().lower(), argument.strip().strip('"'))
    return directives


def _made(headers: Mapping[str, str], directives: Mapping[str, str], shown: int) -> int:
    """When the origin made it: Date, unless a cache wrote that anew, which Expires of a server of fragments tells.

    A response with a version expires max-age after the origin made it.
    """
    expires, life = http_date(headers.get("expires")), _max_age(directives, 0)
    if VERSION not in headers or expires is None or life is None:
        return shown
    return shown if expires - life == shown // SECOND * SECOND else min(shown, expires - life)


def _max_age(directives: Mapping[str, str], at: int) -> int | None:
    """The end by max-age; an argument that is no number makes a response stale (RFC 9111, 4.2.1)."""
    if "max-age" not in directives:
        return None
    return at + min(_seconds(directives["max-age"]), _FOREVER) * SECOND


def _expires(headers: Mapping[str, str], at: int) -> int | None:
    if "expires" not in headers:
        return None
    date = http_date(headers["expires"])
    return at if date is None else date


def _seconds(value: str) -> int:
    return int(value[:12]) if value.isascii() and value.isdigit() else 0


Binding = dict[Var, Term]
"""A solution mapping."""


class LinkedDataError(Exception):
    """Why a source cannot be read; the sentence says what and where, ``address`` of which response."""

    def __init__(self, address: str, what: str) -> None:
        super().__init__(f"{address:.300}: {what}")
        self.address = address


class UnavailableError(LinkedDataError):
    """A source that does not answer now, after retries: it may later, ``after`` so many seconds where it says."""

    def __init__(self, address: str, what: str, after: float | None = None) -> None:
        super().__init__(address, what)
        self.after = after


class UnknownHostError(UnavailableError):
    """A source whose host is known nowhere."""


class HopelessError(LinkedDataError):
    """A source that cannot be asked, now or later: its certificate is not trusted, no TLS is spoken there."""


class StatusError(LinkedDataError):
    """A response of a status other than 200; ``status`` is it."""

    def __init__(self, address: str, status: int, detail: str) -> None:
        super().__init__(address, f"answers {status}{detail}")
        self.status = status


@dataclass(frozen=True, slots=True)
class FetchedQuads:
    """The quads of a pattern as a source served them.

    ``at`` is the source's time (its Date, ms) when it served the first page, ``until`` when the first of its pages is
    no longer fresh (ms of the source's clock, ``None`` when it does not say). ``validator`` changes with the quads,
    ``version`` with any quad of the data set (the header VERSION, ``None`` where it is absent): what was fetched
    at one version is a snapshot.
    """

    quads: tuple[Quad, ...]
    at: int
    until: int | None = None
    validator: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class FetchedChange:
    """The changes of a data set since a version: quads added, quads removed; the rest as in ``FetchedQuads``."""

    added: tuple[Quad, ...]
    removed: tuple[Quad, ...]
    at: int
    until: int | None
    version: str


class LinkedDataSource(Protocol):
    """One data set behind an address."""

    @property
    def address(self) -> str:
        """The source's start address."""
        ...

    async def count(self, pattern: QuadPattern) -> int:
        """How many quads match, as the source estimates; 0 only when none does."""
        ...

    async def fetch(self, pattern: QuadPattern, seeds: Sequence[Binding] = ()) -> FetchedQuads:
        """All matching quads; with ``seeds`` at least those that join with one of them.

        Repeated variables are held, pages that straddle a change are read again. LinkedDataError when it cannot be had.
        """
        ...


@dataclass(frozen=True, slots=True)
class BgpSolutions:
    """The solutions of a basic graph pattern over quads; ``at`` and ``until`` are the earliest of what was fetched.

    ``versions`` are those of the data sets in the order of the sources, ``None`` for one that does not say or changed
    between what was fetched.
    """

    rows: tuple[Binding, ...]
    at: int
    until: int | None
    versions: tuple[str | None, ...] = ()


_READ_AS: Final = {**DATASETS, ox.RdfFormat.N3: ox.RdfFormat.TRIG}
SYNTAXES: Final = {media_type: _READ_AS.get(form, form) for media_type, form in BY_MEDIA_TYPE.items()}
"""By media type; TriG and N-Quads read what is Turtle and N-Triples too."""

_UNTOLD: Final = ("", "text/plain", "application/octet-stream", "binary/octet-stream", "application/json", "text/xml")


def rdf_syntax(response: Response) -> ox.RdfFormat | None:
    """The RDF syntax of a body by its media type, or its address's ending where that says nothing."""
    known = SYNTAXES.get(response.kind)
    if known is None and response.kind in _UNTOLD:
        form = BY_ENDING.get(suffix_of(response.address.partition("?")[0].rpartition("/")[2]))
        return form and _READ_AS.get(form, form)
    return known


def read_quads(response: Response, limit: int) -> tuple[Quad, ...]:
    """The quads of a body; LinkedDataError when it is no RDF, wrong, or more than the limit.

    Blank nodes are named by the address that they came from and their order, so that no two documents share one.
    """
    quads = response.made.get("quads")
    if quads is None:
        quads = response.made["quads"] = tuple(_parsed(response, limit))
    return quads  # type: ignore[return-value]


def _parsed(response: Response, limit: int) -> list[Quad]:
    form = rdf_syntax(response)
    if form is None:
        raise LinkedDataError(
            response.address, f"is {response.kind or 'of no stated media type'!r}, which is no RDF syntax"
        )
    naming = naming_of(response.address)
    quads: list[Quad] = []
    try:
        body = text_in_utf8(response.body)
        check_rdf(body, form)
        for quad in ox.parse(without_versions(body, form), format=form, base_iri=response.address):
            if len(quads) >= limit:
                raise LinkedDataError(response.address, f"has more than {limit} quads: raise the limit `quads`")
            quads.append(named_quad(quad, naming))
    except SyntaxError as error:
        raise LinkedDataError(response.address, f"is no {form.name}, line {error.lineno}: {reason(error)}") from error
    except (ValueError, OSError) as error:
        raise LinkedDataError(response.address, f"cannot be read as {form.name}: {error}") from error
    return quads


def naming_of(address: str) -> Relabel:
    """The names of the blank nodes of the document at an address."""
    return Relabel(sha1(address.encode(), usedforsecurity=False).hexdigest()[:12])


def read_patch(response: Response, limit: int) -> FetchedChange:
    """The lines of a patch: ``A`` is there now, ``D`` no longer; LinkedDataError when it is none, or too long."""
    if response.kind != PATCH_TYPE or response.version is None:
        raise LinkedDataError(
            response.address, f"is {response.kind or 'of no stated media type'!r}, no patch of a version"
        )
    added, removed = read_patch_lines(response.address, response.body, limit)
    return FetchedChange(added, removed, response.at, renewal(response), response.version)


def read_patch_lines(address: str, body: bytes, limit: int) -> tuple[tuple[Quad, ...], tuple[Quad, ...]]:
    """The quads that a patch adds, and those that it removes; LinkedDataError as ``read_patch``."""
    rows: dict[str, list[str]] = {"A": [], "D": []}
    for line in body.decode(errors="replace").split("\n"):
        if line[:2] in ("A ", "D "):
            rows[line[0]].append(line[2:])
        elif line and not line.startswith("H "):
            raise LinkedDataError(address, f"has a line that no patch has: {line:.80}")
    if sum(map(len, rows.values())) > limit:
        raise LinkedDataError(address, f"has more than {limit} lines: raise the limit `quads`")
    return _patch_quads(address, rows["A"]), _patch_quads(address, rows["D"])


def _patch_quads(address: str, lines: list[str]) -> tuple[Quad, ...]:
    naming = naming_of(address)
    try:
        text = "\n".join(lines)
        check_turtle(text)
        parsed = ox.parse(text, format=ox.RdfFormat.N_QUADS)
        return tuple(named_quad(quad, naming) for quad in parsed)
    except (SyntaxError, ValueError) as error:
        raise LinkedDataError(address, f"is no patch: {error}") from error


def body_digest(response: Response) -> str:
    """A digest of the body, which changes when the body does."""
    known = response.made.get("state")
    if not isinstance(known, str):
        known = response.made["state"] = sha1(response.body, usedforsecurity=False).hexdigest()
    return known


UNSAID: Final = 10_000
"""Between polls of sources that say neither a lifetime nor an expiration, ms."""


def renewal(response: Response) -> int | None:
    """When a response is to be renewed (ms of the server's clock); a lifetime of nothing, as no-cache, says no time."""
    if response.until is None or response.until > response.at:
        return response.until
    return response.at + UNSAID


def combined(quads: tuple[Quad, ...], responses: Sequence[Response]) -> FetchedQuads:
    """Quads with the times and versions of the responses that they are from."""
    versions = {response.version for response in responses}
    digest = sha1(" ".join(map(body_digest, responses)).encode(), usedforsecurity=False).hexdigest()
    return FetchedQuads(
        quads,
        min(response.at for response in responses),
        min((until for response in responses if (until := renewal(response)) is not None), default=None),
        digest,
        versions.pop() if len(versions) == 1 else None,
    )
