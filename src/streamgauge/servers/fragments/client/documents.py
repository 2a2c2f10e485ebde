"""Bodies as quads: RDF documents, RDF Patches, and the times that several responses have together."""

from collections.abc import Sequence
from hashlib import sha1
from typing import Final

import pyoxigraph as ox

from streamgauge.formats.bounds import check_rdf, check_turtle
from streamgauge.formats.streams.format import Relabel
from streamgauge.servers.fragments import Quad, named_quad
from streamgauge.servers.fragments.client.contract import FetchedChange, FetchedQuads, SourceError
from streamgauge.servers.fragments.client.http_cache import Response

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
