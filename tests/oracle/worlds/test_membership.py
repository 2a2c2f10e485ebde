"""An answer is legal where some world gives it: compared with all worlds of drawn rows, tried one by one."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from random import Random

import pytest

from streamgauge.model import algebra as a
from streamgauge.model.terms import Row, Term
from streamgauge.oracle.worlds import membership
from streamgauge.oracle.worlds.algebra import PossibleRow
from streamgauge.oracle.worlds.conditions import ALWAYS, Condition, CutOffError, NumberSpan, OpenChoice, chosen
from streamgauge.oracle.worlds.intervals import Interval
from streamgauge.oracle.worlds.membership import Overlap, PossibleAnswers
from streamgauge.oracle.worlds.openings import Openings, OpenTerm
from streamgauge.oracle.worlds.slices import Keys
from streamgauge.sparql.values import DECIMAL, DOUBLE, FLOAT, INTEGER
from tests.notation import term

X, Y, Z = '"x"', '"y"', '"z"'
Assigned = Mapping[OpenChoice, object]


class Drawn:
    """Up to four rows of two columns, over two open terms and a choice that only conditions read."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.openings = Openings()
        self.choices = [OpenTerm((X, Y), "one"), OpenTerm((X, None, Z), "other"), OpenChoice((0, 1), "which")]
        self.open = {self.openings.term(choice): choice for choice in self.choices if isinstance(choice, OpenTerm)}
        cells = [X, Y, Z, None, *self.open, *self.open]
        self.rows = [
            PossibleRow((random.choice(cells), random.choice((X, Y))), self._condition(random))
            for _ in range(random.randrange(5))
        ]
        self.random = random

    def _condition(self, random: Random) -> Condition:
        choices = random.sample(self.choices, random.choice((0, 0, 1, 2)))
        return {
            choice: frozenset(random.sample(choice.options, random.randrange(1, len(choice.options))))
            for choice in choices
        }

    def worlds(self) -> Iterator[list[Row]]:
        for options in product(*(choice.options for choice in self.choices)):
            world = dict(zip(self.choices, options, strict=True))
            rows = [
                row for row in self.rows if all(world[choice] in allowed for choice, allowed in row.condition.items())
            ]
            yield [tuple(self._cell(cell, world) for cell in row.terms) for row in rows]

    def _cell(self, cell: Term | None, world: Assigned) -> Term | None:
        choice = None if cell is None else self.open.get(cell)
        option = cell if choice is None else world[choice]
        assert option is None or isinstance(option, str)
        return option

    def received(self) -> list[list[Row]]:
        """What some worlds give, and what differs from that in a row."""
        worlds = list(self.worlds())
        given = [list(self.random.choice(worlds)) for _ in range(6)]
        less = [rows[1:] for rows in given]
        more = [[*rows, self.random.choice([*rows, (X, X), (None, Y)])] for rows in given]
        swapped = [[*less_, (self.random.choice((X, Y, Z, None)), X)] for less_ in less]
        return [*given, *less, *more, *swapped, []]


def bag(rows: Sequence[Row]) -> frozenset[tuple[Row, int]]:
    return frozenset(Counter(rows).items())


@pytest.mark.parametrize("seed", range(80))
def test_whole_answers_are_those_of_some_world(seed: int) -> None:
    drawn = Drawn(seed)
    bags = {bag(rows) for rows in drawn.worlds()}
    sets = {frozenset(rows) for rows in drawn.worlds()}
    as_bags = PossibleAnswers(drawn.rows, drawn.openings, frozenset())
    as_sets = PossibleAnswers(drawn.rows, drawn.openings, frozenset(), as_sets=True)
    for rows in drawn.received():
        assert as_bags.admit(rows) is (bag(rows) in bags), rows
        distinct = list(dict.fromkeys(rows))
        assert as_sets.admit(distinct) is (frozenset(distinct) in sets), rows
    if as_bags.is_certain:
        assert len(bags) == 1
    assert not as_bags.is_cut


@pytest.mark.parametrize("seed", range(80))
def test_the_bags_of_all_parts_make_those_of_all_worlds(seed: int) -> None:
    drawn = Drawn(seed)
    parts = PossibleAnswers(drawn.rows, drawn.openings, frozenset()).parts({})
    made = {bag([row for part in chosen_ for row in part.elements()]) for chosen_ in product(*parts)}
    assert made == {bag(rows) for rows in drawn.worlds()}
    kept = PossibleAnswers(drawn.rows, drawn.openings, frozenset(), a.Slice(a.BGP(()), 1, 2)).parts({})
    assert {bag(list(one.elements())) for (one,) in product(*kept)} == {
        bag(rows) for whole in drawn.worlds() for rows in slices(whole, 1, 2)
    }
    distinct = PossibleAnswers(drawn.rows, drawn.openings, frozenset(), as_sets=True).parts({})
    held = {frozenset(row for part in chosen_ for row in part) for chosen_ in product(*distinct)}
    assert held == {frozenset(rows) for rows in drawn.worlds()}


def slices(rows: list[Row], offset: int, limit: int) -> Iterator[tuple[Row, ...]]:
    """The rows that LIMIT and OFFSET may keep without ORDER BY."""
    return combinations(rows, max(0, min(limit, len(rows) - offset)))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize(("offset", "limit"), [(0, 1), (1, 2), (0, 9), (3, 1)])
def test_slices_are_those_of_some_world(seed: int, offset: int, limit: int) -> None:
    drawn = Drawn(seed)
    bags = {bag(kept) for rows in drawn.worlds() for kept in slices(rows, offset, limit)}
    possible = PossibleAnswers(drawn.rows, drawn.openings, frozenset(), a.Slice(a.BGP(()), offset, limit))
    assert possible.is_cut
    assert not possible.is_certain
    for rows in [*drawn.received(), *([*map(list, slices(world, offset, limit))][-1] for world in drawn.worlds())]:
        assert possible.admit(rows) is (bag(rows) in bags), rows


def keyed(names: str, values: str) -> list[PossibleRow]:
    return [
        PossibleRow((f"<urn:{name}>",), ALWAYS, Keys((term(value),), (False,)))
        for name, value in zip(names, values, strict=True)
    ]


@pytest.mark.parametrize(
    ("received", "legal"), [("ab", True), ("ac", True), ("ad", False), ("bc", False), ("a", False), ("abc", False)]
)
def test_a_slice_has_the_rows_that_order_by_puts_first(received: str, legal: bool) -> None:
    """b and c are tied."""
    possible = PossibleAnswers(keyed("abcd", "1223"), Openings(), frozenset(), a.Slice(a.BGP(()), 0, 2))
    assert possible.admit([(f"<urn:{name}>",) for name in received]) is legal


@pytest.mark.parametrize("cut", [None, a.Slice(a.BGP(()), 0, 3)])
def test_a_search_is_cut_off_after_as_many_moves_as_are_allowed(
    cut: a.Slice | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    openings = Openings()
    terms = [openings.term(OpenTerm((X, Y), f"choice {place}")) for place in range(4)]
    possible = PossibleAnswers([PossibleRow((cell,), ALWAYS) for cell in terms], openings, frozenset(), cut)
    received: list[Row] = [(X,), (X,), (Y,)] if cut else [(X,), (X,), (Y,), (Y,)]
    assert possible.admit(received)
    moves = possible._steps
    assert moves >= 3
    monkeypatch.setattr(membership, "MAX_STEPS", moves)
    assert possible.admit(received)
    assert possible.admit(received)  # counted anew
    monkeypatch.setattr(membership, "MAX_STEPS", moves - 1)
    with pytest.raises(CutOffError, match=r"open are: choice 0; choice 1; choice 2; choice 3$"):
        possible.admit(received)


def test_the_nearest_answer_shares_as_many_rows_as_are_found_one_by_one() -> None:
    openings, which = Openings(), OpenChoice((0, 1), "which")
    rows = [
        PossibleRow((X,), ALWAYS),
        PossibleRow((Y,), chosen(which, 0)),
        PossibleRow((Z,), chosen(which, 1)),
        PossibleRow((openings.term(OpenTerm((X, Z), "open")),), ALWAYS),
    ]
    possible = PossibleAnswers(rows, openings, frozenset())
    assert possible.nearest([(X,), (Y,), (Z,)]) == Overlap(3, (), ())
    assert possible.nearest([(X,), (Y,)]) == Overlap(2, ((X,),), ())
    assert possible.nearest([(Y,)]) == Overlap(1, ((X,), (X,)), ())
    assert possible.nearest([(X,), (Z,), (Z,), (Z,)]) == Overlap(3, (), ((Z,),))
    assert possible.nearest([]) == Overlap(0, ((X,), (X,), (Z,)), ())
    as_sets = PossibleAnswers(rows, openings, frozenset(), as_sets=True)
    assert as_sets.nearest([(X,), (Y,)]) == Overlap(3, (), ())
    assert Overlap(1, (), ()).differs is Overlap(1, (), (), frozenset({0})).differs is False
    assert Overlap(1, ((X,),), ()).differs is Overlap(1, (), ((X,),)).differs is True


@pytest.mark.parametrize(
    ("kind", "low", "high", "bound", "received", "legal"),
    [
        # A number from low to high, in a row that exists above the bound.
        (INTEGER, "1", "5", "3", "4", True),
        (INTEGER, "1", "5", "3", "3", False),
        (INTEGER, "1", "5", "3", "6", False),
        (DOUBLE, "1", "2", "1.5", "1.6e0", True),
        (DOUBLE, "1", "2", "1.5", "1.4999999999e0", False),
        (DOUBLE, "1", "2", "1.5", "1.4999999999", False),  # sent as a decimal
        (DOUBLE, "1", "2", "1.5", "2.1e0", False),
        (DOUBLE, "1e-20", "2e-20", "1.5e-20", "1.6e-20", True),
        (DOUBLE, "1e-20", "2e-20", "1.5e-20", "1.4e-20", False),  # a rounding is relative
        # Decimals have 18 digits after the point, however small they are.
        (DECIMAL, "1e-10", "2e-10", "1.5e-10", "0.00000000016", True),
        (DECIMAL, "1e-10", "2e-10", "1.5e-10", "0.0000000001499999995", True),
        (DECIMAL, "1e-10", "2e-10", "1.5e-10", "0.0000000001499999985", False),
        (DECIMAL, "1", "2", "1.5", "1.4999", False),
        # Sent in a wider datatype: within its tolerance of 1e-9, or 1e-5.
        (DECIMAL, "1", "2", "1.5", "1.4999999999e0", True),
        (DECIMAL, "1", "2", "1.5", "1.49999999e0", False),
        (DECIMAL, "1", "2", "1.5", "1.49999f", True),
        (DECIMAL, "1", "2", "1.5", "1.4999f", False),
        (FLOAT, "1", "2", "1.5", "1.49999f", False),
        (FLOAT, "1", "2", "1.5", "1.4999999999e0", True),
        (FLOAT, "1", "2", "1.5", "1.4999e0", False),
        (DOUBLE, "1", "2", "1.5", "'x'", False),
    ],
)
def test_a_number_is_received_within_a_rounding_and_above_the_bound_of_its_row(
    kind: int, low: str, high: str, bound: str, received: str, legal: bool
) -> None:
    openings = Openings()
    cell = openings.number(Interval(kind, Fraction(low), Fraction(high), Fraction(low)))
    number = openings.open_number(cell)
    assert number is not None
    above = NumberSpan(Fraction(bound), Fraction(high), low_open=True)
    possible = PossibleAnswers([PossibleRow((cell,), {number: above})], openings, frozenset({0}))
    assert possible.admit([(term(received),)]) is legal
    assert possible.admit([])
    always = PossibleAnswers([PossibleRow((cell,), ALWAYS)], openings, frozenset({0}))
    assert not always.admit([])
    assert (always.is_certain, possible.is_certain) == (True, False)


def test_datatypes_may_be_compared_exactly() -> None:
    openings = Openings()
    cell = openings.number(Interval(DECIMAL, Fraction(1), Fraction(2), Fraction(1)))
    for exact, received, legal in (
        (False, "1.5", True),
        (False, "1.5e0", True),
        (True, "1.5", True),
        (True, "1.5e0", False),
        (True, "1", False),
    ):
        rows = [PossibleRow((cell, term("7")), ALWAYS)]
        possible = PossibleAnswers(rows, openings, frozenset({0, 1}), exact_datatypes=exact)
        assert possible.admit([(term(received), term("7"))]) is legal, (exact, received)
        assert possible.admit([(term("1.5"), term("7.0"))]) is not exact
        assert not possible.admit([(term("1.5"), None)])
        assert not possible.admit([(term("1.5"), term("8"))])
