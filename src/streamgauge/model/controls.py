"""Control characters: of terminals (C0, C1), of text direction, and line separators.

A term, a name or a message of another server may contain them, and so send escape sequences to a terminal or display
text in another order. All text for users passes through ``visible``.
"""

import re
from typing import Final

_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks, embeddings, overrides and isolates of direction
    "\u2028\u2029\ud800-\udfff\ufffe\uffff]"  # separators of lines and paragraphs, surrogates, noncharacters
    # A lone carriage return would overwrite the beginning of its line on a terminal.
    "|\r(?!\n)"
)


def visible(text: str) -> str:
    r"""The text with each control character as ``\uXXXX``, as JSON and N-Triples write it; lines and tabs stay."""
    return _CONTROLS.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
