"""Where the reader of a text can be continued by another one: at a line, with what it knows of the lines before.

The source of the bytes reads the mark each time the reader requests more of them: by then the reader has delivered the
elements of all complete lines, except of those that it holds.

Worked example: a reader of N-Quads ends a graph where the next one begins. It has read lines 1 to 5, and the open graph
began with line 4: the mark is the beginning of line 4, so that ``held`` are the bytes of lines 4 and 5.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from streamgauge.formats.charsets import is_ascii_based


class MarkedLine(NamedTuple):
    """A line at which to continue: ``held`` bytes before the next one, with the reader's ``state`` there (JSON)."""

    held: int
    state: Mapping[str, Any]


class LineMark:
    """The mark of a reader, which begins with the ``state`` that an earlier reader had at the same place.

    ``charset`` is that of the bytes.
    """

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        self._before = state or {}
        self._values: dict[str, Callable[[], Any]] = {}
        self.line: int = self._before.get("line", 0)
        """The number of lines read."""
        self.charset = "utf-8"
        self.open: Callable[[], bool] = lambda: False
        """Whether the last line belongs to an element that is not complete, and whose lines are not held."""
        self.at = 0
        """The line of the statement that was delivered last, where the reader notes it."""
        self._chunks: deque[tuple[int, int, bytes]] | None = None
        self._begun: int | None = None

    def carry(self, name: str, value: Callable[[], Any]) -> Any:
        """Carry a value (a copy, as JSON) to the reader that continues; returns that of the earlier reader, if any."""
        self._values[name] = value
        return self._before.get(name)

    def hold(self) -> None:
        """Remember the lines of the open element, which the reader that continues has to read again."""
        self._chunks, self._begun = deque(), self.line + 1

    def begin(self) -> None:
        """Record that the open element, which is not complete, begins with the line ``at``."""
        self._begun = self.at

    def take(self, first: int, lines: bytes) -> None:
        """Record lines that are read, by the number of the first."""
        self.line = first + lines.count(b"\n") - lines.endswith(b"\n")
        self._add(first, len(lines), lines)

    def pass_over(self, line: int, size: int) -> None:
        """Record a line of so many bytes that is refused without being read."""
        self.line = line
        self._add(line, size, b"")

    def _add(self, first: int, size: int, lines: bytes) -> None:
        if self._chunks is not None:
            self._chunks.append((first, size, lines))
            self._forget()

    def here(self) -> MarkedLine | None:
        """The line at which to continue; ``None`` if there is none since the last one."""
        if self.open() or not is_ascii_based(self.charset):
            return None
        held, line = self._held(), self.line if self._begun is None else self._begun - 1
        # The lines that the reader got were converted, so their sizes are not those in the file.
        if held and self.charset not in ("utf-8", "ascii"):
            return None
        return MarkedLine(held, {"line": line} | {name: value() for name, value in self._values.items()})

    def _forget(self) -> None:
        """Drop the lines before the open element's."""
        chunks = self._chunks
        while chunks and len(chunks) > 1 and (self._begun is None or chunks[1][0] <= self._begun):
            chunks.popleft()

    def _held(self) -> int:
        if not self._chunks or self._begun is None:
            return 0
        self._forget()
        first, size, lines = self._chunks[0]
        at = 0
        for _ in range(self._begun - first):
            at = lines.index(b"\n", at) + 1
        return size - at + sum(size for _, size, _ in list(self._chunks)[1:])
