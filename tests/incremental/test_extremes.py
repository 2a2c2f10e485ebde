"""MIN and MAX over terms of all kinds that come and go are those from scratch."""

from random import Random

import pytest

from streamgauge.incremental.aggregates import accumulator
from streamgauge.model.algebra import Aggregate, Var
from streamgauge.sparql.aggregates import extreme

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
    random, found, there = Random(seed), accumulator(Aggregate(function, Var("x"))), []
    for step in range(400):
        terms = NUMBERS if step < 100 else [*NUMBERS, *OTHERS, *([None] if random.random() < 0.1 else [])]
        if there and random.random() < 0.48:
            found.add(there.pop(random.randrange(len(there))), -1)
        else:
            there.append(random.choice(terms))
            found.add(there[-1], 1)
        assert found.result() == extreme(function, there), (step, there)


def test_a_change_among_many_texts_looks_at_few():
    found = accumulator(Aggregate("MAX", Var("x")))
    for n in range(5000):
        found.add(f'"{n}"', 1)
    assert found.cost == 5000
    assert found.result() == '"999"'
    found.add('"9990"', 1)
    assert found.cost == 1
    assert found.result() == '"9990"'
