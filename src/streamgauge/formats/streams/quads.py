"""TriG and N-Quads streams, in which every named graph is an element; other formats of graphs use it too.

The time of a graph (ms) is the first of: its arrival, if the source is timed by arrival; the value of the reading's
time property; ``<graph> <http://www.streamreasoning.org/schema/benchmark#hasTimestamp> "ms"^^xsd:long`` anywhere in
the file (CSRBench); the digits at the end of its IRI. In a growing file a graph ends where another begins, and its
time must be known by then.
"""

import io
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import IO, Final, TypeAlias

import pyoxigraph as ox

from streamgauge.formats.bounds import BoundError, check_turtle
from streamgauge.formats.canonical import to_triple, value_text
from streamgauge.formats.documents import FormatError
from streamgauge.formats.instants import InstantError, ends_in_date
from streamgauge.formats.line_versions import without_versions
from streamgauge.formats.streams.format import (
    Decode,
    Format,
    Item,
    Note,
    Numbering,
    Reading,
    Refuse,
    Relabel,
    Whole,
    bounded_lines,
    message_text,
    number,
    refused,
    write_each,
)
from streamgauge.formats.streams.groups import Groups
from streamgauge.formats.streams.marks import LineMark
from streamgauge.formats.streams.observations import (
    TimeProperty,
    described,
    moment_property,
    time_property,
    timed_as,
)
from streamgauge.formats.streams.options import STREAM, TIMES, honoured
from streamgauge.formats.syntaxes import MEDIA_TYPES, arriving, one_quad_a_line, parse_open, parse_texts, reason
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import obstacle
from streamgauge.model.terms import XSD, Term, Triple, is_literal

HAS_TIMESTAMP = "<http://www.streamreasoning.org/schema/benchmark#hasTimestamp>"

Quad: TypeAlias = tuple[str, Triple, Term]
"""(file and line, triple, graph); the graph is empty for the default graph."""

_LAST_DIGITS = re.compile(r"(\d+)>$")
_NUMBER = re.compile(r'"(-?\d+)"')
# Graphs whose names are remembered: an IRI of 60 bytes each is some 15 MB.
_REMEMBERED = 100_000
_CARRIED: Final = 8
"""Graphs that a reader which continues knows to have ended: quads of earlier ones would be another element."""
_AHEAD: Final = 100
"""Times stated ahead of their graphs that a reader which continues may be given."""


class Graphs:
    """The graphs of whole files, whose quads and times may be anywhere in them."""

    def __init__(self, place: str) -> None:
        self._groups = Groups[int | str | Triple](place)
        self._graph: Term | None = None
        """The graph of the last quad."""
        self._values: list[int | str | Triple] = []

    def take(self, quads: Iterable[Quad]) -> None:
        """Take quads; FormatError for a malformed time."""
        for place, triple, graph in quads:
            if triple[1] == HAS_TIMESTAMP:
                self._groups.put_aside((triple[0],), _stated(place, triple[2]))
                self._graph = None
                continue
            if graph != self._graph:
                self._graph, self._values = graph, self._groups.begin((graph,))
                if not self._values:
                    self._values.append(place)
            self._values.append(triple)

    def items(self, note: Note, refuse: Refuse = refused) -> Iterator[Item]:
        """The graphs in order of appearance with their times; one without a time is refused.

        ``note`` receives a hint if the first graph that is timed by its IRI also contains a date.
        """
        noted = False
        for (graph,), values in self._groups:
            triples = tuple([value for value in values if type(value) is tuple])
            others = [value for value in values if type(value) is not tuple]
            times = [value for value in others if type(value) is int]
            place = next(value for value in others if type(value) is str)
            if not graph:
                refuse(_outside(place, triples[0], moment_property(triples)))
                continue
            if not noted and not times:
                noted = True
                if (name := moment_property(triples)) is not None:
                    digits = f"the digits that end {graph} are its time, ms"
                    note(f"{place}: {digits}; --time-property {name} reads those in it")
            try:
                yield place, times[-1] if times else _named(place, graph), triples
            except FormatError as error:
                refuse(error)


def gather(quads: Iterable[Quad], place: str, note: Note, refuse: Refuse = refused) -> Iterator[Item]:
    """The graphs of whole files, as ``Graphs`` has them."""
    graphs = Graphs(place)
    graphs.take(quads)
    yield from graphs.items(note, refuse)


def passing(quads: Iterable[Quad], reading: Reading, refuse: Refuse) -> Iterator[Item]:
    """The graphs of a growing file, each as soon as a quad is about another one.

    A graph that resumes, or whose time is stated after its end, is refused (within the last 100,000 graphs).
    """
    current = _Passing(time_property(reading, strict=False), reading.mark)
    for quad in quads:
        if current.ends_before(quad):
            yield from _complete(current, refuse)
        try:
            current.take(quad)
        except FormatError as error:
            refuse(error)
    yield from _complete(current, refuse)


def _complete(current: "_Passing", refuse: Refuse) -> Iterator[Item]:
    try:
        yield from current.end()
    except FormatError as error:
        refuse(error)


def message(
    quads: Iterable[Quad],
    place: str,
    stated: TimeProperty | None,
    arrived: int | None = None,
    otherwise: int | None = None,
) -> list[Item]:
    """The graphs of one message; triples outside any graph are one element, whatever subject has its time.

    ``stated`` is the time property. ``arrived`` (ms) overrides all times, ``otherwise`` (ms) is the default for
    triples outside any graph.
    """
    graphs, times = _collect(quads)
    # Before ``own``, as it takes the statements about graphs out of the default graph.
    named = _stated_of_graphs(graphs, stated)
    # Times of subjects that are no graphs of the message: of triples outside any graph.
    own = {time for graph, time in times.items() if graph not in graphs}
    if "" in graphs and len(own) > 1:
        raise FormatError(f"{place}: the message states several times: {', '.join(map(str, sorted(own)))}")
    if own:
        times[""] = own.pop()
    items: list[Item] = []
    for graph, (_, triples) in graphs.items():
        time = arrived if arrived is not None else named.get(graph)
        parts = described(place, triples, stated, named=bool(graph)) if time is None and stated is not None else []
        if parts:
            items += [(place, *part) for part in parts]
            continue
        time = times.get(graph) if time is None else time
        if time is None and not graph:
            time = otherwise
        items.append((place, _named(place, graph, stated) if time is None else time, tuple(triples)))
    return items


def decoder(syntax: ox.RdfFormat) -> Callable[[Reading], Decode]:
    """The reader of messages in a syntax; blank nodes of different messages are distinct."""

    def start(reading: Reading) -> Decode:
        numbering, numbers, stated = Numbering(reading), count(), time_property(reading, strict=False)
        contexts = reading.contexts()

        def decode(payload: bytes, place: str, arrived: int | None) -> Sequence[StreamElement]:
            relabel = Relabel(f"m{next(numbers)}")
            text = io.BytesIO(message_text(payload, place, reading))
            parsed = parse_open(text, place, syntax, reading.base, contexts)
            quads = [(place, relabel.triple(quad), graph_name(quad)) for quad in parsed]
            return [numbering.element(*item) for item in message(quads, place, stated, arrived)]

        return decode

    return start


def graph_of(element: StreamElement) -> Term:
    """The IRI of an element's graph in a file, which ends with the sequence number; its time is stated separately."""
    if element.removed or element.until is not None:
        raise FormatError(
            f"sequence {element.sequence}: graph formats cannot express removals or ends: write jsonl or parquet"
        )
    return f"<urn:streamgauge:element:{element.sequence}>"


def stamp(element: StreamElement) -> Triple:
    """The triple that states an element's time."""
    return graph_of(element), HAS_TIMESTAMP, f'"{element.time}"^^<{XSD}long>'


def graph_name(quad: ox.Quad) -> Term:
    """The graph of a quad as a term; empty for the default graph."""
    return "" if isinstance(quad.graph_name, ox.DefaultGraph) else str(quad.graph_name)


class _Passing:
    """The open graph, with the stated times and the recently ended graphs, in one pass over the quads."""

    def __init__(self, stated: TimeProperty | None, mark: LineMark | None) -> None:
        self._stated = stated
        self._graph: Term | None = None
        self._place = ""
        self._triples: list[Triple] = []
        self._times: dict[Term, int] = {}
        self._stamps: dict[Term, int] = {}
        self._ended: OrderedDict[Term, None] = OrderedDict()
        self._mark = mark
        if mark is not None:
            self._continue_from(mark)

    def ends_before(self, quad: Quad) -> bool:
        """Whether the quad is about another graph than the open one."""
        return self._graph is not None and self._about(quad) != self._graph

    def take(self, quad: Quad) -> None:
        place, triple, graph = quad
        about = self._about(quad)
        if about in self._ended:
            raise FormatError(
                f"{place}: graph {about[:120]} had already ended: keep the quads of a graph, and its time, together"
            )
        if triple[1] == HAS_TIMESTAMP:
            self._stamps[about] = _stated(place, triple[2])
        elif self._is_stated(quad):
            self._times[about] = _instant(place, triple[2], self._stated)
        elif not graph:
            raise _outside(place, triple)
        else:
            if self._graph is None:
                self._graph, self._place = graph, place
            self._triples.append(triple)

    def _continue_from(self, mark: LineMark) -> None:
        """Know what an earlier reader of the file knew: the times that were stated ahead, and the last graphs."""
        mark.hold()
        mark.open = lambda: len(self._times) + len(self._stamps) > _AHEAD
        before = mark.carry(
            "graphs", lambda: [{**self._times}, {**self._stamps}, [*islice(reversed(self._ended), _CARRIED)]]
        )
        self._times, self._stamps, ended = before or ({}, {}, ())
        self._ended = OrderedDict.fromkeys(reversed(ended))

    def end(self) -> list[Item]:
        """Close the open graph, if any, and return its elements."""
        graph, triples = self._graph, tuple(self._triples)
        self._graph, self._triples = None, []
        if self._mark is not None:
            # The quad at hand is the first about the next graph.
            self._mark.begin()
        if graph is None:
            return []
        self._ended[graph] = None
        if len(self._ended) > _REMEMBERED:
            # The oldest, so that an endless stream needs constant memory.
            self._ended.popitem(last=False)
        time, stamp = self._times.pop(graph, None), self._stamps.pop(graph, None)
        parts = [] if time is not None or self._stated is None else self._described(triples, self._stated)
        time = stamp if time is None else time
        return parts or [(self._place, _named(self._place, graph, self._stated) if time is None else time, triples)]

    def _described(self, triples: tuple[Triple, ...], stated: TimeProperty) -> list[Item]:
        return [(self._place, *part) for part in described(self._place, triples, stated, named=True)]

    def _about(self, quad: Quad) -> Term:
        _, triple, graph = quad
        # A statement of time is about its subject, in whatever graph it stands.
        return triple[0] if triple[1] == HAS_TIMESTAMP or self._is_stated(quad) else graph

    def _is_stated(self, quad: Quad) -> bool:
        """Whether the quad, outside any graph, states the time of a graph by the time property."""
        return self._stated is not None and not quad[2] and (quad[1][1],) == self._stated.path


def _collect(
    quads: Iterable[Quad],
) -> tuple[dict[Term, tuple[str, list[Triple]]], dict[Term, int]]:
    """(graph -> its place and triples, graph -> its stated time in ms)."""
    graphs: dict[Term, tuple[str, list[Triple]]] = {}
    times: dict[Term, int] = {}
    for place, triple, graph in quads:
        if triple[1] == HAS_TIMESTAMP:
            times[triple[0]] = _stated(place, triple[2])
        else:
            graphs.setdefault(graph, (place, []))[1].append(triple)
    return graphs, times


def _stated_of_graphs(graphs: dict[Term, tuple[str, list[Triple]]], stated: TimeProperty | None) -> dict[Term, int]:
    """Times (ms) of named graphs by the time property in the default graph, from which the statements are removed."""
    times: dict[Term, int] = {}
    if stated is None or "" not in graphs or len(graphs) == 1:
        return times
    place, triples = graphs[""]
    for triple in [triple for triple in triples if triple[0] in graphs and (triple[1],) == stated.path]:
        times.setdefault(triple[0], _instant(place, triple[2], stated))
        triples.remove(triple)
    if not triples:
        del graphs[""]
    return times


def _outside(place: str, triple: Triple, hint: str | None = None) -> FormatError:
    reads = f" (--time-property {hint} reads the times in the data)" if hint else ""
    return FormatError(f"{place}: a triple outside any named graph has no time: {' '.join(triple)[:120]}{reads}")


def _stated(place: str, term: Term) -> int:
    match = _NUMBER.match(term) or (_NUMBER.fullmatch(f'"{value_text(term)}"') if is_literal(term) else None)
    if match is None:
        raise FormatError(f"{place}: {term[:80]} is not a time: hasTimestamp needs a whole number of ms")
    return int(match[1])


def _named(place: str, graph: Term, stated: TimeProperty | None = None) -> int:
    match = _LAST_DIGITS.search(graph)
    if match is None and stated is not None:
        raise FormatError(f"{place}: nothing in {f'graph {graph[:120]}' if graph else 'it'} has {stated.shown}")
    if match is None:
        what = f"graph {graph[:120]} has" if graph else "a triple outside any named graph has"
        raise FormatError(
            f"{place}: {what} no time: state hasTimestamp or end the graph's IRI with the ms (docs/own-data.md)"
        )
    if ends_in_date(graph[1:-1]):
        raise FormatError(
            f"{place}: graph {graph[:120]} ends in a date, not in ms: state its time by a property, which "
            "--time-property names"
        )
    return int(match[1])


def _instant(place: str, term: Term, stated: TimeProperty | None) -> int:
    assert stated is not None
    try:
        return stated.instants.of_term(term, place)
    except InstantError as error:
        raise FormatError(f"{place}: {error}") from error


GRAPHS_LIST = "<http://www.streamreasoning.org/schema/benchmark#graphsList>"


def read_nquads(whole: Whole, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of N-Quads files; FormatError names file and line."""
    return number(gather(_nquads_of_files(whole, reading, refuse), whole.place, reading.note, refuse), reading)


def read_trig(whole: Whole, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of TriG files; FormatError names the file, and the line or graph."""
    return number(gather(_trig_of_files(whole, reading), whole.place, reading.note, refuse), reading)


def follow_nquads(file: IO[bytes], place: str, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of an open N-Quads file as they end."""
    return number(passing(_nquads(file, place, reading.limit, refuse, reading.mark), reading, refuse), reading)


def follow_trig(file: IO[bytes], place: str, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of an open TriG file as they end; a syntax error always ends it."""
    quads = _trig(parse_open(arriving(file), place, ox.RdfFormat.TRIG, reading.base), place, Relabel("f0"))
    return number(passing(quads, reading, refuse), reading)


def encode_nquads(element: StreamElement) -> bytes:
    """An element as N-Quads: its graph, and its time in the graph of graphs."""
    graph = graph_of(element)
    text = f"{' '.join(stamp(element))} {GRAPHS_LIST} .\n"
    return (text + "".join([f"{s} {p} {o} {graph} .\n" for s, p, o in element.added])).encode()


def encode_trig(element: StreamElement) -> bytes:
    """An element as TriG: its graph, and its time in the graph of graphs."""
    text = f"{GRAPHS_LIST} {{ {' '.join(stamp(element))} . }}\n{graph_of(element)} {{\n"
    return (text + "".join([f"  {s} {p} {o} .\n" for s, p, o in element.added]) + "}\n").encode()


def _nquads_of_files(whole: Whole, reading: Reading, refuse: Refuse) -> Iterator[Quad]:
    for document in whole.with_endings((".nq",)):
        with document.open() as opened:
            try:
                yield from _nquads(opened, document.place, reading.limit, refuse)
            except (OSError, EOFError) as error:
                raise FormatError(f"{document.place}: cannot be unpacked: {obstacle(error)}") from error


def _nquads(file: IO[bytes], place: str, limit: int, refuse: Refuse, mark: LineMark | None = None) -> Iterator[Quad]:
    mark = mark or LineMark()
    for first, lines in bounded_lines(file, place, limit, refuse, together=True, mark=mark):
        # If one parse of all fails, each line is parsed alone, and only the bad one is refused.
        if (quads := one_quad_a_line(lines)) is not None:
            for mark.at, (triple, graph) in enumerate(quads, first):
                yield f"{place}, line {mark.at}", triple, graph
            continue
        for mark.at, line in enumerate(io.BytesIO(lines), first):
            where = f"{place}, line {mark.at}"
            try:
                for quad in _of_line(line):
                    yield where, to_triple(quad), graph_name(quad)
            except SyntaxError as error:
                refuse(FormatError(f"{where}: not N-Quads: {reason(error)}"))
            except BoundError as error:
                refuse(FormatError(f"{where}: {error}"))


def _of_line(line: bytes) -> Iterable[ox.Quad]:
    """The quads of a line; BoundError, SyntaxError."""
    if b"<<" in line:
        check_turtle(line)
    return ox.parse(without_versions(line, ox.RdfFormat.N_QUADS), format=ox.RdfFormat.N_QUADS)


def _trig_of_files(whole: Whole, reading: Reading) -> Iterator[Quad]:
    for place, document in enumerate(whole.with_endings((".trig",))):
        name = Relabel(f"f{place}").text
        with document.open() as opened:
            quads = parse_texts(opened, document.place, ox.RdfFormat.TRIG, reading.base, name=name)
            for triple, graph in quads:
                yield f"{document.place}, graph {graph or 'none'}", triple, graph


def _trig(quads: Iterable[ox.Quad], place: str, relabel: Relabel) -> Iterator[Quad]:
    for quad in quads:
        graph = graph_name(quad)
        # The parser of TriG gives no line numbers for quads.
        yield f"{place}, graph {graph or 'none'}", relabel.triple(quad), graph


GRAPHS: Final = honoured(STREAM, TIMES, "parts")

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
        timed_as(ox.RdfFormat.N_QUADS),
        {
            "read": honoured(STREAM, "bad", "charset"),
            "timed": honoured(GRAPHS, "bad", "charset"),
            "follow": honoured(GRAPHS, "bad", "charset"),
            "decoder": honoured(GRAPHS, "bad", "charset", "time"),
        },
        resumes=True,
        media_types=MEDIA_TYPES[ox.RdfFormat.N_QUADS],
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
        timed_as(ox.RdfFormat.TRIG),
        {
            "read": honoured(STREAM, "base", "bad", "charset"),
            "timed": honoured(GRAPHS, "base", "bad", "charset"),
            "follow": honoured(GRAPHS, "base", "bad", "charset"),
            "decoder": honoured(GRAPHS, "base", "bad", "charset", "time"),
        },
        media_types=MEDIA_TYPES[ox.RdfFormat.TRIG],
    ),
)
