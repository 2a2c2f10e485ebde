"""Aggregates that follow solutions as they come and go: exact in whatever order (real sums in units of 2^-1074)."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Literal, Protocol

from streamgauge.model.terms import Term

Cells = tuple[Any, ...]
One = tuple[Term | None, Any]
"""What one solution brings to an aggregate: a term and its number, either ``None`` when it has none."""

_UNIT = 1 << 1074  # every finite double is a whole multiple of 2^-1074


@dataclass(frozen=True, slots=True)
class Kind:
    """What an aggregate does with its solutions; ``whole`` sums are of integers, in digits of any length."""

    function: Literal["count", "sum", "least", "greatest"]
    distinct: bool = False
    whole: bool = False

    def columns(self, index: int) -> dict[str, str]:
        """The columns, with Spark's types, in which the aggregate at this position says its value."""
        if self.function == "count":
            return {f"a{index}_count": "bigint"}
        if self.function == "sum":
            number = "string" if self.whole else "double"
            return {f"a{index}_sum": number, f"a{index}_count": "bigint", f"a{index}_rows": "bigint"}
        return {f"a{index}_term": "string"}

    def start(self) -> "Tally":
        """A tally of nothing."""
        if self.function in ("least", "greatest"):
            return _Extreme(1 if self.function == "least" else -1)
        plain: Tally = _Count() if self.function == "count" else _Sum(1 if self.whole else _UNIT)
        return _Distinct(plain) if self.distinct else plain


class Tally(Protocol):
    """An aggregate over the solutions that are there."""

    def add(self, one: One) -> None:
        """A solution comes."""

    def take(self, one: One) -> None:
        """A solution goes."""

    def value(self) -> Cells:
        """The aggregate's columns now."""


class _Count:
    def __init__(self) -> None:
        self.count = 0

    def add(self, one: One) -> None:
        self.count += one[0] is not None

    def take(self, one: One) -> None:
        self.count -= one[0] is not None

    def value(self) -> Cells:
        return (self.count,)


class _Sum:
    """The numbers' sum in units of 1 / ``scale``, how many they are, and how many solutions have none."""

    def __init__(self, scale: int) -> None:
        self.scale, self.total, self.count, self.errors = scale, 0, 0, 0
        self.special: Counter[str] = Counter()

    def add(self, one: One) -> None:
        self._change(one[1], 1)

    def take(self, one: One) -> None:
        self._change(one[1], -1)

    def _change(self, number: Any, sign: int) -> None:
        if number is None:
            self.errors += sign
            return
        self.count += sign
        if self.scale == 1:
            self.total += sign * number
        elif math.isfinite(number):
            above, below = number.as_integer_ratio()
            self.total += sign * above * (self.scale // below)
        else:
            self.special[str(number)] += sign

    def value(self) -> Cells:
        """The sum, the count, and the count again only when every solution has a number (-1 otherwise)."""
        whole = self.count if not self.errors else -1
        return self._sum(), self.count, whole if self.count or self.errors else None

    def _sum(self) -> str | float:
        if self.scale == 1:
            return str(self.total)
        if self.special["nan"] or (self.special["inf"] and self.special["-inf"]):
            return math.nan
        if self.special["inf"] or self.special["-inf"]:
            return math.inf if self.special["inf"] else -math.inf
        try:
            return self.total / self.scale
        except OverflowError:
            return math.inf if self.total > 0 else -math.inf


class _Distinct:
    """Another tally over each term once."""

    def __init__(self, plain: Tally) -> None:
        self.plain = plain
        self.copies: Counter[Term | None] = Counter()

    def add(self, one: One) -> None:
        self.copies[one[0]] += 1
        if self.copies[one[0]] == 1:
            self.plain.add(one)

    def take(self, one: One) -> None:
        self.copies[one[0]] -= 1
        if not self.copies[one[0]]:
            del self.copies[one[0]]
            self.plain.take(one)

    def value(self) -> Cells:
        return self.plain.value()


class _Extreme:
    """The term of the least number (times ``sign``) that is there; NaN is the greatest."""

    def __init__(self, sign: int) -> None:
        self.sign, self.errors = sign, 0
        self.heap: list[tuple[int, float, Term]] = []
        self.gone: Counter[tuple[int, float, Term]] = Counter()

    def add(self, one: One) -> None:
        if (entry := self._entry(one)) is None:
            self.errors += 1
        else:
            heappush(self.heap, entry)

    def take(self, one: One) -> None:
        if (entry := self._entry(one)) is None:
            self.errors -= 1
        else:
            self.gone[entry] += 1

    def _entry(self, one: One) -> tuple[int, float, Term] | None:
        term, number = one
        if term is None or number is None:
            return None
        return (self.sign, 0, term) if math.isnan(number) else (0, self.sign * number, term)

    def value(self) -> Cells:
        while self.heap and self.gone.get(self.heap[0]):
            entry = heappop(self.heap)
            self.gone[entry] -= 1
            if not self.gone[entry]:
                del self.gone[entry]
        return (self.heap[0][2] if self.heap and not self.errors else None,)


def groups(rows: Iterable[Cells], kinds: Sequence[Kind], keyed: bool, reports: int) -> Iterator[Cells]:
    """One group's rows (lo, hi, then term and number of each aggregate) to its aggregates over intervals of reports.

    A group with a key is there while it has solutions; one without is in every report.
    """
    group = _Moving([kind.start() for kind in kinds], keyed)
    for low, high, *given in rows:
        yield from group.forward(low)
        group.enter(high, [(given[2 * index], given[2 * index + 1]) for index in range(len(kinds))])
    yield from group.forward(reports)
    yield from group.rest()


class _Moving:
    """A group that moves from report to report; what does not change is said once."""

    def __init__(self, tallies: Sequence[Tally], keyed: bool) -> None:
        self.tallies, self.keyed = tallies, keyed
        self.at, self.rows, self.entered = 0, 0, 0
        self.ends: list[tuple[int, int, list[One]]] = []
        self.said: tuple[int, int, Cells] | None = None

    def enter(self, high: int, given: list[One]) -> None:
        """A solution comes at the report where the group is and stays to ``high``."""
        self.rows += 1
        self.entered += 1
        heappush(self.ends, (high, self.entered, given))
        for tally, one in zip(self.tallies, given, strict=True):
            tally.add(one)

    def forward(self, report: int) -> Iterator[Cells]:
        """What holds up to before ``report``, which is where the group is then."""
        while self.ends and self.ends[0][0] < report:
            yield from self._hold(self.ends[0][0] + 1)
            self._leave()
        yield from self._hold(report)

    def _leave(self) -> None:
        while self.ends and self.ends[0][0] < self.at:
            _, _, given = heappop(self.ends)
            self.rows -= 1
            for tally, one in zip(self.tallies, given, strict=True):
                tally.take(one)

    def _hold(self, until: int) -> Iterator[Cells]:
        """The group as it is, from where it is to before ``until``."""
        if self.at < until:
            if self.rows or not self.keyed:
                cells = tuple(cell for tally in self.tallies for cell in tally.value())
                yield from self._say(self.at, until - 1, cells)
            self.at = until

    def _say(self, low: int, high: int, cells: Cells) -> Iterator[Cells]:
        if self.said and self.said[1] == low - 1 and self.said[2] == cells:
            self.said = self.said[0], high, cells
        else:
            yield from self.rest()
            self.said = low, high, cells

    def rest(self) -> Iterator[Cells]:
        """What was held back because it might have gone on."""
        if self.said:
            yield self.said[0], self.said[1], *self.said[2]
            self.said = None
