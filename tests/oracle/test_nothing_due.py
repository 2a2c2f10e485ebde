"""A verdict over no report is unknown, with the likely cause, wherever verdicts are shown."""

import json
from dataclasses import replace

import pytest

import streamgauge
from streamgauge.model.run import Fed
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.judging.nothing_due import nothing_due
from streamgauge.report import cards
from streamgauge.semantics.profiles import RSPQL
from streamgauge.testing import assert_right
from tests.oracle.runs import right_run

QUERY = """PREFIX : <urn:>
SELECT ?x FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1M STEP PT1M] WHERE { WINDOW <urn:w> { ?x :p ?v } }"""
FRAMES = [(1000 * n, f"<urn:a{n}> <urn:p> <urn:v> .") for n in range(3)]


def test_a_verdict_over_no_report_is_none():
    verdict = streamgauge.verify(QUERY, FRAMES, answers=[])
    assert verdict.judgement is Judgement.UNKNOWN
    assert "No report was due: " in verdict.reason
    assert "time reached 2,000 ms, but the first window closes at 60,000 ms (the window has 60,000 ms" in verdict.reason
    assert "--time-property" in verdict.reason
    assert verdict.reason == cards.explanation("window", verdict)
    with pytest.raises(AssertionError, match="No report was due"):
        assert_right(QUERY, FRAMES, [])


@pytest.mark.parametrize(
    ("fed", "t0", "sentence"),
    [
        (
            [],
            None,
            "No report was due: time reached 5 ms, but the first window closes at 10 ms (the window has 10 ms and",
        ),
        ([Fed(-1, 5, 0, 0)], 0, "No report was due, because no element was fed: is the stream empty, or another one?"),
        ([Fed(0, 2, 0, 0), Fed(1, 4, 0, 0), Fed(-1, 5, 0, 0)], 0, "No report was due: 2 elements span 2 ms and time "),
        (
            [Fed(0, 2, 0, 0), Fed(-1, 5, 0, 0)],
            0,
            "No report was due: 1 element span 0 ms and time reached 5 ms, but the",
        ),
    ],
)
def test_the_cause_is_what_was_fed(fed, t0, sentence):
    run = right_run(RSPQL, window=(10, 10), advance=5)
    assert nothing_due(replace(run, fed=tuple(fed)), t0).startswith(sentence)


def test_a_window_of_triples_is_told_in_triples():
    run = right_run(RSPQL, window=(90, 30, "count"), advance=5)
    assert "the window has 90 triples and slides by 30" in nothing_due(run, 0)


@pytest.mark.server
def test_a_run_over_no_report_ends_with_its_own_code(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.rq").write_text(QUERY)
    lines = [
        json.dumps({"t": time, "n": n, "stream": "urn:s", "add": f"{text}\n"}) for n, (time, text) in enumerate(FRAMES)
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "e.toml").write_text(
        'name = "e"\n[workload]\nfile = "s.jsonl"\n[query]\nfile = "q.rq"\n'
        '[[engine]]\nname = "live"\nsemantics = "rspql"\n'
    )
    code, out, err = command("run", "e.toml", "--json")
    assert code == 4, err
    (run,) = json.loads(out)["runs"]
    assert run["judgement"] == "unknown"
    code, out, _ = command("check", "runs/e/live-rspql-seed0-1")
    assert code == 4, out
    assert "3 elements span 2,000 ms and time reached" in " ".join(out.split())
    for name in ("page.xml", "page.md", "page.html"):
        code, _, err = command("report", "runs/e", "--out", name)
        assert code == 0, err
        assert "No report was due" in (tmp_path / name).read_text()
