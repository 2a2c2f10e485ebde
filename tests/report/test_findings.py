"""Undecided rows, borders that fit best, the diagnosis: in the terminal, on the page and in JSON, only when found."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from streamgauge import report
from streamgauge.model.verdict import Diagnosis, Part
from streamgauge.report import text
from streamgauge.report.cards import diagnosed, findings
from tests.report import build
from tests.report.test_page import read

LOST = Part("lost head", "The first reports are lost.")
ROWS = Part("row per report", "Every row is a report of its own")


def printed(judged) -> str:
    run, verdict = judged
    console = Console(file=StringIO(), width=200)
    console.print(text.verdict_lines(run.header, verdict))
    return console.file.getvalue()


def test_nothing_is_said_where_nothing_was_found():
    run, verdict = build.wrong()
    assert findings("window", verdict) == ()
    said = printed((run, verdict))
    assert "undecided" not in said
    assert "fits best" not in said


def test_the_terminal_says_all_of_it():
    said = printed(build.fitted())
    assert "2 rows are undecided: SPARQL leaves them open" in said
    assert "Of 5 reports answered wrongly, 4 fit exactly under other borders and 1 better: starts by " in said
    assert "Diagnosis: Each window starts up to one slide early." in said
    assert "6 of 11 reports differ otherwise." in said
    assert "The same answers: SLIDE is ignored. Each window starts up to one slide early." in said
    assert "t0 of the diagnosis: 1 s." in said
    assert "fits best" in said


@pytest.mark.slow
def test_the_page_says_all_of_it(tmp_path: Path):
    report.write([build.fitted()], tmp_path / "page.html", "Borders")
    page = read((tmp_path / "page.html").read_text())
    for sentence in (
        "2 rows are undecided",
        "4 fit exactly under other borders and 1 better",
        "Diagnosis: Each window starts up to one slide early. So every report comes out exactly as recorded",
        "Borders that fit best: cqels",
        "Outline: expected borders; filled: those under which the answer fits best",
        "5 of 12 reports moved",
        "Undecided: SPARQL leaves open whether they are there",
        "Fits best",
    ):
        assert sentence in page.text, sentence
    assert "[11.1, 15.3] s: 100%, 100%" in page.text


@pytest.mark.slow
def test_a_page_without_findings_has_no_columns_for_them(tmp_path: Path):
    report.write([build.wrong()], tmp_path / "page.html", "Plain")
    page = read((tmp_path / "page.html").read_text())
    assert "Fits best" not in page.text
    assert "Undecided" not in page.text
    assert "Borders that fit best" not in page.text


@pytest.mark.parametrize(
    ("diagnosis", "message"),
    [
        (None, []),
        (Diagnosis((), 0, 0, 5), []),
        (
            Diagnosis(((LOST, ROWS),), 0, 4, 9),
            [
                "Diagnosis: The first reports are lost. Every row is a report of its own. So every report comes out "
                "exactly as recorded; 4 of 9 reports differ otherwise."
            ],
        ),
        (
            Diagnosis(((LOST,),), 2, 4, 9),
            ["Diagnosis: none fits. The closest: The first reports are lost. It still differs in 2 reports; "
             "4 of 9 reports differ otherwise."],
        ),
        (
            Diagnosis(((LOST,), (ROWS,), (LOST, ROWS), (ROWS, LOST), (ROWS, ROWS)), 0, 4, 9),
            [
                "Diagnosis: The first reports are lost. So every report comes out exactly as recorded; "
                "4 of 9 reports differ otherwise.",
                "The same answers: Every row is a report of its own.",
                "The same answers: The first reports are lost. Every row is a report of its own.",
                "2 more models of the same answers: streamgauge explain lists them.",
            ],
        ),
        (
            Diagnosis(((LOST,), (ROWS,), (LOST, ROWS)), 0, 4, 9, bits=(6.0, 7.5, 12.0)),
            [
                "Diagnosis: The first reports are lost. So every report comes out exactly as recorded; "
                "4 of 9 reports differ otherwise.",
                "The same answers: Every row is a report of its own.",
                "The same answers, with more free choices: The first reports are lost. "
                "Every row is a report of its own.",
            ],
        ),
        (
            Diagnosis((), 4, 4, 9),
            ["Diagnosis: none fits; 4 of 9 reports differ under the declared semantics."],
        ),
    ],
)  # fmt: skip
def test_a_diagnosis_is_claimed_only_with_its_proof(diagnosis, message):
    assert list(diagnosed(diagnosis)) == message


def test_json_has_what_was_found():
    run, verdict = build.fitted()
    result = text.verdict_json(run.header, verdict)
    assert (result["rules"], result["undecided"]) == ("streamgauge", 2)
    assert result["diagnosis"]["exact"] is True
    assert result["diagnosis"]["models"][0] == [
        {"name": "borders", "sentence": "Each window starts up to one slide early."}
    ]
    windows = result["windows"]
    assert windows[2]["borders"] == [11100, 15300]
    assert windows[5]["undecided"] == len(windows[5]["doubtful"]) == 2
    assert text.verdict_json(run.header, replace(verdict, diagnosis=None))["diagnosis"] is None
