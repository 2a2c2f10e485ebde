"""Recordings that do not show where the engine ended: the last reports may be missing, and others may follow."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run
from streamgauge.oracle.diagnosis.diagnose import PatienceError, explained, worked
from streamgauge.oracle.diagnosis.search import Search
from tests.notation import rows
from tests.oracle.diagnosis.faults.recordings import elements, recording

TEXT = "5: s p 1. | 15: s p 2. | 25: s p 3. | 32: s p 4."
QUERY = "SELECT ?s ?v { ?s <urn:p> ?v }"
RUN = recording(TEXT, QUERY, advance=40)


def answering(text: str) -> Run:
    answers = [Answer(("s", "v"), tuple(rows(part))) for part in text.split("|")] if text else []
    return replace(RUN, answers=tuple(answers))


def apart(run: Run, stream: Sequence[StreamElement], open_ended: bool) -> int:
    """The reports in which the declared semantics differs; 0 only if the answers come out of it."""
    search = Search(run, stream, open_ended)
    far = search.distance(search.base, search.reports(search.base))
    assert search.comes_out(search.base) is (far == 0)
    return far


@pytest.mark.parametrize(
    ("answers", "declared", "open_end"),
    [
        ("s 1 | s 2 | s 3 | s 4", 0, 0),
        ("s 1 | s 2 | s 3", 1, 0),  # the report at 40 is after the last element
        ("s 1 | s 2", 2, 1),  # that at 30 is not
        ("s 1 | s 2 | s 3 | s 4 | | | ", 3, 0),  # an engine that goes on
        ("s 1 | s 2 | s 3 | s 4 | s 4", 1, 1),
        ("", 4, 3),
    ],
)
def test_reports_after_the_last_element_may_be_missing_or_go_on(answers, declared, open_end):
    run = answering(answers)
    assert apart(run, elements(TEXT), False) == declared
    assert apart(run, elements(TEXT), True) == open_end


def test_the_report_at_the_time_of_the_last_element_is_not_missing():
    text = "5: s p 1. | 15: s p 2. | 25: s p 3. | 30: s p 4."
    run = replace(recording(text, QUERY, advance=40), answers=answering("s 1 | s 2").answers)
    assert apart(run, elements(text), True) == 1


def test_nothing_is_missing_from_a_recording_without_elements():
    run = answering("")
    assert Search(run, (), True).comes_out(Search(run, (), True).base)
    assert (Search(run, (), True).open_end, Search(run, (), False).open_end) == (0, None)


def test_a_search_that_ends_early_still_shows_the_first_report_that_differs():
    steps = []

    def impatient(done: int, of: int) -> None:
        steps.append((done, of))
        raise PatienceError("enough")

    explanation = explained(answering("s 1 | s 2 ; s 9 | s 3 | s 4"), elements(TEXT), impatient)
    assert (explanation.ended, explanation.diagnosis.differs, explanation.diagnosis.reports) == ("enough", 1, 4)
    faults, fine = len(explanation.search.faults), len(explanation.search.fine)
    # Alone; then with slips, in pairs, and fine ones with others; then the closest.
    most = (faults + fine) + faults + faults * (faults - 1) // 2 + fine + faults
    assert steps == [(1, most)]
    window = worked(explanation)
    assert (window.instant, window.scope, window.model) == (20, (10, 20), None)
    assert (window.expected, window.recorded) == (tuple(rows("s 2")), tuple(rows("s 2 ; s 9")))
