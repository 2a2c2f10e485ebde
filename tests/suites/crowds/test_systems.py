"""Servers and crowds as processes: fragments that are renewed, live behind the service; all answers are right."""

import asyncio
import json
import shutil
from io import StringIO

import pytest

from streamgauge.formats.run import read_run, read_verdict, stream_path
from streamgauge.formats.stream import write
from streamgauge.harness.process import JsonProgram, ProgramError
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse
from streamgauge.suites.crowds.clients import run_clients
from streamgauge.suites.crowds.runs import run
from streamgauge.suites.crowds.scenario import Scenario
from streamgauge.suites.crowds.systems import CrowdData
from streamgauge.suites.crowds.systems.fragments import nginx
from tests.suites.crowds.boards import data, whole

pytestmark = pytest.mark.server

SHORT = {"seconds": 7, "spread": 0.0, "slack": 400}
LONGER = {**SHORT, "seconds": 12}
"""Until a window of ten seconds has closed."""


LONG = [pytest.param(system, marks=pytest.mark.prove) for system in ("streamer", "polling")]


@pytest.mark.parametrize("system", ["incremental", *LONG])
def test_fragments(tmp_path, system):
    more = {"renewal": "plain", "period": 1000} if system == "polling" else {}
    scenario = Scenario(system, 2, **SHORT, **more)
    outcome = run(scenario, data(tmp_path, 30, 2000), tmp_path)
    assert outcome.failures == ()
    assert {answer.client for answer in outcome.answers} == {0, 1}
    assert all(answer.right for answer in outcome.answers)
    assert len(outcome.updates) >= 2
    assert outcome.server_cpu > 0
    assert outcome.clients_cpu > 0
    assert outcome.details["requests"] > 0


def test_a_service(tmp_path):
    stream, static = tmp_path / "s.parquet", tmp_path / "s.nt"
    write(whole(10, 2000), stream)
    static.write_text("")
    outcome = run(Scenario("live-cqels", 2, **SHORT), CrowdData(stream, static), tmp_path)
    assert outcome.failures == ()
    assert outcome.verdict.startswith("right")
    assert {answer.client for answer in outcome.answers} == {0, 1}
    assert all(answer.right for answer in outcome.answers)
    (folder,) = (tmp_path / "runs" / outcome.scenario.name).iterdir()
    assert read_verdict(folder) == judge_run(read_run(folder, parse), stream_path(folder), Means(no_spark))


def no_spark():
    pytest.fail("a few answers need no Spark")


def test_of_distinct_queries_several_are_judged(tmp_path):
    """Some have nothing due."""
    stream, static = tmp_path / "s.parquet", tmp_path / "s.nt"
    write(whole(10, 2000), stream)
    static.write_text("")
    outcome = run(Scenario("live-csparql", 4, True, **LONGER), CrowdData(stream, static), tmp_path)
    assert outcome.verdict.startswith("right, precision 1.000")
    assert outcome.verdict.endswith("(4 of 4 queries are right)")
    assert {answer.size > 0 for answer in outcome.answers} == {True, False}


@pytest.mark.parametrize("distinct", [False, pytest.param(True, marks=pytest.mark.prove)])
def test_a_broker(tmp_path, distinct):
    outcome = run(Scenario("broker", 2, distinct, **SHORT), data(tmp_path, 30, 2000), tmp_path)
    assert outcome.failures == ()
    assert all(answer.right for answer in outcome.answers)
    assert distinct or {answer.client for answer in outcome.answers} == {0, 1}
    assert all(answer.late >= 0 for answer in outcome.answers)
    assert len(outcome.updates) >= 2
    assert outcome.server_cpu > 0


@pytest.mark.prove
@pytest.mark.skipif(nginx() is None, reason="nginx is not installed: Debian's nginx-light")
def test_a_cache_in_front_has_clients_share_requests(tmp_path):
    outcome = run(Scenario("incremental", 4, proxy=True, **SHORT), data(tmp_path, 30, 2000), tmp_path)
    assert all(answer.right for answer in outcome.answers)
    asked = max(answer.requests for answer in outcome.answers)
    assert outcome.details["requests"] < 3 * asked
    shutil.rmtree(tmp_path / "proxy")


def test_a_program_that_fails_says_why():
    with (
        pytest.raises(ProgramError, match="KeyError"),
        JsonProgram("streamgauge.suites.crowds.clients.watchers", {}) as program,
    ):
        program.wait_for("ready")


def test_a_client_that_fails_is_told(monkeypatch, capsys):
    async def fail(line):
        raise ValueError(line)

    async def begin(_task, _stack):
        yield fail("not a number")
        yield asyncio.Event().wait()

    monkeypatch.setattr("sys.stdin", StringIO("{}\n"))
    run_clients(begin)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"ready": 2},
        {"failed": "ValueError: not a number"},
    ]
