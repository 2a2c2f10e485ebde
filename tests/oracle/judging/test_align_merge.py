"""Answers of a row each come together again, whatever is lost or wrong among them."""

import random

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.answer import Answer
from streamgauge.model.semantics import Grain
from streamgauge.model.terms import XSD
from streamgauge.oracle.judging.align import merged, whole
from tests.oracle.judging.test_align import reports

BAGS = st.lists(st.frozensets(st.sampled_from("abc"), max_size=2), max_size=6)


def single(*rows: str, instant: int | None = None) -> list[Answer]:
    return [Answer(("x",), ((row,),), instant=instant) for row in rows]


def bags(answers) -> list[str]:
    return ["".join(row[0] for row in answer.added) for answer in answers]


@given(BAGS)
def test_row_grained_answers_come_together_again(bags):
    """Rows said in order, one answer each, merge to one answer per report with rows."""
    kept = [bag for bag in bags if bag]
    rows = [Answer(("x",), ((x,),)) for bag in kept for x in sorted(bag)]
    together = merged(rows, reports(kept), Grain.ROW)
    assert sum(len(answer.added) for answer in together) == len(rows)
    if all(not (a & b) for a in kept for b in kept if a is not b):
        assert [frozenset(row[0] for row in answer.added) for answer in together] == kept


@given(st.integers(2, 30), st.integers(1, 5), st.randoms(use_true_random=False))
def test_whole_bags_are_found_again_whatever_the_order_of_their_rows(count, width, order: random.Random):
    expected = [[f"{i}.{k}" for k in range(width)] for i in range(count)]
    said = [row for bag in expected for row in order.sample(bag, width)]
    together = merged(single(*said), reports(expected), Grain.ROW)
    assert [sorted(row[0] for row in answer.added) for answer in together] == [sorted(bag) for bag in expected]


def test_a_wrong_row_that_is_a_later_reports_does_not_skip_the_reports_between():
    expected = ["ab", "cd", "ef", "gh", "iz"]
    said = single(*"ab", *"zcd", *"ef", *"gh", *"iz")
    assert bags(merged(said, reports(expected), Grain.ROW)) == ["abz", "cd", "ef", "gh", "iz"]


def test_lost_rows_and_lost_reports_do_not_hold_the_others_up():
    expected = ["ab", "cd", "ef", "gh"]
    assert bags(merged(single(*"a", *"cd", *"gh"), reports(expected), Grain.ROW)) == ["a", "cd", "gh"]


def test_the_same_bag_twice_is_two_reports():
    assert bags(merged(single(*"abab"), reports(["ab", "ab"]), Grain.ROW)) == ["ab", "ab"]


def test_computed_numbers_lead_to_their_report_by_value():
    number = '"{}"^^<' + XSD + "double>"
    expected = reports([[number.format(value)] for value in ("0.1", "0.2", "0.3")])
    said = single(*(number.format(value) for value in ("0.1", "0.2000000000001", "0.30000000000001")))
    assert len(merged(said, expected, Grain.ROW, frozenset({0}))) == 3
    assert len(merged(said, expected, Grain.ROW)) == 1


def test_rows_that_name_their_instant_are_merged_by_it_unless_several_reports_are_due_at_it():
    said = [*single("a", instant=0), *single("b", instant=1), *single("c", instant=0)]
    assert bags(merged(said, reports(["ac", "b"]), Grain.ROW)) == ["ac", "b"]
    twice = reports(["a", "c"])
    due = [twice[0].due, twice[0].due]
    together = [type(one)(when, one.variables, one.rows, 1) for one, when in zip(twice, due, strict=True)]
    assert bags(merged(single("a", "c", instant=0), together, Grain.ROW)) == ["a", "c"]


def test_changes_are_added_up():
    a, b = ("<urn:a>",), ("<urn:b>",)
    said = [Answer(("x",), (a, b)), Answer(("x",), (b,), (a,)), Answer(("x",), (), (b, b))]
    assert [sorted(answer.added) for answer in whole(said)] == [[a, b], [b, b], []]
    assert whole(said[:1]) == (said[0],)


def test_computed_numbers_where_no_report_has_rows_are_one_answer():
    number = f'"1.5"^^<{XSD}double>'
    assert bags(merged(single(number, number), reports(["", ""]), Grain.ROW, frozenset((0,)))) == [number + number]
