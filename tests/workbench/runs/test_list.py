"""The list of runs: what a line says, filter, order, pages, and what is kept between two looks."""

import re
from dataclasses import replace
from time import process_time

import pytest

from streamgauge.workbench.rooms.runs import run_list
from streamgauge.workbench.rooms.runs.folder import find
from streamgauge.workbench.rooms.runs.run_list import ListRequest, RunLine, RunLines, listed
from tests.report import build
from tests.workbench.runs.folders import bench, change, keep


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    keep(folder / "runs" / "hot" / "right", build.right())
    keep(folder / "runs" / "hot" / "wrong", build.wrong())
    keep(folder / "runs" / "hot" / "failed", build.failed())
    keep(folder / "elsewhere" / "recorded", build.right(), verdict=False)
    return folder


@pytest.fixture(scope="module")
def client(runs):
    with bench(runs) as client:
        yield client


def names(client, query=""):
    return re.findall(r'<a href="/runs/run/[^"]*">([^<]*)</a>', client.get(f"/runs/{query}").text)


def test_a_line_says_what_the_files_say(runs):
    [line] = RunLines(runs).of(["runs/hot/wrong"])
    run, verdict = build.wrong()
    delays = sorted(window.delay for window in verdict.windows if window.delay is not None)
    middle = len(delays) // 2
    assert (line.state, line.engine, line.semantics) == ("wrong", "csparql", "csparql")
    assert (line.precision, line.recall) == (verdict.precision, verdict.recall)
    assert line.delay == pytest.approx((delays[middle] + delays[-middle - 1]) / 2)
    assert line.memory == max(sample.rss for sample in run.samples)
    assert line.cpu == run.header.cpu


def test_words_and_verdict_filter(client):
    assert set(names(client)) == {"right", "wrong", "failed", "recorded"}
    assert names(client, "?q=HOT+right") == ["right"]
    assert set(names(client, "?verdict=wrong")) == {"wrong", "failed"}
    assert names(client, "?verdict=not+judged") == ["recorded"]
    assert names(client, "?q=nothing") == []
    assert len(names(client, "?verdict=no+such&sort=no+such&page=x")) == 4


def test_runs_without_the_value_are_last_in_either_order(client):
    for order in ("precision", "-precision"):
        shown = names(client, f"?sort={order}")
        assert shown[-1] == "recorded"
    up, down = names(client, "?sort=precision"), names(client, "?sort=-precision")
    assert up.index("wrong") < up.index("right")
    assert down.index("right") < down.index("wrong")


def test_pages_have_100_runs():
    lines = [RunLine(f"run{number}", "right", recorded=number) for number in range(250)]
    page = listed(lines, ListRequest(page=3))
    assert (page.fitting, page.pages, page.number, len(page.lines)) == (250, 3, 3, 50)
    assert page.lines[0].place == "run49"
    assert listed(lines, ListRequest(page=99)).number == 3


def test_what_was_read_is_kept_until_a_file_changes(runs, monkeypatch):
    lines = RunLines(runs)
    before = lines.of(["runs/hot/right"])
    monkeypatch.setattr(run_list, "_read", lambda *_: pytest.fail("read again"))
    assert lines.of(["runs/hot/right"]) == before
    monkeypatch.undo()
    _, verdict = build.right()
    keep(runs / "runs" / "hot" / "right", (build.right()[0], replace(verdict, precision=0.25)))
    assert lines.of(["runs/hot/right"])[0].precision == 0.25
    keep(runs / "runs" / "hot" / "right", build.right())


@pytest.mark.slow
def test_a_folder_of_100_runs_opens_in_a_second(tmp_path):
    first = keep(tmp_path / "run0", build.right())
    for number in range(1, 100):
        (tmp_path / f"run{number}").mkdir()
        for file in first.rglob("*"):
            target = tmp_path / f"run{number}" / file.relative_to(first)
            target.mkdir(parents=True, exist_ok=True) if file.is_dir() else target.write_bytes(file.read_bytes())
    with bench(tmp_path) as client:
        began = process_time()
        assert len(names(client)) == 100
        cold = process_time() - began
        began = process_time()
        assert len(names(client, "?sort=delay")) == 100
        warm = process_time() - began
    assert cold < 1.0
    assert warm < cold


def test_runs_are_found_at_any_depth_and_experiments_by_their_tables(runs):
    (runs / "weather.toml").write_text(
        '[workload]\nname = "weather"\n[query]\nname = "select"\n[[engine]]\nname = "live"'
    )
    (runs / "pyproject.toml").write_text('[project]\nname = "x"')
    result = find(runs)
    assert result.experiments == ("weather.toml",)
    assert set(result.runs) == {"elsewhere/recorded", *(f"runs/hot/{name}" for name in ("right", "wrong", "failed"))}


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_page_of_a_run_leads_to_its_report(client):
    page = client.get("/runs/run/runs/hot/wrong").text
    assert 'href="/runs/report/runs/hot/wrong"' in page
    assert "REGISTER RSTREAM" in page
    assert "streamgauge check runs/hot/wrong" in page
    assert "streamgauge explain runs/hot/wrong" in page
    assert "streamgauge explain" not in client.get("/runs/run/runs/hot/right").text
    answer = client.get("/runs/report/runs/hot/wrong")
    assert "Streamgauge report" in answer.text
    assert "; script-src 'self'; style-src" in answer.headers["content-security-policy"]
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    saved = client.get("/runs/report/runs/hot/wrong?saved=1").headers["content-security-policy"]
    assert "script-src" not in saved
    assert saved.startswith("default-src 'none'")
    assert client.get("/runs/report/elsewhere/recorded").status_code == 400
    assert "streamgauge run" not in page
    assert "Not judged yet" in client.get("/runs/run/elsewhere/recorded").text


def test_a_run_of_semantics_that_no_profile_has_has_its_page(tmp_path):
    run = keep(tmp_path / "run", build.right(), verdict=False)
    change(run / "run.json", semantics={"name": "of my own"}, workload={"k k": [{}, None]})
    with bench(tmp_path) as client:
        page = client.get("/runs/run/run")
    assert (page.status_code, "of my own" in page.text) == (200, True)
