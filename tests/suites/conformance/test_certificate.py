"""The list of deviations: what is kept, what is found, what fails because it is no longer true."""

from dataclasses import replace

import pytest

from streamgauge.suites.conformance.cases import Scale, asked, load
from streamgauge.suites.conformance.certificate import (
    Deviation,
    DeviationError,
    TaskStanding,
    certificate,
    read_deviations,
    updated_deviations,
    write_deviations,
)
from streamgauge.suites.conformance.runner import ConformanceOutcome, TaskResult

SLIDE = Deviation("slide", "it ignores it", "read", ("SLIDE ignored", "scope = range"), ("a @ p", "b @ p"))
TAIL = Deviation("tail", "nothing comes after", 'its "code"', ("reports lost at the tail",), ("c @ p",), "clock é")


def test_a_list_is_read_as_it_was_written(tmp_path):
    file = tmp_path / "deviations.toml"
    write_deviations(file, (SLIDE, TAIL))
    assert read_deviations(file) == (SLIDE, TAIL)


def test_entries_without_a_task_go_and_so_does_an_empty_list(tmp_path):
    file = tmp_path / "deviations.toml"
    write_deviations(file, (SLIDE, replace(TAIL, cases=())))
    assert read_deviations(file) == (SLIDE,)
    write_deviations(file, (replace(SLIDE, cases=()),))
    assert not file.exists()
    assert read_deviations(file) == ()
    assert read_deviations(None) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[deviation]]\nname = 'x'\n", r"deviations.toml: deviation 1.why is missing"),
        ("[[deviation]]\nname = 3\n", "deviation 1.name is 3: expected a string"),
        ("[[other]]\n", "other is unknown"),
        ("name =", "deviations.toml: "),
    ],
)
def test_a_list_that_is_wrong_names_file_and_entry(tmp_path, text, words):
    file = tmp_path / "deviations.toml"
    file.write_text(text)
    with pytest.raises(DeviationError, match=words):
        read_deviations(file)


def test_a_task_is_listed_once(tmp_path):
    file = tmp_path / "deviations.toml"
    write_deviations(file, (SLIDE, replace(TAIL, cases=("a @ p",))))
    with pytest.raises(DeviationError, match="case 'a @ p' is listed twice"):
        read_deviations(file)


def test_an_update_keeps_what_is_written_by_hand_and_drops_what_is_right_now():
    (kept,) = updated_deviations((SLIDE,), {"b @ p": ("scope = range", "due = all")}, ["a @ p", "b @ p"])
    assert kept == replace(SLIDE, findings=("scope = range",), cases=("b @ p",))


def test_tasks_that_were_not_tried_stay_listed():
    (kept,) = updated_deviations((SLIDE,), {"c @ p": ("SLIDE ignored",)}, ["c @ p"])
    assert kept == replace(SLIDE, cases=("a @ p", "b @ p", "c @ p"))


def test_a_task_stays_where_it_is_listed_else_the_first_entry_takes_it():
    both = replace(TAIL, findings=("SLIDE ignored",))
    results = {"c @ p": ("SLIDE ignored",), "d @ p": ("SLIDE ignored",)}
    first, second = updated_deviations((SLIDE, both), results, ["a @ p", "b @ p", "c @ p", "d @ p"])
    assert (first.cases, second.cases) == (("d @ p",), ("c @ p",))


def test_what_no_entry_explains_comes_under_as_few_new_findings_as_do():
    results = {"x": ("due = all", "rare"), "y": ("due = all", "other"), "z": ("other", "due = all"), "w": ("odd",)}
    new = updated_deviations((), results, results)
    assert [(item.findings, item.cases, item.why) for item in new] == [
        (("due = all",), ("x", "y", "z"), ""),
        (("odd",), ("w",), ""),
    ]


def test_a_finding_that_right_tasks_contradict_comes_last():
    results = {"x": ("due = all", "rare"), "y": ("due = all", "rare"), "z": ("due = all",)}
    new = updated_deviations((), results, results, {"due = all"})
    assert [(item.findings, item.cases) for item in new] == [(("rare",), ("x", "y")), (("due = all",), ("z",))]


TASK = next(iter(asked(load()[:1], (), Scale())))
LISTED = replace(SLIDE, cases=(TASK.name,))


def explained(_outcome: ConformanceOutcome) -> tuple[str, ...]:
    return LISTED.findings


@pytest.mark.parametrize(
    ("kind", "listed", "standing", "good"),
    [
        (TaskResult.PASSED, (), TaskStanding.PASSED, True),
        (TaskResult.REFUSED, (), TaskStanding.REFUSED, True),
        (TaskResult.WRONG, (), TaskStanding.FAILING, False),
        (TaskResult.PASSED, (LISTED,), TaskStanding.STALE, False),
        (TaskResult.REFUSED, (LISTED,), TaskStanding.STALE, False),
        (TaskResult.WRONG, (LISTED,), TaskStanding.DEVIATING, True),
        (TaskResult.PASSED, (replace(LISTED, flaky="clock"),), TaskStanding.FLAKY, True),
        (TaskResult.WRONG, (replace(LISTED, flaky="clock"),), TaskStanding.FLAKY, True),
        (TaskResult.REFUSED, (replace(LISTED, flaky="clock"),), TaskStanding.STALE, False),
        (TaskResult.WRONG, (replace(LISTED, findings=("reports lost at the tail",)),), TaskStanding.OTHERWISE, False),
        (
            TaskResult.WRONG,
            (replace(LISTED, findings=("reports lost at the tail",), flaky="clock"),),
            TaskStanding.FLAKY,
            True,
        ),
    ],
)
def test_how_a_task_stands_against_the_list(kind, listed, standing, good):
    explanation = certificate("e", [ConformanceOutcome(TASK, kind)], listed, True, explained)
    assert explanation.stood[0].standing is standing
    assert explanation.good is good
    assert explanation.tally()["theme", TASK.case.theme] == {standing: 1}


def test_a_listed_task_that_there_is_not_is_stale_when_all_were_tried():
    assert certificate("e", [], (SLIDE,), True, explained).unknown == SLIDE.cases
    assert not certificate("e", [], (SLIDE,), True, explained).good
    assert certificate("e", [], (SLIDE,), False, explained).good


def test_a_deviation_needs_a_reason():
    explanation = certificate(
        "e", [ConformanceOutcome(TASK, TaskResult.WRONG)], (replace(LISTED, why=""),), True, explained
    )
    assert explanation.bare == ("slide",)
    assert not explanation.good
