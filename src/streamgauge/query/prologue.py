"""BASE, PREFIX and VERSION of a query, and the IRIs and literals of its text under them (SPARQL 1.2, 4.1)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyoxigraph as ox

from streamgauge.model.terms import XSD, Term, quoted, unescaped
from streamgauge.query.text import QueryError, Token, string_value, tokens

DEFAULT_BASE: Final = "http://example.org/"
"""The base of relative IRIs in a continuous query without BASE (RFC 3986, 5.1.4: the application's choice)."""

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_REFERENCE: Final = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
"""Scheme, authority, path, query and fragment (RFC 3986, appendix B)."""
_LOCAL_ESCAPE: Final = re.compile(r"\\(.)")
_LANGUAGE: Final = re.compile(r"@[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*(?:--(?:ltr|rtl))?")


def resolved(reference: str, base: str) -> str:
    """The IRI of a reference relative to a base (RFC 3986, 5.2.2)."""
    scheme, authority, path, query, fragment = _parts(reference)
    own_scheme, own_authority, own_path, own_query, _ = _parts(base)
    if scheme is not None or authority is not None:
        path = _without_dots(path)
    else:
        authority = own_authority
        if not path:
            path, query = own_path, own_query if query is None else query
        elif path.startswith("/"):
            path = _without_dots(path)
        else:
            root = "/" if own_authority is not None and not own_path else own_path[: own_path.rfind("/") + 1]
            path = _without_dots(root + path)
    return "".join(
        (
            f"{own_scheme if scheme is None else scheme}:",
            "" if authority is None else f"//{authority}",
            path,
            "" if query is None else f"?{query}",
            "" if fragment is None else f"#{fragment}",
        )
    )


def _parts(reference: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _REFERENCE.fullmatch(reference)
    assert match is not None
    scheme, authority, path, query, fragment = match.groups()
    return scheme, authority, path, query, fragment


def _without_dots(path: str) -> str:
    """The path without segments ``.`` and ``..`` (RFC 3986, 5.2.4)."""
    segments: list[str] = []
    parts = path.split("/")
    for segment in parts:
        if segment not in (".", ".."):
            segments.append(segment)
        # Above the root ``..`` changes nothing (RFC 3986, 5.4.2).
        elif segment == ".." and segments not in ([], [""]):
            segments.pop()
    return "/".join((*segments, "") if parts[-1] in (".", "..") else segments)


@dataclass(slots=True)
class Prologue:
    """The declarations of BASE, PREFIX and VERSION; ``end`` is the index of the token after them.

    ``default`` is the base of a text without BASE; ``relative`` are the references that were resolved by it.
    """

    text: str
    base: str | None = None
    prefixes: dict[str, str] = field(default_factory=dict)
    end: int = 0
    default: str | None = None
    relative: dict[str, None] = field(default_factory=dict)
    version: str | None = None
    """The last version that the text announces."""

    def iri(self, token: Token) -> str:
        """The absolute IRI, without brackets, of an IRI or prefixed name; QueryError for an undeclared prefix."""
        if token.kind == "iri":
            return self._absolute(token)
        prefix, _, local = token.text.partition(":")
        if prefix in self.prefixes:
            return self.prefixes[prefix] + _LOCAL_ESCAPE.sub(r"\1", local)
        # ``<http://example.org/a b>`` is no IRI token because of the space: ``http:`` then looks like a prefix.
        if self.text[token.start - 1 : token.start] == "<":
            raise self._blank_inside(token)
        add = f"add PREFIX {prefix}: <...>"
        raise QueryError(f"the prefix {prefix}: of {token.text} is not declared: {add}", self.text, token.start)

    def _blank_inside(self, token: Token) -> Exception:
        """The error for an IRI with a space, ``<http://example.org/a b>``, at its beginning."""
        start = token.start - 1
        shown = re.split(r"[>\n\r]", self.text[start:], maxsplit=1)[0]
        what = f"{shown}> is not an IRI: spaces, quotes and braces are not allowed in IRIs; write a space as %20"
        return QueryError(what, self.text, start)

    def _absolute(self, token: Token) -> str:
        reference = unescaped(token.text[1:-1])
        try:
            iri = self.resolve(reference)
        except ValueError as error:
            raise QueryError(f"<{reference}> is not an IRI: {error}", self.text, token.start) from None
        if iri is None:
            what = f"the IRI {token.text} is relative and the query has no BASE; write it in full or declare a BASE"
            raise QueryError(what, self.text, token.start)
        return iri

    def resolve(self, reference: str) -> str | None:
        """The absolute IRI of a reference, ``None`` for a relative one without a base.

        Raises ValueError for a text that is not an IRI reference (RFC 3987).
        """
        base = self.base if self.base is not None else self.default
        if _SCHEME.match(reference):
            iri = reference
        # RFC 3986, 4.2: the first segment of a relative path has no colon.
        elif ":" in re.split("[/?#]", reference, maxsplit=1)[0]:
            raise ValueError("a colon follows a scheme such as http; write ./ before a relative name with a colon")
        elif base is None:
            return None
        else:
            if self.base is None:
                self.relative[reference] = None
            iri = resolved(reference, base)
        # Checked by the library that reads the data, so that query and data accept the same IRIs.
        return str(ox.NamedNode(iri).value)

    def literal(self, parts: Sequence[Token]) -> Term:
        """The literal of a string token, with its language or ``^^`` and datatype tokens if any."""
        value = quoted(string_value(parts[0].text))
        match parts[1:]:
            case []:
                return value
            case [language]:
                if not _LANGUAGE.fullmatch(language.text):
                    what = f"{language.text} is not a language tag: letters and digits, up to 8 between hyphens"
                    raise QueryError(f"{what}; the direction is --ltr or --rtl", self.text, language.start)
                # In lower case, as the readers of data write tags: terms are compared as text.
                return f"{value}{language.text.lower()}"
            case [_, datatype]:
                iri = self.iri(datatype)
                return value if iri == f"{XSD}string" else f"{value}^^<{iri}>"
            case _:
                raise ValueError("a literal is a string with a language or a datatype")


def declared_prefixes(text: str) -> dict[str, str]:
    """The prefixes that a text declares with absolute IRIs, anywhere in it, without checking the rest."""
    words = tokens(text)
    return {
        name.text[:-1]: unescaped(iri.text[1:-1])
        for word, name, iri in zip(words, words[1:], words[2:], strict=False)
        if word.says("PREFIX") and name.text.endswith(":") and iri.kind == "iri" and ":" in iri.text
    }


def read_prologue(
    text: str, words: Sequence[Token], skip: int = 0, before: Prologue | None = None, default: str | None = None
) -> Prologue:
    """The declarations from the ``skip``-th token on, added to those ``before``.

    ``default`` is the base of a text without BASE. Raises QueryError for an incomplete declaration.
    """
    prologue = Prologue(text, end=skip, default=default)
    if before is not None:
        # A copy, as declarations after REGISTER must not change those before it.
        prologue = replace(before, prefixes=dict(before.prefixes), end=skip)
    read_on(prologue, words, skip)
    return prologue


def read_on(prologue: Prologue, words: Sequence[Token], start: int) -> int:
    """Add the declarations from token ``start`` on; the index of the token after them."""
    prologue.end = start
    while prologue.end < len(words) and words[prologue.end].says("BASE", "PREFIX", "VERSION"):
        _declare(prologue, words)
    return prologue.end


def _declare(prologue: Prologue, words: Sequence[Token]) -> None:
    """Read one declaration; QueryError if it is incomplete."""
    end = Token("sign", "", len(prologue.text))
    word, first, second = (*words[prologue.end : prologue.end + 3], end, end)[:3]
    if word.says("BASE"):
        prologue.base = prologue.iri(_need(prologue, first, first.kind == "iri", "BASE <http://example.org/>"))
        prologue.end += 2
    elif word.says("PREFIX"):
        example = "PREFIX name: <http://example.org/>"
        _need(prologue, first, first.kind == "name" and first.text.find(":") == len(first.text) - 1, example)
        prologue.prefixes[first.text[:-1]] = prologue.iri(_need(prologue, second, second.kind == "iri", example))
        prologue.end += 3
    else:
        short = first.kind == "string" and first.text[:3] not in ('"""', "'''")
        prologue.version = string_value(_need(prologue, first, short, 'VERSION "1.2"').text)
        prologue.end += 2


def _need(prologue: Prologue, token: Token, right: bool, example: str) -> Token:
    if not right:
        raise QueryError(f"this declaration is not complete: write {example}", prologue.text, token.start)
    return token
