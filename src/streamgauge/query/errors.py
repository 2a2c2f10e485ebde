"""Query errors: what is wrong, and where in the text."""


class QueryError(ValueError):
    """A query text that is refused; ``line`` and ``column`` count from 1, the message shows both and the line."""

    def __init__(self, what: str, text: str, line: int, column: int) -> None:
        lines = text.splitlines() or [""]
        shown = lines[min(line, len(lines)) - 1]
        super().__init__(f"line {line}, column {column}: {what}\n  {shown}\n  {' ' * (column - 1)}^")
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[object, ...]:
        """Travels between processes as it is."""
        return _restore, (str(self), self.line, self.column)


def _restore(message: str, line: int, column: int) -> QueryError:
    error = QueryError.__new__(QueryError)
    error.args = (message,)
    error.line, error.column = line, column
    return error


def refusal(what: str, text: str, position: int) -> QueryError:
    """The error at a character position of the text."""
    before = text[:position]
    return QueryError(what, text, before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1)
