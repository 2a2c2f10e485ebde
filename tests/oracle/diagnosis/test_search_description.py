"""The ranking of models that give the same answers: the shorter description first, equal where little is between."""

from dataclasses import replace
from math import log2

import pytest

from streamgauge.model.report import DueReport
from streamgauge.model.verdict import Diagnosis, Part
from streamgauge.oracle.diagnosis.explanation import ExplanationFit
from streamgauge.oracle.diagnosis.faults.rows_lost import proposals as rows_lost
from streamgauge.oracle.diagnosis.models import ExplanationPlace, Fault, ModelReport, Sway
from streamgauge.oracle.diagnosis.search import DescriptionLength
from tests.oracle.diagnosis.faults.recordings import CLOSE, best, diagnosed, recording, with_rows
from tests.oracle.runs import right_run

QUERY = "SELECT ?s ?v { ?s <urn:p> ?v }"
BORDERS = " | ".join(f"{t}: s{t} p {t}." for t in range(0, 160, 2))


def fault(name):
    return Fault(Part(name, name), lambda case: case)


class Answers:
    """Answers of three rows each."""

    def rows(self, at):
        return (("<urn:a>",),) * 3


def test_the_worked_example():
    windows = [fault(f"window {n}") for n in range(16)]
    lost, repeated = rows_lost(None)
    jitter = Sway(lambda *_: None, lambda *_: Part("", ""))
    others = {f"kind {n}": (fault(f"kind {n}"),) for n in range(29)}
    length = DescriptionLength({"windows": windows, "rows": (lost, repeated), "jitter": (jitter,), **others})
    reports = tuple(ModelReport(n, (("<urn:a>",),) * 4, DueReport(n, ())) for n in range(16))
    places = [ExplanationPlace(n, n, reports[n], reports, Answers(), (1, 1)) for n in range(4)]
    assert length.of((windows[3],), None) == 5 + 4
    assert length.of((lost,), ExplanationFit(reports, {lost: places}, 0, ())) == pytest.approx(5 + 1 + 4 * (4 + 2 + 2))
    assert length.of((jitter,), ExplanationFit(reports, {}, 4, (), 32)) == 5 + 4 * log2(32)


def test_one_kind_and_one_choice_need_no_code():
    only, jitter = fault("only"), Sway(lambda *_: None, lambda *_: Part("", ""))
    length = DescriptionLength({"one": (only,), "none": ()})
    assert (length.of_part(only), length.shortest([only]), length.longest([only])) == (0, 0, 0)
    assert (length.shortest([]), length.longest([])) == (0, 0)
    two = DescriptionLength({"one": (only, fault("other")), "jitter": (jitter,)})
    assert (two.of_part(only), two.of_part(jitter), two.of((only, jitter), None)) == (2, 1, 3)
    # A place costs a bit at least: of one choice as of two.
    for choices, bits in ((1, 1), (2, 1), (4, 2)):
        assert two.of((jitter,), ExplanationFit((), {}, 3, (), choices)) == 1 + 3 * bits


@pytest.mark.slow
def test_rows_on_left_borders_lost_are_border_jitter_and_no_random_loss():
    run = right_run(CLOSE, BORDERS, QUERY, (20, 10), 160, named=False)
    borders = {0: 0, 3: 30, 6: 60, 9: 90}
    diagnosis = diagnosed(
        with_rows(
            run,
            (
                [row for row in answer.added if row[0] != f"<urn:s{borders.get(n, -1)}>"]
                for n, answer in enumerate(run.answers)
            ),
        ),
        BORDERS,
    )
    assert best(diagnosis) == ["border jitter at 4 borders"]
    names = [model[0].name for model in diagnosis.models]
    assert "rows lost in 4 reports" in names
    assert diagnosis.bits == tuple(sorted(diagnosis.bits))


def test_rows_elsewhere_lost_are_random_loss():
    run = right_run(CLOSE, BORDERS, QUERY, (20, 10), 160, named=False)
    lost = {0: 4, 3: 36, 6: 66, 9: 98}
    rows = [
        [row for row in answer.added if row[0] != f"<urn:s{lost.get(n, -1)}>"] for n, answer in enumerate(run.answers)
    ]
    assert best(diagnosed(with_rows(run, rows), BORDERS)) == ["rows lost in 4 reports"]


def test_models_of_as_few_free_choices_are_equal():
    text = " | ".join(f"{t}: s p {t}." for t in range(1, 60, 5))
    run = recording(text, "SELECT (AVG(?v) AS ?n) { ?s <urn:p> ?v }", "SELECT (MIN(?v) AS ?n) { ?s <urn:p> ?v }")
    diagnosis = diagnosed(run, text)
    assert diagnosis.equal == len(best(diagnosis))
    assert all(bit < diagnosis.bits[0] + 2 for bit in diagnosis.bits[: diagnosis.equal])
    assert all(bit >= diagnosis.bits[0] + 2 for bit in diagnosis.bits[diagnosis.equal :])


def test_a_diagnosis_without_lengths_calls_all_models_equal():
    part = Part("a", "b")
    assert Diagnosis(((part,), (part, part)), 0, 1, 2).equal == 2
    assert Diagnosis(((part,), (part, part)), 0, 1, 2, bits=(5.0, 9.0)).equal == 1
    assert replace(Diagnosis((), 3, 3, 3), bits=()).equal == 0
