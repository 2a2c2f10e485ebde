"""A command that takes over a minute says so before it begins, with how long and what takes less."""

import pytest

from streamgauge.cli import experiments
from streamgauge.cli import reproduce as reproduce_command
from streamgauge.suites.experiments import runner

EXPERIMENT = """
seeds = [1, 2, 3]
[workload]
name = "weather"
stations = 2
interval = "1s"
duration = "30s"
[query]
name = "select"
parameters = { WSIZE = "5s", WSLIDE = "1s", TEMP = 50.0 }
[[engine]]
name = "live"
semantics = ["csparql", "cqels"]
[feed]
pace = "real time"
"""


class StoppedError(KeyboardInterrupt):
    """Ctrl-C of the test, where the work would begin."""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """An experiment whose engines do not begin."""

    def stopped(*_given, **_options):
        raise StoppedError

    monkeypatch.setattr(runner, "_do", stopped)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    return "e.toml"


def test_a_run_in_real_time_is_foretold(file, command):
    code, _, err = command("run", file)
    assert code == 130
    assert "run: this takes 3 min 9 s at least: 6 runs of 30 s each, fed in real time" in err
    assert "[feed] pace" in err


@pytest.mark.parametrize("override", ["feed.pace=10", "feed.pace=fast", "seeds=[1]", "workload.duration=3s"])
def test_what_takes_less_than_a_minute_or_about_one_is_not(file, command, override):
    _, _, err = command("run", file, "-D", override)
    assert ("this takes" in err) == (override == "seeds=[1]")


@pytest.mark.slow
def test_runs_that_are_kept_do_not_count(file, command, tmp_path):
    for semantics in ("csparql", "cqels"):
        for seed in (1, 2):
            folder = tmp_path / "out" / f"live-{semantics}-seed{seed}-1"
            folder.mkdir(parents=True)
            (folder / "verdict.json").write_text("{}")
    assert "2 runs of 30 s each" in command("run", file, "--out", "out")[2]
    assert "6 runs of 30 s each" in command("run", file, "--out", "out", "--again")[2]


def test_a_search_is_foretold(file, command, monkeypatch):
    monkeypatch.setattr(experiments, "capacities", lambda *_: iter(()))
    err = command("capacity", file)[2]
    assert "capacity: this takes 6 min 54 s at least: 2 searches of 6 probes or more, a probe is 3 runs of 10 s" in err
    assert "this takes" not in command("capacity", file, "--lasting", "1s", "-D", "seeds=[1]")[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tpf"], "reproduce: everything takes about 8 hours"),
        (["tpf", "--quick"], "reproduce: everything takes about an hour"),
        (["tpf", "--only", "static"], None),
        (["tpf", "--kept"], None),
        (["sepbm"], "reproduce: everything takes three quarters of an hour"),
        (["yabench", "--engines", "live"], "reproduce: everything takes hours"),
        (["yabench", "--engines", "live", "--only", "E1/small"], None),
    ],
)
def test_a_reproduction_is_foretold(command, monkeypatch, words, message):
    def stopped(*_given, **_options):
        raise reproduce_command.typer.Exit(0)

    monkeypatch.setattr(reproduce_command, "_do", stopped)
    code, _, err = command("reproduce", *words)
    assert code == 0
    assert (message in err) if message else ("everything takes" not in err)
