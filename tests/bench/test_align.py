"""Alignment is of least cost, keeps order, and mentions every report and answer once."""

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.bench.align import align
from streamgauge.bench.merge import merged
from streamgauge.model.answer import Answer
from streamgauge.model.report import DueReport, ExpectedReport, View
from streamgauge.model.semantics import Grain

BAGS = st.lists(st.frozensets(st.sampled_from("abc"), max_size=2), max_size=6)


def reports(bags):
    return [
        ExpectedReport(DueReport(i, (View(i, i + 1, i, i, 0),)), ("x",), tuple((x,) for x in sorted(bag)), 1)
        for i, bag in enumerate(bags)
    ]


def answers(bags):
    return [Answer(("x",), tuple((x,) for x in sorted(bag))) for bag in bags]


def jaccard(left, right) -> float:
    return len(left & right) / len(left | right) if left | right else 1.0


def least(expected, said) -> float:
    @cache
    def cost(i: int, j: int) -> float:
        if i == len(expected) or j == len(said):
            return len(expected) - i + len(said) - j
        pair = cost(i + 1, j + 1) + 1 - jaccard(expected[i], said[j])
        return min(pair, cost(i + 1, j) + 1, cost(i, j + 1) + 1)

    return cost(0, 0)


@given(BAGS, BAGS)
def test_the_alignment_costs_the_least_possible(expected, said):
    pairs = align(reports(expected), answers(said), lambda i, j: jaccard(expected[i], said[j]))
    assert [i for i, _ in pairs if i is not None] == list(range(len(expected)))
    assert [j for _, j in pairs if j is not None] == list(range(len(said)))
    cost = sum(1 if i is None or j is None else 1 - jaccard(expected[i], said[j]) for i, j in pairs)
    assert abs(cost - least(expected, said)) < 1e-9


@given(BAGS)
def test_row_grained_answers_come_together_again(bags):
    """Rows said in order, one answer each, merge to one answer per report with rows."""
    kept = [bag for bag in bags if bag]
    rows = [Answer(("x",), ((x,),)) for bag in kept for x in sorted(bag)]
    together = merged(rows, reports(kept), Grain.ROW)
    assert sum(len(answer.added) for answer in together) == len(rows)
    if len(set(kept)) == len(kept) and all(not (a & b) for a in kept for b in kept if a is not b):
        assert [frozenset(row[0] for row in answer.added) for answer in together] == kept


def test_answers_that_name_their_instant_are_matched_by_it():
    expected = reports(["a", "b", "c"])
    said = [Answer(("x",), (("z",),), instant=2), Answer(("x",), (("a",),), instant=9)]
    assert align(expected, said, lambda _i, _j: 0.5) == [(0, None), (1, None), (2, 0), (None, 1)]
