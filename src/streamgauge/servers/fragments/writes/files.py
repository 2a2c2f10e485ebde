"""Loading data sets from files: quads in every format, and the ends of annotated ones.

Most lines of N-Quads and N-Triples are already in the form in which terms are stored: no escapes, IRIs of plain
characters, language tags in lower case. One regular expression, which accepts only such lines, reads ten thousand of
them at a time; all other lines go to the parser. This is possible because no line of these formats depends on others.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BufferedReader, BytesIO
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Final, cast

import pyoxigraph as ox

from streamgauge.formats.documents import FormatError, open_bytes
from streamgauge.formats.streams import parse_file, rdf_syntax
from streamgauge.formats.streams.format import Relabel
from streamgauge.formats.syntaxes import parse_open
from streamgauge.model.terms import Term
from streamgauge.servers.fragments import DEFAULT, ExpiringQuad, Match, Quad, named_quad
from streamgauge.servers.fragments.annotations import method
from streamgauge.servers.fragments.annotations.implicit import SAME_AS
from streamgauge.servers.fragments.labels import Style, label_predicates, latest_ends, read_labels
from streamgauge.servers.fragments.store import QuadChanges
from streamgauge.servers.fragments.store.indexed import Store
from streamgauge.servers.fragments.store.quad_keys import BATCH, QuadBatch

BLOCK: Final = 2**20
"""Bytes read at a time when a file is searched."""

_PART: Final = 8 * BLOCK
"""Bytes of lines parsed at a time."""

ANY: Final[Match] = (None, None, None, None)
_PAGE: Final = 10_000
"""Quads read from a store at a time."""

RESERVED: Final = frozenset({"health", "metrics", "."})
"""Names that no data set may have: paths of the server, and the current folder."""


def name_of(path: Path) -> str:
    """The name of a file's data set: the file name up to its first dot; FormatError."""
    name = path.name.split(".")[0]
    if not name or name in RESERVED:
        raise FormatError(f"{path}: a data set cannot be named {name!r}: rename the file")
    return name


def read_quads(path: Path) -> Iterator[Quad]:
    """The quads of an RDF file by its ending; FormatError names file and line."""
    relabel = Relabel("s")
    return (named_quad(quad, relabel) for quad in parse_file(path))


def read_parts(path: Path) -> Iterator[Sequence[Quad]]:
    """The quads of ``read_quads`` in batches."""
    if (syntax := rdf_syntax(path)) in _LINES:
        yield from _line_parts(path, syntax)
        return
    rest = read_quads(path)
    while part := list(islice(rest, BATCH)):
        yield part


# Possessive quantifiers (Python 3.11): on a line that does not match, the expression must not backtrack.
_PLAIN: Final = r"[A-Za-z0-9._~!$&'()*+,;=:@/?-]*+(?:%[0-9A-Fa-f]{2}[A-Za-z0-9._~!$&'()*+,;=:@/?-]*+)*+"
_IRI: Final = rf"<(?:https?://[A-Za-z0-9.-]++(?::[0-9]{{1,5}})?(?=[/?#>])|urn:[A-Za-z0-9]++:){_PLAIN}(?:#{_PLAIN})?>"
_BLANK: Final = "_:[A-Za-z0-9]++"
_OTHERWISE: Final = r"(?!<http://www\.w3\.org/(?:2001/XMLSchema#string|1999/02/22-rdf-syntax-ns#(?:dirL|l)angString)>)"
_TEXT: Final = r'"[^"\\\x00-\x1f\x7f\ufffe\uffff]*+"' + rf"(?:@[a-z]{{2,3}}(?:-[a-z]{{2}})?|\^\^{_OTHERWISE}{_IRI})?"
_LINES: Final = {
    syntax: re.compile(rf"^({_IRI}|{_BLANK}) ({_IRI}) ({_IRI}|{_TEXT}|{_BLANK}){graph} ?\.\r?\n", re.MULTILINE)
    for syntax, graph in (
        (ox.RdfFormat.N_QUADS, rf"(?: ({_IRI}|{_BLANK}))?"),
        (ox.RdfFormat.N_TRIPLES, "()"),
    )
}
"""Lines whose terms are in stored form, as four groups; the last is empty for the default graph.

``_OTHERWISE`` excludes datatypes that a term never states: xsd:string is implied, the others need a language.
"""


def _line_parts(path: Path, syntax: ox.RdfFormat) -> Iterator[Sequence[Quad]]:
    """The quads of a file of lines; after an error the parser reads the whole file, to report the right line."""
    naming = Relabel("s")
    try:
        with open_bytes(path) as file:
            for block in _blocks(file):
                yield _block_quads(block, str(path), syntax, naming)
    except (FormatError, OSError, EOFError):
        # Raises the error with the line of the whole file; the one at hand counts from its block.
        for _ in parse_file(path):
            pass
        raise


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a file in blocks of whole lines, the last one completed by a line feed."""
    rest = b""
    while block := file.read(_PART):
        end = block.rfind(b"\n") + 1
        if end:
            yield rest + block[:end]
            rest = block[end:]
        else:
            rest += block
    if rest:
        yield rest + b"\n"


def _block_quads(block: bytes, place: str, syntax: ox.RdfFormat, naming: Relabel) -> list[Quad]:
    """The quads of whole lines, by the expression or the parser, whichever fits."""
    try:
        text = block.decode()
    except UnicodeDecodeError:
        return _parsed(block, place, syntax, naming)
    quads: list[Quad] = _LINES[syntax].findall(text)
    count = text.count("\n")
    if len(quads) == count:
        # Searching the text once is cheaper than looking at every quad.
        return [_named(quad, naming) for quad in quads] if "_:" in text else quads
    # Where most lines do not fit, the block is parsed once and not gap by gap.
    return _mixed(text, place, syntax, naming) if 2 * len(quads) > count else _parsed(block, place, syntax, naming)


def _mixed(text: str, place: str, syntax: ox.RdfFormat, naming: Relabel) -> list[Quad]:
    """The quads of lines, some of which only the parser can read."""
    quads: list[Quad] = []
    line, at, left = _LINES[syntax], 0, 0
    while at < len(text):
        match = line.match(text, at)
        if match is None:
            at = text.index("\n", at) + 1
            continue
        if left < at:
            quads += _parsed(text[left:at].encode(), place, syntax, naming)
        quads.append(_named(cast(Quad, match.groups("")), naming))
        at = left = match.end()
    return quads + _parsed(text[left:].encode(), place, syntax, naming)


def _parsed(lines: bytes, place: str, syntax: ox.RdfFormat, naming: Relabel) -> list[Quad]:
    """The quads of whole lines by the parser; a FormatError counts lines from the first of these."""
    file = BufferedReader(BytesIO(lines))
    return [named_quad(quad, naming) for quad in parse_open(file, place, syntax)]


def _named(quad: Quad, naming: Relabel) -> Quad:
    """A quad with its blank nodes renamed, as ``named_quad`` does."""
    s, p, o, g = quad
    graph = naming.blank(g) if g[:1] == "_" else g
    return naming.blank(s) if s[0] == "_" else s, p, naming.blank(o) if o[0] == "_" else o, graph


def load(path: Path, store: Store, style: Style, at: int | None = None) -> int:
    """Fill an empty store with a file's quads; returns their number.

    A file without labels is streamed. With the method ``graphs`` the labels are read in a first pass and the quads
    streamed in a second; other methods need the whole file in memory to find which quads end with which label.
    """
    own = label_predicates(style.vocabulary)
    if not _mentions(path, own):
        return store.load_batches(map(QuadBatch, read_parts(path)), at)
    if style.method != "graphs":
        return store.load(ending_quads(list(read_quads(path)), style), at)
    ends = _labelled(_label_quads(path, own), style)
    return store.load_batches((QuadBatch(part, _ends(part, ends)) for part in read_parts(path)), at)


def refill(path: Path, store: Store, style: Style, at: int | None = None) -> QuadChanges:
    """Replace the content of a store by a file's quads, as one change; quads in both stay. FormatError, FullError.

    Both are loaded into memory.
    """
    if _mentions(path, label_predicates(style.vocabulary)):
        come = dict(ending_quads(list(read_quads(path)), style))
    else:
        come = dict.fromkeys(quad for part in read_parts(path) for quad in part)
    pages = (store.page(ANY, offset, _PAGE) for offset in range(0, store.count(ANY), _PAGE))
    stored = {quad for page in pages for quad in page}
    gone = [quad for quad in stored if quad not in come]
    return store.change(gone, [(quad, end) for quad, end in come.items() if end is not None or quad not in stored], at)


def _ends(quads: Sequence[Quad], ends: Mapping[Term, int | None]) -> list[tuple[int, int]]:
    """(index, end) of the quads that end; the same as ``_named_end`` for each quad, but for many at once."""
    ends_by_place = dict[int, int | None]()
    for part in (1, 0, 3):  # predicate, subject, graph: the last one that has a label counts
        if not ends.keys().isdisjoint(map(itemgetter(part), quads)):
            ends_by_place.update([(place, ends[quad[part]]) for place, quad in enumerate(quads) if quad[part] in ends])
    return [(place, end) for place, end in ends_by_place.items() if end is not None]


def _label_quads(path: Path, own: Collection[Term]) -> list[Quad]:
    """The quads that determine the ends of others: labels, and owl:sameAs.

    In a format of lines only those are parsed that mention one of these predicates, unless they have blank nodes, whose
    names depend on the lines before.
    """
    syntax, wanted = rdf_syntax(path), {*own, SAME_AS}
    if syntax in _LINES:
        lines = b"".join(_lines_with([term[1:-1].encode() for term in wanted], path))
        if b"_:" not in lines:
            relabel = Relabel("s")
            with suppress(FormatError):  # then the whole file is read, which reports the right line
                quads = [named_quad(quad, relabel) for quad in parse_open(BytesIO(lines), str(path), syntax)]
                return [quad for quad in quads if quad[1] in wanted]
    return [quad for part in read_parts(path) for quad in part if quad[1] in wanted]


def _lines_with(names: Sequence[bytes], path: Path) -> Iterator[bytes]:
    """The lines of a file that contain one of the names."""
    named, rest = re.compile(b"|".join(map(re.escape, names))), b""
    with open_bytes(path) as file:
        while block := file.read(BLOCK):
            block, end = rest + block, 0
            rest = block[block.rfind(b"\n") + 1 :]
            while match := named.search(block, end, len(block) - len(rest)):
                start, end = block.rfind(b"\n", 0, match.start()) + 1, block.find(b"\n", match.end()) + 1
                yield block[start:end]
    if named.search(rest):
        yield rest


def _named_end(quad: Quad, ends: Mapping[Term, int | None]) -> int | None:
    """The end of a quad, by the label of its graph, subject or predicate, in this order."""
    for term in (quad[3], quad[0], quad[1]):
        if term in ends:
            return ends[term]
    return None


def _mentions(path: Path, own: Collection[Term]) -> bool:
    """Whether a file contains the namespace of one of the IRIs, which is written out in every format."""
    spaces = {re.sub(r"[^/#:]*$", "", term[1:-1]).encode() for term in own}
    longest, before = max(map(len, spaces)), b""
    with open_bytes(path) as file:
        while block := file.read(BLOCK):
            if any(space in before + block for space in spaces):
                return True
            # A name may be cut by the border of two blocks.
            before = block[-longest:]
    return False


def ending_quads(quads: Sequence[Quad], style: Style) -> list[ExpiringQuad]:
    """The distinct quads with their ends: by the label of graph, subject or predicate, else by the quad's fact."""
    ends = _labelled(quads, style)
    facts = method(style.method).facts(quads, style)
    final_by_quad = dict(latest_ends(((*fact.triple, DEFAULT), fact.final) for fact in facts))
    return [(quad, _end(quad, ends, final_by_quad)) for quad in dict.fromkeys(quads)]


def _end(quad: Quad, ends: dict[Term, int | None], final_by_quad: dict[Quad, int | None]) -> int | None:
    return _named_end(quad, ends) if any(term in ends for term in (quad[3], *quad[:2])) else final_by_quad.get(quad)


def _labelled(quads: Sequence[Quad], style: Style) -> dict[Term, int | None]:
    """The latest end of every labelled term: subjects of labels, nodes of intervals, and terms owl:sameAs a subject."""
    read, vocabulary, own = read_labels(quads, style), style.vocabulary, label_predicates(style.vocabulary)
    subjects = dict.fromkeys(quad[0] for quad in quads if quad[1] in own)
    ends = {subject: _latest([final for _, final in read.of(subject)]) for subject in subjects if read.of(subject)}
    nodes = {o: ends[s] for s, p, o, _ in quads if p == vocabulary.interval and s in ends}
    same = {s: ends[o] for s, p, o, _ in quads if p == SAME_AS and o in ends}
    return {**ends, **nodes, **same}


def _latest(finals: Sequence[int | None]) -> int | None:
    known = [final for final in finals if final is not None]
    return max(known) if len(known) == len(finals) else None
