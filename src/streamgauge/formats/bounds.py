"""Bounds of RDF, JSON and XML text, checked by one linear scan before parsing, and of the length of SPARQL.

The parsers of pyoxigraph and json are recursive: some 20 KB of nested brackets overflow a thread's stack, which ends
the process. A scan tokenizes the text (strings, comments and IRIs are skipped) and counts open brackets. Our own
SPARQL parser has its own count (``query.cursor``).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyoxigraph as ox

from streamgauge.model.mistake import MistakeError

DATA_DEPTH: Final = 100
"""Maximum nesting depth: brackets of Turtle, objects and arrays of JSON, elements of XML."""

TRIPLE_TERMS: Final = 32
"""Maximum nesting depth of triple terms and reified triples."""

CONTEXT_TERMS: Final = 10_000_000
"""Maximum number of copied terms of JSON-LD contexts: a nested context copies the outer one, 0.2 us a term."""

JSON_LD: Final = (ox.RdfFormat.JSON_LD, ox.RdfFormat.STREAMING_JSON_LD)


class BoundError(MistakeError, ValueError):
    """Text beyond a bound; the sentence names the bound, ``position`` is the number of characters before it."""

    def __init__(self, sentence: str, position: int = 0) -> None:
        super().__init__(sentence)
        self.position = position


@dataclass(frozen=True, slots=True)
class TextBounds:
    """Maximum characters and tokens of a SPARQL text, and values of a JSON-LD document.

    pyoxigraph builds all triples of a document before it returns the first: 800 bytes and 1 us per item of a list.
    """

    characters: int
    tokens: int
    values: int


LOCAL: Final = TextBounds(2**20, 100_000, 4_000_000)
"""Bounds of texts from the user of this process."""

SERVED: Final = TextBounds(64 * 2**10, 4_000, 125_000)
"""Bounds of texts from clients of a server."""

_ESCAPED: Final = r"\\(?s:.)?"
_STRINGS: Final = (
    rf'"""(?:[^"\\]|{_ESCAPED}|"(?!""))*+(?:""")?+|' + rf"'''(?:[^'\\]|{_ESCAPED}|'(?!''))*+(?:''')?+|"
    rf'"(?:[^"\\\n\r]|{_ESCAPED})*+"?+|' + rf"'(?:[^'\\\n\r]|{_ESCAPED})*+'?+"
)
_IRI: Final = r'<(?:[^\x00-\x20<>"{}|^`\\]|\\[uU])*+>'
_CUT: Final = _IRI.removesuffix(">") + r"(?:>|\\?\Z)"
"""The beginning of an IRI that the end of a block cuts off."""
_TURTLE: Final = re.compile(rf"#[^\n\r]*+|{_STRINGS}|{_CUT}|<<|>>|>\Z|[\[({{]|[\])}}]|\\.?", re.DOTALL)
_JSON: Final = re.compile(rf'"(?:[^"\\]|{_ESCAPED})*+"?+|[\[{{]|[\]}}]|:')
_SEPARATORS: Final = (",", "[", "{")
_SEPARATED: Final = re.compile(rf'"(?:[^"\\]|{_ESCAPED})*+"?+|[,\[{{]')
_XML: Final = re.compile(
    r"<(?:(?P<end>/)|!--.*?(?:(?P<comment>-->)|\Z)|!\[CDATA\[.*?(?:(?P<cdata>\]\]>)|\Z)|"
    r"\?.*?(?:(?P<instruction>\?>)|\Z)|(?P<declaration>!)|"
    r"""(?:[^<>"'/]++|"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|/(?!>))*+(?:(?P<empty>/>)|(?P<start>>)|(?=<)|\Z))""",
    re.DOTALL,
)
"""Tokens of XML, by the group of their end; no group matches in one without an end."""
_XML_OPENERS: Final = ("<!--", "<![CDATA[", "<?")
_XML_QUOTES: Final = re.compile(r""""[^"]*+"|'[^']*+'""")
# RDF/XML reads any other value of parseType as ``Literal`` (production parseTypeOtherPropertyElt).
_LITERAL_OF_XML: Final = re.compile(r"""parseType\s*=\s*(["'])(?!Resource\1|Collection\1|Triple\1)""")
_CUT_PARSE_TYPE: Final = re.compile(r"""parseType\s*(?:=\s*(?:["'][A-Za-z]{0,10})?)?\Z""")
_CODE_POINT: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_LONGEST_IRI: Final = 64 * 2**20


def _character(match: re.Match[str]) -> str:
    code = int(match[1] or match[2], 16)
    return chr(code) if code < 0x110000 else match[0]


# RDF, JSON, XML


def check_rdf(body: str | bytes, syntax: ox.RdfFormat, bounds: TextBounds = LOCAL) -> None:
    """BoundError for RDF text nested too deeply, RDF/XML with a DTD, JSON-LD with too many contexts or values."""
    text = _decoded(body)
    if syntax in JSON_LD:
        _check_json_ld(text)
        check_values(text, bounds.values, "a document of JSON-LD", "send it in parts, or as N-Triples or Turtle")
    elif syntax == ox.RdfFormat.RDF_XML:
        check_xml(text)
    else:
        check_turtle(text)


def check_turtle(body: str | bytes) -> None:
    """BoundError for Turtle, TriG, N-Triples, N-Quads or N3 with brackets or triple terms nested too deeply."""
    text = _decoded(body)
    # Fewer brackets than the bound cannot nest deeper, and counting is far faster than the scan.
    if text.count("<<") > TRIPLE_TERMS or sum(map(text.count, "[({")) > DATA_DEPTH:
        TurtleScan().feed(text, last=True)


@dataclass(slots=True)
class TurtleScan:
    """Counts open brackets and triple terms in text that comes in blocks; ``feed`` raises BoundError.

    As in ``XmlScan``, a string or comment that the end of a block cuts is carried over in a short form. A possible IRI
    is carried over in full: if an invalid character follows, its brackets count.
    """

    brackets: int = 0
    terms: int = 0
    rest: str = ""

    def feed(self, text: str, *, last: bool) -> None:
        """Scan a block; ``last`` if no other follows."""
        text, self.rest = self.rest + text, ""
        for match in _TURTLE.finditer(text):
            # A token at the end of the block may go on in the next one, as ``<`` or the beginning of a string.
            if match.end() == len(text) and not last:
                self.rest = _shortened_turtle(match[0])
                break
            self._take(match[0], match.start())
        if len(self.rest) > _LONGEST_IRI:
            raise BoundError(f"an IRI of more than {_LONGEST_IRI} bytes: write a shorter one")

    def _take(self, part: str, position: int) -> None:
        if part in ("<<", ">>"):
            self.terms = max(0, self.terms + (1 if part == "<<" else -1))
        elif part in "[({":
            self.brackets += 1
        elif part in "])}":
            # Surplus closing brackets are errors that the parser reports; they must not make room for more opening
            # ones.
            self.brackets = max(0, self.brackets - 1)
        if self.terms > TRIPLE_TERMS:
            sentence = f"triple terms are nested more than {TRIPLE_TERMS} deep, which is not supported"
            raise BoundError(sentence, position)
        if self.brackets > DATA_DEPTH:
            sentence = f"brackets are nested more than {DATA_DEPTH} deep: give the blank nodes names instead"
            raise BoundError(sentence, position)


_SHORT_TOKEN: Final = 8
_ESCAPE_PAIR: Final = re.compile(r"\\.", re.DOTALL)
_STRING_END: Final = {quote: re.compile(rf"[^{quote}\\]?[{quote}\\]*\Z") for quote in "\"'"}
"""The last character of a string's text that is not special, and the quotes and backslash after it."""


def _shortened_turtle(token: str) -> str:
    """The short form of a token that may go on.

    Of a string its opening quotes remain, and what may be a part of the closing ones or of an escape: of ``'''a b'``,
    a long string that one quote has not ended, ``'''b'``.
    """
    if len(token) <= _SHORT_TOKEN or token[0] not in "#\"'":
        return token
    if token[0] == "#":
        return "#"
    opener = token[:3] if token.startswith(token[0] * 3) else token[0]
    end = _STRING_END[token[0]].search(_ESCAPE_PAIR.sub("e", token[len(opener) :]))
    return opener + (end[0] if end else "")


def check_json(body: str | bytes) -> None:
    """BoundError for JSON with objects and arrays nested too deeply."""
    text = _decoded(body)
    if text.count("{") + text.count("[") > DATA_DEPTH:
        for _ in _json_depths(text):
            pass


def read_json(body: str | bytes) -> Any:
    """The value of JSON text (RFC 8259) within the bounds; ValueError, which may be a BoundError."""
    check_json(body)
    try:
        value = json.loads(body, object_pairs_hook=unique_members)
        check_characters(value)
        return value
    except RecursionError as error:
        raise BoundError("objects and arrays are nested too deeply: write them flatter") from error


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members; BoundError for a name that occurs twice, of which ``json`` would keep the last."""
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise BoundError(f"the member {twice!r} occurs twice in one object: name one of the two differently")
    return members


def check_characters(value: object) -> None:
    """BoundError for a JSON value with an unpaired surrogate: pyoxigraph takes such a string for a file."""
    if wrong := no_character(json.dumps(value, ensure_ascii=False)):
        raise BoundError(wrong[0])


def _json_depths(text: str) -> Iterator[tuple[str, int]]:
    """The terminals of JSON text, each with the number of open objects and arrays after it."""
    depth = 0
    for match in _JSON.finditer(text):
        part = match[0]
        if part in "[{":
            depth += 1
        elif part in "]}":
            depth = max(0, depth - 1)
        if depth > DATA_DEPTH:
            sentence = f"objects and arrays are nested more than {DATA_DEPTH} deep: write them flatter"
            raise BoundError(sentence, match.start())
        yield part, depth


_DRAFT_KEYWORDS: Final = re.compile(r'"(@(?:annotation|triple|reifies|reifier))"\s*:')
"""Keywords of drafts of JSON-LD for RDF 1.2; a processor of JSON-LD 1.1 silently drops their values."""


_ALIAS: Final = re.compile(r'"([^"@\\][^"\\]*+)"\s*+:\s*+"@id"')
_NO_IRI: Final = re.compile(r"[\x00-\x20<>\"{}|^`\\]")
_LANGUAGE: Final = re.compile(r'"@language"\s*+:\s*+"([^"]*+)"')
_TAG: Final = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")


def _check_names(text: str) -> None:
    """BoundError for an @id that is not an IRI or a @language that is not a tag: their triples would be dropped."""
    if tag := next((match for match in _LANGUAGE.finditer(text) if match[1] and not _TAG.fullmatch(match[1])), None):
        raise BoundError(f"@language {tag[1][:40]!r} is not a language tag: write de or pt-BR", tag.start())
    keys = "|".join(map(re.escape, ("@id", *dict.fromkeys(_ALIAS.findall(text)))))
    for match in re.finditer(rf'"(?:{keys})"\s*+:\s*+("(?:[^"\\]|\\.)*+")', text):
        if not _NO_IRI.search(match[1], 1, len(match[1]) - 1):
            continue
        try:
            name = json.loads(match[1], strict=False)
        except ValueError:  # the parser names the place
            continue
        if sign := _NO_IRI.search(name):
            shown = name.encode("latin-1", "replace").decode("utf-8", "replace")[:120]
            what = f"{shown!r} is not an IRI, as it has {sign[0]!r} in it: write %{ord(sign[0]):02X}"
            raise BoundError(f"@id {what}", match.start())


def _check_json_ld(text: str) -> None:
    """BoundError for JSON-LD nested too deeply, with contexts that copy too many terms, or whose values get lost."""
    # Escapes could hide the keyword @context from the scan below.
    if "\\u" in text:
        text = _CODE_POINT.sub(_plain_character, text)
    check_json(text)
    if keyword := _DRAFT_KEYWORDS.search(text):
        what = "is of a draft of JSON-LD for RDF 1.2: write triple terms in Turtle, TriG, N-Triples or N-Quads"
        raise BoundError(f"{keyword[1]} {what}", keyword.start())
    _check_names(text)
    # A single context copies nothing.
    if text.count("@context") > 1:
        contexts = _Contexts()
        for part, depth in _json_depths(text):
            contexts.take(part, depth)


def check_values(text: str, limit: int, what: str, remedy: str) -> None:
    """BoundError for too many values: members of objects and items of arrays, counted by their separators."""
    if sum(map(text.count, ",[{")) <= limit:
        return
    count = 0
    for match in _SEPARATED.finditer(text):
        # A bracket counts as one, for the first value in it, and each comma as one more; strings are skipped as whole
        # tokens.
        count += match[0] in _SEPARATORS
        if count > limit:
            raise BoundError(f"{what} has more than {limit} values: {remedy}", match.start())


def _plain_character(match: re.Match[str]) -> str:
    """Decode an escaped letter, digit or @; other escapes stay, as quotes and backslashes must."""
    character = _character(match)
    return character if character == "@" or (character.isascii() and character.isalnum()) else match[0]


@dataclass(slots=True)
class _Contexts:
    """Counts copied terms: a context copies the outer ones, and a term's own context does so at each use.

    ``sizes`` are the terms in the contexts of each open object, ``inside`` is the depth of the current context.
    """

    sizes: list[int] = field(default_factory=lambda: [0] * (DATA_DEPTH + 2))
    inside: int | None = None
    key: str = ""
    scoped: bool = False
    copied: int = 0

    def take(self, part: str, depth: int) -> None:
        """Count a terminal; BoundError."""
        if part[0] == '"':
            self.key = part
            return
        if part == ":":
            self._name(depth)
        elif part in "[{":
            self._begin(depth)
        elif self.inside is not None and depth <= self.inside:
            self.inside = None
        self.key = ""
        if self.copied > CONTEXT_TERMS:
            raise BoundError("contexts are nested too deep: use one context, or Turtle")

    def _name(self, depth: int) -> None:
        if self.inside is not None:
            self.sizes[self.inside] += 1
            self.scoped = self.scoped or self.key == '"@context"'
        elif self.key == '"@context"':
            self.inside = depth
            self.copied += self.sizes[depth]

    def _begin(self, depth: int) -> None:
        if self.inside is None:
            self.sizes[depth] = self.sizes[depth - 1]
            self.copied += self.sizes[depth] if self.scoped else 0


def check_xml(body: str | bytes) -> None:
    """BoundError for XML with a DTD, in another encoding than UTF-8, or with elements nested too deeply."""
    XmlScan().feed(_decoded(body), last=True)


@dataclass(slots=True)
class XmlScan:
    """Counts open elements in XML that comes in blocks; ``feed`` raises BoundError as ``check_xml`` does.

    A token that the end of a block cuts is carried over in a short form that means the same to the scan, so its length
    costs neither memory nor a second look: of ``<t:a t:b="x > y``, an element whose attribute is open, ``<a"`` remains.
    """

    depth: int = 0
    literals: bool = False
    """Whether elements whose content is a literal of RDF/XML have begun."""
    rest: str = ""
    head: str = ""
    parse_type: str = ""
    """The end of the last block that may be the beginning of ``parseType="Literal"``."""

    def feed(self, text: str, *, last: bool) -> None:
        """Scan a block; ``last`` if no other follows."""
        if len(self.head) < _XML_HEAD:
            self._check_encoding(text)
        if not self.literals:
            self._find_literals(self.parse_type + text, last=last)
        text, self.rest = self.rest + text, ""
        for match in _XML.finditer(text):
            kind = match.lastgroup
            if kind == "end":
                self.depth = max(0, self.depth - 1)
            elif kind == "start":
                self._open(match.start())
            elif kind == "declaration" or kind is None:
                if not last and _is_cut(match):
                    self.rest = _shortened(text[match.start() :])
                    break
                self._take_unended(match)

    def _take_unended(self, match: re.Match[str]) -> None:
        # Entities can refer to each other: a few lines expand to GB ("billion laughs"), and external ones read files.
        if match.lastgroup == "declaration":
            raise BoundError("XML with a DTD (<!DOCTYPE, <!ENTITY) is refused: expand its entities", match.start())
        # A tag without an end may still open an element, if only for a parser that goes on after errors.
        if match[0][1:2] not in ("!", "?"):
            self._open(match.start())

    def _open(self, position: int) -> None:
        self.depth += 1
        if self.depth > DATA_DEPTH:
            sentence = f"elements are nested more than {DATA_DEPTH} deep: give the blank nodes names instead"
            raise BoundError(sentence, position)

    def _find_literals(self, text: str, *, last: bool) -> None:
        cut = None if last else _CUT_PARSE_TYPE.search(text)
        self.literals = _LITERAL_OF_XML.search(text, 0, cut.start() if cut else len(text)) is not None
        # Blanks are equal to one, so that their number costs nothing.
        self.parse_type = re.sub(r"\s+", " ", cut[0]) if cut else text[1 - len("parseType") :]

    def _check_encoding(self, text: str) -> None:
        self.head = (self.head + text)[:_XML_HEAD]
        # In UTF-16 and the like the scan would see no tags.
        if "\0" in self.head or self.head[:2] in ("\xff\xfe", "\xfe\xff") or _other_encoding(self.head):
            raise BoundError("XML is read in UTF-8 only: convert it")


def _is_cut(match: re.Match[str]) -> bool:
    """Whether a token without an end may go on in the next block."""
    if match.lastgroup == "declaration":
        # Neither a comment nor CDATA so far, but it may become one.
        return any(opener.startswith(match.string[match.start() :]) for opener in _XML_OPENERS)
    return match.end() == len(match.string)


def _shortened(token: str) -> str:
    """The short form of a token without its end."""
    for opener in _XML_OPENERS:
        if opener.startswith(token):
            return token
        if token.startswith(opener):
            # The last two characters may begin the end, as in ``--`` of ``-->``.
            return opener + token[len(opener) :][-2:]
    quote = re.search("[\"']", _XML_QUOTES.sub("", token))
    return f"<a{quote[0] if quote else '/' if token.endswith('/') else ''}"


_XML_HEAD: Final = 200


def _other_encoding(head: str) -> bool:
    match = re.search(r"""<\?xml[^>]*?encoding\s*=\s*["']([^"']*)""", head)
    return match is not None and match[1].lower() not in ("utf-8", "utf8", "us-ascii")


def check_results(body: str | bytes, form: ox.QueryResultsFormat) -> None:
    """BoundError for SPARQL results in JSON or XML nested too deeply."""
    checks: Mapping[ox.QueryResultsFormat, Callable[[str | bytes], None]] = {
        ox.QueryResultsFormat.JSON: check_json,
        ox.QueryResultsFormat.XML: check_xml,
    }
    checks.get(form, check_turtle)(body)


def _decoded(body: str | bytes) -> str:
    """Text unchanged, bytes as Latin-1: all tokens that the scans look for are ASCII."""
    return body.decode("latin-1") if isinstance(body, bytes) else body


# Unpaired surrogates: a Python string may contain them, but UTF-8 cannot encode them. Escapes of JSON and SPARQL can
# name one; pyoxigraph takes a string with one for an open file. SPARQL's can also exceed the last code point.
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})))")
_LAST: Final = 0x10FFFF


def no_character(text: str, *, escaped: bool = False) -> tuple[str, int] | None:
    r"""The sentence about the first invalid character and its position; ``None`` if all are valid.

    ``escaped``: also those of escapes ``\uXXXX`` and ``\UXXXXXXXX`` (SPARQL 1.1 Query, 19.2).
    """
    if not text.isascii() and (half := _SURROGATE.search(text)):
        return _no_text(half[0]), half.start()
    if escaped and ("\\u" in text or "\\U" in text):
        for match in _ESCAPE.finditer(text):
            code = int(match[2] or match[3], 16)
            if code > _LAST or 0xD800 <= code <= 0xDFFF:
                return _no_text(match[1]), match.start(1)
    return None


def _no_text(what: str) -> str:
    return f"{what!a} is half of a surrogate pair or beyond the last code point: UTF-8 cannot encode it"
