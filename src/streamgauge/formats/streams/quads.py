"""TriG and N-Quads streams: every named graph is an element.

Its time (ms) is what ``<graph> <http://www.streamreasoning.org/schema/benchmark#hasTimestamp> "ms"^^xsd:long`` says
anywhere in the file (CSRBench), else the digits that end the graph's IRI. In a file that has no end yet a graph ends
where another begins, and its time must be known by then. Single messages: see ``dataset``.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

import pyoxigraph as ox

from streamgauge.formats.bounds import BoundError, check_turtle
from streamgauge.formats.canonical import to_triple
from streamgauge.formats.streams.dataset import Quad, decoder, gather, graph_name, graph_of, passing, stamp
from streamgauge.formats.streams.described import timed
from streamgauge.formats.streams.format import (
    Arriving,
    Format,
    FormatError,
    Reading,
    Refuse,
    Relabel,
    bounded_lines,
    files,
    number,
    open_bytes,
    parse,
    parse_open,
    reason,
    refused,
)
from streamgauge.model.element import StreamElement
from streamgauge.model.obstacles import obstacle

GRAPHS_LIST = "<http://www.streamreasoning.org/schema/benchmark#graphsList>"


def read_nquads(path: Path, reading: Reading) -> Iterator[StreamElement]:
    """The elements of an N-Quads file; FormatError names file and line."""
    return number(gather(_nquads_of_files(path, reading), reading.note), reading)


def read_trig(path: Path, reading: Reading) -> Iterator[StreamElement]:
    """The elements of a TriG file; FormatError names the file, and the line or graph."""
    return number(gather(_trig_of_files(path), reading.note), reading)


def follow_nquads(file: IO[bytes], place: str, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of an open N-Quads file as they end."""
    return number(passing(_nquads(file, place, reading.limit, refuse), reading, refuse), reading)


def follow_trig(file: IO[bytes], place: str, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of an open TriG file as they end; wrong syntax is never passed over."""
    quads = _trig(parse_open(Arriving(file), place, ox.RdfFormat.TRIG), place, Relabel("f0"))
    return number(passing(quads, reading, refuse), reading)


def encode_nquads(element: StreamElement) -> bytes:
    """An element as N-Quads: its graph, and its time stated in the graph of graphs."""
    graph = graph_of(element)
    text = f"{' '.join(stamp(element))} {GRAPHS_LIST} .\n"
    return (text + "".join([f"{s} {p} {o} {graph} .\n" for s, p, o in element.added])).encode()


def encode_trig(element: StreamElement) -> bytes:
    """An element as TriG: its graph, and its time stated in the graph of graphs."""
    text = f"{GRAPHS_LIST} {{ {' '.join(stamp(element))} . }}\n{graph_of(element)} {{\n"
    return (text + "".join([f"  {s} {p} {o} .\n" for s, p, o in element.added]) + "}\n").encode()


def write_each(encode: Callable[[StreamElement], bytes]) -> Callable[[Iterable[StreamElement], IO[bytes]], None]:
    """Writing a file as one encoded element after the other."""

    def write(stream: Iterable[StreamElement], file: IO[bytes]) -> None:
        for element in stream:
            file.write(encode(element))

    return write


def _nquads_of_files(path: Path, reading: Reading) -> Iterator[Quad]:
    for file in files(path, (".nq",)):
        with open_bytes(file) as opened:
            try:
                yield from _nquads(opened, str(file), reading.limit, refused)
            except (OSError, EOFError) as error:
                raise FormatError(f"{file}: cannot be unpacked: {obstacle(error)}") from error


def _nquads(file: IO[bytes], place: str, limit: int, refuse: Refuse) -> Iterator[Quad]:
    for count, line in bounded_lines(file, place, limit, refuse):
        where = f"{place}, line {count}"
        try:
            if b"<<" in line:
                check_turtle(line)
            for quad in ox.parse(line, format=ox.RdfFormat.N_QUADS):
                yield where, to_triple(quad), graph_name(quad)
        except SyntaxError as error:
            refuse(FormatError(f"{where}: not N-Quads: {reason(error)}"))
        except BoundError as error:
            refuse(FormatError(f"{where}: {error}"))


def _trig_of_files(path: Path) -> Iterator[Quad]:
    for number_of_file, file in enumerate(files(path, (".trig",))):
        yield from _trig(parse(file, ox.RdfFormat.TRIG), str(file), Relabel(f"f{number_of_file}"))


def _trig(quads: Iterable[ox.Quad], place: str, relabel: Relabel) -> Iterator[Quad]:
    for quad in quads:
        graph = graph_name(quad)
        yield f"{place}, graph {graph or 'none'}", relabel.triple(quad), graph


FORMATS = (
    Format(
        "nquads",
        "N-Quads, a named graph per element",
        (".nq",),
        read_nquads,
        write_each(encode_nquads),
        follow_nquads,
        decoder(ox.RdfFormat.N_QUADS),
        encode_nquads,
        timed,
    ),
    Format(
        "trig",
        "TriG, a named graph per element",
        (".trig",),
        read_trig,
        write_each(encode_trig),
        follow_trig,
        decoder(ox.RdfFormat.TRIG),
        encode_trig,
        timed,
    ),
)
