"""The lines of YABench's ORACLE_ files, and how its content-change comparator gathers records into them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from streamgauge.semantics.refusal import RefusedError

UNSET = -1
"""What YABench writes, and adds up, where a record has no such figure."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: sizes in rows and triples, borders and delay in ms; ``found`` counts rows that both sides have."""

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
        """The line as YABench writes it."""
        cells = (self.actual, self.expected, self.input, self.start, self.end, self.delay)
        return ",".join(map(str, (self.precision, self.recall, *cells)))


def parse(text: str) -> Line:
    """The line of a text; ValueError when it has not eight numbers."""
    cells = text.strip().split(",")
    if len(cells) != 8:
        raise ValueError(f"eight numbers are expected: {text[:80]}")
    actual, expected, size, start, end, delay = map(int, cells[2:])
    return Line(float(cells[0]), float(cells[1]), actual, expected, size, start, end, delay)


MOST_EMPTY = 300_000
"""Windows without a record that are written one after the other."""


@dataclass
class Gathering:
    """Records to lines: by the slide in which a record ends; means over records; ``size_of`` counts input triples."""

    size: int
    slide: int
    size_of: Callable[[int, int], int]
    lines: list[Line] = field(default_factory=list)
    _records: list[Line] = field(default_factory=list)
    _number: int = 0
    _first: bool = True

    def add(self, record: Line) -> None:
        """Take a record; those before it are written as a line when it belongs to a later window."""
        number = self.number(record.end)
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
        return max(0, -(-end // self.slide) - 1)

    def flush(self) -> list[Line]:
        """Every line, the last one too. (YABench writes a line of nonsense when there was no record at all.)"""
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
            self.lines.append(Line(1.0, 1.0, 0, 0, 0, start, start + self.size, 0))

    def _merged(self, records: Sequence[Line]) -> Line:
        delays = [record.delay for record in records if record.delay > 0]
        start = min(record.start for record in records)
        return Line(
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
