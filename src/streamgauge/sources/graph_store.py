"""RDF stores as sinks: quads are added by the Graph Store Protocol (SPARQL 1.1) or inserted by SPARQL Update.

``graphstore+http://host/path`` posts N-Quads to the store; with ``graph=IRI`` triples are added to that graph.
``sparql+http://host/update`` inserts them; ``replace=1`` clears the graph first, so that it has the last message only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from random import Random

import pyoxigraph as ox

from streamgauge.sources.contract import Address, Sink, SourceError, read_options
from streamgauge.sources.decoders import Letter
from streamgauge.sources.posts import Post, PostOptions, PostSink

SCHEMES = ("graphstore+http", "graphstore+https", "sparql+http", "sparql+https")

FORM = "nquads"
"""The message format of these sinks."""


@dataclass(frozen=True, slots=True)
class GraphStoreOptions(PostOptions):
    """The ``graph`` of all triples; without it quads name their own."""

    graph: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateOptions(GraphStoreOptions):
    """``replace``: clear the graph before each message."""

    replace: bool = False


def open_sink(address: Address) -> Sink:
    """A sink that posts graphs; SourceError for an invalid graph IRI, and for ``replace`` without a graph."""
    if address.scheme.startswith("sparql"):
        options = read_options(UpdateOptions, address)
        if options.replace and options.graph is None:
            raise SourceError(f"{address.text}: replace clears a graph: name it with graph=IRI")
        return PostSink(address, options, partial(update, _named(address, options), options.replace), Random())
    options_ = read_options(GraphStoreOptions, address)
    return PostSink(address, options_, partial(addition, _named(address, options_)), Random())


def _named(address: Address, options: GraphStoreOptions) -> ox.NamedNode | None:
    try:
        return None if options.graph is None else ox.NamedNode(options.graph)
    except ValueError as error:
        raise SourceError(f"{address.text}: graph={options.graph} is not an IRI: {error}") from error


def quads(letter: Letter) -> list[ox.Quad]:
    """The quads of a message; ValueError if it is not N-Quads."""
    try:
        # Parsed here although the store parses it too: its status 400 would not say that the query must be a CONSTRUCT.
        return list(ox.parse(letter.message, format=ox.RdfFormat.N_QUADS))
    except SyntaxError as error:
        raise ValueError(f"the message is not N-Quads: use a CONSTRUCT query: {error}") from error


def addition(graph: ox.NamedNode | None, letter: Letter) -> Post:
    """The request that adds a message's quads to the store, or its triples to a graph."""
    parsed = quads(letter)
    if graph is None:
        return Post(letter.message, {"Content-Type": "application/n-quads", **_key(letter)})
    # A request for a named graph has triples, so the graph names of the quads are dropped.
    body = "".join(f"{quad.triple} .\n" for quad in parsed).encode()
    return Post(body, {"Content-Type": "application/n-triples", **_key(letter)}, {"graph": graph.value})


def update(graph: ox.NamedNode | None, replace: bool, letter: Letter) -> Post:
    """The SPARQL Update that inserts a message."""
    # One INSERT DATA for all graphs, as two operations of a request may not share a blank node label (SPARQL 1.1,
    # 19.6).
    data = "\n".join(_blocks(quads(letter), graph))
    # In the same request as the insertion, which a store should apply atomically: no reader sees the graph empty.
    # SILENT, because stores that record empty graphs fail for a graph that does not exist yet (SPARQL 1.1 Update,
    # 3.1.5).
    clear = f"CLEAR SILENT GRAPH {graph} ;\n" if replace else ""
    return Post(
        f"{clear}INSERT DATA {{\n{data}\n}}".encode(), {"Content-Type": "application/sparql-update", **_key(letter)}
    )


def _blocks(parsed: list[ox.Quad], graph: ox.NamedNode | None) -> Iterator[str]:
    """A block of INSERT DATA for each run of triples in one graph."""
    for name, part in groupby(parsed, lambda quad: graph or quad.graph_name):
        triples = "\n".join(f"{quad.triple} ." for quad in part)
        yield triples if isinstance(name, ox.DefaultGraph) else f"GRAPH {name} {{\n{triples}\n}}"


def _key(letter: Letter) -> dict[str, str]:
    return {} if letter.key is None else {"Idempotency-Key": letter.key}
