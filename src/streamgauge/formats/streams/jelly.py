"""Jelly streams (https://w3id.org/jelly): quads as in ``quads``, or one element per frame of triples.

Frame n of a stream of triples is the element at n x interval ms; empty frames only advance time. Triple terms are
written as Jelly's quoted triples, in object position only; Jelly has no base directions.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from typing import IO, Any, Final, TypeAlias, cast

import pyoxigraph as ox
from pyjelly import jelly
from pyjelly.integrations.generic import generic_sink as sink
from pyjelly.integrations.generic.parse import parse_jelly_grouped
from pyjelly.integrations.generic.serialize import grouped_stream_to_file
from pyjelly.options import StreamParameters
from pyjelly.parse.ioutils import get_options_and_frames
from pyjelly.serialize.streams import SerializerOptions

from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.formats.documents import Document, FormatError
from streamgauge.formats.streams.format import Decode, Format, Item, Numbering, Reading, Refuse, Whole, number
from streamgauge.formats.streams.observations import TimeProperty, observed, time_property
from streamgauge.formats.streams.options import STREAM, TIMES, honoured
from streamgauge.formats.streams.quads import GRAPHS_LIST, Graphs, Quad, graph_of, message, stamp
from streamgauge.formats.streams.sorted_runs import in_order
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import (
    XSD,
    Term,
    Triple,
    is_blank,
    is_iri,
    is_triple,
    misplaced,
    quoted,
    triple_parts,
    triple_term,
)

Statement: TypeAlias = tuple[str, Triple, Term | None]
"""(place, triple, graph); the graph is ``None`` in a stream of triples, empty for the default graph."""

_MAX_FRAME = 2**31 - 1
"""Maximum size (bytes) of a protobuf message."""


def read(whole: Whole, reading: Reading, _refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of a Jelly file; FormatError names the file and the frame."""
    return number(_items(whole, reading), reading)


def timed(whole: Whole, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of a Jelly file by the time property: a frame is a message, unless the stream is flat."""
    stated = time_property(reading)
    assert stated is not None
    return number(in_order(_timed_items(whole, stated, reading, refuse), whole.place, reading), reading)


def _timed_items(whole: Whole, stated: TimeProperty, reading: Reading, refuse: Refuse) -> Iterator[Item]:
    for document in whole.with_endings((".jelly",)):
        if _is_flat(document):
            quads = ((triple, graph or "") for _, statements in _frames(document) for _, triple, graph in statements)
            yield from observed([(document.place, quads)], stated, reading, refuse)
            continue
        for place, statements in _frames(document):
            try:
                yield from message(_quads(statements), place, stated)
            except FormatError as error:
                refuse(error)


def _is_flat(document: Document) -> bool:
    """Whether a stream declares itself flat: its frame boundaries have no meaning."""
    with document.open(binary=True) as file:
        options, _ = get_options_and_frames(cast(IO[bytes], _Bounded(file, _MAX_FRAME)))
    return options.stream_types.logical_type in (
        jelly.LOGICAL_STREAM_TYPE_FLAT_TRIPLES,
        jelly.LOGICAL_STREAM_TYPE_FLAT_QUADS,
        # A producer that says nothing may have cut frames by size alone.
        jelly.LOGICAL_STREAM_TYPE_UNSPECIFIED,
    )


def follow(file: IO[bytes], place: str, reading: Reading, _refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of an open Jelly stream, frame by frame; an unreadable frame always ends the stream."""
    numbering, stated = Numbering(reading), time_property(reading, strict=False)
    # Later frames refer to the lookup tables of earlier ones, so reading cannot go on behind a damaged frame.
    for count, (where, statements) in enumerate(_statements(file, place, reading.limit)):
        for item in message(_quads(statements), where, stated, None, count * reading.interval):
            yield numbering.element(*item)


def decoder(reading: Reading) -> Decode:
    """The reader of messages that are Jelly streams of their own, usually of one frame."""
    numbering, stated = Numbering(reading), time_property(reading, strict=False)

    def decode(payload: bytes, place: str, arrived: int | None) -> Sequence[StreamElement]:
        frames = [statements for _, statements in _statements(BytesIO(payload), place, reading.limit)]
        items = [item for frame in frames for item in message(_quads(frame), place, stated, arrived)]
        return [numbering.element(*item) for item in items]

    return decode


def encode(element: StreamElement) -> bytes:
    """An element as a Jelly stream of one frame."""
    file = BytesIO()
    write((element,), file)
    return file.getvalue()


def write(stream: Iterable[StreamElement], file: IO[bytes]) -> None:
    """Write elements as Jelly quads, one frame and graph each, with its time in the graph of graphs."""
    options = SerializerOptions(
        logical_type=jelly.LOGICAL_STREAM_TYPE_DATASETS,
        params=StreamParameters(generalized_statements=False, rdf_star=True),
    )
    grouped_stream_to_file((_frame(element) for element in stream), file, options=options)


def _items(whole: Whole, reading: Reading) -> Iterator[Item]:
    graphs = Graphs(whole.place)
    for document in whole.with_endings((".jelly",)):
        for count, (place, statements) in enumerate(_frames(document)):
            # Graphs may go on over several frames, so they are gathered until the end of the file.
            graphs.take((place, triple, graph) for _, triple, graph in statements if graph is not None)
            plain = tuple(triple for _, triple, graph in statements if graph is None)
            if plain:
                yield place, count * reading.interval, plain
    yield from graphs.items(reading.note)


def _frames(document: Document) -> Iterator[tuple[str, list[Statement]]]:
    with document.open(binary=True) as binary:
        yield from _statements(binary, document.place, _MAX_FRAME)


def _statements(file: IO[bytes], place: str, limit: int) -> Iterator[tuple[str, list[Statement]]]:
    """(place, statements) of every frame."""
    terms = _Terms()
    for count, frame in enumerate(_guarded(parse_jelly_grouped(cast(IO[bytes], _Bounded(file, limit))), place)):
        where = f"{place}, frame {count}"
        try:
            statements = [(where, terms.triple(item), terms.graph(item)) for item in frame]
        except (ValueError, AttributeError) as error:
            raise FormatError(f"{where}: malformed term: {error}") from error
        yield where, statements


def _quads(statements: Iterable[Statement]) -> Iterator[Quad]:
    """Statements of either kind of stream as quads."""
    return ((place, triple, graph or "") for place, triple, graph in statements)


def _guarded(frames: Iterator[Any], place: str) -> Iterator[Any]:
    """The frames; FormatError for any error, as pyjelly raises many exception classes on damaged bytes."""
    count = 0
    try:
        for frame in frames:
            yield frame
            count += 1
    except Exception as error:
        raise FormatError(
            f"{place}, frame {count}: not a readable Jelly stream: {error or type(error).__name__}"
        ) from error


class _Bounded:
    """A file with bounded reads that can rewind its last read, as pyjelly does to detect the framing."""

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self._file = file
        self._limit = limit
        self._last = b""
        self._back = b""

    def seekable(self) -> bool:
        """True, because pyjelly reads ahead in files that are not seekable."""
        return True

    def seek(self, offset: int, _whence: int) -> None:
        """Rewind into the bytes of the last read."""
        # pyjelly reads a few bytes to see whether frames have a length in front, and goes back once.
        self._back = self._last[offset:] if offset else b""

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes, or all; ValueError beyond the maximum size of a frame."""
        # Before reading: a damaged length would otherwise allocate gigabytes.
        if size > self._limit:
            raise ValueError(f"a frame of {size} bytes: the limit is {self._limit}")
        # pyjelly reads a file that is not delimited as a whole: one byte beyond the limit is enough to refuse it.
        length = self._limit + 1 if size < 0 else size
        self._last = self._back[:length] + self._file.read(max(0, length - len(self._back)))
        self._back = self._back[length:]
        if len(self._last) > self._limit:
            raise ValueError(f"a frame of more than {self._limit} bytes: raise the limit")
        return self._last


@lru_cache(2**14)
def _iri(text: str) -> Term:
    """An IRI as in N-Triples; ValueError for invalid text, such as a ``>`` that would end the term early."""
    return str(ox.NamedNode(text))


_SUBJECTS: Final = sink.IRI | sink.BlankNode


class _Terms:
    """pyjelly's terms as N-Triples strings."""

    def triple(self, item: Any) -> Triple:
        triple = self._term(item.s), self._term(item.p), self._term(item.o)
        if not isinstance(item.p, sink.IRI) or not isinstance(item.s, _SUBJECTS):
            raise ValueError(f"a triple {misplaced(triple)}")
        return triple

    def graph(self, item: Any) -> Term | None:
        if not isinstance(item, sink.Quad):
            return None
        return "" if item.g is sink.DefaultGraph else self._term(item.g)

    def _term(self, term: Any) -> Term:
        if isinstance(term, sink.IRI):
            return _iri(term._iri)
        if isinstance(term, sink.BlankNode):
            return str(ox.BlankNode(term._identifier))
        if isinstance(term, sink.Triple):
            return triple_term(self.triple(term))
        if not isinstance(term, sink.Literal):
            raise ValueError(f"{term!r:.80}")
        text, kind = term._lex, term._datatype
        if text.isascii() and text.isprintable() and not term._langtag and kind and kind.startswith(XSD):
            return quoted(text) if kind == f"{XSD}string" else f"{quoted(text)}^^{_iri(kind)}"
        datatype = ox.NamedNode(kind) if kind else None
        return to_term(ox.Literal(term._lex, datatype=datatype, language=term._langtag))


def _frame(element: StreamElement) -> sink.GenericStatementSink:
    frame, graph = sink.GenericStatementSink(), _outgoing(graph_of(element))
    frame.add(sink.Quad(*map(_outgoing, stamp(element)), _outgoing(GRAPHS_LIST)))
    for triple in element.added:
        frame.add(sink.Quad(*map(_outgoing, triple), graph))
    return frame


def _outgoing(term: Term) -> Any:
    """A term as an object of pyjelly; FormatError for a literal with a base direction."""
    if is_iri(term):
        return sink.IRI(term[1:-1])
    if is_blank(term):
        return sink.BlankNode(term[2:])
    if is_triple(term):
        return sink.Triple(*map(_outgoing, triple_parts(term)))
    literal = parse_term(term)
    assert isinstance(literal, ox.Literal)
    if literal.direction is not None:
        raise FormatError(f"{term:.120}: Jelly has no base direction: write messages, nquads, trig, jsonl or parquet")
    datatype = None if literal.language else literal.datatype.value
    return sink.Literal(literal.value, literal.language, datatype)


FORMATS = (
    Format(
        "jelly",
        "Jelly, a frame or a named graph per element",
        (".jelly",),
        read,
        write,
        follow,
        decoder,
        encode,
        timed,
        {
            "read": honoured(STREAM, "interval"),
            "timed": honoured(STREAM, TIMES, "parts", "bad"),
            "follow": honoured(STREAM, TIMES, "parts", "interval"),
            "decoder": honoured(STREAM, TIMES, "parts", "bad", "time"),
        },
        binary=True,
        media_types=("application/x-jelly-rdf",),
    ),
)
