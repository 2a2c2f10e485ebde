"""The request for a page: its address taken apart into terms, bindings and a selection of quads.

Terms are written as in Triple Pattern Fragments, 4.2, and Quad Pattern Fragments, 3; N-Triples terms are taken too.
Bindings restrict a fragment: ``values=(?x ?y) { (<a> "b") (UNDEF <c>) }`` (Hartig, Buil-Aranda, ODBASE 2016), in the
syntax of SPARQL's VALUES; a row that is too short leaves its last variables unbound. Blank nodes are IRIs in addresses
and on pages, so that they hold outside their document (RDF 1.1 Concepts, 3.5: skolemisation).
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
"""Characters up to which what was read is remembered."""

_FORMS = 'write <IRI>, IRI, "text", "text"@en, "text"^^IRI, ?variable or nothing'


class TermError(ValueError):
    """Text that is no term; the sentence says how a term is written."""


def read_node(text: str) -> Node | None:
    """The term or variable of a place; ``None`` for an empty one. TermError for anything else."""
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
    """The term or variable of a graph's place, where the default graph has a name."""
    if text == "@default":
        return DEFAULT
    node = read_node(text)
    if isinstance(node, str) and not node.startswith("<"):
        raise TermError(f"{text:.80}: a graph is an IRI: {_FORMS}")
    return DEFAULT if node == DEFAULT_IRI else node


def canonical_term(text: Term) -> Term:
    """The canonical form of an N-Triples term; TermError for what is none."""
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
        return to_term(_made(match))
    except ValueError as error:
        raise TermError(f"{text:.80}: {error}") from error


def _made(match: re.Match[str]) -> ox.Literal:
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

MOST_BINDINGS: Final = 64
"""Rows in one request (the paper's maxMpR, 30 there); Comunica sends as many."""

_TOKEN = re.compile(
    r"\s*(?:(?P<sign>[(){}])|(?P<unbound>UNDEF\b)|[?$](?P<name>\w+)"
    r'|(?P<term><<\(|<[^<>\s]*>|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9\-]+|\^\^<[^<>\s]*>)?))',
    re.DOTALL,
)

Token: TypeAlias = tuple[str, str]
"""(sign, unbound, name or term; its text)."""


class BindingsError(ValueError):
    """Bindings that cannot be read; the sentence says what they look like."""


def read_bindings(text: str) -> list[BindingRow]:
    """The rows, at most ``MOST_BINDINGS``; BindingsError or TermError say what is wrong."""
    tokens = _tokens(text)
    names = _names(tokens)
    rows = list(_rows(tokens, names))
    if next(tokens, None) is not None:
        raise BindingsError("values: nothing may follow the last }")
    if len(rows) > MOST_BINDINGS:
        raise BindingsError(f"values: {len(rows)} rows, {MOST_BINDINGS} at most: ask in several requests")
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
"""Pairs of places (0 subject .. 3 graph) that hold the same term."""

RequestedNodes: TypeAlias = tuple[Node | None, Node | None, Node | None, Node | None]
"""The nodes in the places of a request; ``None`` for an empty place."""


class Branch(NamedTuple):
    """Quads of a match that hold the same term in each pair of ``same``."""

    match: Match
    same: EqualPlaces = ()

    def takes(self, quad: Quad) -> bool:
        """Whether a quad is one of them."""
        return fits(quad, self.match) and all(quad[one] == quad[other] for one, other in self.same)


class Selection(NamedTuple):
    """Quads of any of the branches; ``plain`` where each branch is a match and no quad is one of two."""

    branches: tuple[Branch, ...]
    plain: bool = True

    def takes(self, quad: Quad) -> bool:
        """Whether the quad is selected."""
        return any(branch.takes(quad) for branch in self.branches)

    @property
    def matches(self) -> tuple[Match, ...]:
        """The matches that all that is selected is among."""
        if len(self.branches) == 1:
            return (self.branches[0].match,)
        return tuple(dict.fromkeys(branch.match for branch in self.branches))


def select(wanted: RequestedNodes, rows: Sequence[BindingRow] | None = None) -> Selection:
    """The selection of a pattern, restricted to quads that are compatible with one of ``rows`` where there are any."""
    if rows is None:
        s, p, o, g = wanted
        if not (type(s) is Var or type(p) is Var or type(o) is Var or type(g) is Var):
            return Selection((Branch((s, p, o, g)),))  # type: ignore[arg-type]
        branch = _branch(wanted)
        return Selection((branch,), not branch.same)
    branches = list(dict.fromkeys(_branch(wanted, row) for row in rows))
    if len({tuple(term is None for term in branch.match) for branch in branches}) == 1 and not branches[0].same:
        return Selection(tuple(branches))
    least = [one for one in branches if not any(_within(one, other) for other in branches if other != one)]
    overlap = any(_overlap(one.match, other.match) for one, other in combinations(least, 2))
    return Selection(tuple(least), not overlap and not any(branch.same for branch in least))


def fits(quad: Quad, match: Match) -> bool:
    """Whether a quad is one of a match."""
    return all(wanted is None or wanted == term for term, wanted in zip(quad, match, strict=True))


def matches_of(quads: Iterable[Quad]) -> set[Match]:
    """The matches that select some of the quads, sixteen for each."""
    selections = (product((s, None), (p, None), (o, None), (g, None)) for s, p, o, g in quads)
    return set(chain.from_iterable(selections))


SWEEP: Final = 2_000
"""Quads in a change beyond which all selections count as touched, as looking for those it touches takes longer."""

Item = TypeVar("Item", bound=Hashable)


class SelectionIndex(Generic[Item]):
    """Items by the matches of their selections, to find those that a change touches."""

    def __init__(self) -> None:
        self._by_match: dict[Match, set[Item]] = {}

    def put(self, item: Item, selection: Selection) -> None:
        """Add an item."""
        for match in selection.matches:
            self._by_match.setdefault(match, set()).add(item)

    def drop(self, item: Item, selection: Selection) -> None:
        """Remove an item."""
        for match in selection.matches:
            items = self._by_match[match]
            items.discard(item)
            if not items:
                del self._by_match[match]

    def touched(self, quads: Sequence[Quad]) -> set[Item]:
        """The items whose selections some of the quads may be in."""
        if len(quads) > SWEEP:
            return set[Item]().union(*self._by_match.values())
        return self.of(matches_of(quads) if self._by_match else ())

    def of(self, matches: Collection[Match]) -> set[Item]:
        """The items whose selections have one of the matches."""
        return set[Item]().union(*[self._by_match[match] for match in matches if match in self._by_match])


def _branch(wanted: RequestedNodes, row: BindingRow | None = None) -> Branch:
    nodes = wanted if row is None else [row.get(node, node) if isinstance(node, Var) else node for node in wanted]
    subject, predicate, object_, graph = [None if isinstance(node, Var) else node for node in nodes]
    free = sum([isinstance(node, Var) for node in nodes])
    return Branch((subject, predicate, object_, graph), _same(nodes) if free > 1 else ())


def _same(nodes: Sequence[Node | None]) -> EqualPlaces:
    """The places of variables that are there more than once."""
    named = [(place, node) for place, node in enumerate(nodes) if isinstance(node, Var)]
    return tuple((one, other) for (one, this), (other, that) in combinations(named, 2) if this == that)


def _within(one: Branch, other: Branch) -> bool:
    """Whether all that one selects the other does."""
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
    """The term with an IRI below ``base`` for each blank node, those in a triple term too."""
    return with_blank_nodes(term, lambda blank: f"<{base}{_PATH}{blank[2:]}>")


def unskolemised(node: Placed, base: str) -> Placed | Term:
    """The blank node that an IRI was given for, in a triple term too; anything else as it is."""
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
"""The names of a form's places."""

LAST_PAGE: Final = 10**7
"""The greatest number that a page may have."""

_PLACE_NAMES: Final = {name.encode(): name for name in PLACES[FragmentShape.QUADS]}
_KNOWN: Final = {shape: (*names, "page", "values", "limit") for shape, names in PLACES.items()}
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_SAFE = "!$%&'()*+,-./:;=?@[]_~"
"""Characters that stay in an IRI made of an address; all others are percent-encoded."""
_PLAIN = re.compile(rb"[A-Za-z0-9!$%&'()*+,\-./:;=?@\[\]_~]*")


class FragmentRequestError(ValueError):
    """A request that cannot be understood; the sentence says what to write."""


class FragmentRequest(NamedTuple):
    """A page of a fragment: what stands in its places, what it selects, its number, the addresses (path on) of both.

    ``limit`` is how many quads it is to have, where that was said.
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
    """The request of the address ``path?query`` below ``base``; FragmentRequestError says what is wrong with it.

    A page has at most ``largest`` quads.
    """
    parameters = _given(query, shape)
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
    """The path of a request, as it came."""
    raw: bytes | None = scope.get("raw_path")
    return raw or str(scope["path"]).encode()


def _given(query: bytes, shape: FragmentShape) -> dict[str, bytes]:
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
        node = read_graph(text) if name == "graph" else read_node(text)
    except TermError as error:
        raise TermError(f"{name}: {error}") from error
    return node


def _number(name: str, raw: bytes, limit: int) -> int:
    text = _text(raw)
    if not _NUMBER.fullmatch(text) or int(text) > limit:
        raise FragmentRequestError(f"{name}: {text!r:.20} is not a number from 1 to {limit}: write one")
    return int(text)


def _text(raw: bytes) -> str:
    """A part of a query without its percent signs; most have no others than those of an IRI's separators."""
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
    """Whether an address has only characters that stay in an IRI as they are."""
    return _PLAIN.fullmatch(target) is not None


_FEW: Final = ("predicate", "graph")
"""The places in which the same terms are asked for again and again, so that what was read is worth remembering."""

_short_node = lru_cache(maxsize=20_000)(_any_node)
