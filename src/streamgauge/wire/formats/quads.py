"""TriG and N-Quads streams: every named graph is an element.

Its time (ms) is what ``<graph> <http://www.streamreasoning.org/schema/benchmark#hasTimestamp> "ms"^^xsd:long`` says
anywhere in the file (CSRBench), else the digits that end the graph's IRI.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TypeAlias

import pyoxigraph as ox

from streamgauge.model.element import StreamElement
from streamgauge.model.terms import XSD, Term, Triple
from streamgauge.wire.canonical import Canonical
from streamgauge.wire.formats.format import Format, FormatError, Item, Reading, Relabel, files, lines, number, parse

HAS_TIMESTAMP = "<http://www.streamreasoning.org/schema/benchmark#hasTimestamp>"
GRAPHS_LIST = "<http://www.streamreasoning.org/schema/benchmark#graphsList>"

Quad: TypeAlias = tuple[str, Triple, Term]
"""(file and line, triple, graph); the graph is empty for the default graph."""

_LAST_DIGITS = re.compile(r"(\d+)>$")
_NUMBER = re.compile(r'"(-?\d+)"')


def gather(quads: Iterable[Quad]) -> Iterator[Item]:
    """The graphs in order of appearance with their times; FormatError for a graph without one."""
    graphs: dict[Term, tuple[str, list[Triple]]] = {}
    times: dict[Term, int] = {}
    for place, triple, graph in quads:
        if triple[1] == HAS_TIMESTAMP:
            times[triple[0]] = _stated(place, triple[2])
        elif not graph:
            raise FormatError(f"{place}: a triple outside any named graph has no time: {' '.join(triple)[:120]}")
        else:
            graphs.setdefault(graph, (place, []))[1].append(triple)
    for graph, (place, triples) in graphs.items():
        yield place, times[graph] if graph in times else _named(place, graph), tuple(triples)


def graph_of(element: StreamElement) -> Term:
    """The graph that holds an element in a file; its digits are the sequence number, its time is stated beside it."""
    if element.removed or element.until is not None:
        raise FormatError(f"sequence {element.sequence}: a stream of graphs holds added triples only")
    return f"<urn:streamgauge:element:{element.sequence}>"


def stamp(element: StreamElement) -> Triple:
    """The triple that states an element's time."""
    return graph_of(element), HAS_TIMESTAMP, f'"{element.time}"^^<{XSD}long>'


def read_nquads(path: Path, reading: Reading) -> Iterator[StreamElement]:
    """The elements of an N-Quads file; FormatError names file and line."""
    return number(gather(_nquads(path)), reading)


def read_trig(path: Path, reading: Reading) -> Iterator[StreamElement]:
    """The elements of a TriG file; FormatError names the file, and the line or graph."""
    return number(gather(_trig(path)), reading)


def write_nquads(stream: Iterable[StreamElement], file: IO[bytes]) -> None:
    """Write elements as N-Quads, a graph each, its time stated in the graph of graphs."""
    for element in stream:
        graph = graph_of(element)
        text = f"{' '.join(stamp(element))} {GRAPHS_LIST} .\n"
        text += "".join(f"{s} {p} {o} {graph} .\n" for s, p, o in element.added)
        file.write(text.encode())


def _nquads(path: Path) -> Iterator[Quad]:
    canonical = Canonical()
    for file in files(path, (".nq",)):
        for line, text in lines(file):
            place = f"{file}, line {line}"
            try:
                for quad in ox.parse(text, format=ox.RdfFormat.N_QUADS):
                    yield place, canonical.triple(quad), _graph(quad)
            except SyntaxError as error:
                reason = re.sub(r"^Parser error at .*?: ", "", error.msg)
                raise FormatError(f"{place}: not N-Quads: {reason}") from error


def _trig(path: Path) -> Iterator[Quad]:
    canonical = Canonical()
    for number_of_file, file in enumerate(files(path, (".trig",))):
        relabel = Relabel(f"f{number_of_file}", canonical)
        for quad in parse(file, ox.RdfFormat.TRIG):
            graph = _graph(quad)
            yield f"{file}, graph {graph or 'none'}", relabel.triple(quad), graph


def _graph(quad: ox.Quad) -> Term:
    return "" if isinstance(quad.graph_name, ox.DefaultGraph) else str(quad.graph_name)


def _stated(place: str, term: Term) -> int:
    found = _NUMBER.match(term)
    if found is None:
        raise FormatError(f"{place}: {term[:80]} is no time: hasTimestamp needs a whole number of ms")
    return int(found[1])


def _named(place: str, graph: Term) -> int:
    found = _LAST_DIGITS.search(graph)
    if found is None:
        raise FormatError(f"{place}: graph {graph[:120]} has no time: state hasTimestamp or end its IRI with the ms")
    return int(found[1])


FORMATS = (
    Format("nquads", "N-Quads, a named graph per element", (".nq",), read_nquads, write_nquads),
    Format("trig", "TriG, a named graph per element", (".trig",), read_trig),
)
