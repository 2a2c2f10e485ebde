"""Answers: one for each row of an answer."""

from dataclasses import fields, replace

import pytest

from streamgauge.model.answer import FEW, Answer

ROWS = (("<urn:a>", None), ("<urn:b>", '"1"'), ("<urn:a>", None))


@pytest.mark.parametrize("few", [0, FEW])
def test_an_answer_for_each_row_has_all_else_of_the_whole(few, monkeypatch):
    monkeypatch.setattr("streamgauge.model.answer.FEW", few)
    whole = Answer(("x", "y"), ROWS, ROWS[:2], "triples", 5, (1, 5), 7, 9)
    assert all(getattr(whole, field.name) != field.default for field in fields(Answer))
    came = [replace(whole, added=(row,), removed=()) for row in ROWS]
    went = [replace(whole, added=(), removed=(row,)) for row in ROWS[:2]]
    assert whole.row_by_row() == came + went
    assert replace(whole, added=(), removed=()).row_by_row() == []
    assert replace(whole, added=(), removed=ROWS[:1]).row_by_row() == [replace(whole, added=(), removed=ROWS[:1])]
