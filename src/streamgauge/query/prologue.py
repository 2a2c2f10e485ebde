"""The names of a query: BASE and PREFIX, IRIs and strings as terms."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyoxigraph as ox

from streamgauge.formats.canonical import to_term
from streamgauge.model.terms import Term
from streamgauge.query.errors import refusal
from streamgauge.query.tokens import Token, tokens

DEFAULT_BASE: Final = "http://example.org/"
"""The base of relative IRIs in a continuous query that declares none (RFC 3986, 5.1.4: the application's choice)."""
_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\(.)", re.DOTALL)
_CONTROL: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(slots=True)
class Prologue:
    """The declarations of BASE and PREFIX in the order of the text; ``end`` is the index of the token after them.

    ``default`` is the base of a text that declares none; ``relative`` are the references that were resolved by it.
    """

    text: str
    base: str | None = None
    prefixes: dict[str, str] = field(default_factory=dict)
    end: int = 0
    default: str | None = None
    relative: dict[str, None] = field(default_factory=dict)

    def iri(self, token: Token) -> str:
        """The absolute IRI, without brackets, of an IRI or prefixed name; QueryError names an undeclared prefix."""
        if token.kind == "iri":
            return self._absolute(token)
        prefix, _, local = token.text.partition(":")
        if prefix not in self.prefixes:
            add = f"declare it: PREFIX {prefix}: <...>"
            raise refusal(f"the prefix {prefix}: of {token.text} is not declared; {add}", self.text, token.start)
        return self.prefixes[prefix] + re.sub(r"\\(.)", r"\1", local)

    def _absolute(self, token: Token) -> str:
        try:
            iri = self.resolve(unescape(token.text[1:-1]))
        except ValueError as error:
            raise refusal(str(error), self.text, token.start) from None
        if iri is None:
            what = f"the IRI {token.text} is relative and the query has no BASE; write it in full or declare a BASE"
            raise refusal(what, self.text, token.start)
        return iri

    def resolve(self, iri: str) -> str | None:
        """The absolute IRI of a reference, ``None`` for a relative one without BASE.

        ValueError says why the text is no IRI reference (RFC 3987).
        """
        if re.match(r"[A-Za-z][A-Za-z0-9+.\-]*:", iri):
            return iri
        base = self.base if self.base is not None else self.default
        if base is None:
            return None
        if self.base is None:
            self.relative[iri] = None
        try:
            quad = next(iter(ox.parse(f"<> <p:p> <{iri}> .", format=ox.RdfFormat.TURTLE, base_iri=base)))
        except SyntaxError as error:
            raise ValueError(f"<{iri}> is no IRI: {str(error.msg).rpartition(': ')[2] or error.msg}") from None
        return str(quad.object)[1:-1]

    def literal(self, parts: Sequence[Token]) -> Term:
        """The literal of a string token, with its language or ``^^`` and datatype tokens if any."""
        value = string_value(parts[0].text)
        match parts[1:]:
            case []:
                return to_term(ox.Literal(value))
            case [language]:
                return to_term(ox.Literal(value, language=language.text[1:]))
            case [_, datatype]:
                return to_term(ox.Literal(value, datatype=ox.NamedNode(self.iri(datatype))))
            case _:
                raise ValueError("a literal is a string with a language or a datatype")


def declared_prefixes(text: str) -> dict[str, str]:
    """The prefixes that a query's text declares with absolute IRIs, wherever they stand; nothing is refused here."""
    found = tokens(text)
    return {
        name.text[:-1]: unescape(iri.text[1:-1])
        for word, name, iri in zip(found, found[1:], found[2:], strict=False)
        if word.says("PREFIX") and name.text.endswith(":") and iri.kind == "iri" and ":" in iri.text
    }


def read_prologue(
    text: str, found: Sequence[Token], skip: int = 0, before: Prologue | None = None, default: str | None = None
) -> Prologue:
    """The declarations that the tokens begin with, from the ``skip``-th token on, added to those ``before``.

    ``default`` is the base of a text that declares none.
    """
    prologue = Prologue(text, end=skip, default=default)
    if before is not None:
        prologue = replace(before, prefixes=dict(before.prefixes), end=skip)
    while prologue.end + 1 < len(found):
        first, second = found[prologue.end], found[prologue.end + 1]
        if first.says("BASE") and second.kind == "iri":
            prologue.base = prologue.iri(second)
            prologue.end += 2
        elif first.says("PREFIX") and second.kind == "name" and prologue.end + 2 < len(found):
            prologue.prefixes[second.text.rstrip(":")] = prologue.iri(found[prologue.end + 2])
            prologue.end += 3
        else:
            break
    return prologue


def string_value(quoted: str) -> str:
    """The characters of a quoted SPARQL string."""
    marks = 3 if len(quoted) >= 6 and quoted[:3] in ('"""', "'''") else 1
    return unescape(quoted[marks:-marks])


def unescape(text: str) -> str:
    """The text without its backslash escapes."""

    def character(match: re.Match[str]) -> str:
        code = match.group(1) or match.group(2)
        return chr(int(code, 16)) if code else _CONTROL.get(match.group(3), match.group(3))

    return _ESCAPE.sub(character, text) if "\\" in text else text
