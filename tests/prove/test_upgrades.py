"""Whatever the commit before wrote is read by this one: run folders, baselines, configurations, journals, stores."""

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from streamgauge.servers.fragments.store.disk import DiskStore
from tests.servers.broker.process import Process
from tests.servers.broker.test_full_disk import many, publish, rows, students
from tests.servers.broker.world import BASE, select
from tests.servers.fragments.pages.sockets import process

pytestmark = pytest.mark.prove

ROOT = Path(__file__).parents[2]
BEFORE = os.environ.get("STREAMGAUGE_BEFORE", "HEAD~1")
"""The commit that wrote."""


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """The environment in which the commit before runs."""
    folder = tmp_path_factory.mktemp("before")
    archive = subprocess.run(["git", "archive", BEFORE, "src"], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"the commit before is not here: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return {**os.environ, "PYTHONPATH": str(folder / "src")}


def streamgauge(cwd, *words, environment=None):
    command = [sys.executable, "-m", "streamgauge.cli.main", *map(str, words)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_the_commit_before_is_another(before, tmp_path):
    code = "import streamgauge; print(streamgauge.__file__)"
    done = subprocess.run([sys.executable, "-c", code], env=before, cwd=tmp_path, capture_output=True, text=True)
    assert not Path(done.stdout.strip()).is_relative_to(ROOT)


def test_runs_and_baselines(before, tmp_path):
    assert streamgauge(tmp_path, "init", "start", environment=before).returncode == 0
    (experiment,) = (tmp_path / "start").glob("*.toml")
    done = streamgauge(tmp_path, "run", experiment, "--out", "out", environment=before)
    assert done.returncode == 0, done.stderr
    assert streamgauge(tmp_path, "compare", "out", "--save", "base.json", environment=before).returncode == 0
    runs = sorted(file.parent for file in (tmp_path / "out").rglob("run.json"))
    assert runs
    for run in runs:
        kept = json.loads((run / "verdict.json").read_text())["verdict"]["judgement"]
        done = streamgauge(tmp_path, "check", run, "--json")
        assert json.loads(done.stdout)["judgement"] == kept
    states = {file: file.stat().st_mtime_ns for run in runs for file in run.rglob("answers.parquet/*")}
    assert streamgauge(tmp_path, "run", experiment, "--out", "out").returncode == 0
    assert {file: file.stat().st_mtime_ns for file in states} == states, "runs that were kept were run again"
    assert streamgauge(tmp_path, "compare", "base.json", "out").returncode == 0


def test_a_journal(before, tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    with Process(folder, environment=before) as broker, httpx.Client(base_url=broker.url, timeout=300) as http:
        assert publish(http, "base", BASE).is_success
        assert http.put("/channels/students", content=select("?x a :Student")).is_success
        at = [publish(http, f"k{number}", many(number)).json()["publication"] for number in range(5)]
    with Process(folder) as broker, httpx.Client(base_url=broker.url, timeout=300) as http:
        assert rows(http) == students(range(5))
        for number, publication in enumerate(at):
            again = publish(http, f"k{number}", many(number)).json()
            assert again == {"publication": publication, "repeated": True}
        assert publish(http, "k9", many(9)).json() == {"publication": at[-1] + 1, "repeated": False}


def test_a_store(before, tmp_path, monkeypatch):
    lines = "".join(f'<urn:s{number}> <urn:p> "{number}" .\n' for number in range(1000))
    (tmp_path / "one.nt").write_text(lines)
    words = [str(tmp_path / "one.nt"), "--store", str(tmp_path / "store")]
    with monkeypatch.context() as patched:
        patched.setenv("PYTHONPATH", before["PYTHONPATH"])
        with process(words) as (_, port):
            assert httpx.get(f"http://127.0.0.1:{port}/one", timeout=300).is_success
    with process(words) as (_, port):
        assert httpx.get(f"http://127.0.0.1:{port}/one", timeout=300).is_success
    store = DiskStore(tmp_path / "store" / "one")
    assert store.count((None, "<urn:p>", None, None)) == 1000
    store.close()


def test_a_configuration(before, tmp_path):
    words = ("sepbm", "generate", "configuration", "--universities", "1", "--publications", "3")
    done = streamgauge(tmp_path, *words, environment=before)
    assert done.returncode == 0, done.stderr
    done = streamgauge(tmp_path, "sepbm", "run", "configuration", "--system", "broker_inprocess", "--out", "run")
    assert done.returncode == 0, done.stderr
