"""Bags one after the other, as what changes from each to the next."""

from streamgauge.model.answer import Answer
from streamgauge.model.report import DueReport, View
from streamgauge.oracle.expected.reports import ContentChange, as_sets, received, sent
from streamgauge.semantics.profiles import CQELS, RSPQL

A, B, C = ("a",), ("b",), ("c",)


def change(at: int, net) -> ContentChange:
    return ContentChange(DueReport(at, (View(0, at, 0, at, 0),)), at, net)


def nets(changes) -> list[dict]:
    return [dict(change.net) for change in changes]


def test_a_set_has_a_row_from_its_first_copy_to_its_last():
    changes = [change(1, {A: 2, B: 1}), change(2, {A: -1, B: 1}), change(3, {A: -1, B: -2, C: 1}), change(4, {A: 1})]
    assert nets(as_sets(changes)) == [{A: 1, B: 1}, {}, {A: -1, B: -1, C: 1}, {A: 1}]
    assert [(set_.due, set_.content) for set_ in as_sets(changes)] == [
        (change.due, change.content) for change in changes
    ]


def test_an_empty_bag_is_sent_only_where_empty_answers_are():
    changes = [change(1, {}), change(2, {A: 1, B: 1}), change(3, {A: -1, B: -1}), change(4, {A: 1})]
    assert nets(sent(changes, RSPQL)) == nets(changes)
    quiet = list(sent(changes, CQELS))
    assert [(report.due.instant, report.content) for report in quiet] == [(2, 2), (4, 4)]
    assert nets(quiet) == [{A: 1, B: 1}, {B: -1}]


def answer(added=(), removed=()) -> Answer:
    return Answer(("x",), tuple(added), tuple(removed))


def test_whole_bags_differ_by_what_came_and_what_went():
    result = received([answer([A, A, B]), answer([A, C]), answer(), answer([A])])
    assert list(map(dict, result)) == [{A: 2, B: 1}, {A: -1, B: -1, C: 1}, {A: -1, C: -1}, {A: 1}]


def test_changes_are_taken_as_they_are_sent_and_a_row_may_be_owed():
    result = received([answer([A, B]), answer([C], [A]), answer([], [A]), answer([A]), answer([A])])
    assert list(map(dict, result)) == [{A: 1, B: 1}, {C: 1, A: -1}, {}, {}, {A: 1}]
