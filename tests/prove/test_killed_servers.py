"""Servers and jobs killed without a chance to clean up: nothing is left running, and the same is done again."""

import json
import re
import time
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest

from tests.boundaries.sockets import BOUNDARIES, EVERY, HERE, SHOWN, ask, request, send, started, status
from tests.prove.killed import Killed

pytestmark = pytest.mark.prove

FORM = "application/x-www-form-urlencoded"


def until(met, seconds=120.0):
    end = time.monotonic() + seconds
    while not (result := met()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)
    return result


def get(port, path):
    return ask(port, request("GET", path, HERE, SHOWN, "Accept: application/json", "Connection: close"))


def body(answer):
    return json.loads(answer.partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_an_engine_that_is_killed_leaves_nothing_and_its_port_is_free(tmp_path, at):
    """Killed after its queries, while elements come, with subscribers; the next one begins at the same port, empty."""
    known = BOUNDARIES["engine"]
    with started(known, tmp_path) as running:
        port = running.ports[0]
        if at > 0:
            send(port, "POST", "/queries", EVERY, "application/sparql-query")
        if at > 1:
            for instant in range(at):
                send(port, "POST", f"/streams/urn:s?t={5000 * instant}", "<urn:a> <urn:p> <urn:b> .", "text/turtle")
        if at > 2:
            assert b"event-stream" in ask(port, request("GET", "/queries/q1/answers?after=0", HERE, SHOWN))
        family = running.family()
        running.process.kill()
        assert not psutil.wait_procs(family, timeout=30)[1], "a process outlived the engine"

    def again(folder):
        words = known.words(folder)
        return [*words[: words.index("--port") + 1], str(port), *words[words.index("--port") + 2 :]]

    (tmp_path / "again").mkdir()
    with started(replace(known, words=again), tmp_path / "again") as running:
        assert running.ports == [port]
        assert body(get(port, "/queries")) == {"queries": []}
        send(port, "POST", "/queries", EVERY, "application/sparql-query")
        for instant in (0, 5000):
            send(port, "POST", f"/streams/urn:s?t={instant}", "<urn:a> <urn:p> <urn:b> .", "text/turtle")
        until(lambda: body(get(port, "/queries/q1"))["answers"])


def begin(port):
    head = request("POST", "/runs/experiment/killed.toml", HERE, SHOWN, f"Content-Type: {FORM}", "Content-Length: 8",
                   "Connection: close")  # fmt: skip
    answer = ask(port, head, b"do=start")
    assert status(answer) in (200, 303), answer


@pytest.mark.parametrize("whom", ["workbench", "job", "engine"])
def test_a_job_of_a_workbench_is_done_again_from_what_is_finished(tmp_path, whom):
    """The workbench, its job, or the job's engine is killed: none is left, whole runs are kept, the rest is run."""
    job = Killed(tmp_path, repetitions=6)
    job.prepare()
    with started(BOUNDARIES["workbench"], tmp_path) as running:
        begin(running.ports[0])
        out = until(lambda: next(iter(tmp_path.glob("runs/*/live-*/verdict.json")), None)).parents[1]
        family = until(lambda: [process for process in running.family()[1:] if len(running.family()) > 2])
        {"workbench": running.process, "job": family[0], "engine": family[-1]}[whom].kill()
        if whom == "workbench":
            assert not psutil.wait_procs(family, timeout=60)[1], "a process outlived the workbench"
        else:
            until(lambda: not [process for process in running.family()[1:] if process.is_running()])
            page = get(running.ports[0], "/runs/experiment/killed.toml").decode(errors="replace")
            assert re.search("ended|failed|stopped|killed", page), running.text
    kept = whole(out)
    assert kept
    with started(BOUNDARIES["workbench"], tmp_path) as running:
        begin(running.ports[0])
        until(lambda: len(whole(out)) == 12, 300)
        assert kept.items() <= whole(out).items(), "a finished run was done again"
        assert "Traceback" not in running.text


def whole(out):
    """The finished runs, with when each was written."""
    results = {}
    for file in out.glob("live-*/verdict.json"):
        with suppress(OSError):
            results[file.parent.name] = (file.parent / "run.json").stat().st_mtime_ns
    return results
