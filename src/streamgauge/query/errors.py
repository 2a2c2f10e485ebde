"""Query errors: what is wrong, and where in the text."""


class QueryError(ValueError):
    """A query text that is refused; ``line`` and ``column`` count from 1, the message shows both and the line."""

    def __init__(self, what: str, text: str, line: int, column: int) -> None:
        lines = text.splitlines() or [""]
        shown = lines[min(line, len(lines)) - 1]
        super().__init__(f"line {line}, column {column}: {what}\n  {shown}\n  {' ' * (column - 1)}^")
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
