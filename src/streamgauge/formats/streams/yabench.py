"""YABench's line format: ``<s> <p> <o> "ms" .``, one triple per line, typed literals unquoted.

The variant of its CSRBench converter is read too: datatypes without angle brackets, no final dot. Consecutive lines
with the same time are one element.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import IO

from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.formats.documents import Document, FormatError, document_lines
from streamgauge.formats.streams.format import Format, Item, Reading, Refuse, Whole, number
from streamgauge.formats.streams.options import STREAM, honoured
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import Term, Triple, is_literal

_LINE = re.compile(r'[ \t]*([^ \t]+)[ \t]+([^ \t]+)[ \t]+(.+?)[ \t]+"(-?\d+)"[ \t]*\.?[ \t\r]*')
"""Only spaces and tabs separate terms: an unquoted literal may begin with any other white space of Unicode."""

_TYPED = re.compile(r"([^\"].*|)\^\^(?:<([^<>\s]+)>|([^<>\s]+))", re.DOTALL)
_LIMIT = 1_000_000


def read(whole: Whole, reading: Reading, _refuse: Refuse) -> Iterator[StreamElement]:
    """The elements of a file, or of a folder's files in name order; FormatError names file and line."""
    return number(_items(whole), reading)


def write(stream: Iterable[StreamElement], file: IO[bytes]) -> None:
    """Write elements as YABench's generator does: typed literals without quotes, a final dot."""
    for element in stream:
        if element.removed or element.until is not None:
            raise FormatError(
                f"sequence {element.sequence}: YABench's format cannot express removals or ends: write jsonl or parquet"
            )
        time = f'"{element.time}" .\n'
        text = "".join(f"{s} {p} {_written(o)} {time}" for s, p, o in element.added)
        file.write(text.encode())


def _items(whole: Whole) -> Iterator[Item]:
    for document in whole.with_endings(FORMATS[0].endings):
        for time, group in groupby(_triples(document), key=itemgetter(1)):
            numbers, _, triples = zip(*group, strict=True)
            yield f"{document.place}, line {numbers[0]}", time, triples


def _triples(document: Document) -> Iterator[tuple[int, int, Triple]]:
    terms = _Terms()
    for line, text in document_lines(document):
        if not text or text.isspace():
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise FormatError(f'{document.place}, line {line}: expected <s> <p> <o> "time in ms": {text[:120]}')
        try:
            triple = terms.resource(match[1]), terms.resource(match[2]), terms.object(match[3])
        except ValueError as error:
            raise FormatError(f"{document.place}, line {line}: {error}") from error
        yield line, int(match[4]), triple


class _Terms:
    """Converts terms of the line format to N-Triples, with a cache."""

    def __init__(self) -> None:
        self._resources: dict[str, Term] = {}
        self._objects: dict[str, Term] = {}

    def resource(self, text: str) -> Term:
        known = self._resources.get(text)
        return known if known is not None else self._learn(self._resources, text, text)

    def object(self, text: str) -> Term:
        known = self._objects.get(text)
        if known is not None:
            return known
        # A term that begins so is an IRI, a quoted literal or a blank node, written as in N-Triples.
        typed = None if text[0] in '<"_' else _TYPED.fullmatch(text)
        if typed is not None:
            return self._learn(self._objects, text, f'"{typed[1]}"^^<{typed[2] or typed[3]}>')
        return self._learn(self._objects, text, text if text[0] in '<"_' else f'"{text}"')

    def _learn(self, known: dict[str, Term], text: str, term: str) -> Term:
        # Forgetting costs time only: terms are parsed once more.
        if len(known) >= _LIMIT:
            known.clear()
        known[text] = to_term(parse_term(term))
        return known[text]


def _written(term: Term) -> str:
    """A typed literal without its quotes, if it can be read back that way."""
    end = term.rfind('"^^<')
    if not is_literal(term) or end < 1 or term[1:2] in ("<", "_", '"', " ", "\t", ""):
        return term
    return f"{term[1:end]}{term[end + 1 :]}"


FORMATS = (
    Format(
        "yabench",
        "YABench's lines: a triple and its time in ms",
        (".yabench", ".n3t", ""),
        read,
        write,
        honours={"read": honoured(STREAM, "charset")},
        parts="times",
    ),
)
