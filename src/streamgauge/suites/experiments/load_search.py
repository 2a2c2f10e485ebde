"""The search for a limit on one axis: steps by a factor of two, then bisection, each value tried once."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

DIGITS = 4
"""Significant digits of fractional values, so that a repeated search tries the same values."""


class Harder(Enum):
    """The direction in which an axis gets harder for an engine."""

    GREATER = "greater"
    SMALLER = "smaller"


@dataclass(frozen=True, slots=True)
class SearchRange:
    """The range to search, from ``start`` within ``least`` to ``most``, until the bracket is narrow enough.

    Enough is a relative width of ``precision``, or adjacent integers if the values are ``whole``.
    """

    start: float
    least: float
    most: float
    harder: Harder = Harder.GREATER
    whole: bool = False
    precision: float = 0.05

    def __post_init__(self) -> None:
        """ValueError for bounds in the wrong order or an impossible precision."""
        if not 0 < self.least <= self.start <= self.most:
            raise ValueError(
                f"the search starts at {self.start:g}, which must be positive and from {self.least:g} to {self.most:g}"
            )
        if not 0 < self.precision < 1:
            raise ValueError(f"precision is {self.precision:g}: it must be between 0 and 1")

    def step(self, value: float, harder: bool) -> float | None:
        """The value twice or half as hard as ``value``; ``None`` at the end of the range."""
        greater = harder == (self.harder is Harder.GREATER)
        end = self.most if greater else self.least
        if value == end:
            return None
        stepped = self._rounded(value * 2 if greater else value / 2)
        return min(stepped, end) if greater else max(stepped, end)

    def between(self, one: float, other: float) -> float | None:
        """The geometric mean of a bracket; ``None`` if it is narrow enough."""
        low, high = sorted((one, other))
        if high / low <= 1 + self.precision:
            return None
        # Geometric, because precision is relative: both halves are narrower by the same factor.
        middle = self._rounded(math.sqrt(low * high))
        # Rounding may meet an end of the bracket: between 5 and 6, or with values of four digits.
        return middle if low < middle < high else None

    @property
    def fewest(self) -> int:
        """The minimum number of values that a successful search tries: a bracket of two, then its bisection.

        A precision of 5% takes 4 bisections, as 2 ** (1/16) is the first root below 1.05; whole values may need none.
        """
        if self.least == self.most:
            return 1
        return 2 if self.whole else 2 + max(0, math.ceil(math.log2(math.log(2) / math.log1p(self.precision))))

    def _rounded(self, value: float) -> float:
        return max(1.0, float(round(value))) if self.whole else float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True, slots=True)
class Bracket:
    """The hardest value that passed and the easiest that failed, ``None`` if the range has no such value."""

    passed: float | None
    failed: float | None


def search(passes: Callable[[float], bool], reach: SearchRange) -> Bracket:
    """The narrowest bracket around the limit, found with as few calls of ``passes`` as possible."""
    bracket = _bracket(passes, reach)
    passed, failed = bracket.passed, bracket.failed
    # Worked example: 1 and 2 pass, 4 fails. The mean of 2 and 4 is 2.828, which passes; that of 2.828 and 4 is 3.363,
    # and so on, until the bracket is narrower than 5%.
    while passed is not None and failed is not None and (middle := reach.between(passed, failed)) is not None:
        if passes(middle):
            passed = middle
        else:
            failed = middle
    return Bracket(passed, failed)


def _bracket(passes: Callable[[float], bool], reach: SearchRange) -> Bracket:
    """Steps by a factor of two from the start, harder while values pass, easier while they fail."""
    first, last = passes(reach.start), reach.start
    while (value := reach.step(last, harder=first)) is not None:
        # The first value with another outcome closes the bracket.
        if passes(value) != first:
            return Bracket(last, value) if first else Bracket(value, last)
        last = value
    return Bracket(last, None) if first else Bracket(None, last)
