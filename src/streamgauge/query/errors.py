"""Query errors: what is wrong, and where in the text."""

from typing import Final

from streamgauge.formats.bounds import LOCAL, BoundError, TextBounds, check_sparql
from streamgauge.model.mistake import MistakeError

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
