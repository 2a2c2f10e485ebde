"""Texts of literals in HTML with their direction: the base direction, else by their letters.

Source: RDF 1.2 Concepts, 3.4; HTML, the elements ``bdi`` and the attribute ``dir``.
"""

import re
from typing import Final

from markupsafe import Markup, escape

_LITERAL: Final = re.compile(r"""("(?:[^"\\]|\\.)*"|'[^']*'(?=@))(?=(@[A-Za-z0-9-]+)?)""")
"""A text in quotes, as of N-Triples or of the playground's simple notation, and the tag after it."""


def directed(text: str) -> Markup:
    """A term or row as HTML; texts in quotes that may run from right to left are isolated."""
    if text.isascii() and "--" not in text:
        return escape(text)
    markup, end = Markup(), 0
    for match in _LITERAL.finditer(text):
        markup += escape(text[end : match.start()]) + _apart(match[1], (match[2] or "").partition("--")[2])
        end = match.end()
    return markup + escape(text[end:])


def _apart(quoted: str, direction: str) -> Markup:
    if direction in ("ltr", "rtl"):
        return Markup('<bdi dir="{}">{}</bdi>').format(direction, quoted)
    return escape(quoted) if quoted.isascii() else Markup("<bdi>{}</bdi>").format(quoted)
