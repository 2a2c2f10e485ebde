"""Bodies as quads."""

from hashlib import sha1
from typing import Final

import pyoxigraph as ox

from streamgauge.formats.bounds import check_rdf
from streamgauge.formats.canonical import to_term
from streamgauge.model.terms import Term
from streamgauge.servers.fragments.fetching.cache import Response
from streamgauge.servers.fragments.fetching.contract import SourceError
from streamgauge.servers.fragments.quads import DEFAULT, Quad

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


def syntax(response: Response) -> ox.RdfFormat | None:
    """The RDF syntax of a body by its media type, or its address's ending where that says nothing."""
    known = SYNTAXES.get(response.kind)
    if known is None and response.kind in _UNTOLD:
        path = response.address.partition("?")[0].lower()
        return next((each for ending, each in _ENDINGS.items() if path.endswith(ending)), None)
    return known


def quads(response: Response, limit: int) -> tuple[Quad, ...]:
    """The quads of a body; SourceError when it is no RDF, wrong, or more than the limit.

    Blank nodes are named by the address that they came from and their order, so that no two documents share one.
    """
    found = response.made.get("quads")
    if found is None:
        found = response.made["quads"] = tuple(_parsed(response, limit))
    return found  # type: ignore[return-value]


def _parsed(response: Response, limit: int) -> list[Quad]:
    form = syntax(response)
    if form is None:
        raise SourceError(
            response.address, f"is {response.kind or 'of no stated media type'!r}, which is no RDF syntax"
        )
    naming = Naming(response.address)
    found: list[Quad] = []
    try:
        check_rdf(response.body, form)
        for quad in ox.parse(response.body, format=form, base_iri=response.address):
            if len(found) >= limit:
                raise SourceError(response.address, f"has more than {limit} quads: raise the limit `quads`")
            found.append(naming.quad(quad))
    except SyntaxError as error:
        raise SourceError(response.address, f"is no {form.name}, line {error.lineno}: {error.msg}") from error
    except (ValueError, OSError) as error:
        raise SourceError(response.address, f"cannot be read as {form.name}: {error}") from error
    return found


class Naming:
    """Terms of one document."""

    def __init__(self, address: str) -> None:
        self._prefix = f"_:{sha1(address.encode(), usedforsecurity=False).hexdigest()[:12]}b"
        self._known: dict[str, Term] = {}

    def quad(self, quad: ox.Quad) -> Quad:
        """A quad of it."""
        graph = quad.graph_name
        return (
            self.term(quad.subject),
            str(quad.predicate),
            self.term(quad.object),
            DEFAULT if isinstance(graph, ox.DefaultGraph) else self.term(graph),
        )

    def term(self, term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
        """A term of it."""
        if isinstance(term, ox.BlankNode):
            return self._known.setdefault(str(term), f"{self._prefix}{len(self._known)}")
        return to_term(term)
