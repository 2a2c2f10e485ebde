"""From text to rdflib's syntax tree, of which only the shape is used.

Every IRI, string and number goes to rdflib as a place in our own table and comes back from there: so prefixes, relative
IRIs, escapes, lexical forms and the inverse members of ``!(...)``, which rdflib loses, stay ours.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pyparsing import ParseBaseException
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.term import URIRef

from streamgauge.model.terms import XSD, Term
from streamgauge.query.depth import deep
from streamgauge.query.errors import refusal
from streamgauge.query.prologue import Prologue, string_value
from streamgauge.query.tokens import Token

_NAME: Final = "term:"
_INVERSE: Final = "inverse:"
_KEPT_CHARACTERS: Final = 1_000
"""The longest text of which the tree is kept."""

_RDF_TYPE_WORD: Final = "a"


class _ParserLock:
    """Lets one thread at a time into rdflib's parser, which all threads of a process share.

    Pyparsing learns at each parse action's first call how many arguments it takes, simplifies its grammar at the first
    parse, and the limit of recursion is the whole process's: two first parses at once leave a parser behind that
    refuses right queries until the process ends. A forked child has a lock of its own: nobody would release the copy.
    """

    def __init__(self) -> None:
        self.renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_PARSER: Final = _ParserLock()


@dataclass(frozen=True, slots=True)
class Shape:
    """rdflib's tree of a query and the terms (or separators) that its numbered names stand for."""

    tree: Any
    table: tuple[str, ...]
    prologue: Prologue
    signed: frozenset[int] = frozenset()
    """The places of numbers whose sign is part of them: ``+5`` and ``-5``, not ``+ 5``."""

    def term(self, name: URIRef) -> Term:
        """The term behind a name of the tree; IRIs that rdflib made itself (rdf:first) stay as they are."""
        text = str(name)
        return self.table[int(text.partition(":")[2])] if text.startswith((_NAME, _INVERSE)) else f"<{text}>"

    def signed_number(self, sign: str, place: int) -> Term:
        """The numeric constant behind a number of the tree, with a sign (or ``""``) before its digits."""
        return f'"{sign}{self.table[place][1:]}'

    def separator(self, name: str) -> str:
        """The separator string behind a name of the tree."""
        return self.table[int(name.partition(":")[2])]


def is_inverse(name: URIRef) -> bool:
    """Whether the name stands for ``^iri`` in a negated property set."""
    return str(name).startswith(_INVERSE)


def shape(text: str, found: Sequence[Token], prologue: Prologue) -> Shape:
    """The shape of a query that pyoxigraph accepts; QueryError when it goes beyond SPARQL 1.1."""
    table: list[str] = ["no term: a number of the tree is never 0, so that its sign shows"]
    signed: set[int] = set()
    written = list(_rewrite(found[prologue.end :], prologue, table, signed))
    plain = "".join(gap + piece for gap, piece, _ in written)
    try:
        return Shape(_tree(plain), tuple(table), prologue, frozenset(signed))
    except (ParseBaseException, RecursionError) as error:
        where = _origin(written, getattr(error, "loc", 0))
        raise refusal(
            "this goes beyond SPARQL 1.1, or is nested too deeply: write it in SPARQL 1.1", text, where
        ) from None


def _tree(plain: str) -> Any:
    """Rdflib's tree of a text whose terms are numbered; readers leave it as it is.

    Terms are not in the text, so queries that differ in their constants only share the tree: Pyparsing takes 5 to 15 ms
    for a query that the rest of this package reads in 2.
    """
    return _kept_tree(plain) if len(plain) <= _KEPT_CHARACTERS else _new_tree(plain)


def _new_tree(plain: str) -> Any:
    with _PARSER, deep():
        return parseQuery(plain)[1]


_kept_tree = lru_cache(maxsize=128)(_new_tree)
"""The trees of the last short texts: some 50 kB each, under 700 kB for the most nested text."""


def _origin(written: Sequence[tuple[str, str, int]], location: int) -> int:
    passed = 0
    for gap, piece, start in written:
        passed += len(gap) + len(piece)
        if passed > location:
            return start
    return written[-1][2] if written else 0


def _rewrite(
    found: Sequence[Token], prologue: Prologue, table: list[str], signed: set[int]
) -> Iterator[tuple[str, str, int]]:
    """(gap, text for rdflib, position in the query) of every piece; ``table``, ``signed`` are filled on the way."""
    index, end, negated = 0, 0, False
    while index < len(found):
        token = found[index]
        counts = index > 0 and found[index - 1].says("LIMIT", "OFFSET")
        piece, used = (token.text, 1) if counts else _piece(found[index : index + 3], prologue, table, negated)
        # A path modifier follows its path without a space, or rdflib does not see it.
        near = token.start == end or token.text in ("*", "+", "?")
        gap = "" if near and not _precedes_number(found, index) else " "
        yield gap, piece, token.start
        if token.kind == "number" and not counts and index and _precedes_number(found, index - 1):
            signed.add(len(table) - 1)
        negated = _still_negated(token, negated)
        index += used
        end = found[index - 1].end


def _precedes_number(found: Sequence[Token], index: int) -> bool:
    """Whether a token is a sign that is part of the number after it, as SPARQL's longest terminal is."""
    following = found[index + 1 : index + 2]
    return (
        found[index].text in ("+", "-")
        and bool(following)
        and following[0].kind == "number"
        and following[0].start == found[index].end
    )


def _still_negated(token: Token, negated: bool) -> bool:
    if token.text == "!":
        return True
    return negated and (token.text in ("(", "|", "^", _RDF_TYPE_WORD) or token.kind in ("iri", "name"))


def _piece(rest: Sequence[Token], prologue: Prologue, table: list[str], negated: bool) -> tuple[str, int]:
    token = rest[0]
    if token.text == "^" and negated and len(rest) > 1:
        return _inverse(rest[1], prologue, table), 2
    if token.kind in ("iri", "name"):
        return _add(table, f"<{prologue.iri(token)}>", _NAME), 1
    if token.says("SEPARATOR") and len(rest) > 2 and rest[2].kind == "string":
        table.append(string_value(rest[2].text))
        return f'SEPARATOR="{_NAME}{len(table) - 1}"', 3
    if token.kind == "string":
        used = _literal_length(rest)
        return _add(table, prologue.literal(rest[:used]), _NAME), used
    if token.kind == "number":
        table.append(_number(token.text))
        return f"{len(table) - 1} ", 1
    return token.text, 1


def _number(text: str) -> Term:
    kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
    return f'"{text}"^^<{XSD}{kind}>'


def _literal_length(rest: Sequence[Token]) -> int:
    if len(rest) > 2 and rest[1].text == "^^":
        return 3
    return 2 if len(rest) > 1 and rest[1].kind == "language" else 1


def _inverse(token: Token, prologue: Prologue, table: list[str]) -> str:
    if token.text == _RDF_TYPE_WORD:
        return _add(table, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", _INVERSE)
    return _add(table, f"<{prologue.iri(token)}>", _INVERSE)


def _add(table: list[str], term: Term, kind: str) -> str:
    table.append(term)
    return f"<{kind}{len(table) - 1}>"
