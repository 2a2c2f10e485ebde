"""Streams and static data in notations for typing, to elements and back; mistakes name their line.

The simple notation is that of the conformance cases, one element per line (or separated by ``|``): ``0: a p b.`` or
``[other] 3..9: a q 5.``; names may use the query's prefixes. N-Quads, TriG and JSON lines are read like files.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import Final

import pyoxigraph as ox

from streamgauge.formats import notation
from streamgauge.formats.bounds import check_turtle
from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.formats.lines import Advance
from streamgauge.formats.streams import Reading, one_by_one, refused, stream_formats
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import RDF_TYPE, XSD, Term, Triple, by_parts, misplaced

SIMPLE: Final = "simple"
SYNTAXES: Final[Mapping[str, str]] = {
    SIMPLE: "simple: 0: a p b.",
    "nquads": "N-Quads",
    "trig": "TriG",
    "jsonl": "JSON lines",
}
"""The notations of a stream with the names that people read."""
MOST_ELEMENTS: Final = 10_000
MOST_TRIPLES: Final = 20_000

RDF: Final = RDF_TYPE.removeprefix("<").removesuffix("type>")

_PART: Final = re.compile(r"[^|\n]+")
_PREFIXED: Final = re.compile(r"([A-Za-z][\w.\-]*)?:([\w.\-]*)")
_NAME: Final = re.compile(r"<urn:(\w+)>")
_TYPED: Final = re.compile(r'"([^"\'\\\s]*)"(?:\^\^<([^>]*)>)?')
_LANGUAGE: Final = re.compile(r'"([^"\'\\\s]*)"(@[A-Za-z-]+)')
_LINE: Final = re.compile(r"line (\d+)")


class StreamTextError(MistakeError, ValueError):
    """A stream's text that cannot be read; ``line`` and ``column`` count from 1."""

    def __init__(self, sentence: str, line: int = 1, column: int = 1) -> None:
        super().__init__(sentence)
        self.line, self.column = line, column


@dataclass(frozen=True, slots=True)
class TypedStream:
    """The elements of a text, and where the time of each is written: (start, end) in characters, or nothing.

    ``told`` is the time (ms) to which the text's advances move the stream.
    """

    elements: tuple[StreamElement, ...]
    places: tuple[tuple[int, int], ...] = ()
    told: int | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a query gives to a stream's text: its prefixes, ``rdf:`` always, and its streams' IRIs."""

    prefixes: Mapping[str, str]
    streams: Sequence[str] = ()
    _shown: dict[Term, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """``rdf:`` is known without a declaration."""
        object.__setattr__(self, "prefixes", {"rdf": RDF, **self.prefixes})

    def stream(self, name: str | None) -> str:
        """The IRI of a stream: of the query's stream that ends in the name, without one of its first."""
        if name is None:
            return self.streams[0] if self.streams else notation.STREAM
        return next((iri for iri in self.streams if _local(iri) == name), notation.iri(name))

    def shown(self, term: Term | None) -> str:
        """A term in the simple notation, or in N-Triples if that cannot express it."""
        if term is None:
            return "-"
        if term not in self._shown:
            self._shown[term] = by_parts(term, lambda part: self.written(part) or part)
        return self._shown[term]

    def written(self, term: Term) -> str | None:
        """A term in the simple notation; ``None`` if it cannot be written there."""
        short = _literal(term) if term[0] == '"' else self._iri(term)
        # These end a term, an element or a triple in the simple notation.
        if short is None or any(mark in short for mark in " |\n\t") or short.endswith("."):
            return None
        try:
            # Read back: only what comes out as the same term is shown in short.
            return short if self.term(short) == term else None
        except notation.NotationError:
            return None

    def term(self, text: str) -> Term:
        """A term in the simple notation; NotationError for another text."""
        match = _PREFIXED.fullmatch(text)
        if match and (match[1] or "") in self.prefixes:
            text = f"<{self.prefixes[match[1] or '']}{match[2]}>"
        try:
            return _checked(notation.term(text))
        except (SyntaxError, ValueError) as error:  # of pyoxigraph, which checks the term
            raise notation.NotationError(str(error)) from None

    def _iri(self, term: Term) -> str:
        if match := _NAME.fullmatch(term):
            return match[1]
        for prefix, start in self.prefixes.items():
            if start and term.startswith(f"<{start}") and re.fullmatch(r"[\w\-]+", term[1 + len(start) : -1]):
                return f"{prefix}:{term[1 + len(start) : -1]}"
        return term


@lru_cache(maxsize=10_000)
def _checked(term: Term) -> Term:
    """The canonical term; SyntaxError or ValueError for an IRI or blank node that is none."""
    return to_term(parse_term(term))


def _local(iri: str) -> str:
    return re.split(r"[/#:]", iri)[-1]


def _literal(term: Term) -> str | None:
    """A candidate for a literal's short form; the caller checks that it denotes the same term."""
    if match := _LANGUAGE.fullmatch(term):
        return f"'{match[1]}'{match[2]}"
    match = _TYPED.fullmatch(term)
    if match is None:
        return None
    # Worked examples, with xsd: for the datatype's namespace: `"5"^^xsd:integer` is 5, `"1.5"^^xsd:float` is 1.5f,
    # `"a"` is 'a', `"2020-01-01"^^xsd:date` is '2020-01-01'^^date.
    value, datatype = match[1], match[2]
    if datatype is None:
        return f"'{value}'"
    if not datatype.startswith(XSD):
        return None
    match kind := datatype.removeprefix(XSD):
        case "integer" | "decimal" | "double" | "boolean":
            return value
        case "float":
            return f"{value}f"
        case _:
            return f"'{value}'^^{kind}"


def read_text(text: str, syntax: str, names: Names, lateness: int | None = None) -> TypedStream:
    """The elements of a text in a notation; StreamTextError says in which line something is wrong.

    ``lateness`` (ms) allows time to go back in the notations of files.
    """
    if syntax not in SYNTAXES:
        raise StreamTextError(f"there is no notation {syntax!r} of streams: there are {', '.join(SYNTAXES)}")
    typed = _simple(text, names) if syntax == SIMPLE else _formatted(text, syntax, names, lateness)
    if sum(len(element.added) for element in typed.elements) > MOST_TRIPLES:
        raise StreamTextError(f"the stream has more than {MOST_TRIPLES:,} triples: take a shorter one")
    return typed


def _simple(text: str, names: Names) -> TypedStream:
    elements: list[StreamElement] = []
    places: list[tuple[int, int]] = []
    for part in _PART.finditer(text):
        if not part[0].strip() or part[0].lstrip().startswith("#"):
            continue
        if len(elements) == MOST_ELEMENTS:
            raise _too_many()
        element, place = _element(part, len(elements), names, text)
        elements.append(element)
        places.append(place)
    return TypedStream(tuple(elements), tuple(places))


def _too_many() -> StreamTextError:
    return StreamTextError(f"the stream has more than {MOST_ELEMENTS:,} elements: take a shorter one")


_HEAD: Final = re.compile(r"\s*(?:\[(\w+)\])?\s*(-?\d{1,15})(?:\.\.(\d{1,15}))?\s*:")


def _element(part: re.Match[str], number: int, names: Names, text: str) -> tuple[StreamElement, tuple[int, int]]:
    match = _HEAD.match(part[0])
    if match is None:
        raise _wrong(
            text, part, "this is not an element: write TIME: TRIPLES, [STREAM] TIME: TRIPLES or TIME..END: TRIPLES"
        )
    time, until = int(match[2]), None if match[3] is None else int(match[3])
    if until is not None and until <= time:
        raise _wrong(text, part, f"the element ends at {until} ms: that must be after its time, {time} ms")
    try:
        added = _triples(part[0][match.end() :], names)
    except notation.NotationError as error:
        raise _wrong(text, part, str(error)) from None
    if not added:
        raise _wrong(text, part, "the element has no triple: write SUBJECT PREDICATE OBJECT and a full stop")
    # Where the time is written: dragging an element on the timeline changes just these letters.
    place = (part.start() + match.start(2), part.start() + match.end(2))
    return StreamElement(names.stream(match[1]), time, number, added, (), until), place


def _wrong(text: str, part: re.Match[str], sentence: str) -> StreamTextError:
    # The first letter that is not a space.
    start = part.start() + len(part[0]) - len(part[0].lstrip())
    line, column = text.count("\n", 0, start) + 1, start - (text.rfind("\n", 0, start) + 1) + 1
    return StreamTextError(f"line {line}: {sentence}", line, column)


def _triples(text: str, names: Names) -> tuple[Triple, ...]:
    return _read_triples(text, tuple(names.prefixes.items()))


@lru_cache(maxsize=2 * MOST_ELEMENTS)
def _read_triples(text: str, prefixes: tuple[tuple[str, str], ...]) -> tuple[Triple, ...]:
    """The triples of an element's text, cached because an edit mostly changes a line or two of a stream."""
    names = Names(dict(prefixes))
    triples: list[Triple] = []
    # A full stop before a blank or at the end: one within a number or an IRI ends nothing.
    for part in re.split(r"\.(?:\s|$)", text):
        words = part.split()
        if not words:
            continue
        if len(words) != 3:
            raise notation.NotationError(
                f"{part.strip()!r} has {len(words)} terms: a triple has three, and then a full stop"
            )
        subject, predicate, item = (names.term(word) for word in words)
        if fault := misplaced((subject, predicate, item)):
            raise notation.NotationError(f"{part.strip()!r} is not a triple: it {fault}")
        triples.append((subject, predicate, item))
    return tuple(triples)


def _formatted(text: str, syntax: str, names: Names, lateness: int | None) -> TypedStream:
    """The elements of a text in the format of files."""
    form = stream_formats()[syntax]
    assert form.follow is not None
    reading = Reading(names.stream(None), lateness=lateness, checked=True, note=lambda _sentence: None)
    try:
        followed = one_by_one(form.follow(io.BytesIO(text.encode()), "the stream", reading, refused))
        # One more than allowed is enough to refuse; an advance may come with it.
        items = list(islice(followed, MOST_ELEMENTS + 2))
    except MistakeError as error:
        match = _LINE.search(str(error))
        # The readers of files name the line in their sentence.
        raise StreamTextError(str(error), int(match[1]) if match else 1) from None
    elements = tuple(item for item in items if isinstance(item, StreamElement))
    if len(elements) > MOST_ELEMENTS:
        raise _too_many()
    times = [item.time for item in items if isinstance(item, Advance)]
    numbered = tuple(replace(element, sequence=number) for number, element in enumerate(elements))
    return TypedStream(numbered, (), max(times, default=None))


def write_text(elements: Iterable[StreamElement], names: Names) -> tuple[str, str]:
    """The text of elements and its notation: the simple one if it can express them, else N-Quads or JSON lines."""
    stream = tuple(elements)
    simple = [_line(element, names) for element in stream]
    if None not in simple:
        return "\n".join(line for line in simple if line), SIMPLE
    # N-Quads have no place for the end of an element, nor for its stream.
    ends = any(element.until is not None for element in stream) or {element.stream for element in stream} - {
        names.stream(None)
    }
    syntax = "jsonl" if ends else "nquads"
    encode = stream_formats()[syntax].encode
    assert encode is not None
    return b"".join(map(encode, stream)).decode(), syntax


def _line(element: StreamElement, names: Names) -> str | None:
    stream = "" if element.stream == names.stream(None) else f"[{_local(element.stream)}] "
    if stream and names.stream(_local(element.stream)) != element.stream:
        return None
    terms = [[names.written(term) for term in triple] for triple in element.added]
    if any(term is None for triple in terms for term in triple):
        return None
    until = "" if element.until is None else f"..{element.until}"
    text = " ".join(" ".join(term or "" for term in triple) + "." for triple in terms)
    return f"{stream}{element.time}{until}: {text}"


def read_static(text: str, names: Names) -> tuple[Triple, ...]:
    """Static data: triples in the simple notation, else Turtle with the query's prefixes; StreamTextError."""
    if not text.strip():
        return ()
    try:
        uncommented = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
        return _triples(" ".join(uncommented), names)
    except notation.NotationError:
        pass
    declared = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in names.prefixes.items())
    try:
        check_turtle(declared + text)
        return tuple(islice(_turtle(declared + text), MOST_TRIPLES))
    except (MistakeError, SyntaxError) as error:
        raise StreamTextError(f"the static data is neither triples as a p b. nor Turtle: {error}") from None


def _turtle(text: str) -> Iterator[Triple]:
    for quad in ox.parse(text, format=ox.RdfFormat.TURTLE):
        yield to_term(quad.subject), to_term(quad.predicate), to_term(quad.object)


def write_static(triples: Iterable[Triple], names: Names) -> str:
    """Static data in the simple notation, a triple a line; as N-Triples where that cannot say it."""
    triples_ = tuple(triples)
    terms = [[names.written(term) for term in triple] for triple in triples_]
    if any(term is None for triple in terms for term in triple):
        return "".join(f"{' '.join(triple)} .\n" for triple in triples_)
    return "\n".join(" ".join(term or "" for term in triple) + "." for triple in terms)
