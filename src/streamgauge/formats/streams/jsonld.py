"""JSON-LD: a document of observations, or documents line by line (NDJSON-LD), whose times are a property.

A document on a line of its own is a message, as over MQTT; one that spans several lines is read as a file.
"""

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import IO, Any, Final

import pyoxigraph as ox

from streamgauge.formats.documents import Document, FormatError
from streamgauge.formats.json_values import JsonText
from streamgauge.formats.streams.format import Format, Item, Numbering, Reading, Refuse, Relabel, Whole, bounded_lines
from streamgauge.formats.streams.format import number as number_elements
from streamgauge.formats.streams.marks import LineMark
from streamgauge.formats.streams.observations import Observations, TimeProperty, time_property, timed_as
from streamgauge.formats.streams.options import STREAM, TIMES, honoured
from streamgauge.formats.streams.quads import decoder, graph_name, message
from streamgauge.formats.streams.sorted_runs import in_order
from streamgauge.formats.syntaxes import MEDIA_TYPES, parse_open
from streamgauge.model.element import StreamElement

# A document on one line may be long, but must not be read whole only to tell how to read it.
_FIRST_LINE: Final = 2**20

LINES: Final = (".ndjsonld", ".jsonl", ".ndjson")
"""Endings of files with a document on each line."""


def timed(whole: Whole, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of files by their times; FormatError names file and line or subject."""
    documents = whole.with_endings(FORMATS[0].endings)
    if reading.time_property is None or not any(_is_lines(document) for document in documents):
        return timed_as(ox.RdfFormat.JSON_LD)(whole, reading, refuse)
    return number_elements(in_order(_of_lines(documents, reading, refuse), whole.place, reading), reading)


def _of_lines(documents: Sequence[Document], reading: Reading, refuse: Refuse) -> Iterator[Item]:
    for document in documents:
        with document.open() as opened:
            yield from _items(opened, document.place, reading, refuse, strict=True)


def _is_lines(document: Document) -> bool:
    """Whether the first line is a whole document and another document follows."""
    if document.ending in LINES:
        return True
    with document.open() as opened:
        first = opened.readline(_FIRST_LINE).strip()
        return first[:1] == b"{" and first[-1:] == b"}" and opened.readline(_FIRST_LINE).lstrip()[:1] == b"{"


def follow(file: IO[bytes], place: str, reading: Reading, refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of documents as they arrive."""
    numbering = Numbering(reading)
    for item in _items(file, place, reading, refuse, strict=False):
        try:
            yield numbering.element(*item)
        except FormatError as error:
            refuse(error)


def _items(file: IO[bytes], place: str, reading: Reading, refuse: Refuse, *, strict: bool) -> Iterator[Item]:
    stated, contexts = time_property(reading, strict=strict), reading.contexts()
    text_of_lines, mark = JsonText(reading.limit), reading.mark or LineMark()
    mark.open = lambda: text_of_lines.open
    count: int = mark.carry("documents", lambda: count) or 0
    try:
        for line, text in text_of_lines.values(bounded_lines(file, place, reading.limit, refuse, mark=mark)):
            count += 1
            where = f"{place}, line {line}"
            try:
                yield from _document_items(text, where, count - 1, reading, stated, contexts)
            except FormatError as error:
                refuse(error)
    except ValueError as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{place}: {error}") from error


def _document_items(
    text: bytes, where: str, count: int, reading: Reading, stated: TimeProperty | None, contexts: dict[str, Any]
) -> list[Item]:
    # Labels of blank nodes are local to a document, so the same label in two documents is two nodes.
    relabel = Relabel(f"m{count}")
    parsed = parse_open(BytesIO(text), where, ox.RdfFormat.JSON_LD, reading.base, contexts)
    quads = [(where, relabel.triple(quad), graph_name(quad)) for quad in parsed]
    if not quads:
        raise FormatError(f"{where}: the document has no triples: does a @context define its members?")
    # One line is a message: what has no time belongs to all of its elements. A document over several lines is a file.
    if stated is None or b"\n" not in text:
        return message(quads, where, stated)
    observations = Observations(where, ((triple, graph) for _, triple, graph in quads), stated)
    items = list(observations.items(_raise))
    observations.note_static(reading.note)
    return items


def _raise(error: FormatError) -> None:
    raise error


def recognised(head: bytes) -> bool:
    """Whether JSON looks like JSON-LD."""
    return any(sign in head for sign in (b'"@context"', b'"@id"', b'"@graph"'))


_STATED: Final = honoured(STREAM, TIMES, "parts", "base", "context", "charset", "bad")

FORMATS = (
    Format(
        "jsonld",
        "JSON-LD, one document or one on each line, whose times are a property",
        (".jsonld", ".ndjsonld", ".json", ".jsonl", ".ndjson"),
        follow=follow,
        decoder=decoder(ox.RdfFormat.JSON_LD),
        timed=timed,
        honours={
            "timed": honoured(_STATED),
            "follow": honoured(_STATED),
            "decoder": honoured(_STATED, "time"),
        },
        recognises=recognised,
        resumes=True,
        media_types=MEDIA_TYPES[ox.RdfFormat.JSON_LD],
    ),
)
