"""Jobs of the workbench: one for each key, few at once, and none that outlives it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest

from streamgauge.workbench.rooms import Bench, runs
from streamgauge.workbench.rooms.runs import RunsRoom
from streamgauge.workbench.rooms.runs.jobs import BenchJob, JobRefusedError, Jobs, JobView, polyline
from tests.workbench.runs.folders import EXPERIMENT, bench

WAIT_S = 300


def job(going=True, title="job"):
    namespace = SimpleNamespace(going=going, title=title, sentence="Stopped.", stopped=False)
    namespace.stop = lambda: setattr(namespace, "stopped", True)
    namespace.join = lambda: setattr(namespace, "going", False)
    return namespace


def test_one_job_goes_on_for_a_key_and_as_many_as_may_in_all():
    jobs, first = Jobs(most=2), job(title="first")
    jobs.start("a", lambda: first)
    with pytest.raises(JobRefusedError, match="first runs already"):
        jobs.start("a", lambda: pytest.fail("made"))
    jobs.start("b", lambda: job(title="second"))
    with pytest.raises(JobRefusedError, match="first and second run already"):
        jobs.start("c", lambda: pytest.fail("made"))
    first.going = False
    again = jobs.start("a", job)
    assert jobs.get("a") is again


def test_closing_stops_what_goes_on_and_lets_nothing_begin():
    jobs, going = Jobs(), job(title="going")
    jobs.start("a", lambda: going)
    jobs.start("b", lambda: job(going=False))
    assert jobs.close() == ["going: Stopped."]
    assert going.stopped
    with pytest.raises(JobRefusedError, match="closing"):
        jobs.start("c", job)


def test_points_of_a_small_plot():
    assert polyline([0, 5, 10]) == "0.0,30.0 50.0,15.0 100.0,0.0"
    assert polyline([0, 0]) == "0.0,30.0 100.0,30.0"
    assert len(polyline(range(10_000)).split()) <= 240


def test_a_watch_ends_with_the_job_and_when_the_workbench_is_told_to_stop(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "EVERY_S", 0.001)
    view = JobView(True, False, "", "<step>", 0.5, "")
    looks = iter([view, view, replace(view, step="next"), replace(view, going=False)])
    place = Bench(tmp_path)
    runs_room = RunsRoom(place)

    async def told(look):
        return [item async for item in runs_room._told(SimpleNamespace(look=look))]

    first, second, last = asyncio.run(told(lambda: next(looks)))
    assert first.startswith(b"event: progress\n")
    assert b"&lt;step&gt;" in first
    assert b"next" in second
    assert last.startswith(b"event: over\n")
    seen = []

    def leave():
        place.leaving.set()
        seen.append(1)
        return view

    assert len(asyncio.run(told(leave))) == len(seen) == 1


def until(seen):
    end = time.monotonic() + WAIT_S
    while not (result := seen()):
        assert time.monotonic() < end, "it did not come in time"
        time.sleep(0.1)
    return result


def engines(pid):
    """The engine's process below a job's."""
    results = []
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):
            results += [child] if "streamgauge.harness.host" in child.cmdline() else []
    return results


@pytest.mark.server
def test_closing_the_workbench_ends_an_experiment_with_its_engine_and_says_so(tmp_path, capfd):
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    before = set(psutil.Process().children(recursive=True))
    with bench(tmp_path) as client:
        assert client.post("/runs/experiment/e.toml", do="start").status_code == 303
        busy = client.post("/runs/experiment/e.toml", do="start")
        assert (busy.status_code, "experiment heat runs already" in busy.text) == (400, True)
        until(lambda: engines(os.getpid()))
        page = client.get("/runs/experiment/e.toml").text
        assert ">Running<" in page
        assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in page
        assert "running" in client.get("/runs/").text
    assert "streamgauge: experiment heat: Stopped; finished runs are kept" in capfd.readouterr().err
    assert set(psutil.Process().children(recursive=True)) <= before


@pytest.mark.prove
@pytest.mark.server
def test_an_experiment_ends_when_the_workbench_is_killed(tmp_path):
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    program = (
        "import time\nfrom streamgauge.workbench.rooms.runs.jobs import BenchJob\n"
        f"job = BenchJob('x', {str(tmp_path)!r}, ['run', 'e.toml', '--out', 'out'], watched=True)\n"
        "time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "TMPDIR": str(tmp_path)})
    try:
        until(lambda: engines(owner.pid))
        below = psutil.Process(owner.pid).children(recursive=True)
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    assert psutil.wait_procs(below, WAIT_S)[1] == []


@pytest.mark.server
def test_a_command_that_refuses_says_why(tmp_path):
    (tmp_path / "e.toml").write_text("[workload]\n")
    bench_job = BenchJob("x", tmp_path, ["run", "e.toml"], watched=True)
    until(lambda: not bench_job.going)
    assert bench_job.sentence.startswith("Not done: ")
    assert "query is missing" in bench_job.sentence
    assert not bench_job.look().going
