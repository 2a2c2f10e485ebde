r"""Differences between SPARQL 1.1 and 1.2 in the meaning of a text; ``VERSION "1.1"`` in it selects the former.

| | 1.1 | 1.2 |
|---|---|---|
| escapes like ``\u0041`` | anywhere, before the text is read (19.2) | in strings and IRIs |
| conditions that are ill-typed numbers or booleans | false (17.2.2) | errors |
| conditions that are language-tagged strings | false where empty, else true | errors |
| triple terms, reifiers, annotations, base direction and their functions | refused | supported |
"""

import re
from typing import Final

from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD, Term

VERSIONS: Final = ("1.1", "1.2")
LATER_SIGNS: Final = frozenset({"<<", "<<(", "{|", "~"})
LATER_FUNCTIONS: Final = frozenset(
    ("LANGDIR", "HASLANG", "HASLANGDIR", "ISTRIPLE", "SUBJECT", "PREDICATE", "OBJECT", "TRIPLE", "STRLANGDIR")
)
"""Signs and functions that SPARQL 1.1 lacks."""

_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_FALSE, _NOTHING = f'"false"^^<{XSD}boolean>', '""'
_BOOLEAN: Final = frozenset(
    (
        *("=", "!=", "<", ">", "<=", ">=", "!", "&&", "||", "IN", "BOUND", "SAMETERM", "REGEX", "CONTAINS"),
        *("STRSTARTS", "STRENDS", "LANGMATCHES", "ISIRI", "ISBLANK", "ISLITERAL", "ISNUMERIC", f"<{XSD}boolean>"),
    )
)
"""Operators and functions that return booleans or errors, so that their value is their truth."""
_LOGICAL: Final[tuple[Term, ...]] = tuple(
    f"<{XSD}{name}>"
    for name in (
        *("boolean", "integer", "decimal", "float", "double", "nonPositiveInteger", "negativeInteger", "long", "int"),
        *("short", "byte", "nonNegativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
        "positiveInteger",
    )
)


def announced(text: str, version: str | None) -> str:
    """The text with a VERSION declaration in front; unchanged for ``None``."""
    return text if version is None else f'VERSION "{version}" {text}'


def is_earlier(version: str | None) -> bool:
    """Whether an announced version is before SPARQL 1.2."""
    return version in ("1.0", "1.1")


def decoded(text: str) -> str:
    """The text with all code point escapes replaced (SPARQL 1.1, 19.2)."""
    return _ESCAPE.sub(lambda escape: chr(int(escape[1] or escape[2], 16)), text)


def encoded_position(text: str, position: int) -> int:
    """The position in a text of a position in ``decoded(text)``."""
    for escape in _ESCAPE.finditer(text):
        if escape.start() >= position:
            break
        position += len(escape[0]) - 1
    return position


def truth(expression: al.Expression) -> al.Expression:
    """An expression of SPARQL 1.2 whose value is the effective boolean value that SPARQL 1.1 defines."""
    if isinstance(expression, al.Exists) or (isinstance(expression, al.Call) and expression.operator in _BOOLEAN):
        return expression
    plain = al.Call("!", (al.Call("!", (expression,)),))
    # ``!!x`` is an error for an ill-typed number, which SPARQL 1.1 calls false.
    ill = al.Call("IN", (al.Call("DATATYPE", (expression,)), *_LOGICAL))
    tagged = al.Call(
        "&&", (al.Call("ISLITERAL", (expression,)), al.Call("!=", (al.Call("LANG", (expression,)), _NOTHING)))
    )
    filled = al.Call("!=", (al.Call("STR", (expression,)), _NOTHING))
    return al.Call("IF", (tagged, filled, al.Call("COALESCE", (plain, al.Call("IF", (ill, _FALSE, plain))))))
