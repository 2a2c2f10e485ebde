"""Halves of surrogate pairs: a Python string may hold them, but they are no characters, and UTF-8 cannot write them.

JSON's escapes and SPARQL's can name half of a surrogate pair; pyoxigraph takes a string with one for an open file, as
it does with all that it cannot read as text. SPARQL's can also name numbers behind the last character.
"""

import re
from typing import Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})))")
_LAST: Final = 0x10FFFF


def no_character(text: str, *, escaped: bool = False) -> tuple[str, int] | None:
    r"""The sentence about the first place that is no character, and the characters before; ``None`` where all are.

    ``escaped``: also what ``\uXXXX`` and ``\UXXXXXXXX`` stand for (SPARQL 1.1 Query, 19.2), not behind a backslash.
    """
    if not text.isascii() and (half := _SURROGATE.search(text)):
        return _sentence(half[0]), half.start()
    if escaped and ("\\u" in text or "\\U" in text):
        for found in _ESCAPE.finditer(text):
            code = int(found[2] or found[3], 16)
            if code > _LAST or 0xD800 <= code <= 0xDFFF:
                return _sentence(found[1]), found.start(1)
    return None


def _sentence(what: str) -> str:
    return f"{what!a} is half of a surrogate pair or behind the last character: not text that UTF-8 can write"
