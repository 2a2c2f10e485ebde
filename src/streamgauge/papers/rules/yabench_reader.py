"""How YABench's oracle (YABench/yabench a3acfe2) reads its input: triple by triple, one read ahead, with its slips.

A triple read ahead stays in the next window's content however late it is, and is not in the buffer.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streamgauge.model.answer import Answer
from streamgauge.model.terms import Triple
from streamgauge.semantics.refusal import RefusedError

Timed = tuple[int, Triple]
"""A triple with its time in ms."""

Solution = frozenset[tuple[str, str]]
"""A solution mapping: variables with their terms, unbound ones left out."""


@dataclass(frozen=True, slots=True)
class Content:
    """A window's borders (ms, both inside) and its triples."""

    start: int
    end: int
    triples: tuple[Timed, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """An engine's report: ms after the feed's start, and its rows."""

    end: int
    rows: tuple[Solution, ...]


class Reader:
    """The input stream: what was read into the present window, and a sorted buffer of what windows held."""

    def __init__(self, stream: Sequence[Timed]) -> None:
        self._stream = stream
        self._at = 0
        self._content: list[Timed] = []
        self._buffer: list[Timed] = []
        self._held: set[Timed] = set()
        self._graph: int | None = None

    def window(self, start: int, end: int) -> Content | None:
        """The content of the next window, read as far as its end; ``None`` after the stream's last triple."""
        self._content = [timed for timed in self._content if timed[0] >= start]
        begin = self._at
        while self._at < len(self._stream) and self._stream[self._at][0] <= end:
            self._at += 1
        self._content += self._stream[begin : self._at]
        found = Content(start, end, tuple(self._content))
        if self._at < len(self._stream):
            self._content.append(self._stream[self._at])
            self._at += 1
        elif not self._content:
            return None
        self._keep(found.triples)
        return found

    def next_time(self) -> int | None:
        """The time of the next triple, which is put into the content; ``None`` at the end."""
        if self._at >= len(self._stream):
            return None
        self._content.append(self._stream[self._at])
        self._at += 1
        return self._stream[self._at - 1][0]

    def next_graph(self) -> int | None:
        """The time of the next group, read up to and including the first triple after it; ``None`` at the end."""
        begin = self._at
        while self._at < len(self._stream):
            time = self._stream[self._at][0]
            self._at += 1
            changed = self._graph is not None and time != self._graph
            self._graph = time
            if changed:
                break
        else:
            self._graph = None
        self._content += self._stream[begin : self._at]
        return self._stream[begin][0] if self._at > begin else None

    def from_buffer(self, start: int) -> Content:
        """Everything in the buffer from ``start`` on."""
        kept = self._buffer[bisect_left(self._buffer, (start,)) :]
        return Content(start, start, tuple(kept))

    def without_first(self, window: Content) -> Content:
        """The window without its first moment; RefusedError where YABench's oracle stops for want of a later one."""
        at = bisect_left(self._buffer, (window.start + 1,))
        if at == len(self._buffer):
            raise RefusedError(f"YABench's oracle fails at {window.end} ms: no start is left to try in gracious mode")
        start = self._buffer[at][0]
        return Content(start, window.end, tuple(self._buffer[at : self._after(window.end)]))

    def size(self, start: int, end: int) -> int:
        """How many triples of the buffer lie between two times, both inside."""
        return max(0, self._after(end) - bisect_left(self._buffer, (start,)))

    def purge(self, floor: int) -> None:
        """Forget what the buffer holds before ``floor``."""
        at = bisect_left(self._buffer, (floor,))
        self._held.difference_update(self._buffer[:at])
        del self._buffer[:at]

    def _after(self, end: int) -> int:
        return bisect_right(self._buffer, end, key=lambda timed: timed[0])

    def _keep(self, triples: Iterable[Timed]) -> None:
        """Put triples into the buffer, each once; they come nearly sorted."""
        for timed in triples:
            if timed not in self._held:
                self._held.add(timed)
                insort(self._buffer, timed)


class Reports:
    """The engine's reports in order; a last report without rows is never seen (it is lost in reading)."""

    def __init__(self, answers: Sequence[Answer], started: int) -> None:
        """``started`` is the feed's start on the answers' clock, ns."""
        self._said = [_said(answer, started) for answer in answers]
        if self._said and not self._said[-1].rows:
            self._said.pop()
        self._at = 0

    def __len__(self) -> int:
        return len(self._said)

    def next(self) -> Said | None:
        """The next report; ``None`` after the last."""
        found = self.at(self._at)
        self._at += found is not None
        return found

    def at(self, index: int) -> Said | None:
        """The report of that place; ``None`` after the last."""
        return self._said[index] if index < len(self._said) else None


def _said(answer: Answer, started: int) -> Said:
    return Said((answer.received - started) // 1_000_000, solutions(answer.variables, answer.added))


def solutions(variables: Sequence[str], rows: Iterable[Sequence[str | None]]) -> tuple[Solution, ...]:
    """Rows as solution mappings."""
    return tuple(frozenset((n, t) for n, t in zip(variables, row, strict=True) if t is not None) for row in rows)
