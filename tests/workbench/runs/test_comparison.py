"""Two runs compared: what was asked differently, the change of each measure, the rows that only one run has."""

from dataclasses import replace

import pytest

from streamgauge.model.answer import Answer
from streamgauge.workbench.rooms.runs.comparison import compare
from streamgauge.workbench.rooms.runs.folder import BenchError
from streamgauge.workbench.rooms.runs.run_list import RunLines
from tests.report import build
from tests.workbench.runs.folders import bench, keep

pytestmark = pytest.mark.slow

EXTRA = ("<http://example.org/stations/new>", '"99"^^<http://www.w3.org/2001/XMLSchema#float>')
BLANK = ("_:b17", '"1"')


def other_run():
    """The right run, but for one window with another row, blank nodes of other labels, a query, a field, delays."""
    run, verdict = build.right()
    answers = list(run.answers)
    answers[3] = replace(answers[3], added=(*answers[3].added, EXTRA))
    answers[4] = with_row(answers[4], BLANK)
    header = replace(
        run.header,
        query_text=run.header.query_text.replace("?value > 30", "?value > 29"),
        semantics=replace(run.header.semantics, time_unit=500),
        workload={**run.header.workload, "stations": 7},
    )
    windows = tuple(
        replace(window, delay=None if window.delay is None else 3 * window.delay, late=window.index == 5)
        for window in verdict.windows
    )
    return replace(run, header=header, answers=tuple(answers)), replace(verdict, windows=windows, late=1, recall=0.75)


def with_row(answer: Answer, row):
    return replace(answer, added=(*answer.added, row))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    run, verdict = build.right()
    answers = list(run.answers)
    answers[4] = with_row(answers[4], ("_:b0", '"1"'))
    keep(folder / "first", (replace(run, answers=tuple(answers)), verdict))
    keep(folder / "second", other_run())
    keep(folder / "recorded", build.right(), verdict=False)
    return folder


@pytest.fixture(scope="module")
def found(runs):
    first, second = RunLines(runs).of(["first", "second"])
    return compare(runs, (first, second))


def test_every_condition_that_differs_is_named_and_no_other(found):
    assert {(entry.name, entry.first, entry.second) for entry in found.asked} == {
        ("query", "–", "another: below"),
        ("semantics time unit", "1,000 ms", "500 ms"),
        ("workload stations", str(build.right()[0].header.workload["stations"]), "7"),
    }
    assert [sign for sign, _ in found.query if sign in "+-"] == ["-", "+"]
    assert any("?value > 29" in text for sign, text in found.query if sign == "+")


def test_measures_have_their_change(found):
    measures = {measure.name: (measure.first, measure.second, measure.change) for measure in found.measures}
    assert measures["Recall"] == ("100%", "75%", "\N{MINUS SIGN}25.00 points")
    assert measures["Precision"][2] == ""
    assert measures["Median delay"][2] == "3 times"
    assert measures["Late"] == ("0", "1", "+1")
    assert len(found.drawings) == 2


def test_rows_that_only_one_run_has_are_shown_but_not_labels_of_blank_nodes(found):
    assert (found.differing, found.windows) == (2, len(build.right()[1].windows))
    rows, late = found.different
    assert (rows.counts, list(rows.only_second)) == ((0, 1), [(":new", '"99"^^xsd:float')])
    assert (late.states, late.counts) == (("right", "late"), (0, 0))


def test_the_page_shows_them_and_says_what_it_cannot_compare(runs):
    with bench(runs) as client:
        page = client.get("/runs/compare?run=first&run=second").text
        assert ":new" in page
        assert "&gt; 29" in page
        assert "2 of 20 windows differ" in page
        assert "Mark two runs to compare them" in client.get("/runs/compare?run=first").text
        for other in ("first", "recorded", "nowhere", "../first"):
            answer = client.get(f"/runs/compare?run=first&run={other}")
            assert answer.status_code == 422
            assert 'role="alert"' in answer.text


def test_a_part_of_the_timeline_is_drawn_without_the_page(runs):
    with bench(runs) as client:
        whole, part = (
            client.get(f"/runs/timeline?run=first&run=second{view}").text for view in ("", "&view=0,20000&width=700")
        )
        assert '<svg width="1350"' in whole
        assert '<svg width="700"' in part
        assert 'data-first="0" data-last="20000"' in part
        assert whole.count('class="window ') > part.count('class="window ') > 0
        for places, why in (
            ("", "not of 0"),
            ("run=first&run=second&run=first", "not of 3"),
            ("run=recorded", "judge"),
        ):
            answer = client.get(f"/runs/timeline?{places}")
            assert answer.status_code in (400, 422)
            assert why in answer.text


def test_one_run_is_not_compared_with_itself(runs):
    [line] = RunLines(runs).of(["first"])
    with pytest.raises(BenchError, match="one run"):
        compare(runs, (line, line))
