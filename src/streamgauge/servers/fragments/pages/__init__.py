"""The request of a page, parsed from its address (``terms``) into a selection of quads (``selections``)."""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from starlette.types import Scope

from streamgauge.model.algebra import Node
from streamgauge.servers.fragments import DEFAULT
from streamgauge.servers.fragments.pages.selections import RequestedNodes, Selection, select
from streamgauge.servers.fragments.pages.terms import (
    ABSOLUTE,
    GENID,
    BindingsError,
    TermError,
    read_bindings,
    read_graph,
    read_node,
    unskolemised,
)

SHORT: Final = 300
"""Bytes up to which a parsed term is cached."""


class FragmentShape(StrEnum):
    """Whether a data set is served as fragments of triples or of quads."""

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
        if type(node) is str and GENID in node:
            nodes = [unskolemised(node, base) for node in nodes]
            break
    subject, predicate, object_ = nodes[:3]
    return subject, predicate, object_, nodes[3] if shape is FragmentShape.QUADS else DEFAULT


def _node(name: str, raw: bytes) -> Node | None:
    return _short_node(name, raw) if name in _FEW and len(raw) <= SHORT else _any_node(name, raw)


def _any_node(name: str, raw: bytes) -> Node | None:
    text = _text(raw)
    if name != "graph" and ABSOLUTE.fullmatch(text):
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
