"""Open versions of SPARQL's functions: integers that a number is rounded to, comparisons beyond 17.3, MIN and MAX."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations
from math import ceil, floor, trunc

import pytest

from streamgauge.model.terms import XSD, Term
from streamgauge.oracle.worlds.intervals import Interval, OpenError
from streamgauge.oracle.worlds.openings import CURRENT, Openings
from streamgauge.oracle.worlds.operations import (
    DATES,
    _candidates,
    _first,
    _rounded_to,
    _sampled,
    _step,
    beyond_table,
    extension,
)
from streamgauge.sparql import aggregates, expression
from streamgauge.sparql.values import DOUBLE, Value, written
from streamgauge.sparql.values import read as value_of
from tests.notation import term

ROUNDED: dict[str, Callable[[Fraction], int]] = {
    "CEIL": ceil,
    "FLOOR": floor,
    "ROUND": lambda value: floor(value + Fraction(1, 2)),  # F&O, 6.4.4: halves go up
    "<integer>": trunc,
}
POINTS = [Fraction(at, 4) for at in range(-17, 18)]


@pytest.fixture(autouse=True)
def openings() -> Iterator[Openings]:
    result = Openings()
    token = CURRENT.set(result)
    yield result
    CURRENT.reset(token)


@pytest.mark.parametrize("name", ROUNDED)
def test_the_numbers_that_are_rounded_to_an_integer(name: str) -> None:
    for value in POINTS:
        assert _step(name, value) == ROUNDED[name](value)
        for whole in range(-4, 5):
            span = _rounded_to(name, whole)
            low = span.low < value or (span.low == value and not span.low_open)
            high = value < span.high or (span.high == value and not span.high_open)
            assert (low and high) is (ROUNDED[name](value) == whole), (value, whole)


def called(name: str, *arguments: Value | str) -> Value | None:
    function = expression.EXTENSIONS[extension(name)]
    return function(*(value_of(f'"{item}"') if isinstance(item, str) else item for item in arguments))


@pytest.mark.parametrize(("name", "low", "high"), [("FLOOR", "2.5", "18.5"), ("CEIL", "1.5", "17.5")])
def test_a_number_may_be_rounded_to_17_integers_and_to_no_more(
    openings: Openings, name: str, low: str, high: str
) -> None:
    number = openings.number(Interval(DOUBLE, Fraction(low), Fraction(high), Fraction(low)))
    results = openings.outcomes(lambda: called("number", name, value_of(number)))
    assert [int(value.value) for value, _ in results if value is not None] == list(range(2, 19))
    wider = openings.number(Interval(DOUBLE, Fraction(low), Fraction(high) + 1, Fraction(low)))
    with pytest.raises(OpenError, match="rounded to one of many whole numbers"):
        openings.outcomes(lambda: called("number", name, value_of(wider)))


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ("'1'^^integer", "'1'^^double", ""),
        ("'2020-01-01T00:00:00Z'^^dateTime", "'2020-01-01T00:00:00Z'^^dateTime", ""),
        ("'x'", "'y'", ""),
        ("'true'^^boolean", "'false'^^boolean", ""),
        ("'2020-01-01'^^date", "'2020-01-02'^^date", DATES),
        ("'00:00:00'^^time", "'00:00:01'^^time", DATES),
        ("'PT1S'^^dayTimeDuration", "'PT2S'^^dayTimeDuration", DATES),
        ("'2020-01-01'^^date", "'2020-01-02T00:00:00Z'^^dateTime", "apart"),
        ("'x'", "'1'^^integer", "apart"),
        ("'true'^^boolean", "'1'^^integer", "apart"),
        ("'x'", "'x'@en", "apart"),
    ],
)
def test_comparisons_that_the_table_of_operators_does_not_have(one: str, other: str, reason: str) -> None:
    kinds = [value_of(term(cell)).kind for cell in (one, other)]
    apart = "= of literals of different kinds: not equal, or an error (SPARQL 1.1, 17.4.1.7)"
    expected = apart if reason == "apart" else reason
    assert beyond_table(kinds[0], kinds[1]) == beyond_table(kinds[1], kinds[0]) == expected


@pytest.mark.parametrize(
    ("terms", "least", "greatest"),
    [
        ("1 2 3", "1", "3"),
        ("1 'x' 2", "1 'x'", "2 'x'"),
        ("'x' 'y' 2", "'x' 2", "'y' 2"),
        ("a 1", "a", "1"),
        ("a b 'x'", "a", "'x'"),
        ("1 1.0 2", "1 1.0", "2"),
        ("2 1 1.0", "1 1.0", "2"),
        ("7", "7", "7"),
    ],
)
def test_the_least_and_greatest_are_the_terms_that_no_other_has_to_precede(
    openings: Openings, terms: str, least: str, greatest: str
) -> None:
    for order in permutations(map(term, terms.split())):
        for minimum, expected in ((True, least), (False, greatest)):
            candidates = {term(cell) for cell in expected.split()}
            assert set(_candidates(order, minimum)) == candidates
            chosen = _first(order, minimum)
            choice = openings.open_term(chosen)
            assert ({chosen} if choice is None else set(choice.options)) == candidates


def test_a_sample_is_any_term_of_the_group_or_its_error(openings: Openings) -> None:
    a, b = term("a"), term("b")
    assert (_sampled([], ""), _sampled([a, a], ""), _sampled([None, None], "")) == (None, a, None)
    for terms, options in (([a, b, a], (a, b)), ([None, a], (a, None))):
        choice = openings.open_term(_sampled(terms, ""))
        assert choice is not None
        assert choice.options == options


LONG = 10**18


def aggregate(name: str, *terms: Term | None) -> Term | None:
    return aggregates.EXTENSIONS[extension(name)](terms, " ")


def integer(value: int) -> str:
    return f'"{value}"^^<{XSD}integer>'


@pytest.mark.parametrize("lenient", [False, True])
def test_integers_of_more_than_18_digits_may_wrap_or_fail_where_that_is_allowed(lenient: bool) -> None:
    openings = Openings(lenient=lenient)
    token = CURRENT.set(openings)
    try:
        for operator, operands, result in (
            ("+", (LONG, 1), LONG + 1),
            ("-", (LONG, 1), LONG - 1),
            ("*", (LONG, 2), 2 * LONG),
            ("-", (LONG,), -LONG),
        ):
            value = called("number", operator, *(value_of(integer(operand)) for operand in operands))
            assert value is not None
            choice = openings.open_term(written(value))
            assert (choice is not None) is lenient
            if choice is None:
                assert written(value) == integer(result)
            else:
                assert choice.options[0] == integer(result)
                assert None in choice.options
        total = aggregate("SUM", integer(LONG), integer(5))
        assert (openings.open_term(total) is not None) is lenient
        assert total == integer(LONG + 5) or lenient
        assert openings.lenience.startswith("a number of more than 18 digits")
        assert called("number", "+", value_of(integer(LONG - 1)), value_of(integer(-1))) == value_of(integer(LONG - 2))
    finally:
        CURRENT.reset(token)
