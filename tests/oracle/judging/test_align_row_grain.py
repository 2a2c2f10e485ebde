"""Answers of a row each: where a group begins, and which report an instant means."""

from dataclasses import replace

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.report import DueReport, ExpectedReport, View
from streamgauge.model.semantics import Grain
from streamgauge.oracle.judging.align import merged, whole


def report(instant: int, rows: str, start: int = 0) -> ExpectedReport:
    return ExpectedReport(
        DueReport(instant, (View(start, instant, 0, instant, 0),)), ("x",), tuple((x,) for x in rows), 1
    )


def answer(rows: str, instant: int | None = None, received: int = 0, scope=None) -> Answer:
    return Answer(("x",), tuple((x,) for x in rows), received=received, instant=instant, scope=scope)


def groups(expected: list[str], answers: list[str]) -> list[str]:
    reports = [report(at, rows) for at, rows in enumerate(expected)]
    return [
        "".join(row[0] for row in item.added) for item in merged([answer(one) for one in answers], reports, Grain.ROW)
    ]


@pytest.mark.parametrize(
    ("expected", "answers", "result"),
    [
        (["ab", "cd"], ["a", "b", "c", "d"], ["ab", "cd"]),
        (["ab", "ab"], ["a", "b", "a", "b"], ["ab", "ab"]),
        (["ab", "cd"], ["b", "a", "d", "c"], ["ba", "dc"]),
        (["ab", "aa", "c"], ["b", "aa", "c"], ["b", "aa", "c"]),
        (["aab", "c"], ["aa", "b", "c"], ["aab", "c"]),
        (["ab", "cd"], ["a", "x", "b", "c", "d"], ["axb", "cd"]),
        (["ab", "", "cd"], ["a", "b", "c", "d"], ["ab", "cd"]),
        (["ab", "cd", "ef"], ["a", "b", "e", "f"], ["ab", "ef"]),
        (["ab", "cd", "ef", "c"], ["a", "c", "b", "c", "d", "e", "f"], ["acb", "cd", "ef"]),
        (["ab"], ["", "a", "b", ""], ["", "ab", ""]),
        (["a"], ["x", "y"], ["xy"]),
        ([], ["x", "y"], ["xy"]),
    ],
)
def test_a_row_belongs_to_the_report_that_lacks_it_or_leads_to_the_next_that_holds_it(expected, answers, result):
    assert groups(expected, answers) == result


def test_rows_that_name_their_instant_are_merged_by_it():
    expected = [report(5, "ab"), report(10, "c")]
    said = [answer("a", 5, 3), answer("c", 10, 9), answer("b", 5, 7), answer("x", 15, 4), answer("y", 0, 1)]
    result = merged(said, expected, Grain.ROW)
    assert [(entry.instant, entry.added, entry.received) for entry in result] == [
        (5, (("a",), ("b",)), 7),
        (10, (("c",),), 9),
        (15, (("x",),), 4),
        (0, (("y",),), 1),
    ]


def test_of_several_reports_at_an_instant_the_scope_decides():
    expected = [report(10, "ab", 0), report(10, "bc", 5)]
    said = [answer("b", 10, scope=(5, 10)), answer("a", 10, scope=(0, 10)), answer("c", 10, scope=(5, 10))]
    result = merged(said, expected, Grain.ROW)
    assert [(entry.scope, entry.added) for entry in result] == [((5, 10), (("b",), ("c",))), ((0, 10), (("a",),))]
    both = merged([answer(x, 10) for x in "abbc"], expected, Grain.ROW)
    assert ["".join(row[0] for row in entry.added) for entry in both] == ["ab", "bc"]


def test_of_several_reports_at_an_instant_computed_numbers_decide_by_value():
    numbers = [f'"{value}"^^<http://www.w3.org/2001/XMLSchema#double>' for value in ("0.3", "0.30000000000000004", "7")]
    expected = [
        replace(report(10, "", start), rows=((number,),)) for start, number in ((0, numbers[0]), (5, numbers[2]))
    ]
    said = [replace(answer("", 10), added=((number,),)) for number in numbers[1:]]
    result = merged(said, expected, Grain.ROW, frozenset({0}))
    assert [item.added for item in result] == [((number,),) for number in numbers[1:]]


def test_whole_answers_stay():
    said = [answer("ab", 5), answer("", 10)]
    assert merged(said, [], Grain.REPORT) == tuple(said)
    assert whole(said) == tuple(said)


def test_changes_are_added_up_and_a_row_may_be_owed():
    said = [answer("ab"), Answer(("x",), (("c",),), (("a",),)), Answer(("x",), (), (("z",),)), answer("z"), answer("z")]
    result = whole(said)
    assert [sorted("".join(row) for row in item.added) for item in result] == [
        ["a", "b"],
        ["b", "c"],
        ["b", "c"],
        ["b", "c"],
        ["b", "c", "z"],
    ]
    assert not any(item.removed for item in result)
