"""The request for a page of a fragment: its address taken apart (Quad Pattern Fragments, 3).

Blank nodes are IRIs in addresses and on pages, so that they hold outside their document (RDF 1.1 Concepts, 3.5:
skolemisation).
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar
from urllib.parse import quote_from_bytes, unquote_to_bytes

from streamgauge.model.algebra import Node
from streamgauge.model.terms import Term
from streamgauge.servers.fragments import DEFAULT
from streamgauge.servers.fragments.pages.dataset import FragmentShape
from streamgauge.servers.fragments.pages.selection import (
    SHORT,
    BindingRow,
    BindingsError,
    RequestedNodes,
    Selection,
    TermError,
    read_bindings,
    read_graph,
    read_node,
    select,
)

_PATH = "/.well-known/genid/"
_WITHIN = re.compile(r'"(?:[^"\\]|\\.)*"|<[^<>\s]*>|_:([A-Za-z0-9]+)')

Placed = TypeVar("Placed")


def skolemised(term: Term, base: str) -> Term:
    """The term with an IRI below ``base`` for each blank node, those in a triple term too."""
    if term.startswith("_:"):
        return f"<{base}{_PATH}{term[2:]}>"
    if term.startswith("<<") and "_:" in term:
        return _WITHIN.sub(lambda found: skolemised(found[0], base), term)
    return term


def unskolemised(node: Placed, base: str) -> Placed | Term:
    """The blank node that an IRI was given for; anything else as it is."""
    start = f"<{base}{_PATH}"
    if isinstance(node, str) and node.startswith(start) and node[len(start) : -1].isalnum():
        return f"_:{node[len(start) : -1]}"
    return node


PLACES: Final = {
    FragmentShape.QUADS: ("subject", "predicate", "object", "graph"),
    FragmentShape.TRIPLES: ("subject", "predicate", "object"),
}
"""The names of a form's places."""

LAST_PAGE: Final = 10**7
"""The greatest number that a page may have."""

_KNOWN: Final = {shape: (*names, "page", "values", "limit") for shape, names in PLACES.items()}
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_SAFE = "!$%&'()*+,-./:;=?@[]_~"
"""Characters that stay in an IRI made of an address; all others are percent-encoded."""
_PLAIN = re.compile(rb"[A-Za-z0-9!$%&'()*+,\-./:;=?@\[\]_~]*")


class FragmentRequestError(ValueError):
    """A request that cannot be understood; the sentence says what to write."""


@dataclass(frozen=True, slots=True)
class FragmentRequest:
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
    given = _given(query, shape)
    try:
        wanted = _requested(given, shape, base)
        rows = read_bindings(_text(given["values"])) if given.get("values") else None
    except (TermError, BindingsError) as error:
        raise FragmentRequestError(str(error)) from error
    chosen, page = select(wanted, rows and [_row(row, base) for row in rows]), _address(path, query)
    limit = _number("limit", given["limit"], largest) if "limit" in given else None
    if "page" not in given:
        return FragmentRequest(wanted, chosen, 1, page, page, limit)
    rest = b"&".join(part for part in query.split(b"&") if not part.startswith(b"page="))
    return FragmentRequest(wanted, chosen, _number("page", given["page"], LAST_PAGE), _address(path, rest), page, limit)


def _given(query: bytes, shape: FragmentShape) -> dict[str, bytes]:
    """The value of each parameter, still percent-encoded."""
    given: dict[str, bytes] = {}
    for part in query.split(b"&") if query else ():
        raw, _, value = part.partition(b"=")
        name = _text(raw)
        if name not in _KNOWN[shape]:
            raise FragmentRequestError(
                f"{name:.40}: not a parameter of this form, which has {', '.join(_KNOWN[shape])}"
            )
        if name in given:
            raise FragmentRequestError(f"{name} is given twice: give it once")
        given[name] = value
    return given


def _requested(given: dict[str, bytes], shape: FragmentShape, base: str) -> RequestedNodes:
    nodes = [unskolemised(_node(name, given[name]), base) if name in given else None for name in PLACES[shape]]
    subject, predicate, object_ = nodes[:3]
    return subject, predicate, object_, nodes[3] if shape is FragmentShape.QUADS else DEFAULT


def _row(row: BindingRow, base: str) -> BindingRow:
    return {variable: unskolemised(term, base) for variable, term in row.items()}


def _node(name: str, raw: bytes) -> Node | None:
    return _short_node(name, raw) if len(raw) <= SHORT else _any_node(name, raw)


def _any_node(name: str, raw: bytes) -> Node | None:
    text = _text(raw)
    try:
        node = read_graph(text) if name == "graph" else read_node(text)
    except TermError as error:
        raise TermError(f"{name}: {error}") from error
    if node and isinstance(node, str) and (node[0] == '"' or node.startswith("<<")) and name != "object":
        raise TermError(f"{name}: {text:.80} is no IRI: only an object may be a literal or a triple term")
    return node


def _number(name: str, raw: bytes, most: int) -> int:
    text = _text(raw)
    if not _NUMBER.fullmatch(text) or int(text) > most:
        raise FragmentRequestError(f"{name}: {text!r:.20} is not a number from 1 to {most}: write one")
    return int(text)


def _text(raw: bytes) -> str:
    if raw.isalnum():
        return raw.decode()
    try:
        return (unquote_to_bytes(raw.replace(b"+", b" ")) if raw.isascii() else raw).decode()
    except UnicodeDecodeError as error:
        raise FragmentRequestError("the address is not UTF-8 in percent signs") from error


def _address(path: bytes, query: bytes) -> str:
    whole = path + b"?" + query if query else path
    return whole.decode("ascii") if _PLAIN.fullmatch(whole) else quote_from_bytes(whole, safe=_SAFE)


_short_node = lru_cache(maxsize=20_000)(_any_node)
