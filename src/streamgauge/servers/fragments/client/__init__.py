"""The client of Linked Data: guarded and cached requests, pages, sources of several kinds, joins."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Final, Protocol

import pyoxigraph as ox

from streamgauge.formats.bounds import check_rdf, check_turtle
from streamgauge.formats.streams.format import Relabel
from streamgauge.model.algebra import Var
from streamgauge.model.terms import Term
from streamgauge.servers.fragments import Quad, QuadPattern, named_quad


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


Binding = dict[Var, Term]
"""A solution mapping."""


class SourceError(Exception):
    """Why a source cannot be read; the sentence says what and where, ``address`` of which response."""

    def __init__(self, address: str, what: str) -> None:
        super().__init__(f"{address:.300}: {what}")
        self.address = address


class UnavailableError(SourceError):
    """A source that does not answer now, after retries: it may later, ``after`` so many seconds where it says."""

    def __init__(self, address: str, what: str, after: float | None = None) -> None:
        super().__init__(address, what)
        self.after = after


class UnknownHostError(UnavailableError):
    """A source whose host is known nowhere."""


class HopelessError(SourceError):
    """A source that cannot be asked, now or later: its certificate is not trusted, no TLS is spoken there."""


class StatusError(SourceError):
    """A response of a status other than 200; ``status`` is it."""

    def __init__(self, address: str, status: int, said: str) -> None:
        super().__init__(address, f"answers {status}{said}")
        self.status = status


@dataclass(frozen=True, slots=True)
class FetchedQuads:
    """The quads of a pattern as a source served them.

    ``at`` is the source's time (its Date, ms) when it served the first page, ``until`` when the first of its pages is
    no longer fresh (ms of the source's clock, ``None`` when it does not say). ``validator`` changes with the quads,
    ``version`` with any quad of the data set (the header quads.VERSION, ``None`` where it is absent): what was fetched
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

        Repeated variables are held, pages that straddle a change are read again. SourceError when it cannot be had.
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


SYNTAXES: Final = {
    "application/trig": ox.RdfFormat.TRIG,
    "application/n-quads": ox.RdfFormat.N_QUADS,
    "text/x-nquads": ox.RdfFormat.N_QUADS,
    "text/turtle": ox.RdfFormat.TRIG,
    "application/x-turtle": ox.RdfFormat.TRIG,
    "application/n-triples": ox.RdfFormat.N_QUADS,
    "text/n3": ox.RdfFormat.TRIG,
    "application/ld+json": ox.RdfFormat.JSON_LD,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
}
"""By media type; TriG and N-Quads read what is Turtle and N-Triples too."""

_UNTOLD: Final = ("", "text/plain", "application/octet-stream", "binary/octet-stream", "application/json", "text/xml")
_ENDINGS: Final = {
    ".trig": ox.RdfFormat.TRIG,
    ".ttl": ox.RdfFormat.TRIG,
    ".nq": ox.RdfFormat.N_QUADS,
    ".nt": ox.RdfFormat.N_QUADS,
    ".jsonld": ox.RdfFormat.JSON_LD,
    ".rdf": ox.RdfFormat.RDF_XML,
    ".owl": ox.RdfFormat.RDF_XML,
}


def rdf_syntax(response: Response) -> ox.RdfFormat | None:
    """The RDF syntax of a body by its media type, or its address's ending where that says nothing."""
    known = SYNTAXES.get(response.kind)
    if known is None and response.kind in _UNTOLD:
        path = response.address.partition("?")[0].lower()
        return next((each for ending, each in _ENDINGS.items() if path.endswith(ending)), None)
    return known


def read_quads(response: Response, limit: int) -> tuple[Quad, ...]:
    """The quads of a body; SourceError when it is no RDF, wrong, or more than the limit.

    Blank nodes are named by the address that they came from and their order, so that no two documents share one.
    """
    found = response.made.get("quads")
    if found is None:
        found = response.made["quads"] = tuple(_parsed(response, limit))
    return found  # type: ignore[return-value]


def _parsed(response: Response, limit: int) -> list[Quad]:
    form = rdf_syntax(response)
    if form is None:
        raise SourceError(
            response.address, f"is {response.kind or 'of no stated media type'!r}, which is no RDF syntax"
        )
    naming = naming_of(response.address)
    found: list[Quad] = []
    try:
        check_rdf(response.body, form)
        for quad in ox.parse(response.body, format=form, base_iri=response.address):
            if len(found) >= limit:
                raise SourceError(response.address, f"has more than {limit} quads: raise the limit `quads`")
            found.append(named_quad(quad, naming))
    except SyntaxError as error:
        raise SourceError(response.address, f"is no {form.name}, line {error.lineno}: {error.msg}") from error
    except (ValueError, OSError) as error:
        raise SourceError(response.address, f"cannot be read as {form.name}: {error}") from error
    return found


def naming_of(address: str) -> Relabel:
    """The names of the blank nodes of the document at an address."""
    return Relabel(sha1(address.encode(), usedforsecurity=False).hexdigest()[:12])


PATCH_TYPE: Final = "application/rdf-patch"


def read_patch(response: Response, limit: int) -> FetchedChange:
    """The lines of a patch: ``A`` is there now, ``D`` no longer; SourceError when it is none, or too long."""
    if response.kind != PATCH_TYPE or response.version is None:
        raise SourceError(response.address, f"is {response.kind or 'of no stated media type'!r}, no patch of a version")
    added, removed = read_patch_lines(response.address, response.body, limit)
    return FetchedChange(added, removed, response.at, response.until, response.version)


def read_patch_lines(address: str, body: bytes, limit: int) -> tuple[tuple[Quad, ...], tuple[Quad, ...]]:
    """The quads that a patch adds, and those that it removes; SourceError as ``read_patch``."""
    rows: dict[str, list[str]] = {"A": [], "D": []}
    for line in body.decode(errors="replace").split("\n"):
        if line[:2] in ("A ", "D "):
            rows[line[0]].append(line[2:])
        elif line and not line.startswith("H "):
            raise SourceError(address, f"has a line that no patch has: {line:.80}")
    if sum(map(len, rows.values())) > limit:
        raise SourceError(address, f"has more than {limit} lines: raise the limit `quads`")
    return _patch_quads(address, rows["A"]), _patch_quads(address, rows["D"])


def _patch_quads(address: str, lines: list[str]) -> tuple[Quad, ...]:
    naming = naming_of(address)
    try:
        text = "\n".join(lines)
        check_turtle(text)
        parsed = ox.parse(text, format=ox.RdfFormat.N_QUADS)
        return tuple(named_quad(quad, naming) for quad in parsed)
    except (SyntaxError, ValueError) as error:
        raise SourceError(address, f"is no patch: {error}") from error


def body_digest(response: Response) -> str:
    """A digest of the body, which changes when the body does."""
    known = response.made.get("state")
    if not isinstance(known, str):
        known = response.made["state"] = sha1(response.body, usedforsecurity=False).hexdigest()
    return known


def combined(quads: tuple[Quad, ...], responses: Sequence[Response]) -> FetchedQuads:
    """Quads with the times and versions of the responses that they are from."""
    versions = {response.version for response in responses}
    digest = sha1(" ".join(map(body_digest, responses)).encode(), usedforsecurity=False).hexdigest()
    return FetchedQuads(
        quads,
        min(response.at for response in responses),
        min((response.until for response in responses if response.until is not None), default=None),
        digest,
        versions.pop() if len(versions) == 1 else None,
    )
