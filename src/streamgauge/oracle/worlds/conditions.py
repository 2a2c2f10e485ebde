"""Conditions on choices: the decisions, left open by SPARQL, under which a row exists (docs/semantics.md, Choices).

A choice is a variable over some options (``OpenChoice``) or over an interval (``OpenNumber``). A condition is a
conjunction that restricts some variables to some of their options, or to a span. Conditions are closed under
conjunction; a negation is a list of conditions, no two of which hold together, so that cases are counted once:

    not (g is "a" and x > 50)       g is "b"        g is "a" and x <= 50
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, Final, TypeAlias

from streamgauge.oracle.worlds.intervals import Interval

MAX_CASES: Final = 2_000
"""Maximum number of cases, worlds or options at one place; beyond it the verdict is unknown (docs/judging.md)."""


class CutOffError(ArithmeticError):
    """The search is too large; the message names the choices."""


class OpenChoice:
    """A decision that SPARQL leaves open: its options, and the reason with the section of the specification.

    A ``shared`` choice is named (``Openings.named``), so the same decision may be met in several parts of a query.
    """

    def __init__(
        self, options: Sequence[Hashable] | Callable[[], Sequence[Hashable]], reason: str, *, shared: bool = False
    ) -> None:
        self._options, self.reason, self.shared = options, reason, shared

    @cached_property
    def options(self) -> tuple[Hashable, ...]:
        """The legal decisions; CutOffError if there are too many."""
        return tuple(self._options() if callable(self._options) else self._options)


class NumberOrder(OpenChoice):
    """The order of two open numbers: -1, 0 or 1 for less, equal or greater."""

    def __init__(self, left: "OpenNumber", right: "OpenNumber") -> None:
        super().__init__((-1, 0, 1), f"{left.reason}; {right.reason}", shared=True)
        self.left, self.right = left, right


@dataclass(frozen=True, slots=True)
class NumberSpan:
    """The numbers from ``low`` to ``high``, each end excluded if it is open."""

    low: Fraction
    high: Fraction
    low_open: bool = False
    high_open: bool = False

    @property
    def empty(self) -> bool:
        """Whether the span contains no number."""
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))

    def within(self, other: "NumberSpan") -> "NumberSpan":
        """The intersection of two spans."""
        # Of equal ends, the open one is the narrower: True is greater than False, hence the negation for ``high``.
        low = max((self.low, self.low_open), (other.low, other.low_open))
        high = min((self.high, not self.high_open), (other.high, not other.high_open))
        return NumberSpan(low[0], high[0], low[1], not high[1])

    def parts_beside(self, other: "NumberSpan") -> tuple["NumberSpan", "NumberSpan"]:
        """The parts of this span below and above another one; either may be empty."""
        # Worked example: [0, 10] beside [3, 5) is [0, 3) and [5, 10].
        below = self.within(NumberSpan(self.low, other.low, high_open=not other.low_open))
        return below, self.within(NumberSpan(other.high, self.high, low_open=not other.high_open))


@dataclass(eq=False, slots=True)
class OpenNumber:
    """A computed number whose value differs between implementations; ``shared`` as in ``OpenChoice``."""

    interval: Interval
    reason: str
    shared: bool = False
    span: NumberSpan = field(init=False)

    def __post_init__(self) -> None:
        self.span = NumberSpan(self.interval.low, self.interval.high)


Variable: TypeAlias = OpenChoice | OpenNumber
Allowed: TypeAlias = frozenset[Hashable] | NumberSpan
Condition: TypeAlias = Mapping[Variable, Allowed]
ALWAYS: Final[Condition] = {}


def chosen(choice: OpenChoice, *options: Hashable) -> Condition:
    """The condition that the choice is one of these options."""
    return {choice: frozenset(options)}


def both(first: Condition, second: Condition) -> Condition | None:
    """The conjunction of two conditions; ``None`` if they exclude each other.

    Returns one of the arguments itself if it implies the other: callers compare by identity.
    """
    if not first or first is second:
        return second
    if not second:
        return first
    merged = dict(first)
    changed = False
    for variable, allowed in second.items():
        known = merged.get(variable)
        if known is None:
            merged[variable], changed = allowed, True
            continue
        common = _common(known, allowed)
        if common is None:
            return None
        if common != known:
            merged[variable], changed = common, True
    if not changed:
        return first
    return merged if _is_orderable(merged) else None


def _common(first: Allowed, second: Allowed) -> Allowed | None:
    if isinstance(first, NumberSpan):
        assert isinstance(second, NumberSpan)
        within = first.within(second)
        return None if within.empty else within
    assert not isinstance(second, NumberSpan)
    # An empty set of options is false in every world.
    return first & second or None


def _is_orderable(condition: Condition) -> bool:
    """Whether numbers exist that are in their spans and in the order that the condition requires.

    Rationals are dense, so they exist if the required order has no cycle with a strict step, and no number that has to
    be below another is above it by their spans.
    """
    comparisons = [
        (comparison, allowed) for comparison, allowed in condition.items() if isinstance(comparison, NumberOrder)
    ]
    if not comparisons:
        return True
    order: dict[tuple[OpenNumber, OpenNumber], bool] = {}
    apart: list[tuple[OpenNumber, OpenNumber]] = []
    for comparison, allowed in comparisons:
        assert isinstance(allowed, frozenset)
        for low, high, sign in ((comparison.left, comparison.right, 1), (comparison.right, comparison.left, -1)):
            # Worked example: x < y or x = y excludes 1, so the pair (x, y) is in the order, and strictly only if 0 is
            # excluded too.
            if sign not in allowed:
                order[low, high] = 0 not in allowed
        if allowed == {-1, 1}:
            apart.append((comparison.left, comparison.right))
    _close(order, {number for comparison, _ in comparisons for number in (comparison.left, comparison.right)})
    if any(low is high and strict for (low, high), strict in order.items()):
        return False
    # At most each other, so equal, but required to differ.
    if any(pair in order and pair[::-1] in order for pair in apart):
        return False
    spans = {number: condition.get(number, number.span) for pair in order for number in pair}
    return all(_is_below(spans[low], spans[high], strict) for (low, high), strict in order.items())


def _close(order: dict[tuple[OpenNumber, OpenNumber], bool], numbers: Collection[OpenNumber]) -> None:
    """Complete ``order`` transitively (Floyd-Warshall); a path with a strict step (True) is strict."""
    for middle, low, high in product(numbers, repeat=3):
        first, second = order.get((low, middle)), order.get((middle, high))
        if first is not None and second is not None:
            order[low, high] = order.get((low, high), False) or first or second


def _is_below(low: Allowed, high: Allowed, strict: bool) -> bool:
    assert isinstance(low, NumberSpan)
    assert isinstance(high, NumberSpan)
    touch = not (strict or low.low_open or high.high_open)
    return low.low < high.high or (touch and low.low == high.high)


def negated(condition: Condition) -> Iterator[Condition]:
    """The negation: conditions of which exactly one holds wherever the condition does not.

    not (A and B and C) is not A, or A and not B, or A and B and not C.
    """
    prefix: dict[Variable, Allowed] = {}
    for variable, allowed in condition.items():
        for rest in _others(variable, allowed):
            # All parts before this one hold, so that no two of these conditions hold together.
            yield {**prefix, variable: rest}
        prefix[variable] = allowed


def _others(variable: Variable, allowed: Allowed) -> Iterator[Allowed]:
    if isinstance(variable, OpenNumber):
        assert isinstance(allowed, NumberSpan)
        yield from (span for span in variable.span.parts_beside(allowed) if not span.empty)
    else:
        assert not isinstance(allowed, NumberSpan)
        rest = frozenset(variable.options) - allowed
        if rest:
            yield rest


def none_of(conditions: Iterable[Condition], base: Condition = ALWAYS) -> list[Condition]:
    """The cases of ``base``, no two together, in which none of the conditions holds."""
    cases = [base]
    for condition in conditions:
        cases = [
            case
            for before in cases
            for case in ((before,) if both(before, condition) is None else _without(before, condition))
        ]
        limit(len(cases), cases)
    return cases


def _without(base: Condition, condition: Condition) -> Iterator[Condition]:
    return (case for part in negated(condition) if (case := both(base, part)) is not None)


def any_of(conditions: Sequence[Condition]) -> list[Condition]:
    """The cases, no two together, in which at least one of the conditions holds."""
    if len(conditions) < 2:
        return list(conditions)
    if not all(conditions):
        return [ALWAYS]
    if merged := _of_one_choice(conditions):
        return merged
    cases: list[Condition] = []
    for condition in conditions:
        # Worked example: u or v is the cases u, and v without u. ``none_of`` with the new condition as base subtracts
        # the cases found so far, so that no world is in two.
        cases += none_of(cases, condition)
        limit(len(cases), cases)
    return cases


def _of_one_choice(conditions: Sequence[Condition]) -> list[Condition] | None:
    """A disjunction of conditions that differ in one choice only, as a single condition; else ``None``.

    An optimisation of ``any_of`` for the usual case, such as the copies of a row under the options of one SAMPLE.
    """
    variables = {variable for condition in conditions for variable in condition}
    allowed = {variable: {condition.get(variable) for condition in conditions} for variable in variables}
    # Worked example: (g is a and x), (g is b and x) is x where a and b are all options of g, else (g is a or b) and x.
    differing = [variable for variable, different in allowed.items() if len(different) > 1]
    if len(differing) != 1 or isinstance(choice := differing[0], OpenNumber) or None in allowed[choice]:
        return None
    options = frozenset().union(*(options_of for options_of in allowed[choice] if isinstance(options_of, frozenset)))
    rest = {variable: options_of for variable, options_of in conditions[0].items() if variable is not choice}
    whole = rest if len(options) == len(choice.options) else {**rest, choice: options}
    return [whole or ALWAYS]


def worlds(rows: Sequence[tuple[Condition, Any]]) -> list[tuple[list[Any], Condition]]:
    """The cases that differ in which rows exist: the rows of each, and its condition; no two hold together."""
    cases: list[tuple[list[Any], Condition]] = [([], ALWAYS)]
    for condition, row in rows:
        if not condition:
            for members, _ in cases:
                members.append(row)
            continue
        after: list[tuple[list[Any], Condition]] = []
        for members, world in cases:
            present = both(world, condition)
            if present is not None:
                after.append(([*members, row], present))
            if present is not world:
                after += [(list(members), case) for case in none_of([condition], world)]
        cases = after
        limit(len(cases), (world for _, world in cases))
    return cases


def limit(number: int, conditions: Iterable[Condition]) -> None:
    """Raise CutOffError, which names the choices, for more than ``MAX_CASES`` cases."""
    if number > MAX_CASES:
        raise CutOffError(cut_off(variable for condition in conditions for variable in condition))


def cut_off(variables: Iterable[Variable]) -> str:
    """The message of a CutOffError, with the reasons of the choices."""
    reasons: dict[str, int] = {}
    for variable in dict.fromkeys(variables):
        reasons[variable.reason] = reasons.get(variable.reason, 0) + 1
    named = "; ".join(f"{reason} ({times:,} times)" if times > 1 else reason for reason, times in reasons.items())
    return f"more than {MAX_CASES:,} legal answers would have to be compared; open are: {named[:600]}"
