"""How deep triple terms lie in each other, seen before a parser that calls itself for each would fail on it."""

import re
from typing import Final

MOST: Final = 32
"""How deep triple terms may lie in each other in what others send."""

_PARTS: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|' + r"'''(?:[^'\\]|\\.|'(?!''))*'''|" + r'"(?:[^"\\\n]|\\.)*"|'
    r"'(?:[^'\\\n]|\\.)*'|<<|>>",
    re.DOTALL,
)
_STEP: Final = {"<<": 1, ">>": -1}


class NestingError(ValueError):
    """Triple terms too deep in each other; the sentence says how deep they may lie."""


def refuse_nested(text: str | bytes) -> None:
    """NestingError where triple terms or reified triples lie deeper in each other than ``MOST``."""
    read = text.decode("latin-1") if isinstance(text, bytes) else text
    if read.count("<<") <= MOST:
        return
    depth = 0
    for part in _PARTS.finditer(read):
        depth = max(0, depth + _STEP.get(part[0], 0))
        if depth > MOST:
            raise NestingError(f"triple terms lie more than {MOST} deep in each other: that is not read")
