"""Aggregates that support removal: exact sums as integers, extremes as counted heaps."""

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, cast

from streamgauge.incremental.crossovers import REMEMBERED_VALUES
from streamgauge.model.algebra import Aggregate
from streamgauge.model.terms import Term
from streamgauge.sparql.aggregates import rounded
from streamgauge.sparql.arithmetic import quotient
from streamgauge.sparql.comparison import descending, value_key, value_keys
from streamgauge.sparql.values import (
    DECIMAL,
    DOUBLE,
    EXACT,
    FLOAT,
    INTEGER,
    STRING,
    TAGGED,
    Value,
    read,
    typed,
    written,
)

if TYPE_CHECKING:
    from streamgauge.incremental.group_values import GroupValues

_FIXED: Final = 1 << 1100
"""Every xsd:double is a whole number of 2^-1100."""

_known_units: dict[float, int] = {}

Cell = Term | None


class Accumulator(ABC):
    """An aggregate over values that are added and removed; ``None`` is unbound or an error.

    ``costly`` if computing a result scans the values: ``cost`` is their number. ``ordered`` if the order in which
    values come and go decides about the result.
    """

    costly = ordered = False

    @property
    def cost(self) -> int:
        """The number of values that a result scans."""
        return 0

    @abstractmethod
    def add(self, value: Cell, copies: int) -> None:
        """Add copies of a value; a negative number removes."""

    def add_all(self, values: "GroupValues") -> None:
        """Add the values of many rows."""
        for value, copies in values if self.ordered else values.distinct():
            self.add(value, copies)

    @abstractmethod
    def result(self) -> Cell:
        """The aggregate, ``None`` if it is unbound."""


class CountAccumulator(Accumulator):
    """COUNT: of rows, or of the values that are bound."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Cell, copies: int) -> None:
        """Count ``copies`` of a value unless it is unbound."""
        if value is not None:
            self._count += copies

    def add_all(self, values: "GroupValues") -> None:
        """Count the bound ones of these values."""
        self._count += values.bound()

    def result(self) -> Cell:
        """The count as an xsd:integer."""
        return typed(str(self._count), "integer")


class Sum(Accumulator):
    """SUM: exact under any sequence of changes; unbound while a value is not a number."""

    def __init__(self) -> None:
        self.copies = 0
        self.bad = 0
        # One count per datatype: SPARQL promotes a sum to the widest kind present, so when the last double leaves, the
        # result has to become a decimal again.
        self._kinds = [0, 0, 0, 0]
        # Integers, decimals and floats are summed separately, each exactly. A running float sum would depend on the
        # order of arrivals and keep the rounding errors of values that have left: 1e16 + 1 - 1e16 would leave 0.
        self._whole = 0
        self._point = Decimal(0)
        self._units = 0
        # NaN and the infinities cannot be subtracted again, so they are counted.
        self._special: dict[str, int] = {}

    def add(self, value: Cell, copies: int) -> None:
        """Add or remove; floats are counted in units in which all of them are integers."""
        number = None if value is None else read(value)
        self.copies += copies
        if number is None or number.kind > DOUBLE:
            self.bad += copies
            return
        kind, amount = number.kind, number.value
        self._kinds[kind] += copies
        if kind == INTEGER:
            self._whole += amount * copies
        elif kind == DECIMAL:
            # EXACT has unlimited precision: the default context would round to 28 digits, and removal would not undo
            # an addition.
            change = amount if copies == 1 else EXACT.multiply(amount, Decimal(copies))
            self._point = EXACT.add(self._point, change)
        elif math.isfinite(amount):
            self._units += _units(amount) * copies
        else:
            name = str(amount)
            self._special[name] = self._special.get(name, 0) + copies

    def add_all(self, values: "GroupValues") -> None:
        """Add or remove; integers in one sum."""
        if (integers := values.integers()) is None:
            super().add_all(values)
            return
        total, copies = integers
        self._whole += total
        self.copies += copies
        self._kinds[INTEGER] += copies

    def exact(self) -> int | Decimal:
        """The sum of the integers and decimals."""
        return EXACT.add(self._point, Decimal(self._whole)) if self._kinds[DECIMAL] else self._whole

    def real(self, over: int) -> float:
        """The sum divided by ``over``, rounded once, in the widest kind."""
        # INF + -INF is NaN, like anything plus NaN; a single infinity absorbs all finite values.
        present = {name for name, copies in self._special.items() if copies}
        if present:
            return float("nan") if "nan" in present or len(present) > 1 else float(present.pop())
        # One fraction of integers for floats, decimals and integers, so that the result is rounded a single time,
        # whatever came and went before.
        top, bottom = self._units, _FIXED
        if self._whole or self._point:
            above, below = self.exact().as_integer_ratio()
            top, bottom = top * below + above * bottom, bottom * below
        return rounded(top, bottom * over, self.kind)

    @property
    def kind(self) -> int:
        """The widest kind of the numbers."""
        return max((kind for kind in range(4) if self._kinds[kind]), default=INTEGER)

    def result(self) -> Cell:
        """The sum in its widest kind."""
        if self.bad:
            return None
        kind = self.kind
        return written(Value(kind, self.exact() if kind <= DECIMAL else self.real(1)))


class Average(Sum):
    """AVG: 0 over nothing; integers and decimals divide to at least 18 digits."""

    def result(self) -> Cell:
        """The sum over the number of values."""
        # SPARQL 1.1, 18.5.1.4: the average of nothing is "0"^^xsd:integer, not an error.
        if not self.copies:
            return written(Value(INTEGER, 0))
        if self.bad:
            return None
        kind = self.kind
        if kind <= DECIMAL:
            return written(Value(DECIMAL, quotient(self.exact(), self.copies)))
        return written(Value(kind, self.real(self.copies)))


def _units(amount: float) -> int:
    """A finite float as a multiple of 2^-1100."""
    unit = _known_units.get(amount)
    if unit is None:
        if len(_known_units) >= REMEMBERED_VALUES:
            _known_units.clear()
        top, bottom = amount.as_integer_ratio()
        # The denominator of a float is a power of two, and at most 2 ** 1074, so this division has no remainder.
        unit = _known_units[amount] = top * (_FIXED // bottom)
    return unit


class Extreme(Accumulator):
    """MIN and MAX: a heap from which removed values are dropped lazily.

    Numbers are keyed by their values; after the first other term, all terms are keyed by ``value_key``. Among terms
    that are equal by value the least one wins.
    """

    costly = True

    def __init__(self, function: str) -> None:
        self._function, self._sign = function, 1 if function == "MIN" else -1
        self._counts: dict[Cell, int] = {}
        self._mixed = False
        self._heap: list[tuple[Any, Term]] = []
        self._entering = 0

    @property
    def cost(self) -> int:
        """The values that entered the heap since the last result, if it holds other terms than numbers."""
        return self._entering

    def add(self, value: Cell, copies: int) -> None:
        """Count the value; a new one enters the heap."""
        before = self._counts.get(value, 0)
        if before + copies:
            self._counts[value] = before + copies
            if not before and value is not None:
                self._push(value)
        else:
            del self._counts[value]

    def add_all(self, values: "GroupValues") -> None:
        """Count the values; the first ones become a heap together."""
        if self._counts:
            super().add_all(values)
            return
        self._counts = dict(values.distinct())
        if self._mixed or (amounts := values.amounts()) is None:
            self._remake()
            return
        self._heap = list(zip((self._sign * amounts).tolist(), cast(Iterable[Term], self._counts), strict=True))
        heapq.heapify(self._heap)

    def _push(self, value: Term) -> None:
        rank = self._key(value) if self._mixed else self._amount(value)
        # The first value that is not a finite number changes the keys of all others, too.
        if rank is None:
            self._remake()
            return
        heapq.heappush(self._heap, (rank, value))
        if self._mixed:
            self._entering += 1
        # Values that left stay in the heap until they reach its top. Made anew at twice the size, it costs O(1) a
        # value.
        if len(self._heap) > 2 * len(self._counts) + 64:
            self._remake()

    def _remake(self) -> None:
        """Rebuild the heap from the current values."""
        values = [value for value in self._counts if value is not None]
        self._heap = list(zip(self._ranks(values), values, strict=True))
        heapq.heapify(self._heap)
        self._entering += len(values) if self._mixed else 0

    def _ranks(self, values: Sequence[Term]) -> Sequence[Any]:
        """The heap keys of terms: their amounts, unless a term is or was not a finite number."""
        if not self._mixed:
            amounts = list(map(self._amount, values))
            if None not in amounts:
                return amounts
            # It never becomes False again: a group whose only string has left keeps the slower keys, which are correct
            # for numbers, instead of rebuilding the heap with each such value that comes and goes.
            self._mixed = True
        keys = value_keys(values)
        return keys if self._sign > 0 else [tuple(map(descending, key)) for key in keys]

    def _key(self, value: Term) -> tuple[Any, ...]:
        """The heap key of a term among terms of all kinds."""
        key = value_key(read(value))
        return key if self._sign > 0 else tuple(map(descending, key))

    def _amount(self, value: Term) -> Any:
        """A finite number, negated for MAX; ``None`` for any other term."""
        known = read(value)
        if known.kind > DOUBLE or (known.kind >= FLOAT and not math.isfinite(known.value)):
            return None
        amount: int | Decimal | float = known.value
        if self._sign > 0:
            return amount
        # Decimal's unary minus rounds to the precision of the context; EXACT does not.
        return EXACT.minus(amount) if isinstance(amount, Decimal) else -amount

    def result(self) -> Cell:
        """The least (or greatest) value."""
        self._entering = 0
        if None in self._counts:
            return None
        # The heap may still have a value that left and came back, twice: both entries stand for the same count.
        while self._heap and self._heap[0][1] not in self._counts:
            heapq.heappop(self._heap)
        return self._heap[0][1] if self._heap else None


class SampleAccumulator(Accumulator):
    """SAMPLE: the oldest value; unbound ones are skipped."""

    ordered = True

    def __init__(self) -> None:
        self._counts: dict[Term, int] = {}

    def add(self, value: Cell, copies: int) -> None:
        """Count bound values in order of arrival."""
        if value is not None:
            self._counts[value] = self._counts.get(value, 0) + copies
            if not self._counts[value]:
                del self._counts[value]

    def result(self) -> Cell:
        """The value that entered first among those present; ``None`` without any."""
        # The oldest and not any value: a row would otherwise change although nothing that it depends on did, and each
        # change of the sample is a row removed and a row added.
        return next(iter(self._counts), None)


class Concat(Accumulator):
    """GROUP_CONCAT: strings in code point order (SPARQL leaves the order open); unbound while a value is no string."""

    costly = True

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._counts: dict[str, int] = {}
        self._bad = self._characters = 0

    @property
    def cost(self) -> int:
        """All strings, which are sorted, and one value per 64 characters."""
        return len(self._counts) + self._characters // 64

    def add(self, value: Cell, copies: int) -> None:
        """Count a string, with or without language tag; anything else is an error."""
        text = None if value is None else _text(read(value))
        if text is None:
            self._bad += copies
            return
        self._counts[text] = self._counts.get(text, 0) + copies
        self._characters += copies * (len(text) + len(self._separator))
        if not self._counts[text]:
            del self._counts[text]

    def result(self) -> Cell:
        """The joined strings as a simple literal."""
        if self._bad:
            return None
        # Any order is right by SPARQL, but it must follow from the content alone: the same bag reached by different
        # changes has to give the same term, or Istream would report a difference that is none.
        texts = [text for text in sorted(self._counts) for _ in range(self._counts[text])]
        return written(Value(STRING, self._separator.join(texts)))


def _text(value: Value) -> str | None:
    """The characters of a string; ``None`` for any other term."""
    return value.value if value.kind == STRING else value.value[0] if value.kind == TAGGED else None


class DistinctAccumulator(Accumulator):
    """DISTINCT inside an aggregate: a value counts once while it has copies."""

    def __init__(self, inner: Accumulator) -> None:
        self._inner, self.costly, self.ordered = inner, inner.costly, inner.ordered
        self._counts: dict[Cell, int] = {}

    @property
    def cost(self) -> int:
        """The cost without DISTINCT."""
        return self._inner.cost

    def add(self, value: Cell, copies: int) -> None:
        """Pass on first and last copies."""
        before = self._counts.get(value, 0)
        if before + copies:
            self._counts[value] = before + copies
            if not before:
                self._inner.add(value, 1)
        else:
            del self._counts[value]
            self._inner.add(value, -1)

    def result(self) -> Cell:
        """The aggregate of the values that have copies."""
        return self._inner.result()


_MAKE: Final[dict[str, Callable[[Aggregate], Accumulator]]] = {
    "COUNT": lambda _: CountAccumulator(),
    "SUM": lambda _: Sum(),
    "AVG": lambda _: Average(),
    "MIN": lambda _: Extreme("MIN"),
    "MAX": lambda _: Extreme("MAX"),
    "SAMPLE": lambda _: SampleAccumulator(),
    "GROUP_CONCAT": lambda aggregate: Concat(aggregate.separator),
}


def accumulator(aggregate: Aggregate) -> Accumulator:
    """An empty accumulator for an aggregate."""
    plain = _MAKE[aggregate.function](aggregate)
    return DistinctAccumulator(plain) if aggregate.distinct else plain
