"""A large change is added to its groups in columns: each pull then gives what adding row by row gives."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental import grouped
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.conditions import Batch
from streamgauge.incremental.grouped import Grouped
from streamgauge.model.algebra import Aggregate, Var
from tests.examples import examples
from tests.incremental.test_extremes import NUMBERS, OTHERS, XSD

VARIABLES = ("g", "v", "o")
LARGE = [f'"{2**62}"^^<{XSD}integer>', f'"-{2**61}"^^<{XSD}integer>']
POOLS = {
    "integers": NUMBERS,
    "large integers": [*NUMBERS, *LARGE],
    "numbers": [*NUMBERS, *OTHERS[:6]],
    "strings": ['"a"', '"b"', '""', '"a"@en'],
    "all kinds": [*NUMBERS, *LARGE, *OTHERS, None],
}
FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")
AGGREGATES = [
    *(Aggregate(function, Var("v"), distinct=distinct) for function in FUNCTIONS for distinct in (False, True)),
    *(Aggregate("COUNT", None, distinct=distinct) for distinct in (False, True)),
]


class Changes:
    """An operator that gives one change after the other."""

    variables, certain = VARIABLES, frozenset[str]()

    def __init__(self, changes):
        self._changes = iter(changes)

    def pull(self):
        return dict(next(self._changes))


def drawn(random: Random, pool) -> list[dict]:
    """Changes of many rows in few groups, in which rows come, go, and come back with another subject."""
    there, changes = dict[tuple, int](), []
    groups = [
        *(f"<urn:g{number}>" for number in range(random.choice((1, 3)))),
        *([None] if random.random() < 0.2 else []),
    ]
    for _ in range(4):
        change = {}
        for _ in range(random.choice((0, 1, 20, 200))):
            row = (random.choice(groups), random.choice(pool), f"<urn:o{random.randrange(6)}>")
            copies = random.choice((1, 1, 3, -there.get(row, 0), -1 if there.get(row, 0) else 1))
            if row not in change and copies:
                change[row] = copies
        for row, copies in change.items():
            there[row] = there.get(row, 0) + copies
        changes.append(change)
    return changes


def pulled(changes, keys: tuple[str, ...], many: int):
    """The rows that each pull gives and takes, in order, with aggregates of all kinds."""
    effort = EvaluationBudget()
    inputs = [None if one.argument is None else Batch(one.argument, VARIABLES, effort) for one in AGGREGATES]
    names = [(f"a{at}", one) for at, one in enumerate(AGGREGATES)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouped, "BY_NUMBERS", many)
        patch.setattr(grouped, "FEW_ROWS", 1)
        group = Grouped(Changes(changes), keys, names, inputs, effort)
        return [(list(group.pull().items()), group.empty, list(group.rows)) for _ in changes]


@examples(suite=60, prove=5000, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(sorted(POOLS)), st.sampled_from([(), ("g",), ("g", "o")]))
def test_many_rows_are_added_as_one_by_one(seed, pool, keys):
    changes = drawn(Random(seed), POOLS[pool])
    assert pulled(changes, keys, 1) == pulled(changes, keys, 10**9)
