"""Parsing the address of a page into terms, bindings and a selection of quads.

Terms are written as in Triple Pattern Fragments, 4.2, and Quad Pattern Fragments, 3; N-Triples terms are accepted too.
Bindings restrict a fragment: ``values=(?x ?y) { (<a> "b") (UNDEF <c>) }`` (Hartig, Buil-Aranda, ODBASE 2016), in the
syntax of SPARQL's VALUES; a row that is too short leaves its last variables unbound. Blank nodes are replaced by IRIs
in addresses and on pages, so that they can be used outside their document (RDF 1.1 Concepts, 3.5: skolemisation).
"""

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import chain, combinations, product
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote_from_bytes, unquote_to_bytes

import pyoxigraph as ox
from starlette.types import Scope

from streamgauge.formats.canonical import parse_term, to_term
from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import Term, by_parts, triple_end, with_blank_nodes
from streamgauge.servers.fragments import DEFAULT, DEFAULT_IRI, Match, Quad

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>\"{}|^`\\]*")
_VARIABLE = re.compile(r"[?$](\w+)")
_LITERAL_FORM = re.compile(
    r'"(?P<text>.*)"(?:@(?P<tag>[A-Za-z]+(?:-[A-Za-z0-9]+)*)(?:--(?P<way>ltr|rtl))?'
    r'|\^\^(?P<open><)?(?P<type>[^<>"]+)(?(open)>))?',
    re.DOTALL,
)
_WAYS: Final = {"ltr": ox.BaseDirection.LTR, "rtl": ox.BaseDirection.RTL, None: None}

SHORT: Final = 300
"""Bytes up to which a parsed term is cached."""

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
    if not _ABSOLUTE.fullmatch(bare):
        raise TermError(f"{text:.80}: not an absolute IRI: {_FORMS}")
    return f"<{bare}>"


def _literal(text: str) -> Term:
    match = _LITERAL_FORM.fullmatch(text)
    if match is None:
        raise TermError(f"{text:.80}: not a literal: {_FORMS}")
    if match["type"] and not _ABSOLUTE.fullmatch(match["type"]):
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


EqualPlaces: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of places (0 subject .. 3 graph) that must have the same term."""

RequestedNodes: TypeAlias = tuple[Node | None, Node | None, Node | None, Node | None]
"""The nodes in the four places of a request; ``None`` for an empty place."""


class Branch(NamedTuple):
    """Quads of a match that have the same term in each pair of places of ``same``."""

    match: Match
    same: EqualPlaces = ()

    def takes(self, quad: Quad) -> bool:
        """Whether the branch selects a quad."""
        return fits(quad, self.match) and all(quad[one] == quad[other] for one, other in self.same)


class Selection(NamedTuple):
    """The union of branches; ``plain`` if they are disjoint and without ``same``, so that matches can be counted."""

    branches: tuple[Branch, ...]
    plain: bool = True

    def takes(self, quad: Quad) -> bool:
        """Whether the quad is selected."""
        return any(branch.takes(quad) for branch in self.branches)

    @property
    def matches(self) -> tuple[Match, ...]:
        """Matches that together contain all selected quads."""
        if len(self.branches) == 1:
            return (self.branches[0].match,)
        return tuple(dict.fromkeys(branch.match for branch in self.branches))


def select(wanted: RequestedNodes, rows: Sequence[BindingRow] | None = None) -> Selection:
    """The selection of a pattern; with ``rows`` only quads that are compatible with one of them.

    For ``?x <p> ?y`` the rows (x=<a>) and (x=<a>, y=<b>) give the branches (<a>, <p>, ?) and (<a>, <p>, <b>), of which
    the second is within the first and dropped. Branches that overlap otherwise make the selection not ``plain``.
    """
    if rows is None:
        s, p, o, g = wanted
        if not (type(s) is Var or type(p) is Var or type(o) is Var or type(g) is Var):
            return Selection((Branch((s, p, o, g)),))  # type: ignore[arg-type]
        branch = _branch(wanted)
        return Selection((branch,), not branch.same)
    branches = list(dict.fromkeys(_branch(wanted, row) for row in rows))
    # Distinct branches that bind the same places are disjoint: no pairwise comparison is needed.
    if len({tuple(term is None for term in branch.match) for branch in branches}) == 1 and not branches[0].same:
        return Selection(tuple(branches))
    least = [one for one in branches if not any(_within(one, other) for other in branches if other != one)]
    overlap = any(_overlap(one.match, other.match) for one, other in combinations(least, 2))
    return Selection(tuple(least), not overlap and not any(branch.same for branch in least))


def fits(quad: Quad, match: Match) -> bool:
    """Whether a match selects a quad."""
    return all(wanted is None or wanted == term for term, wanted in zip(quad, match, strict=True))


def matches_of(quads: Iterable[Quad]) -> set[Match]:
    """All matches that select one of the quads: sixteen per quad, each place bound or not."""
    selections = (product((s, None), (p, None), (o, None), (g, None)) for s, p, o, g in quads)
    return set(chain.from_iterable(selections))


SWEEP: Final = 2_000
"""Quads of a change above which all selections count as touched: computing 16 matches per quad would cost more."""

Item = TypeVar("Item", bound=Hashable)


class SelectionIndex(Generic[Item]):
    """Items by the matches of their selections; a change finds those it affects by sixteen lookups per quad."""

    def __init__(self) -> None:
        self._by_match: dict[Match, set[Item]] = {}

    def put(self, item: Item, selection: Selection) -> None:
        """Add an item under all matches of its selection."""
        for match in selection.matches:
            self._by_match.setdefault(match, set()).add(item)

    def drop(self, item: Item, selection: Selection) -> None:
        """Remove an item that was added with this selection."""
        for match in selection.matches:
            items = self._by_match[match]
            items.discard(item)
            if not items:
                del self._by_match[match]

    def touched(self, quads: Sequence[Quad]) -> set[Item]:
        """The items whose selections may contain one of the quads."""
        if len(quads) > SWEEP:
            return set[Item]().union(*self._by_match.values())
        return self.of(matches_of(quads) if self._by_match else ())

    def of(self, matches: Collection[Match]) -> set[Item]:
        """The items that are indexed under one of the matches."""
        return set[Item]().union(*[self._by_match[match] for match in matches if match in self._by_match])


def _branch(wanted: RequestedNodes, row: BindingRow | None = None) -> Branch:
    nodes = wanted if row is None else [row.get(node, node) if isinstance(node, Var) else node for node in wanted]
    subject, predicate, object_, graph = [None if isinstance(node, Var) else node for node in nodes]
    free = sum([isinstance(node, Var) for node in nodes])
    return Branch((subject, predicate, object_, graph), _same(nodes) if free > 1 else ())


def _same(nodes: Sequence[Node | None]) -> EqualPlaces:
    """The pairs of places with the same variable."""
    named = [(place, node) for place, node in enumerate(nodes) if isinstance(node, Var)]
    return tuple((one, other) for (one, this), (other, that) in combinations(named, 2) if this == that)


def _within(one: Branch, other: Branch) -> bool:
    """Whether ``other`` selects everything that ``one`` selects."""
    wider = all(wide is None or wide == narrow for narrow, wide in zip(one.match, other.match, strict=True))
    return wider and all(
        pair in one.same or (one.match[pair[0]] is not None and one.match[pair[0]] == one.match[pair[1]])
        for pair in other.same
    )


def _overlap(one: Match, other: Match) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


_PATH = "/.well-known/genid/"

Placed = TypeVar("Placed")


def skolemised(term: Term, base: str) -> Term:
    """The term with an IRI below ``base`` in place of each blank node, also within triple terms."""
    return with_blank_nodes(term, lambda blank: f"<{base}{_PATH}{blank[2:]}>")


def unskolemised(node: Placed, base: str) -> Placed | Term:
    """The inverse of ``skolemised``; anything else is returned unchanged."""
    start = f"<{base}{_PATH}"

    def blank(term: Term) -> Term:
        name = term[len(start) : -1]
        return f"_:{name}" if term.startswith(start) and name.isalnum() else term

    return by_parts(node, blank) if isinstance(node, str) and start in node else node


class FragmentShape(StrEnum):
    """The interface of a data set's fragments."""

    TRIPLES = "triples"  # Triple Pattern Fragments of the default graph
    QUADS = "quads"  # Quad Pattern Fragments

    __hash__ = str.__hash__


PLACES: Final = {
    FragmentShape.QUADS: ("subject", "predicate", "object", "graph"),
    FragmentShape.TRIPLES: ("subject", "predicate", "object"),
}
"""The names of a form's places by interface."""

LAST_PAGE: Final = 10**7
"""The largest page number that can be requested."""

_PLACE_NAMES: Final = {name.encode(): name for name in PLACES[FragmentShape.QUADS]}
_KNOWN: Final = {shape: (*names, "page", "values", "limit") for shape, names in PLACES.items()}
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_SAFE = "!$%&'()*+,-./:;=?@[]_~"
"""Characters that stay in an IRI made of an address; all others are percent-encoded."""
_PLAIN = re.compile(rb"[A-Za-z0-9!$%&'()*+,\-./:;=?@\[\]_~]*")


class FragmentRequestError(ValueError):
    """An invalid address of a page; the sentence says what to write."""


class FragmentRequest(NamedTuple):
    """A requested page: its nodes by place, its selection and number, and the addresses of ``fragment`` and ``page``.

    Addresses begin with the path. ``limit`` is the requested number of quads, if any.
    """

    wanted: RequestedNodes
    selection: Selection
    number: int
    fragment: str
    page: str
    limit: int | None = None

    def at(self, number: int) -> str:
        """The address of another page of the fragment."""
        return f"{self.fragment}{'&' if '?' in self.fragment else '?'}page={number}"


def read_fragment_request(path: bytes, query: bytes, shape: FragmentShape, base: str, largest: int) -> FragmentRequest:
    """The request of ``path?query`` below ``base``, for at most ``largest`` quads; FragmentRequestError."""
    parameters = _parameters(query, shape)
    try:
        wanted = _requested(parameters, shape, base)
        rows = read_bindings(_text(parameters["values"])) if parameters.get("values") else None
    except (TermError, BindingsError) as error:
        raise FragmentRequestError(str(error)) from error
    local = rows and [{variable: unskolemised(term, base) for variable, term in row.items()} for row in rows]
    chosen, page = select(wanted, local), _address(path, query)
    limit = _number("limit", parameters["limit"], largest) if "limit" in parameters else None
    if "page" not in parameters:
        return FragmentRequest(wanted, chosen, 1, page, page, limit)
    rest = b"&".join(part for part in query.split(b"&") if not part.startswith(b"page="))
    return FragmentRequest(
        wanted, chosen, _number("page", parameters["page"], LAST_PAGE), _address(path, rest), page, limit
    )


def raw_path(scope: Scope) -> bytes:
    """The path of a request as the client sent it, percent-encoded."""
    raw: bytes | None = scope.get("raw_path")
    return raw or str(scope["path"]).encode()


def _parameters(query: bytes, shape: FragmentShape) -> dict[str, bytes]:
    """The value of each parameter, still percent-encoded."""
    parameters, known = dict[str, bytes](), _KNOWN[shape]
    for part in query.split(b"&") if query else ():
        raw, _, value = part.partition(b"=")
        name = _PLACE_NAMES.get(raw) or _text(raw)
        if name not in known:
            raise FragmentRequestError(f"{name:.40}: not a parameter of this form, which has {', '.join(known)}")
        if name in parameters:
            raise FragmentRequestError(f"{name} is given twice: give it once")
        parameters[name] = value
    return parameters


def _requested(parameters: dict[str, bytes], shape: FragmentShape, base: str) -> RequestedNodes:
    nodes = [_node(name, parameters[name]) if name in parameters else None for name in PLACES[shape]]
    for node in nodes:
        if type(node) is str and _PATH in node:
            nodes = [unskolemised(node, base) for node in nodes]
            break
    subject, predicate, object_ = nodes[:3]
    return subject, predicate, object_, nodes[3] if shape is FragmentShape.QUADS else DEFAULT


def _node(name: str, raw: bytes) -> Node | None:
    return _short_node(name, raw) if name in _FEW and len(raw) <= SHORT else _any_node(name, raw)


def _any_node(name: str, raw: bytes) -> Node | None:
    text = _text(raw)
    if name != "graph" and _ABSOLUTE.fullmatch(text):
        return f"<{text}>"
    try:
        return read_graph(text) if name == "graph" else read_node(text)
    except TermError as error:
        raise TermError(f"{name}: {error}") from error


def _number(name: str, raw: bytes, limit: int) -> int:
    text = _text(raw)
    if not _NUMBER.fullmatch(text) or int(text) > limit:
        raise FragmentRequestError(f"{name}: {text!r:.20} is not a number from 1 to {limit}: write one")
    return int(text)


def _text(raw: bytes) -> str:
    """The decoded text of a part of a query; the encodings of ``/``, ``:`` and ``#``, often the only ones, are fast."""
    if raw.isalnum():
        return raw.decode()
    plain = raw.replace(b"%2F", b"/").replace(b"%3A", b":").replace(b"%23", b"#")
    if b"%" not in plain and b"+" not in plain and plain.isascii():
        return plain.decode()
    try:
        return (unquote_to_bytes(raw.replace(b"+", b" ")) if raw.isascii() else raw).decode()
    except UnicodeDecodeError as error:
        raise FragmentRequestError("the address is not UTF-8 in percent signs") from error


def _address(path: bytes, query: bytes) -> str:
    whole = path + b"?" + query if query else path
    return whole.decode("ascii") if is_plain(whole) else quote_from_bytes(whole, safe=_SAFE)


def is_plain(target: bytes) -> bool:
    """Whether an address consists of characters that need no encoding in an IRI."""
    return _PLAIN.fullmatch(target) is not None


_FEW: Final = ("predicate", "graph")
"""Places in which the same few terms recur across requests, so that caching them pays."""

_short_node = lru_cache(maxsize=20_000)(_any_node)
