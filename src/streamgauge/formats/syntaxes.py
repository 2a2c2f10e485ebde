"""The RDF syntaxes by ending and media type, and the one place where their text is parsed."""

import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any, Final, cast
from xml.etree.ElementTree import ParseError, canonicalize

import pyoxigraph as ox

from streamgauge.formats.bounded_files import ByteReader, bounded, scanned_xml
from streamgauge.formats.bounds import BoundError, XmlScan
from streamgauge.formats.charsets import CharsetError, text_in_utf8
from streamgauge.formats.contexts import ContextError, embedded
from streamgauge.formats.documents import FormatError
from streamgauge.formats.json_ld_chunks import chunks
from streamgauge.formats.line_versions import LINES, UnversionedFile
from streamgauge.model.mistake import obstacle
from streamgauge.model.terms import Term, Triple


@dataclass(frozen=True, slots=True)
class RdfSyntax:
    """A syntax of RDF, with the endings and media types that name it; the first media type is the registered one."""

    form: ox.RdfFormat
    endings: tuple[str, ...]
    media_types: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the syntax, such as Turtle."""
        return self.form.name


SYNTAXES: Final = (
    RdfSyntax(ox.RdfFormat.TURTLE, (".ttl", ".turtle"), ("text/turtle", "application/x-turtle", "application/turtle")),
    RdfSyntax(ox.RdfFormat.N_TRIPLES, (".nt",), ("application/n-triples",)),
    RdfSyntax(ox.RdfFormat.TRIG, (".trig",), ("application/trig", "application/x-trig")),
    RdfSyntax(ox.RdfFormat.N_QUADS, (".nq",), ("application/n-quads", "text/x-nquads")),
    RdfSyntax(ox.RdfFormat.RDF_XML, (".rdf", ".owl", ".rdfs"), ("application/rdf+xml",)),
    RdfSyntax(ox.RdfFormat.JSON_LD, (".jsonld",), ("application/ld+json",)),
    RdfSyntax(ox.RdfFormat.N3, (".n3",), ("text/n3", "text/rdf+n3")),
)

BY_ENDING: Final[Mapping[str, ox.RdfFormat]] = {ending: syntax.form for syntax in SYNTAXES for ending in syntax.endings}
BY_MEDIA_TYPE: Final[Mapping[str, ox.RdfFormat]] = {
    media_type: syntax.form for syntax in SYNTAXES for media_type in syntax.media_types
}
SENT: Final[Mapping[str, ox.RdfFormat]] = {
    media_type: form for media_type, form in BY_MEDIA_TYPE.items() if form != ox.RdfFormat.N3
}
"""The syntaxes that servers accept in bodies, by media type; N3 is left out because it has more than triples."""
MEDIA_TYPES: Final = {syntax.form: syntax.media_types for syntax in SYNTAXES}
REGISTERED: Final = {syntax.form: syntax.media_types[0] for syntax in SYNTAXES}
"""The registered media type of each syntax."""
DATASETS: Final = {ox.RdfFormat.TURTLE: ox.RdfFormat.TRIG, ox.RdfFormat.N_TRIPLES: ox.RdfFormat.N_QUADS}
"""For a syntax of triples its superset with named graphs."""


def media_type(content_type: str) -> str:
    """The media type of a Content-Type, in lower case, without parameters."""
    return content_type.partition(";")[0].strip().lower()


_CHARSET: Final = re.compile(r""";\s*charset\s*=\s*["']?([^\s;"']+)""", re.IGNORECASE)


def charset_of(content_type: str) -> str | None:
    """The charset parameter of a Content-Type, if any."""
    match = _CHARSET.search(content_type)
    return match and match[1]


def served_text(body: bytes, content_type: str) -> bytes:
    """The text of a body in UTF-8 without a byte order mark; CharsetError."""
    return text_in_utf8(body, charset_of(content_type))


def arriving(file: IO[bytes]) -> io.RawIOBase:
    """A buffered file whose reads return the bytes that have arrived: parsers ask for more, and would wait."""
    return ByteReader(cast(io.BufferedReader, file).read1)


_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*\Z")
_UNRESOLVED: Final = "unresolved://relative/"
"""The base of JSON-LD without one: the parser would silently drop statements with relative IRIs."""


def parse_open(
    file: IO[bytes] | io.RawIOBase,
    place: str,
    syntax: ox.RdfFormat,
    base: str | None = None,
    contexts: Mapping[str, Any] | None = None,
) -> Iterator[ox.Quad]:
    """The quads of an open RDF text; FormatError with place and line for invalid syntax or an exceeded bound.

    ``base`` resolves relative IRIs, ``contexts`` are those of JSON-LD by their IRIs.
    """
    with _located(place):
        for quad in _quads(file, place, syntax, base, contexts or {}):
            if syntax == ox.RdfFormat.JSON_LD and base is None:
                _check_resolved(str(quad))
            yield quad


def parse_texts(
    file: IO[bytes] | io.RawIOBase,
    place: str,
    syntax: ox.RdfFormat,
    base: str | None = None,
    contexts: Mapping[str, Any] | None = None,
    name: Callable[[Term], Term] = lambda term: term,
) -> Iterator[tuple[Triple, Term]]:
    """``parse_open`` with terms as text: each triple with its graph, empty for the default graph.

    ``name`` gets the terms of lines with blank nodes and returns their labels.
    Serialising many as N-Quads and splitting the lines costs 0.9 us per triple; converting its terms one by one, 1.8.
    """
    with _located(place):
        quads = _quads(file, place, syntax, base, contexts or {})
        while text := _text(islice(quads, _TOGETHER)):
            if syntax == ox.RdfFormat.JSON_LD and base is None:
                _check_resolved(text)
            lines = _lines(text)
            if "_:" in text:
                yield from (_renamed(_split(line), name) if "_:" in line else _split(line) for line in lines)
            else:
                yield from map(_split, lines)


_TOGETHER: Final = 512
"""Quads serialised per call."""


def quad_texts(quads: Iterator[ox.Quad]) -> list[tuple[Triple, Term]]:
    """Some quads as text, each triple with its graph, which is empty for the default graph."""
    return list(map(_split, _lines(_text(quads))))


def one_quad_a_line(lines: bytes) -> list[tuple[Triple, Term]] | None:
    """(triple, graph) of lines of N-Quads in one parse; ``None`` unless each is one quad without RDF 1.2 syntax."""
    # Lines with triple terms are checked for nesting, and VERSION is cut out, line by line.
    if b"<<" in lines or b"VERSION" in lines or lines.find(b"\n") == len(lines) - 1:
        return None
    try:
        quads = quad_texts(ox.parse(lines, format=ox.RdfFormat.N_QUADS))
    except SyntaxError:
        return None
    return quads if len(quads) == lines.count(b"\n") else None


def _text(quads: Iterator[ox.Quad]) -> str:
    return (ox.serialize(quads, format=ox.RdfFormat.N_QUADS) or b"").decode()


def _lines(text: str) -> list[str]:
    # Not ``splitlines``: N-Quads leaves other line ends in literals as they are, such as U+2028.
    return text.split("\n")[:-1]


def _renamed(quad: tuple[Triple, Term], name: Callable[[Term], Term]) -> tuple[Triple, Term]:
    (subject, predicate, item), graph = quad
    return (name(subject), predicate, name(item)), graph and name(graph)


def _split(line: str) -> tuple[Triple, Term]:
    """The triple and graph of a line of canonical N-Quads.

    IRIs and blank nodes contain neither blanks nor quotes, and a literal has a quote after its last blank: in
    ``<s> <p> "a <b>"@en <g> .`` the graph is what follows the last blank.
    """
    subject, predicate, rest = line.split(" ", 2)
    item, _, graph = rest[:-2].rpartition(" ")
    if item and '"' not in graph and graph != ")>>":
        return (subject, predicate, item), graph
    return (subject, predicate, rest[:-2]), ""


def _quads(
    file: IO[bytes] | io.RawIOBase, place: str, syntax: ox.RdfFormat, base: str | None, contexts: Mapping[str, Any]
) -> Iterator[ox.Quad]:
    """The parsed quads; relative IRIs of JSON-LD without a base begin with ``_UNRESOLVED``."""
    if base is not None and not _ABSOLUTE.match(base):
        raise FormatError(f"{place}: the base {base} is not an absolute IRI: write it in full, as http://example.org/")
    if syntax == ox.RdfFormat.RDF_XML:
        return _rdf_xml(file, base)
    if syntax == ox.RdfFormat.JSON_LD:
        return _json_ld(file, base, contexts)
    read = cast(IO[bytes], bounded(file, syntax))
    lines = UnversionedFile(read) if syntax in LINES else read
    return ox.parse(cast(IO[bytes], lines), format=syntax, base_iri=base)


@contextmanager
def _located(place: str) -> Iterator[None]:
    """Convert syntax errors to FormatError with place and line."""
    try:
        yield
    except (BoundError, CharsetError, ContextError) as error:
        raise FormatError(f"{place}: {error}") from error
    except SyntaxError as error:
        where = place if error.lineno is None else f"{place}, line {error.lineno}"
        raise FormatError(f"{where}: {reason(error)}") from error
    except (OSError, EOFError) as error:
        raise FormatError(f"{place}: cannot be read: {obstacle(error)}") from error


def _check_resolved(text: str) -> None:
    """ContextError for a relative IRI of JSON-LD without a base, in the text of some quads."""
    _, before, rest = text.partition(f"<{_UNRESOLVED}")
    if before:
        raise ContextError(f"<{rest.partition('>')[0]}> is a relative IRI: {_BASE}")


def _json_ld(file: IO[bytes] | io.RawIOBase, base: str | None, contexts: Mapping[str, Any]) -> Iterator[ox.Quad]:
    """The quads of JSON-LD, chunk by chunk, each held to the bounds of a document."""
    for line, text in chunks(file):
        body = cast(IO[bytes], bounded(io.BytesIO(text), ox.RdfFormat.JSON_LD)).read()
        document = embedded(body, contexts, base)
        try:
            yield from ox.parse(document, format=ox.RdfFormat.JSON_LD, base_iri=base or _UNRESOLVED)
        except SyntaxError as error:
            error.lineno = error.lineno and error.lineno + line
            raise


_XML_LITERAL: Final = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral")


def _rdf_xml(file: IO[bytes] | io.RawIOBase, base: str | None) -> Iterator[ox.Quad]:
    """The quads of RDF/XML; literals of ``rdf:parseType="Literal"`` are canonical (RDF 1.2 XML, 7.2.17)."""
    scan = XmlScan()
    for quad in ox.parse(cast(IO[bytes], scanned_xml(file, scan)), format=ox.RdfFormat.RDF_XML, base_iri=base):
        # Few texts have such literals: in the others, no quad is built twice.
        if scan.literals:
            yield ox.Quad(quad.subject, quad.predicate, _canonical_xml(quad.object), quad.graph_name)
        else:
            yield quad


def _canonical_xml(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Any:
    """An XML literal in canonical form, with namespaces declared where they are used; other terms unchanged."""
    if isinstance(term, ox.Triple):
        # Only the object: literals are in no other place of a triple term.
        return ox.Triple(term.subject, term.predicate, _canonical_xml(term.object))
    if not isinstance(term, ox.Literal) or term.datatype != _XML_LITERAL or "xmlns" not in term.value:
        return term
    try:
        # A literal may have several elements or none, XML has one.
        text = canonicalize(f"<x>{term.value}</x>", with_comments=True)
    except ParseError:
        return term  # written out as text, with a datatype: its form is its own
    return ox.Literal(text[len("<x>") : -len("</x>")], datatype=_XML_LITERAL)


_BASE: Final = "give the IRI that it is relative to, as by --base http://example.org/"
_OFTEN: Final = {
    r"The subject of a triple must be an IRI or a blank node": "a subject is expected here: <IRI>, or _:name",
    r"The predicate of a triple must be an IRI": "a predicate is expected here: <IRI>",
    r"The object of a triple must be .*": 'an object is expected here: <IRI>, _:name or "literal"',
    r"The prefix (\S*:) has not been declared": r"The prefix \1 has not been declared: add @prefix \1 <...> .",
    r"Invalid UTF-8 character encoding": "not UTF-8 text: save the file as UTF-8, or name its charset (--charset)",
    r"No LoadDocumentCallback has been set.*": "its context is named by an IRI, which is not fetched: write it out",
    r"Unexpected end of file": "the file ends in the middle of a statement",
    r"(?:error while parsing IRI '(.*)': )?No scheme found in an absolute IRI": f"a relative IRI: {_BASE}",
}
"""Frequent messages of pyoxigraph, and the sentences that replace them."""


def reason(error: SyntaxError) -> str:
    """The message of pyoxigraph without its position, or the sentence in ``_OFTEN`` that replaces it."""
    message = re.sub(r"^(?:\S+ )?Parser error at .*?: ", "", error.msg)
    message = re.sub(r" \(line \d+\)$", "", message)
    for pattern, words in _OFTEN.items():
        if match := re.fullmatch(pattern, message):
            return match.expand(words)
    return message


SPREAD: Final = 4 * 2**20
SPREAD_EACH: Final = 32
"""Characters that the terms of a text's triples may have: for any text, and in addition for each of its bytes.

Each triple spells out its prefixes, subject and base, so 64 KB of text can become 150 MB of terms.
"""


def most_characters(size: int) -> int:
    """The maximum number of characters in the terms of all triples of a text of ``size`` bytes."""
    return SPREAD + SPREAD_EACH * size
