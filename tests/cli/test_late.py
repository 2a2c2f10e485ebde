"""A window that is right but too late has a state of its own: verdict, folder, tables, JSON, page, explain."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from streamgauge.formats.run import read_verdict
from tests.cli.test_check import folder
from tests.unsealed import unsealed


def second_is_late(run):
    """The second answer comes two seconds later; all rows are right."""
    first, second, *rest = run.answers
    return replace(run, answers=(first, replace(second, received=second.received + 2_000_000_000), *rest))


def test_the_late_window_is_shown_by_check(tmp_path, command):
    run = folder(tmp_path, second_is_late)
    code, out, _ = command("check", run, "--max-delay", "1s")
    assert code == 5
    out = " ".join(out.split())
    assert "1 of them later than the 1 s allowed" in out
    assert "Later than 1 s: window 1 (2 s)" in out
    assert "delay 1 late [0.00" in out
    code, out, _ = command("check", run, "--max-delay", "1s", "--json")
    result = json.loads(out)
    assert [window["state"] for window in result["windows"]] == ["right", "late", "right", "right"]
    assert [window["late"] for window in result["windows"]] == [False, True, False, False]
    assert result["delay_bound"] == 1000


@pytest.mark.slow
def test_it_is_kept_and_shown_by_explain_and_by_the_page(tmp_path, command):
    run = folder(tmp_path, second_is_late)
    command("check", run, "--max-delay", "1s")
    kept = read_verdict(run)
    assert [window.late for window in kept.windows] == [False, True, False, False]
    assert kept.delay_bound == 1000
    code, out, _ = command("explain", run)
    assert code == 0
    assert "answered as rspql should, 1 window later than allowed" in out
    assert "Later than 1 s: window 1 (2 s)" in out
    assert "nothing to explain" not in out
    _, out, _ = command("explain", run, "--json")
    assert [(load["index"], load["delay"] > 2000) for load in json.loads(out)["late"]] == [(1, True)]
    assert command("report", tmp_path, "--out", tmp_path / "page.html").code == 0
    page = Path(tmp_path / "page.html").read_text()
    assert "4 windows, 1 late" in page
    assert "</svg>late</td>" in page
    assert "◷" in page


def test_a_wrong_window_that_is_late_too_is_wrong_and_marked(tmp_path, command):
    def both(run):
        late = second_is_late(run)
        first, second, *rest = late.answers
        return replace(late, answers=(first, replace(second, added=second.added[1:]), *rest))

    code, out, _ = command("check", folder(tmp_path, both), "--max-delay", "1s", "--json")
    result = json.loads(out)
    assert code == 1
    assert [(window["state"], window["late"]) for window in result["windows"]][1] == ("wrong", True)
    out = " ".join(command("check", tmp_path / "run", "--max-delay", "1s").out.split())
    assert "1 later than the 1 s allowed" in out
    assert "delay 1 wrong [0.00" in out
    assert "Later than 1 s: window 1 (2 s)" in out


def test_folders_of_earlier_versions_are_read(tmp_path, command):
    run = folder(tmp_path, second_is_late)
    command("check", run, "--max-delay", "1s")
    (part,) = (run / "windows.parquet").glob("*.parquet")
    pq.write_table(pq.read_table(part).drop_columns(["late"]), part)
    data = unsealed(run / "verdict.json")
    for name in ("delay_bound", "horizon", "cautions"):
        del data["verdict"][name]
    (run / "verdict.json").write_text(json.dumps(data))
    result = read_verdict(run)
    assert not any(window.late for window in result.windows)
    assert (result.delay_bound, result.horizon, result.cautions) == (None, None, ())
