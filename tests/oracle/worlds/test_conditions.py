"""Conditions mean sets of worlds: each operation is compared with that on the worlds themselves, tried one by one.

A world gives an option to each choice and a value to each number, of which enough are tried: the ends of all spans and
values between them.
"""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from random import Random
from typing import TypeAlias

import pytest

from streamgauge.oracle.worlds.conditions import (
    ALWAYS,
    MAX_CASES,
    Condition,
    CutOffError,
    NumberOrder,
    NumberSpan,
    OpenChoice,
    OpenNumber,
    Variable,
    any_of,
    both,
    chosen,
    cut_off,
    limit,
    negated,
    none_of,
    worlds,
)
from streamgauge.oracle.worlds.intervals import Interval

World: TypeAlias = Mapping[Variable, object]

POINTS = [Fraction(at, 2) for at in range(-1, 10)]
"""The values that are tried: spans have whole ends from 0 to 4."""


class Space:
    """Two choices, and two numbers in [0, 4] with their order."""

    def __init__(self) -> None:
        self.g, self.h = OpenChoice((0, 1, 2), "g"), OpenChoice(("a", "b"), "h")
        self.x, self.y = (OpenNumber(Interval(3, Fraction(0), Fraction(4), Fraction(1)), name) for name in "xy")
        self.order = NumberOrder(self.x, self.y)
        inside = [at for at in POINTS if 0 <= at <= 4]
        self.worlds: list[World] = [
            {self.g: g, self.h: h, self.x: x, self.y: y, self.order: (x > y) - (x < y)}
            for g, h, x, y in product((0, 1, 2), "ab", inside, inside)
        ]

    def drawn(self, random: Random, *, ordered: bool = True) -> Condition:
        condition: dict[Variable, frozenset[object] | NumberSpan] = {}
        for variable in random.sample([self.g, self.h, self.x, self.y, self.order], random.choice((0, 1, 1, 2, 3))):
            if isinstance(variable, OpenNumber):
                low, high = sorted(random.sample(range(5), 2) if random.random() < 0.8 else [random.randrange(5)] * 2)
                opened = low < high and random.random() < 0.3, low < high and random.random() < 0.3
                condition[variable] = NumberSpan(Fraction(low), Fraction(high), *opened)
            elif ordered or variable is not self.order:
                options = variable.options
                condition[variable] = frozenset(random.sample(options, random.randrange(1, len(options))))
        return condition

    def of(self, condition: Condition | None) -> frozenset[int]:
        """The worlds in which a condition holds, by their numbers."""
        if condition is None:
            return frozenset()
        return frozenset(at for at, world in enumerate(self.worlds) if holds(condition, world))

    def every(self) -> frozenset[int]:
        return self.of(ALWAYS)

    def partition(self, cases: Iterable[Condition]) -> frozenset[int]:
        """The worlds of cases of which no two hold together."""
        sets = [self.of(case) for case in cases]
        assert sum(map(len, sets)) == len(frozenset().union(*sets))
        return frozenset().union(*sets)


def holds(condition: Condition, world: World) -> bool:
    return all(
        within(allowed, world[variable]) if isinstance(allowed, NumberSpan) else world[variable] in allowed
        for variable, allowed in condition.items()
    )


def within(span: NumberSpan, value: object) -> bool:
    assert isinstance(value, Fraction)
    return (span.low < value or (span.low == value and not span.low_open)) and (
        value < span.high or (span.high == value and not span.high_open)
    )


def spans() -> Iterator[NumberSpan]:
    for low, high in product(range(4), repeat=2):
        for opened in product((False, True), repeat=2):
            yield NumberSpan(Fraction(low), Fraction(high), *opened)


def values(span: NumberSpan) -> set[Fraction]:
    return {at for at in POINTS if within(span, at)}


@pytest.mark.parametrize("one", list(spans()), ids=str)
def test_spans_meet_in_the_values_that_both_have_and_leave_the_others(one: NumberSpan) -> None:
    assert one.empty is (not values(one))
    for other in spans():
        assert values(one.within(other)) == values(one) & values(other)
        if not other.empty:
            below, above = one.parts_beside(other)
            assert values(below) == {at for at in values(one) if all(at < value for value in values(other))}
            assert values(above) == {at for at in values(one) if all(at > value for value in values(other))}


@pytest.mark.parametrize("seed", range(60))
def test_conditions_are_joined_and_negated_as_sets_of_worlds(seed: int) -> None:
    random, space = Random(seed), Space()
    for _ in range(4):
        one, other = space.drawn(random), space.drawn(random)
        joined = both(one, other)
        assert space.of(joined) == space.of(one) & space.of(other)
        assert (joined is None) == (not space.of(one) & space.of(other))
        if all(one.get(variable) == allowed for variable, allowed in other.items()):
            assert joined is (one or other)
        assert both(one, one) is one
        assert space.partition(negated(one)) == space.every() - space.of(one)


@pytest.mark.parametrize("seed", range(60))
def test_cases_are_apart_and_cover_what_they_stand_for(seed: int) -> None:
    random, space = Random(seed), Space()
    base = space.drawn(random)
    conditions = [space.drawn(random) for _ in range(random.randrange(4))]
    some = frozenset().union(*map(space.of, conditions))
    assert space.partition(any_of(conditions)) == some
    if space.of(base):
        assert space.partition(none_of(conditions, base)) == space.of(base) - some
    assert space.partition(none_of(conditions)) == space.every() - some


@pytest.mark.parametrize("seed", range(40))
def test_worlds_differ_in_the_rows_that_exist(seed: int) -> None:
    random, space = Random(seed), Space()
    rows = [(space.drawn(random), name) for name in "abcd"[: random.randrange(5)]]
    cases = worlds(rows)
    assert space.partition(case for _, case in cases) == space.every()
    for members, case in cases:
        for world in space.of(case):
            assert members == [name for condition, name in rows if holds(condition, space.worlds[world])]


def test_a_disjunction_of_options_of_one_choice_is_one_case() -> None:
    g, x = OpenChoice("abc", "g"), OpenChoice("xy", "x")
    one, two, three = (chosen(g, option) for option in "abc")
    assert any_of([one, two]) == [chosen(g, "a", "b")]
    assert any_of([one, two, three]) == [ALWAYS]
    beside = chosen(x, "x")
    assert any_of([{**one, **beside}, {**two, **beside}]) == [{**chosen(g, "a", "b"), **beside}]
    assert any_of([{**one, **beside}, {**two, **beside}, {**three, **beside}]) == [beside]
    assert any_of([one]) == [one]
    assert any_of([]) == []
    assert any_of([one, ALWAYS]) == [ALWAYS]


def number(low: int, high: int, name: str = "n") -> OpenNumber:
    return OpenNumber(Interval(3, Fraction(low), Fraction(high), Fraction(low)), name)


@pytest.mark.parametrize(
    ("spans", "orders", "possible"),
    [
        # Pairs are of numbers by place, with the signs that are allowed.
        ([(0, 4), (0, 4), (0, 4)], {(0, 1): (-1,), (1, 2): (-1,), (0, 2): (1,)}, False),
        ([(0, 4), (0, 4), (0, 4)], {(0, 1): (-1, 0), (1, 2): (-1, 0), (0, 2): (0, 1)}, True),
        ([(0, 4), (0, 4), (0, 4)], {(0, 1): (-1, 0), (1, 2): (-1,), (0, 2): (0, 1)}, False),
        ([(0, 4), (0, 4), (0, 4)], {(0, 1): (0,), (1, 2): (0,), (0, 2): (-1, 1)}, False),
        ([(0, 4), (0, 4), (0, 4)], {(0, 1): (0,), (1, 2): (-1,), (0, 2): (-1, 1)}, True),
        ([(0, 1), (2, 4)], {(0, 1): (1,)}, False),
        ([(0, 2), (2, 4)], {(0, 1): (1,)}, False),
        ([(0, 2), (2, 4)], {(0, 1): (0, 1)}, True),
        ([(0, 3), (2, 4)], {(0, 1): (1,)}, True),
        ([(0, 2), (1, 3), (2, 4)], {(0, 1): (1,), (1, 2): (1,)}, False),
        ([(0, 4), (0, 4), (3, 4)], {(0, 1): (1,), (1, 2): (1,)}, True),
        ([(0, 2), (0, 4), (2, 4)], {(0, 1): (0, 1), (1, 2): (0, 1)}, True),  # all are 2
        ([(0, 2), (0, 4), (2, 4)], {(0, 1): (0, 1), (1, 2): (1,)}, False),
    ],
)
def test_orders_of_numbers_hold_together_where_numbers_are_in_them(spans, orders, possible) -> None:
    numbers = [number(*span) for span in spans]
    condition: Condition | None = {number: number.span for number in numbers}
    for (one, two), signs in orders.items():
        order = NumberOrder(numbers[one], numbers[two])
        condition = None if condition is None else both(condition, {order: frozenset(signs)})
    assert (condition is not None) is possible


def test_too_many_cases_are_named_by_their_choices() -> None:
    g, h = OpenChoice("ab", "the first"), OpenChoice("ab", "the second")
    limit(MAX_CASES, ())
    with pytest.raises(CutOffError) as error:
        limit(MAX_CASES + 1, [chosen(g, "a"), {**chosen(h, "a"), **chosen(g, "b")}])
    assert str(error.value) == (
        "more than 2,000 legal answers would have to be compared; open are: the first; the second"
    )
    assert cut_off([g, OpenChoice("ab", "the first"), g, h]).endswith("open are: the first (2 times); the second")
    many = [OpenChoice("ab", "the first") for _ in range(1_234)]
    assert cut_off(many).endswith("open are: the first (1,234 times)")
    assert len(cut_off([OpenChoice("ab", "x" * 2_000)]).partition("open are: ")[2]) == 600


def test_options_are_computed_when_they_are_asked_for() -> None:
    asked = []

    def options() -> str:
        asked.append(1)
        return "ab"

    choice = OpenChoice(options, "g")
    assert not asked
    assert (choice.options, choice.options, len(asked)) == (("a", "b"), ("a", "b"), 1)
    assert not choice.shared


def test_twelve_choices_of_two_options_are_more_worlds_than_are_compared() -> None:
    rows = [(chosen(OpenChoice("ab", str(place)), "a"), place) for place in range(12)]
    assert len(worlds(rows[:10])) == 1024
    with pytest.raises(CutOffError):
        worlds(rows)
    with pytest.raises(CutOffError):
        none_of([{**one, **chosen(OpenChoice("ab", "beside"), "a")} for one, _ in rows])
