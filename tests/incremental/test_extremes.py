"""MIN and MAX over terms of all kinds that come and go are those from scratch."""

from collections import Counter
from decimal import Decimal
from random import Random

import pytest

from streamgauge.incremental.aggregates import accumulator
from streamgauge.model.algebra import Aggregate, Var
from streamgauge.sparql.aggregates import extreme
from streamgauge.sparql.comparison import descending

XSD = "http://www.w3.org/2001/XMLSchema#"
NUMBERS = [f'"{n}"^^<{XSD}integer>' for n in (1, 2, 10, "02", -3)]
OTHERS = [
    '"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>',
    *(f'"{n}"^^<{XSD}double>' for n in ("1.5", "NaN", "INF", "-INF", "2")),
    *('"a"', '"b"', '""', '"a"@en', '"true"^^<' + XSD + "boolean>", "<urn:a>", "<urn:b>", "_:b0"),
    f'"2020-01-01T00:00:00Z"^^<{XSD}dateTime>',
    f'"2020-01-01T00:00:00"^^<{XSD}dateTime>',
    f'"P1D"^^<{XSD}duration>',
    '"x"^^<urn:own>',
]


@pytest.mark.parametrize("function", ["MIN", "MAX"])
@pytest.mark.parametrize("seed", range(4))
def test_they_are_those_from_scratch(function, seed):
    random, result, there = Random(seed), accumulator(Aggregate(function, Var("x"))), []
    for step in range(400):
        terms = NUMBERS if step < 100 else [*NUMBERS, *OTHERS, *([None] if random.random() < 0.1 else [])]
        if there and random.random() < 0.48:
            result.add(there.pop(random.randrange(len(there))), -1)
        else:
            there.append(random.choice(terms))
            result.add(there[-1], 1)
        assert result.result() == extreme(function, there), (step, there)


def test_a_change_among_many_texts_looks_at_few():
    result = accumulator(Aggregate("MAX", Var("x")))
    for n in range(5000):
        result.add(f'"{n}"', 1)
    assert result.cost == 5000
    assert result.result() == '"999"'
    result.add('"9990"', 1)
    assert result.cost == 1
    assert result.result() == '"9990"'


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("function", ["COUNT", "MIN", "MAX"])
@pytest.mark.parametrize("seed", range(3))
def test_values_that_come_and_go_count_as_those_that_are_left(function, distinct, seed):
    random = Random(seed)
    aggregate = Aggregate(function, Var("x"), distinct)
    result = accumulator(aggregate)
    there: Counter[str | None] = Counter()
    for step in range(40):
        terms = NUMBERS if step < 10 else [*NUMBERS, *OTHERS, None]
        gone = random.sample([*there.elements()], random.randrange(there.total() + 1))
        come = random.choices(terms, k=random.choice((1, 3, 40)))
        moves = [*((term, -1) for term in gone), *((term, 1) for term in come)]
        random.shuffle(moves)
        moves.sort(key=lambda move: -move[1])  # no term goes that is not there
        there = there - Counter(gone) + Counter(come)
        for term, sign in moves:
            result.add(term, sign)
        anew = accumulator(aggregate)
        for term, copies in there.items():
            anew.add(term, copies)
        assert result.result() == anew.result(), (step, moves)


def test_a_part_of_a_key_that_stands_in_reverse_sorts_in_reverse():
    texts = ["", "a", "a\0", "ab", "b", "\x7f", "\x80", "\u07ff", "\uffff", "\U0010ffff", "\udc80", "aa"]
    for parts in (texts, [-1.5, 0, 2, Decimal("2.5")], [(1, "a"), (1, "b"), (2,)]):
        assert sorted(parts, key=descending) == sorted(parts, reverse=True)
