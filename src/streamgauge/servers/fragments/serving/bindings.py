"""Bindings that restrict a fragment: ``values=(?x ?y) { (<a> "b") (UNDEF <c>) }`` (Hartig, Buil-Aranda, ODBASE 2016).

The syntax is that of SPARQL's VALUES with N-Triples terms; a row that is too short leaves its last variables unbound.
"""

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from streamgauge.model.algebra import Var
from streamgauge.model.terms import Term
from streamgauge.servers.fragments.serving.terms import canonical

Row: TypeAlias = dict[Var, Term]
"""What one row binds."""

MOST: Final = 64
"""Rows in one request (the paper's maxMpR, 30 there); Comunica sends as many."""

_TOKEN = re.compile(
    r"\s*(?:(?P<sign>[(){}])|(?P<unbound>UNDEF\b)|[?$](?P<name>\w+)"
    r'|(?P<term><<\(.*?\)>>|<[^<>\s]*>|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9\-]+|\^\^<[^<>\s]*>)?))',
    re.DOTALL,
)

Token: TypeAlias = tuple[str, str]
"""(sign, unbound, name or term; its text)."""


class BindingsError(ValueError):
    """Bindings that cannot be read; the sentence says what they look like."""


def read_bindings(text: str) -> list[Row]:
    """The rows, at most ``MOST``; BindingsError or TermError say what is wrong."""
    tokens = _tokens(text)
    names = _names(tokens)
    rows = list(_rows(tokens, names))
    if next(tokens, None) is not None:
        raise BindingsError("values: nothing may follow the last }")
    if len(rows) > MOST:
        raise BindingsError(f"values: {len(rows)} rows, {MOST} at most: ask in several requests")
    return rows


def _tokens(text: str) -> Iterator[Token]:
    at, text = 0, text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise BindingsError(f"values: not understood at {text[at : at + 40]!r}: write (?x ?y) {{ (<a> UNDEF) }}")
        yield found.lastgroup, found[found.lastgroup]
        at = found.end()


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


def _rows(tokens: Iterator[Token], names: list[Var]) -> Iterator[Row]:
    _expect(tokens, "{")
    for token in tokens:
        if token == ("sign", "}"):
            return
        if token != ("sign", "("):
            raise BindingsError(f"values: {token[1][:40]!r} where a row begins: write ( and its terms")
        yield _row(tokens, names)
    raise BindingsError("values: the rows have no end: write } after the last")


def _row(tokens: Iterator[Token], names: list[Var]) -> Row:
    row: Row = {}
    for number, (kind, text) in enumerate(tokens):
        if (kind, text) == ("sign", ")"):
            return row
        if kind not in ("term", "unbound"):
            raise BindingsError(f"values: {text[:40]!r} in a row: write terms as N-Triples does, or UNDEF")
        if number >= len(names):
            raise BindingsError(f"values: a row has more terms than the {len(names)} variables")
        if kind == "term":
            row[names[number]] = canonical(text)
    raise BindingsError("values: a row has no end: write ) after it")


def _expect(tokens: Iterator[Token], sign: str) -> None:
    if next(tokens, None) != ("sign", sign):
        raise BindingsError(f"values: {sign} is missing: write (?x ?y) {{ (<a> <b>) }}")
