"""`init`: what it writes is answered and judged as it stands, and nothing is overwritten."""

import json
from pathlib import Path

import pytest

from streamgauge.suites.experiments.beginning import START


def test_what_is_written_has_comments_and_an_answer(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    code, out, _ = command("init", "mine")
    assert (code, out) == (
        0,
        "mine has a stream, a query and an experiment; run it by: streamgauge run mine/experiment.toml\n",
    )
    assert sorted(path.name for path in Path("mine").iterdir()) == sorted(START)
    assert all(path.read_text().startswith("# ") for path in Path("mine").iterdir())
    stream = ("--stream", "mine/stream.ttl", "--time-property", "sosa:resultTime")
    code, out, _ = command("expect", "mine/query.rq", *stream, "--semantics", "rspql", "--rows")
    assert code == 0
    due = [sorted(map(tuple, load["rows"])) for load in json.loads(out) if load["rows"]]
    code, out, _ = command("query", "mine/query.rq", *stream, "--json")
    assert code == 0
    assert [sorted(map(tuple, json.loads(line)["add"])) for line in out.splitlines()] == due
    assert [len(rows) for rows in due] == [2, 2, 2]


@pytest.mark.server
@pytest.mark.usefixtures("undrawn")
def test_what_is_written_is_judged_right(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    assert command("init", "mine")[0] == 0
    code, out, _ = command("run", "mine/experiment.toml", "--json")
    assert code == 0
    runs = json.loads(out)["runs"]
    assert [(run["semantics"], run["judgement"]) for run in runs] == [("rspql", "right"), ("csparql", "right")]
    assert Path("runs/parking/report.html").stat().st_size > 10_000


def test_nothing_is_overwritten(tmp_path, command):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "query.rq").write_text("SELECT")
    code, _, err = command("init", mine)
    assert code == 2
    assert err == f"streamgauge: {mine} already has query.rq: nothing was written; name another folder\n"
    assert [path.name for path in mine.iterdir()] == ["query.rq"]


def test_a_folder_that_is_there_is_used(tmp_path, command):
    (tmp_path / "own.nq").write_text("")
    assert command("init", tmp_path)[0] == 0
    assert {path.name for path in tmp_path.iterdir()} == {*START, "own.nq"}
