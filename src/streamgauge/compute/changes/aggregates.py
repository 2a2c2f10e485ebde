"""Aggregates that take back: exact sums as integers, extremes as counted heaps."""

import heapq
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final, Protocol

import pyoxigraph as ox

from streamgauge.compute.changes.ordering import extreme
from streamgauge.compute.numbers import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    SCALE,
    UNKNOWN,
    Number,
    decimal,
    floating,
    integer,
    number,
    single,
)
from streamgauge.model.algebra import Aggregate
from streamgauge.model.terms import XSD, Term, datatype, is_literal
from streamgauge.wire.canonical import Canonical, parse_term

_CANONICAL = Canonical()
_FIXED: Final = 1 << 1100
"""Every xsd:double is a whole number of 2^-1100."""

_known_units: dict[float, int] = {}
_MOST_UNITS: Final = 20_000

Cell = Term | None


class Accumulator(Protocol):
    """Values come and go with a signed number of copies; ``None`` is unbound or an error."""

    def add(self, value: Cell, copies: int) -> None:
        """Take in (or back) copies of a value."""
        ...

    def result(self) -> Cell:
        """The aggregate of what is there, ``None`` when it is unbound."""
        ...


class Count:
    """COUNT: of rows, or of the values that are bound."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Cell, copies: int) -> None:
        """Count what is bound."""
        if value is not None:
            self._count += copies

    def result(self) -> Cell:
        """An xsd:integer."""
        return integer(self._count)


class Sum:
    """SUM: exact whatever comes and goes; unbound as long as something that is no number is there."""

    def __init__(self) -> None:
        self.copies = 0
        self.bad = 0
        self._kinds = [0, 0, 0, 0]
        self._exact = [0, 0, 0, 0]
        self._special: dict[str, int] = {}

    def add(self, value: Cell, copies: int) -> None:
        """Take in or back; floats are counted in units that make them whole."""
        read = UNKNOWN if value is None else number(value)
        self.copies += copies
        if not isinstance(read, Number):
            self.bad += copies
            return
        self._kinds[read.kind] += copies
        amount = read.value
        if isinstance(amount, int):
            self._exact[read.kind] += amount * copies
        elif math.isfinite(amount):
            self._exact[read.kind] += _units(amount) * copies
        else:
            name = str(amount)
            self._special[name] = self._special.get(name, 0) + copies

    def total(self) -> Number | tuple[int, int] | float | None:
        """The sum: a Number of integers or decimals, else a fraction or a special float; ``None`` out of range."""
        kind = self.kind
        if kind <= DECIMAL:
            scaled = self._exact[DECIMAL] + (self._exact[INTEGER] * SCALE if kind == DECIMAL else 0)
            value, bits = (scaled, 127) if kind == DECIMAL else (self._exact[INTEGER], 63)
            return Number(kind, value) if -(1 << bits) <= value < 1 << bits else None
        present = {name for name, copies in self._special.items() if copies}
        if present:
            return float("nan") if "nan" in present or len(present) > 1 else float(present.pop())
        units = self._exact[FLOAT] + self._exact[DOUBLE]
        if not self._exact[INTEGER] and not self._exact[DECIMAL]:
            return units, _FIXED
        scaled = self._exact[INTEGER] * SCALE + self._exact[DECIMAL]
        return units * SCALE + scaled * _FIXED, _FIXED * SCALE

    @property
    def kind(self) -> int:
        """The widest kind of number that is there."""
        return max((kind for kind in range(4) if self._kinds[kind]), default=INTEGER)

    def result(self) -> Cell:
        """The sum in its widest kind."""
        total = None if self.bad else self.total()
        if total is None:
            return None
        if isinstance(total, Number):
            return integer(int(total.value)) if total.kind == INTEGER else decimal(int(total.value))
        return _float(total, self.kind)


class Average(Sum):
    """AVG: 0 over nothing; integers and decimals divide to 18 digits."""

    def result(self) -> Cell:
        """The sum over the number of values."""
        if not self.copies:
            return integer(0)
        total = None if self.bad else self.total()
        if total is None:
            return None
        if isinstance(total, Number):
            scaled = int(total.value) * (SCALE if total.kind == INTEGER else 1)
            if not -(1 << 127) <= scaled < 1 << 127:
                return None
            quotient = abs(scaled) // self.copies
            return decimal(-quotient if scaled < 0 else quotient)
        return _float(total, self.kind, self.copies)


def _units(amount: float) -> int:
    """A finite float in units that make every float whole."""
    found = _known_units.get(amount)
    if found is None:
        if len(_known_units) >= _MOST_UNITS:
            _known_units.clear()
        top, bottom = amount.as_integer_ratio()
        found = _known_units[amount] = top * (_FIXED // bottom)
    return found


def _float(value: tuple[int, int] | float, kind: int, copies: int = 1) -> Term:
    """The literal nearest to a fraction (or a special float) over a number of copies."""
    if isinstance(value, float):
        nearest = value
    else:
        try:
            nearest = value[0] / (value[1] * copies)
        except OverflowError:
            nearest = math.inf if value[0] > 0 else -math.inf
    text = floating(single(nearest) if kind == FLOAT else nearest, kind)
    return _CANONICAL.term(parse_term(text))


class Extreme:
    """MIN and MAX: a heap of numbers whose departed tops are dropped when seen; others go by pyoxigraph's order."""

    def __init__(self, function: str) -> None:
        self._function, self._sign = function, 1 if function == "MIN" else -1
        self._counts: dict[Cell, int] = {}
        self._odd = 0
        self._heap: list[tuple[int | Fraction, Term]] = []

    def add(self, value: Cell, copies: int) -> None:
        """Count the value; a new number also enters the heap."""
        before = self._counts.get(value, 0)
        if before + copies:
            self._counts[value] = before + copies
        else:
            del self._counts[value]
        rank = self._rank(value)
        if rank is None:
            self._odd += copies
        elif not before and value is not None:
            self._push(rank, value)

    def _rank(self, value: Cell) -> int | Fraction | None:
        read = UNKNOWN if value is None else number(value)
        if not isinstance(read, Number) or (isinstance(read.value, float) and not math.isfinite(read.value)):
            return None
        if isinstance(read.value, float) and read.value.is_integer():
            return self._sign * int(read.value)
        return self._sign * (read.value if read.kind == INTEGER and isinstance(read.value, int) else read.exact)

    def result(self) -> Cell:
        """The least (or greatest) value."""
        if None in self._counts:
            return None
        if self._odd:
            return self._by_order()
        while self._heap and self._heap[0][1] not in self._counts:
            heapq.heappop(self._heap)
        return self._heap[0][1] if self._heap else None

    def _push(self, rank: int | Fraction, value: Term) -> None:
        heapq.heappush(self._heap, (rank, value))
        if len(self._heap) > 2 * len(self._counts) + 64:
            self._heap = [entry for entry in set(self._heap) if entry[1] in self._counts]
            heapq.heapify(self._heap)

    def _by_order(self) -> Cell:
        values = [value for value in self._counts if value is not None]
        return extreme(self._function, values)


class Sample:
    """SAMPLE: the value that has been there longest; unbound ones are passed over."""

    def __init__(self) -> None:
        self._counts: dict[Term, int] = {}

    def add(self, value: Cell, copies: int) -> None:
        """Count the bound values."""
        if value is not None:
            self._counts[value] = self._counts.get(value, 0) + copies
            if not self._counts[value]:
                del self._counts[value]

    def result(self) -> Cell:
        """One of the values."""
        return next(iter(self._counts), None)


class Concat:
    """GROUP_CONCAT: strings in code point order, which SPARQL leaves open; unbound while there is anything else."""

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._counts: dict[str, int] = {}
        self._bad = 0

    def add(self, value: Cell, copies: int) -> None:
        """Count a string, with or without a language tag; anything else is an error."""
        text = None if value is None else _text(value)
        if text is None:
            self._bad += copies
            return
        self._counts[text] = self._counts.get(text, 0) + copies
        if not self._counts[text]:
            del self._counts[text]

    def result(self) -> Cell:
        """The strings between separators, a plain string."""
        if self._bad:
            return None
        texts = [text for text in sorted(self._counts) for _ in range(self._counts[text])]
        return str(ox.Literal(self._separator.join(texts)))


def _text(term: Term) -> str | None:
    """The characters of a string, ``None`` for any other term."""
    if not is_literal(term) or datatype(term) not in (XSD + "string", None):
        return None
    return parse_term(term).value


class Once:
    """DISTINCT inside an aggregate: a value counts while it has copies."""

    def __init__(self, inner: Accumulator) -> None:
        self._inner = inner
        self._counts: dict[Cell, int] = {}
        self.result: Callable[[], Cell] = inner.result

    def add(self, value: Cell, copies: int) -> None:
        """Pass on first and last copies."""
        before = self._counts.get(value, 0)
        if before + copies:
            self._counts[value] = before + copies
        else:
            del self._counts[value]
        if not before:
            self._inner.add(value, 1)
        elif not before + copies:
            self._inner.add(value, -1)


_MAKE: Final[dict[str, Callable[[Aggregate], Accumulator]]] = {
    "COUNT": lambda _: Count(),
    "SUM": lambda _: Sum(),
    "AVG": lambda _: Average(),
    "MIN": lambda _: Extreme("MIN"),
    "MAX": lambda _: Extreme("MAX"),
    "SAMPLE": lambda _: Sample(),
    "GROUP_CONCAT": lambda aggregate: Concat(aggregate.separator),
}


def accumulator(aggregate: Aggregate) -> Accumulator:
    """A fresh accumulator."""
    made = _MAKE[aggregate.function](aggregate)
    return Once(made) if aggregate.distinct else made
