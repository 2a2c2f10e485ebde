"""Terms, variables and bindings as the addresses of pages have them.

Terms are written as in Triple Pattern Fragments, 4.2, and Quad Pattern Fragments, 3; N-Triples terms are accepted too.
Bindings restrict a fragment: ``values=(?x ?y) { (<a> "b") (UNDEF <c>) }`` (Hartig, Buil-Aranda, ODBASE 2016), in the
syntax of SPARQL's VALUES; a row that is too short leaves its last variables unbound. Blank nodes are replaced by IRIs
in addresses and on pages, so that they can be used outside their document (RDF 1.1 Concepts, 3.5: skolemisation).
"""

import re
from collections.abc import Iterator
from typing import Final, TypeAlias, TypeVar

import pyoxigraph as ox

from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import Term, by_parts, triple_end, with_blank_nodes
from streamgauge.servers.fragments import DEFAULT, DEFAULT_IRI

ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>\"{}|^`\\]*")
_VARIABLE = re.compile(r"[?$](\w+)")
_LITERAL_FORM = re.compile(
    r'"(?P<text>.*)"(?:@(?P<tag>[A-Za-z]+(?:-[A-Za-z0-9]+)*)(?:--(?P<way>ltr|rtl))?'
    r'|\^\^(?P<open><)?(?P<type>[^<>"]+)(?(open)>))?',
    re.DOTALL,
)
_WAYS: Final = {"ltr": ox.BaseDirection.LTR, "rtl": ox.BaseDirection.RTL, None: None}

_FORMS = 'write <IRI>, IRI, "text", "text"@en, "text"^^IRI, ?variable or nothing'


class TermError(ValueError):
    """A text that is not a term; the sentence says how terms are written."""


def read_node(text: str) -> Node | None:
    """The term or variable that a text denotes, ``None`` for an empty text; TermError."""
    if text == "":
        return None
    if text[0] in "?$":
        return _variable(text)
    if text[0] == '"':
        return _literal(text)
    if text.startswith("<<"):
        return _triple(text)
    if text.startswith("_:"):
        raise TermError(f"{text:.80}: a blank node has no name outside its document: write ?variable, or its genid IRI")
    return _iri(text)


def read_graph(text: str) -> Node | None:
    """The term or variable in the graph's place; ``@default`` and ``sd:defaultGraph`` denote the default graph."""
    if text == "@default":
        return DEFAULT
    node = read_node(text)
    if isinstance(node, str) and not node.startswith("<"):
        raise TermError(f"{text:.80}: a graph is an IRI: {_FORMS}")
    return DEFAULT if node == DEFAULT_IRI else node


def canonical_term(text: Term) -> Term:
    """The canonical form of an N-Triples term; TermError."""
    try:
        return to_term(parse_term(text))
    except ValueError as error:
        raise TermError(str(error)) from error


def _variable(text: str) -> Var:
    match = _VARIABLE.fullmatch(text)
    if match is None:
        raise TermError(f"{text:.80}: a variable is ? and letters, digits or _")
    return Var(match[1])


def _iri(text: str) -> Term:
    bare = text[1:-1] if text.startswith("<") and text.endswith(">") else text
    if not ABSOLUTE.fullmatch(bare):
        raise TermError(f"{text:.80}: not an absolute IRI: {_FORMS}")
    return f"<{bare}>"


def _literal(text: str) -> Term:
    match = _LITERAL_FORM.fullmatch(text)
    if match is None:
        raise TermError(f"{text:.80}: not a literal: {_FORMS}")
    if match["type"] and not ABSOLUTE.fullmatch(match["type"]):
        raise TermError(f"{match['type']:.80}: not an absolute IRI, as a datatype is")
    try:
        return to_term(_matched_literal(match))
    except ValueError as error:
        raise TermError(f"{text:.80}: {error}") from error


def _matched_literal(match: re.Match[str]) -> ox.Literal:
    if match["type"]:
        return ox.Literal(match["text"], datatype=ox.NamedNode(match["type"]))
    return ox.Literal(match["text"], language=match["tag"], direction=_WAYS[match["way"]])


def _triple(text: str) -> Term:
    try:
        return canonical_term(text)
    except TermError as error:
        raise TermError(f"{text:.80}: not a triple term: write <<( subject predicate object )>>") from error


BindingRow: TypeAlias = dict[Var, Term]
"""The terms of one row of bindings by their variables."""

MAX_BINDINGS: Final = 64
"""Rows in one request (maxMpR in the paper, which has 30); Comunica sends up to 64."""

_TOKEN = re.compile(
    r"\s*(?:(?P<sign>[(){}])|(?P<unbound>UNDEF\b)|[?$](?P<name>\w+)"
    r'|(?P<term><<\(|<[^<>\s]*>|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9\-]+|\^\^<[^<>\s]*>)?))',
    re.DOTALL,
)

Token: TypeAlias = tuple[str, str]
"""Kind (``sign``, ``unbound``, ``name`` or ``term``) and text."""


class BindingsError(ValueError):
    """Bindings that cannot be read; the sentence says what they look like."""


def read_bindings(text: str) -> list[BindingRow]:
    """The rows, at most ``MAX_BINDINGS``; BindingsError or TermError say what is wrong."""
    tokens = _tokens(text)
    names = _names(tokens)
    rows = list(_rows(tokens, names))
    if next(tokens, None) is not None:
        raise BindingsError("values: nothing may follow the last }")
    if len(rows) > MAX_BINDINGS:
        raise BindingsError(f"values: {len(rows)} rows, {MAX_BINDINGS} at most: ask in several requests")
    return rows


def _tokens(text: str) -> Iterator[Token]:
    at, text = 0, text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise BindingsError(f"values: not understood at {text[at : at + 40]!r}: write (?x ?y) {{ (<a> UNDEF) }}")
        kind = match.lastgroup
        begin, at = match.start(kind), match.end()
        if text[begin:at] == "<<(":
            at = triple_end(text, begin)
            if at < 0:
                raise BindingsError(f"values: the triple term has no end: {text[begin : begin + 40]!r}")
        yield kind, text[begin:at]


def _names(tokens: Iterator[Token]) -> list[Var]:
    _expect(tokens, "(")
    names: list[Var] = []
    for kind, text in tokens:
        if text == ")" and kind == "sign":
            return names
        if kind != "name":
            raise BindingsError(f"values: {text[:40]!r} among the variables: write (?x ?y) {{ ... }}")
        names.append(Var(text))
    raise BindingsError("values: the variables have no end: write (?x ?y) { ... }")


def _rows(tokens: Iterator[Token], names: list[Var]) -> Iterator[BindingRow]:
    _expect(tokens, "{")
    for token in tokens:
        if token == ("sign", "}"):
            return
        if token != ("sign", "("):
            raise BindingsError(f"values: {token[1][:40]!r} where a row begins: write ( and its terms")
        yield _row(tokens, names)
    raise BindingsError("values: the rows have no end: write } after the last")


def _row(tokens: Iterator[Token], names: list[Var]) -> BindingRow:
    row: BindingRow = {}
    for number, (kind, text) in enumerate(tokens):
        if (kind, text) == ("sign", ")"):
            return row
        if kind not in ("term", "unbound"):
            raise BindingsError(f"values: {text[:40]!r} in a row: write terms as N-Triples does, or UNDEF")
        if number >= len(names):
            raise BindingsError(f"values: a row has more terms than the {len(names)} variables")
        if kind == "term":
            row[names[number]] = canonical_term(text)
    raise BindingsError("values: a row has no end: write ) after it")


def _expect(tokens: Iterator[Token], sign: str) -> None:
    if next(tokens, None) != ("sign", sign):
        raise BindingsError(f"values: {sign} is missing: write (?x ?y) {{ (<a> <b>) }}")


GENID = "/.well-known/genid/"

Placed = TypeVar("Placed")


def skolemised(term: Term, base: str) -> Term:
    """The term with an IRI below ``base`` in place of each blank node, also within triple terms."""
    return with_blank_nodes(term, lambda blank: f"<{base}{GENID}{blank[2:]}>")


def unskolemised(node: Placed, base: str) -> Placed | Term:
    """The inverse of ``skolemised``; anything else is returned unchanged."""
    start = f"<{base}{GENID}"

    def blank(term: Term) -> Term:
        name = term[len(start) : -1]
        return f"_:{name}" if term.startswith(start) and name.isalnum() else term

    return by_parts(node, blank) if isinstance(node, str) and start in node else node
