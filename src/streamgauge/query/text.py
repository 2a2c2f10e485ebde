"""The text of a query: tokens with positions (SPARQL 1.1, 19.8), its prologue, terms, and errors at a place."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal, NoReturn, TypeAlias, cast

import pyoxigraph as ox

from streamgauge.formats.bounds import LOCAL, BoundError, TextBounds, check_sparql
from streamgauge.formats.canonical import to_term
from streamgauge.model.algebra import Var
from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import XSD, Term, unescaped

Kind: TypeAlias = Literal["string", "iri", "blank", "name", "variable", "language", "number", "word", "sign"]

_ESCAPE: Final = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_LOCAL: Final = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_BASE: Final = (
    r"A-Za-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C-\u200D\u2070-\u218F"
    r"\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF"
)
_START: Final = rf"{_BASE}_0-9"
_JOINED: Final = r"\u00B7\u0300-\u036F\u203F-\u2040"
_CHARS: Final = rf"{_START}{_JOINED}\-"
"""Classes of characters of names (SPARQL 1.2, 19.8, PN_CHARS_BASE to PN_CHARS): combining marks are among them."""
_TERMINALS: Final[dict[str, str]] = {
    "comment": r"\#[^\n\r]*",
    "string": r'"""(?:[^"\\]|\\.|"(?!""))*+"""|' + r"'''(?:[^'\\]|\\.|'(?!''))*+'''|"
    r'"(?:[^"\\\n\r]|\\.)*+"|' + r"'(?:[^'\\\n\r]|\\.)*+'",
    "iri": r'<(?:[^\x00-\x20<>"{}|^`\\]|' + _ESCAPE + r")*>",
    "blank": rf"_:[{_START}](?:[{_CHARS}.]*[{_CHARS}])?",
    "name": rf"(?:[{_BASE}](?:[{_CHARS}.]*[{_CHARS}])?)?:"
    rf"(?:(?:[{_START}:]|{_LOCAL})(?:(?:[{_CHARS}.:]|{_LOCAL})*(?:[{_CHARS}:]|{_LOCAL}))?)?",
    "variable": rf"[?$][{_START}][{_START}{_JOINED}]*",
    "language": r"@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl))?",
    "number": r"(?:\d+\.\d*|\.\d+|\d+)[eE][+-]?\d+|\d*\.\d+|\d+",
    "word": r"[A-Za-z_]\w*",
    "sign": r"<<\(|\)>>|\{\||\|\}|\^\^|&&|\|\||!=|<=|>=|\S",
}
_TOKEN: Final = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _TERMINALS.items()), re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """A terminal: its kind, its text and the position of its first character."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        """The position after its last character."""
        return self.start + len(self.text)

    def says(self, *words: str) -> bool:
        """Whether this is one of these keywords (upper case), however it is written."""
        return self.kind == "word" and self.text.upper() in words


@lru_cache(maxsize=1)
def tokens(text: str) -> tuple[Token, ...]:
    """The tokens of a query, comments left out; nothing is refused here. The tokens of the last text are cached.

    Time is linear in a text within its bounds (``bounded``), where no string is left open and no name is long.
    """
    return tuple(_scan(text))


def _scan(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "comment":
            yield Token(cast(Kind, match.lastgroup), match.group(), match.start())


def blank(text: str, start: int, end: int, replacement: str = "") -> str:
    """The text with [start, end) replaced by ``replacement`` padded with spaces: lines and columns stay."""
    padded = replacement + re.sub(r"[^\n\r]", " ", text[start + len(replacement) : end])
    return text[:start] + padded + text[end:]


DEFAULT_BASE: Final = "http://example.org/"
"""The base of relative IRIs in a continuous query that declares none (RFC 3986, 5.1.4: the application's choice)."""


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
            iri = self.resolve(unescaped(token.text[1:-1]))
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
                return f"{to_term(ox.Literal(value))}{language.text.lower()}"
            case [_, datatype]:
                return to_term(ox.Literal(value, datatype=ox.NamedNode(self.iri(datatype))))
            case _:
                raise ValueError("a literal is a string with a language or a datatype")


def declared_prefixes(text: str) -> dict[str, str]:
    """The prefixes that a query's text declares with absolute IRIs, wherever they stand; nothing is refused here."""
    found = tokens(text)
    return {
        name.text[:-1]: unescaped(iri.text[1:-1])
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
        elif first.says("VERSION") and second.kind == "string":
            prologue.end += 2
        else:
            break
    return prologue


def string_value(quoted: str) -> str:
    """The characters of a quoted SPARQL string."""
    marks = 3 if len(quoted) >= 6 and quoted[:3] in ('"""', "'''") else 1
    return unescaped(quoted[marks:-marks])


_SHOWN: Final = 200
"""Characters of a line that an error shows."""


class QueryError(MistakeError, ValueError):
    """A query text that is refused; ``line`` and ``column`` count from 1, the message shows both and the line."""

    def __init__(self, what: str, text: str, line: int, column: int) -> None:
        lines = text.splitlines() or [""]
        shown = lines[min(line, len(lines)) - 1]
        left = 0 if len(shown) <= _SHOWN else max(0, min(column - 1, len(shown)) - _SHOWN // 2)
        place = f"  {shown[left : left + _SHOWN]}\n  {' ' * (column - 1 - left)}^"
        super().__init__(f"line {line}, column {column}: {what}\n{place}")
        self.what = what
        self.text = text
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[type["QueryError"], tuple[str, str, int, int]]:
        """Travels between processes as it is."""
        return QueryError, (self.what, self.text, self.line, self.column)

    def within(self, text: str) -> "QueryError":
        """The same error shown in another text with the same positions."""
        return QueryError(self.what, text, self.line, self.column)


def refusal(what: str, text: str, position: int) -> QueryError:
    """The error at a character position of the text."""
    before = text[:position]
    return QueryError(what, text, before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1)


def check_bounds(text: str, bounds: TextBounds = LOCAL) -> None:
    """QueryError for a text beyond its bounds, before a parser sees the text."""
    try:
        check_sparql(text, bounds)
    except BoundError as error:
        raise refusal(str(error), text, error.position) from None


_BEYOND: Final = "this goes beyond SPARQL 1.1, or is nested too deeply: write it in SPARQL 1.1"
TRUTH: Final = ("true", "false")


class Cursor:
    """The place in the tokens of a text, from the end of its prologue on, and the terms there."""

    def __init__(self, text: str, found: Sequence[Token], prologue: Prologue) -> None:
        self._text, self._found, self._prologue, self._at = text, found, prologue, prologue.end
        self._end = Token("sign", "", len(text))

    @property
    def _token(self) -> Token:
        return self._found[self._at] if self._at < len(self._found) else self._end

    def _beyond(self) -> NoReturn:
        raise refusal(_BEYOND, self._text, self._token.start)

    def _take(self) -> Token:
        token = self._token
        self._at += 1
        return token

    def _is(self, *signs: str) -> bool:
        """Whether one of these signs is next."""
        token = self._token
        return token.kind == "sign" and token.text in signs

    def _skip(self, sign: str) -> bool:
        """Step over a sign, if it is next."""
        if self._token.text == sign:
            self._at += 1
            return True
        return False

    def _must(self, sign: str) -> None:
        if not self._skip(sign):
            self._beyond()

    def _word(self) -> str:
        """The keyword that is next, in upper case; empty for anything else."""
        token = self._token
        return token.text.upper() if token.kind == "word" else ""

    def _says(self, *words: str) -> bool:
        """Step over a keyword, if it is one of these."""
        if self._word() in words:
            self._at += 1
            return True
        return False

    def _must_say(self, *words: str) -> None:
        if not self._says(*words):
            self._beyond()

    def _variable(self) -> Var:
        if self._token.kind != "variable":
            self._beyond()
        return Var(self._take().text[1:])

    def _iri(self) -> Term:
        if self._token.kind not in ("iri", "name"):
            self._beyond()
        return f"<{self._prologue.iri(self._take())}>"

    def _is_signed_number(self) -> bool:
        """Whether a sign is next that is part of the number after it, as in ``-5``."""
        if self._token.text not in ("+", "-") or self._at + 1 >= len(self._found):
            return False
        following = self._found[self._at + 1]
        return following.kind == "number" and following.start == self._token.end

    def _term(self) -> Term:
        """An IRI or a literal."""
        if self._token.kind in ("iri", "name"):
            return self._iri()
        sign = self._take().text if self._is_signed_number() else ""
        token = self._token
        if token.kind == "number":
            self._at += 1
            kind = "double" if "e" in token.text.lower() else "decimal" if "." in token.text else "integer"
            return f'"{sign}{token.text}"^^<{XSD}{kind}>'
        if token.kind == "string":
            parts = [self._take()]
            if self._token.kind == "language":
                parts.append(self._take())
            elif self._is("^^"):
                parts += [self._take(), self._take()]
            return self._prologue.literal(parts)
        if token.text not in TRUTH:
            self._beyond()
        return f'"{self._take().text}"^^<{XSD}boolean>'
