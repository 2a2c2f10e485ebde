"""How far a row is looked after that leads on: a wrong one that a later report has must not skip those between."""

from streamgauge.model.answer import Answer
from streamgauge.model.report import DueReport, ExpectedReport, View
from streamgauge.model.semantics import Grain
from streamgauge.oracle.judging.align import LOOKAHEAD, merged


def groups(expected: list[list[str]], answers: list[str]) -> list[list[str]]:
    reports = [
        ExpectedReport(DueReport(at, (View(0, at, 0, at, 0),)), ("x",), tuple((x,) for x in rows), 1)
        for at, rows in enumerate(expected)
    ]
    result = merged([Answer(("x",), ((x,),) if x else ()) for x in answers], reports, Grain.ROW)
    return [[row[0] for row in item.added] for item in result]


def test_the_next_32_answers_decide_whether_a_row_leads_on():
    # After "a", a row "z" comes that the second report has. The first one's other rows follow, then the second's.
    assert LOOKAHEAD == 32
    for own, later, leads in ((16, 15, False), (15, 16, False), (32, 99, False), (0, 32, True)):
        mine, other = [f"m{n}" for n in range(own)], [f"o{n}" for n in range(later)]
        result = groups([["a", *mine, "q"], ["z", *other]], ["a", "z", *mine, *other])
        assert (len(result[0]) == 1) is leads, (own, later)


def test_each_empty_answer_is_a_report_of_its_own():
    assert groups([["a"], [], [], ["b"]], ["a", "", "", "b"]) == [["a"], [], [], ["b"]]


def test_a_complete_report_is_followed_by_the_next_even_if_the_row_comes_once_more():
    assert groups([["x"], ["a"], ["b"]], ["x", "a", "a"]) == [["x"], ["a", "a"]]


def test_what_comes_after_the_next_32_answers_decides_nothing():
    # A row of the first report speaks for staying; it is the 32nd of the next answers, or the 33rd.
    for place, leads in ((31, False), (32, True)):
        coming = [f"x{n}" for n in range(40)]
        coming[place] = "m"
        result = groups([["a", "m", "q"], ["z", "y"]], ["a", "z", *coming])
        assert (len(result[0]) == 1) is leads, place
