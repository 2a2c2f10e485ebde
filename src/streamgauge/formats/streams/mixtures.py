"""Notes about columns and members whose values are numbers in some rows and texts in others."""

import re
from typing import Final

from streamgauge.model.terms import XSD, Term

_NUMBERS: Final = tuple(f"^^<{XSD}{name}>" for name in ("integer", "decimal", "double"))
_COMMA: Final = re.compile(r"[+-]?(?:[0-9]{1,3}(?:[. '\u00a0\u202f][0-9]{3})*|[0-9]+),[0-9]+")


class Mixtures:
    """Finds each column once in which a text stands beside numbers, or looks like one with a decimal comma.

    Such a text is an error in arithmetic, so that an average would silently miss its row. ``option`` names the mapping.
    """

    def __init__(self, option: str) -> None:
        self._option = option
        self._numeric: dict[str, bool] = {}
        self._noted: set[str] = set()

    def note(self, column: str, text: str, term: Term) -> str | None:
        """The sentence about a cell that differs from those before it in its column, if any."""
        numeric = term.endswith(_NUMBERS)
        known = self._numeric.get(column)
        if (known and numeric) or column in self._noted or not (numeric or term[-1] == '"'):
            return None
        self._numeric[column] = numeric
        mixed = known is not None and known != numeric
        if not mixed and (numeric or not _COMMA.fullmatch(text)):
            return None
        self._noted.add(column)
        kind = "a number, and texts came before it" if numeric else "read as a text"
        beside = " beside numbers" if mixed and not numeric else ""
        return (
            f"{text[:40]!r} in {column} is {kind}{beside}: arithmetic leaves texts out; a mapping ({self._option}) "
            "gives a column its datatype, decimalChar and null texts"
        )
