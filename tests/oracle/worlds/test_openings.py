"""Decisions and open terms: what a computation gives under each decision, and which terms may be equal."""

from fractions import Fraction

import pytest

from streamgauge.model.terms import XSD, Term
from streamgauge.oracle.worlds.conditions import ALWAYS, Condition, CutOffError, NumberSpan, OpenChoice, chosen
from streamgauge.oracle.worlds.intervals import HOLDS, Interval, OpenError
from streamgauge.oracle.worlds.openings import (
    LIMITED,
    Alternatives,
    Openings,
    OpenTerm,
    is_plain,
    is_supported,
    sent_texts,
)
from streamgauge.sparql.values import DECIMAL, DOUBLE, FLOAT, INTEGER
from tests.notation import term

MALFORMED = ['"', '"a"b"', '"a\\"', '"a\nb"', '"\\q"', '"\\u12"']


@pytest.mark.parametrize("malformed", MALFORMED)
def test_received_strings_are_known_by_their_length_and_what_is_no_term_is_left_out(malformed: str) -> None:
    rows = [('"b"', '"a"', None), ("<urn:x>", '"ab"@en', '"x y"'), (malformed,), ('"a"', '"\\n"', '""')]
    assert sent_texts(rows) == {0: ['""'], 1: ['"\\n"', '"a"', '"b"'], 3: ['"x y"']}


ROWS: list[tuple[list[tuple[object, ...]], bool]] = [
    # Pairs are the ends of open numbers; the rest are terms, and those in lists open terms.
    ([((0, 1),)], False),
    ([((0, 1),), ((2, 3),)], False),
    ([((0, 1),), ((1, 2),)], True),
    ([((1, 2),), ((0, 1),)], True),
    ([((0, 1),), ((2, 3),), ((3, 4),)], True),  # not the first
    ([((0, 1),), ((2, 3),), ((4, 5),)], False),
    ([((0, 9),), ((1, 2),), ((8, 8),)], True),  # the first reaches beyond the second
    ([((0, 1),), ('"1"^^xsd:double',)], True),
    ([((0, 1),), ('"2"^^xsd:double',)], False),
    ([((0, 1),), ('"x"',)], False),
    ([((0, 1),), (None,)], False),
    ([((0, 1), "<urn:a>"), ((0, 1), "<urn:b>")], False),  # apart by a column that is not open
    ([((0, 1), "<urn:a>"), ((0, 1), "<urn:a>")], True),
    ([((0, 1), (5, 6)), ((0, 1), (7, 8))], False),
    ([((0, 1), (5, 6)), ((0, 1), (6, 8))], True),
    ([((0, 1), (5, 6)), ((0, 1), "<urn:a>")], False),
    ([(['"A"'],), (['"a"'],)], True),  # in another case
    ([(['"A"'],), (['"b"'],)], False),
    ([(['"A"'],), ('"a"',)], True),
    ([('"A"',), ('"a"',)], False),  # nothing is open
    ([], False),
]


@pytest.mark.parametrize(("rows", "alike"), ROWS)
def test_rows_may_be_equal_where_all_their_open_terms_may_be(rows: list[tuple[object, ...]], alike: bool) -> None:
    openings = Openings()

    def term(cell: object) -> Term | None:
        if isinstance(cell, tuple):
            low, high = map(Fraction, cell)
            return openings.number(Interval(DOUBLE, low, high, low)) if low < high else f'"{low}"^^<{XSD}double>'
        if isinstance(cell, list):
            return openings.term(OpenTerm(cell, ""))
        return cell.replace("xsd:double", f"<{XSD}double>") if isinstance(cell, str) else None

    held = [tuple(map(term, row)) for row in rows]
    if alike:
        with pytest.raises(OpenError, match="they may be"):
            openings.refuse_alike(held, "they may be equal")
    else:
        openings.refuse_alike(held, "they may be equal")


def alternatives(choice: OpenChoice) -> Alternatives:
    return [(option, chosen(choice, option)) for option in choice.options]


def test_a_computation_is_run_once_for_each_combination_of_its_decisions() -> None:
    """The worked example: x is 1 or 2, and where it is 2, y is 3 or 4."""
    openings, x, y = Openings(), OpenChoice((1, 2), "x"), OpenChoice((3, 4), "y")
    runs = []

    def run() -> object:
        runs.append(1)
        first = openings.choose(lambda: alternatives(x))
        return first if first == 1 else (first, openings.choose(lambda: alternatives(y)))

    under_2 = [((2, 3), {**chosen(x, 2), **chosen(y, 3)}), ((2, 4), {**chosen(x, 2), **chosen(y, 4)})]
    assert openings.outcomes(run) == [(1, chosen(x, 1)), *under_2]
    assert len(runs) == 3
    assert openings.outcomes(run, chosen(x, 2)) == under_2
    assert openings.outcomes(lambda: 7) == [(7, ALWAYS)]
    assert openings.condition == ALWAYS


def test_computations_are_nested_and_may_forget_what_is_decided_for_good() -> None:
    openings, x, y, z = Openings(), OpenChoice((1, 2), "x"), OpenChoice((3, 4), "y"), OpenChoice((5,), "z")
    known: list[object] = []

    def outer() -> object:
        first = openings.choose(lambda: alternatives(x))
        inner = openings.outcomes(lambda: openings.choose(lambda: alternatives(y)), openings.condition)
        if not known:
            known.append(openings.choose(lambda: alternatives(z)))
            openings.forget()
        return first, [result for result, _ in inner], *known, openings.choose(lambda: alternatives(y))

    results = [result for result, _ in openings.outcomes(outer)]
    assert results == [(first, [3, 4], 5, second) for first in (1, 2) for second in (3, 4)]


def test_more_outcomes_than_cases_are_cut_off() -> None:
    openings = Openings()
    choices = [OpenChoice((0, 1), str(place)) for place in range(11)]

    def run(count: int) -> list[object]:
        return [openings.choose(lambda choice=choice: alternatives(choice)) for choice in choices[:count]]

    assert len(openings.outcomes(lambda: run(10))) == 1_024
    with pytest.raises(CutOffError, match="open are: 0; 1; 2"):
        openings.outcomes(lambda: run(11))
    assert openings.condition == ALWAYS


def test_an_open_term_is_one_of_its_options_and_the_same_wherever_it_is_read() -> None:
    openings = Openings()
    choice = OpenTerm(('"a"', None), "open")
    cell = openings.term(choice)
    assert (openings.open_term(cell), openings.variable(cell), openings.any) == (choice, choice, True)
    assert (openings.is_open(cell), openings.is_open('"a"'), openings.is_open(None)) == (True, False, False)
    assert (openings.open_term('"a"'), openings.open_term(None), openings.variable(7)) == (None, None, None)
    results = openings.outcomes(lambda: (openings.decided(cell), openings.decided(cell), openings.decided('"x"')))
    assert results == [(('"a"', '"a"', '"x"'), chosen(choice, '"a"')), ((None, None, '"x"'), chosen(choice, None))]
    assert (choice.may_fail, OpenTerm(('"a"',), "").may_fail, choice.any_option) == (True, False, '"a"')
    assert [option for option, _ in openings.outcomes(lambda: openings.identified(cell))] == ['"a"', None]


POINTS = [Fraction(at, 2) for at in range(96, 105)]


def holds_in(condition: Condition, number: object, value: Fraction) -> bool:
    span = condition.get(number)  # type: ignore[call-overload]
    if span is None:
        return True
    assert isinstance(span, NumberSpan)
    return (span.low < value or (span.low == value and not span.low_open)) and (
        value < span.high or (span.high == value and not span.high_open)
    )


@pytest.mark.parametrize("operator", HOLDS)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("bound", ["50", "48", "52"])
def test_a_comparison_splits_the_numbers_by_its_outcome(operator: str, turned: bool, bound: str) -> None:
    openings = Openings()
    cell = openings.number(Interval(DOUBLE, Fraction(48), Fraction(52), Fraction(50)))
    number, other = openings.open_number(cell), f'"{bound}"^^<{XSD}double>'
    pair = (other, cell) if turned else (cell, other)
    results = openings.outcomes(lambda: openings.compared(HOLDS[operator], *pair))
    for value in POINTS:
        sign = (value > Fraction(bound)) - (value < Fraction(bound))
        held = HOLDS[operator](-sign if turned else sign)
        assert [result for result, condition in results if holds_in(condition, number, value)].count(held) >= 1
    assert len(results) <= 3
    # What was decided narrows the number from then on.
    for result, condition in results:
        seen = openings.outcomes(lambda: openings.interval(cell), condition)
        ((interval, _),) = seen
        assert interval is not None
        assert all(holds_in(condition, number, end) or end == Fraction(bound) for end in (interval.low, interval.high))
        assert interval.low <= interval.value <= interval.high
        assert (interval.kind, result in (True, False)) == (DOUBLE, True)


def test_the_order_of_two_numbers_is_decided_once() -> None:
    openings = Openings()
    x, y = (openings.number(Interval(DOUBLE, Fraction(0), Fraction(2), Fraction(1))) for _ in range(2))

    def both() -> tuple[bool, bool, bool]:
        less = openings.compared(HOLDS["<"], x, y)
        return less, openings.compared(HOLDS[">"], y, x), openings.compared(HOLDS["="], x, y)

    results = [result for result, _ in openings.outcomes(both)]
    assert sorted(results) == [(False, False, False), (False, False, True), (True, True, False)]
    same = [result for result, _ in openings.outcomes(lambda: openings.compared(HOLDS["<="], x, x))]
    assert same == [True]


def test_numbers_of_one_name_are_one_and_exact_ones_are_literals() -> None:
    openings = Openings()
    wide = Interval(DOUBLE, Fraction(0), Fraction(2), Fraction(1))
    assert openings.number(wide, "n") == openings.number(wide, "n") != openings.number(wide)
    assert openings.number(wide) != openings.number(wide)
    exact = openings.number(Interval(INTEGER, Fraction(2), Fraction(2), Fraction(2)), "m")
    assert (exact, openings.open_number(exact)) == (f'"2"^^<{XSD}integer>', None)
    shared, own = openings.open_number(openings.number(wide, "n")), openings.open_number(openings.number(wide))
    assert shared is not None
    assert own is not None
    assert (shared.shared, own.shared) == (True, False)


@pytest.mark.parametrize("value", [10**18, -(10**18), 2**63, 2**128 + 5])
def test_a_long_integer_is_itself_or_wraps_at_some_width_or_fails(value: int) -> None:
    strict = Openings()
    assert strict.beyond(value) == f'"{value}"^^<{XSD}integer>'
    assert (strict.lenience, strict.any) == (LIMITED, False)
    openings = Openings(lenient=True)
    cell = openings.beyond(value)
    assert openings.beyond(value) == cell
    choice = openings.open_term(cell)
    assert choice is not None
    first, *wrapped, failed = choice.options
    assert (first, failed, choice.shared) == (f'"{value}"^^<{XSD}integer>', None, True)
    expected = {(value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for bits in range(61, 129)} - {value}
    assert set(wrapped) == {f'"{number}"^^<{XSD}integer>' for number in expected}


@pytest.mark.parametrize(
    ("text", "plain", "supported"),
    [
        *(("a", True, None), ("'x'", True, None), ("'x'@en", False, None), ("_:a", True, None)),
        *(("7", True, True), ("999999999999999999", True, True), ("1000000000000000000", False, False)),
        *(("-999999999999999999", True, True), ("-1000000000000000000", False, False)),
        *(("0.123456789012345678", True, True), ("1.123456789012345678", False, False)),
        *(("'1000000000000000000000'^^double", True, True), ("'123456789012345678901'^^unknown", True, None)),
        ("'1000000000000000000'^^unsignedLong", True, True),  # whose range is bounded
        *(("'000000000000000000000007'^^integer", True, True), ("'a longer text than 18 characters'", True, None)),
        ("'0.00000000000000000000'^^decimal", True, True),
    ],
)
def test_numbers_of_18_digits_are_supported_everywhere(text: str, plain: bool, supported: bool | None) -> None:
    kinds = {"integer": INTEGER, "decimal": DECIMAL, "double": DOUBLE, "float": FLOAT, "unsignedLong": INTEGER}
    literal = term(text)
    assert is_plain(literal) is plain
    if supported is not None:
        kind = next(kinds[name] for name in kinds if literal.endswith(f"{name}>"))
        assert is_supported(kind, literal) is supported
