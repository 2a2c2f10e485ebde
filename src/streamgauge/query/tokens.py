"""SPARQL text as tokens with positions (https://www.w3.org/TR/sparql11-query/#sparqlGrammar, terminals)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias, cast

Kind: TypeAlias = Literal["string", "iri", "blank", "name", "variable", "language", "number", "word", "sign"]

_ESCAPE: Final = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_LOCAL: Final = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_TERMINALS: Final[dict[str, str]] = {
    "comment": r"\#[^\n\r]*",
    "string": r'"""(?:[^"\\]|\\.|"(?!""))*+"""|' + r"'''(?:[^'\\]|\\.|'(?!''))*+'''|"
    r'"(?:[^"\\\n\r]|\\.)*+"|' + r"'(?:[^'\\\n\r]|\\.)*+'",
    "iri": r'<(?:[^\x00-\x20<>"{}|^`\\]|' + _ESCAPE + r")*>",
    "blank": r"_:\w(?:[\w.\-·]*[\w\-·])?",
    "name": r"(?:[^\W\d_](?:[\w.\-·]*[\w\-·])?)?:"
    rf"(?:(?:[\w:]|{_LOCAL})(?:(?:[\w.:\-·]|{_LOCAL})*(?:[\w:\-·]|{_LOCAL}))?)?",
    "variable": r"[?$]\w+",
    "language": r"@[A-Za-z]+(?:-[A-Za-z0-9]+)*",
    "number": r"(?:\d+\.\d*|\.\d+|\d+)[eE][+-]?\d+|\d*\.\d+|\d+",
    "word": r"[A-Za-z_]\w*",
    "sign": r"\^\^|&&|\|\||!=|<=|>=|\S",
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
    """The tokens of a query, comments left out; nothing is refused here. Those of the last text are remembered.

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
