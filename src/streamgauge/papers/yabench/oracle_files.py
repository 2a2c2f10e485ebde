"""Input and output of YABench's oracle (YABench/yabench a3acfe2), with its quirks.

It reads triple by triple, one ahead: the triple read ahead stays in the next window's content however late it is,
and is not in the buffer. It writes a line per window into ORACLE_ files, in which records of content changes are
merged.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from streamgauge.model.answer import Answer
from streamgauge.model.terms import Triple
from streamgauge.semantics.refusal import RefusedError

Timed = tuple[int, Triple]
"""A triple with its time in ms."""

Solution = frozenset[tuple[str, str]]
"""A solution mapping: variables with their terms, unbound ones left out."""


@dataclass(frozen=True, slots=True)
class OracleWindow:
    """A window's borders (ms, both inclusive) and its triples."""

    start: int
    end: int
    triples: tuple[Timed, ...]


@dataclass(frozen=True, slots=True)
class EngineReport:
    """An engine's report: ms after the start of the feed, and its rows."""

    end: int
    rows: tuple[Solution, ...]


class InputReader:
    """The input stream: the content of the current window, and a sorted buffer of earlier contents."""

    def __init__(self, stream: Sequence[Timed]) -> None:
        self._stream = stream
        self._at = 0
        self._content: list[Timed] = []
        self._buffer: list[Timed] = []
        self._held: set[Timed] = set()
        self._graph: int | None = None

    def window(self, start: int, end: int) -> OracleWindow | None:
        """The content of the next window, read up to its end; ``None`` after the stream's last triple."""
        # What was read ahead is kept here however late it is, even beyond ``end``: it is then in this window's
        # content.
        self._content = [timed for timed in self._content if timed[0] >= start]
        begin = self._at
        while self._at < len(self._stream) and self._stream[self._at][0] <= end:
            self._at += 1
        self._content += self._stream[begin : self._at]
        window = OracleWindow(start, end, tuple(self._content))
        if self._at < len(self._stream):
            self._content.append(self._stream[self._at])
            self._at += 1
        elif not self._content:
            return None
        self._keep(window.triples)
        return window

    def next_time(self) -> int | None:
        """The time of the next triple, which is added to the content; ``None`` at the end."""
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

    def from_buffer(self, start: int) -> OracleWindow:
        """Everything in the buffer from ``start`` on."""
        kept = self._buffer[bisect_left(self._buffer, (start,)) :]
        return OracleWindow(start, start, tuple(kept))

    def without_first(self, window: OracleWindow) -> OracleWindow:
        """The window without its first time; RefusedError if there is no later one, as YABench's oracle fails."""
        at = bisect_left(self._buffer, (window.start + 1,))
        if at == len(self._buffer):
            raise RefusedError(f"YABench's oracle fails at {window.end} ms: no start is left to try in gracious mode")
        start = self._buffer[at][0]
        return OracleWindow(start, window.end, tuple(self._buffer[at : self._after(window.end)]))

    def size(self, start: int, end: int) -> int:
        """The number of triples in the buffer between two times, both inclusive."""
        return max(0, self._after(end) - bisect_left(self._buffer, (start,)))

    def purge(self, floor: int) -> None:
        """Remove triples before ``floor`` from the buffer."""
        at = bisect_left(self._buffer, (floor,))
        self._held.difference_update(self._buffer[:at])
        del self._buffer[:at]

    def _after(self, end: int) -> int:
        return bisect_right(self._buffer, end, key=lambda timed: timed[0])

    def _keep(self, triples: Iterable[Timed]) -> None:
        """Insert triples into the sorted buffer without duplicates; they come nearly sorted."""
        for timed in triples:
            # Windows overlap, so that a triple comes once for each window that it is in.
            if timed not in self._held:
                self._held.add(timed)
                insort(self._buffer, timed)


class EngineReports:
    """The engine's reports in order; a last report without rows is dropped, as YABench's reader loses it."""

    def __init__(self, answers: Sequence[Answer], started: int) -> None:
        """``started`` is the feed's start on the answers' clock, ns."""
        self._reports = [_engine_report(answer, started) for answer in answers]
        if self._reports and not self._reports[-1].rows:
            self._reports.pop()
        self._at = 0

    def __len__(self) -> int:
        return len(self._reports)

    def next(self) -> EngineReport | None:
        """The next report; ``None`` after the last."""
        report = self.at(self._at)
        self._at += report is not None
        return report

    def at(self, index: int) -> EngineReport | None:
        """The report at a place; ``None`` after the last."""
        return self._reports[index] if index < len(self._reports) else None


def _engine_report(answer: Answer, started: int) -> EngineReport:
    return EngineReport((answer.received - started) // 1_000_000, solutions(answer.variables, answer.added))


def solutions(variables: Sequence[str], rows: Iterable[Sequence[str | None]]) -> tuple[Solution, ...]:
    """The solution mappings of rows, without unbound variables."""
    return tuple(frozenset((n, t) for n, t in zip(variables, row, strict=True) if t is not None) for row in rows)


Ask = Callable[[OracleWindow], tuple[Solution, ...]]
"""Evaluates the query over the content of a window."""

UNSET = -1
"""The number that YABench writes, and adds up, for an absent figure."""


@dataclass(frozen=True, slots=True)
class OracleLine:
    """A line: sizes in rows and triples, borders and delay in ms; ``found`` counts rows on both sides."""

    precision: float
    recall: float
    actual: int
    expected: int
    input: int
    start: int
    end: int
    delay: int
    found: int = 0

    def text(self) -> str:
        """The line in YABench's format."""
        cells = (self.actual, self.expected, self.input, self.start, self.end, self.delay)
        return ",".join(map(str, (self.precision, self.recall, *cells)))


def parse(text: str) -> OracleLine:
    """Parse a line; ValueError unless it has eight numbers."""
    cells = text.strip().split(",")
    if len(cells) != 8:
        raise ValueError(f"eight numbers are expected: {text[:80]}")
    actual, expected, size, start, end, delay = map(int, cells[2:])
    return OracleLine(float(cells[0]), float(cells[1]), actual, expected, size, start, end, delay)


MOST_EMPTY = 300_000
"""Maximum number of consecutive windows without a record."""


@dataclass
class OracleWriter:
    """Merges records into lines, by the slide in which they end; ``size_of`` counts input triples."""

    size: int
    slide: int
    size_of: Callable[[int, int], int]
    lines: list[OracleLine] = field(default_factory=list)
    _records: list[OracleLine] = field(default_factory=list)
    _number: int = 0
    _first: bool = True

    def add(self, record: OracleLine) -> None:
        """Add a record; if it is of a later window, the previous records are written as a line."""
        number = self.number(record.end)
        # The first record opens no new line, even if it is of a later window: empty lines lead up to it.
        if number == self._number or self._first:
            self._records.append(record)
            self._empty(self._number, number)
        else:
            if self._records:
                self.lines.append(self._merged(self._records))
            self._empty(self._number + 1, number)
            self._records = [record]
        self._number, self._first = number, False

    def number(self, end: int) -> int:
        """The smallest n >= 0 with (n + 1) slides at or after ``end``."""
        # With a slide of 5 s, the ends 1 to 5000 ms are of window 0, 5001 ms is of window 1.
        return max(0, -(-end // self.slide) - 1)

    def flush(self) -> list[OracleLine]:
        """All lines with the last one. (Without any record YABench writes a meaningless line.)"""
        if self._records:
            self.lines.append(self._merged(self._records))
        return self.lines

    def _empty(self, begin: int, end: int) -> None:
        if end - begin > MOST_EMPTY:
            raise RefusedError(
                f"an answer came {end - begin:,} windows after the one before it: YABench writes a line for each, and "
                f"no more than {MOST_EMPTY:,} are written here; judge without --as"
            )
        for number in range(begin, end):
            start = number * self.slide
            # An empty window without an answer is right: precision and recall are 1.
            self.lines.append(OracleLine(1.0, 1.0, 0, 0, 0, start, start + self.size, 0))

    def _merged(self, records: Sequence[OracleLine]) -> OracleLine:
        # Absent delays are -1 (``UNSET``). Negative ones, of answers that came before the window's end, are dropped as
        # well.
        delays = [record.delay for record in records if record.delay > 0]
        start = min(record.start for record in records)
        return OracleLine(
            precision=sum(record.precision for record in records) / len(records),
            recall=sum(record.recall for record in records) / len(records),
            actual=sum(record.actual for record in records),
            expected=sum(record.expected for record in records),
            input=self.size_of(start, start + self.size),
            start=start,
            end=max(record.end for record in records),
            delay=sum(delays) // max(1, len(delays)),
            found=sum(record.found for record in records),
        )
