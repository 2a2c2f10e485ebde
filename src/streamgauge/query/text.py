"""The text of a query: tokens with positions (SPARQL 1.2, 19.8), and errors at a place."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_letters, digits
from typing import Final, Literal, TypeAlias, cast

from streamgauge.formats.bounds import LOCAL, TRIPLE_TERMS, TextBounds, no_character
from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import unescaped

Kind: TypeAlias = Literal["string", "iri", "blank", "name", "variable", "language", "number", "word", "sign"]

_ESCAPE: Final = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_CHARACTER: Final = rf"""\\[tbnrf\\"']|{_ESCAPE}"""
_LOCAL: Final = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_OTHERS: Final = (
    r"\u0080-\u00B6\u00B8-\u00BF\u00D7\u00F7\u037E\u2000-\u200B\u200E-\u203E\u2041-\u206F\u2190-\u2BFF\u2FF0-\u3000"
    r"\uD800-\uF8FF\uFDD0-\uFDEF\uFFFE\uFFFF\U000F0000-\U0010FFFF"
)
"""Characters beyond ASCII that names do not have."""
_JOINED: Final = r"\u00B7\u0300-\u036F\u203F\u2040"
"""Characters beyond ASCII that no name begins with, including combining marks."""


def _outside(ascii_: str, joined: str = "") -> str:
    """The characters outside of a class of SPARQL 1.2, 19.8 (PN_CHARS_BASE to PN_CHARS), with these of ASCII.

    They are a fifth of those inside, and Python takes as long to compile a class as it has characters.
    """
    return re.escape("".join(chr(code) for code in range(128) if chr(code) not in ascii_)) + joined + _OTHERS


_START: Final = ascii_letters + digits + "_"
_CHARS: Final = f"{_START}-"
NO_VARIABLE: Final = re.compile(rf"[{_outside(_START)}]")
"""A character that is not allowed in names of variables."""
_TERMINALS: Final[dict[str, str]] = {
    "comment": r"\#[^\n\r]*",
    # Possessive, so that an unclosed string is not tried again from each of its characters.
    "string": rf'"""(?:[^"\\]|{_CHARACTER}|"(?!""))*+"""|' + rf"'''(?:[^'\\]|{_CHARACTER}|'(?!''))*+'''|"
    rf'"(?!"")(?:[^"\\\n\r]|{_CHARACTER})*+"|' + rf"'(?!'')(?:[^'\\\n\r]|{_CHARACTER})*+'",
    "iri": r'<(?:[^\x00-\x20<>"{}|^`\\]|' + _ESCAPE + r")*>",
    "blank": rf"_:[^{_outside(_START, _JOINED)}](?:[^{_outside(_CHARS + '.')}]*[^{_outside(_CHARS)}])?",
    "name": rf"(?:[^{_outside(ascii_letters, _JOINED)}]"
    rf"(?:[^{_outside(_CHARS + '.')}]{{0,255}}[^{_outside(_CHARS)}])?)?:"
    rf"(?:(?:[^{_outside(_START + ':', _JOINED)}]|{_LOCAL})"
    rf"(?:(?:[^{_outside(_CHARS + '.:')}]|{_LOCAL})*(?:[^{_outside(_CHARS + ':')}]|{_LOCAL}))?)?",
    "variable": rf"[?$][^{_outside(_START, _JOINED)}][^{_outside(_START)}]*",
    "language": r"@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--[A-Za-z]+)?",
    "number": r"(?:[0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+|[0-9]*\.[0-9]+|[0-9]+",
    "word": r"[A-Za-z_]\w*",
    "sign": r"<<\(?|\)?>>|\{\||\|\}|\^\^|&&|\|\||!=|<=|>=|[^ \t\r\n]",
}
_TOKEN: Final = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _TERMINALS.items()), re.DOTALL)


_QUOTES: Final = ('"', "'")
CLOSING: Final = {"{": "}", "(": ")", "[": "]", "<<(": ")>>", "<<": ">>", "{|": "|}"}
"""Opening brackets with the closing ones."""
DEPTH: Final = 64
"""Maximum nesting of brackets."""

EVENT_SEQUENCES: Final = (
    *("SEQ", "OPTIONALSEQ", "EQUALS", "EQUALSOPTIONAL", "GETDURATION", "GETSTARTTIME", "GETENDTIME"),
)
"""Operators and functions of EP-SPARQL, which are refused by name."""


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
        """Whether this is one of these keywords (upper case), in any letter case."""
        return self.kind == "word" and self.text.upper() in words


@lru_cache(maxsize=1)
def tokens(text: str) -> tuple[Token, ...]:
    """The tokens of a query without comments, up to an unclosed string; nothing is refused here.

    Cached for the last text, because bounds, dialects and the parser each read it.
    """
    return tuple(_scan(text))


def _scan(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        # A byte order mark at the beginning is not part of the text.
        if match.lastgroup != "comment" and (match.start() or match[0] != "\ufeff"):
            yield Token(cast(Kind, match.lastgroup), match.group(), match.start())
            # After an unclosed string every quote would be searched to the end of the text: quadratic time.
            if match[0] in _QUOTES:
                return


def blank(text: str, start: int, end: int, replacement: str = "") -> str:
    """The text with [start, end) replaced by ``replacement``, padded with spaces so that lines and columns are kept."""
    padded = replacement + re.sub(r"[^\n\r]", " ", text[start + len(replacement) : end])
    return text[:start] + padded + text[end:]


def string_value(quoted: str) -> str:
    """The characters of a quoted SPARQL string."""
    marks = 3 if len(quoted) >= 6 and quoted[:3] in ('"""', "'''") else 1
    return unescaped(quoted[marks:-marks])


_SHOWN: Final = 200
"""Maximum characters of a line that an error shows."""


class QueryError(MistakeError, ValueError):
    """An invalid or unsupported query, at a position of its text in characters.

    ``line`` and ``column`` count from 1, which a caret shows.
    """

    def __init__(self, what: str, text: str, position: int) -> None:
        before = text[:position]
        self.what, self.text, self.position = what, text, position
        self.line, self.column = before.count("\n") + 1, position - before.rfind("\n")
        lines = text.splitlines() or [""]
        shown = lines[min(self.line, len(lines)) - 1]
        # Of a query in one long line only the surroundings of the error are shown.
        left = 0 if len(shown) <= _SHOWN else max(0, min(self.column - 1, len(shown)) - _SHOWN // 2)
        place = f"  {shown[left : left + _SHOWN]}\n  {' ' * (self.column - 1 - left)}^"
        super().__init__(f"line {self.line}, column {self.column}: {what}\n{place}")

    def __reduce__(self) -> tuple[type["QueryError"], tuple[str, str, int]]:
        """Pickle by the constructor's arguments, as an exception's own pickling has only the message."""
        return type(self), (self.what, self.text, self.position)

    def within(self, text: str) -> "QueryError":
        """The error with another text that has the same positions."""
        return type(self)(self.what, text, self.position)


class UnansweredError(QueryError):
    """A valid SPARQL query with an unsupported part; the message says what to write instead."""


def check_bounds(text: str, bounds: TextBounds = LOCAL) -> None:
    """Raise QueryError for a text that exceeds its bounds, or whose brackets are nested too deeply."""
    if len(text) > bounds.characters:
        raise QueryError(
            f"the text has {len(text)} characters, more than {bounds.characters}: write a shorter one", text, 0
        )
    if wrong := no_character(text, escaped=True):
        raise QueryError(wrong[0], text, wrong[1])
    words = tokens(text)
    if len(words) > bounds.tokens:
        what = f"more than {bounds.tokens} terms, words and signs: write a shorter text"
        raise QueryError(what, text, words[bounds.tokens].start)
    # Checked on tokens, before the parser recurses into the brackets.
    brackets = terms = 0
    for token in words:
        if token.text in CLOSING:
            brackets, terms = brackets + 1, terms + token.text.startswith("<<")
        elif token.text in _CLOSED:
            brackets, terms = max(0, brackets - 1), max(0, terms - token.text.endswith(">>"))
        if terms > TRIPLE_TERMS:
            what = f"triple terms are nested more than {TRIPLE_TERMS} deep, which is not supported"
            raise QueryError(what, text, token.start)
        if brackets > DEPTH:
            what = f"brackets are nested more than {DEPTH} deep: write the text flatter"
            raise QueryError(what, text, token.start)


_CLOSED: Final = frozenset(CLOSING.values())
