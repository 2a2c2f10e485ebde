"""The graph of a request: RDF in one of several syntaxes, as triples."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from sys import intern
from typing import Final
from uuid import uuid4

import pyoxigraph as ox

from streamgauge.formats.bounds import check_rdf
from streamgauge.formats.canonical import to_triple
from streamgauge.formats.streams import rdf_syntax
from streamgauge.formats.streams.format import FormatError, Relabel, parse
from streamgauge.incremental.budget import TooMuchError
from streamgauge.model.fact import apart, in_graph, is_named
from streamgauge.model.terms import Term, Triple
from streamgauge.query.updates import UpdateOperation, read_update
from streamgauge.servers.broker.limits import LimitError, Limits
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.servers.http.limits import load_parsers

SYNTAXES: Final = {
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
    "application/ld+json": ox.RdfFormat.JSON_LD,
    "application/trig": ox.RdfFormat.TRIG,
    "application/n-quads": ox.RdfFormat.N_QUADS,
}


DENSE: Final = 12_000
BYTES_EACH: Final = 8
"""Triples of any text, and bytes of a text for each one more: lists of digits have a triple for each byte."""


class GraphError(ValueError):
    """A graph that cannot be read; the sentence says where."""


class MediaTypeError(ValueError):
    """A media type that is not read here; the sentence names those that are."""


class Graphs:
    """Reads graphs of at most ``most`` triples, whose terms have at most ``term`` characters."""

    def __init__(self, most: int, term: int) -> None:
        self._most, self._term = most, term

    def published(self, body: bytes, kind: str) -> tuple[Triple, ...]:
        """The triples; blank nodes are new ones, of this graph alone. GraphError, MediaTypeError, LimitError."""
        return tuple(self._triples(body, kind))

    def named(self, body: bytes, kind: str) -> tuple[Triple, ...]:
        """The triples; GraphError also for a blank node, which would name nothing that is there."""
        found = self.published(body, kind)
        if any(map(_is_blank, (term for fact in found for term in _terms(fact)))):
            raise GraphError("a blank node names nothing here: delete it by SPARQL Update, DELETE WHERE { ... }")
        return found

    def _triples(self, body: bytes, kind: str) -> Iterator[Triple]:
        media = kind.partition(";")[0].strip().lower()
        syntax = SYNTAXES.get(media)
        if syntax is None:
            raise MediaTypeError(f"a graph comes as one of {', '.join(SYNTAXES)}: {media or 'no content type'} is none")
        try:
            check_rdf(body, syntax)
            most = min(self._most, DENSE + len(body) // BYTES_EACH)
            for count, quad in enumerate(ox.parse(body, format=syntax, rename_blank_nodes=True), 1):
                if count > most:
                    raise LimitError(_too_many(most, self._most, len(body)))
                subject, predicate, end = _fact(quad)
                triple = intern(subject), intern(predicate), intern(end)
                if max(map(len, triple)) > self._term:
                    raise LimitError(f"a term of more than {self._term} characters: {max(triple, key=len)[:40]}...")
                yield triple
        except SyntaxError as error:
            raise GraphError(f"line {error.lineno}: not {media}: {error.msg}") from error
        except (ValueError, OSError) as error:
            if isinstance(error, GraphError | LimitError):
                raise
            raise GraphError(f"not {media}: {error}") from error


def read_files(paths: Sequence[Path]) -> Iterator[Triple]:
    """The facts of RDF files, those of named graphs in their graphs; blank nodes of each file are its own.

    FormatError names file and line.
    """
    for number, path in enumerate(paths):
        relabel = Relabel(f"s{number}x" if number else "s")
        for quad in parse(path, rdf_syntax(path)):
            triple = relabel.triple(quad)
            if isinstance(quad.graph_name, ox.NamedNode):
                yield in_graph(str(quad.graph_name), triple)
            elif quad.graph_name == ox.DefaultGraph():
                yield triple
            else:
                raise FormatError(
                    f"{path}: a graph with the blank node {quad.graph_name} for a name: name it by an IRI"
                )


def _too_many(most: int, largest: int, size: int) -> str:
    """Why a graph is not taken whole: its text is too long, or too dense."""
    if most == largest:
        return f"a publication of more than {most} triples: publish it in parts"
    return f"more than {most} triples in a text of {size} bytes: publish them in parts, or as N-Triples"


def _fact(quad: ox.Quad) -> Triple:
    """A fact, with its graph where that has a name."""
    if quad.graph_name == ox.DefaultGraph():
        return to_triple(quad)
    if not isinstance(quad.graph_name, ox.NamedNode):
        raise GraphError(f"a graph with the blank node {quad.graph_name} for a name: name it by an IRI")
    return in_graph(str(quad.graph_name), to_triple(quad))


def _terms(fact: Triple) -> tuple[Term, ...]:
    return apart(fact)[1] if is_named(fact[0]) else fact


def _is_blank(term: Term) -> bool:
    return term.startswith("_:") or (term.startswith("<<") and "_:" in term)


def read_changes(text: str, limits: Limits | None = None) -> list[UpdateOperation]:
    """The operations of a SPARQL Update; GraphError for one with WHERE that is not the first, QueryError.

    LimitError when it takes longer than ``limits`` say to read it.
    """
    named: dict[str, str] = {}
    start = uuid4().hex
    load_parsers()
    try:
        with DEADLINES.within((limits or Limits()).seconds):
            changes = read_update(text, lambda name: named.setdefault(name, f"_:{start}b{len(named)}"), graphs=True)
    except TooMuchError as error:
        raise LimitError(f"{error}: write a shorter update") from error
    if any(change.where for change in changes[1:]):
        raise GraphError("an operation with WHERE comes first: send what comes before it by itself")
    return changes
