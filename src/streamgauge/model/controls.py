"""Characters that steer whatever shows them: terminals (C0, C1), the direction of text, the ends of lines.

A term, a name or the words of another server may hold any of them, so that a stranger could write to a terminal, or
show a text in another order than it has. Each place that shows text to people passes it through ``visible``.
"""

import re
from typing import Final

_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks, embeddings, overrides and isolates of direction
    "\u2028\u2029\ud800-\udfff\ufffe\uffff]"  # separators of lines and paragraphs, half characters, none
    "|\r(?!\n)"
)


def visible(text: str) -> str:
    r"""The text with each control character as ``\uXXXX``, as JSON and N-Triples write it; lines and tabs stay."""
    return _CONTROLS.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
